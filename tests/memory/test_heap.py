"""Chunks and shelves: integers only."""

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from xdev.memory.blocks import Chunk, Segment, Shelf, round_up
from xdev.memory.heap import Heap
from xdev.memory.policies import POLICIES, classes, named


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
    size = classes.eighth(nbytes, 512)
    assert classes.eighth(size, 512) == size
    assert nbytes <= size <= max(512, nbytes + nbytes // 8 + 512)
    assert classes.eighth(nbytes + 1, 512) >= size


@given(
    st.lists(st.integers(min_value=1, max_value=50), max_size=30),
    st.integers(min_value=1, max_value=60),
)
def test_a_shelf_finds_what_a_search_of_all_finds(sizes, wanted):
    shelf, chunks = Shelf(), []
    for number, size in enumerate(sizes):
        chunk = Chunk(number * 100, size, Segment(number * 100, size, None))
        shelf.add(chunk)
        chunks.append(chunk)
    for chunk in chunks[::3]:
        shelf.remove(chunk)
        assert not chunk.shelved
    left = [c for n, c in enumerate(chunks) if n % 3]
    fits = [c.nbytes for c in left if c.nbytes >= wanted]
    found = shelf.best(wanted)
    assert (found.nbytes if found else None) == min(fits, default=None)
    assert {id(c) for c in shelf} == {id(c) for c in left}


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
            heap.assign(chunk, size)
            live.append(chunk)
        else:
            heap.put(live.pop(size % len(live)))
    heap.settle()
    for segment in heap:
        at = segment.address
        for chunk in segment:
            assert chunk.address == at
            at += chunk.nbytes
        assert at == segment.address + segment.nbytes
        for one, two in pairwise(segment):
            assert two.before is one
            assert not (one.shelved and two.shelved and one.stream == two.stream)
    assert sum(not c.shelved for s in heap for c in s) == len(live)
    for chunk in live:
        assert heap.find(chunk.address + chunk.nbytes - 1) is chunk
        heap.put(chunk)
    heap.unify()
    assert all(segment.whole for segment in heap)
    assert heap.find(0) is None


def test_the_last_chunk_has_nothing_to_absorb():
    with pytest.raises(ValueError, match="no neighbour"):
        Segment(0, 10, None).first.absorb()


def test_classes_do_not_pile_up():
    heap = Heap(POLICIES["split"], 512)
    for size in range(1, 20_000):
        chunk = heap.take(size * 512, 0) or heap.adopt(
            size << 40, size * 512, None, size * 512, 0
        )
        heap.assign(chunk, size * 512)
        heap.put(chunk)
        heap.settle()
    assert len(heap.bins.get(0, {})) <= 4100
