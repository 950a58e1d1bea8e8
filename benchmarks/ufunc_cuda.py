"""Ufuncs on CUDA arrays, a user's and the facade's: the host time of a call.

Beside xdev's stand CuPy, Numba's CUDA ufunc, PyTorch, JAX and Warp, each where
installed; they take turns. Rows are host time until the call returns. All is measured
twice: on the default stream while it is the only one, and once a second was used; the
record says how many GPUs were visible, and whether the native tier was in use.
"""

import gc
import importlib.util
import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import record

import xdev
from xdev import native

Calls = dict[str, Callable[[], object]]
# What does the same; JAX has no array to write into.
TASKS = {
    "x + y, out=": (
        "xdev f(x, y, out=o)",
        "CuPy add(x, y, o)",
        "CuPy ElementwiseKernel",
        "PyTorch add(x, y, out=o)",
        "Warp map(add, x, y, out=o)",
    ),
    "x + y of Numba's arrays, out=": (
        "xdev f, Numba arrays",
        "Numba ufunc, Numba arrays",
        "Numba ufunc, CuPy arrays",
    ),
    "x + y": (
        "xdev f(x, y)",
        "xdev.add(x, y)",
        "CuPy x + y",
        "PyTorch x + y",
        "JAX jit(x + y)",
    ),
    "x + 2.0": ("xdev f(x, 2.0, out=o)", "CuPy add(x, 2.0, o)"),
    "matrix + row": ("xdev f(matrix, row, out=o)", "CuPy add(matrix, row, o)"),
    "part + part": ("xdev f(part, part, out=o)", "CuPy add(part, part, o)"),
    "sum of x": ("xdev f.reduce(x)", "CuPy sum(x)"),
    "sin(x)": ("xdev.sin(x)", "CuPy sin(x)", "PyTorch sin(x)"),
    "clip(x)": ("xdev.clip(x, 0.2, 0.8)", "CuPy clip(x)", "PyTorch clamp(x)"),
    "where(m, x, y)": (
        "xdev.where(m, x, y)",
        "CuPy where(m, x, y)",
        "PyTorch where(m, x, y)",
    ),
    "reshape(x)": ("xdev.reshape(x, shape)", "CuPy x.reshape(shape)"),
}


@xdev.vectorize
def ours(x: Any, y: Any) -> Any:
    """Return the sum."""
    return x + y


def candidates(n: int) -> tuple[Calls, dict[str, Any]]:
    """Return what to time at ``n`` float32 elements, and what each wrote."""
    import cupy as cp

    rng = cp.random.default_rng(0)
    x, y = rng.random(n, cp.float32), rng.random(n, cp.float32)
    o, theirs, plain = (cp.zeros_like(x) for _ in range(3))
    calls: Calls = {
        "xdev f(x, y, out=o)": lambda: ours(x, y, out=o),
        "CuPy add(x, y, o)": lambda: cp.add(x, y, theirs),
        "CuPy ElementwiseKernel": _elementwise(cp, x, y, plain),
    }
    wrote = {"xdev f(x, y, out=o)": o, "CuPy add(x, y, o)": theirs}
    wrote["CuPy ElementwiseKernel"] = plain
    if importlib.util.find_spec("torch"):
        import torch

        tx, ty = (torch.as_tensor(each, device="cuda") for each in (x, y))
        to = torch.zeros_like(tx)
        calls["PyTorch add(x, y, out=o)"] = lambda: torch.add(tx, ty, out=to)
        wrote["PyTorch add(x, y, out=o)"] = to
    return calls | _numba(x, y, wrote) | _compiled(x, y), wrote


def _compiled(x: Any, y: Any) -> Calls:
    """Return what JAX and Warp make of the sum, where they can use the GPU."""
    calls: Calls = {}
    if importlib.util.find_spec("jax"):
        import jax

        if jax.default_backend() == "gpu":
            one, two = (jax.numpy.from_dlpack(v) for v in (x, y))
            jitted = jax.jit(_add)
            calls["JAX jit(x + y)"] = lambda: jitted(one, two)
    if importlib.util.find_spec("warp"):
        import warp

        wx, wy = (warp.from_dlpack(v) for v in (x, y))
        wo = warp.empty_like(wx)
        calls["Warp map(add, x, y, out=o)"] = lambda: warp.map(warp.add, wx, wy, out=wo)
    return calls


def _elementwise(cp: Any, x: Any, y: Any, o: Any) -> Callable[[], object]:
    kernel = cp.ElementwiseKernel("T x, T y", "T z", "z = x + y", "benchmark_add")
    return lambda: kernel(x, y, o)


def _numba(x: Any, y: Any, wrote: dict[str, Any]) -> Calls:
    import cupy as cp

    cuda = xdev._optional.numba_cuda()  # noqa: SLF001 - the one door to it
    numba = xdev._optional.numba()  # noqa: SLF001
    warnings.filterwarnings("ignore", category=numba.core.errors.NumbaWarning)
    add = numba.vectorize(["float32(float32, float32)"], target="cuda")(_add)
    nx, ny = cuda.as_cuda_array(x), cuda.as_cuda_array(y)
    no, co, xo = (
        cuda.device_array_like(nx),
        cp.zeros_like(x),
        cuda.device_array_like(nx),
    )
    wrote["Numba ufunc, Numba arrays"] = no
    wrote["Numba ufunc, CuPy arrays"] = co
    wrote["xdev f, Numba arrays"] = xo
    return {
        "Numba ufunc, Numba arrays": lambda: add(nx, ny, out=no),
        "Numba ufunc, CuPy arrays": lambda: add(x, y, out=co),
        "xdev f, Numba arrays": lambda: ours(nx, ny, out=xo),
    }


