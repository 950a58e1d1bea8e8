"""Generalized ufuncs: NumPy's own rules for core and loop dimensions, everywhere."""

import itertools
import math
import pickle

import numpy as np
import pytest

import xdev


@xdev.guvectorize("(n),(n)->()")
def dot(x, y, out):
    """Return the sum of products."""
    out[0] = 0
    for i in range(x.shape[0]):
        out[0] += x[i] * y[i]


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


@xdev.guvectorize("(),()->()")
def hypotenuse(x, y, out):
    out[0] = math.sqrt(x * x + y * y)


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


def sample(shape, char="d", seed=0):
    x = np.random.default_rng(seed).integers(-4, 5, shape).astype(char)
    return x + x * 1j if np.dtype(char).kind == "c" else x


def there(device, *arrays):
    return [xdev.asarray(x, device=device) for x in arrays]


@pytest.mark.parametrize("char", "bHlfdD")
def test_results_have_the_inputs_result_type(device, char):
    x, y = sample((6, 9), char), sample((6, 9), char, 1)
    dx, dy = there(device, x, y)

    made = dot(dx, dy)

    assert made.dtype == x.dtype
    np.testing.assert_array_equal(xdev.to_numpy(made), (x * y).sum(-1, dtype=char))


@pytest.mark.parametrize(("a", "b"), ["il", "fd", "if", "fD", "lF", "?d"])
def test_mixed_dtypes_promote(device, a, b):
    x, y = sample((4, 5), a), sample(5, b, 1)
    dx, dy = there(device, x, y)

    made = dot(dx, dy)

    assert made.dtype == np.result_type(x, y)
    np.testing.assert_array_equal(xdev.to_numpy(made), (x * y).sum(-1))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3,), (3,)),
        ((0,), (0,)),
        ((5, 3), (3,)),
        ((5, 1, 3), (4, 3)),
        ((0, 3), (3,)),
        ((2, 1, 4, 3), (3, 1, 3)),
        ((1, 7), (6, 1, 7)),
        ((130, 50, 2), (130, 50, 2)),
    ],
    ids=str,
)
def test_loop_dimensions_broadcast(device, left, right):
    x, y = sample(left), sample(right, seed=1)
    dx, dy = there(device, x, y)

    made = dot(dx, dy)

    np.testing.assert_array_equal(xdev.to_numpy(made), (x * y).sum(-1))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (0, 2, 1), (1, 2, 0)])
def test_core_arrays_have_any_strides(device, order):
    a, b = sample((6, 6, 6)), sample((6, 6, 6), seed=1)
    da, db = there(device, a, b)

    made = product(xdev.permute_dims(da, order)[:, ::2], db[::-1])

    expected = a.transpose(order)[:, ::2] @ b[::-1]
    np.testing.assert_array_equal(xdev.to_numpy(made), expected)


def test_several_outputs(device):
    x = sample((4, 7))
    (given,) = there(device, x)

    sums, top = running(given)

    np.testing.assert_array_equal(xdev.to_numpy(sums), x.cumsum(-1))
    np.testing.assert_array_equal(xdev.to_numpy(top), x.max(-1))


def test_inputs_without_core_dimensions_are_numbers(device):
    x = sample((4, 7), "f")
    given, factors = there(device, x, np.arange(4, dtype="f"))

    np.testing.assert_array_equal(
        xdev.to_numpy(scaled(given, factors)), x * np.arange(4, dtype="f")[:, None]
    )
    made = scaled(given, 0.5)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(xdev.to_numpy(made), x * np.float32(0.5))


def test_without_core_dimensions_it_is_a_ufunc(device):
    x, y = sample((5, 1)), sample((1, 6), seed=1)
    dx, dy = there(device, x, y)

    np.testing.assert_allclose(xdev.to_numpy(hypotenuse(dx, dy)), np.hypot(x, y))


def test_a_fixed_core_dimension(device):
    x = sample((5, 8))
    (given,) = there(device, x)

    np.testing.assert_array_equal(xdev.to_numpy(summary(given)), x[:, [0, 7, 4]])


def test_out_is_written_in_place_and_returned(device):
    x = sample((4, 6))
    given, whole = there(device, x, np.full((8, 6), 9.0))
    out = whole[::2]

    assert scaled(given, 2.0, out=out) is out
    assert scaled(given, 2.0, out) is out

    expected = np.full((8, 6), 9.0)
    expected[::2] = 2 * x
    np.testing.assert_array_equal(xdev.to_numpy(whole), expected)


def test_some_outputs_are_given(device):
    x = sample((3, 5))
    given, top = there(device, x, np.zeros(3))

    sums, made = running(given, out=(None, top))

    assert made is top
    np.testing.assert_array_equal(xdev.to_numpy(top), x.max(-1))
    np.testing.assert_array_equal(xdev.to_numpy(sums), x.cumsum(-1))


def test_outs_dtype_decides_without_signatures(device):
    x = sample((3, 5), "f")
    given, out = there(device, x, np.zeros(3))

    assert dot(given, given, out=out) is out
    np.testing.assert_array_equal(xdev.to_numpy(out), (x * x).sum(-1))
    assert dot(given, given, dtype="float64").dtype == np.float64


def test_an_out_that_overlaps_an_input_is_as_if_it_did_not(device):
    x = sample(12)
    (given,) = there(device, x.copy())

    running(given, out=(given[::-1], None))

    np.testing.assert_array_equal(xdev.to_numpy(given), x.cumsum()[::-1])


