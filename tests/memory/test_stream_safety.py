"""No block goes from one stream to another without an order; whoever drops it, when.

Threads do random things to one pool on a simulated device, and the checker says whether
any timing of the device could let two owners of a block meet.
"""

import random
import threading
from functools import partial

import hypothesis
import pytest
from running import within

from xdev.errors import OutOfMemoryError
from xdev.memory import Pool
from xdev.testing import SimulatedDevice, SimulatedSource

THREADS = STREAMS = 8
DEEP = hypothesis.settings().max_examples > 1000
OPERATIONS = 1_000_000 if DEEP else 8_000
SIZES = (512, 4096, 5000, 100_000, 1 << 20, 3 << 20)
ROOM = 96 << 20  # so little that streams have to take each other's memory [B]
HELD = 6  # blocks of a thread


class Traffic:
    """Threads that use one pool's blocks on the streams of one device."""

    def __init__(self, policy, seed, room=ROOM):
        self.device = SimulatedDevice(seed)
        self.source = SimulatedSource(self.device, room)
        self.pool = Pool(self.source, policy)
        self.streams = [self.device.stream() for _ in range(STREAMS)]
        self.seed, self.failed = seed, False
        self.start = threading.Barrier(THREADS)

    def run(self, operations):
        each = operations // THREADS
        seeds = [self.seed * 100 + i for i in range(THREADS)]
        within(600, [partial(self._work, s, each) for s in seeds], interval=1e-4)
        return self

    def _work(self, seed, operations):
        worker = Worker(self, random.Random(seed))  # noqa: S311 - no secret
        self.start.wait()
        for _ in range(operations):
            if self.device.hazards or self.failed:
                return
            try:
                worker.step()
            except Exception:
                self.failed = True
                raise


class Worker:
    """One thread's blocks, and what it does next."""

    def __init__(self, traffic, rng):
        self.traffic, self.rng = traffic, rng
        self.held = []  # of (block, tenant, stream)

    def step(self):
        steps = OFTEN if self.rng.random() < 0.99 else RARELY
        self.rng.choice(steps)(self)

    def stream(self):
        """Return one of the streams that are there; one may be about to be."""
        return self.rng.choice([x for x in self.traffic.streams if x is not None])

    def acquire(self):
        traffic, rng = self.traffic, self.rng
        while len(self.held) >= HELD:
            self.drop()
        stream, nbytes = self.stream(), rng.choice(SIZES)
        try:
            with stream:
                block = traffic.pool.acquire(nbytes, stream.ptr)
        except OutOfMemoryError:
            self.held.clear()
            return
        tenant = traffic.device.tenant(block.address, block.nbytes)
        tenant.use(stream)
        self.held.append((block, tenant, stream))

    def use(self):
        for _, tenant, stream in self.held[-2:]:
            tenant.use(stream, write=self.rng.random() < 0.5)

    def use_elsewhere(self):
        if self.held:
            block, tenant, own = self.rng.choice(self.held)
            stream = self.stream()
            stream.wait_event(own.record())  # the data must be there: the user's care
            self.traffic.source.streams.see(stream)
            self.traffic.pool.state.mark(block.chunk, (stream.ptr,))
            tenant.use(stream, write=self.rng.random() < 0.5)

    def drop(self):
        if self.held:
            self.held.pop(self.rng.randrange(len(self.held)))

    def release(self):
        if self.held:
            self.traffic.pool.release(self.held.pop()[0])

    def destroy(self):
        """Put another stream, which may get the handle, in the place of one."""
        streams, at = self.traffic.streams, self.rng.randrange(STREAMS)
        self.held = [one for one in self.held if one[2] is not streams[at]]
        streams[at] = None
        streams[at] = self.traffic.device.stream()

    def reclaim(self):
        self.traffic.pool.reclaim(self.rng.choice((1 << 20, None)))

    def look(self):
        stats = self.traffic.pool.stats()
        assert stats.allocated <= stats.reserved <= ROOM

    def wait(self):
        self.stream().record().synchronize()


OFTEN = (Worker.acquire, Worker.use, Worker.use_elsewhere, Worker.drop)
RARELY = (Worker.release, Worker.destroy, Worker.reclaim, Worker.look, Worker.wait)


@pytest.mark.parametrize("policy", ["split", "binned", "simple", "none"])
def test_random_traffic_on_eight_streams_by_eight_threads_has_no_hazard(policy):
    traffic = Traffic(policy, seed=1, room=ROOM >> 2).run(OPERATIONS)
    assert traffic.device.hazards == []


def test_a_stream_lives_while_its_work_is_under_way_or_somebody_holds_it():
    device = SimulatedDevice()
    source = SimulatedSource(device, 1 << 30)
    pool, live = Pool(source), source.streams
    stream = device.stream()
    with stream:
        block = pool.acquire(4096, stream.ptr)
    device.tenant(block.address, block.nbytes).use(stream, seconds=10.0)
    handle = stream.ptr
    del block

    assert live.retire() == [], "somebody holds it"
    del stream
    assert live.retire() == [], "its work is under way"
    assert live.get(handle) is not None
    device.now += 100.0
    live.captured = {99}
    assert live.retire() == [], "to ask would end the capture of a graph"
    live.captured = set()
    assert live.retire() == [handle]
    assert live.get(handle) is None
    assert all(live.get(default) is not None for default in (0, 1, 2))


def test_free_memory_of_a_stream_that_ended_goes_to_whoever_asks():
    device = SimulatedDevice()
    source = SimulatedSource(device, 1 << 30)
    pool = Pool(source)
    for _ in range(100):
        with device.stream() as stream:
            pool.acquire(40 << 20, stream.ptr)
        del stream
        device.now += 1.0
    assert pool.reserved <= 3 * (40 << 20)
