"""What xdev adds to Dask: time, tasks, and the cost of a chunk.

    python benchmarks/chunks.py [--json FILE] [--chunks 100 1000 10000] [--workers 2]

*A function over chunks*: one call and its computation, of collections in memory, beside
``map_blocks`` written by hand with the same function; the claim is at most 5 % more for
chunks of 16 MB and above. *Three steps*: a program built and run over n small chunks,
which is Dask's own cost, in threads and in processes, beside plain ``dask.array``.
``tasks`` are those of its optimized graph, of which the claim is at most 1.1 times as
many; ``a task`` is the whole time over them, ``building`` the part before the
computation. ``growth`` is the exponent of n that fits the three largest sizes: 1 is
linear. ``load`` is the machine's before, others' programs included, on which the
processor's time in all threads hardly depends.
"""

from __future__ import annotations

import os
import statistics
import time
from functools import partial
from itertools import chain
from math import log
from typing import TYPE_CHECKING, Any

import dask
import numpy as np
import record
from dask import array as da

import xdev
from xdev import distributed

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 2**20
TOTAL = 256 * MIB  # of a collection in memory
SMALL = 1000  # elements of a chunk whose computation is nothing beside its task
MEGABYTES = (1, 16, 64)
THREADS = "threads"
MOST_IN_WORKERS = 10_000  # chunks: a task costs the scheduler ten times as much there


@xdev.vectorize
def wave(x: Any) -> Any:
    """Compute what keeps a loop busy."""
    return x * x * 0.5 + 3.0 * x


def by_hand(function: Callable[[Any], Any], x: Any) -> Any:
    """Map a function over blocks as Dask's documentation has it."""
    return x.map_blocks(function, dtype=x.dtype, meta=x._meta)  # noqa: SLF001


def overhead(megabytes: int, repeat: int) -> list[dict[str, Any]]:
    """Measure functions over chunks of a size, beside ``map_blocks``."""
    elements = megabytes * MIB // 8
    x = xdev.ones(TOTAL // 8, chunks=elements).persist()
    pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "sqrt": (lambda: xdev.sqrt(x), lambda: by_hand(np.sqrt, x)),
        "@vectorize": (lambda: wave(x), lambda: by_hand(wave, x)),
        "map": (lambda: distributed.map(np.sqrt, x), lambda: by_hand(np.sqrt, x)),
    }

    def run(call: Callable[[], Any]) -> Callable[[], object]:
        # Each result goes at once, as from the hand of a reduction.
        return lambda: by_hand(_nothing, call()).persist()

    rows = []
    for what, calls in pairs.items():
        timed = dict(zip(("xdev", "map_blocks"), map(run, calls), strict=True))
        for call in timed.values():
            call()
        samples, processor = sample(timed, repeat)
        group = f"{what}, chunks of {megabytes} MiB"
        ours, theirs = (
            _row(group, name, samples[name], processor=statistics.median(each))
            for name, each in processor.items()
        )
        ours["ratio"], ours["processor_ratio"] = (
            statistics.median(a / b for a, b in zip(*each.values(), strict=True))
            for each in (samples, processor)
        )
        text = "{ratio:.3f} of map_blocks, {processor_ratio:.3f} of its processor time"
        _print(ours, text.format_map(ours))
        rows += [ours, theirs]
    return rows


