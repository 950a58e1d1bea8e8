"""``@vectorize``, ``@guvectorize``, ``@kernel`` and functions over collections."""

import numpy as np
import pytest
from running import add, dot

import xdev
from xdev import distributed

da = pytest.importorskip("dask.array")
X = np.random.default_rng(3).random((4, 6)).astype(np.float32)
V = np.arange(6.0)


@xdev.vectorize
def wave(x, y=2.0):
    return x * y + 1


halves = xdev.vectorize(lambda x: (x / 2, x > 0.5))


@xdev.guvectorize("(n)->(n),()")
def running(x, sums, total):
    total[0] = 0
    for i in range(x.shape[0]):
        total[0] += x[i]
        sums[i] = total[0]


@xdev.kernel
def mixed(i, j, x, y, out):
    out[i, j] = 2 * x[i, j] + y[j]


def both(call, lazy, device):
    x, v = xdev.asarray(X, device=device), xdev.asarray(V, device=device)
    made, plain = call(xdev.asarray(x, chunks=(2, 3)), v), call(x, v)
    assert isinstance(made, da.Array)
    assert (made.dtype, made.shape) == (plain.dtype, plain.shape)
    assert type(made._meta) is type(plain)
    return lazy.values(made), xdev.to_numpy(plain)


ELEMENTWISE = {
    "one": lambda x, _: wave(x),
    "a plain array": wave,
    "plain first": lambda x, v: wave(v, x),
    "dtype=": lambda x, _: wave(x, dtype=np.float64),
    "broadcast": lambda x, _: wave(x[:, :1], x[0]),
    "second of two": lambda x, _: halves(x)[1],
    "outer": lambda x, _: add.outer(x[0], x[:, 0]),
    "outer, a number first": lambda x, _: xdev.subtract.outer(2, x),
    "outer of the facade's": lambda x, _: xdev.subtract.outer(x[0], x[:, 0]),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_ufunc_of_collections_has_the_bits_of_plain_ones(lazy, real_device, name):
    made, plain = both(ELEMENTWISE[name], lazy, real_device)

    np.testing.assert_array_equal(made, plain)


@pytest.mark.parametrize("axis", [0, 1, -1, None, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_whose_order_does_not_matter(lazy, axis, keepdims):
    options = {"axis": axis, "keepdims": keepdims}
    x = xdev.asarray(X, chunks=(2, 3))

    made = add.reduce(x, **options)

    expected = np.add.reduce(X, **options)
    assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(lazy.values(made), expected, rtol=1e-6)


@pytest.mark.usefixtures("lazy")
def test_what_would_cross_chunks_is_refused_with_the_way_out():
    x = xdev.asarray(X, chunks=(2, 3))

    with pytest.raises(TypeError, match=r"identity=.*compute"):
        wave.reduce(x)
    with pytest.raises(TypeError, match=r"axis, dtype and keepdims, not initial"):
        add.reduce(x, initial=1)
    with pytest.raises(TypeError, match=r"distributed\.map\(add\.accumulate"):
        add.accumulate(x)
    with pytest.raises(ValueError, match=r"axis -1.*x\.rechunk\(\{-1: -1\}\)"):
        dot(x, x)


def test_generalized_ufuncs_run_over_the_other_dimensions(lazy, real_device):
    x = xdev.asarray(X, device=real_device)
    cut = xdev.asarray(x, chunks=(1, -1))

    made, (sums, total) = dot(cut, x[0]), running(cut)

    expected = (dot(x, x[0]), *running(x))
    for one, other in zip((made, sums, total), expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(lazy.values(one), xdev.to_numpy(other))
    along = xdev.asarray(X, chunks=(-1, 2))
    np.testing.assert_array_equal(
        lazy.values(dot(along, along, axis=0)), dot(X, X, axis=0)
    )


def test_out_and_where(lazy):
    x, out = xdev.asarray(X, chunks=(2, 3)), xdev.zeros((4, 6), chunks=(2, 3))

    assert wave(x, out=out, where=x > X.mean()) is out

    expected = wave(X, out=np.zeros((4, 6)), where=X.mean() < X)
    np.testing.assert_array_equal(lazy.values(out), expected)
    parts = halves(x, out=(out, None))
    assert parts[0] is out
    np.testing.assert_array_equal(lazy.values(out), X / 2)
    with pytest.raises(TypeError, match=r"where= .* needs out=.*xdev\.where"):
        wave(x, where=x > 0)
    with pytest.raises(TypeError, match=r"out is numpy\.ndarray"):
        wave(x, out=np.zeros((4, 6)))


def test_a_kernel_is_mapped_and_refuses_collections_itself(lazy, real_device):
    def run(x, v):
        if isinstance(x, da.Array):
            return distributed.map(mixed, x, xdev.asarray(v, chunks=3))
        out = xdev.empty(X.shape, device=real_device)
        mixed[X.shape](x, v, out)
        return out

    made, plain = both(run, lazy, real_device)

    np.testing.assert_array_equal(made, plain)
    x = xdev.asarray(X, chunks=3)
    with pytest.raises(TypeError, match=r"xdev\.distributed\.map"):
        mixed[X.shape](x, V, np.empty(X.shape))
    with pytest.raises(TypeError, match=r"the results y, out: "):
        distributed.map(mixed, x)


@pytest.mark.parametrize(
    ("f", "error", "text"),
    [
        (lambda b: b / b[0, 0], TypeError, r"IndexError.*Give dtype="),
        (lambda _: 3, TypeError, "returned int"),
    ],
)
def test_functions_that_cannot_be_mapped_as_they_are(f, error, text):
    with pytest.raises(error, match=text):
        distributed.map(f, xdev.asarray(X, chunks=2))
    with pytest.raises(TypeError, match=r"chunks=\.\.\.\), or call"):
        distributed.map(f, X)
