"""Chunks and free lists: integers only."""

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from xdev.memory.blocks import Heap, Segment, round_up
from xdev.memory.policies import POLICIES, eighth, named


@given(
    st.integers(min_value=0, max_value=1 << 40),
    st.sampled_from([1, 64, 512, 4096]),
)
def test_rounding_is_the_least_multiple(nbytes, quantum):
    size = round_up(nbytes, quantum)
    assert size % quantum == 0
    assert size >= max(nbytes, 1)
    assert size - quantum < max(nbytes, 1)


@given(st.integers(min_value=1, max_value=1 << 40))
def test_eighths_are_idempotent_and_monotone(nbytes):
    size = eighth(nbytes, 512)
    assert eighth(size, 512) == size
    assert nbytes <= size <= max(512, nbytes + nbytes // 8 + 512)
    assert eighth(nbytes + 1, 512) >= size


@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.integers(min_value=1, max_value=3 << 20),
            st.integers(min_value=0, max_value=2),
        ),
        max_size=40,
    )
)
def test_chunks_tile_their_segments_and_free_neighbours_are_merged(steps):
    heap, live, end = Heap(named("split"), 512), [], 1 << 30
    for take, size, stream in steps:
        if take or not live:
            chunk = heap.take(size, stream)
            if chunk is None:
                chunk = heap.adopt(end, 24 << 20, None, size, stream)
                end += 32 << 20
            live.append(chunk)
        else:
            heap.put(live.pop(size % len(live)))
        for chunk in live:  # searched while chunks split and merge
            assert heap.find(chunk.address) is chunk
    heap.settle()
    for segment in heap:
        at = segment.address
        for chunk in segment:
            assert chunk.address == at
            at += chunk.nbytes
        assert at == segment.address + segment.nbytes
        for one, two in pairwise(segment):
            assert two.before is one
            assert not (one.listed and two.listed and one.stream == two.stream)
    assert sum(not c.listed for s in heap for c in s) == len(live)
    for chunk in live:
        assert heap.find(chunk.address + chunk.nbytes - 1) is chunk
        heap.put(chunk)
    heap.unify(0, heap.lift(0))
    assert all(s.first.listed and s.first.after is None for s in heap)
    assert heap.find(0) is None


def test_an_address_between_segments_is_nobodys():
    heap = Heap(named("split"), 512)
    chunks = [heap.adopt(at, 1024, None, 1024, 0) for at in (8192, 2048)]
    assert [heap.find(at) for at in (2047, 3072, 8191, 9216)] == [None] * 4
    assert [heap.find(at) for at in (9215, 3071)] == chunks


def test_the_last_chunk_has_nothing_to_absorb():
    with pytest.raises(ValueError, match="no neighbour"):
        Segment(0, 10, None).first.absorb()


def test_classes_do_not_pile_up():
    heap = Heap(POLICIES["split"], 512)
    for size in range(1, 20_000):
        chunk = heap.take(size * 512, 0) or heap.adopt(
            size << 40, size * 512, None, size * 512, 0
        )
        heap.put(chunk)
        heap.settle()
    assert not heap.bins
