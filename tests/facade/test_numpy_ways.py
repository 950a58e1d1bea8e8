"""The facade's own quick ways for NumPy arrays give what NumPy's functions give.

NumPy computes the expected result, errors included, from the same call.
"""

import itertools
import operator

import numpy as np
import pytest

import xdev
from xdev.errors import UseAfterFreeError

SHAPES = [(), (0,), (1,), (5,), (3, 4), (4, 3), (1, 1), (2, 0, 3), (2, 3, 4)]
DTYPES = ["float64", "float32", "int8", "uint16", "int64", "complex64", "bool"]
AXES = [None, 0, 1, -1, -2, 2, 7, (0,), (0, 1), (-1, 0), ()]
RANDOM = np.random.default_rng(0)


def array(shape, dtype):
    """Return values with repetitions, some zero, not contiguous where it can be."""
    values = RANDOM.integers(0, 4, (*shape[:-1], 2 * shape[-1]) if shape else ())
    x = np.asarray(values).astype(dtype)
    if dtype == "complex64":
        x = x * np.complex64(1 - 2j)
    return x[..., ::2] if shape else x


def outcome(call, *args, **kwargs):
    """Return what a call gives, in comparable form, or that it raises."""
    try:
        return described(call(*args, **kwargs))
    except (ValueError, TypeError, IndexError):
        return "raises"


def described(result):
    if isinstance(result, tuple | list):
        return [described(each) for each in result]
    assert hasattr(result, "dtype"), "an array, or NumPy's scalar"
    return str(result.dtype), result.shape, np.asarray(result).tolist()


def same(name, *args, **kwargs):
    own, numpys = (operator.attrgetter(name)(xp) for xp in (xdev, np))
    with np.errstate(all="ignore"):
        assert outcome(own, *args, **kwargs) == outcome(numpys, *args, **kwargs)


@pytest.fixture(params=itertools.product(SHAPES, DTYPES), ids=str)
def x(request):
    return array(*request.param)


@pytest.mark.filterwarnings("ignore:Mean of empty|Degrees of freedom|invalid value")
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "all", "any"])
def test_reductions(x, name):
    for axis in AXES:
        same(name, x, axis=axis)
        same(name, x, axis=axis, keepdims=True)


@pytest.mark.filterwarnings("ignore:Mean of empty|Degrees of freedom|invalid value")
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_moments(shape, dtype):
    x = array(shape, dtype) + array(shape, dtype) / 3
    for axis, keepdims in itertools.product(AXES, (False, True)):
        same_numbers("mean", x, axis=axis, keepdims=keepdims)
        for correction in (0, 1, 2.5):
            more = {"correction": correction, "keepdims": keepdims}
            same_numbers("std", x, axis=axis, **more)
            same_numbers("var", x, axis=axis, **more)


def same_numbers(name, *args, **kwargs):
    """Compare as :func:`same`, where NaN equals NaN."""
    with np.errstate(all="ignore"):
        try:
            wanted = getattr(np, name)(*args, **kwargs)
        except (ValueError, TypeError):
            with pytest.raises((ValueError, TypeError)):
                getattr(xdev, name)(*args, **kwargs)
            return
        got = getattr(xdev, name)(*args, **kwargs)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, -2, 5])
def test_functions_along_an_axis(x, axis):
    for name in ("argmax", "argmin"):
        same(name, x, axis=axis)
        same(name, x, axis=axis, keepdims=True)
    same("flip", x, axis=axis)
    same("roll", x, 2, axis=axis)
    same("repeat", x, 2, axis=axis)
    same("take", x, np.zeros(2, int), axis=axis)
    same("cumulative_sum", x, axis=axis)
    same("cumulative_sum", x, axis=axis, include_initial=True)
    same("cumulative_prod", x, axis=axis)
    same("concat", [x, x], axis=axis)
    if axis is not None:
        same("sort", x, axis=axis)
        same("argsort", x, axis=axis, stable=True)
        same("expand_dims", x, axis)
        same("squeeze", x, axis)
        same("moveaxis", x, axis, 0)
        same("moveaxis", x, 0, axis)
        same("stack", [x, x], axis=axis)
        same("unstack", x, axis=axis)
        same("diff", x, axis=axis)
        same("diff", x, axis=axis, n=2)


