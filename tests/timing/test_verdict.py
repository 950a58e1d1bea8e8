"""Ratios, their intervals and what they say."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from xdev.timing.verdict import ROUNDS, ratio, ratio_of_unpaired

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


@pytest.mark.parametrize("rounds", range(1, 12))
def test_as_many_rounds_as_are_named_are_enough_for_a_verdict(rounds):
    found = ratio([2.0] * rounds, [1.0] * rounds)
    assert found.enough == (found.verdict == "slower") == (rounds >= ROUNDS)


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


def test_no_number_of_rounds_tells_apart_more_than_one_same_pair_of_fifty():
    rng = np.random.default_rng(2)
    for rounds in (7, 9, 12, 20):
        trials = [
            ratio(rng.lognormal(size=rounds), rng.lognormal(size=rounds)).verdict
            for _ in range(2000)
        ]
        assert np.mean(np.isin(trials, ["faster", "slower"])) <= 0.02


@given(st.lists(times, min_size=1, max_size=8), st.lists(times, min_size=1, max_size=8))
def test_unpaired_times_turn_with_the_pair(a, b):
    there, back = ratio_of_unpaired(a, b), ratio_of_unpaired(b, a)
    assert there.sure == back.sure
    if there.sure:
        assert back.low == pytest.approx(1 / there.high)
        assert back.high == pytest.approx(1 / there.low)
        assert there.low <= there.middle <= there.high


@pytest.mark.parametrize(("first", "second"), [(5, 5), (11, 11), (7, 15)])
def test_unpaired_intervals_are_those_of_the_mann_whitney_test(first, second):
    """SciPy's p-value passes 5 % where the interval ends."""
    rng = np.random.default_rng(3)
    a, b = rng.lognormal(size=first), rng.lognormal(size=second)
    found = ratio_of_unpaired(a, b)

    def surely_apart(factor):
        return stats.mannwhitneyu(a / factor, b, method="exact").pvalue < 0.05

    nudge = 1 + 1e-9
    assert surely_apart(found.low / nudge)
    assert not surely_apart(found.low * nudge)
    assert surely_apart(found.high * nudge)
    assert not surely_apart(found.high / nudge)


def test_a_margin_is_the_border_of_the_same():
    baseline = np.random.default_rng(4).uniform(1, 1.001, 11)
    assert ratio_of_unpaired(1.05 * baseline, baseline).verdict == "slower"
    assert ratio_of_unpaired(1.05 * baseline, baseline, margin=1.1).verdict == "same"
