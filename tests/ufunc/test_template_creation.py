"""Arrays made by the CUDA templates, on a stand-in for a GPU: NumPy's bits."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import xdev
from xdev.facade import cuda
from xdev.facade.backends import ends_of

INTEGERS = "bhilBHIL"


SHAPES = [3, (), (5, 7), (2, 1, 3)]
REALS = st.floats(-1e6, 1e6) | st.integers(-(10**6), 10**6)


@pytest.fixture(scope="module")
def factory(gpu):  # noqa: ARG001
    """What makes arrays there; what is left to CuPy, or to other ways, is None."""
    made = object.__new__(cuda.CudaFactory)
    made._index, made._make = 0, None
    left = dict.fromkeys(("arange", "linspace"), lambda *_: None)
    fft = SimpleNamespace(fftfreq=lambda *_: None)
    made.namespace = made.cupy = SimpleNamespace(**left, fft=fft)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda.CudaFactory, "empty", lambda *_: None)
        patch.setattr(cuda.CudaFactory, "filled", lambda *_: None)
        patch.setattr(cuda.CudaFactory, "asarray", lambda *_, **__: None)
        patch.setattr(cuda.Factory, "eye", lambda *_: None)
        yield made


def assert_same_bits(gpu, array, expected):
    made = gpu.host(array)
    assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
    assert made.tobytes() == expected.tobytes()


@pytest.mark.parametrize("char", f"{INTEGERS}efdFD")
def test_one_value_fills_an_array_by_one_launch(gpu, factory, char):
    dtype = np.dtype(char)
    ends = ends_of(dtype) if char in INTEGERS else (-0.0, 2.5, 0.1)
    for shape in SHAPES:
        for value in (0, 1, *(x for x in ends if x < 2**63)):
            launches = gpu.launches
            made = factory.full(shape, value, dtype)
            assert_same_bits(gpu, made, np.full(shape, value, dtype))
            like = factory.full_like(made, value, None)
            assert_same_bits(gpu, like, np.full(shape, value, dtype))
            assert gpu.launches == launches + 2


@pytest.mark.parametrize(
    ("shape", "value", "char"),
    [
        *(((3,), x, "f") for x in (1e39, np.nan, np.inf, 10**400, True, 1j, "1", None)),
        *(((3,), x, "i") for x in (2.5, 2**31, -(2**31) - 1, np.int32(1))),
        *(((3,), -1, "B"), ((3,), 2, "?"), ((3,), 65505, "e"), ((3,), 1, ">f4")),
        *((x, 1, "d") for x in (-1, (-1, -1), (0, 3), 10**9, (2.0,), [3], np.int64(3))),
        ((3,), 2**63, "L"),
    ],
)
def test_values_and_shapes_that_no_launch_converts_are_left(
    gpu, factory, shape, value, char
):
    factory.full(3, 1, np.dtype("f"))
    factory.full((2,), 1, np.dtype("d"))
    launches = gpu.launches
    assert factory.full(shape, value, np.dtype(char)) is None
    assert gpu.launches == launches


@pytest.mark.parametrize("char", "?bBilefdFD")
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 9), (9, 2), (0, 3), (-1, 5)])
def test_ones_are_on_a_diagonal(gpu, factory, shape, char):
    for k in (-10, -3, -2, -1, 0, 1, 2, 8, 9, 10**30):
        for _ in range(2):
            launches, made = gpu.launches, factory.eye(*shape, k, np.dtype(char))
            if not -shape[0] < k < shape[1] or min(shape) < 1:
                assert made is None
            else:
                assert_same_bits(gpu, made, np.eye(*shape, k, char))
                assert gpu.launches == launches + 1


RANGES = [
    *((0, 5, 1), (2, 9, 3), (9, 2, -3), (0.5, 3.1, 0.2), (-0.0, 3.0, 1), (5, 0, -0.7)),
    *((0, 3000, 1), (-1000.25, 7, 0.1), (2**24, 2**24 + 9, 1), (1, 2, 1e-3), (0, 1, 5)),
    *((2**62, 2**62 + 5, 1), (-(2**63), -(2**63) + 3, 1), (1, 2**31 - 1, 2**30)),
]


@pytest.mark.parametrize("span", RANGES)
def test_ranges_have_the_distances_of_their_first_two(gpu, factory, span):
    for char in (None, *"ilfd"):
        if char and char in "il" and (float in map(type, span) or max(span) >= 2**60):
            continue
        for _ in range(2):
            made = factory.arange(*span, char and np.dtype(char))
            if made is not None:
                assert_same_bits(gpu, made, np.arange(*span, dtype=char))
            else:
                assert char == "i"


@given(REALS, REALS, st.integers(1, 1500), st.booleans(), st.sampled_from("efd"))
def test_lines_are_rounded_as_numpy_rounds(
    gpu, factory, start, stop, num, endpoint, char
):
    options = {"endpoint": endpoint, "dtype": np.dtype(char)}
    made = factory.linspace(start, stop, num, **options)
    if made is None:
        assert 0 < abs(stop - start) < 1e-300
        return
    with np.errstate(over="ignore"):
        expected = np.linspace(start, stop, num, **options)
    assert_same_bits(gpu, made, expected)


@given(REALS, st.floats(1e-3, 1e3), st.integers(1, 99))
def test_ranges_are_rounded_as_numpy_rounds(gpu, factory, start, step, num):
    for char in "fd":
        made = factory.arange(start, start + num * step, step, np.dtype(char))
        expected = np.arange(start, start + num * step, step, char)
        assert_same_bits(gpu, made, expected)


@given(st.integers(1, 3000), st.floats(1e-3, 1e3) | st.floats(-1e3, -1e-3))
def test_frequencies_are_numpys(gpu, factory, n, d):
    for name in ("fftfreq", "rfftfreq"):
        for char in "efd":
            made = factory.frequencies(name, n, d, np.dtype(char))
            with np.errstate(over="ignore"):
                expected = getattr(np.fft, name)(n, d).astype(char)
            assert_same_bits(gpu, made, expected)


def test_what_is_no_range_of_such_numbers_is_left_to_cupy(gpu, factory):
    def linspace(stop, num, char="d"):
        return factory.linspace(0, stop, num, dtype=np.dtype(char), endpoint=True)

    launches, kind = gpu.launches, np.dtype("d")
    left = [
        *(factory.arange(0, 3, x, kind) for x in (1j, np.int64(1), True)),
        *(factory.arange(*x, None) for x in ((3, 0, 1), (0, 2**40, 1))),
        *(factory.arange(0, 3, 1, np.dtype(x)) for x in "?eFb"),
        factory.arange(0, 2**40, 2**39, np.dtype("i")),
        *(linspace(1, x) for x in (0, -1, 2.0, 2**31)),
        *(linspace(x, 5) for x in (1j, np.inf, 5e-324)),
        linspace(1, 5, "i"),
        factory.frequencies("fftfreq", 5, 1j, kind),
        factory.frequencies("fftfreq", 5, 1, np.dtype("F")),
    ]
    assert left == [None] * len(left)
    assert gpu.launches == launches


@pytest.mark.usefixtures("cupy_library")
@pytest.mark.parametrize("char", "?hfdD")
@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_coordinates_are_spread_over_a_grid(gpu, char, indexing):
    for sizes in ((5,), (3, 4), (2, 5, 3), (1, 1, 2, 2)):
        xs = [gpu.sample(size, char, k) for k, size in enumerate(sizes)]
        launches, there = gpu.launches, map(gpu.array, xs)
        made = xdev.meshgrid(*there, indexing=indexing)
        assert gpu.launches == launches + len(sizes)
        expected = np.meshgrid(*xs, indexing=indexing)
        for one, other in zip(made, expected, strict=True):
            np.testing.assert_array_equal(gpu.host(one), other, strict=True)
            assert one.flags.c_contiguous
