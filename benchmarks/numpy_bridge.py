"""What NumPy's results cost from xdev's pool, beside NumPy's own allocator.

    python benchmarks/numpy_bridge.py [--json FILE] [--repeat 5]

``x + y`` of float32 at sizes 10, 100,000 and 10,000,000, without the bridge and with
it. NumPy's own time depends on where ``malloc`` happens to put the result, so each size
is timed in processes of several heap offsets, and the figure is their mean. A process
times both in turn: the bridge goes in and comes out again. Times are per call, the best
of its repeats, in seconds.
"""

import json
import subprocess
import sys
from statistics import mean
from timeit import repeat as repeated
from typing import Any

import numpy as np
import record

from xdev.memory import bridges

OFFSETS = range(0, 64, 16)  # malloc aligns to 16 bytes [B]
SIZES = {10: 100_000, 100_000: 1000, 10_000_000: 5}  # elements: calls of one repeat
CLAIMS = {10: "<= 1.2", 100_000: "<= 1 / 1.5", 10_000_000: "<= 1 / 1.3"}


def best(n: int, repeats: int) -> float:
    """Return the time of one ``x + y`` [s]."""
    x, y = np.ones(n, np.float32), np.ones(n, np.float32)
    calls = SIZES[n]
    times = repeated("x + y", globals={"x": x, "y": y}, number=calls, repeat=repeats)
    return min(times) / calls


def measure(offset: int, repeats: int) -> dict[str, dict[str, float]]:
    """Time all sizes in this process, whose heap is shifted by ``offset`` bytes."""
    shifts = [bytes(offset + 4096) for _ in range(64)]
    found: dict[str, dict[str, float]] = {}
    for n in SIZES:
        own = best(n, repeats)
        with bridges.using("numpy"):
            pool = best(n, repeats)
        found[str(n)] = {"own": min(own, best(n, repeats)), "pool": pool}
    del shifts
    return found


def main() -> None:
    """Measure, print the table, and write the JSON if asked."""
    parser = record.arguments(__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--offset", type=int, help="time one heap offset, as JSON")
    options = parser.parse_args()
    if options.offset is not None:
        print(json.dumps(measure(options.offset, options.repeat)))
        return
    found: list[dict[str, Any]] = []
    for offset in OFFSETS:
        command = [sys.executable, __file__, "--offset", str(offset)]
        command += ["--repeat", str(options.repeat)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append(json.loads(done.stdout))
    rows = []
    for n, claim in CLAIMS.items():
        own = [each[str(n)]["own"] for each in found]
        pool = [each[str(n)]["pool"] for each in found]
        rows += [
            {"name": f"x + y, n = {n}, NumPy's own", "samples": own},
            {"name": f"x + y, n = {n}, pool", "samples": pool},
        ]
        one, other, ratio = mean(own) * 1e6, mean(pool) * 1e6, mean(pool) / mean(own)
        times = f"NumPy's own {one:10.3f} us   pool {other:10.3f} us"
        print(f"x + y, n = {n:<9} {times}   {ratio:.2f} x  ({claim})")
    record.write(options.json, rows)


if __name__ == "__main__":
    main()
