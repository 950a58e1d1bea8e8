"""What ``import xdev`` costs over ``import numpy``, in fresh interpreters."""

import os
import statistics
import subprocess
import sys
import tempfile

import record

IMPORTS = {"numpy": "import numpy", "xdev": "import numpy, xdev"}
PROGRAM = """
import time
start = time.perf_counter()
{}
print(time.perf_counter() - start)
"""


def seconds(statement: str, bytecode: str) -> float:
    """Return how long a statement takes in a fresh interpreter [s].

    Compiled modules are kept in the folder ``bytecode``, whatever the environment
    says of them: what is installed has them too.
    """
    environment = os.environ | {"PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(statement)],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


def main() -> None:
    """Start the interpreters in turn and print the medians."""
    parser = record.arguments(__doc__)
    parser.add_argument("--repeat", type=int, default=30, help="(default: 30)")
    options = parser.parse_args()
    samples: dict[str, list[float]] = {name: [] for name in IMPORTS}
    with tempfile.TemporaryDirectory() as bytecode:
        for statement in IMPORTS.values():  # the first start compiles
            seconds(statement, bytecode)
        for _ in range(options.repeat):
            for name, statement in IMPORTS.items():
                samples[name].append(seconds(statement, bytecode))
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
