"""Fourier transforms by cuFFT's plans, which a stand-in follows on the host."""

import ctypes
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import xdev
from xdev.facade import cuda_libraries

KINDS = {
    **dict.fromkeys((0x29, 0x69), "c2c"),
    **dict.fromkeys((0x2A, 0x6A), "r2c"),
    **dict.fromkeys((0x2C, 0x6C), "c2r"),
}


def places(sizes, shape, step):
    """Where cuFFT finds an element: shape's rows are of so many."""
    at = np.zeros(sizes, int)
    for index, length in zip(np.ogrid[*map(slice, sizes)], shape, strict=True):
        at = at * length + index
    return at * step


def memory(x):
    """Return a contiguous array's elements, where they are."""
    raw = (ctypes.c_char * x.nbytes).from_address(x.data.ptr)
    return np.frombuffer(raw, x.dtype)


@pytest.fixture
def cufft(gpu, order, cupy_library, monkeypatch):  # noqa: ARG001 - what it stands on
    """cuFFT as its documents say: advanced data layouts, no factors."""
    plans = {}

    class PlanNd:
        def __init__(
            self, shape, rows, step, far, out_rows, out_step, out_far, kind, count, *_
        ):
            self.ins, self.outs = (rows, step, far), (out_rows, out_step, out_far)
            self.shape, self.kind, self.count = shape, KINDS[kind], count

        def fft(self, x, out, direction):
            flat, made = memory(x), memory(out)
            half = *self.shape[:-1], self.shape[-1] // 2 + 1
            ins = places(half if self.kind == "c2r" else self.shape, *self.ins[:2])
            outs = places(half if self.kind == "r2c" else self.shape, *self.outs[:2])
            for k in range(self.count):
                values = flat[ins + k * self.ins[2]]
                if self.kind == "r2c":
                    values = np.fft.rfftn(values)
                elif self.kind == "c2r":
                    axes = range(len(self.shape))
                    values = np.fft.irfftn(values, self.shape, axes, "forward")
                elif direction < 0:
                    values = np.fft.fftn(values)
                else:
                    values = np.fft.ifftn(values, norm="forward")
                made[outs + k * self.outs[2]] = values
            if self.kind == "c2r":
                flat[...] = np.nan

    config = SimpleNamespace(
        get_current_callback_manager=lambda: None,
        get_plan_cache=lambda: plans,
        use_multi_gpus=False,
    )
    library = SimpleNamespace(PlanNd=PlanNd, get_current_plan=lambda: None)
    monkeypatch.setattr(cuda_libraries, "_cufft", lambda: (config, library))
    return config


@pytest.mark.usefixtures("cufft", "sizes")
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_plans_say_where_elements_are(gpu, name):
    served = 0
    for shape in ((5,), (4, 6), (3, 4, 6), (2, 3, 4, 5)):
        axes = range(len(shape))
        several = (itertools.permutations(axes, n + 1) for n in axes)
        for some in itertools.chain(*several):
            x = np.random.default_rng(7).standard_normal(shape)
            if name != "rfftn":
                x = x + 1j * x[..., ::-1]
            sizes = [x.shape[axis] for axis in some]
            ways = [None, sizes]
            if name == "irfftn":
                ways[1:] = [[*sizes[:-1], 2 * sizes[-1] - n] for n in (1, 2)]
            ways.append([n + 1 for n in ways[-1]])  # to be padded
            for s, norm in itertools.product(ways, ("backward", "ortho", "forward")):
                there = gpu.array(x.copy())
                options = {"axes": some, "norm": norm, "s": s}
                out = getattr(xdev.fft, name)(there, **options)
                if out is not NotImplemented:
                    expected = getattr(np.fft, name)(x, **options)
                    np.testing.assert_allclose(gpu.host(out), expected, atol=1e-12)
                    np.testing.assert_array_equal(gpu.host(there), x)
                    served += 1
    assert served > 100  # others are CuPy's matter


def test_what_cupy_is_told_is_left_to_it(gpu, cufft):
    x = gpu.array(np.ones(8, "F"))
    assert xdev.fft.fft(x) is not NotImplemented
    cufft.use_multi_gpus = True
    assert xdev.fft.fft(x) is NotImplemented
    cufft.use_multi_gpus = False
    cufft.get_current_callback_manager = object
    assert xdev.fft.fft(x) is NotImplemented


@pytest.mark.parametrize("shape", [(9, 9), (12, 5), (5, 12)])
@pytest.mark.parametrize("char", "fF")
def test_singular_vectors_by_squares(monkeypatch, char, shape):
    # NumPy has the routines that are asked of CuPy.
    monkeypatch.setattr(cuda_libraries._optional, "cupy", lambda: np)
    monkeypatch.setattr(cuda_libraries, "quick", lambda _, function: function)
    rng, eps = np.random.default_rng(1), np.finfo(char).eps
    x = rng.standard_normal(shape)
    x = x + 1j * rng.standard_normal(shape) if char == "F" else x
    for each in (x, np.outer(x[:, 0], x[0]), 0 * x, x * np.logspace(0, -9, shape[1])):
        matrix = each.astype(char)
        values = np.linalg.svd(matrix.astype("D"), compute_uv=False)
        near = 4 * eps * max(values[0], 1)
        np.testing.assert_allclose(cuda_libraries.svdvals(matrix), values, atol=near)
        for full in (False, True):
            u, sizes, vh = cuda_libraries.svd(matrix, full_matrices=full)
            assert u.dtype == vh.dtype == matrix.dtype
            np.testing.assert_allclose(sizes, values, atol=near)
            back = (u[:, : len(sizes)] * sizes) @ vh[: len(sizes)]
            np.testing.assert_allclose(back, matrix, atol=near)
            for vectors in (u, vh.T.conj()):
                one = vectors.T.conj() @ vectors
                np.testing.assert_allclose(one, np.eye(len(one)), atol=8 * eps)
