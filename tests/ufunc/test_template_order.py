"""Sorting, selecting and taking on CUDA: the kernels on a stand-in for a GPU."""

import numpy as np
import pytest

from xdev.facade import cuda_copies


@pytest.fixture(scope="module")
def order(gpu):
    """The functions, whose counts are read without CuPy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_copies, "last", lambda x: int(gpu.host(x)[-1]))
        yield cuda_copies


SPECIAL = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -1.0, 5e-324, 6e-8]


def numbers(rng, char, shape):
    dtype = np.dtype(char)
    if dtype.kind == "f":
        x = rng.normal(size=shape).astype(dtype)
        spots = rng.random(shape) < 0.3
        x[spots] = rng.choice(SPECIAL, np.count_nonzero(spots)).astype(dtype)
        return x
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    info = np.iinfo(dtype)
    wide = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.5, wide, wide & dtype.type(3))


def bits(x):
    """Return what tells zeros apart; all NaN are one."""
    x = np.where(np.isnan(x), np.nan, x) if x.dtype.kind == "f" else x
    return x.view(f"u{x.itemsize}")


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("char", "?bHqefd")
def test_lines_are_sorted_as_numpy_does(gpu, order, char, descending):
    rng = np.random.default_rng(7)
    for shape in ((3, 20), (1, 600))[: 2 if char == "f" else 1]:
        x = numbers(rng, char, shape)
        places = np.argsort(x[..., :: -1 if descending else 1], axis=-1, stable=True)
        if descending:  # equal elements keep their order
            places = shape[-1] - 1 - places[..., ::-1]
        options = {"axis": -1, "descending": descending, "stable": True}
        values = gpu.host(order.sort(gpu.array(x), **options))
        found = gpu.host(order.argsort(gpu.array(x), **options))

        expected = np.take_along_axis(x, places, -1)
        np.testing.assert_array_equal(bits(values), bits(expected), strict=True)
        np.testing.assert_array_equal(found, places, strict=True)


def test_lines_along_any_axis_and_of_any_layout(gpu, order):
    x = np.random.default_rng(1).permutation(3 * 40 * 5).reshape(3, 40, 5) * 0.5
    for view in (x, x.T, x[::2, ::-1]):
        for axis in range(-3, 3):
            made = order.sort(gpu.array(view), axis=axis, descending=False)
            assert made.flags.c_contiguous
            np.testing.assert_array_equal(gpu.host(made), np.sort(view, axis))


@pytest.mark.parametrize("char", "?beqF")
def test_indices_of_what_is_not_zero(gpu, order, char):
    rng = np.random.default_rng(3)
    for shape in ((1,), (9000,), (20, 3)):
        x = numbers(rng, char.lower() if char in "FD" else char, shape)
        x = np.where(rng.random(shape) < 0.4, x, 0).astype(char)
        places, _ = order._places(gpu.array(x), False)
        np.testing.assert_array_equal(gpu.host(places), np.flatnonzero(x), strict=True)


@pytest.mark.parametrize("char", "ife")
def test_places_where_runs_begin(gpu, order, char):
    x = numbers(np.random.default_rng(5), char, 9000)
    by = np.argsort(x, stable=True)
    starts = np.r_[True, x[by][1:] != x[by][:-1]]
    first, inverse = order._places(gpu.array(x[by]), True, gpu.array(by))
    np.testing.assert_array_equal(gpu.host(first), np.flatnonzero(starts))
    np.testing.assert_array_equal(gpu.host(inverse)[by], np.cumsum(starts) - 1)


@pytest.mark.parametrize("index", "il")
def test_rows_are_taken(gpu, order, index):
    x = np.arange(3 * 5 * 4 * 2.0).reshape(3, 5, 4, 2)
    indices = np.array([4, -1, 0, 2, 2, -5], index)
    for axis in (0, 1, 2):
        picked = indices % x.shape[axis]
        made = order.take(gpu.array(x), gpu.array(indices % 3 - 1), axis=axis)
        np.testing.assert_array_equal(
            gpu.host(made), np.take(x, indices % 3 - 1, axis), strict=True
        )
        made = order.take(gpu.array(x), gpu.array(picked.astype(index)), axis=axis)
        np.testing.assert_array_equal(gpu.host(made), np.take(x, picked, axis))


def test_rows_are_no_words_where_memory_is_not_aligned(gpu, order):
    memory = np.zeros(40 * 4 + 16, np.uint8)
    start = -memory.ctypes.data % 16
    indices = gpu.array(np.array([2, 0]))
    for shift in (0, 4, 8, 16):
        x = memory[start + shift :][: 36 * 4].view("f4").reshape(9, 4)
        made = order.take(gpu.array(x), indices, axis=0)
        assert (made is NotImplemented) == bool(shift % 16)
        x = x.view("F")  # CuPy would read it as words
        made = order.take(gpu.array(x), indices, axis=0)
        if shift % 8:
            np.testing.assert_array_equal(gpu.host(made), x[[2, 0]], strict=True)
        made = order.take(gpu.array(x[:, ::-1]), indices, axis=0)  # a copy of its own
        assert made is not NotImplemented


@pytest.mark.parametrize("char", "fdlq")
def test_cross_products(gpu, order, char):
    x, y = np.random.default_rng(2).integers(-9, 9, (2, 7, 50, 3)).astype(char)
    made = order.cross(gpu.array(x), gpu.array(y), axis=-1)
    np.testing.assert_array_equal(gpu.host(made), np.cross(x, y), strict=True)


def test_what_is_not_for_these_kernels_is_left_to_cupy(gpu, order):
    def new(*shape, dtype="f"):
        return gpu.array(np.zeros(shape, dtype))

    sort = {"axis": -1, "descending": False}
    lines = gpu.array(np.broadcast_to(np.int8(1), (2**31, 2)))
    for made in (
        order.sort(lines, **sort),  # more than a launch has blocks
        order.argsort(lines, **sort),
        order.sort(new(40_000), **sort),
        order.sort(new(3, dtype="F"), **sort),
        order.sort(new(), **sort),
        order.sort(new(3, 0), **sort),
        order.argsort(new(3), axis=1, descending=False),
        order.nonzero(new()),
        order.nonzero(new(0, 3)),
        order.take(new(3, 3), new(2, dtype="l"), axis=0),
        order.take(new(3, 4), new(2, dtype="h"), axis=0),
        order.take(new(3, 4), new(2, 2, dtype="l"), axis=0),
        order.take(new(3, 4), new(2, dtype="l"), axis=2),
        order.take(new(3, 4), [0, 1], axis=0),
        order.cross(new(2, 3), new(3), axis=-1),
        order.cross(new(3, 2), new(3, 2), axis=0),
        order.cross(new(3, dtype="e"), new(3, dtype="e"), axis=0),
    ):
        assert made is NotImplemented
