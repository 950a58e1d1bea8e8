"""Calls of elementwise functions as machine code, against their own Python code."""

import copy
import functools
import gc
import inspect
import itertools
import pickle
import sys
import types
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest

import xdev
from xdev.facade.quick import QUICKENING

# From here on no frame of a function's own is made; before, it calls machine code.
STANDS_FOR_THE_FUNCTION = sys.version_info >= (3, 12)
NOT_INTERNED = b"out".decode()
OTHERS = {"clip"}  # takes out= too, but is no function of one or two arrays alone


class Sub(np.ndarray):
    """A subclass of NumPy's array."""


class Overriding:
    """What NumPy asks before it computes."""

    def __array_ufunc__(self, *args, **keywords):
        return len(args), sorted(keywords)

    def __repr__(self):
        return "Overriding()"


FLOATS = np.array([0.5, -2.0, 0.0])
INPUTS = {
    "floats": FLOATS,
    "singles": FLOATS.astype("f4"),
    "ints": np.array([3, 1, 2]),
    "bools": np.array([True, False, True]),
    "complexes": FLOATS + 1j,
    "matrix": np.ones((2, 3)),
    "of other shape": np.ones(4),
    "scalar": np.float64(2.0),
    "number": 2,
    "list": [1.0, 2.0, 3.0],
    "None": None,
    "text": "text",
    "subclass": FLOATS.view(Sub),
    "masked": np.ma.array(FLOATS),
    "other": Overriding(),
}
OUTPUTS = {
    "None": None,
    "floats": np.zeros(3),
    "bools": np.zeros(3, bool),
    "ints": np.zeros(3, int),
    "of other shape": np.zeros(5),
    "subclass": np.zeros(3).view(Sub),
    "list": [0.0] * 3,
}


@pytest.fixture(scope="module", autouse=True)
def _quick():
    QUICKENING.quicken()


def names():
    """Return the functions of one or two arrays and ``out``, by their signatures."""
    found = [
        name
        for name in xdev.facade.__all__  # elsewhere stubs take out= once they load
        if inspect.isfunction(getattr(xdev, name))
        and "out" in inspect.signature(getattr(xdev, name)).parameters
    ]
    return sorted(set(found) - OTHERS)


def count(name):
    return len(inspect.signature(getattr(xdev, name)).parameters) - 1


def plain(name):
    """Return the function as it would be without machine code."""
    ours = getattr(xdev, name)
    general = next(row[2] for row in QUICKENING._joined if row[1] is ours)
    cell = types.CellType(general)
    made = types.FunctionType(
        *(ours.__code__, ours.__globals__, name, ours.__defaults__, (cell,))
    )
    made.__qualname__ = name
    return made


def outcome(function, args, keywords):
    """Return what a call returns or raises, and what is in its arguments after it."""
    args, keywords = copy.deepcopy((args, keywords))
    given = [*args, *keywords.values()]
    try:
        with np.errstate(all="ignore"):
            found = function(*args, **keywords)
    except Exception as error:  # noqa: BLE001 - it is what is compared
        return type(error), str(error), repr(given)
    own = [k for k, x in enumerate(given) if x is found]
    return type(found), getattr(found, "dtype", None), repr(found), own, repr(given)


def halved(function):
    """Return the function, which is called by a partial one that has one argument."""
    return lambda *args, **keywords: functools.partial(function, *args[:1])(
        *args[1:], **keywords
    )


def called(function, args):
    """Return the names of the Python functions that a call calls."""
    seen = []

    def note(frame, event, _):
        if event == "call":
            seen.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function(*args)
    finally:
        sys.setprofile(before)
    return seen


def test_all_functions_of_one_and_two_arrays_are_quick():
    assert names() == sorted(row[1].__name__ for row in QUICKENING._joined)


@pytest.mark.parametrize("name", names())
def test_calls_by_place_and_by_name_are_what_python_makes_of_them(name):
    ours, python, x = getattr(xdev, name), plain(name), INPUTS["floats"]
    inputs, out = (x,) * count(name), np.zeros(3)
    first = next(iter(inspect.signature(ours).parameters))
    ways = [
        *((inputs + (x,) * k, {}) for k in range(-len(inputs), 4)),
        *((inputs[:k], {"out": out}) for k in range(3)),
        ((*inputs, None), {}),
        (inputs, {"out": None}),
        (inputs, {"out": out}),
        (inputs, {NOT_INTERNED: out}),
        ((*inputs, out), {"out": out}),
        ((*inputs, None), {"out": out}),
        (inputs, {"where": True}),
        (inputs, {"dtype": "f4"}),
        (inputs, {"out": out, "where": True}),
        (inputs, {"where": True, "out": out}),
        (inputs[1:], {first: x}),
        (inputs, {first: x}),
        (inputs[1:], {first: x, "out": out}),
        ((), {first: x, "out": out}),
    ]
    for args, keywords in ways:
        expected = outcome(python, args, keywords)
        assert outcome(ours, args, keywords) == expected, (args, keywords)
        assert outcome(halved(ours), args, keywords) == expected, (args, keywords)


