"""What ``import xdev`` costs over ``import numpy``, in fresh interpreters."""

import statistics
import subprocess
import sys

import record

IMPORTS = {"numpy": "import numpy", "xdev": "import numpy, xdev"}
PROGRAM = """
import time
start = time.perf_counter()
{}
print(time.perf_counter() - start)
"""


def seconds(statement: str) -> float:
    """Return how long a statement takes in a fresh interpreter [s]."""
    command = [sys.executable, "-c", PROGRAM.format(statement)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    """Start the interpreters in turn and print the medians."""
    parser = record.arguments(__doc__)
    parser.add_argument("--repeat", type=int, default=30, help="(default: 30)")
    options = parser.parse_args()
    samples: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for statement in IMPORTS.values():  # the first start compiles and fills caches
        seconds(statement)
    for _ in range(options.repeat):
        for name, statement in IMPORTS.items():
            samples[name].append(seconds(statement))
    medians = {name: statistics.median(times) for name, times in samples.items()}
    over = medians["xdev"] - medians["numpy"]
    print(f"import numpy  {medians['numpy'] * 1e3:7.1f} ms")
    print(
        f"import xdev   {medians['xdev'] * 1e3:7.1f} ms, {over * 1e3:.1f} ms over numpy"
    )
    rows = [{"name": name, "samples": times} for name, times in samples.items()]
    record.write(options.json, rows, over_numpy=over)


if __name__ == "__main__":
    main()
