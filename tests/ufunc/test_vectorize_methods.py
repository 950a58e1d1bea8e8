"""Calls and methods of ufuncs: dtypes x layouts as NumPy's, any device; refusals."""

from itertools import product

import numpy as np
import pytest
from running import add, called, same, there as on

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
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_folds_of_any_layout(device, layout, dtype):
    x, there = layout(values(dtype)), layout(*on(device, values(dtype)))
    for axis in (0, 1, -1, None, (0, 1)):
        same(add.reduce(there, axis), np.add.reduce(x, axis, dtype=dtype))
    for axis in (0, 1, -2):
        same(add.accumulate(there, axis), np.add.accumulate(x, axis, dtype=dtype))
        for indices in ([0], [0, 3, 1], [2, 2]) if min(x.shape) > 3 else ():
            expected = np.add.reduceat(x, indices, axis, dtype=dtype)
            found = add.reduceat(there, *on(device, np.asarray(indices)), axis)
            same(found, expected)
    for other in "LF":
        y = values(other, (5,), 1)
        same(add.outer(there, *on(device, y)), np.add.outer(x, y))


@pytest.mark.parametrize("dtype", ["i", "l", "f", "d"])
@pytest.mark.parametrize("count", [5, 900])
def test_at_counts_repeated_indices(device, dtype, count):
    x, where = values(dtype, (6,)), np.random.default_rng(0).integers(-6, 6, count)
    there, places, more = on(device, x, where, values(dtype, (count,), 1))

    add.at(there, places, more)
    add.at(there, places[:1], 2)
    flipped.at(there, places[1:3])

    np.add.at(x, where, values(dtype, (count,), 1))
    np.add.at(x, where[:1], 2)
    np.negative.at(x, where[1:3])
    same(there, x)


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


SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 3, 0), (2, 3, 4)]


@xdev.vectorize
def affine(x, y):
    """Return 3 x + y."""
    return 3 * x + y


def numbers(shape, dtype, seed=0):
    raw = np.random.default_rng(seed).uniform(0, 40, size=(2, *shape))
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return (raw[0] + 1j * raw[1]).astype(dtype)
    return raw[0].astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_equal_numpys_and_literals_are_weak(device, dtype):
    for shape in SHAPES:
        x, y = numbers(shape, dtype), numbers(shape, dtype, 1)
        same(called(device, add, x, y), np.add(x, y))
    x, y = numbers((9,), dtype), numbers((9,), dtype, 1)
    # float16 is computed in float32 and rounded once; NumPy rounds twice.
    wide = np.float32 if dtype == "e" else dtype
    expected = 3 * x.astype(wide) + y.astype(wide)
    expected = expected.astype(dtype) if dtype == "e" else expected
    same(called(device, affine, x, y), expected)


VIEWS = LAYOUTS | {
    "stepped": lambda x: x[::2, ::3],
    "column": lambda x: x[:, 1:2],
    "one value": lambda x: x[1:2, 1:2],
}


@pytest.mark.parametrize("one", VIEWS)
@pytest.mark.parametrize("dtype", ["f", "b", "D"])
def test_any_layouts_that_broadcast(device, one, dtype):
    x, y = numbers((12, 12), dtype), numbers((12, 12), dtype, 1)
    there = on(device, x, y)
    for other in VIEWS.values():
        args = VIEWS[one](there[0]), other(there[1])
        try:
            expected = np.add(VIEWS[one](x), other(y))
        except ValueError:
            with pytest.raises(ValueError, match="broadcast"):
                add(*args)
            continue
        same(add(*args), expected)
        (base,) = on(device, np.zeros((*expected.shape, 2), dtype))
        out = base[..., 1]
        assert add(*args, out=out) is out
        same(out, expected)
        assert not xdev.to_numpy(base[..., 0]).any()


def test_masks_and_outputs_that_overlap_inputs(device):
    buffer, mask = numbers((40,), "d"), np.random.default_rng(0).random(25) < 0.5
    for shift, where in product((-3, -1, 0, 1, 3), (True, mask)):
        there, chosen = on(device, buffer.copy(), where)
        x, out = slice(5, 30), slice(5 + shift, 30 + shift)
        expected = buffer.copy()

        add(there[x], there[x], out=there[out], where=chosen)

        np.add(buffer[x], buffer[x], out=expected[out], where=where)
        same(there, expected)


@pytest.mark.parametrize(("char", "name"), [("q", "int64"), ("Q", "uint64")])
def test_what_is_compiled_for_longlongs_is_for_all_of_their_size(char, name):
    ufunc = xdev.vectorize(identity=0)(lambda x, y: x + y)
    for x in (np.arange(6).astype(char), np.arange(6).astype(name)):
        for made in (ufunc(x, x), ufunc.reduce(x), ufunc.accumulate(x)):
            assert made.dtype.char == np.dtype(name).char  # as what is on disk has it


@pytest.mark.parametrize("order", "KCFA")
def test_orders_of_results_are_numpys(real_device, order):
    plain = numbers((3, 5), "f")
    for view in (lambda x: x, lambda x: x.T, lambda x: x.T[1:], lambda x: x[:, 1]):
        x, there = view(plain), view(*on(real_device, plain))
        expected = np.add(x, x, order=order)
        assert add(there, there, order=order).strides == expected.strides
    with pytest.raises(ValueError, match="order"):
        add(plain, plain, order="wrong")


ORDER = r"is not reorderable, .* one axis .*@vectorize\(identity=...\)"
START = "with where=, or of nothing, has no identity to start from: pass initial="


def minus(x, y):
    return x - y


REFUSED = [
    ((2, 3), {"axis": None}, ORDER),
    ((2, 3), {"axis": 0, "where": True}, START),
    ((0, 3), {"axis": None, "where": True}, ORDER),
    ((0,), {}, START),
    ((3, 0), {"axis": 1}, START),
]


@pytest.mark.parametrize(("shape", "keywords", "words"), REFUSED)
def test_a_refusal_tells_the_way_out_in_the_same_words(gpu, shape, keywords, words):
    for put in (lambda x: x, lambda x: xdev.asarray(x, device="fake"), gpu.array):
        x = np.ones(shape)
        if "where" in keywords:
            keywords = {**keywords, "where": put(x > 0)}
        with pytest.raises(ValueError, match=f"minus.reduce:? {words}"):
            xdev.vectorize(minus).reduce(put(x), **keywords)


def test_no_result_needs_no_identity(gpu):
    x, ufunc = np.ones((3, 0)), xdev.vectorize(minus)
    assert ufunc.reduce(x, 0).shape == np.subtract.reduce(x, 0).shape == (0,)
    assert ufunc.reduce(gpu.array(x), 0).shape == (0,)
