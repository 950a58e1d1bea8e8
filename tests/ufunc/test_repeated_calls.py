"""Calls like one before: what they remember by, raise, and take."""

import gc
import pickle
import weakref

import numpy as np
import pytest
from running import dot

import xdev

DTYPES = "?", "u1", "i4", "f4", "c8"
BIG = 1.5e308


class OwnError(ValueError):
    """An error of the user's: its words are those of a refusal."""


divide = xdev.vectorize(lambda x, y: x / y)
multiply = xdev.vectorize(lambda x, y: x * y)
twice = xdev.vectorize(lambda x: x + x)


def unpickled(values, dtype):
    """Return an array as from another process: its dtype is an object of its own."""
    return pickle.loads(pickle.dumps(np.array(values, dtype)))  # noqa: S301 - ours


def test_a_dtype_at_the_address_of_another_is_no_other_dtype():
    @xdev.kernel
    def copy(i, x, out):
        out[i] = x[i]

    many = [unpickled(np.arange(3000) % 2, dtype) for dtype in DTYPES * 4]
    for x in many:
        twice(x)
    del x
    many.clear()  # their dtypes' memory is for others now
    order = np.random.default_rng(1).permutation(10 * len(DTYPES))
    many = [unpickled([0, 1], DTYPES[k % len(DTYPES)]) for k in order]
    for x in many:
        assert twice(x).dtype == x.dtype
        assert twice(x).tolist() == (x + x).tolist()
    for turn in range(100):
        dtype = np.dtype(DTYPES[turn % len(DTYPES)])
        x = unpickled([1, 0, 1], dtype)
        made = multiply(x, x)
        assert made.dtype == dtype
        assert made.tolist() == (x * x).tolist()
        assert multiply(x, x, out=made) is made
        assert made.tolist() == (x * x).tolist()
        assert xdev.multiply(x, x).dtype == dtype
        out = unpickled([0, 0, 0], dtype)
        copy[3](x, out)
        assert out.tolist() == x.tolist()
        total = dot(x, x)
        assert total.dtype == dtype
        assert total == (x * x).sum(dtype=dtype)


@pytest.mark.parametrize(
    "error",
    [
        TypeError("no loop"),
        ValueError("a bad input is read-only"),
        OwnError("read-only: Cannot cast ufunc"),
        OverflowError(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("n", [3, 100_000])
def test_what_a_handler_raises_ends_the_call(raised_by_handler, error, n):
    x, zeros, out = np.full(n, BIG), np.zeros(n), np.ones(n)
    calls = (
        lambda: divide(x, zeros),
        lambda: divide(x, 0.0),
        lambda: divide(x, zeros, out=out),
        lambda: divide(x, zeros, out),
        lambda: divide(x, zeros, where=x > 0, out=out),
        lambda: divide(x, zeros, dtype="f8"),
        lambda: divide(x, [0.0] * n),
        lambda: divide.outer(x[:3], zeros[:3]),
        lambda: divide.at(x.copy(), [0], zeros[:1]),
        lambda: multiply.reduce(x),
        lambda: multiply.reduce(x, initial=2),
        lambda: multiply.reduce(x, out=np.array(1.0)),
        lambda: multiply.accumulate(x),
        lambda: multiply.reduceat(x, [0]),
        lambda: dot(x, x),
        lambda: dot(x, x, out=np.array(1.0)),
    )
    for call in calls:
        with np.errstate(all="ignore"):
            for _ in range(3):
                call()
        for _ in range(2):
            assert raised_by_handler(error, call)


@pytest.mark.usefixtures("several_threads")
@pytest.mark.parametrize("error", [TypeError, OwnError, OverflowError])
def test_what_a_handler_raises_ends_a_call_in_place_and_in_threads(
    raised_by_handler, error
):
    quotient = xdev.vectorize(lambda x, y: x / y)
    x, y = np.full(50_000, 8.0), np.full(50_000, 2.0)
    for _ in range(5):
        quotient(x, y)
    y[7] = 0
    assert raised_by_handler(error("mine"), lambda: quotient(x, y, out=x))
    assert set(np.delete(x, 7).tolist()) == {4.0}
    for _ in range(3):
        x, y = np.array([8.0, 1.0]), np.array([2.0, 1.0])
        divide(x, y, out=x)
        x, y = np.array([8.0, 1.0]), np.array([2.0, 0.0])
        assert raised_by_handler(error("mine"), lambda x=x, y=y: divide(x, y, out=x))
        assert x[0] in {8.0, 4.0}


@pytest.mark.parametrize("count", [10, 300_000])
def test_too_many_arguments_are_refused(device, count):
    x = xdev.ones(3, device=device)

    @xdev.kernel
    def add(i, x, out):
        out[i] += x[i]

    many = [x] * count
    for _ in range(3):
        multiply(x, x)
        twice(x)
        add[3](x, xdev.zeros(3, device=device))
        for call in multiply, twice, dot, add[3]:
            with pytest.raises(TypeError, match="argument"):
                call(*many)


def test_calls_by_place_and_by_name_write_alike(device):
    x = xdev.asarray([1.0, 2.0, 4.0], device=device)
    for _ in range(3):
        for out in (xdev.zeros(3, device=device), xdev.zeros((2, 3), device=device)):
            assert multiply(x, x, out) is out
            assert xdev.to_numpy(out).reshape(-1, 3)[-1].tolist() == [1, 4, 16]
            assert multiply(x, 3.0, out=out) is out
            assert xdev.to_numpy(out).reshape(-1, 3)[-1].tolist() == [3, 6, 12]
        assert xdev.to_numpy(multiply(x, x, None)).tolist() == [1, 4, 16]
        with pytest.raises(TypeError, match="once"):
            multiply(x, x, x, out=x)


def test_no_call_keeps_its_arrays(device):
    x, out = xdev.ones(50, device=device), xdev.zeros(50, device=device)
    for _ in range(3):
        result = weakref.ref(multiply(x, x))
        multiply(x, x, out=out)
    kept = [weakref.ref(x), weakref.ref(out)]
    del x, out
    gc.collect()
    assert [each() for each in (result, *kept)] == [None] * 3
