"""What ``adapt`` costs: the walk over a tree, many small arrays to CUDA and back.

The claims: at most 1 us a node on the CPU, where nothing moves; on CUDA 1000 small
arrays at least 3 times as fast as a loop of ``cupy.asarray``, and as one of
``cupy.asnumpy`` on the way back.
"""

from __future__ import annotations

import dataclasses
import statistics
from typing import TYPE_CHECKING, Any

import numpy as np
import record

import xdev
from xdev import _optional

if TYPE_CHECKING:
    from collections.abc import Callable

ARRAYS = 1000
LARGEST = 2000  # elements of the largest small array


@dataclasses.dataclass
class Pair:
    """A node of the dataclass tree."""

    left: Any
    right: Any


def tree(depth: int, node: Callable[[Any, Any], Any]) -> Any:
    """Return a binary tree with an array at each leaf."""
    if not depth:
        return np.zeros(3, np.float32)
    return node(tree(depth - 1, node), tree(depth - 1, node))


def chain(depth: int) -> Any:
    """Return an array in so many lists, one in the other."""
    return [chain(depth - 1)] if depth else np.zeros(3, np.float32)


def walks(repeat: int) -> list[dict[str, Any]]:
    """Measure the walk on the CPU, where no array moves; print ns a node."""
    depth = 10
    nodes = 2 ** (depth + 1) - 1
    trees = {
        "lists": (tree(depth, lambda a, b: [a, b]), nodes),
        "dicts": (tree(depth, lambda a, b: {"a": a, "b": b}), nodes),
        "tuples": (tree(depth, lambda a, b: (a, b)), nodes),
        "dataclasses": (tree(depth, Pair), nodes),
        "a chain of lists": (chain(250), 251),
    }
    calls = {
        name: lambda whole=whole: xdev.adapt("cpu", whole)
        for name, (whole, _) in trees.items()
    }
    for call in calls.values():
        call()
    samples = record.sample(calls, 5, repeat)
    print("cpu: a walk over a tree whose arrays are there, ns a node")
    rows = []
    for name, runs in samples.items():
        count = trees[name][1]
        print(f"{name:24}{statistics.median(runs) / count * 1e9:9.0f}")
        rows.append({"name": f"cpu walk {name}", "nodes": count, "samples": runs})
    return rows


def moves(device: xdev.Device, repeat: int) -> list[dict[str, Any]]:
    """Measure many small arrays up and down beside the libraries' loops."""
    cupy = _optional.cupy()
    draw = np.random.default_rng(0)
    here = [
        draw.standard_normal(int(size)).astype(np.float32)
        for size in draw.integers(1, LARGEST, ARRAYS)
    ]
    there = [cupy.asarray(x) for x in here]
    packed = xdev.adapt(device, here)
    candidates: dict[str, Callable[[], object]] = {
        "up: xdev.adapt": lambda: xdev.adapt(device, here),
        "up: loop of cupy.asarray": lambda: [cupy.asarray(x) for x in here],
        "down: xdev.adapt": lambda: xdev.adapt("cpu", there),
        "down: xdev.adapt, of packs": lambda: xdev.adapt("cpu", packed),
        "down: loop of cupy.asnumpy": lambda: [cupy.asnumpy(x) for x in there],
    }
    if _optional.installed("torch"):
        torch = _optional.torch()
        tensors = [torch.from_numpy(x) for x in here]
        far = [x.cuda() for x in tensors]
        candidates["up: loop of tensor.cuda"] = lambda: [x.cuda() for x in tensors]
        candidates["down: loop of tensor.cpu"] = lambda: [x.cpu() for x in far]
    for call in candidates.values():
        call()
    samples = record.sample(candidates, 3, repeat, lambda: xdev.synchronize(device))
    peers = {"up": "loop of cupy.asarray", "down": "loop of cupy.asnumpy"}
    print(f"\n{device}: {ARRAYS} arrays of up to {4 * LARGEST:,} B, us an array")
    for name, runs in samples.items():
        way = name.partition(":")[0]
        peer = statistics.median(samples[f"{way}: {peers[way]}"])
        took = statistics.median(runs)
        print(f"{name:32}{took / ARRAYS * 1e6:9.2f}{peer / took:8.1f} x CuPy's loop")
    return [
        {"name": f"{device} {key}", "samples": runs} for key, runs in samples.items()
    ]


def main() -> None:
    """Measure on the CPU, and on CUDA where it is."""
    parser = record.arguments(__doc__ or "")
    parser.add_argument("--repeat", type=int, default=15, help="(default: 15)")
    options = parser.parse_args()
    rows = walks(options.repeat)
    cuda = xdev.Device("cuda")
    if cuda.available:
        rows += moves(cuda.require(), options.repeat)
    else:
        print(f"\nleft out: {cuda} ({cuda.reason})")
    record.write(options.json, rows, claim="1 us a node; 3 x a loop of cupy.asarray")


if __name__ == "__main__":
    main()
