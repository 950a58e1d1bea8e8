"""What tracking who made the blocks costs, on and off.

    python benchmarks/tracking.py [--json FILE] [--repeat 25] [--number 4000]

On: the time of a block under ``memory.track()`` less the time without, from a stack
twelve calls deep. Off: the same functions beside copies of them from which the code of
tracking is taken out. Samples are interleaved; figures are of the best ones,
since noise only slows down.
"""

import inspect
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import record

import xdev
from xdev import memory
from xdev.memory import arrays, pools
from xdev.memory.sources.host import HostSource

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = 12  # how deep the stack is
SIZES = {"100 B": 100, "1 MiB": 1 << 20}  # of what is acquired, and of arrays
SMALL = "xdev.empty, 100 B"
AGAIN = """\
                if self.state.listeners and not is_finalizing():
                    for listener in self.state.listeners:
                        listener.released(self.state, chunk)
                        listener.acquired(self.state, chunk)
"""
SERVED = """\
        if state.listeners and not is_finalizing():
            for listener in state.listeners:
                listener.acquired(state, chunk)
"""
ACTIVE = " and (TRACKING.off or not tracking.active())"


def without(function: Any, text: str) -> Any:
    """Return a copy of a function without a piece of its text, which must be there."""
    source = inspect.getsource(function)
    if text not in source:
        raise ValueError(f"{function.__qualname__} has changed: no {text!r}")
    source = source.replace(text, "")
    names = dict(vars(inspect.getmodule(function)))
    exec("from __future__ import annotations\n" + textwrap.dedent(source), names)  # noqa: S102 - our own
    return names[function.__name__]


def turns(pool: pools.Pool, size: int) -> "Callable[[], object]":
    """Return what takes two sizes in turn, so never the last one dropped."""

    def call() -> None:
        one, two = pool.acquire(size), pool.acquire(2 * size)
        pool.release(one)
        pool.release(two)

    return call


def on_rows() -> dict[str, "Callable[[], object]"]:
    """Return what is timed with tracking and without: one block a call."""
    pool = memory.pool("cpu")
    rows: dict[str, Callable[[], object]] = {}
    for name, size in SIZES.items():
        rows[f"acquire + release, {name}"] = lambda n=size: pool.release(
            pool.acquire(n)
        )
        rows[f"xdev.empty, {name}"] = lambda n=size: xdev.empty(
            n, dtype=xdev.uint8, device="cpu"
        )
    return rows


def off_rows() -> dict[str, tuple["Callable[[], object]", "Callable[[], object]"]]:
    """Return what is timed as it is, and without the code of tracking."""

    class Bare(pools.Pool):  # type: ignore[misc] # it is final, but for this
        take = without(pools.Pool.take, AGAIN)
        _serve = without(pools.Pool._serve, SERVED)  # noqa: SLF001

    bare_array = without(arrays.host_array, ACTIVE)
    dtype = np.dtype("u1")
    rows: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {}
    for name, size in SIZES.items():
        ours, bare = pools.Pool(HostSource()), Bare(HostSource())
        rows[f"acquire + release, {name}"] = tuple(
            lambda pool=pool, n=size: pool.release(pool.acquire(n))
            for pool in (ours, bare)
        )
        rows[f"the same of two, {name}"] = turns(ours, size), turns(bare, size)
        rows[f"host array, {name}"] = (
            lambda n=size: arrays.host_array((n,), dtype),
            lambda n=size: bare_array((n,), dtype),
        )
    return rows


def deep(calls: int, function: "Callable[[], Any]") -> Any:
    """Call from a deep stack."""
    return deep(calls - 1, function) if calls else function()


def main() -> None:
    """Measure, print the table, and write the JSON if asked."""
    parser = record.arguments(__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=25)
    parser.add_argument("--number", type=int, default=4000)
    options = parser.parse_args()
    table: list[dict[str, Any]] = []

    def sample(rows: dict[str, Any]) -> dict[str, list[float]]:
        return deep(CALLS, lambda: record.sample(rows, options.number, 1))

    on = on_rows()
    samples: dict[str, dict[str, list[float]]] = {
        name: {"off": [], "on": []} for name in on
    }
    for _ in range(options.repeat):
        for name, seconds in sample(on).items():
            samples[name]["off"] += seconds
        with memory.track():
            for name, seconds in sample(on).items():
                samples[name]["on"] += seconds
    for name, taken in samples.items():
        off, tracked = (min(taken[way]) * 1e6 for way in ("off", "on"))
        cost = tracked - off
        wanted = "<= 2" if name != SMALL else "while off it is NumPy's: not of the pool"
        times = f"{off:.2f} -> {tracked:.2f} us: {cost:+.2f} us a block"
        print(f"on:  {name:<26} {times} ({wanted})")
        table.append({"name": f"on: {name}", "samples": taken, "cost": cost / 1e6})

    for name, (ours, bare) in off_rows().items():
        pair = {"with": ours, "without": bare}
        record.sample(pair, options.number, 2)  # warm
        taken = record.sample(pair, options.number, 4 * options.repeat)
        ratio = min(taken["with"]) / min(taken["without"])
        print(f"off: {name:<26} x {ratio:.3f} (<= 1.02)")
        table.append({"name": f"off: {name}", "samples": taken, "ratio": ratio})
    record.write(options.json, table)


if __name__ == "__main__":
    main()
