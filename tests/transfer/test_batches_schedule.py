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
from xdev.device import Event, registry
from xdev.memory import Pool
from xdev.memory.reclamation import TRIMMED
from xdev.testing import SimulatedDevice, SimulatedSource
from xdev.transfer import batching

NBYTES = 1 << 20
BUFFER, TABLE = 1 << 50, 1 << 51  # the host's buffer, an array that the iterable reads


class Batch:
    """A block in use, which passes for an array; dropped, it is the pool's again."""

    __cuda_array_interface__ = None

    def __init__(self, number, block):
        self.number, self.block = number, block


class Backend(registry.Backend):
    """One simulated device."""

    libraries = ()

    def __init__(self):
        self.device = SimulatedDevice()
        self.pool = Pool(SimulatedSource(self.device, 1 << 40))
        self.began = []  # when the upload of each batch was queued [s]

    def stream(self, index):
        assert index == 0
        return self.device.stream()

    def current_stream(self, index):
        assert index == 0
        return self.device.current_stream()

    def source(self, count):
        """Fill the one buffer for each batch, by what lies on the device."""
        for number in range(count):
            self.tenant(BUFFER).touch(write=True)
            self.tenant(TABLE).use(self.device.current_stream(), write=False)
            yield number

    def move(self, device, number, *, non_blocking, copy):  # noqa: ARG002
        """Queue an upload from the buffer, as pinned memory is uploaded."""
        assert device == "simulated"
        assert non_blocking
        self.began.append(self.device.now)
        stream = self.device.current_stream()
        block = self.pool.acquire(NBYTES, stream.ptr)
        self.tenant(BUFFER).use(stream, write=False)
        self.tenant(block.address).use(stream, write=True)
        return Batch(number, block)

    def tenant(self, address):
        """Return one more user of some bytes: each must be ordered after the last."""
        return self.device.tenant(address, NBYTES)

    def hand_over(self, giver, heir):
        """Let segments change hands as CUDA's pool does."""
        state = self.pool.state
        state.decide(lambda heap: heap.reassign(giver.ptr, heir.ptr, TRIMMED))

    def lend(self, batches, device):
        """Mark blocks as the facade marks arrays of another stream."""
        assert device.index == 0
        handle = self.pool.state.source.streams.see(self.device.current_stream())
        for batch in batches:
            if batch.block.chunk.stream != handle:
                self.pool.state.mark(batch.block.chunk, (handle,))


@pytest.fixture
def simulated(monkeypatch):
    backend = Backend()
    monkeypatch.setitem(registry._backends, "simulated", backend)
    monkeypatch.setattr(batching, "move", backend.move)
    monkeypatch.setattr(batching, "_hand_over", backend.hand_over)
    monkeypatch.setattr(batching, "_lend", backend.lend)
    synchronize = Event.synchronize

    def late(event):
        time.sleep(1e-4)  # so that the consumer may be quicker than the upload
        synchronize(event)

    monkeypatch.setattr(Event, "synchronize", late)
    return backend


def pause(draw):
    """Let the other thread run, or not."""
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
        simulated.tenant(TABLE).use(stream)
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
    assert stats.peak_allocated <= (2 * prefetch + 4) * NBYTES
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
