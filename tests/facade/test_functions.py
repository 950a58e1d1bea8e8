"""Functions over data types, axes and stacks, on every device: what NumPy gives."""

import itertools
import operator
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp
from running import same, there

import xdev

RNG = np.random.default_rng(11)
CUBE = RNG.integers(0, 3, (2, 3, 4))
KINDS = "bool int8 uint8 int32 int64 uint64 float32 float64 complex64 complex128"
REALS = [kind for kind in KINDS.split() if kind not in ("complex64", "complex128")]
AXES = [0, 1, 2, -1, -2]


def called(path, *args, **options):
    return reduce(getattr, path.split("."), xdev)(*args, **options)


def assert_same(path, device, *args, **options):
    """Compare with NumPy's, or sorts, as compared in other files, of NumPy's arrays."""
    numpys = xdev if path in ("sort", "argsort") else np
    wanted = getattr(numpys, path)(*args, **options)
    options = dict(zip(options, there(device, *options.values()), strict=True))
    found = called(path, *there(device, *args), **options)
    for x in found if isinstance(found, tuple) else [found]:
        assert xdev.device_of(x) == xdev.Device(device)
    near = 1e-4 if args[0].dtype in (np.float32, np.complex64) else 1e-10
    same(found, wanted, near, near)


@pytest.mark.parametrize("kind", REALS)
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("descending", [False, True])
def test_sorting(device, kind, axis, descending):
    x = CUBE.astype(kind)
    for path in ("sort", "argsort"):
        assert_same(path, device, x, axis=axis, descending=descending)
    assert_same("sort", device, x[:0], axis=axis, descending=descending)
    for view in (x[:, ::2], x.transpose(2, 0, 1)):
        assert_same("argsort", device, view, axis=axis, descending=descending)
    there = xdev.asarray(x, device=device)
    xdev.sort(there, axis=axis, descending=descending)
    np.testing.assert_array_equal(xdev.to_numpy(there), x)


@pytest.mark.parametrize("kind", KINDS.split())
def test_counting(device, kind):
    x = CUBE.astype(kind)
    for axis in (None, *AXES, (0, 2), (0, 1, 2)):
        for keepdims in (False, True):
            assert_same("count_nonzero", device, x, axis=axis, keepdims=keepdims)
    assert_same("count_nonzero", device, x[:, :0], axis=1)
    assert_same("count_nonzero", device, x[1, 1, 1:2].reshape(()))
    assert_same("nonzero", device, x)
    assert_same("nonzero", device, x[:, 0].T)
    for axis in (None, 1):
        assert_same("repeat", device, x, 2, axis=axis)


@pytest.mark.parametrize("kind", [*KINDS.split(), "float16"])
def test_reductions(device, kind):
    x = CUBE.astype(kind)
    x[0, 0, 0] = np.nan if x.dtype.kind in "fc" else 1
    for name in ("all", "any", "max", "min", "prod", "sum"):
        for axis in (None, *AXES, (0, 2), (0, 1, 2)):
            for keepdims in (False, True, False):  # the last repeats the first
                assert_same(name, device, x, axis=axis, keepdims=keepdims)
        assert_same(name, device, x.transpose(2, 0, 1)[:, :, ::-2], axis=(0, 1))
        assert_same(name, device, x[1, 1, 1:2].reshape(()))
        none = xdev.asarray(x[:, :0], device=device)
        if name in ("max", "min"):
            with pytest.raises(ValueError, match="no identity"):
                called(name, none, axis=1)
        else:
            assert_same(name, device, x[:, :0], axis=1)
        for axis in (3, -4, (0, 0)):
            with pytest.raises(ValueError, match="axis"):
                called(name, xdev.asarray(x, device=device), axis=axis)


shapes = hnp.mutually_broadcastable_shapes(num_shapes=3, min_side=0)


@given(shapes)
def test_broadcast_shapes_agrees_with_numpy(drawn):
    assert xdev.broadcast_shapes(*drawn.input_shapes) == drawn.result_shape


SHAPES = [(), (0,), (1,), (5,), (3, 4), (4, 3), (1, 1), (2, 0, 3), (2, 3, 4)]
DTYPES = ["float64", "float32", "int8", "uint16", "int64", "complex64", "bool"]
EVERY_AXIS = [None, 0, 1, -1, -2, 2, 7, (0,), (0, 1), (-1, 0), ()]
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


def as_numpys(name, *args, **kwargs):
    own, numpys = (operator.attrgetter(name)(xp) for xp in (xdev, np))
    with np.errstate(all="ignore"):
        assert outcome(own, *args, **kwargs) == outcome(numpys, *args, **kwargs)


@pytest.fixture(params=itertools.product(SHAPES, DTYPES), ids=str)
def x(request):
    return array(*request.param)


@pytest.mark.filterwarnings("ignore:Mean of empty|Degrees of freedom|invalid value")
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_moments(shape, dtype):
    x = array(shape, dtype) + array(shape, dtype) / 3
    for axis, keepdims in itertools.product(EVERY_AXIS, (False, True)):
        same_numbers("mean", x, axis=axis, keepdims=keepdims)
        for correction in (0, 1, 2.5):
            more = {"correction": correction, "keepdims": keepdims}
            same_numbers("std", x, axis=axis, **more)
            same_numbers("var", x, axis=axis, **more)


