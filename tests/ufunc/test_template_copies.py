"""Copies of the facade by the CUDA templates, on a stand-in; division of indices."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from xdev.facade import cuda, cuda_copies
from xdev.ufunc import cuda_layout as layout

VIEWS = [
    lambda x: x,
    lambda x: x.T,
    lambda x: x[::2, ::-1],
    lambda x: x[1:, 1:],
    lambda x: np.broadcast_to(x[:1], x.shape),
]
AXES = range(-2, 2)
CASES = [
    *(("concat", (), {"axis": axis}) for axis in AXES),
    *(("stack", (), {"axis": axis}) for axis in (*AXES, 2, -3)),
    *((name, (), {"k": k}) for name in ("tril", "triu") for k in (0, 2, -9, 99)),
    *(("repeat", (k,), {"axis": axis}) for k, axis in itertools.product((0, 3), AXES)),
    *(
        ("roll", (shift,), {"axis": axis})
        for shift, axis in itertools.product((0, 1, -3, 10**9 + 7), AXES)
    ),
    *(("tile", (times,), {}) for times in ((2,), (2, 3), (1, 2, 1, 2), (0, 1), ())),
    *(
        ("cumulative_sum", (), {"axis": axis, "dtype": dtype, "include_initial": more})
        for axis, dtype, more in itertools.product(AXES, (None, "d"), (False, True))
    ),
]
SEQUENCES = {"concat": np.concat, "stack": np.stack}


@pytest.fixture(params=[-1000, 10**9])
def copies(request, monkeypatch):
    """Copies for which everything is large, or nothing."""
    monkeypatch.setattr(cuda_copies, "LARGE", request.param)
    cuda_copies._join_plan.cache_clear()
    yield cuda_copies
    cuda_copies._join_plan.cache_clear()


@pytest.mark.parametrize("char", "?He")
def test_elements_go_where_numpy_has_them(gpu, copies, char):
    whole = gpu.sample((7, 50), char) % np.dtype(char).type(2)
    for view, (name, more, options) in itertools.product(VIEWS, CASES):
        x = view(whole)
        if char == "?" and options.get("dtype"):
            continue  # the stand-in for addition has no cast
        if name in SEQUENCES:
            made = getattr(copies, name)([gpu.array(x), gpu.array(x)], **options)
            expected = SEQUENCES[name]([x, x], **options)
        else:
            made = getattr(copies, name)(gpu.array(x), *more, **options)
            expected = getattr(np, name)(x, *more, **options)

        if made is NotImplemented:  # small, and many launches
            assert copies.LARGE > 0
            continue
        np.testing.assert_array_equal(gpu.host(made), expected, strict=True)


def test_a_diagonal_may_be_as_far_as_one_likes(gpu):
    x = np.arange(24.0).reshape(2, 3, 4)
    for k in (10**30, -(10**30)):
        lower, upper = (
            f(gpu.array(x), k=k) for f in (cuda_copies.tril, cuda_copies.triu)
        )
        np.testing.assert_array_equal(gpu.host(lower), x * (k > 0))
        np.testing.assert_array_equal(gpu.host(upper), x * (k < 0))


@pytest.mark.parametrize("char", "fdFD")
def test_triangles_of_complex_numbers_that_begin_at_any_real_one(gpu, char):
    dtype = np.dtype(char)
    memory = np.arange(9 * dtype.itemsize + 32, dtype=np.uint8)
    start = -memory.ctypes.data % 16
    for shift in (0, 4, 8, 16):
        x = memory[start + shift :][: 9 * dtype.itemsize].view(char).reshape(3, 3)
        made = cuda_copies.tril(gpu.array(x))
        np.testing.assert_array_equal(gpu.host(made), np.tril(x), strict=True)


@given(st.data())
def test_parts_of_any_size_are_joined_by_one_launch(gpu, data):
    axis = data.draw(st.integers(0, 2))
    sizes = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=15))
    arrays = [gpu.sample((3, n, 2) if axis == 1 else (n, 3, 2), "h", n) for n in sizes]
    if axis == 2:
        arrays = [x.reshape(3, 2, -1) for x in arrays]
    launches = gpu.launches
    joined = cuda_copies.concat([gpu.array(x) for x in arrays], axis=axis)
    if not any(sizes):
        assert joined is NotImplemented
        return
    expected = np.concat(arrays, axis=axis)
    np.testing.assert_array_equal(gpu.host(joined), expected, strict=True)
    assert gpu.launches == launches + 1


def test_what_is_no_copy_is_left_to_cupy(gpu, copies):
    def new(*shape):
        return gpu.array(np.zeros(shape))

    for made in (
        copies.concat([new(6, 5), new(6)], axis=1),
        copies.stack([new(3), new(4)]),
        copies.repeat(new(3), -1, axis=0),
        copies.tile(new(3, 3), (-1, -1)),
        copies.roll(new(3), 1, axis=2),
        copies.tril(new(3)),
        copies.triu(new(3, 3), k=1.5),
        copies.cumulative_sum(new(3, 3), axis=None, dtype=None, include_initial=False),
    ):
        assert made is NotImplemented
    for parts in ([new(6), new()], [new(), new()]):
        with pytest.raises(ValueError, match=r"xdev\.stack"):
            copies.concat(parts, axis=0)


@pytest.mark.parametrize("dtype", [">f8", ">i2", "<c8", "?"])
def test_a_number_on_cuda_has_the_machines_byte_order(gpu, dtype):
    number = np.ones((), dtype)
    made = cuda.CudaFactory(0).asarray(number, None, None)

    assert gpu.host(made) == 1
    assert made.dtype == number.dtype.newbyteorder("=")


@given(st.integers(1, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_division_by_multiplication_is_exact(extent, i):
    magic, shift = layout.divisor(extent)

    assert 0 < magic < 2**32
    assert (i * magic >> 32) + i >> shift == i // extent
    assert (i * magic >> 32) + i < 2**32
