"""Arrays from outside: refused by every decorator, however a function reaches them."""

import re
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest

import xdev

tables = ModuleType("tables")
tables.TABLE = np.arange(3.0)
tables.inner = ModuleType("tables.inner")
tables.inner.BOTH = (1.0, (np.arange(3.0),))
tables.HALF, tables.PAIR = 0.5, (0.25, (2, 4.0))


class Held(NamedTuple):
    factor: float
    values: np.ndarray


ARRAY = np.arange(3.0)
ONE, NESTED, HELD = (ARRAY,), (1.0, (2.0, (ARRAY,))), Held(1.0, ARRAY)
PAIR, NUMBER = (0.5, (2, 4.0)), np.float64(0.5)


def of_the_module(x):
    return x + ARRAY


def of_a_tuple(x):
    return x + ONE[0][1]


def of_a_nested_tuple(x):
    return x + NESTED[1][1][0][1]


def of_a_named_tuple(x):
    return x + HELD.values[1]


def of_a_module(x):
    return x + tables.TABLE[1]


def of_a_module_of_a_module(x):
    return x + tables.inner.BOTH[1][0][1]


def of_a_closure(table):
    def inside(x):
        return x + table[0]

    def in_a_loop(x):
        return x + sum([table[k] for k in range(3)])

    return inside, in_a_loop


INSIDE, IN_A_LOOP = of_a_closure(np.arange(3.0))
FUNCTIONS = {
    of_the_module: "the array 'ARRAY'",
    INSIDE: "the array 'table'",
    IN_A_LOOP: "the array 'table'",
    of_a_tuple: "an array of the tuple 'ONE'",
    of_a_nested_tuple: "an array of the tuple 'NESTED'",
    of_a_named_tuple: "an array of the tuple 'HELD'",
    of_a_module: "the array 'tables.TABLE'",
    of_a_module_of_a_module: "an array of the tuple 'tables.inner.BOTH'",
}
CASES = pytest.mark.parametrize(
    ("function", "words"), FUNCTIONS.items(), ids=[f.__name__ for f in FUNCTIONS]
)


@CASES
def test_of_elementwise_functions(function, words):
    line = rf"{re.escape(__file__)}:{function.__code__.co_firstlineno + 1}: return x"
    with pytest.raises(TypeError, match=rf"(?s)reads {words} from outside.*{line}"):
        xdev.vectorize(function)(np.ones(3))


@CASES
def test_of_functions_that_ufuncs_and_kernels_call(function, words):
    inner = xdev.vectorize(function)

    @xdev.kernel
    def calling(i, out):
        out[i] = function(out[i])

    for call in (xdev.vectorize(lambda x: 2 * inner(x)), calling[3]):
        with pytest.raises(TypeError, match=f"reads {words} from outside"):
            call(np.ones(3))


def test_of_kernels_and_generalized_ufuncs():
    @xdev.kernel
    def one(i, out):
        out[i] = NESTED[1][1][0][i]

    @xdev.kernel
    def two(i, out):
        out[i] = tables.TABLE[i]

    @xdev.guvectorize("(n)->()")
    def three(x, out):
        out[0] = x[0] + ONE[0][0]

    @xdev.guvectorize("(n)->()")
    def four(x, out):
        out[0] = x[0] + tables.TABLE[0]

    for call, label in (
        (lambda: one[3](np.ones(3)), "'NESTED'"),
        (lambda: two[3](np.ones(3)), "'tables.TABLE'"),
        (lambda: three(np.ones(3)), "'ONE'"),
        (lambda: four(np.ones(3)), "'tables.TABLE'"),
    ):
        with pytest.raises(TypeError, match=f"{label} from outside: pass it as"):
            call()


def test_numbers_are_read_from_tuples_and_modules():
    @xdev.vectorize
    def scaled(x):
        return x * PAIR[0] + PAIR[1][0] * NUMBER

    @xdev.kernel
    def filled(i, out):
        out[i] = PAIR[1][1] * NUMBER

    out = np.empty(2)
    filled[2](out)
    assert out.tolist() == [2, 2]
    np.testing.assert_array_equal(scaled(np.ones(2)), [1.5, 1.5])
