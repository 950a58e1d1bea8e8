"""Reductions on the CPU, in pairs or one by one, and ``f.at`` of many indices."""

import math
import warnings
from functools import reduce

import numpy as np
import pytest
from running import add

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


def shifted(x):
    view = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype)
    view[...] = x
    return view


LAYOUTS = {
    "contiguous": lambda x: x,
    "step 3": lambda x: np.repeat(x, 3)[::3],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "a byte off": shifted,
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


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_errors_grow_no_faster_than_numpys(dtype):
    """Over many sums, the root of the mean square error."""
    ours, numpys = [], []
    for seed in range(40):
        x = values(100_000, dtype, seed) + np.dtype(dtype).type(1)
        exact = math.fsum(x)
        ours.append(float(total.reduce(x)) - exact)
        numpys.append(float(np.add.reduce(x)) - exact)

    assert np.linalg.norm(ours) <= 2 * np.linalg.norm(numpys)


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


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 2), (0, 1, 2), None])
@pytest.mark.parametrize("shape", [(3, 40, 50), (40, 3, 700), (1, 2000, 2)])
def test_axes_masks_and_outputs(shape, axis):
    x = values(math.prod(shape), "l").reshape(shape)
    mask = np.random.default_rng(0).random(shape) < 0.6
    for there, chosen in ((x, mask), (x[:, ::-1], mask), (x.T, mask.T)):
        given = {"axis": axis, "keepdims": True}
        np.testing.assert_array_equal(
            total.reduce(there, **given), np.add.reduce(there, **given)
        )
        given |= {"where": chosen, "initial": 3}
        expected = np.add.reduce(there, **given)
        np.testing.assert_array_equal(total.reduce(there, **given), expected)
        out = np.empty_like(expected)[..., ::-1]
        assert total.reduce(there, out=out, **given) is out
        np.testing.assert_array_equal(out, expected)
        several = np.add.reduce(there.astype("f"), axis, dtype="d")
        found = total.reduce(there.astype("f"), axis, dtype="d")
        np.testing.assert_array_equal(found, several)


def test_segments_accumulations_and_an_output_among_the_values():
    x = values(9000, "l")
    starts = [0, 3, 20, 19, 700, 8999]
    np.testing.assert_array_equal(total.reduceat(x, starts), np.add.reduceat(x, starts))
    np.testing.assert_array_equal(total.accumulate(x), np.add.accumulate(x))
    expected = np.add.reduce(x)
    total.reduce(x, out=x[17:18].reshape(()))
    assert x[17] == expected


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


N, COUNT = 37, 900


def mixed(x, y):
    return x * y + 2 - x


mix = xdev.vectorize(mixed)
flip = xdev.vectorize(lambda x: 1 - x)
compare = xdev.vectorize(lambda x, y: x < y)
quotient = xdev.vectorize(lambda x, y: x / y)


INDICES = np.random.default_rng(0).integers(-N, N, COUNT)


def numbers(dtype, n):
    x = np.random.default_rng(n).integers(0, 3, n)
    return (x * (1 + 0.5j) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def model(f, a, indices, *values):
    """Compute one element after the other, in the dtype of ``a``."""
    values = [np.broadcast_to(x, indices.shape) for x in values]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflow
        for k, index in enumerate(indices):
            a[index] = f(a[index], *(x[k] for x in values))


def same(a, expected):
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "f2", "f4", "c16"])
def test_any_dtype(dtype):
    values = numbers(dtype, COUNT)
    for ufunc, given in ((add, (values,)), (mix, (values[:1] * 0,)), (flip, ())):
        a = numbers(dtype, N)
        expected = a.copy()
        function = ufunc.__wrapped__
        operands = [np.broadcast_to(x, COUNT).copy() for x in given]

        assert ufunc.at(a, INDICES, *operands) is None

        model(function, expected, INDICES, *operands)
        same(a, expected)


@pytest.mark.parametrize("dtype", ["u1", "i4", "u4", "i8", "u8", ">i8"])
def test_any_indices(dtype):
    indices = np.abs(INDICES[1:-1]) % N
    a = np.zeros(N)
    for given in (indices, indices[::-1], indices[::3], indices.tolist(), (indices,)):
        there = given
        if isinstance(given, np.ndarray):
            room = np.zeros(2 * len(given), dtype)
            there = room[::2]
            there[...] = given
        add.at(a, there, 1.0)
        add.at(a, there, np.float64(1))
        add.at(a, there, np.asarray(1.0))
    counts = np.bincount(indices, minlength=N) * 4
    counts += np.bincount(indices[::3], minlength=N)
    same(a, 3.0 * counts)


RISING = np.arange(COUNT)[::-1] // 2


@pytest.mark.parametrize(
    ("functions", "make", "indices", "values"),
    [
        ((add, np.add), lambda: np.zeros(N, "f4"), INDICES, np.arange(COUNT) / 3),
        ((add, np.add), lambda: np.zeros(COUNT), np.arange(COUNT) % 3 == 0, 2.0),
        ((compare, np.less), lambda: np.zeros(N, bool), INDICES, RISING % 3 == 0),
        ((add, np.add), lambda: numbers("i8", COUNT) + 1, RISING, ...),
        ((add, np.add), lambda: numbers("i8", COUNT) + 1, ..., 1),
    ],
    ids=["cast", "a mask", "bools", "values overlap", "indices overlap"],
)
def test_values_indices_and_overlap_are_as_numpys(functions, make, indices, values):
    arrays = make(), make()
    for function, a in zip(functions, arrays, strict=True):
        function.at(a, *(a if x is ... else x for x in (indices, values)))
    same(*arrays)


def test_what_does_not_fit_is_refused_as_before():
    a = np.zeros(N)
    with pytest.raises(ValueError, match="broadcast"):
        add.at(a, INDICES, np.ones(COUNT - 1))
    same(a, 0)


def test_parts_of_arrays_and_values_at_strides():
    values = numbers("f8", 2 * COUNT)
    room = np.zeros((N, 2))
    add.at(room[::-1, 1], INDICES, values[::-2])

    expected = np.zeros(N)
    model(np.add, expected, INDICES, values[::-2])
    same(room[::-1, 1], expected)
    same(room[:, 0], 0)
    table = np.zeros((N, 2))
    add.at(table, INDICES, 1.0)
    same(table[:, 0], table[:, 1])
    assert table.sum() == 2 * COUNT


@pytest.mark.parametrize("wrong", [N, -N - 1])
def test_an_index_out_of_bounds_changes_nothing(wrong):
    indices, a = INDICES.copy(), np.zeros(N)
    indices[-1] = wrong

    with pytest.raises(IndexError, match="out of bounds"):
        add.at(a, indices, 1.0)

    same(a, 0)


def test_floating_point_errors_are_told_once():
    a, zeros = np.ones(N), np.zeros(COUNT)
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in") as told:
        quotient.at(a, INDICES[:600] * 0, zeros[:600])
    assert [w for w in told if "divide" in str(w.message)][1:] == []
    assert a[0] == np.inf
    with pytest.raises(FloatingPointError), np.errstate(divide="raise"):
        quotient.at(np.ones(N), INDICES, zeros)
    with np.errstate(all="raise"):
        quotient.at(np.ones(N), INDICES, zeros + 2)
