"""Ufuncs on large CUDA arrays: the share of a copy's bandwidth, beside their peers.

Elementwise sums of every dtype and layout beside a copy on the device; the chain
``a*x + y*3 - sin(x)`` beside CuPy's operators, PyTorch's and ``torch.compile``;
reductions beside ``cupy.sum``, running sums beside ``cupy.cumsum``. All is the time
between two events.
"""

import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import peers
import record

import xdev
from xdev import _optional

Calls = dict[str, Callable[[], object]]
COPY = "copy on the device"


@xdev.vectorize(identity=0)
def add(x: Any, y: Any) -> Any:
    """Return the sum."""
    return x + y


@xdev.vectorize
def chain(a: Any, x: Any, y: Any) -> Any:
    """Return what takes numbers, products and a sine."""
    return a * x + y * 3 - math.sin(x)


def device_time(calls: Calls, repeat: int) -> dict[str, list[float]]:
    """Return seconds between two events around each call; the calls take turns."""
    import cupy as cp

    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeat):
        for name, call in calls.items():
            before, after = cp.cuda.Event(), cp.cuda.Event()
            call()  # the queue is not empty when the timed one is launched
            before.record()
            call()
            after.record()
            after.synchronize()
            samples[name].append(cp.cuda.get_elapsed_time(before, after) * 1e-3)
    return samples


def copied(cp: Any, nbytes: int) -> Callable[[], object]:
    """Return a copy of that many bytes on the device."""
    source, target = cp.ones(nbytes, np.uint8), cp.empty(nbytes, np.uint8)

    def copy() -> None:
        stream = cp.cuda.get_current_stream().ptr
        move = cp.cuda.runtime.memcpyAsync
        move(target.data.ptr, source.data.ptr, nbytes, 3, stream)

    return copy


