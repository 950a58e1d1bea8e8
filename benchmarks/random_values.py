"""Random values beside NumPy's generator on the CPU, CuPy's on CUDA, and PyTorch's.

Each call makes a new array and waits for it. ``ratio`` is NumPy's or CuPy's median over
the candidate's: above 1 is faster. On CUDA, ``GB/s`` is what was written; the row
"zeros" is a call that only writes.
"""

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import peers
import record

import xdev
from xdev import _optional

Calls = dict[str, Callable[[], Any]]
Draw = Callable[[Any, int], Any]
#: Of xdev's, NumPy's and CuPy's generators; the same methods, as far as they have them.
DRAWS: dict[str, Draw] = {
    "random, float64": lambda rng, n: rng.random(n),
    "random, float32": lambda rng, n: rng.random(n, dtype=np.float32),
    "standard_normal, float64": lambda rng, n: rng.standard_normal(n),
    "standard_normal, float32": lambda rng, n: rng.standard_normal(n, dtype=np.float32),
    "standard_exponential, float64": lambda rng, n: rng.standard_exponential(n),
    "standard_exponential, float32": (
        lambda rng, n: rng.standard_exponential(n, dtype=np.float32)
    ),
    "integers below 100, int64": lambda rng, n: rng.integers(0, 100, n),
    "integers below 2^40, int64": lambda rng, n: rng.integers(0, 2**40, n),
    "permutation": lambda rng, n: rng.permutation(n),
    "choice of 10 without replacement": lambda rng, n: rng.choice(n, 10, replace=False),
}
#: PyTorch's counterparts.
TORCHES: dict[str, Callable[[Any, int, str], Any]] = {
    "random, float64": lambda t, n, d: t.rand(n, dtype=t.float64, device=d),
    "random, float32": lambda t, n, d: t.rand(n, device=d),
    "standard_normal, float64": lambda t, n, d: t.randn(n, dtype=t.float64, device=d),
    "standard_normal, float32": lambda t, n, d: t.randn(n, device=d),
    "standard_exponential, float64": (
        lambda t, n, d: t.empty(n, dtype=t.float64, device=d).exponential_()
    ),
    "standard_exponential, float32": (
        lambda t, n, d: t.empty(n, device=d).exponential_()
    ),
    "integers below 100, int64": lambda t, n, d: t.randint(0, 100, (n,), device=d),
    "integers below 2^40, int64": lambda t, n, d: t.randint(0, 2**40, (n,), device=d),
    "permutation": lambda t, n, d: t.randperm(n, device=d),
}


def calls(
    name: str, n: int, device: xdev.Device
) -> tuple[Calls, dict[str, dict[str, str]]]:
    """Return draws of ``n`` values by each that can, and why others are left out."""
    draw = DRAWS[name]
    library, who = (np, "NumPy") if device.type == "cpu" else (_optional.cupy(), "CuPy")
    generators = {
        "xdev": xdev.random.default_rng(0, device),
        who: library.random.default_rng(0),
    }
    task: dict[str, Callable[[], Any]] = {
        key: lambda rng=rng: lambda: draw(rng, n) for key, rng in generators.items()
    }
    if name in TORCHES:
        task["PyTorch"] = lambda: _of_torch(TORCHES[name], n, device)
    found, left_out = peers.made(task)
    return found, {name: left_out} if left_out else {}


def _of_torch(
    draw: Callable[[Any, int, str], Any], n: int, device: xdev.Device
) -> Callable[[], Any]:
    import torch

    if device.type == "cpu":
        torch.set_num_threads(1)
    return lambda: draw(torch, n, str(device))


def measured(
    name: str, found: Calls, n: int, device: xdev.Device, repeat: int
) -> list[dict[str, Any]]:
    """Time the calls in turn, print them, and return a row for each."""
    nbytes = found["xdev"]().nbytes
    for call in found.values():
        call()

    def finish() -> None:
        xdev.synchronize(device)

    finish()
    number = max(1, 10**5 // n)
    samples = record.sample(found, number, repeat, finish)
    base = statistics.median(
        next(samples[k] for k in ("NumPy", "CuPy", "xdev") if k in samples)
    )
    rows = []
    for candidate, seconds in samples.items():
        median = statistics.median(seconds)
        ratio, speed = base / median, nbytes / median / 1e9
        title = f"{name}, n = {n}"
        print(
            f"{title:48} {candidate:8} {1e6 * median:12.2f} µs {speed:8.2f} GB/s "
            f"{ratio:6.2f} x"
        )
        rows.append(
            {"name": f"{title}: {candidate}", "samples": seconds, "ratio": ratio}
        )
    return rows


def main() -> None:
    """Run the benchmark."""
    parser = record.arguments(__doc__ or "")
    parser.add_argument("--device", help="cpu or cuda; the default device unless given")
    parser.add_argument("--n", type=int, help="elements of the large arrays")
    parser.add_argument("--repeat", type=int, default=9, help="runs of each call")
    options = parser.parse_args()
    device = xdev.Device(options.device or xdev.default_device()).require()
    large = options.n or (10**6 if device == "cpu" else 2**26)
    rows = []
    left_out: dict[str, dict[str, str]] = {}
    for n in (1000, large):
        zeros: Calls = {"xdev": lambda n=n: xdev.zeros(n, device=device)}
        rows += measured("zeros, float64", zeros, n, device, options.repeat)
        for name in DRAWS:
            found, absent = calls(name, n, device)
            rows += measured(name, found, n, device, options.repeat)
            left_out |= absent
    print(f"\nleft out: {left_out}")
    record.write(options.json, rows, left_out=left_out)


if __name__ == "__main__":
    main()
