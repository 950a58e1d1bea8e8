"""Generalized ufuncs: NumPy's own rules for core and loop dimensions, everywhere."""

import itertools
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from running import called, dot, pickled, same, sample, there, turned

import xdev


@xdev.guvectorize("(m,n),(n,p)->(m,p)")
def product(a, b, c):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = 0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@xdev.guvectorize("(n)->(n),()")
def running(x, sums, top):
    total, top[0] = x[0] - x[0], x[0]
    for i in range(x.shape[0]):
        total += x[i]
        sums[i] = total
        top[0] = max(top[0], x[i])


@xdev.guvectorize("(n),()->(n)")
def scaled(x, factor, out):
    for i in range(x.shape[0]):
        out[i] = factor * x[i]


@xdev.guvectorize("(n)->(3)")
def summary(x, out):
    out[0], out[1], out[2] = x[0], x[x.shape[0] - 1], x[x.shape[0] // 2]


@xdev.guvectorize(
    [
        "void(int64[:], int64[:], int64[:])",
        "void(float32[:], float32[::1], float32[:])",
        "(float64[:], float64[:], float64[:])",
    ],
    "(n),()->(n)",
)
def shifted(x, by, out):
    for i in range(x.shape[0]):
        out[i] = x[i] + by[0]


sample = partial(sample, low=-4, high=5)
DTYPES = ["bb", "HH", "dd", "il", "if", "fD", "lF", "?d"]
LOOPS = [
    *(((3,), (3,)), ((0,), (0,)), ((5, 1, 3), (4, 3)), ((2, 1, 4, 3), (3, 1, 3))),
    *(((0, 3), (3,)), ((130, 50, 2), (130, 50, 2))),
]


@pytest.mark.parametrize(("a", "b"), DTYPES)
def test_results_have_the_inputs_result_type(device, a, b):
    x, y = sample((6, 9), a), sample(9, b, 1)

    made = called(device, dot, x, y)

    same(made, (x * y).sum(-1, dtype=np.result_type(x, y)))
    for left, right in LOOPS if a == "d" else ():
        x, y = sample(left), sample(right, seed=1)
        assert_array_equal(called(device, dot, x, y), (x * y).sum(-1))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (0, 2, 1), (1, 2, 0)])
def test_core_arrays_have_any_strides(device, order):
    a, b = sample((6, 6, 6)).transpose(order)[:, ::2], sample((6, 6, 6), seed=1)[::-1]
    same(called(device, product, a, b), a @ b)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, -2, -1])
def test_an_axis_is_kept_where_numpy_has_it(device, keepdims, axis):
    x, options = sample((6, 6, 6), seed=1)[::-1], {"axis": axis, "keepdims": keepdims}
    expected = np.vecdot(x, x, **options)
    same(called(device, dot, x, x, **options), expected)
    (out,) = there(device, np.zeros_like(expected))
    called(device, dot, x, x, out=out, **options)
    same(out, expected)


def test_orders_of_results(device):
    x = xdev.asarray(np.arange(24.0).reshape(2, 3, 4), device=device)
    flags = dot(x, x, order="F").flags, dot(x, x, order="a").flags
    assert flags[0].f_contiguous
    assert flags[1].c_contiguous
    with pytest.raises(ValueError, match="order"):
        dot(x, x, order="Z")


def test_outputs_are_cast_and_new_ones_are_as_numpys():
    x = np.arange(6.0).reshape(2, 3)
    unaligned = np.zeros(25, "b")[1:].view("f8")
    for out in (np.zeros(3, "f4"), np.zeros(3, ">f8"), unaligned):
        assert shifted(x[0], 3.0, out=out) is out
        assert_array_equal(out, x[0] + 3)
        assert_array_equal(shifted(out, 2), x[0] + 5)
    inherited = dot(x.view(Inherited), x)
    assert type(inherited) is Inherited
    assert type(dot(x.view(Inherited), x, subok=False)) is np.ndarray
    assert type(dot(x[0], x[0])) is np.float64
    with (
        np.errstate(divide="raise"),
        pytest.raises(FloatingPointError, match="reciprocals"),
    ):
        xdev.guvectorize("(n)->(n)")(reciprocals)(np.zeros(3))


