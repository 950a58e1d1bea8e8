"""Whether memory stays flat in a long run of mixed work, and every result is right.

    python benchmarks/long_run.py [--device cpu|cuda] [--seconds 3600] [--json FILE]

Rounds of everything at once, on arrays of 1 to 2^18 elements: arrays that stay for a
while, functions with and without ``out=``, reductions, sorts, views, copies from
pageable and pinned memory, ``batches``, random numbers, threads with a stream each,
``free``, errors that are caught (out of memory under a limit, other devices, wrong
shapes); on the CPU every other round with NumPy's memory from the pool. Each result is
compared with NumPy's: one that is wrong is a hazard, and fails the run. The pools give
back what they cache once a minute.

Between rounds, every few seconds: the bytes that the pools reserved and that are in
use, and the process's resident memory without the pages that the C library keeps free
(glibc gives them back first). A straight line is fitted through each minute's mean,
but for the first quarter: within a minute the pools fill, and samples depend on each
other; so runs of less than five minutes tell nothing. Reserved and process memory are
flat if they grow by less than 1 % or 8 MiB an hour, whichever is more, or by less than
chance makes of so many minutes in one run of 40 (Student's t), which matters in short
runs.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import time
from collections import deque
from contextlib import contextmanager
from pathlib import Path
from resource import getpagesize
from typing import TYPE_CHECKING, Any

import numpy as np
import record

import xdev
from xdev import errors, memory, native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIBC = ctypes.CDLL(None)
MIB = 1 << 20
LARGEST = 18  # of an array: 2^18 elements
HELD = 64  # arrays that stay while others come and go
MINUTE = 60.0  # between two times that the pools give back what they cache [s]
SELDOM = 16  # rounds between two under a limit, where the pool gives its cache back
SHARE, BYTES = 0.01, 8 * MIB  # the growth of an hour that is still flat


class WrongError(Exception):
    """A result is not NumPy's."""


@xdev.vectorize
def multiple(a: float, x: float, y: float) -> float:
    """Return a multiple of ``x``, and ``y``."""
    return a * x + y


