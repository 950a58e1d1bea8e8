"""What a request costs that no free list serves, by how many free blocks there are.

    python benchmarks/cold_path.py [--json FILE] [--repeat 7]

A pool over a source of numbers holds n = 10^3, 10^4 and 10^5 free blocks of n sizes
between live ones, so that none can merge. Timed: acquire + release of sizes that were
not asked for before; and the heap's steps one by one, each undone at once. The last
column is the cost at the most blocks over that at the fewest: O(log n) makes it 1.7,
caches that no longer hold the blocks add to it, O(n) would make it 100.
"""

from __future__ import annotations

from itertools import cycle
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import record

from xdev.memory import Pool
from xdev.memory.blocks import Heap
from xdev.memory.policies import named
from xdev.memory.reclamation import TRIMMED
from xdev.testing import FakeSource

if TYPE_CHECKING:
    from collections.abc import Callable


MIB = 1 << 20
QUANTUM = 512
COUNTS = (1_000, 10_000, 100_000)
REQUESTS = 20_000  # sizes that the rows go through
LOOPS = 1_000
SIZES = (TRIMMED - MIB) // QUANTUM  # of segments that are not trimmed


def fragmented(n: int) -> tuple[Pool, list[Any]]:
    """Return a pool with n free blocks, all of different sizes, and what is live."""
    pool = Pool(FakeSource(1 << 60))
    pool.release(pool.acquire(1 << 50))  # one segment for all that follow
    numbers = np.random.default_rng(0).permutation(2 * n).tolist()
    blocks = [pool.acquire(MIB + QUANTUM * (number + 1)) for number in numbers]
    for block in blocks[::2]:
        pool.release(block)
    pool.acquire(2 * n * MIB)  # what was released goes from its bins to the free lists
    return pool, blocks[1::2]


def segmented(n: int) -> Heap:
    """Return a heap of n segments, all free and none large enough to be trimmed."""
    heap = Heap(named("binned"), QUANTUM)
    for number in range(n):
        size = MIB + QUANTUM * (number % SIZES)
        heap.restore([heap.adopt((number + 1) << 30, size, None, size, 0)])
    return heap


def candidates(n: int) -> dict[str, Callable[[], object]]:
    """Return what is timed with n free blocks."""
    draw = np.random.default_rng(1)
    pool, live = fragmented(n)
    heap, whole = pool.state.heap, segmented(n)
    sizes = cycle(draw.integers(MIB, MIB + QUANTUM * 2 * n, REQUESTS).tolist())

    def acquire_release(_: object = live) -> None:  # which stay in use meanwhile
        pool.release(pool.acquire(next(sizes)))

    def steal() -> None:
        chunk = heap.steal(next(sizes), 1)
        if chunk is not None:
            heap.restore([chunk])

    def spare() -> None:
        for segment in whole.take_free_segments(1):
            whole.add(segment)
            whole.restore([segment.first])

    return {
        "acquire + release": acquire_release,
        "steal from another stream": steal,
        "look for segments to trim": lambda: whole.take_free_segments(least=TRIMMED),
        "take the largest segment": spare,
        "merge after a synchronize": lambda: heap.restore(heap.lift()),
    }


def main() -> None:
    """Measure, print the table, and write the JSON if asked."""
    parser = record.arguments(__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()

    rows = []
    costs: dict[str, list[float]] = {}
    for n in COUNTS:
        calls = candidates(n)
        for name, samples in record.sample(calls, LOOPS, options.repeat).items():
            rows.append({"name": name, "free": n, "samples": samples})
            costs.setdefault(name, []).append(median(samples))
    print(f"{'us a call; free blocks:':<28}", *(f"{n:>9,}" for n in COUNTS), "   ratio")
    for name, seconds in costs.items():
        columns = (f"{cost * 1e6:9.2f}" for cost in seconds)
        print(f"{name:<28}", *columns, f"{seconds[-1] / seconds[0]:8.2f}")
    ratios = {name: seconds[-1] / seconds[0] for name, seconds in costs.items()}
    record.write(options.json, rows, counts=COUNTS, ratios=ratios)


if __name__ == "__main__":
    main()
