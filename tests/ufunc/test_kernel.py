"""Kernels compute on every device what the same loops compute in NumPy; atomics."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from running import pickled, ran, same, sums, there

import xdev
from xdev import atomic

SHAPES = [(0,), (1,), (7,), (5000,), (3, 5), (0, 4), (4, 0), (70, 90), (2, 3, 4)]


@xdev.kernel
def saxpy(i, a, x, y, out):
    out[i] = a * x[i] + y[i] * 0.5


@xdev.kernel
def fill(i, value, out):
    out[i] = value


def squared(x):
    return x * x


clipped = xdev.vectorize(lambda x: min(x, 1.5))


@xdev.kernel
def composed(i, x, out):
    out[i] = clipped(squared(x[i]))


F = np.random.default_rng(1).random(3000, dtype="f")
RESULTS = [
    *((sums, (x, x), x + x) for x in map((np.arange(5000) % 11).astype, "bHilLfD")),
    (saxpy, (1 / 3, F, F), np.float32(1 / 3) * F + F * np.float32(0.5)),
    *((fill, (x,), np.full(3, x)) for x in (True, 7, -(2**62), 2.5, 1 - 2j)),
    (composed, (np.linspace(0, 2, 50),), np.minimum(np.linspace(0, 2, 50) ** 2, 1.5)),
]


@pytest.mark.parametrize(
    ("kernel", "args", "expected"),
    RESULTS,
    ids=[f"{kernel.__name__}-{x.dtype}" for kernel, _, x in RESULTS],
)
def test_kernels_compute_every_element(device, kernel, args, expected):
    out = np.zeros_like(expected)
    same(ran(device, kernel, expected.size, *args, out), expected)


def one(i, out):
    atomic.add(out, i, 1 + i)


def two(i, j, out):
    atomic.add(out, (i, j), 1 + i + 10**5 * j)


def three(i, j, k, out):
    atomic.add(out, (i, j, k), 1 + i + 10**5 * j + 10**10 * k)


COUNTING = [*map(xdev.kernel, (one, two, three))]
BLOCKS = [32], [(1, 5), (1, 1), (8, 32)], [(1, 1, 5)]


# Those of 70,000 rows are longer than a launch may be along any axis but the last.
@pytest.mark.parametrize("shape", [*SHAPES, (70_000, 3), (70_000, 1, 2)], ids=str)
def test_every_point_is_run_once_with_its_indices(device, shape):
    kernel, out = COUNTING[len(shape) - 1], np.zeros(shape, np.int64)
    places = np.indices(shape)
    expected = 1 + sum(10 ** (5 * k) * place for k, place in enumerate(places))

    assert_array_equal(ran(device, kernel, shape, out), expected)
    of_a_library = tuple(map(np.int32, shape))
    assert_array_equal(ran(device, kernel, of_a_library, out), expected)
    for block in BLOCKS[len(shape) - 1]:
        assert_array_equal(ran(device, kernel, (shape, block), out), expected)


@pytest.mark.parametrize(
    "view", [np.s_[::2], np.s_[::-1], np.s_[1:], np.s_[:0]], ids=str
)
def test_views_of_any_strides_are_read_and_written_in_place(device, view):
    x = np.arange(1000.0)
    given, whole = there(device, x, np.full(1000, -1.0))

    sums[x[view].size](given[view], given[view], whole[view])

    expected = np.full(1000, -1.0)
    expected[view] = 2 * x[view]
    same(whole, expected)


def squares(i, x, out):
    out[i] = x[i] * x[i]


def test_the_decorator_takes_options_and_kernels_and_kernels_pickle():
    again = xdev.kernel(fastmath=True)(sums)
    x = np.arange(5.0)

    assert (again.__name__, again.__doc__) == ("sums", sums.__doc__)
    assert_array_equal(ran("cpu", again, 5, x, x, np.zeros(5)), 2 * x)
    assert pickled(sums) is sums
    again = pickled(xdev.kernel(squares))
    assert ran("cpu", again, 4, np.arange(4), np.zeros(4, int)).tolist() == [0, 1, 4, 9]


# Indices, as Python has them, whatever width the numbers have.


@xdev.kernel
def pick(i, where, x, out):
    out[i] = x[where[i], where[-i - 1]]


@pytest.mark.parametrize("char", "biIl")
def test_indices_of_any_integer_type_are_read_from_arrays(device, char):
    where = np.random.default_rng(0).permutation(100)
    where = (where - 50 if char != "I" else where).astype(char)
    plane = np.arange(1e4).reshape(100, 100)
    index, given, out = there(device, where, plane, np.zeros(100))

    pick[100](index, given.T, out)

    assert_array_equal(xdev.to_numpy(out), plane.T[where, where[::-1]])


def test_arrays_and_grids_of_more_than_31_bits(device):
    @xdev.kernel
    def ends(i, x, out):
        out[i, 0] = x[i] + x[2**31 + i]
        out[i, 1] = x[-1 - i] + x[i - 2**31]
        out[i, 2] = x.shape[0]

    whole, out = there(device, np.ones(1, np.int8), np.zeros((5, 3), np.int64))
    ends[5](xdev.namespace(whole).broadcast_to(whole, (2**31 + 5,)), out)
    assert xdev.to_numpy(out).tolist() == [[2, 2, 2**31 + 5]] * 5

    @xdev.kernel
    def last(i, start, out):
        if i >= start:
            out[i - start] = i

    start = 2**31 if device == "cuda" else 3000
    found = ran(device, last, start + 5, start, np.zeros(5, np.int64))
    assert found.tolist() == [start + k for k in range(5)]


@pytest.mark.cuda
def test_a_kernel_runs_on_the_current_stream_and_copies_nothing(cuda):
    x = xdev.ones(2**22, dtype=xdev.float32, device=cuda)
    out = xdev.zeros_like(x)
    with xdev.Stream(cuda) as stream, xdev.transfer_guard("disallow"):
        x *= 2
        sums[x.size](x, x, out)
        stream.synchronize()

    assert float(xdev.min(out)) == float(xdev.max(out)) == 4


@xdev.kernel
def updated(i, x, where, counts, low, high, owner, won):
    atomic.add(counts, (-1, where[i]), 1)
    atomic.min(low, i % low.shape[0], x[i])
    atomic.max(high, (i % high.shape[0],), x[i])
    if atomic.cas(owner, i % owner.shape[0], -1, i) == -1:
        won[i] = atomic.add(counts, (0, 0), 1) + 1


@pytest.mark.parametrize("char", "ilILfd")
@pytest.mark.parametrize("special", [False, True])
def test_updates_of_many_points_are_all_done(device, char, special):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2**31 - 1, 60_000).astype(char)
    where = rng.integers(0, 7, x.size)
    if x.dtype.kind != "u":
        x[::2] *= -1
    if special and x.dtype.kind == "f":
        x[3::4], x[2::44] = np.inf, np.nan  # which stays
    low, high = np.full(4, x[0]), np.full(4, x[0])
    counts, owner = np.zeros((2, 7), char), np.full(10, -1)
    given = there(device, x, where, counts, low, high, owner, np.zeros(60_000, "l"))

    updated[x.size](*given)

    _, _, counts, less, more, owner, won = map(xdev.to_numpy, given)
    parts = x.reshape(-1, 4)
    same(less, np.minimum(low, parts.min(0)))
    same(more, np.maximum(high, parts.max(0)))
    same(counts[-1], np.bincount(where).astype(char))
    winners = np.flatnonzero(won)
    assert sorted(won[winners]) == list(range(1, 11))
    assert_array_equal(owner[winners % 10], winners)


def test_a_swap_compares_bits(device):
    @xdev.kernel
    def swap(i, a, expected, old):
        old[i] = atomic.cas(a, i, expected[i], 1.0)

    a = np.array([0.0, -0.0, np.nan, 5.0])
    given, old, expected = there(device, a.copy(), np.zeros(4), a * [1, -1, 1, 2])

    swap[4](given, expected, old)

    same(old, a)
    assert xdev.to_numpy(given).tolist() == [1, 0, 1, 5]


@pytest.mark.parametrize(
    ("char", "update", "given"),
    [
        ("D", lambda i, x: atomic.add(x, i, 1), r"array\(complex128"),
        ("i", lambda i, x: atomic.add(x, (i, i), 1), r"array.*UniTuple\(int64 x 2\)"),
        ("i", lambda i, x: atomic.min(i, i, x[i]), "int64, int64, int32"),
        ("i", lambda i, x: atomic.add(x, i, 1j), "array.*complex128"),
    ],
)
def test_what_cannot_be_updated_is_refused(device, char, update, given):
    def run(i, x):
        update(i, x)

    (x,) = there(device, np.zeros(3, char))
    with pytest.raises(TypeError, match=rf"takes an array that .*: not \({given}"):
        xdev.kernel(run)[3](x)


def test_outside_a_kernel_there_are_none():
    with pytest.raises(TypeError, match=r"xdev.atomic.add works inside a function"):
        atomic.add(np.zeros(3), 0, 1)
