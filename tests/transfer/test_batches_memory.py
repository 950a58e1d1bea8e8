"""What loops over batches ask of a real device's memory."""

import gc

import numpy as np
import pytest

import xdev
from xdev import memory

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("cuda")]

COUNT, NBYTES = 12, 64 << 20  # free segments of this size go back before a pool grows


@pytest.fixture(params=["pageable", "pinned"])
def source(request):
    arrays = [np.full(NBYTES // 4, n, np.float32) for n in range(3)]
    if request.param == "pinned":
        arrays = [*map(xdev.pin, arrays)]
    return [arrays[n % 3] for n in range(COUNT)]


def test_loops_ask_the_driver_for_no_memory(cuda, source):
    sums = []

    def ahead():
        for x in xdev.batches(source, cuda):
            for _ in range(20):
                xdev.multiply(x, 1.0, out=x)
            sums.append(xdev.max(x))

    def one_after_the_other():
        for x in source:
            there = xdev.to_device(x, cuda)
            xdev.multiply(there, 1.0, out=there)

    def both():
        ahead()
        xdev.synchronize(cuda)
        one_after_the_other()
        xdev.synchronize(cuda)
        gc.collect()

    for _ in range(4):
        both()
    pools = [memory.pool(cuda, "device"), memory.pool("cpu", "pinned")]
    before = [pool.stats() for pool in pools]
    for _ in range(3):
        both()
    after = [pool.stats() for pool in pools]

    for old, new in zip(before, after, strict=True):
        assert new.returned == old.returned
        assert new.grown - old.grown <= 2, "no more than an unusual order asks for"
    assert [float(x) for x in sums] == [n % 3 for n in range(COUNT)] * 7


def test_few_batches_are_on_the_device(cuda, source):
    xdev.synchronize(cuda)
    gc.collect()
    memory.reset_peak(cuda)
    before = memory.allocated(cuda)

    for x in xdev.batches(source, cuda):
        for _ in range(20):
            xdev.multiply(x, 1.0, out=x)
        del x

    # Besides those ahead, some wait for the work that uses them.
    assert memory.max_allocated(cuda) - before <= 6 * NBYTES
