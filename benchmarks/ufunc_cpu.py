"""Ufuncs on the CPU: calls, the four operations, chains, sums, two cores beside one.

Beside xdev stand NumPy, Numba's own ``vectorize`` and, for the chain, numexpr where it
is installed; they take turns, and their results are compared before they are timed.
All but the last rows are of one core. ``ratio`` is a candidate's median over that of
the first of its group, ``least`` the same of their quickest runs, which other programs
disturb less.
"""

import importlib.util
import itertools
import math
import os
import statistics
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import record

import xdev
from xdev import _config

Calls = dict[str, Callable[[], Any]]
SIZES = (10**4, 10**5, 10**6, 10**7)


def add(x: Any, y: Any) -> Any:
    """Return the sum."""
    return x + y


def subtract(x: Any, y: Any) -> Any:
    """Return the difference."""
    return x - y


def multiply(x: Any, y: Any) -> Any:
    """Return the product."""
    return x * y


def divide(x: Any, y: Any) -> Any:
    """Return the quotient."""
    return x / y


def chain(a: Any, x: Any, y: Any) -> Any:
    """Return a x + 3 y - sin x."""
    return a * x + y * 3 - math.sin(x)


def polynomial(x: Any) -> Any:
    """Return a polynomial of x: a chain without a function of the C library."""
    return ((2 * x - 1) * x + 0.5) * x - 0.25


def damped(x: Any, y: Any) -> Any:
    """Return what a map leads to: much work on few bytes."""
    z = 0.0
    for _ in range(8):
        z = math.sin(z + x) * math.exp(-y * z)
    return z


def values(count: int, n: int, dtype: str) -> Any:
    """Return arrays of values at which every dtype's sums and quotients are fine."""
    return np.random.default_rng(0).uniform(1, 50, (count, n)).astype(dtype)


def calls_of_ten() -> Calls:
    """Return calls on ten elements, where the call itself is all."""
    x, y = values(2, 10, "f4")
    o = np.empty_like(x)
    ours, numbas = xdev.vectorize(add), numba.vectorize(add)
    return {
        "NumPy": lambda: np.add(x, y),
        "xdev": lambda: ours(x, y),
        "Numba": lambda: numbas(x, y),
        "NumPy out=": lambda: np.add(x, y, out=o),
        "xdev out=": lambda: ours(x, y, out=o),
        "Numba out=": lambda: numbas(x, y, out=o),
    }


def numbers_of_ten() -> Calls:
    """Return calls on ten elements and a Python number."""
    (x,) = values(1, 10, "f4")
    ours, numbas = xdev.vectorize(add), numba.vectorize(add)
    return {
        "NumPy": lambda: np.add(x, 3.0),
        "xdev": lambda: ours(x, 3.0),
        "Numba": lambda: numbas(x, 3.0),
    }


def operations(name: str, n: int, dtype: str, *, scalar: bool) -> Calls:
    """Return calls of one operation into the same array."""
    numpys = getattr(np, name)
    x, y = values(2, n, dtype)
    if scalar:
        y = y[0]
    o = np.empty_like(numpys(x, y))
    ours = xdev.vectorize(globals()[name])
    return {
        "NumPy": lambda: numpys(x, y, o),
        "xdev": lambda: ours(x, y, o),
    }


def results(n: int, dtype: str) -> Calls:
    """Return calls that make a new array, which is the pool's from 64 KiB on."""
    x, y = values(2, n, dtype)
    ours = xdev.vectorize(add)
    return {"NumPy": lambda: np.add(x, y), "xdev": lambda: ours(x, y)}


