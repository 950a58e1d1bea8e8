"""How much of the memory that a card lost the ledger explains.

    python benchmarks/ledger.py [--json FILE] [--gib 8]

One program on CUDA mixes CuPy (elementwise, cuBLAS, cuFFT, cuSOLVER, many sizes), Numba
(device arrays, a kernel), xdev (creation, ``@vectorize``) and, where PyTorch and its
bridge are, PyTorch. It runs once, so that context, library handles and modules are
there; all of its memory goes back; what ``cudaMemGetInfo`` then says is the base line.
Then it runs again and keeps its arrays until at least so many GiB are reserved. After
each part: the bytes that the card lost since the base line, those that the ledger
reserved, and their ratio. It must be >= 0.99 at the end.

``XDEV_MEMORY_POOL`` chooses the policy. The JSON holds a row for each part.
"""

import gc
import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import record

import xdev
from xdev import memory
from xdev.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    Part = Callable[[int], list[object]]

GIB = 1 << 30
SMALL = (100, 5_000, 70_000, 1_000_000, 3_333_333)  # sizes of many arrays [B]
SOLVED = 1024  # rows of the system of equations
BLOCK = 256


def cupy_part(nbytes: int) -> list[object]:
    """Return CuPy arrays of about so many bytes, after work of its libraries."""
    import cupy

    n = math.isqrt(nbytes // 16)  # one part in, one out, two of the transform
    x = cupy.random.random((n, n), dtype=cupy.float32)
    product, transform = x @ x, cupy.fft.fft(x)
    system = x[:SOLVED, :SOLVED] + SOLVED * cupy.eye(min(n, SOLVED), dtype=x.dtype)
    solution = cupy.linalg.solve(system, system[0])
    many = [cupy.full(size, 1, cupy.uint8) for size in SMALL for _ in range(50)]
    del many[::2]
    return [x, product, transform, solution, float(cupy.sqrt(x).sum()), many]


@cache
def filling() -> Any:
    """Return a Numba kernel, compiled and loaded once."""
    from numba import cuda

    @cuda.jit("void(float32[::1], float32)")
    def fill(out: Any, value: float) -> None:
        i = cuda.grid(1)
        if i < out.size:
            out[i] = value

    return fill


def numba_part(nbytes: int) -> list[object]:
    """Return Numba device arrays, written by a kernel."""
    from numba import cuda

    n = nbytes // 8
    made = cuda.device_array(n, np.float32)
    filling()[-(-n // BLOCK), BLOCK](made, 1.0)
    return [made, cuda.to_device(np.ones(n, np.float32))]


@xdev.vectorize
def axpy(a: float, x: float, y: float) -> float:
    """Return a multiple of ``x``, and ``y``."""
    return a * x + y


def xdev_part(nbytes: int) -> list[object]:
    """Return arrays of xdev's creation functions and of one of its kernels."""
    x = xdev.ones(nbytes // 8, dtype=xdev.float32, device="cuda")
    return [x, axpy(2.0, x, x)]


def torch_part(nbytes: int) -> list[object]:
    """Return PyTorch tensors."""
    import torch

    n = math.isqrt(nbytes // 16)
    x = torch.rand((n, n), device="cuda")
    return [x, x @ x, torch.fft.fft(x), float(x.sum())]


def parts() -> "tuple[dict[str, Part], dict[str, str]]":
    """Return the parts that can run here, and why the others cannot."""
    found: dict[str, Part] = {
        "CuPy": cupy_part,
        "Numba": numba_part,
        "xdev": xdev_part,
    }
    try:
        memory.bridges.install("torch")
    except DeviceUnavailableError as error:
        return found, {"PyTorch": str(error)}
    if "torch" not in memory.bridges.installed():
        return found, {"PyTorch": memory.bridges.left_alone()["torch"]}
    return found | {"PyTorch": torch_part}, {}


def room() -> int:
    """Return the bytes that the card has left, all work done [B]."""
    import cupy

    cupy.cuda.runtime.deviceSynchronize()
    return int(cupy.cuda.runtime.memGetInfo()[0])


def run(found: "dict[str, Part]", nbytes: int) -> list[dict[str, Any]]:
    """Run the parts for about so many bytes in all; return a row for each."""
    free, reserved = room(), memory.reserved("cuda")
    rows: list[dict[str, Any]] = []
    kept: list[object] = []
    each = -(-nbytes // len(found))
    for name, part in found.items():
        while memory.reserved("cuda") - reserved < each * (len(rows) + 1):
            kept.append(part(each))
        lost, held = free - room(), memory.reserved("cuda") - reserved
        used = memory.allocated("cuda")
        row = {"name": name, "lost": lost, "reserved": held, "allocated": used}
        rows.append({**row, "share": held / lost})
    return rows


def measure(gib: float) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return a row for each part, and what was left out and why."""
    xdev.Device("cuda").require()
    found, left_out = parts()
    nbytes = int(gib * GIB)
    run(found, nbytes)  # loads what is loaded at first use
    gc.collect()
    memory.reclaim()
    return run(found, nbytes), left_out


def main() -> None:
    """Measure, print the table, and write the JSON if asked."""
    parser = record.arguments(__doc__.partition("\n")[0])
    parser.add_argument("--gib", type=float, default=8, help="reserved at least [GiB]")
    options = parser.parse_args()

    device = xdev.Device("cuda")
    rows: list[dict[str, Any]] = []
    if device.available:
        rows, left_out = measure(options.gib)
    else:
        left_out = {"CUDA": str(device.reason)}
    for name, why in left_out.items():
        print(f"left out: {name}: {why}")
    for row in rows:
        print(
            f"after {row['name']:<8} lost {row['lost'] / GIB:7.3f} GiB   "
            f"reserved {row['reserved'] / GIB:7.3f} GiB   share {row['share']:.4f}"
        )
    extra: dict[str, Any] = {"left_out": left_out}
    if rows:
        share, unknown = rows[-1]["share"], rows[-1]["lost"] - rows[-1]["reserved"]
        print(f"explained: {share:.4f}  (>= 0.99); unexplained {unknown:,} B")
        print(memory.summary("cuda"))
        extra |= {"share": share, "policy": memory.pool("cuda").state.policy.name}
        extra["stats"] = memory.stats("cuda")
    record.write(options.json, rows, **extra)


if __name__ == "__main__":
    main()
