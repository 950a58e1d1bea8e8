"""Ufuncs on the CPU: the time of a call, of one operation, and of a chain.

Beside xdev stand NumPy and Numba's own ``vectorize``; they take turns, and their
results are compared before they are timed. ``ratio`` is a candidate's median over
NumPy's.
"""

import math
import statistics
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import record

import xdev

Calls = dict[str, Callable[[], Any]]
NUMPY = "NumPy"


def add(x: Any, y: Any) -> Any:
    """Return the sum."""
    return x + y


def chain(a: Any, x: Any, y: Any) -> Any:
    """Return a x + 3 y - sin x."""
    return a * x + y * 3 - math.sin(x)


def polynomial(x: Any) -> Any:
    """Return a polynomial of x: the chain without a function of the C library."""
    return ((2 * x - 1) * x + 0.5) * x - 0.25


OURS = {f.__name__: xdev.vectorize(f) for f in (add, chain, polynomial)}
NUMBAS = {f.__name__: numba.vectorize(f) for f in (add, chain, polynomial)}


def sums(n: int, dtype: str) -> Calls:
    """Return calls that add, with and without ``out=``."""
    x, y = np.random.default_rng(0).uniform(1, 50, (2, n)).astype(dtype)
    o = np.empty_like(x)
    ours, numbas = OURS["add"], NUMBAS["add"]
    return {
        NUMPY: lambda: np.add(x, y),
        "xdev": lambda: ours(x, y),
        "Numba": lambda: numbas(x, y),
        "NumPy out=": lambda: np.add(x, y, out=o),
        "xdev out=": lambda: ours(x, y, out=o),
        "Numba out=": lambda: numbas(x, y, out=o),
    }


def chains(n: int, dtype: str) -> Calls:
    """Return calls that compute the chain."""
    a, x, y = np.random.default_rng(0).uniform(-3, 3, (3, n)).astype(dtype)
    return {
        NUMPY: lambda: a * x + y * 3 - np.sin(x),
        "xdev": lambda: OURS["chain"](a, x, y),
        "Numba": lambda: NUMBAS["chain"](a, x, y),
    }


def polynomials(n: int, dtype: str) -> Calls:
    """Return calls that compute the polynomial."""
    x = np.random.default_rng(0).uniform(-3, 3, n).astype(dtype)
    return {
        NUMPY: lambda: polynomial(x),
        "xdev": lambda: OURS["polynomial"](x),
        "Numba": lambda: NUMBAS["polynomial"](x),
    }


def measured(name: str, calls: Calls, number: int, repeat: int) -> list[dict[str, Any]]:
    """Compare the calls' results, time them, print them; return a row for each."""
    expected = calls[NUMPY]()
    for call in calls.values():
        np.testing.assert_allclose(call(), expected, rtol=1e-4, atol=1e-5)
    samples = record.sample(calls, number, repeat)
    base = statistics.median(samples[NUMPY])
    rows = []
    for candidate, seconds in samples.items():
        ratio = statistics.median(seconds) / base
        microseconds = 1e6 * statistics.median(seconds)
        print(f"{name:24} {candidate:12} {microseconds:10.3f} µs  {ratio:6.2f} x NumPy")
        rows.append(
            {"name": f"{name}: {candidate}", "samples": seconds, "ratio": ratio}
        )
    return rows


def main() -> None:
    """Run the benchmark."""
    parser = record.arguments(__doc__ or "")
    parser.add_argument("--repeat", type=int, default=15, help="runs of each call")
    options = parser.parse_args()
    repeat = options.repeat
    rows = measured("x + y, n = 10, float32", sums(10, "f4"), 20_000, repeat)
    for dtype in ("f4", "f8"):
        for n in (10**4, 10**5, 10**6):
            title = f"x + y, n = {n}, {np.dtype(dtype)}"
            rows += measured(title, sums(n, dtype), max(10, 2 * 10**6 // n), repeat)
    for dtype in ("f4", "f8"):
        title = f"n = 100000, {np.dtype(dtype)}"
        rows += measured(
            f"a x + 3 y - sin x, {title}", chains(10**5, dtype), 10, repeat
        )
        rows += measured(f"polynomial, {title}", polynomials(10**5, dtype), 50, repeat)
    record.write(options.json, rows)


if __name__ == "__main__":
    main()
