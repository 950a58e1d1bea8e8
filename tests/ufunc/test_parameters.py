"""What functions name: parameters, numbers that count, plain functions, arrays."""

import re
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from running import called, same

import xdev
import xdev as xp

real = np.arange(3.0)  # named as an attribute, and as a parameter
SCALE = 3


def test_a_name_that_an_array_of_the_module_has_too(device):
    def an_attribute(x, y):
        return x.real + y

    def a_parameter(real, out):  # a keyword of calls
        return out.real + real

    @xdev.guvectorize("(n)->(n)")
    def doubled(x, out):
        for i in range(x.shape[0]):
            out[i] = x[i].real * 2

    x = np.array([1.0, 2.0, 3.0])
    for function in (an_attribute, a_parameter):
        assert called(device, xdev.vectorize(function), x, x).tolist() == [2, 4, 6]
    assert called(device, doubled, x).tolist() == [2, 4, 6]


async def later(x, out):
    return x + out


def each(x, out):
    yield x + out


def checked(x, out):
    if x < out:
        return x
    raise ValueError(x)


LINE = rf"{re.escape(__file__)}:{checked.__code__.co_firstlineno + 3}: raise ValueError"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (later, "later is async, or a generator, whose call"),
        (each, "each is async, or a generator, whose call"),
        (checked, rf"checked raises, .*\n  {LINE}\(x\)$"),
    ],
)
@pytest.mark.parametrize(
    "decorator", [xdev.vectorize, xdev.kernel, xdev.guvectorize("(n)->(n)")]
)
def test_what_compiled_functions_cannot_be_is_refused(decorator, function, words):
    with pytest.raises(TypeError, match=words):
        decorator(function)


def centred(x):
    return x - np.mean(x)


def scaled(x):
    y = 2 * x
    return x / xdev.max(y)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (centred, r"centred calls np\.mean of x, which is one number"),
        (scaled, r"scaled calls xdev\.max of y, which is one number"),
        (lambda x: min(x) + 1, "<lambda> calls min of x, which is one number"),
        (lambda x: centred(x) + 1.0, r"centred calls np\.mean of x"),
    ],
)
@pytest.mark.parametrize("signatures", [[], ["float64(float64)"]])
def test_a_reduction_of_one_number_is_refused(function, words, signatures, device):
    x = xdev.asarray(np.ones(3), device=device)
    text = rf"{words}.*pass it as an argument.*\n.*\.py:\d+: "
    with pytest.raises(TypeError, match=text):
        xdev.vectorize(signatures)(function)(x)


# Plain functions that functions of ``@vectorize`` call compute as these do.


def scaled_by(x, y=SCALE):
    return xp.maximum(x * 2 + y, x)


def of_a_lambda(x):
    successor = lambda y: y + 1  # noqa: E731
    return successor(x)


def blended(x, above=1, below=2, shift=SCALE):
    return x * above + below + shift


def fraction():
    return 1 / 8


def closed_over(factor):
    def inner(x):
        return x * factor

    return lambda x: inner(x) + 1


@pytest.mark.parametrize("dtype", ["u1", "f4"])  # in which 64 bits would show
@pytest.mark.parametrize(
    "function",
    [
        lambda x: scaled_by(x) + scaled_by(x, y=3) // 2,
        lambda x: blended(x, shift=x) // 2 + blended(above=x, x=x) // 2,
        lambda x: x * fraction(),
        of_a_lambda,
        closed_over(3),
    ],
)
def test_a_plain_function_has_numpys_dtypes(device, function, dtype):
    x = np.array([1, 7, 200 if dtype == "u1" else 5], dtype)
    same(called(device, xdev.vectorize(function), x), function(x))


def itself(x):
    return itself(x - 1) if x > 0 else x


def of_any(*args):
    return args[0]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: of_any(x) + x, "a ufunc calls Python functions with .*, not of_any"),
        (lambda x: itself(x) + x, "itself calls itself: write the recursion as a loop"),
        (lambda x: checked(x, x), "checked raises, which a ufunc cannot do per elem"),
    ],
)
def test_what_a_ufunc_may_not_do_a_plain_function_may_not(function, words):
    with pytest.raises(TypeError, match=words):
        xdev.vectorize(function)(np.ones(2, "u1"))


def test_a_plain_function_that_numba_was_told_of_is_numbas():
    extending = pytest.importorskip("numba.extending")

    def told(x):
        return x

    @extending.overload(told)
    def _(x):  # noqa: ARG001 - Numba looks at the name
        return lambda x: x + 41

    function = xdev.vectorize(lambda x: told(x) + 1)
    assert function(np.ones(1))[0] == 43


# Integers that count stay integers beside floats: ends of loops, and indices.


@xdev.vectorize
def polynomial(z, n):
    total = z
    for _ in range(n):
        total = total * z + 1
    return total


