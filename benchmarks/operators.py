"""CuPy's operators as they are and by xdev's bridge, beside PyTorch's.

    python benchmarks/operators.py [--json FILE] [--repeat 9]

An expression of eight operators, and a stencil on slices, of float32 on the current
stream. A time is from the first call to the device's end of the last, over the calls.
"""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import numpy as np
import record

import xdev
from xdev import _optional, memory

SIZES = (10**3, 10**5, 2**24, 2**26)
SIDES = (512, 4096)
CHEAP = 10**6  # elements below which a run is of many calls


def chain(x: Any, y: Any) -> Any:
    """Return an expression of eight operators."""
    return (0.25 * x + 0.75 * y - x * y) / (y * y + 1.0)


def stencil(u: Any, _: Any) -> Any:
    """Return the second differences along rows."""
    return u[1:-1, 2:] - 2 * u[1:-1, 1:-1] + u[1:-1, :-2]


def compared(function: Any, shape: tuple[int, ...], repeat: int) -> dict[str, Any]:
    """Return the samples of each [s]; all results are the same."""
    import torch

    cupy = _optional.cupy()
    x, y = np.random.default_rng(0).random((2, *shape), "f4")
    ours = cupy.asarray(x), cupy.asarray(y)
    theirs = torch.as_tensor(x, device="cuda"), torch.as_tensor(y, device="cuda")
    number = 200 if x.size < CHEAP else 10
    samples: dict[str, list[float]] = {"CuPy": [], "xdev": [], "PyTorch": []}
    results = {}
    for turn in range(repeat + 1):  # the first warms up
        for name in samples:
            arrays = theirs if name == "PyTorch" else ours
            if name == "xdev":
                memory.bridges.install("cupy-operators")
            results[name] = function(*arrays)
            calls = {name: partial(function, *arrays)}
            found = record.sample(calls, number, 1, xdev.synchronize)[name]
            memory.bridges.uninstall("cupy-operators")
            samples[name] += found if turn else []
    for name in ("xdev", "PyTorch"):
        np.testing.assert_allclose(
            xdev.to_numpy(results["CuPy"]),
            xdev.to_numpy(results[name]),
            rtol=1e-5,
            atol=1e-6,
        )
    return samples


def main() -> None:
    """Measure where CUDA is, and print the medians."""
    parser = record.arguments((__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=9, help="(default: 9)")
    options = parser.parse_args()
    rows = []
    left_out = {}
    if xdev.Device("cuda").available:
        cases: list[tuple[str, Any, tuple[int, ...]]]
        cases = [("expression", chain, (n,)) for n in SIZES]
        cases += [("stencil", stencil, (n, n)) for n in SIDES]
        for title, function, shape in cases:
            samples = compared(function, shape, options.repeat)
            middle = {k: statistics.median(v) * 1e6 for k, v in samples.items()}
            size = " x ".join(map(str, shape))
            print(
                f"{title}, {size}: "
                + ", ".join(f"{k} {v:.1f} us" for k, v in middle.items())
                + f"; xdev / CuPy {middle['xdev'] / middle['CuPy']:.2f}"
                + f", / PyTorch {middle['xdev'] / middle['PyTorch']:.2f}"
            )
            rows += [
                {"name": f"{title}, {size}: {name}", "samples": values}
                for name, values in samples.items()
            ]
    else:
        left_out["cuda"] = xdev.Device("cuda").reason
        print(f"left out: {left_out['cuda']}")
    record.write(options.json, rows, left_out=left_out)


if __name__ == "__main__":
    main()
