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
FLOATS = ["float32", "float64", "complex64", "complex128"]
FACTORS = ("linalg.eigh", "linalg.qr", "linalg.svd")
AXES = [0, 1, 2, -1, -2]


def called(path, *args, **options):
    return reduce(getattr, path.split("."), xdev)(*args, **options)


#: Whose functions of NumPy's have other arguments: our own of its arrays, as compared
#: with NumPy's in other files.
OURS = {"sort", "argsort", "linalg.pinv"}


def wanted_of(path, *args, **options):
    if path in OURS:
        return called(path, *args, **options)
    return reduce(getattr, path.split("."), np)(*args, **options)


def assert_same(path, device, *args, **options):
    """Compare with NumPy's function."""
    wanted = wanted_of(path, *args, **options)
    options = dict(zip(options, there(device, *options.values()), strict=True))
    found = called(path, *there(device, *args), **options)
    if not isinstance(wanted, tuple):
        found, wanted = [found], [wanted]
    elif hasattr(wanted, "_fields"):
        assert found._fields == wanted._fields
        if path in FACTORS:  # vectors have any sign
            found, wanted = (
                [abs(xdev.to_numpy(x)) for x in each] for each in (found, wanted)
            )
            device = "cpu"
    for x, y in zip(found, wanted, strict=True):
        assert xdev.device_of(x) == xdev.Device(device)
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        near = 1e-4 if y.dtype in (np.float32, np.complex64) else 1e-10
        np.testing.assert_allclose(xdev.to_numpy(x), y, rtol=near, atol=near)


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


@pytest.mark.parametrize("kind", ["float32", "int32", "float64"])
def test_sums_of_many(device, kind):
    x = (RNG.random((300, 4000)) * 9).astype(kind)
    there = xdev.asarray(x, device=device)
    for axis in (None, 0, 1, None):
        wanted = x.sum(axis, dtype=np.longdouble)
        found = xdev.to_numpy(xdev.sum(there, axis=axis))
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    np.testing.assert_array_equal(xdev.to_numpy(xdev.max(there, axis=0)), x.max(0))


@pytest.mark.parametrize("kind", KINDS.split())
def test_differences(device, kind):
    x = CUBE.astype(kind)
    for axis in AXES:
        for n in (0, 1, 2):
            assert_same("diff", device, x, axis=axis, n=n)
        assert_same("diff", device, x, axis=axis, prepend=x, append=x)
    assert_same("diff", device, x[..., :1])
    assert_same("diff", device, x[..., :0])
    for axis, n in ((-1, -1), (3, 1), (-4, 1)):
        with pytest.raises((ValueError, IndexError)):
            xdev.diff(xdev.asarray(x, device=device), axis=axis, n=n)
    with pytest.raises((ValueError, IndexError)):
        xdev.diff(xdev.asarray(1.0, device=device))


@pytest.mark.parametrize("kind", KINDS.split())
@pytest.mark.parametrize("offset", [-1, 0, 2, 9])
def test_diagonals(device, kind, offset):
    x = CUBE.astype(kind)
    assert_same("linalg.diagonal", device, x, offset=offset)
    assert_same("linalg.diagonal", device, x.transpose(1, 2, 0), offset=offset)
    if kind != "bool":
        assert_same("linalg.trace", device, x, offset=offset)
        assert_same("linalg.trace", device, x, offset=offset, dtype=xdev.complex128)


@pytest.mark.parametrize("kind", [kind for kind in KINDS.split() if kind != "bool"])
def test_dot_products_of_vectors(device, kind):
    x = CUBE.astype(kind)
    y = x[::-1] * x.dtype.type(1 + 1j if kind.startswith("c") else 1)
    for path in ("vecdot", "linalg.vecdot"):
        for axis in (-1, -2, -3):
            assert_same(path, device, x, y, axis=axis)
        assert_same(path, device, x, y[0, 0])
        assert_same(path, device, x[0, 0], y)
        assert_same(path, device, x[:1], y[:, :1])
        assert_same(path, device, x[0, 0], y[1, 1])
        assert_same(path, device, x[:, :, ::2], y[:, :, 1::2])
        assert_same(path, device, x[..., :0], y[..., :0])
        assert_same(path, device, x[:0], y[:0])
    assert_same("vecdot", device, CUBE.astype("int8"), y)


