"""A pool with C clients: counted, reclaimed and tracked like one with Python clients.

The clients here call CuPy's entries by ctypes, on fake memory.
"""

import ctypes
import itertools
import os
import random
import signal
import sys
import threading
import time
from functools import partial

import pytest

from xdev import memory, native
from xdev.errors import OutOfMemoryError
from xdev.memory import Pool, tracking
from xdev.memory.bridges.opt_in import mark, serve
from xdev.memory.state import PoolState
from xdev.testing import FakeSource

MIB = 1 << 20


class Client:
    """What CuPy does with a ``CFunctionAllocator``, one device, streams by a global."""

    def __init__(self, pool):
        self.pool, self.stream = pool, 0
        kind = ctypes.CFUNCTYPE(ctypes.c_int64)
        self._current = kind(lambda: self.stream)
        current = ctypes.cast(self._current, ctypes.c_void_p).value
        self.served = native.module("pool").CupyAllocator(1, current)
        self.served.open(0, pool.state.share())
        at, malloc, free = self.served.functions
        words = [ctypes.c_int64] * 2
        take = ctypes.CFUNCTYPE(ctypes.c_int64, *words, ctypes.c_int32)(malloc)
        give = ctypes.CFUNCTYPE(None, *words, ctypes.c_int32)(free)
        self.hit = lambda nbytes: take(at, nbytes, 0)
        self.free = lambda address: give(at, address, 0)

    def malloc(self, nbytes):
        address = self.hit(nbytes)
        if not address:
            assert self.pool.refill(nbytes, self.stream)
            address = self.hit(nbytes)
        return address


pytestmark = pytest.mark.usefixtures("tier")
INNER = [17]  # what the allocator answers that stands in for NumPy's own
_inner = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 3)(lambda _context, _nbytes: INNER[0])


def miss(pool, nbytes):
    """Return what NumPy gets for a request; INNER's where it is not served."""
    inner = ctypes.cast(_inner, ctypes.c_void_p).value
    handler = native.module("pool").NumpyHandler(0, (0, inner))
    handler.serve(serve(pool))
    context, malloc, *_ = handler.functions
    return ctypes.CFUNCTYPE(*[ctypes.c_int64] * 3)(malloc)(context, nbytes)


@pytest.fixture(params=["split", "binned", "simple"])
def pool(request):
    return Pool(FakeSource(64 * MIB), request.param)


def test_the_ledger_is_a_python_clients(pool):
    """The same requests through Python leave the same numbers."""
    other = Pool(FakeSource(64 * MIB), pool.state.policy.name)
    client, rng = Client(pool), random.Random(3)  # noqa: S311 - no secret
    native, python = [], []
    sizes = [1, 600, 5000, 70_000, 3 * MIB]
    scopes = pool.open_scope(), other.open_scope()
    for _ in range(400):
        if native and rng.random() < 0.5:
            at = rng.randrange(len(native))
            client.free(native.pop(at))
            other.release(python.pop(at))
        else:
            nbytes = rng.choice(sizes)
            native.append(client.malloc(nbytes))
            python.append(other.acquire(nbytes))
        mine, theirs = pool.stats(), other.stats()
        for name in ("allocated", "acquired", "released", "live", "peak_allocated"):
            assert getattr(mine, name) == getattr(theirs, name), name
        assert mine.acquired_bytes == theirs.acquired_bytes
        assert mine.released_bytes == theirs.released_bytes
        assert scopes[0].allocated == scopes[1].allocated
        live = [(c.live, c.live_bytes) for c in mine.classes if c.live]
        assert live == [(c.live, c.live_bytes) for c in theirs.classes if c.live]
    for address in native:
        client.free(address)
    assert pool.stats().allocated == 0
    held = pool.stats().reserved
    assert pool.reclaim() == held
    assert pool.state.source.lent == {}


def test_sizes_asked_for_by_turns_do_not_empty_each_others_lists(pool):
    client, sizes = Client(pool), (600, 40_000, 80_000, 3 * MIB, 5 * MIB)
    for _ in range(3):
        for nbytes in sizes:
            client.free(client.malloc(nbytes))
    if pool.state.policy.name == "simple":  # cuts nothing: any free block serves
        sizes = sizes[-1:]
    for nbytes in sizes:
        address = client.hit(nbytes)
        assert address
        client.free(address)


def test_live_blocks_of_both_kinds_of_client_never_overlap(pool):
    client, rng = Client(pool), random.Random(5)  # noqa: S311
    live = {}
    for _ in range(2000):
        if live and rng.random() < 0.5:
            address = rng.choice(list(live))
            holder = live.pop(address)[1]
            if holder is None:
                client.free(address)
            else:
                pool.release(holder)
            del holder
            continue
        nbytes = rng.choice([512, 4096, 100_000, MIB])
        client.stream = stream = rng.choice([0, 1, 2])
        block = pool.acquire(nbytes, stream) if rng.random() < 0.3 else None
        address = block.address if block else client.malloc(nbytes)
        assert address not in live
        live[address] = nbytes, block
        spans = sorted((a, n) for a, (n, _) in live.items())
        for (start, size), (after, _) in itertools.pairwise(spans):
            assert start + size <= after
    assert pool.stats().live == len(live)


def test_what_c_clients_dropped_serves_others_when_memory_is_short():
    pool = Pool(FakeSource(4 * MIB), "split")
    client = Client(pool)
    held = [client.malloc(MIB) for _ in range(4)]
    for address in held:
        client.free(address)
    block = pool.acquire(4 * MIB)
    with pytest.raises(OutOfMemoryError):
        pool.acquire(1)
    del block
    assert client.malloc(2 * MIB)
    assert pool.stats().live == 1


