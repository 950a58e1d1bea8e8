"""Functions that Numba compiled: on xdev's arrays, and called in xdev's own.

What they may not do there is in tests/ufunc/test_cpu_faults.py, kernels of the article
are in tests/ufunc/test_kernel.py.
"""

import numba
import numpy as np
import pytest

import xdev


@numba.njit
def damped(x, y):
    return x / (1 + y * y)


elementwise = xdev.vectorize(lambda x, y: damped(x, y) - damped(y, x))


@xdev.guvectorize("(n),(n)->(n)")
def of_rows(x, y, out):
    for k in range(len(x)):
        out[k] = damped(x[k], y[k]) - damped(y[k], x[k])


@xdev.kernel
def at_points(i, x, y, out):
    out[i] = damped(x[i], y[i]) - damped(y[i], x[i])


@pytest.mark.parametrize("form", ["ufunc", "generalized", "kernel"])
def test_they_are_called_in_ufuncs_and_kernels(device, form):
    values = np.random.default_rng(0).random((2, 100))
    x, y = (xdev.asarray(value, device=device) for value in values)
    out = xdev.empty_like(x)

    if form == "kernel":
        at_points[100](x, y, out)
    else:
        {"ufunc": elementwise, "generalized": of_rows}[form](x, y, out=out)

    a, b = values
    expected = a / (1 + b * b) - b / (1 + a * a)
    np.testing.assert_allclose(xdev.to_numpy(out), expected, rtol=1e-14, atol=1e-15)


@pytest.mark.cuda
def test_kernels_read_and_write_in_place(cuda):
    numba_cuda = pytest.importorskip("numba.cuda")

    @numba_cuda.jit
    def scale(x, out):
        i = numba_cuda.grid(1)
        if i < x.size:
            out[i] = 2 * x[i]

    x = xdev.arange(1000, dtype=xdev.float32, device=cuda)
    out = xdev.zeros(1000, dtype=xdev.float32, device=cuda)
    with xdev.transfer_guard("disallow"):
        scale[8, 128](x, out)
        doubled = xdev.add(out, 0)

    np.testing.assert_array_equal(xdev.to_numpy(doubled), 2 * np.arange(1000))
