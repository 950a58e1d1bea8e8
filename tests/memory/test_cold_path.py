"""What the heap does does not grow with what is free: bytecodes are counted."""

import sys

import pytest

from xdev.memory.blocks import Heap
from xdev.memory.policies import named
from xdev.memory.reclamation import TRIMMED

MIB = 1 << 20
FEW, MANY = 1_000, 100_000


def bytecodes(call):
    """How many bytecodes a call runs, its callees included."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def fragmented(n):
    """A heap whose one segment holds n free chunks of n sizes between live ones."""
    heap = Heap(named("split"), 512)
    heap.adopt(1 << 30, 1 << 50, None, 4 * MIB, 0)
    chunks = [heap.take(4 * MIB + 512 * number, 0) for number in range(2 * n)]
    for chunk in chunks[::2]:
        heap.restore(chunk)
    middle = chunks[n | 1]
    heap.find(middle.address)  # the first search makes the index
    return heap, middle


def segmented(n):
    """A heap of n segments, all wholly free and too small to be trimmed."""
    heap = Heap(named("simple"), 512)
    for number in range(n):
        size = 2 * MIB + 512 * (number % 1000)
        heap.restore(heap.adopt((number + 1) << 30, size, None, size, 0))
    return heap


def take_and_put(heap, nbytes):
    chunk = heap.take(nbytes, 0)
    heap.put(chunk)
    heap.flush_bins()


@pytest.fixture(scope="module")
def heaps():
    return {n: (*fragmented(n), segmented(n)) for n in (FEW, MANY)}


STEPS = {
    "take, put, flush": lambda heap, chunk, _: take_and_put(heap, chunk.nbytes - 512),
    "take what nothing holds": lambda heap, *_: heap.take(1 << 60, 0),
    "steal": lambda heap, chunk, _: heap.restore(heap.steal(chunk.nbytes - 512, 1)),
    "find": lambda heap, chunk, _: heap.find(chunk.address + 7),
    "find in segments": lambda *heaps: heaps[-1].find(500 << 30),
    "merge": lambda heap, *_: heap.put_merged(1, heap.take_other_streams(1)),
    "nothing to trim": lambda *heaps: heaps[-1].take_free_segments(least=TRIMMED),
    "spare one": lambda *heaps: [
        heaps[-1].restore(segment.first) for segment in heaps[-1].take_free_segments(1)
    ],
}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_takes_no_longer_with_more_that_is_free(step, heaps):
    def run(n):
        heap, middle, whole = heaps[n]

        def once():
            return bytecodes(lambda: STEPS[step](heap, middle, whole))

        once()  # what the first time sets up, Python's own counting too
        return once()

    few, many = run(FEW), run(MANY)

    assert few > 10
    assert many <= 1.5 * few


def test_classes_do_not_pile_up():
    heap = Heap(named("split"), 512)
    for size in range(1, 20_000):
        chunk = heap.take(size * 512, 0) or heap.adopt(
            size << 40, size * 512, None, size * 512, 0
        )
        heap.put(chunk)
        heap.flush_bins()
    assert not heap.bins
