"""Calls by plans: the compiled tier and Python's stand-in keep the same laws."""

import functools
import gc
import importlib
import pickle
import threading
import weakref

import numpy as np
import pytest

from xdev import _plain_calls as plain, native
from xdev.native import STATE

F4, F8 = np.dtype("f4"), np.dtype("f8")


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
        """A function."""

        def _call(self, args, keywords):
            return "general", args, keywords

    return (tier.direct(Function) if request.param else Function)()


def follow(tier, function, call, *kinds, nin=2, **limits):
    plan = tier.Plan(kinds, nin, call.ufunc, call, **limits)
    function.plans.learn(plan)
    return plan


def test_without_a_plan_calls_go_the_general_way(function):
    assert function(1, 2) == ("general", (1, 2), {})
    assert function() == ("general", (), {})
    assert function(1, out=2, where=3) == ("general", (1,), {"out": 2, "where": 3})


def test_calls_are_alike_however_they_are_made(function):
    wanted = ("general", (1, 2), {"out": 3})
    assert function(*(1, 2), out=3) == wanted
    assert type(function).__call__(function, 1, 2, out=3) == wanted
    assert functools.partial(function, 1, out=3)(2) == wanted
    assert list(map(function, [1], [2])) == [("general", (1, 2), {})]
    own = type("Own", (type(function),), {"_call": lambda _, *given: given})
    assert own()(1, out=2) == ((1,), {"out": 2})
    kind = type(function)
    assert (kind.__name__, kind.__module__) == ("Function", __name__)
    assert kind.__doc__ == "A function."


def test_a_function_that_holds_itself_goes(function):
    made = type(function)()
    made.itself, gone = made, weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None


def test_a_plan_is_for_the_data_types_and_types_that_it_names(tier, function, call):
    follow(tier, function, call, F4, F8, limit=100, strided=100)
    follow(tier, function, call, F4, float, limit=100, strided=100)
    x, y = np.arange(3, dtype="f4"), np.arange(3.0)

    np.testing.assert_array_equal(function(x, y), x + y)
    np.testing.assert_array_equal(function(x, 2.5), x + 2.5)
    assert call.calls == [("ufunc", 2)] * 2
    for others in ((y, x), (x, 2), (x, True), (x, np.float64(2)), (x, x), (x,)):
        assert function(*others)[0] == "general"
    subclass = x.view(type("Sub", (np.ndarray,), {}))
    assert function(subclass, y)[0] == "general"


@pytest.mark.parametrize(
    ("shapes", "size"),
    [
        (((6,), (6,)), 6),
        (((2, 3), (2, 3)), 6),
        (((), (6,)), 6),
        (((2, 1), (3,)), 6),
        (((0,), (0,)), 0),
    ],
)
def test_small_and_large_by_the_result(tier, function, call, shapes, size):
    x, y = (np.ones(shape, "f4") for shape in shapes)
    for limit, way in ((size, "large"), (size + 1, "ufunc")):
        follow(tier, function, call, F4, F4, limit=limit, strided=limit)
        np.testing.assert_array_equal(function(x, y), x + y)
        assert call.calls.pop() == (way, 2)


def test_arrays_that_are_not_straight_have_a_limit_of_their_own(tier, function, call):
    follow(tier, function, call, F4, F4, limit=100, strided=6)
    x = np.ones((2, 3), "f4")
    room = np.zeros(25, "u1")[1:].view("f4").reshape(2, 3)
    for y, way in (
        (x, "ufunc"),
        (x[0], "large"),
        (room, "large"),
        (x.T.copy().T, "large"),
    ):
        np.testing.assert_array_equal(function(x, y), x + y)
        assert call.calls.pop() == (way, 2)


def test_out_by_name_is_out_by_place(tier, function, call):
    follow(tier, function, call, F4, F4, F4, limit=100, strided=100)
    x, out = np.arange(3, dtype="f4"), np.zeros(3, "f4")

    assert function(x, x, out=out) is out
    assert function(x, x, out) is out
    np.testing.assert_array_equal(out, 2 * x)
    assert call.calls == [("ufunc", 3)] * 2
    assert function(x, out=out)[0] == "general"
    assert function(x, x, out, out=out)[0] == "general"


def test_a_refusal_is_explained_once(tier, function, call):
    follow(tier, function, call, F4, F4, limit=100, strided=100)
    x = np.ones(3, "f4")

    with pytest.raises(TypeError, match="explained") as caught:
        function(x, x[:2])

    assert isinstance(caught.value.__cause__, ValueError)
    assert call.calls == [("ufunc", 2)]


def test_the_newest_plan_of_some_kinds_counts_and_forgotten_ones_do_not(
    tier, function, call
):
    x = np.ones(3, "f4")
    follow(tier, function, call, F4, F4, limit=0)
    follow(tier, function, call, F4, F4, limit=100, strided=100)
    function(x, x)
    assert call.calls == [("ufunc", 2)]
    function.plans.forget()
    assert function(x, x)[0] == "general"


def test_old_plans_make_room(tier, function):
    call = Recorder()
    first, x = np.dtype("f2"), np.ones(3, "f2")
    follow(tier, function, call, first, first, limit=100, strided=100)
    owned = weakref.ref(call)
    for n in range(1, 40):
        follow(tier, function, Recorder(), np.dtype(f"S{n}"), F4)
    del call
    gc.collect()
    assert function(x, x)[0] == "general"
    assert owned() is None


def test_threads_learn_and_call(tier, function, call):
    x = np.arange(5, dtype="f4")
    failed = []

    def work():
        for _ in range(300):
            follow(tier, function, call, F4, F4, limit=100, strided=100)
            made = function(x, x)
            if type(made) is not np.ndarray or made[-1] != 8:
                failed.append(made)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_unpickled_data_types_are_those_that_they_equal(tier, function, call):
    follow(tier, function, call, F4, F4, limit=100, strided=100)
    x = pickle.loads(pickle.dumps(np.arange(3, dtype="f4")))  # noqa: S301 - ours

    np.testing.assert_array_equal(function(x, x), x + x)
    assert function(x.astype(">f4"), x)[0] == "general"
