"""PyTorch's and JAX's arrays in ufuncs: the same memory in, the same library out."""

import math

import numpy as np
import pytest
from running import add, blend, library

import xdev

split = xdev.vectorize(lambda x: (math.floor(x), x > 1))


largest = xdev.vectorize(["int16(int16, int16)", "float32(float32, float32)"])(
    lambda x, y: max(x, y)  # noqa: PLW0108 - it has a source
)


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


def test_outputs_and_masks_of_the_first_call_of_all(make, real_device):
    fresh = xdev.vectorize(lambda x, y: x - y)
    x = np.arange(5, dtype=np.float32)
    out = xdev.zeros(5, dtype=xdev.float32, device=real_device)

    assert fresh(make(x), 1.0, out=out) is out
    assert xdev.to_numpy(out).tolist() == [-1, 0, 1, 2, 3]
    assert blend(make(x), 1.0, out=out, where=make(x > 2)) is out
    assert xdev.to_numpy(out).tolist() == [-1, 0, 1, 2.5, 3]


def test_signatures_views_outputs_and_methods(make):
    x, y = np.arange(5, dtype=np.int16), np.full(5, 2, np.int16)
    assert host(largest(make(x), make(y))).tolist() == [2, 2, 2, 3, 4]
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    there = make(x)
    for view, plain in ((there.T, x.T), (there[::2, 1:], x[::2, 1:])):
        np.testing.assert_array_equal(host(blend(view, view)), blend(plain, plain))
    floors, above = split(there)
    for found, expected in (
        (floors, x.astype(int)),
        (above, x > 1),
        (add.reduce(there, axis=1), np.add.reduce(x, axis=1)),
        (add.accumulate(there), np.add.accumulate(x)),
        (add.reduceat(there, [0, 2]), np.add.reduceat(x, [0, 2])),
        (add.outer(there[0], there[1]), np.add.outer(x[0], x[1])),
    ):
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


def test_jax_arrays_are_no_outputs(real_device):
    make, _ = library("jax", real_device)
    x = make(np.ones((2, 3), np.float32))
    own = xdev.ones((2, 3), dtype=xdev.float32, device=real_device)

    for call in (
        lambda: blend(x, x, out=x),
        lambda: blend(own, own, out=x),
        lambda: add.reduce(x, out=x[0]),
        lambda: add.reduce(x, 0, None, x[0]),
        lambda: add.at(x[0], [0], 1.0),
    ):
        with pytest.raises(TypeError, match=r"is a jax\.Array.*immutable"):
            call()
    assert host(x).sum() == 6


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

    with pytest.raises(TypeError, match="on 2 cpu: move it"):
        blend(spread, 1.0)
    assert blend(second, 1.0).devices() == {devices[1]}


def test_jax_results_stay_when_their_inputs_go():
    jax = pytest.importorskip("jax")
    x = jax.numpy.ones(200_000, "float32")
    found = [blend(x, float(i)) for i in range(8)]
    del x

    for i, each in enumerate(found):
        assert set(np.asarray(each).tolist()) == {0.5 + i * i}


def host(x):
    return np.asarray(x.cpu() if hasattr(x, "cpu") else x)


@pytest.fixture
def tensor(real_device):
    return library("torch", real_device)[0]


def test_methods_write_tensors_and_tell_of_it(tensor):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for call in (
        add.reduce,
        add.accumulate,
        lambda x, out: add.outer(x, 1.0, out=out),
    ):
        expected = host(call(tensor(x), out=None))
        for wrapped in (False, True):
            out = tensor(np.zeros_like(expected))
            before = out._version
            assert call(tensor(x), out=(out,) if wrapped else out) is out
            assert out._version > before
            np.testing.assert_array_equal(host(out), expected)
    out = tensor(np.zeros(4, np.float32))
    add.at(out, tensor(np.asarray([0, 0, 1])), 1.0)
    assert host(out).tolist() == [2, 1, 0, 0]


def test_tensors_are_written_in_place(tensor, real_device):
    import torch

    x = tensor(np.arange(6, dtype=np.float32))
    own = xdev.arange(6, dtype=xdev.float32, device=real_device)
    for out in (
        torch.zeros(6, device=x.device),
        torch.zeros(12, device=x.device)[::2],
        torch.zeros(6, dtype=torch.float64, device=x.device),
    ):
        address = out.data_ptr()
        for y in (x, own):
            out.zero_()
            assert blend(y, y, out=out) is out
            assert blend(y, y, out) is out
            torch.testing.assert_close(out, (0.5 * x + x * x).to(out.dtype))
        assert out.data_ptr() == address
    assert blend(x, x, out=x) is x
    assert host(x).tolist() == [0.5 * k + k * k for k in range(6)]


