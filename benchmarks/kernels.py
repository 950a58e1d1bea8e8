"""Kernels beside handwritten ones: saxpy, a stencil, histograms, a sparse product.

On the CPU the peer is the same loop under ``@numba.njit(parallel=True)``, on CUDA the
same kernel in CUDA C++ under ``cupy.RawKernel``. Results are compared before anything
is timed; both write to one array, since where it lies in memory may count for more.
``ratio`` is xdev's median over the peer's. CPU rows are the time of a call, CUDA rows
the device's time between two events, and ``host`` rows the host's time of launches on a
small input.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import handwritten
import numba
import numpy as np
import record
from handwritten import CHUNK

import xdev

Calls = dict[str, Callable[[], object]]
BINS, DEGREE = 256, 16
OURS = "xdev @kernel"
LONG = 0.3  # seconds of a run on the CPU


@xdev.kernel
def saxpy(i: Any, a: Any, x: Any, y: Any, out: Any) -> None:
    """Write a x + y."""
    out[i] = a * x[i] + y[i]


@xdev.kernel
def stencil(i: Any, j: Any, x: Any, out: Any) -> None:
    """Write the mean of each inner point's neighbours and itself."""
    out[i + 1, j + 1] = 0.2 * (
        x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2] + x[i + 1, j + 1]
    )


@xdev.kernel
def histogram(i: Any, x: Any, counts: Any) -> None:
    """Count values, each by an atomic addition."""
    xdev.atomic.add(counts, x[i], 1)


@xdev.kernel
def partial(c: Any, x: Any, parts: Any) -> None:
    """Count the values of a chunk in its own row."""
    for k in range(c * CHUNK, min((c + 1) * CHUNK, x.shape[0])):
        parts[c, x[k]] += 1


@xdev.kernel
def spmv(i: Any, starts: Any, columns: Any, values: Any, x: Any, out: Any) -> None:
    """Write a row of a sparse matrix times a vector."""
    total = 0.0
    for k in range(starts[i], starts[i + 1]):
        total += values[k] * x[columns[k]]
    out[i] = total


