"""A pool with C clients: counted, reclaimed and tracked like one with Python clients.

The clients here call the functions that CuPy and PyTorch get, on fake memory.
"""

import itertools
import os
import random
import sys
import threading

import pytest
from running import in_child
from without_a_driver import Client

from xdev import memory
from xdev.memory import Pool
from xdev.testing import FakeSource

MIB = 1 << 20
pytestmark = pytest.mark.usefixtures("tier")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@pytest.fixture(params=["split", "binned", "simple"])
def pool(request):
    return Pool(FakeSource(64 * MIB), request.param)


@pytest.fixture
def client(pool):
    return Client(pool)


def test_the_ledger_is_a_python_clients(pool, client):
    """The same requests through Python leave the same numbers."""
    other = Pool(FakeSource(64 * MIB), pool.state.policy.name)
    rng = random.Random(3)  # noqa: S311 - no secret
    native, python = [], []
    scopes = [each.state.ledger.open() for each in (pool, other)]
    for _ in range(400):
        if native and rng.random() < 0.5:
            at = rng.randrange(len(native))
            client.free(native.pop(at))
            other.release(python.pop(at))
        else:
            nbytes = rng.choice([1, 600, 5000, 70_000, 3 * MIB])
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
    assert pool.reclaim() == pool.stats().grown_bytes - mine.returned_bytes
    assert pool.state.source.lent == {}


def test_live_blocks_of_both_kinds_of_client_never_overlap(pool, client):
    rng, live = random.Random(5), {}  # noqa: S311
    for _ in range(2000):
        if live and rng.random() < 0.5:
            address = rng.choice(list(live))
            if live.pop(address)[1] is None:  # else dropped
                client.free(address)
            continue
        nbytes = rng.choice([512, 4096, 100_000, MIB])
        client.stream = stream = rng.choice([0, 1, 2])
        block = pool.acquire(nbytes, stream) if rng.random() < 0.3 else None
        address = block.address if block else client.malloc(nbytes)
        live[address] = nbytes, block
        block = None
        spans = sorted((a, n) for a, (n, _) in live.items())
        for (start, size), (after, _) in itertools.pairwise(spans):
            assert start + size <= after
    assert pool.stats().live == len(live)


def test_a_block_used_on_another_stream_waits_for_it(pool, client):
    address = client.malloc(4096)
    client.record(address, 7)  # as PyTorch does
    client.free(address)
    assert client.hit(4096) == 0
    assert pool.stats().allocated == 0
    client.malloc(4096)
    assert ("record", 7) in pool.state.source.log


def test_a_block_that_came_back_under_tracking_is_no_leak(pool, client):
    with memory.track():
        for _ in range(5):
            client.free(client.miss(4096))
            pool.acquire(4096)
            assert pool.stats().allocated == 0
    assert pool.reclaim() == pool.stats().grown_bytes


def test_a_lowered_limit_holds_for_c_clients_too(pool, client):
    kept, free = client.malloc(4096), client.malloc(4096)
    client.free(free)
    pool.budget.set(4096)
    assert client.hit(4096) == 0
    assert not pool.refill(4096, 0)
    assert client.miss(4096) == 0
    client.free(kept)
    address = client.miss(4096)
    assert address
    assert client.hit(4096) == 0
    client.free(address)
    pool.budget.set(None)
    assert client.malloc(4096)


@forks
def test_a_forked_child_starts_empty_and_frees_nothing_of_its_parent(pool, client):
    parents, free = client.malloc(4096), client.malloc(8192)
    client.free(free)

    def starts_empty():
        well = pool.stats().allocated == pool.stats().reserved == client.hit(8192) == 0
        client.free(parents)
        client.free(parents)
        well = well and pool.stats().released == 0
        return well and client.malloc(4096) and pool.stats().live == 1

    assert in_child(starts_empty)
    assert client.hit(8192) == free


@forks
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_fork_amid_other_threads_changes_leaves_the_child_a_whole_pool(pool, client):
    """They run without the interpreter's lock: a fork may come at any step."""
    ended = threading.Event()
    for address in [client.malloc(4096) for _ in range(64)]:
        client.free(address)

    def work():
        while not ended.is_set():
            for address in filter(None, [client.hit(4096) for _ in range(20)]):
                client.free(address)

    def is_whole():
        addresses = [client.malloc(4096) for _ in range(100)]
        return len(set(addresses)) == pool.stats().live == 100

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            assert in_child(is_whole)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert pool.stats().allocated == 0


def test_a_refusal_says_that_memory_is_short_or_that_python_has_ended(pool, client):
    assert client.miss(65 * MIB) == 0
    pool.state.free_lists.serve(None)  # as after Python's end
    assert client.miss(MIB) == 0
    short, ended = client.thrown
    assert short.startswith(b"out of memory: xdev's pool refused")
    assert b"Python has ended" in ended


@pytest.mark.parametrize("error", [RecursionError, MemoryError, SystemExit])
def test_what_is_raised_in_a_miss_is_a_refusal_and_told(client, monkeypatch, error):
    told, allocate = [], client.pool.state.source.allocate

    def raising(_):
        monkeypatch.setattr(client.pool.state.source, "allocate", allocate)
        raise error

    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(args.exc_type))
    monkeypatch.setattr(client.pool.state.source, "allocate", raising)
    served = client.miss(MIB)
    assert bool(served) == (error is MemoryError)  # the ladder asks once more
    assert client.miss(MIB) > 0
    assert told == [error] * (not served)


def test_an_interrupt_never_loses_a_mark(pool, client, monkeypatch):
    mark, calls = pool.state.mark, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 1:
            raise KeyboardInterrupt
        mark(*args)

    address = client.malloc(MIB)
    monkeypatch.setattr(type(pool.state), "mark", lambda _, *args: interrupted(*args))
    with pytest.raises(KeyboardInterrupt):
        client.record(address, 7)
    assert pool.find(address).uses == {7}