def test_a_block_used_on_another_stream_waits_for_it(pool):
    client = Client(pool)
    address = client.malloc(4096)
    pool.state.mark(pool.find(address), (7,))
    client.free(address)
    assert client.hit(4096) == 0
    assert pool.stats().allocated == 0
    pool.state.process_pending()
    client.malloc(4096)
    assert ("record", 7) in pool.state.source.log


def test_a_block_that_came_back_under_tracking_is_no_leak(pool):
    client = Client(pool)
    with memory.track():
        for _ in range(5):
            address = tracked_malloc(client, 4096)
            client.free(address)
            block = pool.acquire(4096)
            del block
            pool.state.drained()
            assert pool.stats().allocated == 0
        assert tracking.TRACKER.live[pool.state] == {}
    assert pool.reclaim() == pool.stats().grown_bytes


def tracked_malloc(client, nbytes):
    """Allocate as NumPy and PyTorch do while blocks are tracked."""
    address = miss(client.pool, nbytes)
    assert address > INNER[0]
    return address


def test_a_lowered_limit_holds_for_c_clients_too(pool):
    client = Client(pool)
    kept, free = client.malloc(4096), client.malloc(4096)
    client.free(free)
    pool.budget.set(4096)
    assert client.hit(4096) == 0
    assert not pool.refill(4096, 0)
    assert miss(pool, 4096) == 0
    client.free(kept)
    address = miss(pool, 4096)
    assert client.hit(4096) == 0
    client.free(address)
    pool.budget.set(None)
    assert client.malloc(4096)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_starts_empty_and_frees_nothing_of_its_parent():
    pool = Pool(FakeSource(64 * MIB))
    client = Client(pool)
    parents, free = client.malloc(4096), client.malloc(8192)
    client.free(free)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            assert pool.stats().allocated == pool.stats().reserved == 0
            assert client.hit(8192) == 0
            client.free(parents)
            client.free(parents)
            assert pool.stats().released == 0
            assert client.malloc(4096)
            assert pool.stats().live == 1
            os.write(writing, b"well")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    assert os.read(reading, 10) == b"well"
    os.close(reading)
    assert client.hit(8192) == free


def status_of(child):
    """Return how a child ended; one that hangs is ended."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_fork_amid_other_threads_changes_leaves_the_child_a_whole_pool(pool):
    """They run without the interpreter's lock: a fork may come at any step."""
    client, ended = Client(pool), threading.Event()
    for address in [client.malloc(4096) for _ in range(64)]:
        client.free(address)

    def work():
        while not ended.is_set():
            for address in [client.hit(4096) for _ in range(20)]:
                if address:
                    client.free(address)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if not child:
                addresses = [client.malloc(4096) for _ in range(100)]
                well = len(set(addresses)) == pool.stats().live == 100
                os._exit(0 if well else 1)
            assert status_of(child) == 0
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert pool.stats().allocated == 0


WORD = ctypes.c_int64
THROW = ctypes.CFUNCTYPE(None, WORD, WORD, ctypes.c_uint32, ctypes.c_char_p)


class Torch:
    """Allocates and frees on device 0; keeps the texts of what would be thrown."""

    def __init__(self, pool, *, throws=True):
        self.thrown = []
        self._throw = THROW(lambda *words: self.thrown.append(words[-1]))
        throw = ctypes.cast(self._throw, ctypes.c_void_p).value if throws else 0
        tier = native.module("pool")
        served = tier.CupyAllocator(1, 0)
        served.open(0, serve(pool))
        functions = tier.torch_functions(served, partial(mark, [pool]), throw)
        malloc, free, self._record = functions
        self._malloc = ctypes.CFUNCTYPE(WORD, WORD, ctypes.c_int, WORD)(malloc)
        self._free = ctypes.CFUNCTYPE(None, WORD, WORD, ctypes.c_int, WORD)(free)
        self.record = ctypes.CFUNCTYPE(None, WORD, WORD)(self._record)

    def malloc(self, nbytes, stream=0):
        return self._malloc(nbytes, 0, stream)

    def free(self, address, nbytes):
        self._free(address, nbytes, 0, 0)


def test_a_refusal_says_that_memory_is_short():
    client = Torch(Pool(FakeSource(64 * MIB)))
    assert client.malloc(65 * MIB) == 0
    [said] = client.thrown
    assert said.startswith(b"out of memory: xdev's pool refused")


def test_a_block_that_is_not_served_says_why():
    pool = Pool(FakeSource(64 * MIB))
    client = Torch(pool)
    pool.state.free_lists.serve(None)  # as after Python's end
    client.malloc(MIB)
    [said] = client.thrown
    assert b"Python has ended" in said
    assert b"out of memory" not in said


def raising(error, calls=1):
    """A patch for `Pool.take`: it raises at first."""
    take, left = Pool.take, [error] * calls

    def patched(self, *args):
        if left:
            raise left.pop()
        return take(self, *args)

    return patched


@pytest.mark.parametrize("error", [RecursionError, MemoryError, SystemExit])
def test_what_is_raised_in_a_miss_is_a_refusal_and_told(monkeypatch, error):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(args.exc_type))
    monkeypatch.setattr(Pool, "take", raising(error))
    client = Torch(Pool(FakeSource(64 * MIB)))
    assert client.malloc(MIB) == 0
    assert client.malloc(MIB) > 0
    assert len(client.thrown) == 1
    assert told == [error]


def test_an_interrupt_never_loses_a_mark(monkeypatch):
    pool = Pool(FakeSource(64 * MIB))
    client, mark, calls = Torch(pool), PoolState.mark, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 1:
            raise KeyboardInterrupt
        mark(*args)

    address = client.malloc(MIB)
    monkeypatch.setattr(PoolState, "mark", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.record(address, 7)
    assert pool.find(address).uses == {7}