def chains(n: int, dtype: str) -> Calls:
    """Return calls that compute the chain."""
    a, x, y = values(3, n, dtype)
    ours, numbas = xdev.vectorize(chain), numba.vectorize(chain)
    calls = {
        "NumPy": lambda: a * x + y * 3 - np.sin(x),
        "xdev": lambda: ours(a, x, y),
        "Numba": lambda: numbas(a, x, y),
    }
    if importlib.util.find_spec("numexpr"):
        import numexpr

        numexpr.set_num_threads(1)
        names = {"a": a, "x": x, "y": y}
        calls["numexpr"] = lambda: numexpr.evaluate("a * x + y * 3 - sin(x)", names)
    return calls


def polynomials(n: int, dtype: str) -> Calls:
    """Return calls that compute the polynomial."""
    (x,) = values(1, n, dtype)
    ours, numbas = xdev.vectorize(polynomial), numba.vectorize(polynomial)
    return {
        "NumPy": lambda: polynomial(x),
        "xdev": lambda: ours(x),
        "Numba": lambda: numbas(x),
    }


def decay(z: Any, a: Any, b: Any) -> Any:
    """Return a function of an array and two parameters."""
    return a * math.exp(b * z)


def parameters(n: int, dtype: str, *, numbers: bool) -> Calls:
    """Return calls with two numbers, or with arrays that are full of them."""
    (z,) = values(1, n, dtype) / 50
    filled = (np.full_like(z, 2), np.full_like(z, -0.5))
    return decays(z, *((2.0, -0.5) if numbers else filled))


def slices(n: int, dtype: str) -> Calls:
    """Return calls on every other element."""
    return decays(*(x[::2] for x in values(3, 2 * n, dtype) / 50))


def decays(z: Any, a: Any, b: Any) -> Calls:
    """Return the calls of everybody."""
    o = np.empty_like(z)
    ours, numbas = xdev.vectorize(decay), numba.vectorize(decay)
    return {
        "NumPy": lambda: np.multiply(a, np.exp(b * z), out=o),
        "xdev": lambda: ours(z, a, b, out=o),
        "Numba": lambda: numbas(z, a, b, out=o),
    }


def smoothed(c: Any, n: Any, s: Any, w: Any, e: Any) -> Any:
    """Return what a stencil of five points leads to."""
    return (n + s + w + e) * 0.25 - c


def stencils(n: int, dtype: str) -> Calls:
    """Return calls of a stencil on slices of a matrix, and the same by an index."""
    u = values(n, n, dtype)
    o, p = np.zeros_like(u), np.zeros_like(u)
    around = u[:-2, 1:-1], u[2:, 1:-1], u[1:-1, :-2], u[1:-1, 2:]
    slices, inner, other = (u[1:-1, 1:-1], *around), o[1:-1, 1:-1], p[1:-1, 1:-1]
    ours = xdev.vectorize(smoothed)

    @xdev.kernel
    def kernel(i, j, u, o):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        near = u[i, j + 1] + u[i + 2, j + 1] + u[i + 1, j] + u[i + 1, j + 2]
        o[i + 1, j + 1] = near * 0.25 - u[i + 1, j + 1]

    def by_index() -> Any:
        kernel[n - 2, n - 2](u, p)
        return other

    return {
        "NumPy": lambda: np.copyto(inner, smoothed(*slices)) or inner,
        "xdev": lambda: ours(*slices, out=inner),
        "xdev kernel": by_index,
    }


def broadcasts(n: int, dtype: str) -> Calls:
    """Return calls on a matrix, a row and a column."""
    x = values(n, n, dtype)
    row, column, o = x[0] / 2, x[:, :1] / 2, np.empty_like(x)
    ours = xdev.vectorize(lambda x, a, b: x * a + b)
    return {
        "NumPy": lambda: np.add(x * row, column, out=o),
        "xdev": lambda: ours(x, row, column, out=o),
    }


