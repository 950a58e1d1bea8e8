"""Atomic updates lose nothing, return what was there, and are alike everywhere."""

import numpy as np
import pytest
from running import same, there

import xdev
from xdev import atomic


@xdev.kernel
def histogram(i, x, bins):
    xdev.atomic.add(bins, x[i], 1)


@xdev.kernel
def extremes(i, x, low, high):
    atomic.min(low, i % low.shape[0], x[i])
    atomic.max(high, (i % high.shape[0],), x[i])


@xdev.kernel
def tickets(i, counter, order):
    order[i] = atomic.add(counter, 0, 1)


@xdev.kernel
def first(i, owner, won):
    if atomic.cas(owner, i % owner.shape[0], -1, i) == -1:
        won[i] = 1


@pytest.mark.parametrize("char", "iLf")
def test_additions_are_all_counted(device, char):
    x = np.random.default_rng(0).integers(0, 7, 200_000)
    given, bins = there(device, x, np.zeros(7, char))

    histogram[x.size](given, bins)

    same(bins, np.bincount(x, minlength=7).astype(char))


def of_both_signs(char):
    x = np.random.default_rng(1).integers(0, 2**31 - 1, 60_000).astype(char)
    if x.dtype.kind != "u":
        x[::2] *= -1
    return x, np.full(4, x.max()), np.full(4, x.min())


def with_nan(char):
    x = np.array([1, np.nan, 3, np.inf, 2, 5], char)  # which stays
    return x, np.array([2, np.nan], char), np.array([-np.inf, 0], char)


@pytest.mark.parametrize(
    ("x", "low", "high"),
    [*map(of_both_signs, "ilILfd"), *map(with_nan, "fd")],
    ids=lambda x: x.dtype.char,
)
def test_extremes_equal_numpys(device, x, low, high):
    given, dlow, dhigh = there(device, x, low, high)

    extremes[x.size](given, dlow, dhigh)

    parts = x.reshape(-1, low.size)
    same(dlow, np.minimum(low, parts.min(0)))
    same(dhigh, np.maximum(high, parts.max(0)))


@pytest.mark.parametrize("char", "id")
def test_an_addition_returns_what_was_there(device, char):
    counter, order = there(device, np.zeros(1, char), np.zeros(20_000, char))

    tickets[20_000](counter, order)

    assert np.array_equal(np.sort(xdev.to_numpy(order)), np.arange(20_000))


@pytest.mark.parametrize("char", "lf")
def test_one_alone_swaps(device, char):
    owner, won = there(device, np.full(10, -1, char), np.zeros(30_000, np.int32))

    first[30_000](owner, won)

    winners = np.flatnonzero(xdev.to_numpy(won))
    assert sorted(winners % 10) == list(range(10))
    np.testing.assert_array_equal(xdev.to_numpy(owner)[winners % 10], winners)


def test_a_swap_compares_bits(device):
    @xdev.kernel
    def swap(i, a, expected, old):
        old[i] = atomic.cas(a, i, expected[i], 1.0)

    a = np.array([0.0, -0.0, np.nan, 5.0])
    given, old, expected = there(device, a.copy(), np.zeros(4), a * [1, -1, 1, 2])

    swap[4](given, expected, old)

    same(old, a)
    assert xdev.to_numpy(given).tolist() == [1, 0, 1, 5]


def test_elements_of_several_axes_and_from_the_end(device):
    @xdev.kernel
    def total(i, j, x, out):
        atomic.add(out, (-1, j), x[i, j])

    x = np.arange(60).reshape(20, 3)
    given, out = there(device, x, np.zeros((2, 3), np.int64))

    total[20, 3](given, out)

    same(out, [[0, 0, 0], x.sum(0).tolist()])


@pytest.mark.parametrize(
    ("char", "update", "message"),
    [
        ("h", lambda i, x: atomic.add(x, i, 1), "cannot update elements of int16"),
        ("D", lambda i, x: atomic.add(x, i, 1), "cannot update elements of complex128"),
        ("i", lambda i, x: atomic.add(x, (i, i), 1), "needs 1 indices, one an axis"),
        ("i", lambda i, x: atomic.max(x, 0.5, i), "takes an integer or a tuple"),
        ("i", lambda i, x: atomic.min(i, i, x[i]), "takes an array, not int64"),
        ("i", lambda i, x: atomic.add(x, i, 1j), "takes no complex numbers"),
    ],
)
def test_what_cannot_be_updated_is_refused(device, char, update, message):
    def run(i, x):
        update(i, x)

    (x,) = there(device, np.zeros(3, char))
    with pytest.raises(TypeError, match=message):
        xdev.kernel(run)[3](x)


def test_outside_a_kernel_there_are_none():
    with pytest.raises(TypeError, match=r"xdev.atomic.add works inside a function"):
        atomic.add(np.zeros(3), 0, 1)