class Inherited(np.ndarray):
    pass


def reciprocals(x, out):
    out[:] = 1 / x


@xdev.guvectorize("(n)->(m)")
def facts(x, out):
    out[:] = 0.0
    out[0], out[1], out[2] = x.sum(), x.mean(), x[1:].std()
    out[3], out[4], out[5] = np.prod(x), x.var(), np.any(x) and np.all(x)


def test_reductions_of_arrays_that_compiled_code_has(device):
    x = np.array([[3.0, 1.0, 2.0], [2.0, 0.0, 7.0]])
    found = called(device, facts, *there(device, x, np.zeros((2, 7))))
    for row, one in zip(found, x, strict=True):
        expected = [one.sum(), one.mean(), one[1:].std(), one.prod(), one.var()]
        assert_allclose(row, [*expected, one.all(), 0], rtol=1e-12)


def test_numbers_and_layouts_without_or_with_fixed_core_dimensions(device):
    x, factors = sample((4, 7), "f"), np.arange(4, dtype="f")
    same(called(device, scaled, x, factors), x * factors[:, None])
    same(called(device, scaled, x, 0.5), x * np.float32(0.5))
    assert_array_equal(called(device, summary, x), x[:, [0, 6, 3]])


def test_out_is_written_in_place_and_returned_and_decides_the_dtype(device):
    x = sample((4, 6))
    given, whole = there(device, x, np.full((8, 6), 9.0))
    out = whole[::2]

    assert scaled(given, 2.0, out=out) is out
    assert scaled(given, 2.0, out) is out

    expected = np.full((8, 6), 9.0)
    expected[::2] = 2 * x
    same(whole, expected)
    x = sample((3, 5), "f")
    given, out = there(device, x, np.zeros(3))
    assert dot(given, given, out=out) is out
    assert_array_equal(xdev.to_numpy(out), (x * x).sum(-1))
    assert dot(given, given, dtype="float64").dtype == np.float64


SHAPES = [(), (1,), (2,), (1, 2), (2, 1)]
threaded = xdev.guvectorize("(n),(n)->()", target="parallel")(dot)


def test_out_has_any_shape_that_numpys_generalized_ufuncs_take(device):
    rng = np.random.default_rng(0)
    for one, two, shape in itertools.product(SHAPES, SHAPES, SHAPES):
        x, y = rng.random((*one, 3)), rng.random((*two, 3))
        expected = np.zeros(shape)
        out, dx, dy = there(device, expected.copy(), x, y)
        try:
            np.vecdot(x, y, out=expected)
        except ValueError:
            with pytest.raises(ValueError, match=r"out has shape|broadcast"):
                threaded(dx, dy, out=out)
            continue
        assert threaded(dx, dy, out=out) is out
        assert_allclose(xdev.to_numpy(out), expected, err_msg=f"{one} {two}")


# Outputs that are inputs: as if they were not.


@pytest.mark.parametrize("shape", [(5,), (3, 4), (40, 300)], ids=str)
@pytest.mark.parametrize("axis", [0, -1])
def test_an_out_may_be_an_input_itself(device, shape, axis):
    x = sample(shape)
    (given,) = there(device, x.copy())

    assert turned(given, out=given, axis=axis) is given

    same(given, np.flip(x, axis))


@pytest.mark.parametrize("target", [None, "parallel"])
def test_outs_may_be_views_of_inputs_or_meet_them(device, target):
    x = sample((300, 8))
    given, top, rows = there(device, x.copy(), np.empty(300), np.concatenate([x, x]))

    sums = xdev.guvectorize("(n)->(n),()", target=target)(running)
    sums(given, out=(given[::-1, ...], top[::-1]))

    same(given, x.cumsum(-1)[::-1])
    same(top, x.max(-1)[::-1])
    backwards = xdev.guvectorize("(n)->(n)", target=target)(turned)
    backwards(rows[::2, ...], out=rows[1::2, ...])  # which share nothing
    same(rows[1::2, ...], np.concatenate([x, x])[::2, ::-1])
    x = sample((2, 4, 4))
    (given,) = there(device, x.copy())
    product(given, given, out=given[...])
    same(given, x @ x)