def sample(
    calls: dict[str, Callable[[], object]], repeat: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the calls' seconds, and those of the processor in all of their threads."""
    processor: dict[str, list[float]] = {name: [] for name in calls}

    def run(name: str) -> None:
        start = time.process_time()
        calls[name]()
        processor[name].append(time.process_time() - start)

    seconds = record.sample({name: partial(run, name) for name in calls}, 1, repeat)
    return seconds, processor


def _nothing(block: Any) -> Any:
    return block[:1]


def with_xdev(chunks: int) -> Any:
    """Three steps and a sum in xdev's words."""
    x = xdev.arange(float(chunks * SMALL), chunks=SMALL)
    return xdev.sum(xdev.multiply(xdev.sqrt(x), 2.0))


def with_dask(chunks: int) -> Any:
    """Run the same in Dask's."""
    x = da.arange(float(chunks * SMALL), chunks=SMALL)
    return da.sum(da.multiply(da.sqrt(x), 2.0))


PROGRAMS = {"xdev": with_xdev, "dask.array": with_dask}


def tasks(program: Callable[[int], Any], chunks: int) -> int:
    """Return how many tasks a program's optimized graph has."""
    (optimized,) = dask.optimize(program(chunks))
    return len(optimized.__dask_graph__())


def scaling(chunks: int, repeat: int, where: str) -> list[dict[str, Any]]:
    """Measure the program of three steps over so many chunks."""
    building: dict[str, list[float]] = {name: [] for name in PROGRAMS}

    def built_and_run(name: str) -> Any:
        start = time.perf_counter()
        program = PROGRAMS[name](chunks)
        building[name].append(time.perf_counter() - start)
        return program.compute()

    calls = {name: partial(built_and_run, name) for name in PROGRAMS}
    if repeat > 1:
        values = {float(call()) for call in calls.values()}
        assert max(values) - min(values) <= 1e-9 * max(values)  # noqa: S101
    rows = []
    samples, processor = sample(calls, repeat)
    for name, seconds in samples.items():
        count, whole = tasks(PROGRAMS[name], chunks), statistics.median(seconds)
        row = _row(f"three steps, {where}", name, seconds)
        row |= {"n": chunks, "tasks": count, "task_cost": whole / count}
        row["building"] = statistics.median(building[name])
        if where == THREADS:
            row["processor"] = statistics.median(processor[name])
        _print(
            row,
            f"{chunks:>8,} chunks {count:>9,} tasks, {row['task_cost'] * 1e6:.0f} us",
        )
        rows.append(row)
    return rows


def growth(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return each candidate's exponent of n, of the three largest sizes."""
    found = {}
    for name in PROGRAMS:
        points = [
            (log(row["n"]), log(statistics.median(row["samples"])))
            for row in rows
            if row["candidate"] == name
        ]
        points = sorted(points)[-3:]
        if len(points) > 1:
            found[name] = statistics.linear_regression(*zip(*points, strict=True)).slope
    return found


def _row(
    group: str, candidate: str, seconds: list[float], **facts: Any
) -> dict[str, Any]:
    name = f"{group}: {candidate}"
    samples = {"samples": seconds, **facts}
    return {"name": name, "group": group, "candidate": candidate, **samples}


def _print(row: dict[str, Any], text: str) -> None:
    milliseconds = statistics.median(row["samples"]) * 1e3
    print(f"{row['name']:52}{milliseconds:10.2f} ms  {text}", flush=True)


def main() -> None:
    """Measure in threads of this process, then in workers."""
    parser = record.arguments(__doc__ or "")
    parser.add_argument("--repeat", type=int, default=7, help="(default: 7)")
    parser.add_argument(
        "--chunks", type=int, nargs="+", default=[100, 1000, 10_000, 100_000]
    )
    parser.add_argument("--workers", type=int, default=2, help="(default: 2)")
    options = parser.parse_args()
    load = os.getloadavg()[0]

    def sizes(where: str) -> list[dict[str, Any]]:
        return [
            row
            for n in options.chunks
            if where == THREADS or n <= MOST_IN_WORKERS
            for row in scaling(n, max(1, min(options.repeat, 20_000 // n)), where)
        ]

    over = [row for size in MEGABYTES for row in overhead(size, 3 * options.repeat)]
    three_steps = {THREADS: sizes(THREADS)}
    if options.workers:
        from distributed import Client

        where = f"{options.workers} workers"
        with (
            distributed.local_cluster(
                options.workers, device="cpu", dashboard_address=":0"
            ) as cluster,
            Client(cluster),
        ):
            three_steps[where] = sizes(where)
    record.write(
        options.json,
        [*chain.from_iterable(three_steps.values()), *over],
        claim="at most 1.05 of map_blocks for 16 MiB and above; 1.1 of the tasks",
        load=load,
        growth={where: growth(each) for where, each in three_steps.items()},
    )


if __name__ == "__main__":
    main()
