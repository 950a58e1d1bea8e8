"""Everything that is not elementwise: NumPy's results, on every device."""

import numpy as np
import pytest
from hypothesis import given
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


def host(x):
    return np.asarray(x) if isinstance(x, np.generic) else xdev.to_numpy(x)


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


def test_sets_count_every_nan_apart(device):
    x = xdev.asarray([np.nan, 1.0, np.nan, 1.0], device=device)

    counts = xdev.unique_counts(x)

    assert counts.values.shape == (3,)
    assert sorted(host(counts.counts).tolist()) == [1, 1, 2]
    unique = xdev.unique_all(xdev.asarray(I, device=device))
    rebuilt = host(unique.values)[host(unique.inverse_indices)]
    np.testing.assert_array_equal(rebuilt, I)
    np.testing.assert_array_equal(I.ravel()[host(unique.indices)], host(unique.values))


def test_descending_sort_keeps_the_order_of_zeros(device):
    x = xdev.asarray([0.0, -0.0, 1.0, -0.0], device=device)

    order = host(xdev.argsort(x, descending=True))

    assert order.tolist() == [2, 0, 1, 3]


shapes = hnp.mutually_broadcastable_shapes(num_shapes=3, min_side=0)


@given(shapes)
def test_broadcast_shapes_agrees_with_numpy(drawn):
    assert xdev.broadcast_shapes(*drawn.input_shapes) == drawn.result_shape


@pytest.mark.parametrize("name", ["concat", "stack"])
def test_joining_nothing_is_refused(name):
    with pytest.raises(ValueError, match="at least one array"):
        getattr(xdev, name)([])
