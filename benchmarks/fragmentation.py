"""What pools hold beyond what is in use: public workloads, xdev beside other rules.

    python benchmarks/fragmentation.py [--json FILE] [--seeds 5] [--n 10000]
                                       [--capacity 80] [--traces FOLDER]

RMM's ``random_allocations`` with 10,000 allocations of up to 4, 64 and 1024 MiB below
its 16,000 MiB, seed 1 being RMM's own sequence, replayed on ``xdev.memory.Pool`` under
each policy and on models of CuPy's and PyTorch's pools (``allocator_models.py``), each
over a source that is only a byte count (of 80 GiB). A figure is the most a pool held
divided by the most that was asked for at a time; of all seeds the worst is printed.
Driver calls, allocate + free, are means over the seeds, for a whole replay.

With ``--traces`` also the MiniMalloc traces, sizes times 1024, so that they fill 1 GiB:
``git clone https://github.com/google/minimalloc`` and name its folder
``benchmarks/challenging``. They are left out where there is none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import allocator_models
import record
import workloads

from xdev.memory import Pool
from xdev.testing import FakeSource

MIB = 1 << 20
N = 10_000  # allocations that the targets are for
TARGETS = {4: 1.05, 64: 1.20, 1024: 1.60}  # of policy split, by largest size [MiB]
POLICY = "xdev split"  # whose figures have targets
POLICIES = ("split", "binned", "simple", "none")
SCALE = 1024  # of the traces' sizes


@dataclass
class Held:
    """What one replay made a pool do."""

    peak: int
    allocations: int
    frees: int


Replay = Callable[[list[workloads.Event], int], Held]


def play(events: list[workloads.Event], acquire: Any, release: Any) -> None:
    """Do what the events say."""
    held = {}
    for key, nbytes in events:
        if nbytes:
            held[key] = acquire(nbytes)
        else:
            release(held.pop(key))


def of_policy(policy: str) -> Replay:
    """Return the replay on xdev's pool."""

    def replay(events: list[workloads.Event], capacity: int) -> Held:
        pool = Pool(FakeSource(capacity), policy)
        play(events, pool.acquire, pool.release)
        stats = pool.stats()
        return Held(stats.peak_reserved, stats.grown, stats.returned)

    return replay


def of_model(rules: allocator_models.Rules) -> Replay:
    """Return the replay on a model."""

    def replay(events: list[workloads.Event], capacity: int) -> Held:
        model = allocator_models.Model(rules, capacity)
        play(events, model.acquire, model.release)
        return Held(model.peak, model.allocations, model.frees)

    return replay


POOLS = {f"xdev {policy}": of_policy(policy) for policy in POLICIES} | {
    "model of CuPy": of_model(allocator_models.CUPY),
    "model of PyTorch": of_model(allocator_models.PYTORCH),
}


@dataclass
class Row:
    """One pool under one workload; a list has one entry for each seed."""

    name: str
    workload: str
    pool: str
    target: float | None
    ratios: list[float] = field(default_factory=list)
    live: list[int] = field(default_factory=list)
    reserved: list[int] = field(default_factory=list)
    allocations: list[int] = field(default_factory=list)
    frees: list[int] = field(default_factory=list)

    def add(self, live: int, held: Held) -> None:
        """Add one replay."""
        self.ratios.append(held.peak / live)
        self.live.append(live)
        self.reserved.append(held.peak)
        self.allocations.append(held.allocations)
        self.frees.append(held.frees)

    def __str__(self) -> str:
        text = f"  {self.pool:<18} {max(self.ratios):6.3f}  driver calls "
        text += f"{mean(self.allocations):7.0f} + {mean(self.frees):.0f}"
        return text if self.target is None else f"{text}  (<= {self.target:.2f})"


def compare(
    name: str, plays: list[list[workloads.Event]], capacity: int, target: float | None
) -> list[Row]:
    """Replay a workload on every pool, and print what each held."""
    print(f"{name}: peak reserved / peak live", flush=True)
    rows = []
    for pool, replay in POOLS.items():
        row = Row(f"{name}: {pool}", name, pool, target if pool == POLICY else None)
        for events in plays:
            row.add(workloads.peak_live(events), replay(events, capacity))
        print(row, flush=True)
        rows.append(row)
    return rows


def main() -> int:
    """Replay, print, write the JSON if asked; return 1 where a target is missed."""
    parser = record.arguments(__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="1 to N")
    parser.add_argument("--n", type=int, default=N, help="allocations")
    parser.add_argument("--capacity", type=int, default=80, metavar="GIB")
    parser.add_argument("--traces", type=Path, metavar="FOLDER", help="of MiniMalloc")
    options = parser.parse_args()
    capacity = options.capacity << 30

    rows: list[Row] = []
    for largest, target in TARGETS.items():
        plays = [
            workloads.random_allocations(options.n, largest * MIB, seed)
            for seed in range(1, options.seeds + 1)
        ]
        name = f"random_allocations {options.n} x {largest} MiB"
        rows += compare(name, plays, capacity, target if options.n == N else None)
    traces = sorted(options.traces.glob("*.csv")) if options.traces else []
    if not traces:
        print("MiniMalloc left out: no traces (--traces FOLDER)")
    traced: list[Row] = []
    for path in traces:
        events = workloads.minimalloc(path, SCALE)
        traced += compare(f"MiniMalloc {path.stem}", [events], capacity, None)
    rows += traced

    table = [asdict(row) | {"largest": max(row.ratios)} for row in rows]
    known: dict[str, Any] = {"n": options.n, "capacity": capacity, "scale": SCALE}
    if traces:
        known["means"] = {
            f"MiniMalloc, {pool}": mean(r.ratios[0] for r in traced if r.pool == pool)
            for pool in POOLS
        }
    record.write(options.json, table, **known)
    missed = [r for r in rows if r.target is not None and max(r.ratios) > r.target]
    for row in missed:
        print(f"missed: {row.name}: {max(row.ratios):.3f} > {row.target:.2f}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
