"""What a pool asks of a source: the six methods of the protocol, and no more."""

import os
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from xdev.errors import (
    ConfigurationError,
    DeviceUnavailableError,
    OutOfMemoryError,
)
from xdev.memory.policies import POLICIES
from xdev.memory.pools import Pool
from xdev.memory.sources.cuda import RuntimeCall

START = 64
CAPACITY = 1 << 26


class Plain:
    """Only the protocol: odd addresses, no name, no alignment, no total."""

    def __init__(self):
        self.next, self.lent = START, {}

    def allocate(self, nbytes):
        if sum(self.lent.values()) + nbytes > CAPACITY:
            raise MemoryError
        address = self.next
        self.next += nbytes + 144
        self.lent[address] = nbytes
        return address

    def free(self, address, nbytes):
        assert self.lent.pop(address) == nbytes

    def record(self, stream):
        return stream

    def wait(self, stream, event): ...

    def done(self, event):  # noqa: ARG002
        return True

    def synchronize(self): ...


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"async"}))
def test_a_source_of_the_six_methods_serves(policy):
    source = Plain()
    pool = Pool(source, policy)
    sizes = np.random.default_rng(0).integers(1, 1 << 20, size=200).tolist()
    held = []
    for at, nbytes in enumerate(sizes):
        held.append(pool.acquire(nbytes, stream=at % 3))
        assert held[-1].nbytes >= nbytes
        if len(held) > 10:
            del held[at % 10]
    spans = sorted((block.address, block.nbytes) for block in held)
    for (start, nbytes), (after, _) in pairwise(spans):
        assert start + nbytes <= after
    for start, nbytes in spans:
        assert any(
            low <= start and start + nbytes <= low + size
            for low, size in source.lent.items()
        )
    with pytest.raises(OutOfMemoryError, match="Plain"):
        pool.acquire(CAPACITY + 1)
    del held
    pool.reclaim()
    assert source.lent == {}
    assert pool.stats().reserved == 0


def test_the_first_block_starts_where_the_source_says():
    pool = Pool(Plain(), "none")
    assert [pool.acquire(n).address for n in (10, 64)] == [64, 64 + 10 + 144]


def test_chunks_of_a_segment_lie_a_quantum_apart_from_its_start():
    pool = Pool(Plain())
    blocks = [pool.acquire(100) for _ in range(3)]
    assert [block.address - START for block in blocks] == [0, 512, 1024]


@pytest.mark.parametrize("limit", ["50%", "100 %", 0.5])
def test_a_share_of_a_source_without_a_total_is_refused_with_the_way_out(limit):
    with pytest.raises(ConfigurationError, match=r"Plain has no total.*in bytes"):
        Pool(Plain(), "split", limit)
    pool = Pool(Plain(), "split", "1 MiB")
    with pytest.raises(ConfigurationError, match="in bytes"):
        pool.budget.set("50%")
    assert pool.budget.limit == 1 << 20


class RuntimeFailure(Exception):  # noqa: N818 - CuPy's has such a name
    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status = status


def fail_with(status):
    raise RuntimeFailure(status)


def test_the_cuda_runtime_without_memory_is_a_memory_error_and_nothing_else_is():
    call = RuntimeCall(SimpleNamespace(CUDARuntimeError=RuntimeFailure))
    assert call(lambda nbytes: 2 * nbytes, 21) == 42
    with pytest.raises(MemoryError, match="status 2"):
        call(fail_with, 2)
    with pytest.raises(RuntimeFailure, match="status 700"):
        call(fail_with, 700)


def test_the_cuda_runtime_is_not_called_in_a_forked_child(monkeypatch):
    call, calls = RuntimeCall(SimpleNamespace(CUDARuntimeError=RuntimeFailure)), []
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    with pytest.raises(DeviceUnavailableError, match="spawn"):
        call(calls.append, 5)
    assert calls == []
