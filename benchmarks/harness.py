"""The harness itself: how long a table takes, and how often it tells a lie.

The claims: the comparison of three rows (``x + y`` of 100,000 float32 by NumPy, into an
array that is there, and by an ``@vectorize``d function) takes less than 3 s once all is
compiled; of 300 comparisons of a program with itself at most 2 % call one of the two
faster or slower.
"""

from __future__ import annotations

from collections import Counter
from time import perf_counter
from typing import Any

import numpy as np
import peers
import record

import xdev
from xdev.timing import compare

RUN_SECONDS = 5e-4  # of one of a comparison's 22 runs here: 300 are made


def three_rows(device: xdev.Device) -> float:
    """Return how long the comparison of three rows takes [s]."""
    x, y = np.random.default_rng(0).random((2, 100_000), np.float32)
    a, b = (xdev.asarray(each, device=device) for each in (x, y))
    out, ufunc = xdev.empty_like(a), xdev.vectorize(peers.add)
    ufunc(a, b)
    start = perf_counter()
    found = compare(
        {
            "a + b": lambda: a + b,
            "ufunc": lambda: ufunc(a, b),
            "ufunc out=": lambda: ufunc(a, b, out=out),
        }
    )
    seconds = perf_counter() - start
    print(f"{found}\nthe table took {seconds:.2f} s")
    return seconds


def same_against_same(device: xdev.Device, count: int) -> Counter[str]:
    """Return the verdicts of so many comparisons of a program with itself."""
    x = xdev.asarray(np.random.default_rng(0).random(100_000), device=device)

    def program() -> Any:
        return x + x

    start = perf_counter()
    for _ in range(100):
        program()
    xdev.synchronize(device)
    number = max(1, round(100 * RUN_SECONDS / (perf_counter() - start)))
    verdicts: Counter[str] = Counter()
    for _ in range(count):
        found = compare({"one": program, "other": program}, number=number)
        verdicts[found["other"].ratio.verdict] += 1
    return verdicts


def main() -> None:
    """Measure on the CPU, and on CUDA where it is."""
    parser = record.arguments(__doc__ or "")
    parser.add_argument("--count", type=int, default=300, help="(default: 300)")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    left_out = {}
    for device in map(xdev.Device, ("cpu", "cuda")):
        if not device.available:
            left_out[str(device)] = device.reason
            continue
        rows.append(
            {"name": f"three rows, {device.type}", "samples": [three_rows(device)]}
        )
        verdicts = same_against_same(device, options.count)
        wrong = verdicts["faster"] + verdicts["slower"]
        print(f"{options.count} of the same against the same: {dict(verdicts)}")
        rows.append(
            {
                "name": f"same against same, {device.type}",
                "comparisons": options.count,
                "false": wrong,
                "share": wrong / options.count,
                **verdicts,
            }
        )
    record.write(options.json, rows, left_out=left_out)


if __name__ == "__main__":
    main()
