"""Loops of the CPU: layouts x sizes x functions, as the function; pooled results."""

import math
from itertools import product

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from running import add, same, unaligned

import xdev

LONG = 256  # elements of a row of the loop's
SIZES = [0, 1, 2, 7, 8, 9, LONG - 1, LONG, LONG + 1, 3 * LONG + 1]


def light(x, y):
    return x + y


def heavy(x, y):
    return (x * y + 3) * (x - y) * x + y


def wave(x, y, z):
    return x * math.exp(y) - math.sin(z)


def several(x, y):
    return x * y + x * x * y - 1, x < y, 1  # which the loop may leave out


FUNCTIONS = {f.__name__: f for f in (light, heavy, wave, several)}
UFUNCS = {name: xdev.vectorize(f) for name, f in FUNCTIONS.items()}


def embedded(x, step):
    """Return the same values in a larger array, at a step."""
    room = np.full(max(abs(step) * len(x), 1), 99, x.dtype)
    view = room[:: abs(step)][: len(x)]
    view = view[::-1] if step < 0 else view
    view[...] = x
    return view


LAYOUTS = {
    "contiguous": lambda x: x.copy(),
    "number": lambda x: x.dtype.type(x[0] if len(x) else 1),
    "stride 0": lambda x: np.broadcast_to(x[:1] if len(x) else x, x.shape),
    "step 2": lambda x: embedded(x, 2),
    "step 7": lambda x: embedded(x, 7),
    "backwards": lambda x: embedded(x, -1),
    "step -3": lambda x: embedded(x, -3),
    "misaligned": unaligned,
}
OUTPUTS = ["contiguous", "step 2", "backwards", "step -3"]


def inputs(count, n, dtype):
    raw = np.random.default_rng(n).uniform(0.5, 3, (count, n))
    return [x.astype(dtype) for x in raw]


