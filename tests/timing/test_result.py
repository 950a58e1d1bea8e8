"""``Timing``: the text and attributes of the installed IPython's ``TimeitResult``."""

import pickle
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies as st
from IPython.core.magics.execution import TimeitResult

from xdev.timing import Timing

seconds = st.one_of(
    st.floats(min_value=0, max_value=1e7, allow_nan=False),
    st.floats(min_value=0, max_value=1e-4, allow_nan=False),
    st.integers(-12, 7).map(lambda power: 10.0**power),
    st.sampled_from([0.0, 59.9999, 60.0, 3599.9, 3600.0, 86400.0, 90061.0]),
)


@settings(max_examples=500)
@given(
    loops=st.sampled_from([1, 2, 10, 1000, 10**6, 12_345]),
    runs=st.lists(seconds, min_size=1, max_size=8),
    precision=st.integers(0, 9),
    encoding=st.sampled_from(
        ["utf-8", "latin-1", "ascii", "greek", "unheard-of", None]
    ),
)
def test_text_and_attributes_are_those_of_ipython(loops, runs, precision, encoding):
    numbers = (loops, len(runs), min(runs), max(runs), runs, 0.5, precision)
    ours, theirs = Timing(*numbers), TimeitResult(*numbers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", SimpleNamespace(encoding=encoding))
        assert str(ours) == str(theirs)

    names = ("loops", "repeat", "best", "worst", "all_runs", "compile_time")
    for name in (*names, "timings", "average", "stdev"):
        assert getattr(ours, name) == getattr(theirs, name)


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        (
            [0.0] * 7,
            "0 ns ± 0 ns per loop (mean ± std. dev. of 7 runs, 1,000 loops each)",
        ),
        ([1e-12], "0.000001 ns ± 0 ns per loop"),
    ],
)
def test_text_of_times_next_to_nothing(runs, text):
    timing = Timing(1000, len(runs), 0.0, 0.0, runs, 0.0)
    assert str(timing).startswith(text.replace("0.000001", "1e-06"))


def test_timing_survives_pickling():
    timing = Timing(10, 2, 0.1, 0.2, [1.0, 2.0], 0.0, 3, [0.1, 0.1], [0.1, 0.2])
    again = pickle.loads(pickle.dumps(timing))  # noqa: S301 - our own bytes
    assert again == timing
    assert again.wall == [0.1, 0.2]
