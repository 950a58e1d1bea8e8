"""Functions and kernels over blocks: arguments, data types and shapes."""

import numpy as np
import pytest

import xdev
from xdev import distributed


def scaled(block, w=1):
    return block * w


@xdev.kernel
def halved(i, x, out):
    out[i] = x[i] / 2


@xdev.kernel
def parts(i, x, low, high):
    low[i] = x[i] / 2
    high[i] = x[i] * 2


def test_keyword_arguments_reach_the_function_when_its_dtype_is_learnt(lazy):
    x = xdev.arange(6, chunks=3)

    made = distributed.map(scaled, x, w=0.5)
    assert made.name.startswith("scaled-")  # so are tasks called
    required = distributed.map(lambda b, *, k: b + k, x, k=3)

    assert made.dtype == np.float64
    assert lazy.values(xdev.sum(made)) == 7.5
    np.testing.assert_array_equal(lazy.values(required), np.arange(6) + 3)
    summed = distributed.map(
        lambda b, k: k * b.sum(keepdims=True), x, k=0.5, chunks=(1,)
    )
    np.testing.assert_array_equal(lazy.values(summed), [1.5, 6])
    shifted = distributed.map(lambda b, k: b + k, x, k=0.5, depth=1)
    np.testing.assert_array_equal(lazy.values(shifted), np.arange(6) + 0.5)
    with pytest.raises(ValueError, match=r"scaled: the shapes \(6,\), \(5,\) do not"):
        distributed.map(scaled, x, np.ones(5))
    with pytest.raises(TypeError, match=r"w= is a collection, which goes by place"):
        distributed.map(scaled, x, w=x)
    with pytest.raises(TypeError, match=r"w= is a kernel's argument.*by place"):
        distributed.map(halved, x, w=2)


def test_the_results_of_a_kernel_have_the_dtype_that_is_asked_for(lazy, real_device):
    x = xdev.arange(6, chunks=3, device=real_device)

    made = distributed.map(halved, x, dtype=float)
    several = distributed.map(parts, x, dtype=np.float32)

    assert made.dtype == np.float64
    np.testing.assert_array_equal(lazy.values(made), np.arange(6) / 2)
    for one, expected in zip(
        several, (np.arange(6) / 2, np.arange(6) * 2), strict=True
    ):
        assert one.dtype == lazy.values(one).dtype == np.float32
        np.testing.assert_array_equal(lazy.values(one), expected)


def test_blocks_have_the_dtype_that_the_collection_has(lazy, real_device):
    x = xdev.arange(10, chunks=3, device=real_device)

    narrow = distributed.map(lambda b: b / 2, x, dtype=np.float32)
    changing = distributed.map(lambda b: b / 2 if not b.size else b, x)

    for made in (narrow, changing):
        assert lazy.values(made).dtype == made.dtype
    assert lazy.values(xdev.sum(narrow)) == 22.5
    for lossy in (
        distributed.map(lambda b: b / 2, x, dtype=int),
        distributed.map(lambda b: b / 2 if b.size else b, x),
        distributed.map(lambda b: b / 2, x, dtype=int, depth=1),
        distributed.map(lambda b: b / 2, x, dtype=int, chunks=((3, 3, 3, 1),)),
    ):
        with pytest.raises(TypeError, match=r"of float64.*of int64.*dtype='float64'"):
            lazy.values(xdev.sum(lossy))


def test_blocks_have_the_shape_that_the_collection_has(lazy):
    x = xdev.arange(12.0, chunks=4)
    matrix = xdev.ones((4, 4), chunks=2)

    for wrong in (
        distributed.map(lambda b: b[1:-1], x, depth=1),
        distributed.map(lambda b: b[::2], x),
        distributed.map(lambda b: b.sum(), x, dtype=float),
        distributed.map(lambda b: (b, b[::2]), x)[1],
    ):
        with pytest.raises(ValueError, match=r"array of shape .* of blocks of shape"):
            lazy.values(wrong)
    with pytest.raises(ValueError, match="drop_axis="):
        lazy.values(distributed.map(np.sum, matrix, depth=1))
    with pytest.raises(TypeError, match=r"returned tuple.*without dtype="):
        lazy.values(distributed.map(lambda b: (b, b), x, dtype=float))
    with pytest.raises(TypeError, match="2 arrays for blocks of size 0"):
        lazy.values(distributed.map(lambda b: b if b.size else (b, b), x)[0])
    row = distributed.map(lambda b: b[None], x, new_axis=0)
    np.testing.assert_array_equal(lazy.values(row), [np.arange(12.0)])
    number = distributed.map(lambda b: b.sum(), x.rechunk(-1), drop_axis=0)
    assert lazy.values(number) == 66
    sums = distributed.map(lambda b: b.sum(axis=1), matrix.rechunk(-1), drop_axis=1)
    assert lazy.values(sums).tolist() == [4] * 4
    low, high = distributed.map(lambda b: (b - 1, b.astype(np.float32)), x)
    np.testing.assert_array_equal(lazy.values(low), np.arange(12.0) - 1)
    assert lazy.values(high).dtype == high.dtype == np.float32
    halved = distributed.map(lambda b: b[::2], x, chunks=(2,))
    np.testing.assert_array_equal(lazy.values(halved), np.arange(0, 12.0, 2))
    of_no_axis = distributed.map(lambda b: b + 1, xdev.sum(x))
    assert lazy.values(of_no_axis) == 67


def test_what_is_no_array_keeps_its_place_beside_halos(lazy):
    def mixed(scale, x, name, y):
        return scale * x + y * len(name)

    x, y = xdev.arange(8.0, chunks=4), np.arange(8.0)

    made = distributed.map(mixed, 2, x, "abc", y, depth=1)
    listed = distributed.map(lambda b, some: b * some[0][0], x, [y + 1], depth=1)

    np.testing.assert_array_equal(lazy.values(made), 2 * y + 3 * y)
    np.testing.assert_array_equal(lazy.values(listed), y)
    with pytest.raises(TypeError, match="returned Array for a block"):
        lazy.values(
            distributed.map(lambda b, some: b * some[0][0], x, [x + 1], depth=1)
        )


@pytest.mark.parametrize("depth", [1, np.int64(1), (1,), [1], {0: 1}], ids=repr)
def test_depth_is_told_as_dask_takes_it(depth):
    x = xdev.arange(8.0, chunks=4, device="cpu")
    made = distributed.map(lambda b: b + 1, x, depth=depth)
    np.testing.assert_array_equal(made.compute(), np.arange(1.0, 9))
