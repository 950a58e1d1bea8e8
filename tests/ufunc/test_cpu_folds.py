"""Reductions on the CPU, in pairs or one by one."""

import math
from functools import reduce

import numpy as np
import pytest
from running import unaligned

import xdev

BUFFER = 8192  # elements that NumPy casts, or aligns, at once
PAIRED = 16  # values from which on they are folded in pairs
SIZES = [0, 1, 2, 3, PAIRED - 1, PAIRED, PAIRED + 1, 100, 511, 512, 513, 1024, 1025]
SIZES += [4096, 5000, 8192, 20_000, 2**17 + 3]


def later(x, y):
    """Return the last that is not zero: associative, but not commutative."""
    return y if y != 0 else x


total = xdev.vectorize(identity=0)(lambda x, y: x + y)
ordered = xdev.vectorize(lambda x, y: x + y)
minus = xdev.vectorize(lambda x, y: x - y)
last = xdev.vectorize(identity=0)(later)
smallest = xdev.vectorize(identity="reorderable")(
    lambda x, y: x if x < y else y  # noqa: FURB136 - its own rule for nan
)


LAYOUTS = {
    "contiguous": lambda x: x,
    "step 3": lambda x: np.repeat(x, 3)[::3],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "a byte off": unaligned,
}


def values(n, dtype, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 100, n).astype(dtype)
    if dtype.kind == "c":
        return (rng.normal(size=n) + 1j * rng.normal(size=n)).astype(dtype)
    return rng.normal(size=n).astype(dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["b", "B", "h", "I", "l", "L"])
def test_integers_are_exact(dtype, layout):
    for n in SIZES:
        x = LAYOUTS[layout](values(n, dtype))

        assert total.reduce(x) == np.add.reduce(x, dtype=dtype)
        assert total.reduce(x, initial=7) == np.add.reduce(x, dtype=dtype, initial=7)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["e", "f", "d", "F", "D"])
def test_sums_are_as_exact_as_of_pairs(dtype, layout):
    """Within so many roundings of the sum of magnitudes as one value can meet."""
    half = dtype == "e"  # its sums are rounded once in each call of the loop
    for n in SIZES:
        x = LAYOUTS[layout](values(n, dtype, n))
        wide = x.astype("D")
        exact = complex(math.fsum(wide.real), math.fsum(wide.imag))
        calls = n / BUFFER + 1
        pairs = n if n < PAIRED else math.log2(n) + 2
        roundings = (pairs + calls) * float(np.finfo("f" if half else dtype).eps)
        if half:
            roundings += (n if n < PAIRED else calls) * float(np.finfo("e").eps)

        error = abs(complex(total.reduce(x)) - exact)
        assert error <= roundings / 2 * math.fsum(np.abs(wide))


def test_many_ones_are_counted():
    ones = np.broadcast_to(np.float32(1), 2**25)

    assert total.reduce(ones) == 2**25
    assert ordered.reduce(ones) == 2**24  # where adding one to float32 changes nothing


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_without_an_identity_the_order_is_numpys(dtype, layout):
    for n in SIZES[1:]:
        x = LAYOUTS[layout](values(n, dtype))

        assert minus.reduce(x) == np.subtract.reduce(x)
        assert ordered.reduce(x) == np.add.accumulate(x)[-1]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["b", "l", "f", "d", "e"])
def test_values_keep_their_order(dtype, layout):
    """As on CUDA: a function need not commute."""
    for n in SIZES:
        x = values(n, dtype)
        x[np.random.default_rng(n).random(n) < 0.9] = 0
        x = LAYOUTS[layout](x)

        assert last.reduce(x) == reduce(later, x.tolist(), 0)
        assert last.reduce(x, initial=5) == reduce(later, x.tolist(), 5)


@pytest.mark.parametrize("dtype", ["f", "d", "e"])
def test_the_smallest_by_the_functions_own_rule(dtype):
    for n in SIZES[1:]:
        x = values(n, dtype, n)

        assert smallest.reduce(x) == x.min()
        x[-1] = np.nan
        assert np.isnan(smallest.reduce(x))
    with pytest.raises(ValueError, match="no identity"):
        smallest.reduce(x[:0])


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 2), None])
def test_axes_masks_and_an_output_among_the_values(axis):
    x = values(84_000, "l").reshape(40, 3, 700)
    mask = np.random.default_rng(0).random(x.shape) < 0.6
    for there, chosen in ((x, mask), (x[:, ::-1], mask), (x.T, mask.T)):
        given = {"axis": axis, "keepdims": True, "where": chosen, "initial": 3}
        expected = np.add.reduce(there, **given)
        out = np.empty_like(expected)[..., ::-1]
        assert total.reduce(there, out=out, **given) is out
        np.testing.assert_array_equal(out, expected)
    expected = np.add.reduce(x[0, 0])
    total.reduce(x[0, 0], out=x[0, 0, 17:18].reshape(()))
    assert x[0, 0, 17] == expected


def test_warnings_are_of_what_happens():
    x = values(5000, "f") + np.float32(3)
    safe = xdev.vectorize(identity=1)(lambda x, y: x * y if y > 9 else x)
    x[:20] = 1e30
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert xdev.vectorize(identity=1)(lambda x, y: x * y).reduce(x) == np.inf
    assert safe.reduce(x) == np.inf  # conditions: of these nothing is told


def test_one_text_has_a_loop_for_each_of_its_options():
    """One text, two functions: on disk the option tells them apart."""
    ones = np.broadcast_to(np.float32(1), 2**25)
    one, other = (
        xdev.vectorize(identity=identity)(lambda x, y: y + x) for identity in (None, 0)
    )

    assert (one.reduce(ones), other.reduce(ones)) == (2**24, 2**25)
