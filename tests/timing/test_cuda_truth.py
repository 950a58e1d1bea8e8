"""The same rules on a real GPU: against CUDA's events in the same run, or by order.

Who else works on the GPU takes its time, so none of these runs beside others.
"""

from statistics import median

import numpy as np
import pytest

import xdev
from xdev.timing import timeit

pytestmark = [pytest.mark.cuda, pytest.mark.full_card]

SIDE = 4096  # a product of two such matrices takes far longer than its launch
NEAR = 0.15


# It counts the processor's cycles, and nothing else.
@pytest.fixture
def cp(cuda):  # noqa: ARG001 - it is there
    """CuPy, for references of its own: kernels and events."""
    return pytest.importorskip("cupy")


@pytest.fixture
def arrays(cuda):
    rng = np.random.default_rng(0)
    x, y = (
        xdev.asarray(rng.random((SIDE, SIDE), dtype=np.float32), device=cuda)
        for _ in range(2)
    )
    return x, y, xdev.empty_like(x)


@pytest.fixture
def product(arrays):
    """A call of about a millisecond of work, asked for in microseconds."""
    x, y, out = arrays
    return lambda: x.dot(y, out=out)


def test_launch_time_is_far_below_the_work(product):
    timing = timeit(product, number=50)

    assert median(timing.launch) < 0.2 * median(timing.device)
    assert median(timing.wall) == pytest.approx(median(timing.device), rel=NEAR)
    assert timing.queued
    assert not timing.launch_bound
    assert timing.waits is False
    assert not timing.elsewhere
    assert timing.average == pytest.approx(median(timing.wall), rel=0.5)


def test_a_short_call_is_launch_bound(cuda):
    x = xdev.asarray(np.random.default_rng(0).random(16), device=cuda)

    timing = timeit(lambda: x + x)

    assert timing.launch_bound, (timing.launch, timing.wall, timing.device)
    assert any("launch-bound" in note for note in timing.notes)


@pytest.mark.parametrize("copy", ["float", "get", "event", "device"])
def test_a_call_that_waits_is_known(copy, product, arrays, cuda):
    def call():
        product()
        if copy == "float":
            return float(arrays[2][0, 0])
        if copy == "get":
            return xdev.to_numpy(arrays[2][:1])
        if copy == "event":
            return xdev.current_stream(cuda).record().synchronize()
        return xdev.synchronize(cuda)

    timing = timeit(call, device=cuda, number=3, repeat=2)

    assert timing.waits is True
    assert any("waits for the device" in note for note in timing.notes)


def test_work_of_another_stream_is_reported(product, cuda):
    other = xdev.Stream(cuda)

    def call():
        with other:
            return product()

    timing = timeit(call, number=50, repeat=3, device=cuda)

    assert timing.elsewhere
    assert median(timing.device) < 0.5 * median(timing.wall)


def test_nothing_of_it_stays_in_the_pool(product, cuda):
    product()
    before = xdev.memory.allocated(cuda)
    timeit(product, number=2, repeat=2)
    assert xdev.memory.allocated(cuda) == before


@pytest.mark.two_gpus
@pytest.mark.usefixtures("cuda")
def test_a_device_that_is_not_the_current_one():
    if not xdev.Device("cuda:1").available:
        pytest.skip("needs two GPUs")
    rng = np.random.default_rng(0)
    x = xdev.asarray(rng.random((SIDE, SIDE), dtype=np.float32), device="cuda:1")

    timing = timeit(lambda: xdev.matmul(x, x), number=10, repeat=2)

    assert timing.queued
    assert median(timing.launch) < 0.5 * median(timing.wall)
