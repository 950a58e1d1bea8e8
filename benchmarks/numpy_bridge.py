"""What NumPy's results cost from xdev's pool, beside NumPy's own allocator.

    python benchmarks/numpy_bridge.py [--json FILE] [--repeat 5]

``x + y`` of float32 at sizes 10, 100,000 and 10,000,000, without the bridge and with
it. Without it, operands and results lie where ``malloc`` puts them: at 0, 16, 32 or 48
bytes from a multiple of 64, and some processors are half as fast for three of these.
So each offset is timed in a process of its own, with both operands and the result
there, and the figure is the mean. (10,000,000 are too many for ``malloc``'s heap: the
system's memory comes at 16.) The pool's blocks all lie at 0. A process times both in
turn: the bridge goes in and comes out again. Times are per call, the best of the
repeats, in seconds; the JSON has each sample's offsets.
"""

import json
import subprocess
import sys
from statistics import mean
from timeit import repeat as repeated
from typing import TYPE_CHECKING, Any

import numpy as np
import record

from xdev.memory import bridges

if TYPE_CHECKING:
    from collections.abc import Callable

OFFSETS = range(0, 64, 16)  # malloc aligns to 16 bytes [B]
SIZES = {10: 100_000, 100_000: 1000, 10_000_000: 5}  # elements: calls of one repeat
CLAIMS = {10: "<= 1.2", 100_000: "<= 1 / 1.5", 10_000_000: "<= 1 / 1.3"}
ROUNDS = 2  # how often each is timed in turn
TRIES = 8


def offset_of(x: np.ndarray) -> int:
    """Return how far an array lies from a multiple of 64 [B]."""
    return int(x.ctypes.data) % 64


def placed(make: "Callable[[], np.ndarray]", offset: int) -> list[np.ndarray]:
    """Make arrays until one lies at an offset; the last one does, if any can.

    Each of them moves the next: their sizes are no multiples of 64.
    """
    made = [make()]
    while offset_of(made[-1]) != offset and len(made) < TRIES:
        made.append(make())
    return made


def best(n: int, repeats: int, offset: int) -> dict[str, float]:
    """Return the time of one ``x + y`` [s], and where operands and result lay."""
    *_, x = xs = placed(lambda: np.ones(n, np.float32), offset)
    *_, y = ys = placed(lambda: np.ones(n, np.float32), offset)
    others = placed(lambda: x + y, offset)
    result = offset_of(others.pop())  # its place is free for the results to come
    calls = SIZES[n]
    times = repeated("x + y", globals={"x": x, "y": y}, number=calls, repeat=repeats)
    del xs, ys, others
    lay = {"x": offset_of(x), "y": offset_of(y), "result": result}
    return {"seconds": min(times) / calls, **lay}


def measure(offset: int, repeats: int) -> dict[str, dict[str, dict[str, float]]]:
    """Time all sizes in this process, at one offset where ``malloc`` has a choice."""
    np.empty(16 << 20, np.uint8)  # malloc has such sizes in its heap after this
    found: dict[str, dict[str, dict[str, float]]] = {}
    for n in SIZES:
        own, pool = [], []
        for _ in range(ROUNDS):
            own.append(best(n, repeats, offset))
            with bridges.using("numpy"):
                pool.append(best(n, repeats, 0))
        rows = {"own": own, "pool": pool}
        found[str(n)] = {
            name: min(row, key=lambda each: each["seconds"])
            for name, row in rows.items()
        }
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
        means = []
        for name, label in (("own", "NumPy's own"), ("pool", "xdev's pool")):
            runs = [each[str(n)][name] for each in found]
            samples = [run.pop("seconds") for run in runs]
            means.append(mean(samples) * 1e6)
            row = {"name": f"x + y, n = {n}: {label}", "samples": samples}
            rows.append({**row, "offsets": runs})
        own, pool = means
        times = f"NumPy's own {own:10.3f} us   pool {pool:10.3f} us"
        print(f"x + y, n = {n:<9} {times}   {pool / own:.2f} x  ({claim})")
    record.write(options.json, rows)


if __name__ == "__main__":
    main()
