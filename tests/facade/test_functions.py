"""Everything that is not elementwise: NumPy's results, on every device."""

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import xdev

RNG = np.random.default_rng(1)
A = RNG.standard_normal((3, 4))
B = RNG.standard_normal((3, 4))
V = RNG.standard_normal(4)
I = RNG.integers(0, 9, (3, 4))
S = RNG.standard_normal((2, 3, 3)) + 3 * np.eye(3)
H = S @ S.transpose(0, 2, 1)
C = V + 1j * V[::-1]

# name, arguments, keywords, NumPy's way
CASES = [
    ("all", (A > 0,), {"axis": 1}, np.all),
    ("any", (A > 0,), {"axis": (0, 1), "keepdims": True}, np.any),
    ("argmax", (A,), {"axis": 1}, np.argmax),
    ("argmin", (A,), {"keepdims": True}, np.argmin),
    ("argsort", (I,), {"axis": 0}, lambda x, axis: np.argsort(x, axis, stable=True)),
    ("broadcast_to", (V, (3, 4)), {}, np.broadcast_to),
    ("concat", ([A, B],), {"axis": 1}, np.concatenate),
    ("concat", ([A, V],), {"axis": None}, np.concatenate),
    ("count_nonzero", (I,), {"axis": 1, "keepdims": True}, np.count_nonzero),
    ("cumulative_prod", (A,), {"axis": 0}, np.cumprod),
    ("cumulative_sum", (I,), {"axis": 1}, np.cumsum),
    ("diff", (A,), {"axis": 0, "n": 2}, np.diff),
    ("diff", (A,), {"prepend": B}, np.diff),
    ("expand_dims", (A, (0, 2)), {}, np.expand_dims),
    ("flip", (A,), {"axis": 1}, np.flip),
    ("isin", (I, I[0]), {"invert": True}, np.isin),
    ("matmul", (A, B.T), {}, np.matmul),
    ("matrix_transpose", (S,), {}, lambda x: x.transpose(0, 2, 1)),
    ("max", (A,), {"axis": (0, 1)}, np.max),
    ("max", (A,), {"axis": 0, "keepdims": True}, np.max),
    ("mean", (A,), {"axis": 1}, np.mean),
    ("min", (I,), {}, np.min),
    ("moveaxis", (S, 0, -1), {}, np.moveaxis),
    ("permute_dims", (S, (2, 0, 1)), {}, np.transpose),
    ("prod", (I,), {"dtype": "float32"}, np.prod),
    ("repeat", (A, 2), {"axis": 1}, np.repeat),
    ("repeat", (V, I[0]), {}, np.repeat),
    ("reshape", (A, (2, -1)), {}, np.reshape),
    ("reshape", (A, (12,)), {"copy": True}, np.reshape),
    ("roll", (A, (1, 2)), {"axis": (0, 1)}, np.roll),
    ("searchsorted", (np.sort(V), B), {"side": "right"}, np.searchsorted),
    ("sort", (A,), {"axis": 0}, np.sort),
    ("squeeze", (A[:, None], 1), {}, np.squeeze),
    ("stack", ([A, B],), {"axis": 1}, np.stack),
    ("std", (A,), {"axis": 0, "correction": 1}, np.std),
    ("sum", (I.astype(np.int8),), {"axis": 1}, np.sum),
    ("sum", (A,), {"dtype": "float32"}, np.sum),
    ("take", (A, I[0] % 3), {"axis": 0}, np.take),
    ("take_along_axis", (A, I % 4), {}, lambda x, i: np.take_along_axis(x, i, -1)),
    ("tensordot", (A, B), {"axes": ((0, 1), (0, 1))}, np.tensordot),
    ("tile", (A, (2, 1, 2)), {}, np.tile),
    ("tril", (A,), {"k": -1}, np.tril),
    ("triu", (A,), {"k": 1}, np.triu),
    ("var", (A,), {"keepdims": True}, np.var),
    ("vecdot", (A, V), {}, np.vecdot),
    ("where", (A > 0, A, B), {}, np.where),
    ("fft.fft", (C,), {"norm": "ortho"}, np.fft.fft),
    ("fft.ifft", (C,), {"n": 6}, np.fft.ifft),
    ("fft.fftn", (A + 0j,), {}, np.fft.fftn),
    ("fft.ifftn", (A + 0j,), {"axes": (0,)}, np.fft.ifftn),
    ("fft.rfft", (A,), {"axis": 0}, np.fft.rfft),
    ("fft.irfft", (C,), {}, np.fft.irfft),
    ("fft.rfftn", (A,), {}, np.fft.rfftn),
    ("fft.irfftn", (A + 0j,), {}, np.fft.irfftn),
    ("fft.hfft", (C,), {}, np.fft.hfft),
    ("fft.ihfft", (V,), {}, np.fft.ihfft),
    ("fft.fftshift", (A,), {"axes": 1}, np.fft.fftshift),
    ("fft.ifftshift", (A,), {}, np.fft.ifftshift),
    ("linalg.cholesky", (H,), {}, np.linalg.cholesky),
    ("linalg.cross", (A[:, :3], B[:, :3]), {}, np.linalg.cross),
    ("linalg.det", (S,), {}, np.linalg.det),
    ("linalg.diagonal", (S,), {"offset": 1}, np.linalg.diagonal),
    ("linalg.eigvalsh", (H,), {}, np.linalg.eigvalsh),
    ("linalg.inv", (S,), {}, np.linalg.inv),
    ("linalg.matrix_norm", (S,), {"ord": "nuc"}, np.linalg.matrix_norm),
    ("linalg.matrix_power", (S, 3), {}, np.linalg.matrix_power),
    ("linalg.matrix_rank", (S,), {}, np.linalg.matrix_rank),
    ("linalg.outer", (V, V), {}, np.linalg.outer),
    ("linalg.pinv", (A,), {}, np.linalg.pinv),
    ("linalg.solve", (S, S), {}, np.linalg.solve),
    ("linalg.svdvals", (A,), {}, np.linalg.svdvals),
    ("linalg.trace", (S,), {"offset": -1}, np.linalg.trace),
    ("linalg.vector_norm", (A,), {"axis": (0, 1), "ord": 1}, np.linalg.vector_norm),
]


