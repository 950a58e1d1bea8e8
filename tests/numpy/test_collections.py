"""NumPy's functions on Dask's collections: NumPy's values, and plain arrays beside."""

from functools import partial

import numpy  # noqa: ICN001 - np is what is tested
import pytest

import xdev
import xdev.numpy as np

pytest.importorskip("dask.array")
VALUES, OTHERS = numpy.random.default_rng(0).standard_normal((2, 10_000))


def values(x):
    return xdev.to_numpy(x.compute(scheduler="sync") if hasattr(x, "dask") else x)


def cut(x, device, chunks):
    return xdev.asarray(x, device=device, chunks=chunks)


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("median", []),
        ("nanmedian", []),
        ("percentile", [30]),
        ("percentile", [[0.3, 50, 99]]),
        ("nanpercentile", [30]),
        ("quantile", [0.3]),
        ("nanquantile", [[0.3, 0.5]]),
    ],
)
@pytest.mark.parametrize(("dtype", "tolerance"), [("f4", 1e-5), ("f8", 1e-13)])
def test_ranks_of_chunks_are_numpys_not_an_approximation(name, ranks, dtype, tolerance):
    x = VALUES.astype(dtype)
    assert_close = partial(numpy.testing.assert_allclose, rtol=tolerance)
    ours, numpys = getattr(np, name), getattr(numpy, name)
    line, table = cut(x, "cpu", 1000), cut(x.reshape(100, 100), "cpu", (30, 50))

    for axis in (None, 0, 1, (0, 1)):
        for keepdims in (False, True):
            found = ours(table, *ranks, axis=axis, keepdims=keepdims)
            wanted = numpys(x.reshape(100, 100), *ranks, axis=axis, keepdims=keepdims)
            assert_close(values(found), wanted)
    assert_close(values(ours(line, *ranks)), numpys(x, *ranks))
    by_place = ours(table, *ranks, 0)
    assert_close(values(by_place), numpys(x.reshape(100, 100), *ranks, 0))


BESIDE = """add(x, y) | add(y, x) | where(x > 0, x, y) | where(y > 0, x, y)
allclose(x, y) | hypot(y, x) | hstack([x, y]) | concatenate([y, x]) | dot(y, x)
searchsorted(np.sort(x), y) | average(x, weights=y)
add(np.array([[1.0], [2.0]]), x)"""


@pytest.mark.parametrize("written", BESIDE.replace("\n", " | ").split(" | "))
def test_plain_arrays_stand_beside_collections(real_device, written):
    x, y = VALUES[:60], OTHERS[:60]
    wanted = eval(f"np.{written}", {"np": numpy, "x": x, "y": y})  # noqa: S307
    there = cut(x, real_device, 7)

    with xdev.use_device(real_device):
        beside = xdev.asarray(y, device=real_device)
        found = eval(f"np.{written}", {"np": np, "x": there, "y": beside})  # noqa: S307

    numpy.testing.assert_allclose(values(found), wanted, rtol=1e-12)


def test_a_plain_array_is_not_written_beside_collections():
    x, out = cut(VALUES[:60], "cpu", 7), numpy.zeros(60)

    for write in (
        lambda: np.add(x, x, out=out),
        lambda: np.add(x, x, out),
        lambda: np.add(out, 1, x),
        lambda: np.sum(x, 0, None, out),
    ):
        with pytest.raises(xdev.DeviceMismatchError, match="out"):
            write()
    assert not out.any()
    with pytest.raises((TypeError, NotImplementedError)):
        np.sum(x, out=numpy.zeros(()))