def inputs(n: int) -> dict[str, Any]:
    """Return random arrays: vectors of ``n``, an image and a matrix of as much work."""
    rng = np.random.default_rng(0)
    side, rows = int(n**0.5), max(n // DEGREE, 1)
    return {
        "x": rng.random(n, np.float32),
        "y": rng.random(n, np.float32),
        "image": rng.random((side, side), np.float32),
        "values": rng.random(rows * DEGREE, np.float32),
        "columns": rng.integers(0, rows, rows * DEGREE, np.int32),
        "starts": np.arange(rows + 1, dtype=np.int32) * DEGREE,
        "levels": rng.integers(0, BINS, n, np.int32),
    }


def cpu(n: int) -> dict[str, tuple[Calls, Any]]:
    """Return for each task its candidates, and what they write."""
    given = inputs(n)
    x, y, image, levels = (given[k] for k in ("x", "y", "image", "levels"))
    matrix = given["starts"], given["columns"], given["values"]
    rows, (h, w) = matrix[0].size - 1, image.shape
    chunks = -(-n // CHUNK)
    a, peer = np.float32(3), "Numba parallel"
    outs = {
        "saxpy": np.zeros_like(x),
        "stencil": np.zeros_like(image),
        "histogram": np.zeros(BINS, np.int32),
        "histogram by chunks": np.zeros((chunks, BINS), np.int32),
        "spmv": np.zeros(rows, np.float32),
    }

    def calls(task: str, ours: Any, theirs: Any) -> tuple[Calls, Any]:
        out = outs[task]
        return {OURS: lambda: ours(out), peer: lambda: theirs(out)}, out

    vector = x[:rows]
    return {
        "saxpy": calls(
            "saxpy",
            lambda o: saxpy[n](a, x, y, o),
            lambda o: handwritten.saxpy(a, x, y, o),
        ),
        "stencil": calls(
            "stencil",
            lambda o: stencil[h - 2, w - 2](image, o),
            lambda o: handwritten.stencil(image, o),
        ),
        "histogram": calls(
            "histogram",
            lambda o: histogram[n](levels, o),
            lambda o: handwritten.histogram(levels, o),
        ),
        "histogram by chunks": calls(
            "histogram by chunks",
            lambda o: partial[chunks](levels, o),
            lambda o: handwritten.partial(levels, o),
        ),
        "spmv": calls(
            "spmv",
            lambda o: spmv[rows](*matrix, vector, o),
            lambda o: handwritten.spmv(*matrix, vector, o),
        ),
    }


def cuda(n: int) -> dict[str, tuple[Calls, Any]]:
    """Return for each task its candidates, and what they write."""
    import cupy as cp

    given = {name: cp.asarray(value) for name, value in inputs(n).items()}
    x, y, image, levels = (given[k] for k in ("x", "y", "image", "levels"))
    matrix = given["starts"], given["columns"], given["values"]
    rows, (h, w) = matrix[0].size - 1, image.shape
    vector, a = x[:rows], np.float32(3)

    def raw(task: str) -> Any:
        return cp.RawKernel(
            f'extern "C" __global__ void {task}{handwritten.CPP[task]}', task
        )

    def line(count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (-(-count // 256),), (256,)

    def calls(task: str, like: Any, ours: Any, *args: Any) -> tuple[Calls, Any]:
        out = cp.zeros_like(like)
        kernel, (blocks, threads, before, after) = raw(task), args
        theirs = (*before, out, *map(np.int32, after))
        return {
            OURS: lambda: ours(out),
            "CuPy RawKernel": lambda: kernel(blocks, threads, theirs),
        }, out

    counts = cp.zeros(BINS, cp.int32)
    plane = (-(-(w - 2) // 32), -(-(h - 2) // 8)), (32, 8)
    return {
        "saxpy": calls(
            "saxpy", x, lambda o: saxpy[n](a, x, y, o), *line(n), (a, x, y), (n,)
        ),
        "stencil": calls(
            "stencil",
            image,
            lambda o: stencil[h - 2, w - 2](image, o),
            *plane,
            (image,),
            (h, w),
        ),
        "histogram": calls(
            "histogram",
            counts,
            lambda o: histogram[n](levels, o),
            *line(n),
            (levels,),
            (n,),
        ),
        "spmv": calls(
            "spmv",
            vector,
            lambda o: spmv[rows](*matrix, vector, o),
            *line(rows),
            (*matrix, vector),
            (rows,),
        ),
    }


def agree(task: str, calls: Calls, out: Any) -> None:
    """Call each once, and stop where results differ."""
    results = []
    for call in calls.values():
        out[...] = 0
        call()
        results.append(xdev.to_numpy(out).copy())
    first, second = results
    np.testing.assert_allclose(first, second, rtol=1e-5, err_msg=task)
    if not first.any():
        message = f"{task}: nothing was written"
        raise AssertionError(message)


def enough(calls: Calls) -> int:
    """Return how many calls make a run long beside what a peer's threads still do.

    They look for more work for a while, on the same processors.
    """
    took = []
    for _ in range(3):
        start = time.perf_counter()
        calls[OURS]()
        took.append(time.perf_counter() - start)
    return max(2, int(LONG / min(took)))


def device_time(calls: Calls, repeat: int, number: int = 10) -> dict[str, list[float]]:
    """Time each candidate between two events, in turn [s]."""
    import cupy as cp

    start, stop = cp.cuda.Event(), cp.cuda.Event()
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeat):
        for name, call in calls.items():
            start.record()
            for _ in range(number):
                call()
            stop.record()
            stop.synchronize()
            elapsed = cp.cuda.get_elapsed_time(start, stop)
            samples[name].append(elapsed / 1e3 / number)
    return samples


def show(what: str, task: str, samples: Mapping[str, list[float]]) -> None:
    """Print medians, and xdev's ratio to the peer."""
    ours, theirs = (statistics.median(times) for times in samples.values())
    _, peer = samples
    print(
        f"{what:6}{task:22}{ours * 1e6:12.1f} µs  {peer} {theirs * 1e6:12.1f} µs"
        f"  ratio {ours / theirs:6.2f}"
    )


def rows(
    what: str, task: str, n: int, samples: Mapping[str, list[float]]
) -> list[dict[str, Any]]:
    """Return what a record keeps."""
    return [
        {"name": name, "what": what, "task": task, "n": n, "samples": times}
        for name, times in samples.items()
    ]


def main() -> None:
    """Compare and time every task on the CPU, and on CUDA where there is a device."""
    parser = record.arguments(__doc__ or "")
    parser.add_argument("--n", type=int, default=4_000_000, help="elements on the CPU")
    parser.add_argument("--large", type=int, default=2**26, help="elements on CUDA")
    parser.add_argument("--repeat", type=int, default=15, help="samples of each row")
    options = parser.parse_args()
    threads = xdev._config.num_threads()  # noqa: SLF001 - the peer gets as many
    numba.set_num_threads(min(numba.config.NUMBA_NUM_THREADS, threads))
    found: list[dict[str, Any]] = []
    for task, (calls, out) in cpu(options.n).items():
        agree(task, calls, out)
        samples = record.sample(calls, enough(calls), options.repeat)
        show("cpu", task, samples)
        found += rows("cpu", task, options.n, samples)
    reason = xdev.Device("cuda").reason
    if reason is not None:
        print(f"CUDA rows left out: {reason}")
        record.write(options.json, found, left_out=reason)
        return
    xdev.Device("cuda").require()
    for task, (calls, out) in cuda(options.large).items():
        agree(task, calls, out)
        samples = device_time(calls, options.repeat)
        show("cuda", task, samples)
        found += rows("cuda", task, options.large, samples)
    for task, (calls, out) in cuda(10_000).items():
        agree(task, calls, out)
        samples = record.sample(calls, 200, options.repeat, finish=xdev.synchronize)
        show("host", task, samples)
        found += rows("host", task, 10_000, samples)
    record.write(options.json, found)


if __name__ == "__main__":
    main()