def layouts(cp: Any, n: int, char: str) -> dict[str, tuple[Any, Any, Any]]:
    """Return operands and outputs of a sum in each layout."""
    rng = cp.random.default_rng(0)
    x, y = (rng.integers(0, 9, n).astype(char) for _ in range(2))
    out = cp.empty(n, char)
    found = {"contiguous": (x, y, out)}
    if char not in "fb":
        return found
    side = 2 ** (n.bit_length() // 2)
    m, k, o = (v.reshape(-1, side) for v in (x, y, out))
    found["misaligned alike"] = x[1:], y[1:], out[1:]
    found["misaligned inputs"] = x[1:-2], y[3:], out[:-3]
    found["a row"] = m, k[0], o
    found["a column"] = m, k[:, :1], o
    found["inner columns"] = m[:, 8:-8], k[:, 8:-8], o[:, 8:-8]
    found["odd columns"] = m[:, 1:], k[:, 1:], o[:, 1:]
    found["every other row"] = m[::2], k[::2], o[::2]
    found["one transposed"] = m, k.T, o
    return found


def moved(operands: tuple[Any, Any, Any]) -> int:
    """Return the bytes that must be read and written at least."""
    return sum(each.size * each.itemsize for each in operands)


def layout_rows(n: int, repeat: int) -> list[dict[str, Any]]:
    """Time sums of every dtype and layout."""
    import cupy as cp

    rows: list[dict[str, Any]] = []
    for char in "efdFb":
        whole = n * np.dtype(char).itemsize
        calls: Calls = {COPY: copied(cp, whole)}
        bytes_moved = {COPY: 2 * whole}
        operands = layouts(cp, n, char)
        for name, (x, y, out) in operands.items():
            label = f"{np.dtype(char)} {name}"
            calls[label] = lambda x=x, y=y, out=out: add(x, y, out=out)
            bytes_moved[label] = moved((x, y, out))
            calls[label]()
        for name, (x, y, out) in operands.items():  # once all layouts are known
            out.fill(0)
            calls[f"{np.dtype(char)} {name}"]()
            if not bool((out == x + y).all()):
                message = f"{np.dtype(char)} {name}: wrong sums"
                raise RuntimeError(message)
        times = device_time(calls, repeat)
        base = bytes_moved[COPY] / statistics.median(times[COPY])
        for name, samples in times.items():
            rate = bytes_moved[name] / statistics.median(samples)
            print(f"{name:32}{rate / 1e12:8.2f} TB/s{rate / base:8.1%} of the copy")
            rows.append(
                {
                    "name": name,
                    "kind": "bandwidth",
                    "n": n,
                    "nbytes": bytes_moved[name],
                    "share": rate / base,
                    "samples": samples,
                }
            )
        cp.get_default_memory_pool().free_all_blocks()
        xdev.memory.reclaim()
    return rows


def chain_calls(cp: Any, n: int) -> tuple[Calls, dict[str, str]]:
    """Return the chain by xdev and its peers, and why others are left out."""
    rng = cp.random.default_rng(0)
    x, y = rng.random(n, cp.float32), rng.random(n, cp.float32)
    out = cp.empty_like(x)
    a = 2.5

    def by_torch(torch: Any, made: Callable[..., Any]) -> Callable[[], Any]:
        tx, ty = (torch.as_tensor(v, device="cuda") for v in (x, y))
        call = made(lambda x, y: a * x + y * 3 - torch.sin(x))
        return lambda: call(tx, ty)

    task: dict[str, Callable[[], Any]] = {
        "xdev chain(a, x, y, out=o)": lambda: lambda: chain(a, x, y, out=out),
        "CuPy operators": lambda: lambda: a * x + y * 3 - cp.sin(x),
        "PyTorch eager": lambda: by_torch(_optional.torch(), lambda f: f),
        "torch.compile": lambda: by_torch(_optional.torch(), _optional.torch().compile),
    }
    calls, left_out = peers.made(task)
    expected = calls["CuPy operators"]()[:1000].get()
    np.testing.assert_allclose(out[:1000].get(), expected, rtol=1e-5, atol=1e-6)
    return calls, left_out


def fold_calls(cp: Any, n: int) -> dict[str, Calls]:
    """Return reductions and running sums, each beside CuPy's."""
    x = cp.random.default_rng(0).random(n, cp.float32)
    side = 2 ** (n.bit_length() // 2)
    m = x.reshape(-1, side)
    small = cp.ones(n, np.int8)
    groups: dict[str, Calls] = {
        "sum of all": {
            "xdev add.reduce(x)": lambda: add.reduce(x),
            "cupy.sum(x)": lambda: cp.sum(x),
        },
        "sum of rows": {
            "xdev add.reduce(m, 1)": lambda: add.reduce(m, 1),
            "cupy.sum(m, 1)": lambda: cp.sum(m, 1),
        },
        "sum of columns": {
            "xdev add.reduce(m, 0)": lambda: add.reduce(m, 0),
            "cupy.sum(m, 0)": lambda: cp.sum(m, 0),
        },
        "sum of all int8": {
            "xdev add.reduce(b, dtype=int64)": lambda: add.reduce(small, dtype="l"),
            "cupy.sum(b)": lambda: cp.sum(small),
        },
        "running sum": {
            "xdev add.accumulate(x)": lambda: add.accumulate(x),
            "cupy.cumsum(x)": lambda: cp.cumsum(x),
        },
    }
    for calls in groups.values():
        ours, theirs = (call() for call in calls.values())
        at = slice(None, None, max(1, ours.size // 1000))
        np.testing.assert_allclose(
            ours.ravel()[at].get(), theirs.ravel()[at].get(), rtol=1e-2
        )
    return groups


def show(calls: Calls, n: int, repeat: int, kind: str) -> list[dict[str, Any]]:
    """Time calls, print their ratios to the first, and return their rows."""
    for call in calls.values():
        call()
    times = device_time(calls, repeat)
    base = statistics.median(next(iter(times.values())))
    for name, samples in times.items():
        middle = statistics.median(samples)
        print(f"{name:32}{middle * 1e6:12.1f} µs{middle / base:8.2f} x")
    return [
        {
            "name": f"{kind}: {name}",
            "group": kind,
            "candidate": name,
            "n": n,
            "samples": samples,
        }
        for name, samples in times.items()
    ]


def main() -> None:
    """Time layouts, the chain, then the folds."""
    parser = record.arguments(__doc__)
    parser.add_argument("--n", type=int, default=2**28, help="elements, a power of 2")
    parser.add_argument("--repeat", type=int, default=9, help="samples of each row")
    options = parser.parse_args()
    reason = xdev.Device("cuda").reason
    if reason is not None:
        print(f"left out, all of it: {reason}")
        record.write(options.json, [], left_out=reason)
        return
    import cupy as cp

    xdev.Device("cuda").require()
    n, repeat = options.n, options.repeat
    found = layout_rows(n, repeat)
    calls, left_out = chain_calls(cp, n)
    print(f"left out of the chain: {left_out}")
    found += show(calls, n, repeat, "chain")
    for kind, calls in fold_calls(cp, n).items():
        found += show(calls, n, repeat, kind)
    record.write(options.json, found, left_out=left_out)


if __name__ == "__main__":
    main()
