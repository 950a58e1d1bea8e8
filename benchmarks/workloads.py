"""Public workloads for memory pools, as events in the order they happen."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, NamedTuple, final

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
USAGE = 16_000 * MIB  # RMM's random_allocations stays below this [B]
ALLOCATE = 73  # per cent of its steps that allocate, while it may


class Event(NamedTuple):
    """Buffer ``key`` comes with ``nbytes``, or goes where that is 0 [B]."""

    key: int
    nbytes: int


@final
class Lehmer:
    """C++'s ``std::minstd_rand0`` with libstdc++'s ``uniform_int_distribution``.

    RMM's benchmark is in C++ and never seeds, so seed 1 replays its very sequence.

    Examples
    --------
    >>> draw = Lehmer(1)
    >>> 1 + draw.below(1 << 30), draw.below(100), draw.below(10_000)
    (16807, 13, 7556)
    """

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, n: int) -> int:
        """Return a number from 0 to ``n - 1``; ``n`` is less than 2**31 - 2."""
        width = (2**31 - 3) // n
        while True:
            self._state = self._state * 16_807 % (2**31 - 1)
            drawn = (self._state - 1) // width
            if drawn < n:
                return drawn


def random_allocations(n: int, largest: int, seed: int = 1) -> list[Event]:
    """Return RMM's benchmark of that name, step by step.

    ``2 n`` steps: 73 in 100 allocate a size drawn evenly from 1 B to ``largest``, until
    ``n`` were allocated and as long as less than 16,000 MiB are in use; all others free
    one live buffer at random. (``cpp/benchmarks/random_allocations`` of RMM 26.08; its
    pool there starts with half of the device's memory.)
    """
    draw = Lehmer(seed)
    live: list[Event] = []
    events: list[Event] = []
    used = count = 0
    for _ in range(2 * n):
        size = 1 + draw.below(largest)
        allocates = True
        if live:
            allocates = draw.below(100) < ALLOCATE
            allocates = allocates and count < n and used + size < USAGE
        if allocates:
            live.append(Event(count, size))
            events.append(live[-1])
            count, used = count + 1, used + size
        else:
            at = draw.below(n) % len(live)
            live[at], live[-1] = live[-1], live[at]
            gone = live.pop()
            events.append(Event(gone.key, 0))
            used -= gone.nbytes
    return events


def minimalloc(path: Path, scale: int) -> list[Event]:
    """Return the buffers of a MiniMalloc file (id, lower, upper, size), by time.

    Buffers live in ``[lower, upper)``: those that end at a moment go before others
    come. Sizes are multiplied by ``scale``: the files are for a memory of 1 MiB.
    """
    moments: list[tuple[int, int, Event]] = []
    with path.open(newline="", encoding="utf-8") as lines:
        for key, row in enumerate(csv.DictReader(lines)):
            come = Event(key, int(row["size"]) * scale)
            moments.append((int(row["lower"]), 1, come))
            moments.append((int(row["upper"]), 0, Event(key, 0)))
    moments.sort(key=lambda moment: moment[:2])
    return [event for _, _, event in moments]


def peak_live(events: list[Event]) -> int:
    """Return the most bytes that were asked for and not given back at a time [B]."""
    sizes: dict[int, int] = {}
    live = peak = 0
    for key, nbytes in events:
        if nbytes:
            sizes[key] = nbytes
            live += nbytes
            peak = max(peak, live)
        else:
            live -= sizes.pop(key)
    return peak