def _add(x: Any, y: Any) -> Any:
    return x + y


def more_calls(n: int) -> Calls:
    """Return other ways to call xdev's ufunc, for their host time."""
    import cupy as cp

    x, y, o = (cp.random.default_rng(i).random(n, cp.float32) for i in range(3))
    square = x[: n - n % 100].reshape(-1, 100)
    row, made = square[0], cp.empty_like(square)
    part, inner = square[:, 1:-1], cp.empty_like(square)[:, 1:-1]
    mask, shape = x > 0.5, (n // 100, 100)
    made_by_torch: Calls = {}
    if importlib.util.find_spec("torch"):
        import torch

        tx, ty, tm = (torch.as_tensor(each, device="cuda") for each in (x, y, mask))
        made_by_torch = {
            "PyTorch x + y": lambda: tx + ty,
            "PyTorch sin(x)": lambda: torch.sin(tx),
            "PyTorch clamp(x)": lambda: torch.clamp(tx, 0.2, 0.8),
            "PyTorch where(m, x, y)": lambda: torch.where(tm, tx, ty),
        }
    return {
        "xdev.add(x, y)": lambda: xdev.add(x, y),
        "xdev.sin(x)": lambda: xdev.sin(x),
        "CuPy sin(x)": lambda: cp.sin(x),
        "xdev.clip(x, 0.2, 0.8)": lambda: xdev.clip(x, 0.2, 0.8),
        "CuPy clip(x)": lambda: cp.clip(x, 0.2, 0.8),
        "xdev.where(m, x, y)": lambda: xdev.where(mask, x, y),
        "CuPy where(m, x, y)": lambda: cp.where(mask, x, y),
        "xdev.reshape(x, shape)": lambda: xdev.reshape(x[: n - n % 100], shape),
        "CuPy x.reshape(shape)": lambda: x[: n - n % 100].reshape(shape),
        "xdev f(x, y)": lambda: ours(x, y),
        "CuPy x + y": lambda: x + y,
        **made_by_torch,
        "xdev f(x, 2.0, out=o)": lambda: ours(x, 2.0, out=o),
        "CuPy add(x, 2.0, o)": lambda: cp.add(x, 2.0, o),
        "xdev f(matrix, row, out=o)": lambda: ours(square, row, out=made),
        "CuPy add(matrix, row, o)": lambda: cp.add(square, row, made),
        "xdev f(part, part, out=o)": lambda: ours(part, part, out=inner),
        "CuPy add(part, part, o)": lambda: cp.add(part, part, inner),
        "xdev f.reduce(x)": lambda: ours.reduce(x),
        "CuPy sum(x)": lambda: cp.sum(x),
    }


def agree(wrote: Mapping[str, Any]) -> None:
    """Refuse to time what does not compute the same; sums may differ in rounding."""
    import cupy as cp

    for names in TASKS.values():
        first, *rest = [name for name in names if name in wrote] or [""]
        for name in rest:
            if not bool(cp.allclose(*(cp.asarray(wrote[n]) for n in (name, first)))):
                message = f"{name} and {first} differ"
                raise RuntimeError(message)


def host_time(calls: Calls, number: int, repeat: int) -> dict[str, list[float]]:
    """Return seconds per call until it returns; the queue is empty at each start."""
    import cupy as cp

    samples: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for turn in range(repeat):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            call = calls[name]
            cp.cuda.runtime.deviceSynchronize()
            gc.disable()
            start = time.perf_counter()
            for _ in range(number):
                call()
            samples[name].append((time.perf_counter() - start) / number)
            gc.enable()
    cp.cuda.runtime.deviceSynchronize()
    return samples


def rows(n: int, samples: dict[str, list[float]], streams: str) -> list[dict[str, Any]]:
    """Return the rows of the record."""
    return [
        {
            "name": name if streams == "one stream" else f"{name}; {streams}",
            "task": task,
            "n": n,
            "streams": streams,
            "samples": samples[name],
        }
        for task, names in TASKS.items()
        for name in names
        if name in samples
    ]


def show(title: str, samples: dict[str, list[float]]) -> None:
    """Print medians and ratios to the first."""
    print(f"\n{title}")
    base = statistics.median(next(iter(samples.values())))
    for name, times in samples.items():
        middle = statistics.median(times)
        print(f"{name:28}{middle * 1e6:12.2f} µs{middle / base:9.2f} x")


def main() -> None:
    """Time the calls, before and after a second stream was used."""
    parser = record.arguments(__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="elements of a call")
    parser.add_argument("--repeat", type=int, default=25, help="samples of each row")
    options = parser.parse_args()
    reason = xdev.Device("cuda").reason
    if reason is not None:
        print(f"left out, all of it: {reason}")
        record.write(options.json, [], left_out=reason)
        return
    xdev.Device("cuda").require()
    gpus = xdev.devices()
    facts = {
        "gpus_visible": sum(device.type == "cuda" for device in gpus),
        "native_tier": native.STATE,
    }
    found: list[dict[str, Any]] = []
    for streams in ("one stream", "two streams"):
        for calls, wrote in (candidates(options.n), (more_calls(options.n), {})):
            for call in calls.values():
                for _ in range(3):
                    call()
            agree(wrote or {name: call() for name, call in calls.items()})
            times = host_time(calls, 200, options.repeat)
            found += rows(options.n, times, streams)
            show(f"host time of a call, {options.n:,} float32, {streams}", times)
        with xdev.Stream("cuda"):
            ours(*(xdev.ones(9, dtype=xdev.float32, device="cuda") for _ in range(2)))
    record.write(options.json, found, **facts)


if __name__ == "__main__":
    main()
