"""What memory from the pool costs beside what it replaces.

    python benchmarks/pool.py [--json FILE] [--repeat 15] [--n 100000]

On the CPU: acquire and release on a class hit; 64 MiB of float32 allocated and touched
once a page, by ``xdev.empty`` and by ``numpy.empty``. On CUDA, host time at n float32:
``cupy.empty`` through the pool and on CuPy's own pool, ``xdev.empty``, ``torch.empty``
where PyTorch is. Repeats are interleaved, so a slow moment falls on every row alike:
a ratio is the median of the repeats' ratios. The JSON holds each row's raw samples, in
seconds a call.
"""

import gc
from dataclasses import dataclass, field
from statistics import median, stdev
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import record

import xdev
from xdev import memory
from xdev.timing.verdict import ratio

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = 4096
LARGE = 64 << 20
SHORTEST = 0.005  # what one sample takes at least [s]


@dataclass
class Row:
    """One candidate."""

    name: str
    call: "Callable[[], object]"
    before: "Callable[[], object]" = lambda: None
    loops: int = 1
    seconds: list[float] = field(default_factory=list)

    def calibrate(self) -> None:
        """Choose how many calls one sample takes."""
        self.before()
        self.call()
        while self._time() < SHORTEST:
            self.loops *= 2

    def _time(self) -> float:
        call, start = self.call, perf_counter()
        for _ in range(self.loops):
            call()
        return perf_counter() - start

    def sample(self) -> None:
        """Add one sample."""
        self.before()
        self.call()
        self.seconds.append(self._time() / self.loops)


def measure(rows: list[Row], repeat: int) -> None:
    """Time every row ``repeat`` times, in turn, the garbage collector off."""
    for row in rows:
        row.calibrate()
    gc.collect()
    gc.disable()
    try:
        for _ in range(repeat):
            for row in rows:
                row.sample()
    finally:
        gc.enable()


def cpu_rows() -> list[Row]:
    """Return the rows that every machine has."""
    pool, shape = memory.pool("cpu"), LARGE // 4

    def acquire_release() -> None:
        pool.release(pool.acquire(LARGE))

    def touch_pool() -> None:
        xdev.empty(shape, dtype=xdev.float32, device="cpu")[:: PAGE // 4] = 1

    def touch_numpy() -> None:
        np.empty(shape, np.float32)[:: PAGE // 4] = 1

    def acquire_drop() -> None:
        pool.acquire(LARGE)

    return [
        Row("acquire + release", acquire_release),
        Row("acquire + drop", acquire_drop),
        Row("xdev.empty 64 MiB, touched", touch_pool),
        Row("numpy.empty 64 MiB, touched", touch_numpy),
    ]


def cuda_rows(n: int) -> list[Row]:
    """Return the rows of a machine with a GPU."""
    import cupy

    device = xdev.Device("cuda").require()
    memory.bridges.install("cupy")
    ours, theirs = cupy.cuda.get_allocator(), cupy.get_default_memory_pool().malloc

    def use(allocator: object) -> "Callable[[], object]":
        return lambda: cupy.cuda.set_allocator(allocator)

    def cupy_empty() -> None:
        cupy.empty(n, "f4")

    def xdev_empty() -> None:
        xdev.empty(n, dtype=xdev.float32, device=device)

    def stream() -> None:
        _ = cupy.cuda.get_current_stream().ptr

    x, y = cupy.ones(n, "f4"), cupy.ones(n, "f4")

    def add() -> None:
        x + y

    rows = [
        Row("cupy.empty, pool", cupy_empty, use(ours)),
        Row("cupy.empty, CuPy's own", cupy_empty, use(theirs)),
        Row("xdev.empty", xdev_empty, use(ours)),
        Row("cupy x + y, pool", add, use(ours)),
        Row("cupy x + y, CuPy's own", add, use(theirs)),
        Row("current stream", stream),
    ]
    try:
        import torch
    except ImportError:
        return rows

    def torch_empty() -> None:
        torch.empty(n, dtype=torch.float32, device="cuda")

    return [*rows, Row("torch.empty", torch_empty)]


# Who does the same as who.
TASKS = {
    "xdev.empty 64 MiB, touched": {"task": "empty, 64 MiB, touched"},
    "numpy.empty 64 MiB, touched": {"task": "empty, 64 MiB, touched"},
    "cupy.empty, pool": {"task": "cupy.empty", "candidate": "xdev's pool"},
    "cupy.empty, CuPy's own": {"task": "cupy.empty", "candidate": "CuPy's own pool"},
    "cupy x + y, pool": {"task": "cupy x + y", "candidate": "xdev's pool"},
    "cupy x + y, CuPy's own": {"task": "cupy x + y", "candidate": "CuPy's own pool"},
    "xdev.empty": {"task": "empty"},
    "torch.empty": {"task": "empty"},
}
RATIOS = {  # name: rows compared, and what the ratio should be
    "numpy.empty / xdev.empty, touched": (
        "numpy.empty 64 MiB, touched",
        "xdev.empty 64 MiB, touched",
        ">= 10",
    ),
    "cupy.empty: pool / CuPy's own": (
        "cupy.empty, pool",
        "cupy.empty, CuPy's own",
        "<= 1.05",
    ),
    "xdev.empty / cupy.empty on CuPy's own": (
        "xdev.empty",
        "cupy.empty, CuPy's own",
        "<= 0.9",
    ),
    "cupy x + y: pool / CuPy's own": (
        "cupy x + y, pool",
        "cupy x + y, CuPy's own",
        "<= 1.03",
    ),
    "xdev.empty / torch.empty": ("xdev.empty", "torch.empty", "<= 0.9"),
}


def main() -> None:
    """Measure, print the table, and write the JSON if asked."""
    parser = record.arguments(__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--n", type=int, default=100_000)
    options = parser.parse_args()

    groups = [cpu_rows()]
    if xdev.Device("cuda").available:
        groups.append(cuda_rows(options.n))
    else:
        print(f"CUDA rows left out: {xdev.Device('cuda').reason}")
    for rows in groups:
        measure(rows, options.repeat)
        rows[0].before()  # on CUDA: the pool's allocator again

    rows = {row.name: row for group in groups for row in group}
    for row in rows.values():
        spread = stdev(row.seconds) if len(row.seconds) > 1 else 0.0
        mid = median(row.seconds)
        print(f"{row.name:<32} {mid * 1e6:12.3f} us \u00b1 {spread * 1e6:.3f}")
    ratios = {}
    for name, (one, other, wanted) in RATIOS.items():
        if one in rows and other in rows:
            ratios[name] = ratio(rows[one].seconds, rows[other].seconds).middle
            print(f"{name:<38} {ratios[name]:8.2f}  ({wanted})")
    table = [
        {"name": row.name, "loops": row.loops, "samples": row.seconds}
        | TASKS.get(row.name, {})
        for row in rows.values()
    ]
    record.write(options.json, table, n=options.n, ratios=ratios)


if __name__ == "__main__":
    main()
