"""Variances of whole arrays on CUDA, in sums; on the CPU NumPy stands in for CuPy."""

import numpy as np
import pytest

import xdev
from xdev.facade import cuda_differences as cupys

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("name", ["std", "var"])
@pytest.mark.parametrize("char", "fd")
@pytest.mark.parametrize(
    "options",
    [{}, {"correction": 1.5}, {"keepdims": True}, {"axis": 0}, {"axis": None}],
)
def test_moments_of_large_arrays(device, monkeypatch, name, char, options):
    monkeypatch.setattr(cupys, "LARGE", 100)
    monkeypatch.setattr(cupys, "AT_ONCE", 64)
    whole = 10 + np.random.default_rng(3).standard_normal((2, 15, 20))
    given = {"axis": None, "correction": 0.0, "keepdims": False} | options
    wanted = getattr(np, name)(
        whole.astype(char).astype("d"),
        axis=given["axis"],
        ddof=given["correction"],
        keepdims=given["keepdims"],
    )
    # The mean's rounding is that of 10, deviations are of 1.
    near = {"f": {"rtol": 1e-4, "atol": 1e-5}, "d": {"rtol": 1e-12}}[char]
    for view in (lambda x: x, lambda x: x.T, lambda x: x[:, ::2], lambda x: x[:, 1:]):
        x = np.asarray(whole.astype(char))
        if view(x).shape == x.shape:
            found = getattr(cupys, name)(x, **given)
            assert found.dtype == x.dtype
            np.testing.assert_allclose(found, wanted, **near)
        there = view(xdev.asarray(x, device=device))
        found = getattr(xdev, name)(there, **options)
        expected = getattr(np, name)(
            view(x).astype("d"),
            axis=given["axis"],
            ddof=given["correction"],
            keepdims=given["keepdims"],
        )
        assert found.dtype == there.dtype
        np.testing.assert_allclose(xdev.to_numpy(found), expected, **near)


def test_moments_where_nothing_is_left_are_the_librarys():
    x = np.arange(1e5)
    for correction in (1e5, 2e5):
        found = cupys.var(x, axis=None, correction=correction, keepdims=False)
        np.testing.assert_array_equal(found, np.var(x, ddof=correction))
