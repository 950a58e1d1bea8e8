"""Ratios, their intervals and what they say."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from xdev.timing.verdict import ratio

times = st.floats(min_value=1e-7, max_value=1e2)


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(0.5, "faster"), (2.0, "slower"), (1.0, "same"), (1.01, "same")],
)
def test_steady_factors(factor, verdict):
    baseline = np.random.default_rng(0).uniform(1, 2, 11)
    found = ratio(factor * baseline, baseline)
    assert found.middle == pytest.approx(factor)
    assert found.verdict == verdict


def test_what_scatters_across_one_is_unclear():
    assert ratio([0.5, 2.0] * 5 + [1.0], [1.0] * 11).verdict == "unclear"


def test_one_slow_round_moves_nothing():
    times = [0.5] * 10 + [50.0]
    assert ratio(times, [1.0] * 11).verdict == "faster"


@given(st.lists(st.tuples(times, times), min_size=1, max_size=5))
def test_too_few_rounds_give_no_verdict(pairs):
    found = ratio(*zip(*pairs, strict=True))
    assert not found.sure
    assert found.verdict == "unclear"


@given(st.lists(st.tuples(times, times), min_size=6, max_size=30))
def test_the_interval_holds_the_middle_and_turns_with_the_pair(pairs):
    a, b = zip(*pairs, strict=True)
    there, back = ratio(a, b), ratio(b, a)
    assert there.low <= there.middle <= there.high
    assert back.low == pytest.approx(1 / there.high)
    assert back.high == pytest.approx(1 / there.low)
    opposite = {"faster": "slower", "slower": "faster"}
    assert back.verdict == opposite.get(there.verdict, there.verdict)


def test_the_interval_misses_the_median_of_noise_in_at_most_one_of_twenty():
    rng = np.random.default_rng(1)
    trials = [
        ratio(rng.lognormal(size=11), rng.lognormal(size=11)) for _ in range(2000)
    ]
    assert np.mean([not t.low <= 1 <= t.high for t in trials]) < 0.05