@pytest.mark.parametrize(
    "keywords",
    [
        {"axis": 0},
        {"axis": -2, "keepdims": True},
        {"keepdims": True},
        {"axes": [(0,), (1,)]},
        {"axes": [0, -1, ()]},
    ],
    ids=str,
)
def test_axes_are_numpys(device, keywords):
    x, y = sample((4, 4, 4)), sample((4, 4, 4), seed=1)
    dx, dy = there(device, x, y)

    made = dot(dx, dy, **keywords)

    expected = np.vecdot(x, y, **keywords)
    assert made.shape == expected.shape
    np.testing.assert_array_equal(xdev.to_numpy(made), expected)


def test_axes_of_an_output(device):
    a, b = sample((3, 4, 5)), sample((5, 6), seed=1)
    da, db = there(device, a, b)
    axes = [(-2, -1), (-2, -1), (0, 1)]

    made = product(da, db, axes=axes)

    np.testing.assert_array_equal(xdev.to_numpy(made), np.matmul(a, b, axes=axes))


@pytest.mark.parametrize("char", "?bilfd")
def test_signatures_take_what_casts_safely(device, char):
    x = sample((2, 3), char)
    (given,) = there(device, x)

    made = shifted(given, given[:, 0])

    assert made.dtype == np.result_type(x, {"f": "f", "d": "d"}.get(char, "l"))
    np.testing.assert_array_equal(xdev.to_numpy(made), x.astype(made.dtype) + x[:, :1])


@pytest.mark.parametrize("text", ["f8[:], f8, f8[:]", "(float64[:],f8,f8[::1])"])
def test_signatures_without_void_or_parentheses_are_numbas(text):
    numba = pytest.importorskip("numba")

    made = [
        f([text], "(n),()->(n)")(scaled_by)
        for f in (xdev.guvectorize, numba.guvectorize)
    ]

    for vectorized in made:
        assert vectorized(np.arange(3), 2).tolist() == [0.0, 2.0, 4.0]


def scaled_by(x, factor, out):
    for i in range(x.shape[0]):
        out[i] = factor * x[i]


def test_signatures_are_numbas():
    numba = pytest.importorskip("numba")
    f = numba.float64

    @xdev.guvectorize([(f[:], f, f[:]), numba.void(f[:], f, f[:])], "(n),()->(n)")
    def plus(x, y, out):
        for i in range(x.shape[0]):
            out[i] = x[i] + y

    assert plus.types == ["dd->d", "dd->d"]
    np.testing.assert_array_equal(plus(np.arange(3), 1), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("target", ["cpu", "parallel", None])
def test_targets_of_the_host_compute_the_same(target):
    made = xdev.guvectorize("(n),()->(n)", target=target)(scaled)
    x, out = sample((501, 20)), np.empty((501, 20))

    assert made(x, 3.0, out=out) is out

    np.testing.assert_array_equal(out, 3 * x)
    np.testing.assert_array_equal(made(x, 3.0), 3 * x)


def test_threads_leave_overlap_and_broadcasting_alone():
    made = xdev.guvectorize("(n)->(n),()", target="parallel")(running)
    x = sample((300, 8))
    expected = x.cumsum(-1)[::-1], x.max(-1)[::-1]
    top = np.empty(300)

    made(x, out=(x[::-1], top[::-1]))

    np.testing.assert_array_equal(x, expected[0])
    np.testing.assert_array_equal(top, expected[1])


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
def test_the_cuda_target_uploads_and_downloads():
    made = xdev.guvectorize("(n),()->(n)", target="cuda")(scaled)
    x = sample((30, 8))

    result = made(x, 3.0)

    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, 3 * x)


def test_large_results_come_from_the_pool():
    x = sample((300, 300))
    with xdev.memory.peak("cpu") as peak:
        made = scaled(x, 2.0)

    assert peak.nbytes >= made.nbytes
    np.testing.assert_array_equal(made, 2 * x)


def test_it_tells_of_itself():
    assert (dot.nin, dot.nout, dot.nargs) == (2, 1, 3)
    assert dot.signature == "(n),(n)->()"
    assert dot.__doc__ == "Return the sum of products."
    assert shifted.types == ["ll->l", "ff->f", "dd->d"]
    assert shifted.ntypes == 3
    assert repr(dot) == "<xdev gufunc 'dot' (n),(n)->()>"


def test_it_pickles():
    remade = pickle.loads(pickle.dumps(shifted))  # noqa: S301

    np.testing.assert_array_equal(remade(np.arange(3.0), 1), [1, 2, 3])


SHAPES = [(), (1,), (2,), (1, 1), (1, 2), (2, 1), (2, 2)]


@xdev.guvectorize("(n),(n)->()", target="parallel")
def inner_product(x, y, out):
    out[0] = 0
    for k in range(x.shape[0]):
        out[0] += x[k] * y[k]


def test_out_has_any_shape_that_numpys_generalized_ufuncs_take(device):
    rng = np.random.default_rng(0)
    for one, two, shape in itertools.product(SHAPES, SHAPES, SHAPES):
        x, y = rng.random((*one, 3)), rng.random((*two, 3))
        expected = np.zeros(shape)
        out, dx, dy = (xdev.asarray(each, device=device) for each in (expected, x, y))
        out = xdev.asarray(out, copy=True)
        try:
            np.vecdot(x, y, out=expected)
        except ValueError:
            with pytest.raises(ValueError, match=r"out has shape|broadcast"):
                inner_product(dx, dy, out=out)
            continue
        assert inner_product(dx, dy, out=out) is out
        np.testing.assert_allclose(xdev.to_numpy(out), expected, err_msg=f"{one} {two}")
