"""Fake arrays are none of Python's integers: no axis, no shape, no number of places."""

import inspect
import re

import numpy as np
import pytest

import xdev

X = np.arange(6.0).reshape(2, 3)
#: Read as an array by CuPy, as counts are.
COUNTS = ("repeats", "shift")


def fake(values):
    return xdev.to_device(np.asarray(values), "fake")


def on_fake(x):
    if isinstance(x, list):
        return [on_fake(part) for part in x]
    return fake(x) if isinstance(x, np.ndarray) else x


def integers(function):
    """Return the parameters that are integers by their annotations."""
    found = inspect.signature(function).parameters.values()
    return [p.name for p in found if re.search(r"\b(int|Axes)\b", str(p.annotation))]


def called(call, name, value):
    """Call with another value of one parameter."""
    bound = inspect.signature(call.function).bind(
        *map(on_fake, call.args), **{key: on_fake(x) for key, x in call.kw.items()}
    )
    bound.arguments[name] = value
    positional = {
        p.name
        for p in inspect.signature(call.function).parameters.values()
        if p.kind is p.POSITIONAL_ONLY
    }
    args = [x for key, x in bound.arguments.items() if key in positional]
    rest = {key: x for key, x in bound.arguments.items() if key not in positional}
    return call.function(*args, **rest)


def test_no_function_takes_an_array_for_an_integer(call):
    one = fake(1)

    for name in integers(call.function):
        for value in (one, (one,), (0, one)):
            if value is one and name in COUNTS:
                continue
            with pytest.raises(TypeError, match=r"fake:0.*int\("):
                called(call, name, value)
            if value is not one:
                continue
            with pytest.raises(TypeError, match=r"fake:0.*tolist\(\)"):
                called(call, name, fake([1, 0]))


def test_functions_of_every_kind_have_such_parameters(calls):
    found = {call.path for call in calls if integers(call.function)}

    assert found >= {"reshape", "sum", "tile", "tril", "diff", "fft.fft", "tensordot"}


MEMBERS = {
    "reshape": lambda x, n: x.reshape(n * 3, 2),
    "reshape, a tuple": lambda x, n: x.reshape((n * 3, 2)),
    "reshape, shape first": lambda x, n: x.reshape(n * 6),
    "sum": lambda x, n: x.sum(axis=n),
    "sum by position": lambda x, n: x.sum(n),
    "sum, several": lambda x, n: x.sum(axis=(0, n)),
    "squeeze": lambda x, n: x[:, :1].squeeze(n),
    "transpose": lambda x, n: x.transpose(n, 0),
    "transpose, a tuple": lambda x, n: x.transpose((n, 0)),
    "swapaxes": lambda x, n: x.swapaxes(0, n),
    "sort": lambda x, n: x.sort(axis=n),
    "take": lambda x, n: x.take([0], axis=n),
    "trace": lambda x, n: x.trace(offset=n),
    "a function of the library": lambda x, n: xdev.namespace(x).rot90(x, n),
    "by position": lambda x, n: xdev.namespace(x).roll(x, 1, n),
    "zeros": lambda x, n: xdev.zeros((n, 2), device=x.device),
    "keepdims": lambda x, n: xdev.sum(x, keepdims=n),
    "a ufunc's method": lambda x, n: added.reduce(x, axis=n),
}


added = xdev.vectorize(lambda x, y: x + y)


def test_slices_read_integers_from_the_device(device):
    x, one = xdev.asarray(X, device=device), xdev.asarray(1, device=device)

    found = x[one:, : one + 1]

    np.testing.assert_array_equal(xdev.to_numpy(found), X[1:, :2])


def test_to_read_an_integer_is_a_copy():
    x, one = fake(X), fake(1)

    with xdev.transfer_guard("disallow"), pytest.raises(xdev.XdevError, match="fake"):
        x[one:]


@pytest.mark.parametrize("name", MEMBERS)
def test_members_take_no_array_for_an_integer(name):
    x, one = fake(X), fake(1)

    with pytest.raises(TypeError):
        MEMBERS[name](x, one)

    MEMBERS[name](x, int(one))
    np.testing.assert_array_equal(xdev.to_numpy(x), X)


RIGHT = {
    "counts": (xdev.repeat, [1, 2, 3], [2, 0, 1]),
    "indices": (xdev.take, [1, 2, 3], [2, 0, 1]),
    "bounds": (xdev.clip, [1, 2, 3], 2),
    "shifts": (xdev.roll, [1, 2, 3], 1),
    "values": (xdev.searchsorted, [1, 2, 3], [2, 0, 1]),
    "exponents": (xdev.pow, [1, 2, 3], [2, 0, 1]),
    "an index": (lambda x, n: x[n], [1, 2, 3], 2),
    "a list of arrays": (lambda x, n: xdev.stack([x, n]), 1, 2),
    "a method's counts": (lambda x, n: x.repeat(n), [1, 2, 3], 2),
    "a method's indices": (lambda x, n: x.take(n), [1, 2, 3], 2),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_an_array_by_right_may_be_one(name):
    function, *args = RIGHT[name]
    here = [np.asarray(x) for x in args]

    made = function(*map(fake, here))

    np.testing.assert_array_equal(xdev.to_numpy(made), function(*here))
    assert xdev.device_of(made) == "fake:0"


def test_a_ufuncs_arguments_may_have_the_names_of_integers():
    @xdev.vectorize
    def times(axis, n):
        return axis * n

    made = times(fake(X), fake(X))

    np.testing.assert_array_equal(xdev.to_numpy(made), X * X)
