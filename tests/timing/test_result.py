"""``Timing``: the text and attributes of the installed IPython's ``TimeitResult``."""

import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies as st
from IPython.core.magics.execution import TimeitResult
from running import pickled, timed

from xdev.timing import Timing

seconds = st.one_of(
    st.floats(min_value=0, max_value=1e7, allow_nan=False),
    st.floats(min_value=0, max_value=1e-4, allow_nan=False),
    st.integers(-12, 7).map(lambda power: 10.0**power),
    st.sampled_from([0.0, 59.9999, 60.0, 3599.9, 3600.0, 86400.0, 90061.0]),
)


@settings(max_examples=20 * settings().max_examples)
@given(
    loops=st.sampled_from([1, 2, 10, 1000, 10**6, 12_345]),
    runs=st.lists(seconds, min_size=1, max_size=8),
    precision=st.integers(-1, 20),
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
    ("share", "waits", "bound"),
    [(0.95, False, True), (0.95, None, True), (0.95, True, False), (0.5, False, False)],
)
def test_launch_bound_is_what_does_not_wait_and_is_launched_as_slowly(
    share, waits, bound
):
    # Noise only lengthens: the fastest of each tells, of whichever runs they are.
    clocks = {"launch": [share, share, 1.8], "device": [1.0] * 3}
    timing = timed([1.0, 1.9, 1.9], precision=3, queued=True, waits=waits, **clocks)
    assert timing.launch_bound == bound
    assert not bound or timing.notes[0].endswith("a call takes 950 ms")


def test_timing_survives_pickling():
    timing = Timing(10, 2, 0.1, 0.2, [1.0, 2.0], 0.0, 3, [0.1, 0.1], [0.1, 0.2])
    again = pickled(timing)
    assert again == timing
    assert again.wall == [0.1, 0.2]