def moved(value, device):
    if isinstance(value, np.ndarray):
        return xdev.asarray(value, device=device)
    return [moved(x, device) for x in value] if isinstance(value, list) else value


def host(x):
    return np.asarray(x) if isinstance(x, np.generic) else xdev.to_numpy(x)


def lookup(path):
    extension, _, name = path.rpartition(".")
    return getattr(getattr(xdev, extension) if extension else xdev, name)


@pytest.mark.parametrize(
    ("path", "args", "kw", "numpys"), CASES, ids=[case[0] for case in CASES]
)
def test_agrees_with_numpy(device, path, args, kw, numpys):
    copies = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
    wanted = np.asarray(numpys(*args, **kw))
    on_device = [moved(arg, device) for arg in args]

    result = lookup(path)(*on_device, **{k: moved(v, device) for k, v in kw.items()})

    assert xdev.device_of(result) == device
    assert host(result).dtype == wanted.dtype
    rtol = 1e-6 if wanted.dtype == np.float32 else 1e-9
    np.testing.assert_allclose(host(result), wanted, rtol=rtol, atol=1e-12)
    for arg, before in zip(on_device, copies, strict=True):
        if isinstance(before, np.ndarray):
            np.testing.assert_array_equal(host(arg), before)


def test_several_results(device):
    a, s, h, i = (xdev.asarray(x, device=device) for x in (A, S, H, I))

    q, r = xdev.linalg.qr(a)
    np.testing.assert_allclose(host(xdev.matmul(q, r)), A)
    u, values, vh = xdev.linalg.svd(a, full_matrices=False)
    np.testing.assert_allclose(host(u) * host(values) @ host(vh), A)
    sign, logarithm = xdev.linalg.slogdet(s)
    np.testing.assert_allclose(host(sign) * np.exp(host(logarithm)), np.linalg.det(S))
    values, vectors = xdev.linalg.eigh(h)
    np.testing.assert_allclose(H @ host(vectors), host(vectors) * host(values)[:, None])
    assert [host(x).tolist() for x in xdev.unstack(i)] == I.tolist()
    assert len(xdev.nonzero(i)) == 2
    assert [x.shape for x in xdev.broadcast_arrays(a, i)] == [(3, 4)] * 2
    assert [x.shape for x in xdev.meshgrid(a[0], a[0, :3], indexing="ij")] == [
        (4, 3)
    ] * 2


