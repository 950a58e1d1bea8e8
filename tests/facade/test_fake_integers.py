"""Fake arrays are none of Python's integers: no axis, no shape, no number of places."""

import inspect
import re

import numpy as np
import pytest
from running import there

import xdev

X = np.arange(6.0).reshape(2, 3)
#: Read as an array by CuPy, as counts are.
COUNTS = ("repeats", "shift")


def fake(values):
    return xdev.to_device(np.asarray(values), "fake")


def integers(function):
    """Return the parameters that are integers by their annotations."""
    found = inspect.signature(function).parameters.values()
    return [p.name for p in found if re.search(r"\b(int|Axes)\b", str(p.annotation))]


def called(call, name, value):
    options = dict(zip(call.kw, there("fake", *call.kw.values()), strict=True))
    bound = inspect.signature(call.function).bind(*there("fake", *call.args), **options)
    bound.arguments[name] = value
    return call.function(*bound.args, **bound.kwargs)


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


def test_slices_read_integers_from_the_device(device):
    x, one = xdev.asarray(X, device=device), xdev.asarray(1, device=device)

    found = x[one:, : one + 1]

    np.testing.assert_array_equal(xdev.to_numpy(found), X[1:, :2])


def test_to_read_an_integer_is_a_copy():
    x, one = fake(X), fake(1)

    with xdev.transfer_guard("disallow"), pytest.raises(xdev.XdevError, match="fake"):
        x[one:]
