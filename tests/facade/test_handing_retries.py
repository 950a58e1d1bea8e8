"""Functions that hand arrays on to what tries again once there is memory."""

import sys
import types

import pytest

import xdev
from xdev.errors import OutOfMemoryError
from xdev.facade import libraries
from xdev.facade.quick import Quickening
from xdev.memory.outside import retrying
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource

QUICK = sys.version_info >= (3, 12)


class CuFFTError(RuntimeError):
    """As CuPy's: its code says that an allocation failed."""

    result = 2


class Thing:
    """An array of another library."""


class Transform:
    """A library's function, which may fail as long as something is so."""

    def __init__(self):
        self.error, self.fails = None, bool
        self.seen, self.callers = [], []

    def __call__(self, x, *, n=None, axis=-1, norm="backward"):
        self.seen.append((x, n, axis, norm))
        self.callers.append(sys._getframe(1).f_code.co_name)
        if self.fails():
            raise self.error
        return "done"


@pytest.fixture
def pool():
    made = Pool(FakeSource(capacity=4096), "simple")
    made.release(made.acquire(4096))  # the pool keeps it
    return made


@pytest.fixture
def transform():
    return Transform()


@pytest.fixture
def fft(monkeypatch, pool, transform):
    functions = {"fft.fft": retrying(transform, lambda: pool)}
    monkeypatch.setitem(libraries.direct, Thing, functions)
    code = xdev.fft.fft
    made = types.FunctionType(code.__code__, code.__globals__)
    made.__kwdefaults__ = code.__kwdefaults__
    state = Quickening()
    state._handing["fft.fft"] = made
    state.quicken()
    state.serve(Thing, functions)
    return made


def test_what_goes_well_is_called_once_and_at_once(fft, transform, pool):
    x = Thing()
    assert fft(x, axis=0) == "done"
    assert transform.seen == [(x, None, 0, "backward")]
    here = "test_what_goes_well_is_called_once_and_at_once"
    assert transform.callers == ([here] if QUICK else ["attempt"])
    assert pool.stats().retries == 0


def test_there_is_room_for_the_next_try(fft, transform, pool):
    x = Thing()
    transform.error = CuFFTError("none left")
    transform.fails = lambda: pool.stats().cached
    assert fft(x, norm="ortho") == "done"
    assert set(transform.seen) == {(x, None, -1, "ortho")}
    assert pool.stats().retries == 1


def test_there_is_none(fft, transform, pool):
    transform.error, transform.fails = CuFFTError("none left"), lambda: True
    with pytest.raises(OutOfMemoryError, match="none left"):
        fft(Thing())
    assert pool.stats().retries == 1


def test_other_errors_are_told_as_they_are(fft, transform, pool):
    of_size = CuFFTError("bad size")
    of_size.result = 8
    transform.fails = lambda: True
    for error in (of_size, RuntimeError("lost"), ValueError("shape")):
        transform.error = error
        with pytest.raises(type(error), match=str(error)) as raised:
            fft(Thing())
        assert raised.value is error
    assert pool.stats().retries == 0
