"""Parameters, and what else a function names: refused, and told, by what they are."""

import re

import numpy as np
import pytest

import xdev

real = np.arange(3.0)  # named as an attribute, and as a parameter
shape = np.arange(3.0)


def an_attribute(x, y):
    return x.real + y


def a_parameter(real, y):
    return y.real + real


def a_cell(real, y):
    def inner(z):
        return z.real + real

    return inner(y)


@pytest.mark.parametrize("function", [an_attribute, a_parameter, a_cell])
def test_a_name_that_an_array_of_the_module_has_too(function, device):
    x = xdev.asarray([1.0, 2.0, 3.0], device=device)

    result = xdev.vectorize(function)(x, x)

    assert xdev.to_numpy(result).tolist() == [2, 4, 6]


def test_such_a_name_in_a_kernel_and_in_core_arrays(device):
    @xdev.kernel
    def halved(i, x, out):
        out[i] = x[i].real / 2 if i < x.shape[0] else 0

    @xdev.guvectorize("(n)->(n)")
    def doubled(x, out):
        for i in range(x.shape[0]):
            out[i] = x[i].real * 2

    x, out = xdev.ones(3, device=device), xdev.zeros(3, device=device)
    halved[3](x, out)

    assert xdev.to_numpy(out).tolist() == [0.5, 0.5, 0.5]
    assert xdev.to_numpy(doubled(x)).tolist() == [2, 2, 2]


def test_a_parameter_may_be_named_as_a_keyword_of_calls():
    @xdev.vectorize
    def over(where, out):
        return where / out

    x, result = np.array([1.0, 2.0]), np.zeros(2)

    assert over(x, 2.0, out=result) is result
    assert result.tolist() == [0.5, 1]


async def later(x, out):
    return x + out


async def later_each(x, out):
    yield x + out


def each(x, out):
    yield x + out


@pytest.mark.parametrize(
    ("function", "what"),
    [(later, "async"), (later_each, "async"), (each, "generator")],
)
@pytest.mark.parametrize(
    "decorator", [xdev.vectorize, xdev.kernel, xdev.guvectorize("(n)->(n)")]
)
def test_a_function_whose_call_computes_nothing_is_refused(decorator, function, what):
    name = function.__name__

    with pytest.raises(TypeError, match=rf"{name} is an? {what} function, whose call"):
        decorator(function)


def checked(x, out):
    if x < out:
        return x
    raise ValueError(x)


def asserted(x, out):
    assert x > 0
    return x + out


@pytest.mark.parametrize(
    ("function", "line"),
    [(checked, r"raise ValueError\(x\)"), (asserted, "assert x > 0")],
)
@pytest.mark.parametrize(
    "decorator", [xdev.vectorize, xdev.kernel, xdev.guvectorize("(n)->(n)")]
)
def test_a_function_that_raises_is_refused_with_the_line(decorator, function, line):
    first = function.__code__.co_firstlineno
    number = first + (3 if function is checked else 1)
    text = rf"raises, which .*\n  {re.escape(__file__)}:{number}: {line}$"
    with pytest.raises(TypeError, match=text):
        decorator(function)


@xdev.vectorize
def add(left, right):
    return left + right


@xdev.kernel
def added(i, left, right, out):
    out[i] = left[i] + right[i]


@xdev.guvectorize("(n),(n)->()")
def dot(left, right, out):
    out[0] = left[0] * right[0]


@xdev.kernel
def copied(i, on, out):
    out[i] = on[i]


@pytest.mark.parametrize(
    "call",
    [
        add,
        dot,
        lambda x, y: added[3](x, y, x),
        lambda x, y: add(x, x, out=y),
        copied[3],
    ],
    ids=["ufunc", "core arrays", "kernel", "out", "a keyword's name"],
)
def test_arrays_of_two_devices_are_called_by_their_names(call):
    there, here = xdev.zeros(3, device="fake"), np.zeros(3)

    with pytest.raises(xdev.DeviceMismatchError) as caught:
        call(there, here)

    names = re.findall(r"xdev\.to_device\((.+?), '", str(caught.value))
    assert set(names) <= {"left", "right", "out", "argument on"}
    assert len(names) == 2


def centred(x):
    return x - np.mean(x)


def scaled(x):
    y = 2 * x
    return x / xdev.max(y)


def of_a_reduction(x):
    return centred(x) + 1.0


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (centred, r"centred calls np\.mean of x, which is one number"),
        (scaled, r"scaled calls xdev\.max of y, which is one number"),
        (of_a_reduction, r"centred calls np\.mean of x"),
    ],
)
@pytest.mark.parametrize("signatures", [None, ["float64(float64)"]])
def test_a_reduction_of_one_number_is_refused(function, words, signatures, device):
    x = xdev.asarray(np.ones(3), device=device)

    with pytest.raises(
        TypeError, match=rf"{words}.*pass it as an argument.*\n.*return "
    ):
        xdev.vectorize(*filter(None, [signatures]))(function)(x)


def test_a_reduction_of_several_numbers_is_taken():
    @xdev.vectorize
    def highest(x, y):
        several = np.array([x, y, 1.0])
        return np.sum(several) + max(x, y)

    assert highest(np.ones(2), 3.0).tolist() == [8, 8]
