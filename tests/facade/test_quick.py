"""Elementwise functions as machine code, against NumPy and against their own code."""

import copy
import itertools
import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

import xdev
from xdev.compile import quick_function_code
from xdev.facade import quick
from xdev.facade.arity import binary, unary
from xdev.facade.libraries import HOST_SCALARS

NUMBERS = [True, 2, 2.5, 1j, *(kind(1) for kind in HOST_SCALARS)]
ARRAYS = [
    np.arange(6.0),
    np.arange(6, dtype="f4").reshape(2, 3),
    np.arange(3, dtype="i2"),
    np.array(2 + 1j),
    np.zeros((0, 3)),
    np.arange(12.0)[::2],
]
# A finalizer that runs when most modules are empty: that of `os` goes late.
LATE = """
import os
import numpy as np
import xdev
from xdev.facade.quick import QUICKENING

class Late:
    def __init__(self, add, x):
        self.add, self.x, self.write, self.xdev = add, x, os.write, xdev
    def __del__(self):
        for y in self.x, 2.0:
            self.write(1, b"%d " % self.add(self.x, y)[-1])

QUICKENING.quicken()
os.late = Late(xdev.add, np.arange(6.0))
"""


@pytest.fixture
def state(monkeypatch):
    """Return functions of a test's own, which are not machine code yet."""
    made = quick.Quickening()
    monkeypatch.setattr("xdev.facade.arity.QUICKENING", made)
    return made


def make(maker, name, **options):
    return maker(name, "Summary.", "", "", **options)


@contextmanager
def frames():
    """Collect the names of the Python functions that are called."""
    names = []

    def note(frame, event, _):
        if event == "call":
            names.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield names
    finally:
        sys.setprofile(before)


def outcome(function, *args, **keywords):
    try:
        return function(*args, **keywords)
    except Exception as error:  # noqa: BLE001 - it is what is compared
        return type(error), str(error)


def same(one, other):
    if isinstance(one, tuple):
        assert one == other
        return
    assert type(one) is type(other)
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one, other)


def test_arrays_and_numbers_are_numpys_business_and_no_frame_is_made(state):
    add, negative = make(binary, "add"), make(unary, "negative")
    state.quicken()
    pairs = [
        *itertools.product(ARRAYS[:1], ARRAYS),
        *itertools.product(ARRAYS, NUMBERS),
    ]
    for x, y in pairs:
        for args in ((x, y), (y, x)):
            expected = outcome(np.add, *args)
            if isinstance(expected, tuple):
                continue  # shapes that do not fit are below
            with frames() as seen:
                found = add(*args)
            assert "general" not in seen
            same(found, expected)
    for x in ARRAYS:
        with frames() as seen:
            found = negative(x)
        assert "general" not in seen
        same(found, np.negative(x))


@pytest.mark.parametrize(
    ("args", "keywords"),
    [
        ((), {}),
        ((ARRAYS[0],), {}),
        ((ARRAYS[0],) * 4, {}),
        ((ARRAYS[0], ARRAYS[0]), {"where": True}),
        ((ARRAYS[0], ARRAYS[0]), {"out": None}),
        ((ARRAYS[0], ARRAYS[0]), {"out": np.zeros(6)}),
        ((ARRAYS[0], ARRAYS[0], np.zeros(6)), {}),
        ((ARRAYS[0], ARRAYS[0], np.zeros(5)), {}),
        ((ARRAYS[0], ARRAYS[2]), {}),
        ((2.0, 3.0), {}),
        ((ARRAYS[0], [1.0] * 6), {}),
        ((ARRAYS[0], None), {}),
        ((ARRAYS[0], "text"), {}),
        ((np.array(["a"]), np.array([1])), {}),
        ((np.float64(1), 2.0), {}),
        ((np.ma.array([1.0]), np.ones(1)), {}),
    ],
)
def test_all_else_is_the_functions_own_business(state, args, keywords):
    add = make(binary, "add")
    expected = outcome(add, *copy.deepcopy(args), **copy.deepcopy(keywords))

    state.quicken()

    found = outcome(add, *copy.deepcopy(args), **copy.deepcopy(keywords))
    same(found, expected)


