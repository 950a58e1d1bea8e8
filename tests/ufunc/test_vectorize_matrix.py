"""A vectorized function against NumPy: layouts x dtypes x broadcasting x out."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp
from running import add, called, same, there as on

import xdev

DTYPES = ["?", "b", "B", "h", "H", "i", "I", "l", "L", "e", "f", "d", "F", "D"]
SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 3, 0), (2, 3, 4)]
rng = np.random.default_rng(3)


@xdev.vectorize
def affine(x, y):
    """Return 3 x + y."""
    return 3 * x + y


def values(shape, dtype, seed=0):
    raw = np.random.default_rng(seed).uniform(0, 40, size=(2, *shape))
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return (raw[0] + 1j * raw[1]).astype(dtype)
    return raw[0].astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_equal_numpys_and_literals_are_weak(device, dtype):
    for shape in SHAPES:
        x, y = values(shape, dtype), values(shape, dtype, 1)
        same(called(device, add, x, y), np.add(x, y))
    x, y = values((9,), dtype), values((9,), dtype, 1)
    # float16 is computed in float32 and rounded once; NumPy rounds twice.
    wide = np.float32 if dtype == "e" else dtype
    expected = 3 * x.astype(wide) + y.astype(wide)
    expected = expected.astype(dtype) if dtype == "e" else expected
    same(called(device, affine, x, y), expected)


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "stepped": lambda x: x[::2, ::3],
    "backwards": lambda x: x[::-1, ::-1],
    "column": lambda x: x[:, 1:2],
    "row": lambda x: x[1:2, :],
    "one value": lambda x: x[1:2, 1:2],
    "unaligned rows": lambda x: x[1:, 1:],
}


@pytest.mark.parametrize("one", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f", "b", "D"])
def test_any_layouts_that_broadcast(device, one, dtype):
    x, y = values((12, 12), dtype), values((12, 12), dtype, 1)
    there = on(device, x, y)
    for other in LAYOUTS.values():
        args = LAYOUTS[one](there[0]), other(there[1])
        try:
            expected = np.add(LAYOUTS[one](x), other(y))
        except ValueError:
            with pytest.raises(ValueError, match="broadcast"):
                add(*args)
        else:
            same(add(*args), expected)


@pytest.mark.parametrize("name", LAYOUTS)
def test_out_of_any_layout_is_written_in_place_and_returned(device, name):
    (base,) = on(device, np.zeros((12, 12), "f"))
    out = LAYOUTS[name](base)
    x, y = values(out.shape, "f"), values(out.shape, "f", 1)

    assert add(*on(device, x, y), out=out) is out

    expected = np.zeros((12, 12), "f")
    LAYOUTS[name](expected)[...] = x + y
    same(base, expected)


@pytest.mark.parametrize("shift", [-3, -1, 0, 1, 3])
def test_an_out_that_overlaps_an_input_as_numpys(device, shift):
    buffer = values((40,), "d")
    (there,) = on(device, buffer.copy())
    x, out = slice(5, 30), slice(5 + shift, 30 + shift)

    add(there[x], there[x], out=there[out])

    np.add(buffer[x], buffer[x], out=buffer[out])
    same(there, buffer)


@pytest.mark.parametrize("dtype", ["f", "i"])
def test_where_leaves_the_rest_of_out(device, dtype):
    x, mask = values((6, 5), dtype), rng.random((6, 5)) < 0.5
    there, out, where = on(device, x, np.full((6, 5), 7, dtype), mask)

    add(there, there, out=out, where=where)

    same(out, np.where(mask, x + x, np.asarray(7, dtype)))


def test_several_outputs(device):
    polar = xdev.vectorize(lambda x, y: (math.hypot(x, y), x > y))
    x, y = values((8,), "f"), values((8,), "f", 1)
    there = on(device, x, y, np.zeros(8, "f"))
    size, larger = polar(*there[:2])

    assert polar.nout == 2
    same(larger, x > y)
    same(size, np.hypot(x, y), rtol=1e-6)
    assert polar(*there[:2], out=(there[2], None))[0] is there[2]
    same(there[2], xdev.to_numpy(size))


IDENTITY = xdev.vectorize(lambda x: x)


@given(x=hnp.arrays(np.uint16, 64).map(lambda x: x.view(np.float16)))
def test_float16_passes_through_unharmed(x):
    with np.errstate(invalid="ignore"):  # signalling nans become quiet ones
        identity = IDENTITY(x)

    nan = np.isnan(x)
    np.testing.assert_array_equal(np.isnan(identity), nan)
    np.testing.assert_array_equal(identity[~nan].view("u2"), x[~nan].view("u2"))


def test_every_float32_rounds_to_float16_as_numpys():
    bits = np.arange(0, 2**32, 40_009, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    x = x[~np.isnan(x)]
    near = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    near = near[np.isfinite(near)]
    halfway = (near[:-1] + near[1:]) / 2
    rounded = xdev.vectorize(["float16(float32)"])(lambda x: x)

    for sample in (x, near, halfway):
        with np.errstate(all="ignore"):
            result, expected = rounded(sample), sample.astype(np.float16)
        same(result.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("order", "KCFA")
def test_orders_of_results_are_numpys(real_device, order):
    plain = values((3, 5), "f")
    for view in (lambda x: x, lambda x: x.T, lambda x: x.T[1:], lambda x: x[:, 1]):
        x, there = view(plain), view(*on(real_device, plain))
        expected = np.add(x, x, order=order)
        assert add(there, there, order=order).strides == expected.strides
    with pytest.raises(ValueError, match="order"):
        add(plain, plain, order="wrong")