@xdev.guvectorize("(n),()->()")
def looked_up(x, k, out):
    out[0] = x[k - 1] * 10


@xdev.guvectorize("(n),()->(n)")
def moving_mean(values, window, out):
    """Numba's example of a generalized ufunc with a number."""
    total, count = 0.0, 0
    for k in range(window):
        total += values[k]
        count += 1
        out[k] = total / count
    for k in range(window, len(values)):
        total += values[k] - values[k - window]
        out[k] = total / count


FEW, SQUARES = np.array([1, 2], "f"), np.arange(12) ** 2
MEANS = [np.mean(SQUARES[max(0, k - 2) : k + 1]) for k in range(12)]
COUNTING = [
    *(
        (polynomial, (z, count), ((z * z + 1) * z + 1) * z + 1)
        for z in map(np.array([0.5, -1, 2]).astype, "efD")
        for count in (3, np.uint8(3))
    ),
    (looked_up, (np.array([[1, 2], [3, 4]], "f"), 2), np.array([20, 40], "f")),
    (polynomial, (FEW, np.array([0, 2], "i")), np.array([1, 11], "f")),
    (xdev.vectorize(lambda x: polynomial(x, 2) * 0.5), (FEW,), np.float32([1.5, 5.5])),
    *((moving_mean, (SQUARES.astype(t), 3), np.array(MEANS, t)) for t in "fd"),
]


@pytest.mark.parametrize(("function", "args", "expected"), COUNTING)
def test_integers_that_count_leave_the_dtype_alone(device, function, args, expected):
    rtol = 1e-6 if function is moving_mean else 0
    same(called(device, function, *args), expected, rtol)


tables = ModuleType("tables")
tables.TABLE = np.arange(3.0)
tables.inner = ModuleType("tables.inner")
tables.inner.BOTH = (1.0, (np.arange(3.0),))


class Held(NamedTuple):
    factor: float
    values: np.ndarray


ARRAY = np.arange(3.0)
NESTED, HELD = (1.0, (2.0, (ARRAY,))), Held(1.0, ARRAY)
TABLES = {"a": 2.0}
PAIR, NUMBER = (0.5, (2, 4.0)), np.float64(0.5)


def of_the_module(x):
    return x + ARRAY


def of_a_nested_tuple(x):
    return x + NESTED[1][1][0][1]


def of_a_named_tuple(x):
    return x + HELD.values[1]


def of_a_module_of_a_module(x):
    return x + tables.inner.BOTH[1][0][1]


def of_a_dict(x):
    return x + TABLES["a"]


def of_a_closure(table):
    def in_a_loop(x):
        return x + sum([table[k] for k in range(3)])

    return in_a_loop


FUNCTIONS = {
    of_the_module: r"'ARRAY' \(numpy.ndarray\)",
    of_a_closure(np.arange(3.0)): r"'table' \(numpy.ndarray\)",
    of_a_closure([2.0, 3.0, 4.0]): r"'table' \(list\)",
    of_a_nested_tuple: r"'NESTED' \(tuple\)",
    of_a_named_tuple: r"'HELD' \(.*\)",
    of_a_module_of_a_module: r"'tables.inner.BOTH' \(tuple\)",
    of_a_dict: r"'TABLES' \(dict\)",
}


@pytest.mark.parametrize(
    ("function", "words"), FUNCTIONS.items(), ids=[f.__name__ for f in FUNCTIONS]
)
def test_of_elementwise_functions(function, words):
    line = rf"{re.escape(__file__)}:{function.__code__.co_firstlineno + 1}: return x"
    inner = xdev.vectorize(function)

    @xdev.kernel
    def calling(i, out):
        out[i] = function(out[i])

    for call in (inner, xdev.vectorize(lambda x: 2 * inner(x)), calling[3]):
        with pytest.raises(TypeError, match=rf"(?s)reads {words} from outside.*{line}"):
            call(np.ones(3))


def test_of_kernels_and_generalized_ufuncs():
    @xdev.kernel
    def points(i, out):
        out[i] = NESTED[1][1][0][i]

    @xdev.guvectorize("(n)->()")
    def rows(x, out):
        out[0] = x[0] + tables.TABLE[0]

    for call, label in ((points[3], "'NESTED'"), (rows, "'tables.TABLE'")):
        with pytest.raises(TypeError, match=rf"{label} .* from outside.*pass it as"):
            call(np.ones(3))


def test_numbers_are_read_from_tuples_and_modules():
    @xdev.kernel
    def filled(i, out):
        out[i] = PAIR[1][1] * NUMBER

    out = np.empty(2)
    filled[2](out)
    assert out.tolist() == [2, 2]
    scaled = xdev.vectorize(lambda x: x * PAIR[0] + PAIR[1][0] * NUMBER)
    np.testing.assert_array_equal(scaled(np.ones(2)), [1.5, 1.5])