def test_results_of_tensors_can_be_written_and_are_not_shared(tensor):
    x = tensor(np.ones(100_000, np.float32))

    one, two = blend(x, x), blend(x, x)
    one += 1

    assert host(two).tolist() == host(blend(x, x)).tolist()
    assert host(one)[0] == 2.5


def test_a_gradient_is_refused_with_the_way_out(tensor):
    import torch

    x = tensor(np.ones(5, np.float32)).requires_grad_()
    plain = x.detach()

    for call in (
        lambda: blend(x, plain),
        lambda: blend(plain, x),
        lambda: blend(plain, plain, out=x),
    ):
        with pytest.raises(TypeError, match=r"requires a gradient.*x\.detach\(\)"):
            call()
    with torch.no_grad():
        assert not blend(x, plain).requires_grad
    assert host(blend(plain, plain)).tolist() == [1.5] * 5
    assert host(plain).tolist() == [1] * 5


def test_a_write_is_seen_by_autograd(tensor):
    import torch

    weight = tensor(np.ones(5, np.float32)).requires_grad_()
    x = tensor(np.ones(5, np.float32))
    loss = (weight * x).sum()
    blend(x.clone(), 1.0, out=x)  # backward needs what was there

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    with torch.inference_mode():
        y = torch.ones(5, device=x.device)
        assert blend(y, y, out=y) is y


def test_lazily_conjugated_and_negated_tensors(tensor):
    z = np.asarray([1 + 2j, 3 - 4j], np.complex64)
    conjugate, negative = tensor(z).conj(), tensor(z).conj().imag
    assert conjugate.is_conj()
    assert negative.is_neg()

    np.testing.assert_allclose(
        host(blend(conjugate, 1.0).resolve_conj()), blend(z.conj(), 1.0)
    )
    np.testing.assert_array_equal(host(blend(negative, 1.0)), blend(z.conj().imag, 1.0))
    for out in (conjugate, negative):
        with pytest.raises(TypeError, match="lazily conjugated or negated"):
            blend(out.resolve_conj().resolve_neg(), 1.0, out=out)


def test_tensors_that_ufuncs_cannot_take_are_refused(tensor):
    import torch

    out = tensor(np.zeros(1, np.float32)).expand(5)
    with pytest.raises(TypeError, match="expanded"):
        blend(tensor(np.ones(5, np.float32)), 1.0, out=out)
    assert host(out).tolist() == [0] * 5
    x = tensor(np.ones((2, 2), np.float32))
    ragged = torch.nested.nested_tensor([x], layout=torch.jagged)
    dense = r"blend\(\) takes dense tensors"
    for bad, words in (
        *((x.to_sparse(), dense), (x.to("meta"), dense), (ragged, dense)),
        (x.to(torch.float8_e4m3fn), "float8_e4m3fn"),
    ):
        with pytest.raises(TypeError, match=words):
            blend(bad, 1.0)


def test_brain_floats_are_read_and_written_in_place(tensor):
    import torch

    pytest.importorskip("ml_dtypes")
    x = tensor(np.arange(6, dtype=np.float32)).to(torch.bfloat16).reshape(2, 3).T
    out = torch.zeros_like(x)

    found = blend(x, 1.0)

    assert (found.dtype, tuple(found.shape)) == (torch.bfloat16, (3, 2))
    assert found.tolist() == (0.5 * x + 1).tolist()
    assert blend(x, 1.0, out=out) is out
    assert torch.equal(out, found)


def test_zero_d_tensors_of_the_host_go_anywhere(real_device):
    torch = pytest.importorskip("torch")
    x = xdev.ones(4, dtype=xdev.float32, device=real_device)

    found = blend(x, torch.tensor(2.0))

    assert type(found) is type(x)
    assert xdev.to_numpy(found).tolist() == [4.5] * 4


@pytest.mark.cuda
def test_tensors_on_streams_of_their_own(cuda):
    tensor, _ = library("torch", cuda)
    import torch

    x = tensor(np.ones(1 << 22, np.float32))
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for i in range(20):
            x.fill_(float(i))  # on PyTorch's stream, then on CuPy's, then again
            made = blend(x, 1.0)
            total = made.double().mean()
            del made
            assert total.item() == 0.5 * i + 1
