"""reduce, accumulate, reduceat, outer, at: dtypes x layouts as NumPy's, any device."""

import numpy as np
import pytest
from running import add

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


@xdev.vectorize
def flipped(x):
    return -x


def values(dtype, shape=(8, 9), seed=0):
    """Small whole numbers: their sums are exact in every dtype, in any order."""
    raw = np.random.default_rng(seed).integers(0, 3, (2, *shape))
    return (raw[0] + 1j * raw[1] if np.dtype(dtype).kind == "c" else raw[0]).astype(
        dtype
    )


def on(device, x):
    return xdev.asarray(x, device=device)


def same(result, expected):
    result, expected = np.asarray(xdev.to_numpy(result)), np.asarray(expected)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reduce(device, dtype):
    for view in LAYOUTS.values():
        x, there = view(values(dtype)), view(on(device, values(dtype)))

        for axis in (0, 1, -1, None, (0, 1)):
            same(add.reduce(there, axis), np.add.reduce(x, axis, dtype=dtype))


@pytest.mark.parametrize("dtype", ["b", "L", "e", "f", "d", "D"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_accumulate(device, dtype, layout):
    view = LAYOUTS[layout]
    x, there = view(values(dtype)), view(on(device, values(dtype)))

    for axis in (0, 1, -2):
        same(add.accumulate(there, axis), np.add.accumulate(x, axis, dtype=dtype))


@pytest.mark.parametrize("dtype", ["b", "f", "D"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("indices", [[0], [0, 3, 1], [2, 2, 5], [7, 0]])
def test_reduceat(device, dtype, axis, indices):
    result = add.reduceat(
        on(device, values(dtype)), on(device, np.asarray(indices)), axis
    )

    same(result, np.add.reduceat(values(dtype), indices, axis, dtype=dtype))


@pytest.mark.parametrize("one", DTYPES)
@pytest.mark.parametrize("other", ["L", "F"])
def test_outer_of_any_dtypes(device, one, other):
    x, y = values(one, (3, 4)), values(other, (5,), 1)

    same(add.outer(on(device, x), on(device, y)), np.add.outer(x, y))


@pytest.mark.parametrize("dtype", ["i", "l", "f", "d"])
def test_at_counts_repeated_indices(device, dtype):
    x, there = values(dtype, (6,)), on(device, values(dtype, (6,)))
    where = np.asarray([0, 0, 5, 0, 2])

    add.at(there, on(device, where), on(device, values(dtype, (5,), 1)))

    np.add.at(x, where, values(dtype, (5,), 1))
    same(there, x)


def test_at_of_one_argument_and_of_a_number(device):
    there = on(device, np.arange(5.0))

    flipped.at(there, on(device, np.asarray([1, 3])))
    add.at(there, on(device, np.asarray([0])), 2)

    same(there, np.asarray([2.0, -1, 2, -3, 4]))


def test_reduce_into_out_with_dims_and_initial(device):
    x, out = on(device, values("f")), on(device, np.zeros((8, 1), "f"))

    result = add.reduce(x, 1, out=out, keepdims=True, initial=10)

    assert result is out
    same(out, 10 + values("f").sum(axis=1, keepdims=True, dtype="f"))


def test_methods_take_numpys_order_by_place(device):
    x, out = values("f"), on(device, np.zeros((8, 1), "d"))
    there, mask = on(device, x), on(device, x > 0)

    assert add.reduce(there, 1, "d", out, True, 10, mask) is out
    same(out, np.add.reduce(x, 1, "d", None, True, 10, x > 0))
    same(add.accumulate(there, 1, "d"), np.add.accumulate(x, 1, "d"))
    same(add.reduceat(there, [0, 2], 1, "d"), np.add.reduceat(x, [0, 2], 1, "d"))


def test_reduce_in_another_dtype(device):
    same(add.reduce(on(device, values("b")), dtype="d"), values("b").sum(0, dtype="d"))


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_is_not_there(device, axis):
    with pytest.raises(ValueError, match="axis"):
        add.reduce(on(device, values("d")), axis)


@pytest.mark.parametrize("method", ["reduce", "accumulate"])
def test_methods_are_of_functions_of_two(device, method):
    with pytest.raises(ValueError, match="needs a function of two arguments"):
        getattr(flipped, method)(on(device, values("d")))


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
    there = on(device, x)

    for method, shape, inputs in (
        ("reduce", (3,), ()),
        ("accumulate", (3, 200), ()),
        ("reduceat", (3, 2), ([0, 50],)),
    ):
        expected, got = np.zeros(shape, out), on(device, np.zeros(shape, out))
        places = tuple(on(device, np.asarray(i)) for i in inputs)
        keywords = {"axis": 1, "dtype": dtype}
        getattr(np.add, method)(x, *inputs, **keywords, out=expected)
        result = getattr(add, method)(there, *places, **keywords, out=got)

        assert result is got
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
