"""PyTorch's and JAX's arrays in ufuncs: the same memory in, the same library out."""

import math

import numpy as np
import pytest
from foreign_libraries import blend, host, library, total

import xdev


@xdev.vectorize
def split(x):
    return math.floor(x), x > 1


@xdev.vectorize(["int16(int16, int16)", "float32(float32, float32)"])
def largest(x, y):
    return max(x, y)


@pytest.fixture(params=["torch", "jax"])
def make(request, real_device):
    made, kind = library(request.param, real_device)
    made.kind = kind
    return made


SHAPES = [(), (0,), (7,), (3, 5), (1000,), (300, 400)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "complex64"])
def test_results_are_numpys_in_the_arrays_library_on_its_device(make, dtype, shape):
    rng = np.random.default_rng(0)
    x, y = (np.asarray(9 * rng.random(shape)).astype(dtype) for _ in range(2))

    one, other = make(x), make(y)
    found = blend(one, other)

    assert isinstance(found, make.kind)
    assert found.device == one.device
    assert xdev.device_of(found) == xdev.device_of(one)
    expected = np.asarray(blend(x, y))
    np.testing.assert_allclose(host(found), expected, rtol=1e-6, strict=True)


def test_the_first_array_decides_the_library(make, real_device):
    x = np.arange(6, dtype=np.float32)
    own, foreign = xdev.asarray(x, device=real_device), make(x)

    assert type(blend(own, foreign)) is type(own)
    for found in (blend(foreign, own), blend(2.0, foreign), blend(foreign, 2)):
        assert isinstance(found, make.kind)
        assert host(found).dtype == np.float32
    np.testing.assert_array_equal(host(blend(foreign, own)), blend(x, x))


def test_several_outputs(make):
    floors, above = split(make(np.asarray([0.5, 1.5, 2.5], np.float32)))

    assert isinstance(floors, make.kind)
    assert isinstance(above, make.kind)
    assert host(floors).tolist() == [0, 1, 2]
    assert host(above).tolist() == [False, True, True]


def test_outputs_and_masks_of_the_first_call_of_all(make, real_device):
    fresh = xdev.vectorize(lambda x, y: x - y)
    x = np.arange(5, dtype=np.float32)
    out = xdev.zeros(5, dtype=xdev.float32, device=real_device)

    assert fresh(make(x), 1.0, out=out) is out
    assert xdev.to_numpy(out).tolist() == [-1, 0, 1, 2, 3]
    assert blend(make(x), 1.0, out=out, where=make(x > 2)) is out
    assert xdev.to_numpy(out).tolist() == [-1, 0, 1, 2.5, 3]


def test_signatures_and_views(make):
    x, y = np.arange(5, dtype=np.int16), np.full(5, 2, np.int16)
    assert host(largest(make(x), make(y))).tolist() == [2, 2, 2, 3, 4]
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    there = make(x)
    for view, plain in ((there.T, x.T), (there[::2, 1:], x[::2, 1:])):
        np.testing.assert_array_equal(host(blend(view, view)), blend(plain, plain))


def test_methods(make):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    there = make(x)
    pairs = {
        "reduce": (total.reduce(there, axis=1), np.add.reduce(x, axis=1)),
        "accumulate": (total.accumulate(there), np.add.accumulate(x)),
        "reduceat": (total.reduceat(there, [0, 2]), np.add.reduceat(x, [0, 2])),
        "outer": (total.outer(there[0], there[1]), np.add.outer(x[0], x[1])),
    }

    for found, expected in pairs.values():
        assert isinstance(found, make.kind)
        np.testing.assert_array_equal(host(found), expected)


def test_arrays_of_other_devices_are_refused(make, real_device):
    there = "fake" if real_device.type == "cpu" else "cpu"

    with pytest.raises(xdev.DeviceMismatchError, match="move"):
        blend(make(np.ones(3)), xdev.ones(3, device=there))


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["torch", "jax"])
def test_nothing_is_copied_on_cuda(cuda, name):
    make, _ = library(name, cuda)
    x = make(np.ones(1 << 22, np.float32))
    blend(x, x)
    xdev.memory.reset_peak(cuda)
    before = xdev.memory.allocated(cuda)

    with xdev.transfer_guard("disallow"):
        made = blend(x, x)

    assert xdev.memory.max_allocated(cuda) - before == 1 << 24
    del made


# JAX's arrays: immutable, of one device or of several.


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
