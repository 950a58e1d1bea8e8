"""The loops of kernels.py by hand: for Numba in parallel, and in CUDA C++."""

from typing import Any

import numba
import numpy as np

import xdev

CHUNK = 1 << 14


@numba.njit(parallel=True)
def saxpy(a: Any, x: Any, y: Any, out: Any) -> None:
    """Do as saxpy."""
    for i in numba.prange(x.shape[0]):
        out[i] = a * x[i] + y[i]


@numba.njit(parallel=True)
def stencil(x: Any, out: Any) -> None:
    """Do as stencil."""
    fifth = np.float32(0.2)
    for i in numba.prange(x.shape[0] - 2):
        for j in range(x.shape[1] - 2):
            out[i + 1, j + 1] = fifth * (
                x[i, j + 1]
                + x[i + 2, j + 1]
                + x[i + 1, j]
                + x[i + 1, j + 2]
                + x[i + 1, j + 1]
            )


@numba.njit(parallel=True)
def histogram(x: Any, counts: Any) -> None:
    """Do as histogram: Numba knows xdev's atomics once a kernel is compiled."""
    for i in numba.prange(x.shape[0]):
        xdev.atomic.add(counts, x[i], 1)


@numba.njit(parallel=True)
def partial(x: Any, parts: Any) -> None:
    """Do as partial."""
    for c in numba.prange(parts.shape[0]):
        for k in range(c * CHUNK, min((c + 1) * CHUNK, x.shape[0])):
            parts[c, x[k]] += 1


@numba.njit(parallel=True)
def spmv(starts: Any, columns: Any, values: Any, x: Any, out: Any) -> None:
    """Do as spmv."""
    for i in numba.prange(out.shape[0]):
        total = np.float32(0)
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * x[columns[k]]
        out[i] = total


CPP = {
    "saxpy": """(float a, const float* x, const float* y, float* out, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) out[i] = a * x[i] + y[i]; }""",
    "stencil": """(const float* x, float* out, int h, int w) {
        int j = blockIdx.x * blockDim.x + threadIdx.x;
        int i = blockIdx.y * blockDim.y + threadIdx.y;
        if (i >= h - 2 || j >= w - 2) return;
        const float* at = x + (long long)(i + 1) * w + j + 1;
        out[(long long)(i + 1) * w + j + 1] =
            0.2f * (at[-w] + at[w] + at[-1] + at[1] + at[0]); }""",
    "histogram": """(const int* x, int* counts, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) atomicAdd(counts + x[i], 1); }""",
    "spmv": """(const int* starts, const int* columns, const float* values,
                const float* x, float* out, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        float total = 0;
        for (int k = starts[i]; k < starts[i + 1]; ++k)
            total += values[k] * x[columns[k]];
        out[i] = total; }""",
}
