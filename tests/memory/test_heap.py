"""Chunks and free lists: integers only."""

from itertools import pairwise
from math import inf

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


@given(
    st.lists(st.integers(min_value=1, max_value=9), max_size=12),
    st.just(inf) | st.integers(min_value=0, max_value=40),
    st.integers(min_value=0, max_value=9),
)
def test_spare_segments_are_the_largest_that_are_wholly_free(sizes, nbytes, least):
    heap = Heap(named("simple"), 1)
    for number, size in enumerate(sizes):
        chunk = heap.adopt((number + 1) * 100, size, None, size, number % 2)
        if number % 3:
            heap.restore(chunk)
    free = [size for number, size in enumerate(sizes) if number % 3 and size >= least]
    free.sort(reverse=True)
    want = []
    while free and sum(want) < nbytes:
        want.append(free.pop(0))

    spare = heap.spare(nbytes, least)

    assert [segment.nbytes for segment in spare] == want
    assert sum(1 for _ in heap) == len(sizes) - len(want)
    assert all(heap.find(segment.address) is None for segment in spare)
    for segment in spare:
        heap.restore(segment.first)
    assert [segment.nbytes for segment in heap.spare(nbytes, least)] == want


def test_an_address_between_segments_is_nobodys():
    heap = Heap(named("split"), 512)
    chunks = [heap.adopt(at, 1024, None, 1024, 0) for at in (8192, 2048)]
    assert [heap.find(at) for at in (2047, 3072, 8191, 9216)] == [None] * 4
    assert [heap.find(at) for at in (9215, 3071)] == chunks


@pytest.mark.parametrize("when", ["before", "after"])
def test_only_what_was_free_before_the_wait_merges_across_streams(when):
    """A block freed during the wait may have work queued that the wait left out."""
    heap = Heap(named("split"), 512)
    one = heap.adopt(2048, 3 * 512, None, 512, 1)
    two, three = heap.take(512, 1), heap.take(512, 1)
    for stream, chunk in enumerate((one, two, three), start=1):
        chunk.stream = stream
    heap.put(one)
    heap.put(two)
    if when == "before":
        heap.put(three)
    lifted = heap.lift(1)
    if when == "after":
        heap.put(three)
    heap.unify(1, lifted)
    heap.settle()
    free = [(chunk.nbytes, chunk.stream) for chunk in next(iter(heap))]
    if when == "before":
        assert [nbytes for nbytes, _ in free] == [3 * 512]
    else:
        assert [nbytes for nbytes, _ in free] == [2 * 512, 512]
        assert free[1][1] == 3


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
