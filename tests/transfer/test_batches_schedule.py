"""The order of uploads and computation, on a device whose timing may be any.

Batches are blocks of a pool on simulated memory, uploads and computation are work on
simulated streams, and the checker judges every access to the same bytes: the batches',
and those of the host's buffer that the iterable fills again and again.
"""

import random
import threading
import time

import pytest

import xdev


def pause(draw):
    if draw.random() < 0.5:
        time.sleep(draw.choice([0, 0, 1e-4]))


@pytest.mark.parametrize("own_stream", [False, True])
@pytest.mark.parametrize("prefetch", [1, 2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_no_access_is_out_of_order(simulated, own_stream, prefetch, seed):
    device, count = simulated.device, 60
    draw = random.Random(seed)  # noqa: S311 - no secret
    stream = device.stream() if own_stream else device.null
    numbers = []
    with stream:
        simulated.tenant(simulated.table).use(stream)
        for batch in xdev.batches(
            simulated.source(count), "simulated", prefetch=prefetch
        ):
            simulated.tenant(batch.block.address).use(stream, write=draw.random() < 0.5)
            numbers.append(batch.number)
            pause(draw)
            del batch
            pause(draw)

    assert numbers == list(range(count))
    assert device.hazards == []
    stats = simulated.pool.stats()
    # Those besides the first few wait for the work that uses them, as on any stream.
    assert stats.peak_allocated <= (2 * prefetch + 4) * simulated.nbytes
    device.synchronize()
    simulated.pool.reclaim()
    assert simulated.pool.stats().allocated == 0


@pytest.mark.parametrize("prefetch", [1, 2, 4])
def test_so_many_uploads_wait_for_no_computation_and_the_next_one_does(
    simulated, prefetch
):
    device, for_ever = simulated.device, 1e9
    compute = device.stream()
    with compute:
        moved = xdev.batches(simulated.source(9), "simulated", prefetch=prefetch)
        simulated.tenant(next(moved).block.address).use(compute, seconds=for_ever)
        for _ in range(prefetch + 1):
            next(moved)

    began = simulated.began
    assert all(began[number] < for_ever for number in range(prefetch + 1))
    assert began[prefetch + 1] >= for_ever
    assert device.hazards == []
    moved.close()
    until_none_is_left()


def until_none_is_left():
    for thread in threading.enumerate():
        if thread.name.startswith("xdev-batches"):
            thread.join(20)
            assert not thread.is_alive()
