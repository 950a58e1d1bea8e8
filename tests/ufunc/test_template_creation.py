"""Arrays made by the CUDA templates, on a stand-in for a GPU: NumPy's bits."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import xdev
from xdev import _optional
from xdev.facade import cuda_creation
from xdev.facade.backends import ends_of
from xdev.facade.cuda import CudaFactory

INTEGERS = "bhilBHIL"


@pytest.fixture(autouse=True)
def left(monkeypatch):
    """What is left to CuPy is None."""
    for name in ("arange", "linspace"):
        monkeypatch.setattr(_optional.cupy(), name, lambda *_: None)


SHAPES = [3, (), (5, 7), (2, 1, 3)]


def assert_same_bits(gpu, array, expected):
    made = gpu.host(array)
    assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
    assert made.tobytes() == expected.tobytes()


@pytest.mark.parametrize("char", f"{INTEGERS}fdFD")
def test_one_value_fills_an_array_by_one_launch(gpu, char):
    dtype = np.dtype(char)
    ends = ends_of(dtype) if char in INTEGERS else (-0.0, 2.5)
    for shape in SHAPES:
        for value in (1, *ends):
            launches = gpu.launches
            made = cuda_creation.full(shape, value, dtype, 0)
            assert_same_bits(gpu, made, np.full(shape, value, dtype))
            assert gpu.launches == launches + 1


@pytest.mark.parametrize(
    ("shape", "value", "char"),
    [
        *(((3,), x, "f") for x in (1e39, np.nan, np.inf, 10**400, True, 1j, "1", None)),
        *(((3,), x, "i") for x in (2.5, 2**31, -(2**31) - 1, np.int32(1))),
        *(((3,), -1, "B"), ((3,), 1, "?"), ((3,), 1, "e"), ((3,), 1, ">f4")),
        *((x, 1, "d") for x in (-1, (-1, -1), (0, 3), 10**9, (2.0,), [3], np.int64(3))),
    ],
)
def test_values_and_shapes_that_no_launch_converts_are_left(gpu, shape, value, char):
    dtype, launches = np.dtype(char), gpu.launches
    cuda_creation.full(2, 1, np.dtype("f"), 0), cuda_creation.full((2,), 1, dtype, 0)
    launches = gpu.launches
    assert cuda_creation.full(shape, value, dtype, 0) is NotImplemented
    assert gpu.launches == launches


@pytest.mark.parametrize("char", "bBilfdFD")
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 9), (9, 2), (0, 3)])
def test_ones_are_on_a_diagonal(gpu, shape, char):
    for k in (-10, -3, -2, -1, 0, 1, 2, 8, 9, 10**30):
        for _ in range(2):
            made = cuda_creation.eye(*shape, k, np.dtype(char), 0)
            if not -shape[0] < k < shape[1] or 0 in shape:
                assert made is NotImplemented
            else:
                assert_same_bits(gpu, made, np.eye(*shape, k, char))


RANGES = [
    *((0, 5, 1), (2, 9, 3), (9, 2, -3), (0.5, 3.1, 0.2), (-0.0, 3.0, 1), (5, 0, -0.7)),
    *((0, 3000, 1), (-1000.25, 7, 0.1), (2**24, 2**24 + 9, 1), (1, 2, 1e-3), (0, 1, 5)),
    *((2**62, 2**62 + 5, 1), (-(2**63), -(2**63) + 3, 1), (1, 2**31 - 1, 2**30)),
]


@pytest.mark.parametrize("span", RANGES)
def test_ranges_have_the_distances_of_their_first_two(gpu, span):
    for char in (None, *"ilfd"):
        if char and char in "il" and (float in map(type, span) or max(span) >= 2**60):
            continue
        for _ in range(2):
            made = cuda_creation.arange(*span, char and np.dtype(char), 0)
            if made is not None:
                assert_same_bits(gpu, made, np.arange(*span, dtype=char))
            else:
                assert char == "i"


REALS = st.floats(-1e6, 1e6) | st.integers(-(10**6), 10**6)


@given(REALS, REALS, st.integers(1, 1500), st.booleans(), st.sampled_from("efd"))
def test_lines_are_rounded_as_numpy_rounds(gpu, start, stop, num, endpoint, char):
    made = cuda_creation.linspace(start, stop, num, np.dtype(char), endpoint, 0)
    if made is None:
        assert 0 < abs(stop - start) < 1e-300
        return
    with np.errstate(over="ignore"):
        expected = np.linspace(start, stop, num, endpoint, dtype=char)
    assert_same_bits(gpu, made, expected)


@given(REALS, st.floats(1e-3, 1e3), st.integers(1, 99))
def test_ranges_are_rounded_as_numpy_rounds(gpu, start, step, num):
    for char in "fd":
        made = cuda_creation.arange(start, start + num * step, step, np.dtype(char), 0)
        expected = np.arange(start, start + num * step, step, char)
        assert_same_bits(gpu, made, expected)


@given(st.integers(1, 3000), st.floats(1e-3, 1e3) | st.floats(-1e3, -1e-3))
def test_frequencies_are_numpys(gpu, n, d):
    factory = object.__new__(CudaFactory)
    factory._index = 0
    for name in ("fftfreq", "rfftfreq"):
        for char in "efd":
            made = factory.frequencies(name, n, d, np.dtype(char))
            with np.errstate(over="ignore"):
                expected = getattr(np.fft, name)(n, d).astype(char)
            assert_same_bits(gpu, made, expected)


def test_what_is_no_range_of_such_numbers_is_left_to_cupy(gpu):
    launches, kind = gpu.launches, np.dtype("d")
    left = [
        *(cuda_creation.arange(0, 3, x, kind, 0) for x in (1j, np.int64(1), True)),
        *(cuda_creation.arange(*x, None, 0) for x in ((3, 0, 1), (0, 2**40, 1))),
        *(cuda_creation.arange(0, 3, 1, np.dtype(x), 0) for x in "?eFb"),
        cuda_creation.arange(0, 2**40, 2**39, np.dtype("i"), 0),
        *(cuda_creation.linspace(0, 1, x, kind, True, 0) for x in (0, -1, 2.0, 2**31)),
        *(cuda_creation.linspace(0, x, 5, kind, True, 0) for x in (1j, np.inf, 5e-324)),
        cuda_creation.linspace(0, 1, 5, np.dtype("i"), True, 0),
    ]
    assert left == [None] * len(left)
    for unit in (1j, None):
        assert cuda_creation.frequencies(5, 5, unit, kind, 0) is NotImplemented
    assert gpu.launches == launches


@pytest.mark.usefixtures("cupy_library")
@pytest.mark.parametrize("char", "?hfdD")
@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_coordinates_are_spread_over_a_grid(gpu, char, indexing):
    for sizes in ((5,), (3, 4), (2, 5, 3), (1, 1, 2, 2)):
        xs = [gpu.sample(size, char, k) for k, size in enumerate(sizes)]
        expected = np.meshgrid(*xs, indexing=indexing)
        for _ in range(2):
            launches = gpu.launches
            made = xdev.meshgrid(*map(gpu.array, xs), indexing=indexing)
            assert gpu.launches == launches + len(sizes)
            for one, other in zip(made, expected, strict=True):
                np.testing.assert_array_equal(gpu.host(one), other, strict=True)
    for xs in ((np.ones((2, 2)), np.ones(2)), (np.ones(0), np.ones(2))):
        with pytest.raises(TypeError, match="NotImplemented"):  # left to CuPy
            xdev.meshgrid(*map(gpu.array, xs), indexing=indexing)