def test_eigenvalues_are_complex_also_where_all_are_real(device):
    x = xdev.asarray(np.diag([1.0, 2.0]).astype(np.float32), device=device)

    values, vectors = xdev.linalg.eig(x)

    assert values.dtype == vectors.dtype == xdev.complex64
    assert xdev.linalg.eigvals(x).dtype == xdev.complex64
    np.testing.assert_allclose(sorted(host(values).real), [1, 2])


def test_matrix_rank_refuses_vectors():
    with pytest.raises(np.linalg.LinAlgError):
        xdev.linalg.matrix_rank(V)


def test_sets_count_every_nan_apart(device):
    x = xdev.asarray([np.nan, 1.0, np.nan, 1.0], device=device)

    counts = xdev.unique_counts(x)

    assert counts.values.shape == (3,)
    assert sorted(host(counts.counts).tolist()) == [1, 1, 2]
    unique = xdev.unique_all(xdev.asarray(I, device=device))
    rebuilt = host(unique.values)[host(unique.inverse_indices)]
    np.testing.assert_array_equal(rebuilt, I)
    np.testing.assert_array_equal(I.ravel()[host(unique.indices)], host(unique.values))


small = hnp.arrays(np.int64, st.integers(0, 12), elements=st.integers(0, 4))


@given(small)
def test_descending_sort_is_stable(x):
    order = xdev.argsort(x, descending=True)

    assert order.tolist() == sorted(range(x.size), key=lambda i: -x[i])
    assert xdev.sort(x, descending=True).tolist() == sorted(x.tolist(), reverse=True)


def test_descending_sort_keeps_the_order_of_zeros(device):
    x = xdev.asarray([0.0, -0.0, 1.0, -0.0], device=device)

    order = host(xdev.argsort(x, descending=True))

    assert order.tolist() == [2, 0, 1, 3]


def test_cumulative_sum_with_its_start(device):
    x = xdev.asarray(I, device=device)

    result = host(xdev.cumulative_sum(x, axis=1, include_initial=True))

    np.testing.assert_array_equal(result[:, 0], 0)
    np.testing.assert_array_equal(result[:, 1:], np.cumsum(I, 1))


shapes = hnp.mutually_broadcastable_shapes(num_shapes=3, min_side=0)


@given(shapes)
def test_broadcast_shapes_agrees_with_numpy(drawn):
    assert xdev.broadcast_shapes(*drawn.input_shapes) == drawn.result_shape


def test_broadcast_shapes_with_unknown_sizes():
    assert xdev.broadcast_shapes((None, 3), (1,)) == (None, 3)
    assert xdev.broadcast_shapes((None,), (4,)) == (4,)
    assert xdev.broadcast_shapes() == ()
    with pytest.raises(ValueError, match="do not broadcast"):
        xdev.broadcast_shapes((2,), (3,))


@pytest.mark.parametrize("name", ["concat", "stack"])
def test_joining_nothing_is_refused(name):
    with pytest.raises(ValueError, match="at least one array"):
        getattr(xdev, name)([])


@pytest.mark.parametrize("path", ["sum", "max", "sort", "flip", "fft.fft"])
def test_serves_any_array_api_library(path):
    there = array_api_strict.Device("device2")
    x = array_api_strict.asarray([3.0, 1.0, 2.0], device=there)
    if path == "fft.fft":
        x = xdev.astype(x, xdev.complex128)

    result = lookup(path)(x)

    assert xdev.device_of(result) == "fake:1"
    np.testing.assert_allclose(
        xdev.to_numpy(result), lookup(path)(xdev.to_numpy(x)), atol=1e-12
    )


def test_reductions_of_numpy_arrays_refuse_wrong_axes():
    for name in ("sum", "max", "prod", "min"):
        with pytest.raises(np.exceptions.AxisError):
            getattr(xdev, name)(A, axis=2)
    with pytest.raises(ValueError, match="zero-size"):
        xdev.max(np.empty(0))
