"""Reductions, scans and scatters by the CUDA templates, on a stand-in."""

import itertools
import os

import numpy as np
import pytest

import xdev

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
SHAPES = [(70,), (300_000,), (3, 4000), (2000, 3), (6, 70, 40)]


@pytest.mark.parametrize("method", ["reduce", "accumulate"])
@pytest.mark.parametrize("name", ["add", "first"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions_and_scans_along_each_axis_keep_the_order(gpu, name, shape, method):
    ours = getattr(gpu.ufunc(name), method)
    x = gpu.sample(shape, "l") * (gpu.sample(shape, "?", 1) | (name == "add"))
    plain = np.frompyfunc(gpu.functions[name], 2, 1) if name == "first" else np.add
    for axis in range(len(shape)):
        expected = np.asarray(getattr(plain, method)(x, axis), "l")
        found = gpu.host(ours(gpu.array(x), axis=axis, dtype="l"))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("char", [*("behfdFD" if DEEP else "befD"), "bfloat16"])
def test_reductions_of_every_dtype_and_alignment(gpu, char):
    ufunc, half = gpu.ufunc("add", 0), char in ("e", "bfloat16")
    for n, start in ((40_000, 0), (40_000, 1), (5000, 3), (100, 1)):
        x = gpu.sample(n + start, char)[start:]
        x = (x % 2).astype(char) if half else x
        result = gpu.host(ufunc.reduce(gpu.array(x), axis=None, dtype=char))

        expected = np.sum(x, dtype="f" if half else char).astype(char)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("axis", [None, (0, 1), (1, 2), (0, 2), -1, ()], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_reductions_of_several_axes_with_masks_and_out(gpu, axis, order):
    ufunc = gpu.ufunc("add", 0)
    x, where = gpu.sample((6, 5, 70), "d"), gpu.sample((5, 70), "?", 3)
    x = np.asarray(x, order=order)
    for keepdims, mask, initial in itertools.product(
        (False, True), (True, where), (0, 5)
    ):
        expected = np.add.reduce(
            x, axis, keepdims=keepdims, where=mask, initial=initial
        )
        out = np.full(expected.shape, -1.0, order="F")
        there = mask if mask is True else gpu.array(mask)
        given = {"keepdims": keepdims, "where": there, "initial": initial}
        result = ufunc.reduce(gpu.array(x), axis=axis, dtype="d", **given)
        np.testing.assert_array_equal(gpu.host(result), expected)
        ufunc.reduce(gpu.array(x), axis=axis, dtype="d", out=gpu.array(out), **given)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("shape", "axis"), [((100_000,), 0), ((300, 40), 0)], ids=str)
def test_segments_without_a_value_leave_none(gpu, shape, axis):
    ufunc, x = gpu.ufunc("first"), gpu.sample(shape, "l") + 1
    for density in (0, 1, 40_000):
        mask = np.zeros(x.size, bool)
        mask[-density:] = bool(density)
        mask, plain = mask.reshape(shape), np.frompyfunc(gpu.functions["first"], 2, 1)
        given = {"initial": 0, "where": gpu.array(mask)}
        made = ufunc.reduce(gpu.array(x), axis=axis, dtype="l", **given)

        expected = plain.reduce(x * mask, axis, initial=0)
        np.testing.assert_array_equal(gpu.host(made), expected)


@pytest.mark.parametrize(
    ("char", "shape"),
    itertools.product("efdbi?", [(70_000,), (600, 40), (9000, 64), (3, 4000)])
    if DEEP
    else [("e", (70_000,)), ("i", (600, 40)), ("b", (9000, 64))],
    ids=str,
)
def test_statistics_are_numpys(gpu, shape, char):
    rng = np.random.default_rng(3)
    x = (rng.normal(7, 2, shape) * (rng.random(shape) < 0.9)).astype(char)
    kept = {"axis": len(shape) - 1, "keepdims": True}
    for name, correction, plain in (
        ("count", 0, np.count_nonzero),
        ("norm", 0, lambda x, **how: np.sqrt((x * x).sum(**how))),
        ("mean", 0, np.mean),
        ("std", 1.5, lambda x, **how: np.std(x, ddof=1.5, **how)),
    ):
        reduction = gpu.statistic(name)
        for how in ({"axis": None}, {"axis": 0}, kept):
            expected = np.asarray(plain(x.astype("d"), **how))
            for _ in range(2):  # the second time by the first one's plan
                made = reduction.reduce(gpu.array(x), correction=correction, **how)
                again = reduction.again(gpu.array(x), how["axis"], None, correction)

                made = gpu.host(made)
                dtype = np.intp if name == "count" else np.mean(x).dtype
                assert (made.dtype, made.shape) == (dtype, expected.shape)
                rtol = {"e": 1e-3, "f": 3e-6}.get(char, 1e-12)
                np.testing.assert_allclose(made, expected, rtol=rtol)
                if not kept.items() <= how.items():
                    np.testing.assert_array_equal(gpu.host(again), made)


@pytest.mark.parametrize("char", "?bHefd" if DEEP else "bed")
@pytest.mark.parametrize("shape", [*SHAPES[1:], (9000, 64)], ids=str)
def test_places_of_extremes_are_the_first_ones(gpu, shape, char):
    x = gpu.sample(shape, char)
    samples = [x, x.copy()]
    if char in "efd":
        samples[1].flat[[x.size // 3, x.size // 2]] = np.nan
    for name, plain in (("argmax", np.argmax), ("argmin", np.argmin)):
        places = gpu.statistic(name)
        for y, axis in itertools.product(samples, (None, *range(x.ndim))):
            for view in (y, y[::-1, ...]) if axis is not None else (y,):
                made = gpu.host(places.reduce(gpu.array(view), axis=axis))

                expected = np.asarray(plain(view, axis))
                np.testing.assert_array_equal(made, expected, strict=True)


def test_places_are_of_one_axis_or_of_all(gpu):
    places, x = gpu.statistic("argmax"), gpu.sample((3, 4), "d")
    for axis in ((0, 1), (0,), (), [0], 1.0, "1"):
        with pytest.raises(TypeError):
            np.argmax(x, axis)
        with pytest.raises(TypeError, match="integer"):
            places.reduce(gpu.array(x), axis=axis)
    for axis in (0, -1, None):
        assert gpu.host(places.reduce(gpu.array(np.asarray(3.0)), axis=axis)) == 0


def test_corrections_of_other_types_are_numpys(gpu):
    variance, x = gpu.statistic("var"), gpu.sample((3, 4), "d")
    for correction in (1, True, np.int8(1), np.float32(1), np.asarray(1.0), np.nan) * 2:
        made = variance.again(gpu.array(x), None, None, correction)
        if made is NotImplemented:
            made = variance.reduce(gpu.array(x), axis=None, correction=correction)
        expected = np.var(x, correction=correction)
        np.testing.assert_allclose(gpu.host(made), expected, rtol=1e-14)
    for correction in (1 + 0j, "1", None):
        assert variance.again(gpu.array(x), None, None, correction) is NotImplemented
        with pytest.raises(TypeError):
            variance.reduce(gpu.array(x), axis=None, correction=correction)


def test_scans_in_place_and_of_other_dtypes(gpu):
    ufunc = gpu.ufunc("add")
    for char in ("e", "D", "bfloat16"):
        x = (gpu.sample((2, 2000), char) != 0).astype(char)[:, ::-1]
        expected = np.add.accumulate(x, 1, dtype="D" if char == "D" else "d")
        ours = x.copy()
        ufunc.accumulate(gpu.array(ours), axis=1, dtype=char, out=gpu.array(ours))
        np.testing.assert_array_equal(ours, expected.astype(char))


@pytest.mark.parametrize("axis", [0, 1])
def test_slices_are_folded_as_numpy_does(gpu, axis):
    add, x = gpu.ufunc("add"), gpu.sample((300, 400), "d")
    for indices in ([0, 5, 299], [7, 3, 3, 250, 0], [299], list(range(0, 300, 2))):
        found = gpu.host(add.reduceat(gpu.array(x), indices, axis))
        np.testing.assert_array_equal(found, np.add.reduceat(x, indices, axis))
    with pytest.raises(IndexError, match="0 to"):
        add.reduceat(gpu.array(x), [500], axis)


def test_at_works_in_place_at_repeated_indices_in_order(gpu):
    add, rng = gpu.ufunc("add"), np.random.default_rng(2)
    mask = np.arange(50) % 3 == 0
    for index, value in (
        (rng.integers(-50, 50, 4000), gpu.sample(4000, "d")),
        ((slice(None, None, 2), None), 2.5),
        ((mask, Ellipsis), np.float64(3)),
        (([0, 0, 49],), [1.0, 2.0, 4.0]),
        (np.zeros(0, int), 1.0),
    ):
        value = np.asarray(value) if isinstance(value, list) else value  # noqa: PLW2901
        ours, expected = np.zeros((50, 1), "f"), np.zeros((50, 1), "f")
        there = gpu.array(value) if np.ndim(value) else value
        add.at(gpu.array(ours[:, 0]), index, there)
        np.add.at(expected[:, 0], index, value)
        np.testing.assert_array_equal(ours, expected)
    x = gpu.array(np.zeros(5))
    with pytest.raises(IndexError, match="out of bounds for axis 0"):
        add.at(x, [5], 1.0)
    with pytest.raises(TypeError, match="cannot go to int32"):
        add.at(gpu.array(np.zeros(5, "i")), [0], 1.5)
    with pytest.raises(OverflowError, match="int8"):
        add.at(gpu.array(np.zeros(5, "b")), [0], 300)


def test_methods_of_other_libraries_arrays(gpu, tensor):
    total = xdev.vectorize(gpu.functions["add"], identity=0)
    x = gpu.sample((3, 40), "l")
    there = tensor(gpu.array(x))
    out = tensor(gpu.array(np.zeros(40, "l")))

    for found, expected in (
        (total.reduce(there, axis=1), np.add.reduce(x, axis=1)),
        (total.reduce(there, dtype="f4"), np.add.reduce(x, dtype="f4")),
        (total.accumulate(there), np.add.accumulate(x)),
        (total.reduceat(there, [0, 2]), np.add.reduceat(x, [0, 2])),
        (total.outer(there, there), np.add.outer(x, x)),
        (total.outer(there, 1, out=None), np.add.outer(x, 1)),
        (total(there, there), x + x),
        (total.reduce(there, out=out), np.add.reduce(x)),
    ):
        assert type(found) is tensor
        np.testing.assert_array_equal(gpu.host(found.array), expected, strict=True)
    assert total.reduce(there, out=out) is out


@pytest.mark.parametrize("shape", [(70,), (6, 70, 40)], ids=str)
def test_a_reduction_is_repeated_for_other_values_of_its_layout(gpu, shape):
    total = gpu.ufunc("add", 0)
    for axis, seed in itertools.product((0, -1, None, (0,)), range(3)):
        x = gpu.sample(shape, "i", seed)
        for dtype, view in ((None, x), ("d", x), (None, x[::-1]), (None, x[1:])):
            made = total.reduce(gpu.array(view), axis, dtype)
            expected = np.add.reduce(view, axis, dtype or "i")
            np.testing.assert_array_equal(gpu.host(made), expected, strict=True)


@pytest.mark.parametrize(
    "axis", [1.0, True, np.True_, np.float64(1), (1.0,), (0, True), (0.0, 1), "1"]
)
def test_an_axis_that_is_no_integer_is_refused_every_time(gpu, axis):
    total = xdev.vectorize(gpu.functions["add"], identity=0)
    x = gpu.sample((5, 6), "d")
    with pytest.raises(TypeError):
        np.add.reduce(x, axis)

    for known in ((), (1, (1,), (0, 1), np.int64(1))):
        for right in known * 2:
            made = total.reduce(gpu.array(x), right)
            np.testing.assert_array_equal(gpu.host(made), np.add.reduce(x, right))
        with pytest.raises(TypeError, match="integer"):
            total.reduce(gpu.array(x), axis)
        with pytest.raises(TypeError, match="integer"):
            total.accumulate(gpu.array(x), axis)
        with pytest.raises(TypeError, match="integer"):
            total.reduceat(gpu.array(x), [0], axis)


def test_an_array_of_no_dimensions_has_its_one_element_as_an_axis(gpu):
    total, x = gpu.ufunc("add"), np.asarray(3.0)
    for axis in (0, -1, None, ()) * 2:
        made = total.reduce(gpu.array(x), axis)
        assert gpu.host(made) == np.add.reduce(x, axis)
    for axis in (1, -2, (0,)):
        with pytest.raises(ValueError, match="axis") as numpys:
            np.add.reduce(x, axis)
        with pytest.raises(numpys.type, match="out of bounds"):
            total.reduce(gpu.array(x), axis)
