"""What a known plan repeats on a real GPU: reductions, calls on Numba's arrays."""

import threading

import numpy as np
import pytest

import xdev
from xdev import _optional

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("cuda")]


@pytest.fixture
def add():
    return xdev.vectorize(lambda x, y: x + y, identity=0)


def sample(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 9, shape).astype("f")


@pytest.mark.parametrize("shape", [(70,), (100_000,), (3_000_000,), (60, 700)])
def test_a_reduction_equals_numpy_every_time(cp, add, shape):
    for axis in (0, -1, None):
        for seed in range(4):
            x = sample(shape, seed)
            made = add.reduce(cp.asarray(x), axis)
            np.testing.assert_array_equal(made.get(), np.add.reduce(x, axis))


def test_a_reduction_is_repeated_on_streams_and_in_threads(cp, add):
    x = cp.asarray(sample(300_000))
    total = float(add.reduce(x))
    found = []

    def work():
        found.extend(float(add.reduce(x)) for _ in range(20))

    for stream in (cp.cuda.Stream(non_blocking=True), cp.cuda.Stream()):
        cp.cuda.Device().synchronize()
        with stream:
            work()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [total] * 120


def test_numba_arrays_in_and_out_every_time(cp, add):
    cuda = _optional.numba_cuda()
    y = sample(1000, 1)
    stream = cuda.stream()
    for seed in range(4):
        x = sample(1000, seed)
        there, other = cuda.to_device(x), cuda.to_device(y)
        out = cuda.device_array(1000, np.float32)
        assert add(there, other, out) is out
        np.testing.assert_array_equal(out.copy_to_host(), x + y)
        made = add(there, cp.asarray(y))
        assert type(made) is type(there)
        made = add(made, 2.0)  # bound to CuPy's stream
        assert type(made) is type(there)
        np.testing.assert_array_equal(made.copy_to_host(), x + y + 2)
        bound = cuda.to_device(x, stream=stream)
        add(bound[1:], bound[:-1], out=out[1:])
        np.testing.assert_array_equal(out.copy_to_host()[1:], x[1:] + x[:-1])