def scattered(n: int, dtype: str) -> Calls:
    """Return calls that add at indices, of which many are the same."""
    rng = np.random.default_rng(0)
    indices, values = rng.integers(0, 1000, n), rng.integers(0, 3, n).astype(dtype)
    ours = xdev.vectorize(add)

    def at(ufunc: Any) -> Callable[[], Any]:
        a = np.zeros(1000, dtype)

        def call() -> Any:
            a.fill(0)
            ufunc.at(a, indices, values)
            return a

        return call

    return {"NumPy": at(np.add), "xdev": at(ours)}


def sums(n: int, dtype: str) -> Calls:
    """Return reductions by a sum, in pairs and one by one."""
    # Whole numbers whose sum is exact in any order.
    x = np.random.default_rng(0).integers(0, 3, n).astype(dtype)
    ours = xdev.vectorize(add, identity=0)
    ordered, numbas = xdev.vectorize(add), numba.vectorize(add, identity=0)
    numbas(x, x)  # its reduce needs a typing
    return {
        "NumPy": lambda: np.add.reduce(x),
        "xdev": lambda: ours.reduce(x),
        "xdev without identity": lambda: ordered.reduce(x),
        "Numba": lambda: numbas.reduce(x),
    }


def cores(function: Callable[..., Any], inputs: Any) -> Calls:
    """Return calls into one array by one thread, and by as many as there are cores."""
    ones, alls = xdev.vectorize(function), xdev.vectorize(function)
    o = np.empty_like(inputs[0])
    with_threads("1")
    ones(*inputs, out=o)
    with_threads(None)
    alls(*inputs, out=o)
    return {
        "one core": lambda: ones(*inputs, out=o),
        f"{_config.num_threads()} cores": lambda: alls(*inputs, out=o),
    }


def with_threads(count: str | None) -> None:
    """Let functions that are called first from now on use so many threads."""
    _config.num_threads.cache_clear()
    if count is None:
        os.environ.pop("XDEV_NUM_THREADS", None)
    else:
        os.environ["XDEV_NUM_THREADS"] = count


def measured(name: str, calls: Calls, number: int, repeat: int) -> list[dict[str, Any]]:
    """Compare the calls' results, time them, print them; return a row for each."""
    first = next(iter(calls))
    expected = np.array(calls[first]())
    for call in calls.values():
        np.testing.assert_allclose(call(), expected, rtol=1e-4, atol=1e-5)
        for _ in range(3):
            call()
    samples = record.sample(calls, number, repeat)
    base, least = statistics.median(samples[first]), min(samples[first])
    rows = []
    for candidate, seconds in samples.items():
        median = statistics.median(seconds)
        row = {"name": f"{name}: {candidate}", "samples": seconds}
        row |= {"ratio": median / base, "least": min(seconds) / least}
        ratios = f"{row['ratio']:6.2f} x {first} ({row['least']:.2f})"
        print(f"{name:32} {candidate:14} {1e6 * median:10.3f} µs  {ratios}")
        rows.append(row)
    return rows


def of_matrices(repeat: int) -> list[dict[str, Any]]:
    """Measure calls on slices of matrices, and on what broadcasts."""
    rows = []
    for dtype, n in itertools.product(("f4", "f8"), (50, 350, 1000)):
        title, number = f"{n} x {n}, {np.dtype(dtype)}", 10**7 // n**2 + 2
        rows += measured(f"a stencil, {title}", stencils(n, dtype), number, repeat)
        lines = broadcasts(n, dtype)
        rows += measured(f"row and column, {title}", lines, number, repeat)
    return rows


def complexes(dtype: str, function: Callable[[Any], Any]) -> Calls:
    """Return calls of a function of complex numbers."""
    real, imag = np.random.default_rng(0).uniform(-2, 2, (2, 10**5))
    z = (real + 1j * imag).astype(dtype)
    ours = xdev.vectorize(function)
    o = np.empty_like(ours(z))
    return {"NumPy": lambda: function(z), "xdev": lambda: ours(z, out=o)}


def distance(z: Any) -> Any:
    """Return the distance from zero."""
    return abs(z)


