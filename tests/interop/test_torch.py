"""PyTorch's tensors and xdev's arrays: the same memory both ways, and autograd.

Functions on tensors are in tests/facade/test_dispatch_libraries.py, ufuncs in
tests/ufunc/test_foreign_arrays.py, the allocator in tests/memory/test_torch_bridge.py.
"""

from functools import partial

import numpy as np
import pytest

import xdev

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64", "complex64", "complex128"]
DTYPES = ["bool", *INTEGERS, *FLOATS]


@pytest.fixture
def torch(imported, real_device, without_cuda):
    torch = imported("torch")
    if real_device.type == "cuda" and not torch.cuda.is_available():
        without_cuda("torch")
    return torch


@pytest.fixture
def tensor(torch, real_device):
    return partial(torch.tensor, device=str(real_device))


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_are_taken_without_a_copy(torch, real_device, address, dtype):
    t = torch.zeros((2, 3), dtype=getattr(torch, dtype), device=str(real_device))

    with xdev.transfer_guard("disallow"):
        x = xdev.to_device(t, real_device, copy=False)

    assert type(x) is type(xdev.zeros(0, device=real_device))
    assert (x.dtype.name, x.shape, address(x)) == (dtype, (2, 3), t.data_ptr())
    x[0, 1] = 1
    assert t.cpu().numpy().sum() == 1
    t[:] = 0
    assert not bool(xdev.any(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", ["PyTorch's", "the facade's", "a copy's"])
def test_arrays_are_given_without_a_copy(torch, real_device, address, way, dtype):
    x = xdev.zeros((2, 3), dtype=getattr(np, dtype), device=real_device)
    there = xdev.Device(str(real_device), "torch")
    give = {
        "PyTorch's": torch.from_dlpack,
        "the facade's": partial(xdev.asarray, device=there),
        "a copy's": partial(xdev.to_device, device=there),
    }[way]

    with xdev.transfer_guard("disallow"):
        t = give(x)

    assert isinstance(t, torch.Tensor)
    assert t.dtype is getattr(torch, dtype)
    assert (tuple(t.shape), t.data_ptr()) == ((2, 3), address(x))
    t[0, 1] = 1
    assert xdev.to_numpy(x).sum() == 1


def test_memory_is_kept_while_either_side_has_it(torch, real_device):
    before = xdev.memory.allocated(real_device)
    lent = xdev.ones(1 << 18, dtype=xdev.float32, device=real_device)

    t = torch.from_dlpack(lent)
    del lent

    assert xdev.memory.allocated(real_device) - before == 1 << 20
    other = xdev.zeros(1 << 18, dtype=xdev.float32, device=real_device)
    assert float(t.sum()) == 1 << 18
    del t, other
    assert xdev.memory.allocated(real_device) == before

    theirs = torch.full((1 << 18,), 2.0, device=str(real_device))
    taken = xdev.to_device(theirs, real_device, copy=False)
    del theirs
    other = torch.zeros(1 << 18, device=str(real_device))
    assert float(xdev.sum(taken)) == 1 << 19
    assert float(other.sum()) == 0


softplus = xdev.vectorize(lambda x: np.log(1 + np.exp(x)))


slope = xdev.vectorize(lambda x, gradient: gradient / (1 + np.exp(-x)))


def test_functional_gradients_go_through_the_facade(torch, tensor):
    x = tensor([0.1, 0.2, 0.3])
    gradient = torch.func.grad(lambda x: xdev.sum(xdev.sin(x)))(x)
    torch.testing.assert_close(gradient, torch.cos(x))
    each = torch.func.vmap(lambda x: xdev.multiply(x, 2))(x)
    torch.testing.assert_close(each, 2 * x)


def test_ufuncs_are_steps_of_autograd(torch, tensor):
    class Softplus(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            context.save_for_backward(x)
            return softplus(x)

        @staticmethod
        def backward(context, gradient):
            return slope(*context.saved_tensors, gradient)

    x = tensor([-1.0, 0.5, 2.0], dtype=torch.float64, requires_grad=True)

    torch.testing.assert_close(Softplus.apply(x), torch.nn.functional.softplus(x))
    assert torch.autograd.gradcheck(Softplus.apply, x)


COMPILED = {
    "numbers": lambda x, y: xdev.sum(xdev.sin(x) * xdev.add(x, 1), axis=-1) - y,
    "matrices": lambda x, y: xdev.linalg.vector_norm(
        xdev.matmul(xdev.permute_dims(x, (1, 0)), xdev.concat([y, y], axis=1))
    ),
    "outputs": lambda x, y: xdev.add(
        xdev.sin(x, xdev.empty_like(x)), y, out=xdev.multiply(x, y, None)
    ),
}


# PyTorch's advice on what array_api_compat keeps of types.
@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a .functools.lru_cache")
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_programs_are_one_graph(torch, tensor, name):
    x, y = tensor(np.random.default_rng(0).standard_normal((2, 4, 4)))
    xdev.sin(x)  # what tensors are is known from now on
    program = torch.compile(COMPILED[name], backend="eager", fullgraph=True)

    torch.testing.assert_close(program(x, y), COMPILED[name](x, y))
