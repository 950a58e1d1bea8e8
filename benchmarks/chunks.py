"""What xdev adds to Dask: time, tasks, and the cost of a chunk.

    python benchmarks/chunks.py [--json FILE] [--chunks 100 1000 10000] [--workers 2]

*A function over blocks*: one call and its computation, of collections in memory, beside
``map_blocks`` written by hand with the same function; the claim is at most 5 % more for
chunks of 16 MB and above. *Tasks*: those of the optimized graph of a program of three
steps, beside plain ``dask.array``; at most 1.1 times as many. *Chunks*: that program
built and run over more and more small chunks, which is Dask's own cost, in threads, or
with ``--workers`` in as many processes.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
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
    calls: dict[str, Callable[[], Any]] = {
        "sqrt: xdev": lambda: xdev.sqrt(x),
        "sqrt: map_blocks": lambda: by_hand(np.sqrt, x),
        "@vectorize: xdev": lambda: wave(x),
        "@vectorize: map_blocks": lambda: by_hand(wave, x),
        "map: xdev": lambda: distributed.map(np.sqrt, x),
        "map: map_blocks": lambda: by_hand(np.sqrt, x),
    }

    def run(call: Callable[[], Any]) -> Callable[[], object]:
        # Each result goes at once, as from the hand of a reduction.
        return lambda: by_hand(_nothing, call()).persist()

    timed = {name: run(call) for name, call in calls.items()}
    for call in timed.values():
        call()
    samples = record.sample(timed, 1, repeat)
    rows = []
    for name, seconds in samples.items():
        what, _, candidate = name.partition(": ")
        task = f"{what}, chunks of {megabytes} MiB"
        rows.append(_row(task, candidate, seconds, megabytes=megabytes))
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        ratio = [
            a / b for a, b in zip(first["samples"], second["samples"], strict=True)
        ]
        first["ratio"] = statistics.median(ratio)
        _print(first, f"{first['ratio']:.3f} of map_blocks")
    return rows


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


def scaling(chunks: int, repeat: int) -> list[dict[str, Any]]:
    """Measure the program of three steps over so many chunks."""
    calls = {
        name: lambda program=program: program(chunks).compute()
        for name, program in PROGRAMS.items()
    }
    values = {float(call()) for call in calls.values()}
    assert max(values) - min(values) <= 1e-9 * max(values)  # noqa: S101
    rows = []
    for name, seconds in record.sample(calls, 1, repeat).items():
        count = tasks(PROGRAMS[name], chunks)
        each = statistics.median(seconds) / count
        row = _row("three steps", name, seconds, n=chunks, tasks=count, task_cost=each)
        _print(row, f"{chunks:>8,} chunks {count:>9,} tasks {each * 1e6:8.1f} us each")
        rows.append(row)
    ratio = rows[0]["tasks"] / rows[1]["tasks"]
    print(f"{'':36}{ratio:.3f} times the tasks of dask.array")
    return rows


def _row(
    task: str, candidate: str, seconds: list[float], **facts: Any
) -> dict[str, Any]:
    name = f"{task}: {candidate}"
    samples = {"samples": seconds, **facts}
    return {"name": name, "task": task, "candidate": candidate, **samples}


def _print(row: dict[str, Any], text: str) -> None:
    milliseconds = statistics.median(row["samples"]) * 1e3
    print(f"{row['name']:36}{milliseconds:10.2f} ms  {text}", flush=True)


def main() -> None:
    """Measure in threads of this process, and in workers where they are asked for."""
    parser = record.arguments(__doc__ or "")
    parser.add_argument("--repeat", type=int, default=7, help="(default: 7)")
    parser.add_argument("--chunks", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--workers", type=int, default=0, help="processes (default: 0)")
    options = parser.parse_args()
    with ExitStack() as stack:
        if options.workers:
            from distributed import Client

            cluster = distributed.local_cluster(
                options.workers, device="cpu", dashboard_address=None
            )
            stack.enter_context(Client(stack.enter_context(cluster)))
        rows = []
        if not options.workers:
            rows += [
                row for size in MEGABYTES for row in overhead(size, options.repeat)
            ]
        for chunks in options.chunks:
            rows += scaling(chunks, max(1, min(options.repeat, 20_000 // chunks)))
    claim = "at most 1.05 of map_blocks for 16 MiB and above; at most 1.1 of the tasks"
    record.write(options.json, rows, claim=claim, workers=options.workers)


if __name__ == "__main__":
    main()
