"""reduce, accumulate, reduceat, outer, at: dtypes x layouts as NumPy's, any device."""

from itertools import product

import numpy as np
import pytest
from running import add, same, there as on

import xdev

DTYPES = ["?", "b", "B", "h", "H", "i", "I", "l", "L", "e", "f", "d", "F", "D"]
LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "stepped": lambda x: x[::2, 1::2],
    "backwards": lambda x: x[::-1, ::-1],
    "a row": lambda x: x[1:2],
    "unaligned": lambda x: x[1:, 1:],
    "nothing": lambda x: x[:0],
}


flipped = xdev.vectorize(lambda x: -x)


def values(dtype, shape=(8, 9), seed=0):
    """Small whole numbers: their sums are exact in every dtype, in any order."""
    raw = np.random.default_rng(seed).integers(0, 3, (2, *shape))
    return (raw[0] + 1j * raw[1] if np.dtype(dtype).kind == "c" else raw[0]).astype(
        dtype
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_reduce(device, dtype):
    x = values(dtype)
    (there,) = on(device, x)
    for view, axis in product(LAYOUTS.values(), (0, 1, -1, None, (0, 1))):
        same(add.reduce(view(there), axis), np.add.reduce(view(x), axis, dtype=dtype))


@pytest.mark.parametrize("dtype", ["b", "L", "e", "f", "d", "D"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_accumulate(device, dtype, layout):
    x, (there,) = LAYOUTS[layout](values(dtype)), on(device, values(dtype))
    for axis in (0, 1, -2):
        found = add.accumulate(LAYOUTS[layout](there), axis)
        same(found, np.add.accumulate(x, axis, dtype=dtype))


@pytest.mark.parametrize("dtype", ["b", "f", "D"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("indices", [[0], [0, 3, 1], [2, 2, 5], [7, 0]])
def test_reduceat(device, dtype, axis, indices):
    result = add.reduceat(*on(device, values(dtype), np.asarray(indices)), axis)
    same(result, np.add.reduceat(values(dtype), indices, axis, dtype=dtype))


@pytest.mark.parametrize("one", DTYPES)
@pytest.mark.parametrize("other", ["L", "F"])
def test_outer_of_any_dtypes(device, one, other):
    x, y = values(one, (3, 4)), values(other, (5,), 1)
    same(add.outer(*on(device, x, y)), np.add.outer(x, y))


@pytest.mark.parametrize("dtype", ["i", "l", "f", "d"])
def test_at_counts_repeated_indices(device, dtype):
    x, where = values(dtype, (6,)), np.asarray([0, 0, 5, 0, 2])
    there, places, more = on(device, x, where, values(dtype, (5,), 1))

    add.at(there, places, more)

    np.add.at(x, where, values(dtype, (5,), 1))
    same(there, x)


def test_at_of_one_argument_and_of_a_number(device):
    there, one, other = on(device, np.arange(5.0), np.asarray([1, 3]), np.asarray([0]))

    flipped.at(there, one)
    add.at(there, other, 2)

    same(there, np.asarray([2.0, -1, 2, -3, 4]))


def test_methods_take_numpys_order_by_place(device):
    x = values("f")
    there, mask, out = on(device, x, x > 0, np.zeros((8, 1), "d"))

    assert add.reduce(there, 1, "d", out, True, 10, mask) is out
    same(out, np.add.reduce(x, 1, "d", None, True, 10, x > 0))
    assert add.reduce(there, 1, out=out, keepdims=True, initial=10) is out
    same(out, 10 + x.sum(axis=1, keepdims=True, dtype="d"))
    same(add.accumulate(there, 1, "d"), np.add.accumulate(x, 1, "d"))
    same(add.reduceat(there, [0, 2], 1, "d"), np.add.reduceat(x, [0, 2], 1, "d"))
    same(add.reduce(*on(device, values("b")), dtype="d"), values("b").sum(0, dtype="d"))


def test_an_axis_that_is_not_there_and_functions_of_one_are_refused(device):
    (x,) = on(device, values("d"))
    for axis in (2, -3):
        with pytest.raises(ValueError, match="axis"):
            add.reduce(x, axis)
    for method in (flipped.reduce, flipped.accumulate):
        with pytest.raises(ValueError, match="needs a function of two arguments"):
            method(x)


OUTS = ["?", "h", "L", "e", "f", "d", "D"]


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize(
    ("out", "char"), [(o, "BifD"[k % 4]) for k, o in enumerate(OUTS)] + [("d", "B")]
)
@pytest.mark.parametrize("dtype", [None, "B", "f"])
def test_folds_compute_in_the_dtype_that_out_and_array_have_in_common(
    device, char, out, dtype
):
    x = np.full((3, 200), 3, char)  # sums of uint8 would wrap
    for method, shape, inputs in (
        ("reduce", (3,), ()),
        ("accumulate", (3, 200), ()),
        ("reduceat", (3, 2), (np.array([0, 50]),)),
    ):
        expected = np.zeros(shape, out)
        there, got, *places = on(device, x, expected, *inputs)
        got = xdev.asarray(got, copy=True)
        keywords = {"axis": 1, "dtype": dtype}
        getattr(np.add, method)(x, *inputs, **keywords, out=expected)

        assert getattr(add, method)(there, *places, **keywords, out=got) is got
        same(got, expected)


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
def test_folds_of_the_cuda_target_take_outs_dtype():
    uploading = xdev.vectorize(identity=0, target="cuda")(lambda x, y: x + y)

    assert uploading.reduce(np.ones(1000, np.uint8), out=np.zeros(())) == 1000
    out = np.zeros((), np.int32)
    assert uploading.reduce(np.full(4, 2.5), out=out) is out
    assert out == 10


def test_a_typed_fold_needs_a_typing_for_out_as_numpys():
    typed = xdev.vectorize(["float32(float32, float32)"])(lambda x, y: x + y)
    x = np.ones(3, np.float32)

    assert typed.reduce(x, dtype="f", out=np.zeros(())) == 3
    with pytest.raises(TypeError, match="no signature takes"):
        typed.reduce(x, out=np.zeros(()))
