"""What is mended where CuPy departs from the standard, on every device.

On CUDA each test goes through the entry that it names; on the CPU the same law holds of
NumPy, and the entries run with NumPy standing in for CuPy.
"""

from operator import attrgetter

import numpy as np
import pytest
from running import there

import xdev

INF, NAN = float("inf"), float("nan")
COMPLEX = np.asarray([1 + 2j, complex(INF, NAN), complex(0, INF), 1e-9 + 1e-9j, -3j])
REAL = np.asarray([-2.5, -0.0, 0.5, 2.5, INF, NAN])
WHOLE = np.asarray([-3, 0, 7])
WELL = np.asarray([[4.0, 1.0], [1.0, 3.0]])
#: Of each entry of the table: arguments that CuPy alone gets wrong, or does not take.
CASES = {
    "remainder": [(REAL, np.float64(INF)), (REAL, -3.0), (WHOLE, 2), (2.0, REAL)],
    "logical_and": [(COMPLEX, COMPLEX[::-1]), (REAL, 0j), (REAL, WHOLE[:1])],
    "logical_not": [(np.asarray([0j, 1j, 1.0]),), (REAL,)],
    "sign": [(REAL,), (WHOLE,), (np.asarray([0j, 3 + 4j]),)],
    "clip": [(REAL, -1.0, 1.0), (WHOLE, None, 5)],
    "where": [(REAL > 0, REAL, 2.0), (REAL > 0, 1, 2), (WHOLE > 2, WHOLE, WHOLE * 0.5)],
    "repeat": [(REAL[:3], np.asarray([2, 0, 3])), (REAL, 2)],
    "isin": [(REAL, 2.5), (REAL, np.asarray([2.5, 0.5])), (7, WHOLE)],
    "searchsorted": [(WHOLE, np.int64(2)), (WHOLE, np.asarray([2, 9])), (WHOLE, 7)],
    "nonzero": [(REAL,), (np.stack([WHOLE, WHOLE]),)],
    "diff": [(REAL,), (WELL > 2,), (np.stack([WHOLE, WHOLE]).astype("uint8"),)],
    "vecdot": [(WHOLE, WHOLE), (np.stack([WELL, WELL]), WELL), (WELL * 1j, WELL)],
    "linalg.solve": [(WELL, np.ones((3, 2, 1))), (np.stack([WELL, WELL]), REAL[2:4])],
    "linalg.diagonal": [(np.stack([WELL, WELL]),)],
    "linalg.trace": [(np.stack([WELL, WELL]),), (WELL.astype("int8"),)],
    "linalg.matrix_norm": [(WELL,), (np.stack([WELL, 2 * WELL]),)],
    "linalg.outer": [(WHOLE, REAL[:3]), (WELL[0] > 2, WELL[1] > 2)],
    "linalg.cross": [(WHOLE, WHOLE[::-1]), (np.stack([WHOLE, WHOLE]), WHOLE + 1)],
    "linalg.matrix_rank": [(WELL,), (np.ones((2, 3, 2)),), (np.empty((2, 0, 3)),)],
    "linalg.pinv": [(WELL,), (np.ones((2, 3, 2)),), (np.empty((2, 0, 3)),)],
    "linalg.eig": [(np.asarray([[2.0, 0.0], [0.0, 3.0]]),)],
    "linalg.eigvals": [(np.asarray([[2.0, 0.0], [0.0, 3.0]]),)],
}
EVERY = [(name, args) for name, cases in CASES.items() for args in cases]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def assert_same(given, wanted, rtol=1e-14):
    for x, y in zip(given, wanted, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        for one, other in ((x.real, y.real), (x.imag, y.imag)):
            np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-15)


def results(name, made):
    """Return a function's results on the host, without what has any sign."""
    parts = made if isinstance(made, tuple) else (made,)
    if name == "linalg.eig":  # vectors have any sign: their type is the law
        assert made.eigenvalues.dtype == made.eigenvectors.dtype
        parts = made[:1]
    return [xdev.to_numpy(x) for x in parts]


#: Where NumPy's differ: our own, as other files compare them with NumPy's and the
#: standard's.
OURS = {"linalg.eig", "linalg.eigvals"}


@pytest.mark.parametrize(("name", "args"), EVERY)
def test_gives_what_numpy_gives(device, name, args):
    rtol = 1e-12 if name.startswith("linalg.") else 1e-14
    function = attrgetter(name)
    wanted = function(xdev if name in OURS else np)(*args)
    found = function(xdev)(*there(device, *args))
    assert_same(results(name, found), results(name, wanted), rtol)


STACKS = [
    ((2, 2), (2,)), ((2, 2), (5, 2, 3)), ((5, 2, 2), (2, 3)), ((5, 2, 2), (2,)),
    ((2, 2), (2, 0)), ((3, 2, 2), (3, 2, 0)), ((0, 2, 2), (2, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), STACKS)
@pytest.mark.parametrize("kind", ["float32", "complex128"])
def test_solve_broadcasts_its_stacks(device, left, right, kind):
    rng = np.random.default_rng(0)
    a = (rng.random(left) + 3 * np.eye(left[-1])).astype(kind)
    b = rng.random(right).astype(kind)
    wanted = np.linalg.solve(a, b)

    result = xdev.to_numpy(xdev.linalg.solve(*there(device, a, b)))

    assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(result, wanted, rtol=1e-4)
    assert xdev.to_numpy(xdev.asarray(a, device=device)).tolist() == a.tolist()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_moments_where_nothing_is_left(device):
    x = xdev.arange(1e5, device=device)
    assert xdev.to_numpy(xdev.var(x, correction=1e5)) == np.inf
    assert xdev.to_numpy(xdev.std(x, correction=2e5)) == np.inf
    assert np.isnan(xdev.to_numpy(xdev.var(x[:1], correction=1)))
    assert np.isnan(xdev.to_numpy(xdev.mean(x[:0])))
    assert np.isnan(xdev.to_numpy(xdev.var(xdev.asarray([np.inf, 1.0], device=device))))
