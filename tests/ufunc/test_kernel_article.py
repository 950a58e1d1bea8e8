"""The vector add of an article on GPU memory, as a kernel and as it was written."""

import numpy as np
import pytest

import xdev
from xdev import _optional

N = 10_000


@xdev.kernel
def add_vectors(i, vec_a, vec_b, result):
    result[i] = vec_a[i] + vec_b[i]


def vectors():
    rng = np.random.default_rng(0)
    return rng.random(N, dtype=np.float32), rng.random(N, dtype=np.float32)


def test_the_vector_add_as_a_kernel(device):
    vec_a, vec_b = vectors()
    a, b = (xdev.to_device(x, device) for x in (vec_a, vec_b))
    result = xdev.zeros_like(a)

    add_vectors[N](a, b, result)

    np.testing.assert_array_equal(xdev.to_numpy(result), vec_a + vec_b)


def test_the_articles_block_of_32_threads(device):
    vec_a, vec_b = vectors()
    a, b = (xdev.to_device(x, device) for x in (vec_a, vec_b))
    result = xdev.zeros_like(a)

    add_vectors[(N,), 32](a, b, result)

    np.testing.assert_array_equal(xdev.to_numpy(result), vec_a + vec_b)


@pytest.fixture
def numba_kernel():
    cuda = _optional.numba_cuda()

    @cuda.jit
    def add_vectors_gpu(vec_a, vec_b, result):
        idx = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
        if idx < result.size:
            result[idx] = vec_a[idx] + vec_b[idx]

    return add_vectors_gpu


@pytest.mark.cuda
def test_a_plain_numba_kernel_takes_xdevs_buffers(cuda, numba_kernel):
    vec_a, vec_b = vectors()
    a, b = (xdev.to_device(x, cuda) for x in (vec_a, vec_b))
    result = xdev.empty(N, dtype=xdev.float32, device=cuda)

    numba_kernel[(N + 31) // 32, 32](a, b, result)
    xdev.synchronize(cuda)

    np.testing.assert_array_equal(xdev.to_numpy(result), vec_a + vec_b)


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
def test_the_article_as_it_was_written_and_xdevs_kernel_on_its_arrays(numba_kernel):
    cuda = _optional.numba_cuda()
    vec_a, vec_b = vectors()
    a, b = cuda.to_device(vec_a), cuda.to_device(vec_b)
    result, ours = cuda.device_array_like(vec_a), cuda.device_array_like(vec_a)
    host = np.zeros_like(vec_a)

    numba_kernel[(N + 31) // 32, 32](a, b, result)
    add_vectors[N](a, b, ours)

    np.testing.assert_array_equal(result.copy_to_host(host), vec_a + vec_b)
    np.testing.assert_array_equal(ours.copy_to_host(), host)


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
def test_a_kernel_runs_on_the_current_stream():
    cp = _optional.cupy()
    x = cp.ones(2**22, cp.float32)
    out = cp.zeros_like(x)
    with xdev.Stream("cuda") as stream:
        x *= 2
        add_vectors[x.size](x, x, out)
        stream.synchronize()

    assert float(out.min()) == float(out.max()) == 4


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
def test_a_kernel_waits_for_nothing_and_copies_nothing():
    cp = _optional.cupy()
    x, out = cp.ones(1000, cp.float32), cp.zeros(1000, cp.float32)
    add_vectors[1000](x, x, out)
    with xdev.transfer_guard("disallow"):
        add_vectors[1000](x, x, out)

    assert float(out.sum()) == 2000