def same_numbers(name, *args, **kwargs):
    """Compare as :func:`as_numpys`, where NaN equals NaN."""
    own, numpys = getattr(xdev, name), getattr(np, name)
    with np.errstate(all="ignore"):
        if outcome(numpys, *args, **kwargs) == "raises":
            assert outcome(own, *args, **kwargs) == "raises"
        else:
            same(own(*args, **kwargs), numpys(*args, **kwargs))


@pytest.mark.parametrize("axis", [None, 0, 1, -1, -2, 5])
def test_functions_along_an_axis(x, axis):
    calls = [
        *(("argmax", x), ("argmin", x), ("flip", x), ("roll", x, 2), ("repeat", x, 2)),
        *(("take", x, np.zeros(2, int)), ("cumulative_sum", x)),
        *(("cumulative_prod", x), ("concat", [x, x])),
    ]
    if axis is not None:
        calls += [("sort", x), ("stack", [x, x]), ("unstack", x), ("diff", x)]
        calls += [("expand_dims", x), ("squeeze", x)]
        as_numpys("moveaxis", x, axis, 0)
        as_numpys("argsort", x, axis=axis, stable=True)
        as_numpys("diff", x, axis=axis, n=2)
    for name, *args in calls:
        as_numpys(name, *args, axis=axis)
    as_numpys("argmax", x, axis=axis, keepdims=True)
    as_numpys("cumulative_sum", x, axis=axis, include_initial=True)


def test_functions_of_the_whole(x):
    as_numpys("nonzero", x)
    as_numpys("matrix_transpose", x)
    as_numpys("permute_dims", x, tuple(range(x.ndim))[::-1])
    as_numpys("reshape", x, (-1,))
    as_numpys("tile", x, (2, 1))
    as_numpys("broadcast_to", x, (2, *x.shape))
    as_numpys("broadcast_arrays", x, x)
    as_numpys("broadcast_arrays", x, np.ones(4))
    as_numpys("unique_counts", x)
    as_numpys("isin", x, x)
    as_numpys("isin", x, np.ones(1, x.dtype), invert=True)
    as_numpys("where", x != 0, x, x)
    as_numpys("astype", x, xdev.complex128)
    assert xdev.empty_like(x).strides == np.empty_like(x).strides
    as_numpys("zeros_like", x)
    as_numpys("full_like", x, 1)
    as_numpys("linalg.diagonal", x, offset=1)
    as_numpys("linalg.trace", x)
    assert xdev.count_nonzero(x).tolist() == np.count_nonzero(x)
    assert xdev.count_nonzero(x).dtype == np.intp


def test_products(x):
    for other in SHAPES:
        y = array(other, "int64")
        for axes in (0, 1, 2, -1):
            as_numpys("tensordot", x, y, axes=axes)
        as_numpys("matmul", x, y)
        as_numpys("vecdot", x, y)
        as_numpys("linalg.outer", x, y)
        as_numpys("meshgrid", x, y)
        as_numpys("meshgrid", x, y, x, indexing="ij")
    as_numpys("meshgrid", x)


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(device, name):
    for n, d, kind in itertools.product((1, 2, 7, 4096), (1.0, -0.3), ("f4", "f8")):
        wanted = getattr(np.fft, name)(n, d).astype(kind)
        dtype = {"f4": xdev.float32, "f8": None}[kind]
        found = getattr(xdev.fft, name)(n, d, dtype=dtype, device=device)
        np.testing.assert_array_equal(xdev.to_numpy(found), wanted, strict=True)


@pytest.mark.parametrize("kind", ["f4", "f8", "c8", "c16"])
def test_cholesky_factors(device, kind):
    m = RNG.random((60, 60)).astype(kind)
    m = m + 1j * m.T[::-1] if m.dtype.kind == "c" else m
    m = m @ m.conj().T + 60 * np.eye(60, dtype=kind)
    lower = np.linalg.cholesky(m)
    for x in m, np.asfortranarray(m), np.stack([m, m]), m[:0, :0]:
        half = lower[: x.shape[-1], : x.shape[-1]]
        for upper, wanted in (False, half), (True, half.conj().T):
            found = xdev.linalg.cholesky(*there(device, x), upper=upper)
            assert (found.dtype, found.shape) == (x.dtype, x.shape)
            near = 1e-5 if kind in ("f4", "c8") else 1e-13
            found = xdev.to_numpy(found)
            whole = np.broadcast_to(wanted, x.shape)
            np.testing.assert_allclose(found, whole, rtol=near, atol=near)
    for part, upper in (np.tril, False), (np.triu, True):  # what is read of it
        found, whole = (
            xdev.linalg.cholesky(*there(device, x), upper=upper) for x in (part(m), m)
        )
        np.testing.assert_array_equal(xdev.to_numpy(found), xdev.to_numpy(whole))
