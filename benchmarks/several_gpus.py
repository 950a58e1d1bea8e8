"""Several GPUs beside one: the same programs on clusters of one worker and of more.

    python benchmarks/several_gpus.py [--json FILE] [--device cuda] [--workers 1 2]
                                      [--mebibytes 4096]

A worker has one GPU. *Elementwise* iterates a map of each element, *stencil* makes
steps of the heat equation over chunks with halos, *GEMM* multiplies rows by one square
matrix, which every worker needs. The collections lie in the workers before; timed is
until the sum of a result is here. ``speed-up`` is the time of the smallest cluster over
another one's; the claim is at least 1.7 for two. The sums of all results are equal.
``--device cpu`` shows the same with processes that share the machine's cores.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import record
from distributed import Client, wait

import xdev
from xdev import distributed

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 2**20
ITEM = 4  # bytes: all is float32
STEPS = 200  # of the map, and of the heat equation
PIECES = 4  # chunks for each worker of the largest cluster


@xdev.vectorize
def iterated(x: Any) -> Any:
    """Iterate the logistic map."""
    for _ in range(STEPS):
        x = 3.7 * x * (1 - x)
    return x


def heated(plate: Any) -> Any:
    """Return a plate after so many steps, of which its edges have no part."""
    for _ in range(STEPS):
        new = xdev.asarray(plate, copy=True)
        new[1:-1, 1:-1] = 0.25 * (
            plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
        )
        plate = new
    return plate


def programs(mebibytes: int, pieces: int, device: str) -> dict[str, Any]:
    """Return the programs' collections, unevaluated, and what is made of each."""
    elements = mebibytes * MIB // ITEM
    side = max(int((elements / 8) ** 0.5) // pieces, STEPS) * pieces
    options: dict[str, Any] = {"dtype": xdev.float32, "device": device}
    cut = {**options, "chunks": (side // pieces, side)}
    numbers = xdev.arange(elements, **options, chunks=-(-elements // pieces))
    plate = xdev.ones((side, side), **cut)
    rows = xdev.ones((side, side), **cut)
    square = xdev.ones((side, side), **options, chunks=-1)
    return {
        "elementwise": ((numbers / elements,), iterated),
        "stencil": (
            (plate,),
            lambda x: distributed.map(heated, x, depth={0: STEPS}, dtype=x.dtype),
        ),
        "GEMM": ((rows, square), xdev.matmul),
    }


def measured(
    inputs: tuple[Any, ...], program: Callable[..., Any], repeat: int
) -> tuple[list[float], float]:
    """Return a program's seconds and the sum of its result."""
    inputs = tuple(x.persist() for x in inputs)
    wait(inputs)

    def run() -> float:
        return float(xdev.sum(program(*inputs), dtype=xdev.float64))

    total = run()  # it compiles
    return record.sample({"": run}, number=1, repeat=repeat)[""], total


def main() -> None:
    """Measure each program on each cluster."""
    parser = record.arguments(__doc__ or "")
    gpus = sum(device.type == "cuda" for device in xdev.devices())
    parser.add_argument("--device", default="cuda", help="cuda (default) or cpu")
    parser.add_argument(
        "--workers", type=int, nargs="+", help="(default: one, and one for each GPU)"
    )
    parser.add_argument("--mebibytes", type=int, default=4096, help="(default: 4096)")
    parser.add_argument("--repeat", type=int, default=5, help="(default: 5)")
    options = parser.parse_args()
    counts = sorted(set(options.workers or (1, gpus)))
    if options.device == "cuda" and max(counts) > max(gpus, 1):
        parser.error(f"--workers {max(counts)}: there are {gpus} GPUs")
    if gpus < 2 and options.device == "cuda":
        left = f"needs two GPUs, and there are {gpus}"
        print(left)
        record.write(options.json, [], left_out={"all": left})
        return
    rows, sums = [], dict[str, set[float]]()
    for count in counts:
        cluster = distributed.local_cluster(
            count, device=options.device, dashboard_address=":0"
        )
        with cluster, Client(cluster):
            each = programs(options.mebibytes, PIECES * counts[-1], options.device)
            for name, (inputs, program) in each.items():
                seconds, total = measured(inputs, program, options.repeat)
                sums.setdefault(name, set()).add(total)
                candidate = f"{count} workers" if count > 1 else "1 worker"
                row = {
                    "name": f"{name}: {candidate}",
                    "group": name,
                    "candidate": candidate,
                    "samples": seconds,
                }
                first = next((r for r in rows if r["group"] == name), row)
                row["speed_up"] = statistics.median(
                    first["samples"]
                ) / statistics.median(seconds)
                print(
                    f"{row['name']:28}{statistics.median(seconds) * 1e3:10.1f} ms"
                    f"   speed-up {row['speed_up']:.2f}",
                    flush=True,
                )
                rows.append(row)
    assert all(len(found) == 1 for found in sums.values()), sums  # noqa: S101
    record.write(options.json, rows, claim="two GPUs at least 1.7 times as fast as one")


if __name__ == "__main__":
    main()
