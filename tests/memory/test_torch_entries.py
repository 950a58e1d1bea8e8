"""What PyTorch calls, as C functions on fake memory; PyTorch itself is not needed."""

import ctypes
import sys
from functools import partial

import pytest

from xdev.memory.bridges import torch
from xdev.memory.bridges.misses import serve
from xdev.memory.native import entries, layout, operations
from xdev.memory.native.front import Devices, answering
from xdev.memory.native.machine import machine
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource
from xdev.memory.stock import Stock

MIB = 1 << 20
THROW = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)


class Torch:
    """Allocates and frees on device 0; keeps the texts of what would be thrown."""

    def __init__(self, pool, *, compiled):
        self.thrown = []
        self._throw = THROW(self._note)
        self.front = serve(pool)
        self.devices = devices = Devices(1)
        function = ctypes.cast(self._throw, ctypes.c_void_p).value
        devices.throw(function, torch.WHERE, torch.REFUSED, torch.NOT_SERVED)
        devices.open(0, self.front)
        devices.record(answering(partial(torch._record, [pool])))
        code = machine()
        names = "torch_malloc", "torch_free", "torch_record"
        word = code.torch_word if compiled else operations.torch_word()
        find = code.function if compiled else vars(entries).get
        self._malloc, self._free, self.record = map(find, names)
        ctypes.c_int64.from_address(word).value = devices.address

    def _note(self, _function, _file, _line, text):
        self.thrown.append(ctypes.string_at(text))
        return 0

    def malloc(self, nbytes, stream=0):
        return self._malloc(nbytes, 0, stream)

    def free(self, address, nbytes):
        self._free(address, nbytes, 0, 0)


@pytest.fixture(params=[True, False], ids=["compiled", "plain"])
def compiled(request):
    return request.param


def test_blocks_are_the_pools(compiled):
    pool = Pool(FakeSource(64 * MIB))
    client = Torch(pool, compiled=compiled)
    address = client.malloc(MIB)
    assert pool.find(address).nbytes == pool.stats().allocated == MIB
    client.free(address, MIB)
    assert client.malloc(MIB) == address
    assert client.thrown == []


def test_a_refusal_says_that_memory_is_short(compiled):
    client = Torch(Pool(FakeSource(64 * MIB)), compiled=compiled)
    client.malloc(65 * MIB)
    assert client.thrown == [torch.REFUSED]
    assert b"out of memory" in torch.REFUSED


def test_a_full_core_says_how_many_blocks_there_can_be(compiled):
    client = Torch(Pool(FakeSource(64 * MIB)), compiled=compiled)
    client.front.words[layout.USED] = layout.BLOCKS  # as if so many were live
    client.malloc(MIB)
    assert client.thrown == [torch.NOT_SERVED]
    assert b"1,048,576" in torch.NOT_SERVED
    assert b"out of memory" not in torch.NOT_SERVED


@pytest.mark.parametrize("policy", ["split", "binned"])
@pytest.mark.parametrize("nbytes", [(1 << 62) + 1, (1 << 63) - 1])
def test_a_size_that_cannot_be_is_refused_at_once(compiled, policy, nbytes):
    client = Torch(Pool(FakeSource(64 * MIB), policy), compiled=compiled)
    client.free(client.malloc(1), 1)
    client.malloc(nbytes)
    assert client.thrown == [torch.REFUSED]


def raising(error, calls=1):
    """A patch for `Pool.take`: it raises at first."""
    take, left = Pool.take, [error] * calls

    def patched(self, *args):
        if left:
            raise left.pop()
        return take(self, *args)

    return patched


@pytest.mark.parametrize("error", [RecursionError, MemoryError, SystemExit])
def test_what_is_raised_in_a_miss_is_a_refusal_and_told(compiled, monkeypatch, error):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(args.exc_type))
    monkeypatch.setattr(Pool, "take", raising(error))
    client = Torch(Pool(FakeSource(64 * MIB)), compiled=compiled)
    assert client.malloc(MIB) == 0
    assert client.malloc(MIB) > 0
    assert client.thrown == [torch.REFUSED]
    assert told == [error]


def test_an_interrupt_in_a_miss_comes_after_the_refusal(compiled, monkeypatch):
    monkeypatch.setattr(Pool, "take", raising(KeyboardInterrupt))
    client = Torch(Pool(FakeSource(64 * MIB)), compiled=compiled)
    client.devices.throw(0, b"", b"", b"")  # PyTorch throws without Python
    with pytest.raises(KeyboardInterrupt):
        client.malloc(MIB)
    assert client.malloc(MIB) > 0


def test_an_interrupt_never_loses_a_mark(compiled, monkeypatch):
    pool = Pool(FakeSource(64 * MIB))
    client, mark, calls = Torch(pool, compiled=compiled), Stock.mark, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 1:
            raise KeyboardInterrupt
        mark(*args)

    address = client.malloc(MIB)
    monkeypatch.setattr(Stock, "mark", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.record(address, 7)
    assert pool.find(address).uses == {7}
