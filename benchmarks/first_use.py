"""What a function's first call costs: a new one, and one that a process before had.

    python benchmarks/first_use.py [--json FILE] [--repeat 3]

Timed is from decoration to the first call's return, on float32 arrays that are there.
*New*: a function that no process has compiled yet, where the compiler has been used for
another. *Kept*: a process of its own finds what an earlier one compiled; the libraries
named in its row are imported before, all else counts; all modules are there as
bytecode, as where they are installed.
The garbage collector is off meanwhile: what the libraries' imports left makes one
collection take 25 ms, in whichever call it falls. Where a CUDA device is, the rows are
of it too, and of the namespace's `add` beside CuPy's.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import record

import xdev

BODY = "{factor} * a * x + y * 3 - math.sin(x)"
FUNCTION = "def chain(a, x, y):\n    return " + BODY + "\n"
TIMED = """
import gc, math, sys, time
import numpy as np
import {imports}
{before}
x = {array}
finish = {finish}
finish()
gc.collect()
gc.disable()
start = time.perf_counter()
{decorated}
chain(x, x, x)
finish()
print(time.perf_counter() - start, "numba" in sys.modules)
"""
NEW = "import chain{number} as one\n{decorator}\nchain = decorate(one.chain)\n"
ON_HOST = {"array": "np.linspace(-3, 3, 1000, dtype='f4')", "finish": "lambda: None"}
ON_CUDA = {
    "array": "cupy.linspace(-3, 3, 1000, dtype='f4')",
    "finish": "cupy.cuda.get_current_stream().synchronize",
}
ELEMENTWISE = "cupy.ElementwiseKernel('T a, T x, T y', 'T z', 'z = {0}', 'chain')"
KERNEL = ELEMENTWISE.format(BODY.replace("math.", ""))

# Each peer: where its arrays are, its imports, and what makes a function of chain.py's.
XDEV = "decorate = xdev.vectorize"
NUMBA = "decorate = numba.vectorize(nopython=True, cache=True)"
CUPY = "decorate = lambda f: " + KERNEL
# A library's own functions: one for the call that warms the compiler, one that is new.
ADD = (
    "decorate = lambda f: lambda a, x, y: "
    "({0}.hypot if f.__module__ == 'other' else {0}.add)(x, y)"
)
HOST_PEERS = {
    "cpu: xdev": (ON_HOST, "xdev", XDEV),
    "cpu: Numba": (ON_HOST, "numba", NUMBA),
}
CUDA_PEERS = {
    "cuda: xdev": (ON_CUDA, "cupy, cuda.core, xdev", XDEV),
    "cuda: CuPy ElementwiseKernel": (ON_CUDA, "cupy", CUPY),
    "cuda: xdev.add": (ON_CUDA, "cupy, xdev", ADD.format("xdev")),
    "cuda: cupy.add": (ON_CUDA, "cupy", ADD.format("cupy")),
}


def measured(text: str, folder: Path, cache: str) -> tuple[float, bool]:
    """Run a program with its caches in a folder's folder.

    Returns the seconds that it prints, and whether it has Numba.
    """
    caches = ("XDEV_CACHE_DIR", "NUMBA_CACHE_DIR", "CUPY_CACHE_DIR")
    environment = {name: str(folder / cache / name) for name in caches}
    paths = filter(None, (str(folder), os.environ.get("PYTHONPATH")))
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    environment["PYTHONPYCACHEPREFIX"] = str(folder)
    whole = {**os.environ, **environment}
    whole.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=whole,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        message = f"the program\n{text}\nfailed:\n{done.stderr}"
        raise RuntimeError(message)
    seconds, numba = done.stdout.split()
    return float(seconds), numba == "True"


def program(peer: tuple[dict[str, str], str, str], number: int, warm: str) -> str:
    """Return the program that times the first call of a function."""
    place, imports, decorator = peer
    decorator = decorator.replace("{factor}", f"{number}.5f")
    decorated = NEW.format(number=number, decorator=decorator)
    return TIMED.format(imports=imports, before=warm, decorated=decorated, **place)


def warmed(peer: tuple[dict[str, str], str, str]) -> str:
    """Return statements that use the compiler for another function."""
    place, _, decorator = peer
    return (
        f"import other\n{decorator.replace('{factor}', '0')}\n"
        f"x = {place['array']}\ndecorate(other.chain)(x, x, x)"
    )


def main() -> None:
    """Measure all peers in turn and print the medians."""
    parser = record.arguments(__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=3, help="(default: 3)")
    options = parser.parse_args()
    peers = dict(HOST_PEERS)
    if xdev.Device("cuda").available:
        peers |= CUDA_PEERS
    new: dict[str, list[float]] = {name: [] for name in peers}
    kept: dict[str, list[float]] = {name: [] for name in peers}
    loaded: dict[str, bool] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        names = [f"chain{number}" for number in range(options.repeat + 1)]
        for number, name in enumerate(names):
            text = f"import math\n{FUNCTION.format(factor=f'{number}.5')}"
            (folder / f"{name}.py").write_text(text)
        (folder / "other.py").write_text("def chain(a, x, y):\n    return a + x * y\n")
        for peer in peers.values():
            for _ in range(2):  # it compiles, then finds: either loads its own modules
                measured(program(peer, 0, ""), folder, "kept")
        for number in range(1, options.repeat + 1):
            for name, peer in peers.items():
                text = program(peer, number, warmed(peer))
                seconds, _ = measured(text, folder, f"new {number}")
                new[name].append(seconds)
                text = program(peer, 0, "")
                seconds, loaded[name] = measured(text, folder, "kept")
                kept[name].append(seconds)
    rows = []
    for title, samples in (("new", new), ("kept", kept)):
        for name, seconds in samples.items():
            with_numba = ", Numba loaded" if title == "kept" and loaded[name] else ""
            print(
                f"{title:<5} {name:<24} {statistics.median(seconds) * 1e3:8.1f} ms"
                f"  (after import {peers[name][1]}{with_numba})"
            )
            rows.append({"name": f"{title}, {name}", "samples": seconds})
    record.write(options.json, rows, numba_loaded=loaded)


if __name__ == "__main__":
    main()