def test_functions_of_the_whole(x):
    same("nonzero", x)
    same("matrix_transpose", x)
    same("permute_dims", x, tuple(range(x.ndim))[::-1])
    same("reshape", x, (-1,))
    same("tile", x, (2, 1))
    same("broadcast_to", x, (2, *x.shape))
    same("broadcast_arrays", x, x)
    same("broadcast_arrays", x, np.ones(4))
    same("unique_counts", x)
    same("isin", x, x)
    same("isin", x, np.ones(1, x.dtype), invert=True)
    same("where", x != 0, x, x)
    same("astype", x, xdev.complex128)
    assert xdev.empty_like(x).strides == np.empty_like(x).strides
    same("zeros_like", x)
    same("full_like", x, 1)
    same("linalg.diagonal", x, offset=1)
    same("linalg.trace", x)
    assert xdev.count_nonzero(x).tolist() == np.count_nonzero(x)
    assert xdev.count_nonzero(x).dtype == np.intp


def test_products(x):
    for other in SHAPES:
        y = array(other, "int64")
        for axes in (0, 1, 2, -1):
            same("tensordot", x, y, axes=axes)
        same("matmul", x, y)
        same("vecdot", x, y)
        same("linalg.outer", x, y)
        same("meshgrid", x, y)
        same("meshgrid", x, y, x, indexing="ij")
    same("meshgrid", x)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 1001])
def test_frequencies(n):
    for name in ("fftfreq", "rfftfreq"):
        own, numpys = getattr(xdev.fft, name), getattr(np.fft, name)
        np.testing.assert_array_equal(own(n, d=0.3, device="cpu"), numpys(n, 0.3))


@pytest.mark.parametrize(
    ("shapes", "wanted"),
    [
        ([(None,), (1,)], (None,)),
        ([(None,), (5,)], (5,)),
        ([(1,), (None,)], (None,)),
        ([(3, None), (None, 4)], (3, 4)),
        ([(None, 2), (7, 1, 1)], (7, None, 2)),
    ],
)
def test_broadcast_shapes_with_unknown_sizes(shapes, wanted):
    assert xdev.broadcast_shapes(*shapes) == wanted


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
@pytest.mark.parametrize("whole", [1, np.int8(5), np.asarray(6)])
def test_a_length_of_a_transform_is_any_whole_number(device, name, whole):
    made = xdev.to_numpy(getattr(xdev.fft, name)(whole, device=device))
    np.testing.assert_allclose(made, getattr(np.fft, name)(int(whole)), rtol=1e-15)
    with pytest.raises(TypeError, match=rf"xdev\.fft\.{name}: d is .*FakeArray"):
        getattr(xdev.fft, name)(4, d=xdev.ones(2, device="fake"), device="cpu")


@pytest.mark.parametrize("dtype", ["?", "b", "H", "i", "q", "f", "d"])
@pytest.mark.parametrize("shape", [(3, 2), (2, 2), (2, 3, 4)])
def test_pseudoinverses_are_numpys_also_of_integers(device, dtype, shape):
    x = np.random.default_rng(1).integers(0, 2, shape).astype(dtype)
    kind = np.float32 if dtype == "f" else np.float64
    wanted = np.linalg.pinv(x.astype(kind), rtol=max(shape[-2:]) * np.finfo(kind).eps)

    made = xdev.to_numpy(xdev.linalg.pinv(xdev.asarray(x, device=device)))
    near = 0 if device != "cuda" else 1e-5 if kind is np.float32 else 1e-12
    np.testing.assert_allclose(made, wanted, rtol=near, atol=near, strict=True)


def test_a_freed_array_is_refused_beside_objects_too():
    freed = xdev.zeros(100_000, device="cpu")
    xdev.memory.free(freed)
    for other in (np.full(3, None), np.zeros(3, "V8"), np.zeros(3)):
        many = ([freed, other], [other, freed], [freed, freed], [freed, other, other])
        for arrays in many:
            for join in (xdev.concat, xdev.stack):
                with pytest.raises(UseAfterFreeError):
                    join(arrays)
            for call in (xdev.meshgrid, xdev.broadcast_arrays):
                with pytest.raises(UseAfterFreeError):
                    call(*arrays)
