"""JAX's arrays and xdev's: shared where JAX lends and takes memory, and inside jit.

Functions on its arrays are in tests/facade/test_dispatch_libraries.py, ufuncs in
tests/ufunc/test_foreign_arrays.py.
"""

import numpy as np
import pytest

import xdev


@pytest.fixture
def jax(imported):
    return imported("jax")


@pytest.fixture
def array(jax, real_device, without_cuda):
    try:
        there = jax.local_devices(backend=real_device.type)[0]
    except RuntimeError:
        without_cuda("jax")
    return lambda x: jax.device_put(x, there)


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex64"])
def test_arrays_are_lent_without_a_copy(array, real_device, address, dtype):
    there = array(np.ones((2, 3), dtype))

    with xdev.transfer_guard("disallow"):
        x = xdev.to_device(there, real_device, copy=False)

    assert type(x) is type(xdev.zeros(0, device=real_device))
    assert (x.dtype.name, x.shape, address(x)) == (dtype, (2, 3), address(there))
    assert xdev.to_numpy(xdev.add(x, x)).sum() == (6 if dtype == "bool" else 12)


def test_what_jax_lends_on_the_cpu_is_not_written(jax):
    there = jax.device_put(np.ones(3), jax.local_devices(backend="cpu")[0])
    x = xdev.to_device(there, "cpu")

    for write in (
        lambda: x.fill(2),
        lambda: xdev.add(x, x, out=x),
        lambda: xdev.vectorize(lambda x: x + 1)(x, out=x),
    ):
        with pytest.raises((ValueError, TypeError), match=r"read-only|not writ"):
            write()
    assert there.tolist() == [1, 1, 1]


@pytest.mark.usefixtures("array")  # where JAX has the device
def test_arrays_of_the_pool_are_taken_without_a_copy(jax, real_device, address):
    x = xdev.ones(1 << 18, dtype=xdev.float32, device=real_device)

    there = jax.numpy.from_dlpack(x)

    assert address(there) == address(x)
    assert float(there.sum()) == 1 << 18


def test_ufuncs_are_called_back_from_jit(jax, array):
    blend = xdev.vectorize(lambda x, y: 0.5 * x + y * y)
    x = array(np.arange(4.0))

    @jax.jit
    def program(x):
        like = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(blend, like, x, x) + 1

    np.testing.assert_allclose(program(x), 0.5 * np.arange(4) + np.arange(4) ** 2 + 1)


def test_functions_are_traced(jax):
    def program(x):
        return xdev.sum(xdev.multiply(x, 2) + xdev.zeros_like(x))

    x = np.asarray([1.0, 2.0, 3.0])
    assert jax.jit(program)(x) == 12
    assert jax.grad(program)(x).tolist() == [2, 2, 2]