# Keywords, signatures and targets.


@pytest.mark.parametrize(
    "target", ["cpu", "parallel", pytest.param("cuda", marks=pytest.mark.cuda)]
)
def test_targets_and_signatures_compute_the_same_for_the_host(target, request):
    if target == "cuda":
        request.getfixturevalue("cuda")
    made = xdev.guvectorize("(n),()->(n)", target=target)(scaled)
    x, out = sample((501, 20)), np.empty((501, 20))
    assert made(x, 3.0, out=out) is out
    same(out, 3 * x)
    with xdev.memory.peak("cpu") as peak:
        result = made(x, 3.0)
    assert peak.nbytes >= result.nbytes
    same(result, 3 * x)
    numba = pytest.importorskip("numba")
    of_numbas = [numba.void(numba.float64[:], numba.float64, numba.float64[:])]
    for signatures in (["(float64[:],f8,f8[::1])"], of_numbas):
        for guvectorize in (xdev.guvectorize, numba.guvectorize):
            made = guvectorize(signatures, "(n),()->(n)")(scaled.__wrapped__)
            assert made(np.arange(3), 2).tolist() == [0.0, 2.0, 4.0]
            assert made.types == ["dd->d"]
    for char in "?bilfd":  # signatures take what casts safely
        y = sample((2, 3), char)
        expected = y.astype(char if char in "fd" else "l") + y[:, :1]
        same(shifted(y, y[:, 0]), expected)


def test_it_tells_of_itself_and_pickles():
    assert (dot.nin, dot.nout, dot.nargs) == (2, 1, 3)
    assert dot.signature == "(n),(n)->()"
    assert dot.__doc__ == "Return the sum of products."
    assert shifted.types == ["ll->l", "ff->f", "dd->d"]
    assert shifted.ntypes == 3
    assert repr(dot) == "<xdev gufunc 'dot' (n),(n)->()>"
    remade = pickled(shifted)
    assert_array_equal(remade(np.arange(3.0), 1), [1, 2, 3])


# Assignments to whole arrays.


def centred(x, y, out):
    m = x.mean()
    out[...] = (x - m) / (2 + y[0]) - y[:]


def in_place(x, y, out):
    out[:] = 1.0
    out[:] += x * x.sum()
    out[:] = np.sqrt(abs(x) + np.maximum(out[0], 0.5)) * np.where(x > y, -x, y)
    out += y
    out /= 3 + abs(out[0])


@pytest.mark.parametrize("function", [centred, in_place])
@pytest.mark.parametrize(("dtype", "n"), [("float64", 1), ("int64", 5)])
def test_whole_arrays_of_one_shape(function, dtype, n, device):
    x, y = (np.random.default_rng(0).integers(-9, 9, (2, 3, n)) + 0.25).astype(dtype)
    expected = np.empty((3, n))
    for k in range(3):
        function(x[k], y[k], expected[k])

    (out,) = there(device, np.zeros((3, n)))
    called(device, xdev.guvectorize("(n),(n)->(n)")(function), x, y, out=out)

    assert_allclose(xdev.to_numpy(out), expected, rtol=1e-13)


@xdev.guvectorize("(m,n),(n),()->(m,n),(n)")
def shifted_rows(x, y, s, out, last):
    out[:, :] = x * y + s
    last[:] = y
    out[:] -= last


def test_whole_arrays_of_two_dimensions_and_of_the_last_alone(device):
    x, y = np.arange(12.0).reshape(2, 2, 3), np.array([1.0, 2.0, 3.0])
    found = called(device, shifted_rows, x, y, 0.5)
    same(found, (x * y + 0.5 - y, np.broadcast_to(y, (2, 3))))


def bound_anew(x, y, out):
    x = y
    out[:] = x


def added_parts(x, y, out):
    out[:] = x
    out += y[1:]


@pytest.mark.parametrize("function", [bound_anew, added_parts])
def test_whole_arrays_that_may_have_another_shape_are_refused(function, device):
    made = xdev.guvectorize("(n),(m)->(n)")(function)
    words = r"elements are assigned in a loop|one element is|iadd of an array"
    with pytest.raises(TypeError, match=words):
        called(device, made, np.ones(3), np.ones(2))