def test_complex_numbers_go_to_what_is_mended(state):
    log1p = make(unary, "log1p", reals=True)
    z = np.array([1e-20 + 1e-20j, complex(np.inf, np.nan)])
    expected = log1p(z)
    assert not np.array_equal(expected, np.log1p(z), equal_nan=True)

    state.quicken()

    np.testing.assert_array_equal(log1p(z), expected)
    for kind in "fd":
        with frames() as seen:
            log1p(z.real.astype(kind))
        assert "general" not in seen


class Thing:
    """An array of another library."""


@pytest.mark.parametrize("early", [True, False])
def test_arrays_of_a_type_that_is_served(state, early):
    add, negative = make(binary, "add"), make(unary, "negative")
    found = {"add": lambda x, y: (x, y), "negative": lambda x: x}
    if early:
        state.serve(Thing, found)
    state.quicken()
    if not early:
        state.serve(Thing, found)
    thing = Thing()

    assert negative(thing) is thing
    for args in ((thing, thing), (thing, 2), (1j, thing), (True, thing)):
        assert add(*args) == args
    for args in ((thing, np.float64(1)), (thing, ARRAYS[0]), (thing, "text")):
        with pytest.raises(TypeError, match="no array"):
            add(*args)


def test_what_a_call_raises(state):
    add, errors = make(binary, "add"), []

    def raising(*_):
        errors.append(KeyboardInterrupt())
        raise errors[-1]

    state.serve(Thing, {"add": raising})
    state.quicken()
    with pytest.raises(KeyboardInterrupt) as caught:
        add(Thing(), Thing())
    assert [caught.value] == errors
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        xdev.log(np.zeros(1))


def test_nothing_is_kept(state):
    add, x, y = make(binary, "add"), np.arange(6.0), np.arange(5.0)
    state.quicken()
    before = sys.getrefcount(x), sys.getrefcount(y)
    for _ in range(100):
        add(x, x)
        add(x, 2.0)
        add(x, x, out=np.zeros(6))
        outcome(add, x, y)
    assert before == (sys.getrefcount(x), sys.getrefcount(y))


@pytest.mark.parametrize("kept", [True, False])
def test_the_code_is_loaded_after_many_calls_and_compiled_after_more(
    state, monkeypatch, kept
):
    add, x = make(binary, "add"), ARRAYS[0]
    monkeypatch.setattr(quick_function_code, "kept", lambda: b"" if kept else None)
    monkeypatch.setattr(quick, "CALLS_TO_COMPILE", 30)
    comes, state.left = [], 20
    monkeypatch.setattr(state, "quicken", lambda: comes.append(1))
    for calls in (20, 1, 30):
        assert not comes
        for _ in range(calls):
            add(x, x)
        if kept and calls == 1:
            break
    add(x, x)
    assert comes


def test_threads_that_call_while_it_comes(state):
    add, x = make(binary, "add"), ARRAYS[0]
    state.left, wrong = 2000, []

    def work():
        wrong.extend(1 for _ in range(2000) if add(x, x)[-1] != 10)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert state.functions is not None


def test_calls_of_the_last_finalizers():
    done = subprocess.run(
        [sys.executable, "-c", LATE],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "10 7 ", "")


@pytest.mark.parametrize("error", [OSError, KeyError])
def test_code_that_cannot_be_had_is_nobodys_business(state, monkeypatch, error):
    add, x = make(binary, "add"), ARRAYS[0]

    def fail():
        raise error

    monkeypatch.setattr(quick_function_code, "kept", fail)
    state.left = 5
    for _ in range(20):
        np.testing.assert_array_equal(add(x, x), x + x)
    assert state.functions is None


def test_an_array_to_write_to_is_numpys_business_where_all_have_its_shape(state):
    add, log1p = make(binary, "add"), make(unary, "log1p", reals=True)
    state.quicken()
    x = ARRAYS[1].astype("d")
    out = np.zeros_like(x)
    with frames() as seen:
        assert add(x, x, out) is out
        assert log1p(x, out) is out
    assert "general" not in seen
    np.testing.assert_array_equal(out, np.log1p(x))
    for given, other in [
        ((x, x), np.zeros(6)),
        ((x, x), np.zeros((2, 2, 3))),
        ((x, x), np.zeros_like(x).astype("i")),
        ((x, x[0]), out),
        ((x, 2.0), out),
        ((x, x), np.ma.zeros(x.shape)),
        ((x, x), [0.0]),
    ]:
        with frames() as seen:
            outcome(add, *given, other)
        assert "general" in seen
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        add(x, x, out)
