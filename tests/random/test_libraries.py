"""Generators of a library's device: its arrays, with the same values."""

import numpy as np
import pytest

import xdev
from xdev import Device
from xdev.random import default_rng

LIBRARIES = ["torch", "jax", "dask", "array_api_strict"]
CALLS = {
    "random": lambda r: r.random((3, 4)),
    "random of float32": lambda r: r.random(5, "float32"),
    "uniform of lists": lambda r: r.uniform([0.0, 1.0], [1.0, 3.0]),
    "normal": lambda r: r.normal([[1.0], [2.0]], [1.0, 0.5], (2, 2)),
    "integers of lists": lambda r: r.integers([0, 5], [3, 9]),
    "choice": lambda r: r.choice(10, 4, replace=False),
    "choice of a list": lambda r: r.choice([1.5, 2.5, 3.5], 4, p=[0.2, 0.3, 0.5]),
    "permuted": lambda r: r.permuted([[1, 2, 3], [4, 5, 6]], axis=1),
}


@pytest.fixture(params=LIBRARIES)
def target(request, device):
    pytest.importorskip(request.param)
    found = Device(str(device), request.param)
    if found.reason is not None:
        pytest.skip(found.reason)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_results_are_the_librarys_and_the_values_the_same(target, name):
    made = CALLS[name](default_rng(7, target))

    where = xdev.device_of(made)
    assert (where, where.library) == (target, target.library)
    expected = CALLS[name](default_rng(7, "cpu"))
    np.testing.assert_array_equal(xdev.to_numpy(made), expected)
    assert xdev.to_numpy(made).dtype == expected.dtype


def test_the_librarys_arrays_are_parameters_and_populations(target):
    def put(values):
        return xdev.to_device(np.asarray(values), target)

    def calls(put, r):
        yield r.normal(put([1.0, 2.0]), put([0.5, 0.25]))
        yield r.uniform(put([0.0, 1.0]), 3.0, (4, 2))
        yield r.integers(put([0, 5]), 20)
        yield r.choice(put([1.5, 2.5, 3.5]), 5, p=put([0.5, 0.25, 0.25]))
        yield r.permutation(put([[1, 2], [3, 4], [5, 6]]))
        yield r.permuted(put([[1, 2, 3], [4, 5, 6]]), axis=1)

    found = calls(put, default_rng(3, target))
    expected = calls(np.asarray, default_rng(3, "cpu"))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(xdev.to_numpy(one), other)


def test_arrays_of_libraries_are_filled_and_shuffled_in_place(device, target):
    if target.library == "jax" or (target.library == "dask" and device != "cpu"):
        pytest.skip("JAX's never change; Dask fills chunks by NumPy's functions")
    for place in (target, device):
        rng, like = default_rng(5, place), default_rng(5, "cpu")
        out = xdev.zeros((3, 4), dtype=xdev.float64, device=target)
        assert rng.random(out=out) is out
        np.testing.assert_array_equal(xdev.to_numpy(out), like.random((3, 4)))
        x, y = xdev.arange(20, device=target), np.arange(20)
        rng.shuffle(x)
        like.shuffle(y)
        np.testing.assert_array_equal(xdev.to_numpy(x), y)
        assert rng.permuted(x, out=x) is x
        np.testing.assert_array_equal(xdev.to_numpy(x), like.permuted(y))
