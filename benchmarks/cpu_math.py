"""Elementary functions on the CPU: nanoseconds an element, beside NumPy and C.

Each function runs on 100,000 elements that stay in the cache, in one thread, into
``out=``. ``C`` is the C library called element by element, from Numba's ``vectorize``.
``ratio`` is a candidate's median over NumPy's, over C's where NumPy has no such
function. The chain is ``a x + 3 y - sin x`` of float32, with numexpr if installed.
"""

import importlib
import importlib.util
import math
import statistics
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import record

import xdev

Calls = dict[str, Callable[[], Any]]
N = 100_000
DOMAINS = {
    **dict.fromkeys(("sin", "cos", "tan", "tanh", "erf"), (-3, 3)),
    **dict.fromkeys(("exp", "exp2", "expm1"), (-20, 20)),
    **dict.fromkeys(("log", "log2", "log10"), (0.01, 100)),
    "log1p": (-0.9, 100),
    "sqrt": (0, 100),
    "pow": (0.01, 10),
    "//": (1, 10),
    "%": (1, 10),
}
BINARY = {
    "pow": (lambda x, y: math.pow(x, y), np.power),  # noqa: PLW0108 - has a source
    "//": (lambda x, y: x // y, np.floor_divide),
    "%": (lambda x, y: x % y, np.remainder),
}


def candidates(name: str, dtype: str) -> Calls:
    """Return the calls of one function, by who computes it."""
    function = getattr(math, name, None)
    unary = lambda x: function(x), getattr(np, name, None)  # noqa: PLW0108 - likewise
    source, numpys = BINARY.get(name, unary)
    shape = source.__code__.co_argcount, N
    values = np.random.default_rng(0).uniform(*DOMAINS[name], shape)
    args, o = [x.astype(dtype) for x in values], np.empty(N, dtype)
    ours, c = xdev.vectorize(source), numba.vectorize(source)
    calls = {"xdev": lambda: ours(*args, out=o), "C": lambda: c(*args, out=o)}
    return {"NumPy": lambda: numpys(*args, out=o), **calls} if numpys else calls


def chains() -> Calls:
    """Return the calls that compute the chain."""
    a, x, y = np.random.default_rng(0).uniform(-3, 3, (3, N)).astype("f4")
    ours = xdev.vectorize(lambda a, x, y: a * x + y * 3 - math.sin(x))
    calls = {
        "NumPy": lambda: a * x + y * 3 - np.sin(x),
        "xdev": lambda: ours(a, x, y),
    }
    if importlib.util.find_spec("numexpr"):
        numexpr = importlib.import_module("numexpr")
        numexpr.set_num_threads(1)
        names = {"a": a, "x": x, "y": y}
        calls["numexpr"] = lambda: numexpr.evaluate("a * x + y * 3 - sin(x)", names)
    else:
        print("left out: numexpr, which is not installed")
    return calls


def measured(name: str, calls: Calls, repeat: int) -> list[dict[str, Any]]:
    """Compare the calls' results, time them, print them; return a row for each."""
    base = "NumPy" if "NumPy" in calls else "C"
    expected = calls[base]().copy()
    rtol = 1e-5 if expected.dtype == np.float32 else 1e-13
    for call in calls.values():
        np.testing.assert_allclose(call(), expected, rtol=rtol, atol=rtol)
    samples = record.sample(calls, 10, repeat)
    rows = []
    for candidate, seconds in samples.items():
        ratio = statistics.median(seconds) / statistics.median(samples[base])
        nanoseconds = 1e9 * statistics.median(seconds) / N
        print(f"{name:16} {candidate:8} {nanoseconds:7.2f} ns  {ratio:6.2f} x {base}")
        rows.append(
            {"name": f"{name}: {candidate}", "samples": seconds, "ratio": ratio}
        )
    return rows


def main() -> None:
    """Run the benchmark."""
    parser = record.arguments(__doc__ or "")
    parser.add_argument("--repeat", type=int, default=9, help="runs of each call")
    options = parser.parse_args()
    rows = measured("chain, float32", chains(), 2 * options.repeat)
    for name in DOMAINS:
        for dtype in ("f4", "f8"):
            title = f"{name}, {np.dtype(dtype)}"
            rows += measured(title, candidates(name, dtype), options.repeat)
    record.write(options.json, rows)


if __name__ == "__main__":
    main()