@pytest.mark.parametrize("kind", KINDS.split())
def test_outer_and_cross_products(device, kind):
    x = CUBE.astype(kind)
    assert_same("linalg.outer", device, x[0, 0], x[1, :, 1])
    assert_same("linalg.outer", device, x[0, 0, :0], x[1, :, 1])
    if kind not in ("bool", "uint8", "uint64"):
        assert_same("linalg.cross", device, x[:, :, :3], x[::-1, :, 1:])
        assert_same("linalg.cross", device, x[:, :, :3], x[0, 0, :3])
        assert_same("linalg.cross", device, x, x[::-1], axis=1)


MATRICES = RNG.standard_normal((2, 3, 4)) + 1j * RNG.standard_normal((2, 3, 4))
#: Of rank 1, so that the smallest singular values are rounding.
THIN = np.asarray([[1], [2], [3]]) * np.asarray([[[3, 1, 4, 1.5]], [[2, 7, 1, 8]]])


@pytest.mark.parametrize("kind", FLOATS)
def test_singular_values(device, kind):
    full = (MATRICES if kind.startswith("c") else MATRICES.real).astype(kind)
    thin = THIN.astype(kind)  # by default its rounding may count as more than 0
    for x in (full, full[0], thin, full.transpose(0, 2, 1)):
        assert_same("linalg.svdvals", device, x)
        for rtol in (0.5 if x is thin else None, 0.4, np.full(x.shape[:-2], 0.5)):
            assert_same("linalg.matrix_rank", device, x, rtol=rtol)
            assert_same("linalg.pinv", device, x, rtol=rtol)
    for ord in ("fro", "nuc", 1, 2, float("inf"), -1, -2, -float("inf")):  # noqa: A001
        for keepdims in (False, True):
            options = {"ord": ord, "keepdims": keepdims}
            assert_same("linalg.matrix_norm", device, full, **options)


@pytest.mark.parametrize("kind", ["bool", "uint8", "int32", "int64", "uint64"])
def test_singular_values_of_integers(device, kind):
    x = np.asarray([[[3, 1], [0, 2], [5, 0]], [[2, 2], [1, 1], [3, 3]]]).astype(kind)
    for path in ("linalg.matrix_rank", "linalg.pinv"):
        for each in (x, x[0], x[1]):
            assert_same(path, device, each, rtol=0.1)
        for each in (x[:1], x[0]):  # no singular value is rounding
            assert_same(path, device, each)


EMPTY = [(0, 3), (3, 0), (0, 0), (2, 0, 3), (2, 3, 0), (0, 2, 3), (0, 3, 0)]


@pytest.mark.parametrize("kind", ["int64", *FLOATS])
@pytest.mark.parametrize("shape", EMPTY)
def test_singular_values_of_empty_matrices(device, kind, shape):
    x = np.empty(shape, kind)
    for rtol in (None, 0.1):
        assert_same("linalg.matrix_rank", device, x, rtol=rtol)
        assert_same("linalg.pinv", device, x, rtol=rtol)


@pytest.mark.parametrize("kind", FLOATS)
def test_factors(device, kind):
    x = (MATRICES if kind.startswith("c") else MATRICES.real).astype(kind)[..., :3]
    square = (x.mT.conj() @ x + np.eye(3)).astype(kind)
    for path in ("linalg.eigh", "linalg.slogdet"):
        assert_same(path, device, square)
        assert_same(path, device, square[0])
    for full in (True, False):
        assert_same("linalg.svd", device, square, full_matrices=full)
    for mode in ("reduced", "complete"):
        assert_same("linalg.qr", device, square, mode=mode)
    for upper in (True, False):
        assert_same("linalg.cholesky", device, square, upper=upper)
        assert_same("linalg.cholesky", device, square[1], upper=upper)


