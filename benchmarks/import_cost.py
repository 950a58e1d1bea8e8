"""What ``import xdev`` costs over ``import numpy``, in fresh interpreters.

Each interpreter imports NumPy, then xdev, and times both: NumPy's time alone varies by
more from one start to the next than xdev takes.
"""

import os
import statistics
import subprocess
import sys
import tempfile

import record

PROGRAM = """
import time
start = time.perf_counter()
import numpy
between = time.perf_counter()
import xdev
print(between - start, time.perf_counter() - between)
"""


def seconds(bytecode: str) -> tuple[float, float]:
    """Return how long NumPy's import takes in a fresh interpreter, and xdev's after it.

    Compiled modules are kept in the folder ``bytecode``, whatever the environment
    says of them: what is installed has them too.
    """
    environment = os.environ | {"PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    numpy, own = map(float, done.stdout.split())
    return numpy, own


def main() -> None:
    """Start the interpreters and print the medians."""
    parser = record.arguments(__doc__)
    parser.add_argument("--repeat", type=int, default=30, help="(default: 30)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as bytecode:
        seconds(bytecode)  # the first start compiles
        pairs = [seconds(bytecode) for _ in range(options.repeat)]
    numpy, own = map(list, zip(*pairs, strict=True))
    over = statistics.median(own)
    print(f"import numpy             {statistics.median(numpy) * 1e3:7.1f} ms")
    print(f"import xdev, over numpy  {over * 1e3:7.1f} ms")
    rows = [
        {"name": "numpy", "samples": numpy},
        {"name": "xdev, after numpy", "samples": own},
    ]
    record.write(options.json, rows, over_numpy=over)


if __name__ == "__main__":
    main()
