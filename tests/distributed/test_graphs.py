"""Graphs have at most a tenth more tasks than those written by hand for Dask."""

import numpy as np
import pytest

import xdev
from xdev import distributed

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
CHUNKS = (50, -1)
M = np.random.default_rng(4).random((2000, 4))
X = xdev.asarray(M, chunks=CHUNKS)
Y = xdev.ones((2000, 4), chunks=CHUNKS)


def three_steps(xp):
    return xp.sum(xp.multiply(xp.sqrt(xp.arange(1e4, chunks=100)), 2.0))


#: What is xdev's, and what somebody who knows Dask writes in its place.
PAIRS = {
    "three steps": (lambda: three_steps(xdev), lambda: three_steps(da)),
    "mean": (lambda: xdev.mean(X, axis=0), lambda: X.mean(axis=0)),
    "matmul": (lambda: xdev.matmul(X.T, Y), lambda: X.T @ Y),
    "@vectorize": (
        lambda: xdev.vectorize(lambda x, y: x * y)(X, Y),
        lambda: da.map_blocks(np.multiply, X, Y, dtype=float),
    ),
    "map": (
        lambda: distributed.map(np.sqrt, X),
        lambda: X.map_blocks(np.sqrt, dtype=float),
    ),
    "map with depth": (
        lambda: distributed.map(np.sqrt, X, depth=1),
        lambda: X.map_overlap(np.sqrt, depth=1, boundary="none", dtype=float),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_tasks(name):
    ours, theirs = (make() for make in PAIRS[name])

    for count in (
        lambda x: len(x.__dask_graph__()),
        lambda x: len(dask.optimize(x)[0].__dask_graph__()),
    ):
        assert count(ours) <= 1.1 * count(theirs)
    np.testing.assert_allclose(*dask.compute(ours, theirs), rtol=1e-12)
