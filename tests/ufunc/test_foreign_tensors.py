"""PyTorch's tensors in ufuncs: written in place, seen by autograd, refused."""

import numpy as np
import pytest
from foreign_libraries import blend, host, library, total

import xdev


@pytest.fixture
def tensor(real_device):
    return library("torch", real_device)[0]


def test_methods_write_tensors(tensor):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = tensor(np.zeros(4, np.float32))

    assert total.reduce(tensor(x), out=out) is out
    np.testing.assert_array_equal(host(out), x.sum(0))
    total.at(out, tensor(np.asarray([0, 0, 1])), 1.0)
    np.testing.assert_array_equal(host(out), x.sum(0) + np.asarray([2, 1, 0, 0]))


def test_tensors_are_written_in_place(tensor):
    import torch

    x = tensor(np.arange(6, dtype=np.float32))
    for out in (
        torch.zeros(6, device=x.device),
        torch.zeros(12, device=x.device)[::2],
        torch.zeros(6, dtype=torch.float64, device=x.device),
    ):
        address = out.data_ptr()
        assert blend(x, x, out=out) is out
        assert out.data_ptr() == address
        torch.testing.assert_close(out, (0.5 * x + x * x).to(out.dtype))


def test_tensors_take_results_of_arrays_and_in_place(tensor, real_device):
    x = xdev.arange(6, dtype=xdev.float32, device=real_device)
    blend(x, x)  # its fast path is there now
    out = tensor(np.zeros(6, np.float32))

    assert blend(x, x, out=out) is out
    assert blend(x, x, out) is out
    np.testing.assert_array_equal(host(out), xdev.to_numpy(blend(x, x)))
    x = tensor(np.ones(5, np.float32))
    assert blend(x, x, out=x) is x
    assert host(x).tolist() == [1.5] * 5


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
    with pytest.raises(TypeError, match="share memory"):
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


def test_methods_tell_of_outputs_in_tuples(tensor):
    x = np.arange(3, dtype=np.float32)
    for call in (
        total.reduce,
        total.accumulate,
        lambda x, out: total.outer(x, x, out=out),
    ):
        out = tensor(np.zeros_like(host(call(tensor(x), out=None))))
        before = out._version
        assert call(tensor(x), out=(out,)) is out
        assert out._version > before
        np.testing.assert_array_equal(host(out), host(call(tensor(x), out=None)))
