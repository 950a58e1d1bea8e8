"""Sorting, selecting and taking on CUDA: the kernels on a stand-in for a GPU."""

import numpy as np
import pytest

import xdev

pytestmark = pytest.mark.usefixtures("cupy_library")
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
def test_lines_are_sorted_as_numpy_does(gpu, char, descending):
    rng = np.random.default_rng(7)
    for shape in ((3, 20), (1, 600))[: 2 if char == "f" else 1]:
        x = numbers(rng, char, shape)
        places = np.argsort(x[..., :: -1 if descending else 1], axis=-1, stable=True)
        if descending:  # equal elements keep their order
            places = shape[-1] - 1 - places[..., ::-1]
        options = {"axis": -1, "descending": descending, "stable": True}
        values = gpu.host(xdev.sort(gpu.array(x), **options))
        found = gpu.host(xdev.argsort(gpu.array(x), **options))

        expected = np.take_along_axis(x, places, -1)
        np.testing.assert_array_equal(bits(values), bits(expected), strict=True)
        np.testing.assert_array_equal(found, places, strict=True)


def test_lines_along_any_axis_and_of_any_layout(gpu):
    x = np.random.default_rng(1).permutation(3 * 40 * 5).reshape(3, 40, 5) * 0.5
    for view in (x, x.T, x[::2, ::-1]):
        for axis in range(-3, 3):
            made = xdev.sort(gpu.array(view), axis=axis, descending=False)
            assert made.flags.c_contiguous
            np.testing.assert_array_equal(gpu.host(made), np.sort(view, axis))


@pytest.mark.parametrize("char", "?beqF")
def test_indices_of_what_is_not_zero(gpu, char):
    rng = np.random.default_rng(3)
    for shape in ((1,), (9000,), (20, 3)):
        x = numbers(rng, char.lower() if char in "FD" else char, shape)
        x = np.where(rng.random(shape) < 0.4, x, 0).astype(char)
        for found, expected in zip(
            xdev.nonzero(gpu.array(x)), np.nonzero(x), strict=True
        ):
            np.testing.assert_array_equal(gpu.host(found), expected, strict=True)


@pytest.mark.parametrize("index", "il")
def test_rows_are_taken(gpu, index):
    x = np.arange(3 * 5 * 4 * 2.0).reshape(3, 5, 4, 2)
    indices = np.array([4, -1, 0, 2, 2, -5], index)
    for axis in (0, 1, 2):
        picked = indices % x.shape[axis]
        made = xdev.take(gpu.array(x), gpu.array(indices % 3 - 1), axis=axis)
        np.testing.assert_array_equal(
            gpu.host(made), np.take(x, indices % 3 - 1, axis), strict=True
        )
        made = xdev.take(gpu.array(x), gpu.array(picked.astype(index)), axis=axis)
        np.testing.assert_array_equal(gpu.host(made), np.take(x, picked, axis))


def test_rows_are_taken_from_memory_of_any_alignment(gpu):
    memory = np.zeros(40 * 4 + 16, np.uint8)
    start = -memory.ctypes.data % 16
    indices = gpu.array(np.array([2, 0]))
    for shift in (0, 4, 8, 16):
        x = memory[start + shift :][: 36 * 4].view("f4").reshape(9, 4)
        for view in (x, x.view("F"), x[:, ::-1]):
            made = xdev.take(gpu.array(view), indices, axis=0)
            np.testing.assert_array_equal(gpu.host(made), view[[2, 0]], strict=True)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("char", "?bHqLefd")
def test_places_among_sorted_values(gpu, char, side):
    rng = np.random.default_rng(5)
    for size, shape in ((1, (3,)), (7, ()), (5000, (2, 50)), (140_001, (30_000,))):
        x, values = (np.asarray(numbers(rng, char, n)) for n in (size, shape))
        x = np.sort(x)
        made = xdev.searchsorted(gpu.array(x), gpu.array(values), side=side)
        expected = np.asarray(np.searchsorted(x, values, side))
        np.testing.assert_array_equal(gpu.host(made), expected, strict=True)


@pytest.mark.parametrize("char", "fdlq")
def test_cross_products(gpu, char):
    x, y = np.random.default_rng(2).integers(-9, 9, (2, 7, 50, 3)).astype(char)
    made = xdev.linalg.cross(gpu.array(x), gpu.array(y), axis=-1)
    np.testing.assert_array_equal(gpu.host(made), np.cross(x, y), strict=True)


def test_what_is_not_for_these_kernels_is_left_to_cupy(gpu):
    def new(*shape, dtype="f"):
        return gpu.array(np.zeros(shape, dtype))

    sort = {"axis": -1, "descending": False}
    lines = gpu.array(np.broadcast_to(np.int8(1), (2**31, 2)))
    for made in (
        xdev.sort(lines, **sort),  # more than a launch has blocks
        xdev.argsort(lines, **sort),
        xdev.sort(new(40_000), **sort),
        xdev.sort(new(3, dtype="F"), **sort),
        xdev.sort(new(), **sort),
        xdev.sort(new(3, 0), **sort),
        xdev.argsort(new(3), axis=1, descending=False),
        xdev.nonzero(new()),
        xdev.nonzero(new(0, 3)),
        xdev.searchsorted(new(3), new(3, dtype="d")),
        xdev.searchsorted(new(3, dtype="F"), new(3, dtype="F")),
        xdev.searchsorted(new(0), new(3)),
        xdev.take(new(3, 4), new(2, dtype="h"), axis=0),
        xdev.take(new(3, 4), new(2, 2, dtype="l"), axis=0),
        xdev.take(new(3, 4), new(2, dtype="l"), axis=2),
        xdev.linalg.cross(new(2, 3), new(3), axis=-1),
        xdev.linalg.cross(new(3, 2), new(3, 2), axis=0),
        xdev.linalg.cross(new(3, dtype="e"), new(3, dtype="e"), axis=0),
    ):
        assert made is NotImplemented