@pytest.mark.parametrize("name", names())
def test_inputs_of_all_kinds_are_what_python_makes_of_them(name):
    ours, python = getattr(xdev, name), plain(name)
    for kinds in itertools.product(INPUTS, repeat=count(name)):
        args = tuple(INPUTS[kind] for kind in kinds)
        assert outcome(ours, args, {}) == outcome(python, args, {}), kinds


@pytest.mark.parametrize("name", ["abs", "log1p", "isfinite", "add", "maximum", "less"])
def test_outputs_of_all_kinds_are_what_python_makes_of_them(name):
    ours, python = getattr(xdev, name), plain(name)
    for kinds in itertools.product(INPUTS, repeat=count(name)):
        args = tuple(INPUTS[kind] for kind in kinds)
        for kind, out in OUTPUTS.items():
            expected = outcome(python, (*args, out), {})
            assert outcome(ours, (*args, out), {}) == expected, (kinds, kind)
            assert outcome(ours, args, {"out": out}) == expected, (kinds, kind)


@pytest.mark.parametrize("name", names())
def test_which_frames_are_made(name):
    x = INPUTS["bools" if "bitwise" in name or "logical" in name else "floats"]
    x = INPUTS["ints"] if "shift" in name else x
    ours, inputs = getattr(xdev, name), (x,) * count(name)
    with np.errstate(all="ignore"):
        out = np.zeros_like(plain(name)(*inputs))
    own = [] if STANDS_FOR_THE_FUNCTION else ["function"]
    for call in (
        ours,
        lambda *args: ours(*args, out),
        lambda *args: ours(*args, out=out),
        lambda *args: ours(*args, out=None),
    ):
        with np.errstate(all="ignore"):
            seen = called(call, inputs)
        kept = [each for each in seen if each in {"function", "general"}]
        assert kept == own


def test_code_that_ran_before_calls_it_too():
    python, x = plain("add"), INPUTS["floats"]
    from xdev.facade import arity, quick

    made = quick.Quickening()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arity, "QUICKENING", made)
        add = arity.binary("add", "Summary.", "", "")

    def loop():
        return [add(x, 2.0)[0] for _ in range(1000)]

    expected = [python(x, 2.0)[0]] * 1000
    assert loop() == expected
    made.quicken()
    assert loop() == expected
    seen = called(loop, ())
    assert "general" not in seen
    assert seen.count("function") == (0 if STANDS_FOR_THE_FUNCTION else 1000)


def test_ways_of_calling():
    x = INPUTS["floats"]
    holder = type("Holder", (Sub,), {"plus": xdev.add, "size_of": xdev.abs})
    held = x.view(holder)
    np.testing.assert_array_equal(held.plus(2.0), x + 2.0)
    np.testing.assert_array_equal(held.size_of(), abs(x))
    np.testing.assert_array_equal(list(map(xdev.abs, [x, -x])), [abs(x)] * 2)
    np.testing.assert_array_equal(functools.reduce(xdev.add, [x] * 3), x + x + x)


def test_all_else_of_a_function_is_as_it_was():
    for name in names():
        ours, python = getattr(xdev, name), plain(name)
        assert type(ours) is types.FunctionType
        assert inspect.signature(ours).parameters.keys() == (
            inspect.signature(python).parameters.keys()
        )
        assert ours.__defaults__ == (None,)
        assert ours.__doc__
        assert pickle.loads(pickle.dumps(ours)) is ours  # noqa: S301 - ours
        assert weakref.ref(ours)() is ours
        ours.mark = 1
        assert vars(ours).pop("mark") == 1


def test_ten_thousand_calls_keep_nothing():
    x, other, out = np.ones(3), np.ones(4), np.zeros(3)
    add, negative, odd = xdev.add, xdev.negative, NOT_INTERNED
    kept = (x, other, out, add, negative, None, np.add, odd)

    def counts():
        gc.collect()
        return [sys.getrefcount(each) for each in kept]

    def calls():
        for _ in range(10_000):
            add(x, x)
            add(x, 2.0, None)
            add(x, x, out)
            add(x, x, out=out)
            add(x, x, **{odd: out})
            negative(x, out=out)
        for call in (
            lambda: add(x, other),
            lambda: add(x),
            lambda: add(x, x, out, out),
            lambda: add(x, x, where=x),
            lambda: add(x, None),
            lambda: add(x, x, out=other),
            lambda: negative(x, out=None, where=x),
        ):
            for _ in range(100):
                with pytest.raises((TypeError, ValueError)):
                    call()

    calls()
    before = counts()
    calls()
    # None is not counted from 3.12 on; before, frames and caches hold a few.
    for one, another in zip(counts(), before, strict=True):
        assert abs(one - another) < 50


def test_numpys_warnings_name_the_line_that_divided():
    x = INPUTS["floats"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        xdev.divide(x, 0)
    assert caught
    own = {Path(each.filename) == Path(__file__) for each in caught}
    assert own == {STANDS_FOR_THE_FUNCTION}