def parts(found):
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *product(["light", "heavy"], ["f4", "f8", "c8", "c16", "i4", "i1", "f2"]),
        *product(["wave", "several"], ["f8"]),
    ],
)
@pytest.mark.parametrize("n", SIZES)
def test_any_layouts(name, dtype, n):
    rng = np.random.default_rng(n)
    args = inputs(FUNCTIONS[name].__code__.co_argcount, n, dtype)
    picks = list(product(LAYOUTS, repeat=len(args)))
    if len(picks) > len(LAYOUTS) ** 2:
        picks = [picks[k] for k in rng.choice(len(picks), 24, replace=False)]
    for layouts in picks:
        given = [LAYOUTS[layout](x) for layout, x in zip(layouts, args, strict=True)]
        whole = [np.broadcast_to(x, (n,)).copy() for x in given]
        expected = parts(UFUNCS[name](*whole))
        if name != "wave" and dtype != "f2":  # computed otherwise than by NumPy
            plain = parts(FUNCTIONS[name](*whole))
            same(expected, tuple(np.broadcast_to(x, (n,)) for x in plain))
        picked = rng.choice(OUTPUTS, len(expected))
        outs = tuple(
            LAYOUTS[k](np.zeros(n, x.dtype))
            for k, x in zip(picked, expected, strict=True)
        )

        same(parts(UFUNCS[name](*given, out=outs)), expected)
        same(outs, expected)
        for out in outs:  # nothing between its elements is written
            if out.base is not None and out.strides[0] > out.itemsize and n:
                strange = out.base[np.arange(len(out.base)) % (len(out.base) // n) != 0]
                assert np.all(strange == out.dtype.type(99))


@pytest.mark.parametrize("n", [9, LONG, 3 * LONG + 1])
@pytest.mark.parametrize("name", ["light", "heavy"])
def test_in_place_and_beside(name, n):
    """Exactly in place, backwards, and between the inputs' elements."""
    f = UFUNCS[name]
    x, y = inputs(2, n, "f8")
    for layout in ("contiguous", "step 2", "backwards", "step -3"):
        there = LAYOUTS[layout](x)
        expected = FUNCTIONS[name](x, y)

        f(there, y, out=there)

        np.testing.assert_array_equal(there, expected)
    table = np.column_stack([x, y, x])
    for way in (slice(None), slice(None, None, -1)):
        f(table[way, 0], table[way, 1], out=table[way, 2])
        np.testing.assert_array_equal(table, np.column_stack([x, y, expected]))
    record = np.zeros(n, [("x", "f8"), ("flag", "i1"), ("y", "f8"), ("z", "f4")])
    record["x"], record["y"] = x, y
    f(record["x"], record["y"], out=record["z"], casting="unsafe")
    np.testing.assert_array_equal(record["z"], expected.astype("f4"))
    f(record["x"], record["y"], out=record["x"])
    np.testing.assert_array_equal(record["x"], expected)


def stencil(c, n, s, w, e):
    return (n + s + w + e) * 0.25 - c


@pytest.mark.parametrize("dtype", ["f4", "c16"])
@pytest.mark.parametrize("shape", [(150, 170), (7, 4000), (3, 90, 100)])
def test_rows_of_slices_and_of_what_broadcasts(shape, dtype):
    f = xdev.vectorize(stencil)
    whole = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    middle = whole[..., 1:-1, 1:-1]
    around = [whole[..., rows, 1:-1] for rows in (slice(-2), slice(2, None))]
    around += [whole[..., 1:-1, columns] for columns in (slice(-2), slice(2, None))]
    row, column = middle[..., :1, :], np.asfortranarray(middle)[..., :1]
    for args in (
        (middle, *around),
        (middle[..., ::-1], *(x[..., ::-1, :] for x in around)),
        (middle, row, around[0], column, column[..., :1, :]),
        (np.asfortranarray(middle), *around[:3], 2.0),
    ):
        expected = stencil(*args)
        for out in (None, np.full(shape, 7, dtype), np.full(shape, 7, "c16")):
            inner = None if out is None else out[..., 1:-1, 1:-1]
            for _ in range(3):
                made = f(*args, out=inner)
            np.testing.assert_array_equal(made, expected)
            assert out is None or np.all(out[..., [0, -1]] == 7)
    expected = stencil(middle, *around)
    np.testing.assert_array_equal(f(middle, *around, out=middle), expected)


@pytest.mark.parametrize("n", [2 * LONG + 3, 1_000_000])  # one thread, several
def test_an_output_of_one_place_has_the_last_value(n):
    x = inputs(1, n, "f8")[0]
    room = np.zeros(1)
    out = as_strided(room, x.shape, (0,))

    for name in ("light", "heavy") * 40:
        UFUNCS[name](x, x, out=out)

        assert room[0] == FUNCTIONS[name](x[-1], x[-1])


@pytest.mark.parametrize("n", [1, 9, LONG - 1, LONG + 1])
@pytest.mark.parametrize("step", [0, 1, 3, -2])
def test_elements_that_are_not_there_raise_nothing(n, step):
    """What is in a row of the loop's own is not computed with unless it is used."""
    f = xdev.vectorize(lambda x, y: math.log(x) / y + math.sqrt(x * y) / x)
    x = embedded(np.full(n, 2.0), step) if step else 2.0
    out = np.empty(n)

    zeros, nothing = np.zeros(3 * LONG), np.zeros(3 * LONG, bool)
    f(zeros, 1.0, out=zeros, where=nothing)  # a warning would be an error
    f(x, 3.0, out=out)
    f(np.full(n, 2.0), x, out=out[::-1])
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        f(x, 0.0, out=out)


@pytest.mark.parametrize("count", [2, 20])
def test_many_operands(count):
    names = [f"x{k}" for k in range(count)]
    f = xdev.vectorize(eval(f"lambda {', '.join(names)}: {' * 0.5 + '.join(names)}"))  # noqa: S307
    args = inputs(count, 3 * LONG + 1, "f8")
    expected = args[-1] + sum(0.5 * x for x in args[:-1])

    np.testing.assert_allclose(f(*args), expected, rtol=1e-14)
    np.testing.assert_array_equal(f(*[embedded(x, 2) for x in args]), f(*args))


ORDERS = {
    "C": lambda x: x,
    "F": np.asfortranarray,
    "transposed": lambda x: np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(
        1, 2, 0
    ),
    "reversed": lambda x: x[::-1],
    "every other": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
}
SHAPES = [(40, 50, 60), (1, 300, 400), (300, 1, 400), (300, 400, 1)]


negative = xdev.vectorize(lambda x: -x)


def steps(x):
    """Return the strides that matter."""
    return [step for step, n in zip(x.strides, x.shape, strict=True) if n > 1]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("one", ORDERS)
@pytest.mark.parametrize("other", ORDERS)
def test_large_results_are_pooled_and_laid_out_as_numpys(shape, one, other):
    values = np.arange(120_000, dtype="f4").reshape(shape)
    x, y = ORDERS[one](values), ORDERS[other](values + 1)

    for call, expected in (
        (lambda: negative(x), np.negative(x)),
        (lambda: add(x, y), np.add(x, y)),
        (lambda: add(x, np.float32(3)), np.add(x, 3)),
        (lambda: add(x, y, casting="same_kind"), np.add(x, y)),
        (lambda: add(x, y[:1]), np.add(x, y[:1])),
    ):
        for _ in range(3):  # the first call learns, the others are short
            before = xdev.memory.allocated("cpu", kind="host")
            result = call()
            after = xdev.memory.allocated("cpu", kind="host")
            assert after >= before + result.nbytes
            assert (type(result), steps(result)) == (np.ndarray, steps(expected))
            np.testing.assert_array_equal(result, expected, strict=True)
            del result
            assert xdev.memory.allocated("cpu", kind="host") == before


def test_arrays_of_more_dimensions_than_numpy_broadcasts_shapes_of_are_taken():
    x, y = np.ones((*(1,) * 32, 70_000)), np.ones((2, *(1,) * 32))
    same(add(x, y), np.add(x, y))
    same(xdev.where(x > 0, x, y), np.where(x > 0, x, y))
    assert xdev.random.default_rng(0, "cpu").normal(x[..., :1], 1.0).ndim == x.ndim