@pytest.mark.parametrize("kind", [None, *KINDS.split()])
def test_creation(device, kind):
    options = {"dtype": kind, "device": device}
    ends = [(5,), (2, 9, 3), (9, 2, -3), (0,), (-2,), (3.5,), (1, 2, 0.25)]
    if kind == "bool":
        ends = []
    if kind in ("uint8", "uint64"):
        ends = [end for end in ends if min(end) >= 0]
    pairs = [(xdev.arange(*x, **options), np.arange(*x, dtype=kind)) for x in ends]
    for shape in (3, (), (2, 0), (2, 3)):
        like = xdev.empty(shape, dtype="float32", device=device)
        pairs += [
            (xdev.ones(shape, **options), np.ones(shape, kind)),
            (xdev.ones_like(like, dtype=kind), np.ones(shape, kind or "float32")),
        ]
    for rows, columns, k in ((3, None, 0), (2, 4, 1), (4, 2, -3), (0, 3, 0), (1, 1, 9)):
        wanted = np.eye(rows, columns, k, kind or "d")
        pairs.append((xdev.eye(rows, columns, k=k, **options), wanted))
    for found, wanted in pairs:
        assert xdev.device_of(found) == device
        same(found, wanted, 1e-6)


def test_eigenvalues_are_complex_also_where_all_are_real(device):
    (x,) = there(device, np.diag([1.0, 2.0]).astype(np.float32))
    values, vectors = xdev.linalg.eig(x)
    assert values.dtype == vectors.dtype == xdev.complex64
    assert xdev.linalg.eigvals(x).dtype == xdev.complex64
    np.testing.assert_allclose(sorted(xdev.to_numpy(values).real), [1, 2])


def test_descending_sort_keeps_the_order_of_zeros(device):
    (x,) = there(device, np.array([0.0, -0.0, 1.0, -0.0]))
    order = xdev.to_numpy(xdev.argsort(x, descending=True))
    assert order.tolist() == [2, 0, 1, 3]


def test_sets_count_every_nan_apart(device):
    x = xdev.asarray([np.nan, 1.0, np.nan, 1.0], device=device)

    counts = xdev.unique_counts(x)

    assert counts.values.shape == (3,)
    assert sorted(xdev.to_numpy(counts.counts).tolist()) == [1, 1, 2]
    unique = xdev.unique_all(xdev.asarray(CUBE[0], device=device))
    rebuilt = xdev.to_numpy(unique.values)[xdev.to_numpy(unique.inverse_indices)]
    np.testing.assert_array_equal(rebuilt, CUBE[0])
    np.testing.assert_array_equal(
        CUBE[0].ravel()[xdev.to_numpy(unique.indices)], xdev.to_numpy(unique.values)
    )


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
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "all", "any"])
def test_reductions_and_refusals(x, name):
    for axis in EVERY_AXIS:
        as_numpys(name, x, axis=axis)
        as_numpys(name, x, axis=axis, keepdims=True)


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
    with np.errstate(all="ignore"):
        try:
            wanted = getattr(np, name)(*args, **kwargs)
        except (ValueError, TypeError):
            with pytest.raises((ValueError, TypeError)):
                getattr(xdev, name)(*args, **kwargs)
        else:
            same(getattr(xdev, name)(*args, **kwargs), wanted)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, -2, 5])
def test_functions_along_an_axis(x, axis):
    calls = [
        *(("argmax", x), ("argmin", x), ("flip", x), ("roll", x, 2), ("repeat", x, 2)),
        *(("take", x, np.zeros(2, int)), ("cumulative_sum", x)),
        *(("cumulative_prod", x), ("concat", [x, x])),
    ]
    if axis is not None:
        calls += [("sort", x), ("stack", [x, x]), ("unstack", x), ("diff", x)]
        for args in ((axis, 0), (0, axis)):
            as_numpys("moveaxis", x, *args)
        as_numpys("argsort", x, axis=axis, stable=True)
        as_numpys("expand_dims", x, axis)
        as_numpys("squeeze", x, axis)
        as_numpys("diff", x, axis=axis, n=2)
    for name, *args in calls:
        as_numpys(name, *args, axis=axis)
    as_numpys("argmax", x, axis=axis, keepdims=True)
    as_numpys("argmin", x, axis=axis, keepdims=True)
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
    calls = xdev.concat, xdev.stack, lambda x: xdev.meshgrid(*x)
    calls = *calls, lambda x: xdev.broadcast_arrays(*x)
    for other in (np.full(3, None), np.zeros(3, "V8"), np.zeros(3)):
        many = ([freed, other], [other, freed], [freed, freed], [freed, other, other])
        for call, arrays in itertools.product(calls, many):
            with pytest.raises(xdev.UseAfterFreeError):
                call(arrays)