class Work:
    """The pieces of work on one device, each a method that checks what it computed."""

    def __init__(self, device: xdev.Device, seed: int = 0) -> None:
        self.device = device
        self.rng = np.random.default_rng(seed)
        self.held: deque[tuple[Any, int]] = deque()

    @property
    def pieces(self) -> dict[str, Callable[[], None]]:
        """What a round does, by name."""
        return {
            "allocations": self.allocations,
            "functions": self.functions,
            "reductions": self.reductions,
            "sorts": self.sorts,
            "views": self.views,
            "copies": self.copies,
            "batches": self.batches,
            "random numbers": self.random_numbers,
            "threads": self.threads,
            "frees": self.frees,
            "errors": self.errors,
            "out of memory": self.out_of_memory,
        }

    def on_host(self, kind: str = "float32") -> Any:
        """Return a NumPy array of small integers, so that sums of them are exact."""
        n = int(2 ** self.rng.uniform(0, LARGEST))
        return self.rng.integers(0, 16, n).astype(kind)

    def to_device(self, array: Any) -> Any:
        """Return a copy on the device."""
        return xdev.to_device(array, self.device, copy=True)

    def allocations(self) -> None:
        """Fill arrays that stay; drop old ones, which nobody may have written to."""
        for _ in range(16):
            n, value = int(2 ** self.rng.uniform(0, LARGEST)), len(self.held) % 100
            array = xdev.full(n, value, dtype=xdev.int32, device=self.device)
            self.held.append((array, value))
            if len(self.held) > HELD:
                self.held.rotate(int(self.rng.integers(HELD)))
                array, value = self.held.popleft()
                same(array, np.full(array.shape, value, np.int32))

    def functions(self) -> None:
        """Compute elementwise, into new arrays and into one that is there."""
        x = self.on_host()
        y = x[::-1].copy()
        on_x, on_y = self.to_device(x), self.to_device(y)
        out = xdev.empty_like(on_x)
        same(xdev.add(on_x, on_y), x + y)
        same(xdev.multiply(on_x, on_y, out=out), x * y)
        same(multiple(2, on_x, on_y), 2 * x + y)
        same(multiple(3, on_x, on_y, out=out), 3 * x + y)
        same(xdev.where(on_x > on_y, on_x, on_y), np.where(x > y, x, y))
        close(xdev.sin(on_x), np.sin(x))

    def reductions(self) -> None:
        """Reduce whole arrays and rows."""
        x = self.on_host("float64")
        on = self.to_device(x)
        same(xdev.sum(on), x.sum())
        same(xdev.argmax(on), x.argmax())
        same(xdev.cumulative_sum(on), x.cumsum())
        close(xdev.var(on), x.var())
        rows = x[: x.size // 4 * 4].reshape(4, -1)
        same(xdev.sum(xdev.reshape(on[: rows.size], rows.shape), axis=0), rows.sum(0))

    def sorts(self) -> None:
        """Sort, and find places."""
        x = self.on_host("int64")
        on = self.to_device(x)
        same(xdev.sort(on), np.sort(x))
        same(xdev.argsort(on), np.argsort(x, stable=True))
        same(xdev.unique_values(on), np.unique(x))
        same(xdev.nonzero(on)[0], np.nonzero(x)[0])

    def views(self) -> None:
        """Read and write parts of arrays."""
        x = self.on_host()
        on = self.to_device(x)
        part = on[1::3]
        same(part[::-1], x[1::3][::-1])
        part[...] = 7
        on[::2] = on[::2] + 1
        x[1::3] = 7
        x[::2] += 1
        same(on, x)
        table = x[: x.size // 2 * 2].reshape(2, -1)
        same(xdev.reshape(on[: table.size], table.shape).T, table.T)

    def copies(self) -> None:
        """Copy both ways, by pageable and by pinned memory, waiting and not."""
        x = self.on_host()
        pinned = xdev.pin(x)
        up = xdev.to_device(pinned, self.device, non_blocking=True, copy=True)
        same(up, x)
        same(xdev.to_device(x, self.device, out=xdev.empty_like(up)), x)
        down = xdev.empty_pinned(x.shape, x.dtype)
        xdev.to_numpy(up, out=down, non_blocking=True)
        xdev.synchronize(self.device)
        same(down, x)

    def batches(self) -> None:
        """Copy batches while others are computed with."""
        parts = [self.on_host() for _ in range(5)]
        for x, on in zip(parts, xdev.batches(parts, self.device), strict=True):
            same(xdev.sum(on), x.sum())

    def random_numbers(self) -> None:
        """Draw the same numbers twice, and numbers that stand apart."""
        seed, n = int(self.rng.integers(1 << 30)), self.on_host().size
        twice = [xdev.random.default_rng(seed, self.device) for _ in range(2)]
        first, second = (xdev.to_numpy(rng.random(n)) for rng in twice)
        same(second, first)
        check(bool((first >= 0).all() and (first < 1).all()), "not within [0, 1)")
        first, second = (xdev.to_numpy(rng.integers(0, 9, n)) for rng in twice)
        same(second, first)
        check(bool((first >= 0).all() and (first < 9).all()), "not within [0, 9)")

    def threads(self) -> None:
        """Compute in four threads, each on a stream of its own."""
        seeds, raised = self.rng.integers(1 << 30, size=4), []

        def run(seed: int) -> None:
            try:
                with xdev.use_device(self.device), xdev.Stream(self.device) as stream:
                    own = Work(self.device, seed)
                    for piece in (own.functions, own.reductions, own.copies, own.views):
                        piece()
                    stream.synchronize()
            except BaseException as error:  # noqa: BLE001 - is raised in the main thread
                raised.append(error)

        started = [threading.Thread(target=run, args=(int(seed),)) for seed in seeds]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        if raised:
            raise raised[0]

    def frees(self) -> None:
        """Give memory back at once; what was given back cannot be read."""
        if self.device.type == "cpu":  # where small arrays are NumPy's own
            array = xdev.empty_pinned(2**LARGEST, np.float32)
        else:
            array = self.to_device(self.on_host())
        part = array[:1]
        with refused(errors.InUseError):
            memory.free(array)
        del part
        check(memory.free(array) > 0, "nothing was given back")
        with refused(errors.UseAfterFreeError):
            memory.free(array)

    def errors(self) -> None:
        """Ask for what cannot be; the next call is right."""
        other = "fake" if self.device.type == "cpu" else "cpu"
        x = self.to_device(np.ones(3, np.float32))
        with refused(errors.DeviceMismatchError):
            xdev.add(x, xdev.ones(3, dtype=xdev.float32, device=other))
        with refused(ValueError):
            xdev.add(x, xdev.zeros(2, dtype=xdev.float32, device=self.device))
        with refused(ValueError):
            xdev.empty(2**63 - 1, device=self.device)
        same(xdev.add(x, x), np.full(3, 2, np.float32))

    def out_of_memory(self) -> None:
        """Ask for more than a limit allows; the next call is right."""
        memory.set_limit(memory.reserved(self.device) + MIB, self.device)
        try:
            with refused(errors.OutOfMemoryError):
                memory.pool(self.device).acquire(1 << 36)
        finally:
            memory.set_limit(None, self.device)
        self.functions()


def check(right: bool, what: str) -> None:
    """Raise unless a result is right."""
    if not right:
        raise WrongError(what)


def same(array: Any, expected: Any) -> None:
    """Raise unless an array of any device equals NumPy's, bit for bit."""
    array = xdev.to_numpy(array)
    check(np.array_equal(array, expected), f"{array} is not {expected}")


def close(array: Any, expected: Any) -> None:
    """Raise unless an array of any device is NumPy's but for rounding."""
    array = xdev.to_numpy(array)
    check(np.allclose(array, expected, 1e-5, 1e-6), f"{array} is not {expected}")


@contextmanager
def refused(kind: type[Exception]) -> Iterator[None]:
    """Raise unless what is called raises an error of this kind."""
    try:
        yield
    except kind:
        return
    message = f"no {kind.__name__} was raised"
    raise WrongError(message)


def sample(device: xdev.Device) -> dict[str, int]:
    """Return what is in use, by name [B]."""
    kinds = dict.fromkeys((str(device), "cpu"))
    if hasattr(LIBC, "malloc_trim"):
        LIBC.malloc_trim(0)
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return {
        "reserved": sum(memory.reserved(each) for each in kinds),
        "allocated": sum(memory.allocated(each) for each in kinds),
        "process": int(pages) * getpagesize(),
    }


def fitted(seconds: list[float], nbytes: list[int]) -> dict[str, Any]:
    """Return the growth of an hour in the last three quarters, and whether it is flat.

    Examples
    --------
    >>> fitted([0.0, 900.0, 1800.0, 2700.0, 3600.0], [0, 50, 50, 50, 50])
    {'mean': 50, 'growth an hour': 0, 'standard error': 0, 'flat': True}
    """
    first = len(seconds) // 4
    times, values = np.array(seconds[first:]), np.array(nbytes[first:], float)
    _, minutes, samples = np.unique(
        times // MINUTE, return_inverse=True, return_counts=True
    )
    hours = np.bincount(minutes, times) / samples / 3600
    y = np.bincount(minutes, values) / samples
    off = hours - hours.mean()
    spread = float(off @ off) or 1.0
    slope = float(off @ y) / spread
    left = y - y.mean() - slope * off
    error = float(left @ left / max(len(y) - 2, 1) / spread) ** 0.5
    mean = float(y.mean())
    flat = slope < max(SHARE * mean, BYTES, students(len(y) - 2) * error)
    told = {"mean": mean, "growth an hour": slope, "standard error": error}
    return {name: round(value) for name, value in told.items()} | {"flat": flat}


def students(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t (Abramowitz and Stegun, 26.7.5).

    Examples
    --------
    >>> round(students(4), 1), round(students(10**6), 2)
    (2.8, 1.96)
    """
    z, n = 1.959964, max(freedom, 1)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3


def rounds(
    device: xdev.Device, seconds: float, every: float
) -> tuple[list[dict[str, Any]], dict[str, list[Any]]]:
    """Work for so long; return a row for each piece of work, and the curve."""
    work = Work(device)
    rows: list[dict[str, Any]]
    rows = [{"name": name, "times": 0, "hazards": 0} for name in work.pieces]
    curve: dict[str, list[Any]] = {"seconds": []}
    start = reclaimed = time.monotonic()
    number, told = 0, start
    bridge = device.type == "cpu" and native.STATE == native.COMPILED
    while time.monotonic() - start < seconds:
        number += 1
        bridged = bridge and number % 2
        if bridged:
            memory.bridges.install("numpy")
        for row in rows[: None if number % SELDOM == 0 else -1]:
            row["times"] += 1
            try:
                work.pieces[row["name"]]()
            except Exception as error:  # noqa: BLE001 - each is counted and told
                row["hazards"] += 1
                row.setdefault("first", f"{type(error).__name__}: {error}"[:300])
        if bridged:
            memory.bridges.uninstall("numpy")
        now = time.monotonic()
        if now >= told:
            told = now + every
            gc.collect()
            curve["seconds"].append(round(now - start, 1))
            for name, nbytes in sample(device).items():
                curve.setdefault(name, []).append(nbytes)
        if now - reclaimed > MINUTE:
            reclaimed = now
            print(
                f"{now - start:6.0f} s, {number} rounds, {sample(device)}", flush=True
            )
            memory.reclaim()
    return rows, curve


def main() -> int:
    """Run, tell what grew and what was wrong, write the record; 1 after a hazard."""
    parser = record.arguments((__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default=None, help="(default: xdev's)")
    parser.add_argument("--seconds", type=float, default=480, help="(default: 480)")
    parser.add_argument("--every", type=float, default=5, help="a sample [s]")
    options = parser.parse_args()
    device = xdev.Device(options.device or xdev.default_device()).require()
    rows, curve = rounds(device, options.seconds, options.every)
    lines = {name: fitted(curve["seconds"], curve[name]) for name in curve}
    del lines["seconds"]
    hazards = sum(row["hazards"] for row in rows)
    flat = lines["reserved"]["flat"] and lines["process"]["flat"]
    for row in rows:
        print(
            f"{row['name']:16} {row['times']:8} times, {row['hazards']} wrong", end=""
        )
        print(f"  {row.get('first', '')}")
    for name, line in lines.items():
        print(f"{name:16} {line}")
    print(f"{hazards} hazards; {'flat' if flat else 'not flat'}")
    facts = {"device": str(device), "seconds": round(options.seconds), "flat": flat}
    facts |= {"hazards": hazards, "bytes": lines, "curve": curve}
    record.write(options.json, rows, **facts)
    return 1 if hazards else 0


if __name__ == "__main__":
    sys.exit(main())
