"""Calls of the facade's functions: what they raise, keep, and take."""

import gc
import sys

import numpy as np
import pytest
from running import RAISED

import xdev

BIG = 1.5e308
INF = float("inf")
# A finalizer that runs when most modules are empty: that of `os` goes late.
LATE = """
import os
import numpy as np
import xdev

class Late:
    def __init__(self, add, x):
        self.add, self.x, self.write, self.xdev = add, x, os.write, xdev
    def __del__(self):
        for y in self.x, 2.0:
            self.write(1, b"%d " % self.add(self.x, y)[-1])

os.late = Late(xdev.add, np.arange(6.0))
for y in os.late.x, 2.0:  # later calls go by what the first ones made
    xdev.add(os.late.x, y)
"""
#: Calls in which a floating point error occurs.
ERRORS = {
    "log": lambda x: xdev.log(x([1.0, 0.0])),
    "log, out=": lambda x: xdev.log(x([1.0, 0.0]), out=x([1.0, 0.0])),
    "divide": lambda x: xdev.divide(x([1.0, 2.0]), x([2.0, 0.0])),
    "divide, broadcast": lambda x: xdev.divide(x([[1.0], [2.0]]), x([2.0, 0.0])),
    "divide, out=": lambda x: xdev.divide(x([1.0]), x([0.0]), out=x([1.0])),
    "multiply by a number, out=": lambda x: xdev.multiply(x([BIG]), 2, out=x([1.0])),
    "clip": lambda x: xdev.clip(xdev.astype(x([1.0]), xdev.float32), 0, 10**39),
    "clip, out=": lambda x: xdev.clip(
        *(xdev.astype(x([1.0]), xdev.float32), 0, 10**39),
        out=xdev.astype(x([1.0]), xdev.float32),
    ),
    "sum": lambda x: xdev.sum(x([BIG, BIG])),
    "var": lambda x: xdev.var(x([BIG, -BIG])),
    "cumulative_sum": lambda x: xdev.cumulative_sum(x([BIG, BIG])),
    "diff": lambda x: xdev.diff(x([-BIG, BIG])),
    "matmul": lambda x: xdev.matmul(x([[INF]]), x([[0.0]])),
    "linalg.outer": lambda x: xdev.linalg.outer(x([BIG]), x([BIG])),
}


@pytest.mark.parametrize("where", ["cpu", "fake"])
@pytest.mark.parametrize("error", RAISED, ids=repr)
@pytest.mark.parametrize("name", ERRORS)
def test_what_a_handler_raises_ends_the_call(raised_by_handler, name, error, where):
    def array(values):
        return xdev.asarray(values, device=where)

    assert raised_by_handler(error, lambda: ERRORS[name](array))


@pytest.mark.parametrize("error", [TypeError, ValueError, OverflowError])
@pytest.mark.parametrize(
    ("values", "call", "place", "either"),
    [
        ([8.0, 1.0], lambda x: xdev.divide(x, np.array([2.0, 0.0]), out=x), 0, {8, 4}),
        ([BIG, 16.0], lambda x: xdev.multiply(x, 4.0, x), 1, {16, 64}),
        ([16.0, -1.0], lambda x: xdev.sqrt(x, out=x), 0, {16, 4}),
    ],
)
def test_a_call_in_place_is_not_made_again(
    raised_by_handler, error, values, call, place, either
):
    x = np.array(values)
    assert raised_by_handler(error("mine"), lambda: call(x))
    assert x[place] in either


def test_many_calls_keep_nothing():
    x, other, out = np.ones(3), np.ones(4), np.zeros(3)
    kept = x, other, out, xdev.add, xdev.negative, np.add

    def counts():
        gc.collect()
        return [sys.getrefcount(each) for each in kept]

    def calls():
        for _ in range(1000):
            xdev.add(x, x), xdev.add(x, 2.0, None), xdev.add(x, x, out)
            xdev.add(x, x, out=out), xdev.negative(x, out=out)
        for args in (x, other), (x,), (x, x, out, out), (x, None), (x, x, other):
            for options in {}, {"where": x}:
                for _ in range(100):
                    with pytest.raises((TypeError, ValueError)):
                        xdev.add(*args, **options)

    calls()
    before = counts()
    calls()
    for one, another in zip(counts(), before, strict=True):
        assert abs(one - another) < 50


@pytest.mark.usefixtures("tier")  # Python empties what stands in for it
def test_calls_of_the_last_finalizers(printed):
    assert printed(LATE) == "10 7 "
