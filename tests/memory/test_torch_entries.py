"""What PyTorch calls, as C functions on fake memory; PyTorch itself is not needed."""

import ctypes
import sys
from functools import partial

import pytest

from xdev import native
from xdev.memory.bridges import serve
from xdev.memory.bridges.torch import mark
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource
from xdev.memory.state import PoolState

pytestmark = pytest.mark.usefixtures("tier")
MIB = 1 << 20
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


def test_blocks_are_the_pools():
    pool = Pool(FakeSource(64 * MIB))
    client = Torch(pool)
    address = client.malloc(MIB)
    assert pool.find(address).nbytes == pool.stats().allocated == MIB
    client.free(address, MIB)
    assert client.malloc(MIB) == address
    assert client.thrown == []


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


@pytest.mark.parametrize("policy", ["split", "binned"])
@pytest.mark.parametrize("nbytes", [(1 << 62) + 1, (1 << 63) - 1])
def test_a_size_that_cannot_be_is_refused_at_once(policy, nbytes):
    client = Torch(Pool(FakeSource(64 * MIB), policy))
    client.free(client.malloc(1), 1)
    client.malloc(nbytes)
    [said] = client.thrown
    assert said.startswith(b"out of memory")


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


def test_an_interrupt_in_a_miss_comes_after_the_block(monkeypatch):
    pool = Pool(FakeSource(64 * MIB))
    client, addresses = Torch(pool, throws=False), []
    monkeypatch.setattr(Pool, "take", raising(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        addresses.extend(map(client.malloc, [MIB]))
    assert client.malloc(MIB) > 0
    assert pool.stats().live == 2


def test_interrupts_without_an_end_are_a_refusal(monkeypatch):
    pool = Pool(FakeSource(64 * MIB))
    client = Torch(pool, throws=False)
    monkeypatch.setattr(Pool, "take", raising(KeyboardInterrupt, 2))
    with pytest.raises(KeyboardInterrupt):
        client.malloc(MIB)
    assert pool.stats().live == 0


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
