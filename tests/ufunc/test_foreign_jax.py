"""JAX's arrays in ufuncs: immutable, of one device or of several."""

import numpy as np
import pytest
from foreign_libraries import blend, host, library, total

import xdev


def test_methods_write_no_jax_arrays(real_device):
    make, _ = library("jax", real_device)
    x = make(np.ones((2, 3), np.float32))

    for call in (
        lambda: total.reduce(x, out=x[0]),
        lambda: total.reduce(x, 0, None, x[0]),
        lambda: total.at(x[0], [0], 1.0),
    ):
        with pytest.raises(TypeError, match="immutable"):
            call()


def test_jax_arrays_are_no_outputs(real_device):
    make, _ = library("jax", real_device)
    x = make(np.ones(4, np.float32))
    own = xdev.ones(4, dtype=xdev.float32, device=real_device)

    for operand in (x, own):
        with pytest.raises(TypeError, match=r"out is a jax.Array.*immutable"):
            blend(operand, operand, out=x)
    assert host(x).tolist() == [1] * 4


def test_jax_arrays_that_are_no_numbers_of_one_device_are_refused():
    jax = pytest.importorskip("jax")

    with pytest.raises(TypeError, match="cannot be traced"):
        jax.jit(lambda x: blend(x, 1.0))(jax.numpy.ones(3))
    with pytest.raises(TypeError, match="takes numbers"):
        blend(jax.random.key(0), 1.0)


def test_jax_arrays_of_several_devices():
    jax = pytest.importorskip("jax")
    devices = jax.devices("cpu")
    assert len(devices) == 2
    mesh = jax.sharding.Mesh(np.asarray(devices), "i")
    spec = jax.sharding.PartitionSpec("i")
    spread = jax.device_put(
        np.ones(8, np.float32), jax.sharding.NamedSharding(mesh, spec)
    )
    second = jax.device_put(np.ones(8, np.float32), devices[1])

    with pytest.raises(TypeError, match="lies on 2"):
        blend(spread, 1.0)
    assert blend(second, 1.0).devices() == {devices[1]}


def test_jax_results_stay_when_their_inputs_go():
    jax = pytest.importorskip("jax")
    x = jax.numpy.ones(200_000, "float32")
    found = [blend(x, float(i)) for i in range(8)]
    del x

    for i, each in enumerate(found):
        assert set(np.asarray(each).tolist()) == {0.5 + i * i}