def of_complex_numbers(repeat: int) -> list[dict[str, Any]]:
    """Measure distances, powers and products of complex numbers."""
    rows = []
    functions: dict[str, Callable[[Any], Any]] = {
        "abs(z)": distance,
        "z**3": lambda z: z**3,
        "z z + c": lambda z: z * z + (0.3 + 0.1j),
    }
    for dtype, name in itertools.product(("c8", "c16"), functions):
        calls = complexes(dtype, functions[name])
        title = f"{name}, n = 100000, {np.dtype(dtype)}"
        rows += measured(title, calls, 20, repeat)
    return rows


def at_indices(repeat: int) -> list[dict[str, Any]]:
    """Measure calls that work in place at indices."""
    rows = []
    for dtype in ("f4", "f8", "i8"):
        calls, title = scattered(10**5, dtype), f"f.at, n = 100000, {np.dtype(dtype)}"
        rows += measured(title, calls, 20, repeat)
    return rows


def main() -> None:
    """Run the benchmark."""
    parser = record.arguments(__doc__ or "")
    parser.add_argument("--repeat", type=int, default=11, help="runs of each call")
    options = parser.parse_args()
    repeat = options.repeat
    rows = []
    with_threads("1")
    rows += measured("x + y, n = 10, float32", calls_of_ten(), 20_000, repeat)
    rows += measured("x + 3.0, n = 10, float32", numbers_of_ten(), 20_000, repeat)
    for n in SIZES:
        number = max(2, 2 * 10**6 // n)
        for dtype in ("f4", "f8", "i4"):
            for name in ("add", "subtract", "multiply", "divide"):
                for scalar in (False, True):
                    calls = operations(name, n, dtype, scalar=scalar)
                    what = "number" if scalar else "array"
                    title = f"{name} {what}, n = {n}, {np.dtype(dtype)}"
                    rows += measured(title, calls, number, min(repeat, 7))
        title = f"add, a new result, n = {n}"
        rows += measured(f"{title}, float32", results(n, "f4"), number, repeat)
        rows += measured(f"{title}, float64", results(n, "f8"), number, repeat)
    for dtype in ("f4", "f8"):
        for n in (10**5, 10**6):
            title = f"n = {n}, {np.dtype(dtype)}"
            number = 2 * 10**6 // n
            rows += measured(f"a x + 3 y - sin x, {title}", chains(n, dtype), number, 7)
            rows += measured(f"polynomial, {title}", polynomials(n, dtype), number, 7)
            title = f"a exp(b z), two numbers, {title}"
            numbers = parameters(n, dtype, numbers=True)
            rows += measured(title, numbers, number, repeat)
            title = title.replace("two numbers", "three arrays")
            arrays = parameters(n, dtype, numbers=False)
            rows += measured(title, arrays, number, repeat)
            title = title.replace("three arrays", "every other element")
            rows += measured(title, slices(n, dtype), number, repeat)
        for n in SIZES:
            title = f"f.reduce, n = {n}, {np.dtype(dtype)}"
            number = max(2, 2 * 10**6 // n)
            rows += measured(title, sums(n, dtype), number, repeat)
    rows += of_matrices(repeat) + at_indices(repeat) + of_complex_numbers(repeat)
    for n in (10**6, 10**7):
        inputs = values(3, n, "f4")
        number = 3 * 10**6 // n + 1
        title = f"a x + 3 y - sin x, n = {n}, cores"
        rows += measured(title, cores(chain, inputs), number, 2 * repeat)
        title = f"sin and exp 8 times over, n = {n}, cores"
        few = [x / 50 for x in inputs[:2]]
        rows += measured(title, cores(damped, few), 1, 2 * repeat)
        title = f"x + y, n = {n}, cores"
        rows += measured(title, cores(add, inputs[:2]), number, 2 * repeat)
    record.write(options.json, rows)


if __name__ == "__main__":
    main()
