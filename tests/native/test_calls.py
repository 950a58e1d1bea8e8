"""Calls by plans: the compiled tier and Python's stand-in keep the same laws.

Those of results are public ones, tested without the compiled tier too: here is what
no result shows.
"""

import functools
import gc
import importlib
import weakref

import numpy as np
import pytest

from xdev import _plain_calls as plain, native
from xdev.native import STATE

F4 = np.dtype("f4")


@pytest.fixture(params=["plain", "calls"])
def tier(request):
    if request.param == "plain":
        return plain
    if STATE.startswith("not built"):
        pytest.skip(STATE)  # test_building.py says where it must be
    used = native.calls  # the import puts its module in the place of what is used
    try:
        return importlib.import_module("xdev.native.calls")
    finally:
        native.calls = used


class Recorder:
    """What a plan calls: it notes what came."""

    def __init__(self):
        self.calls = []

    def ufunc(self, *operands):
        self.calls.append(("ufunc", len(operands)))
        return np.add(*operands)

    def large(self, operands):
        self.calls.append(("large", len(operands)))
        return np.add(*operands)

    def explain(self, error, operands):
        raise TypeError("explained", len(operands)) from error


@pytest.fixture
def call():
    return Recorder()


@pytest.fixture(params=[False, True], ids=["as it is", "direct"])
def function(request, tier):
    class Function(tier.Callable):
        def _call(self, args, keywords):
            return "general", args, keywords

    return (tier.direct(Function) if request.param else Function)()


def follow(tier, function, call, *kinds, **limits):
    function.plans.learn(tier.Plan(kinds, 2, call.ufunc, call, **limits))


def test_without_a_plan_calls_go_the_general_way_however_they_are_made(function):
    assert function(1, 2) == ("general", (1, 2), {})
    assert function() == ("general", (), {})
    assert function(1, out=2, where=3) == ("general", (1,), {"out": 2, "where": 3})
    wanted = ("general", (1, 2), {"out": 3})
    assert function(*(1, 2), out=3) == wanted
    assert type(function).__call__(function, 1, 2, out=3) == wanted
    assert functools.partial(function, 1, out=3)(2) == wanted
    assert list(map(function, [1], [2])) == [("general", (1, 2), {})]
    own = type("Own", (type(function),), {"_call": lambda _, *given: given})
    assert own()(1, out=2) == ((1,), {"out": 2})
    other = type("Other", (type(function),), {"__call__": lambda _, *given: given})
    assert other()(1, 2) == (1, 2)


def test_a_function_that_holds_itself_goes(function):
    made = type(function)()
    made.itself, gone = made, weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None


LARGE = np.ones((2, 3), "f4")


@pytest.mark.parametrize(
    ("x", "y", "size"),
    [
        (LARGE, LARGE, 6),
        (LARGE[0, 0, ...], LARGE, 6),
        (LARGE[:, :1], LARGE[0], 6),
        (LARGE[:0], LARGE[:0], 0),
        (LARGE, np.zeros(25, "u1")[1:].view("f4").reshape(2, 3), 6),
        (LARGE, LARGE.T.copy().T, 6),
    ],
)
def test_small_and_large_by_the_result(tier, function, call, x, y, size):
    straight = x.shape == y.shape and y.flags.c_contiguous and y.flags.aligned
    for limit, way in ((size, "large"), (size + 1, "ufunc")):
        limits = (limit, 0) if straight else (0, limit)
        follow(tier, function, call, F4, F4, limit=limits[0], strided=limits[1])
        np.testing.assert_array_equal(function(x, y), x + y)
        assert call.calls.pop() == (way, 2)


def test_old_plans_make_room(tier, function):
    call, x = Recorder(), np.ones(3, "f2")
    follow(tier, function, call, x.dtype, x.dtype, limit=100, strided=100)
    owned = weakref.ref(call)
    for n in range(1, 40):
        follow(tier, function, Recorder(), np.dtype(f"S{n}"), F4)
    del call
    gc.collect()
    assert function(x, x)[0] == "general"
    assert owned() is None
