"""Choices and permutations."""

import itertools
import math

import model
import numpy as np
import pytest
from running import host, there

import xdev
from xdev.random import default_rng

N = 60_000


def even(found, cells):
    """Check that counts of cells are those of equal chances."""
    counts = np.bincount(found, minlength=cells)
    assert len(counts) == cells
    assert model.chi_squared(counts, counts.sum() / cells) < 5


def ranks(orders):
    """Return the number of each row among all permutations of its length."""
    every = {p: k for k, p in enumerate(itertools.permutations(range(orders.shape[1])))}
    return [every[tuple(order)] for order in orders.tolist()]


DRAWS = {
    "permutation": lambda rng, _: rng.permutation(2001),
    "permuted": lambda rng, p: rng.permuted(p),
    "most": lambda rng, _: rng.choice(5000, 3000, replace=False),
    "few": lambda rng, _: rng.choice(5000, 30, replace=False),
    "distinct by chance": lambda rng, p: rng.choice(50, 40, replace=False, p=p),
    "by chance": lambda rng, p: rng.choice(50, (20, 20), p=p),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_orders_are_the_cpus(device, draw):
    p = np.arange(50) / 1225
    found = draw(default_rng(4, device), xdev.asarray(p, device=device))

    assert xdev.device_of(found) == device
    assert np.array_equal(host(found), draw(default_rng(4, "cpu"), p))


def words(seed, count):
    """Return the random words of a generator's first call, as the paper has them."""
    key = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    pairs = [model.words(index, key, 0) for index in range((count + 1) // 2)]
    return np.array(pairs, np.uint64).ravel()[:count]


@pytest.mark.parametrize("n", [0, 1, 2, 5, 700, 6001])
def test_a_permutation_is_the_stable_order_of_random_words(make, n):
    found = host(make(3).permutation(n))

    assert found.dtype == np.int64
    assert np.array_equal(found, np.argsort(words(3, n), stable=True))


@pytest.mark.cuda
def test_large_permutations_are_the_cpus(cuda):
    """Of so many words, some thousand share 32 bits."""
    here, there = (xdev.random.default_rng(4, device=d) for d in ("cpu", cuda))
    n = 3_000_000
    np.testing.assert_array_equal(host(there.permutation(n)), here.permutation(n))
    sample = there.choice(n, n // 2, replace=False)
    np.testing.assert_array_equal(host(sample), here.choice(n, n // 2, replace=False))


def test_all_orders_and_samples_are_equally_likely(rng, device):
    table = xdev.broadcast_to(xdev.arange(4, device=device), (N, 4))
    even(ranks(host(rng.permuted(table, axis=1))), 24)
    found = [host(rng.choice(4, 2, replace=False)) for _ in range(3000)]
    even([4 * a + b - (4 * a + b) // 5 - 1 for a, b in found], 12)


def test_chances_are_kept(rng, device):
    chances = [0.5, 0, 0.3, 0.2]
    found = host(rng.choice(4, N, p=xdev.asarray(chances, device=device)))

    counts = np.bincount(found, minlength=4)
    assert counts[1] == 0
    for count, chance in zip(counts, chances, strict=True):
        assert abs(count - N * chance) <= 5 * math.sqrt(N * chance * (1 - chance))


def test_choices_are_elements_of_the_array(rng, device):
    table = xdev.reshape(xdev.arange(12, device=device), (3, 4))

    columns = host(rng.choice(table, (5, 2), axis=1))
    assert columns.shape == (3, 5, 2)
    for column in columns.reshape(3, -1).T:
        assert column.tolist() in host(table).T.tolist()
    assert host(rng.choice(table, 2, replace=False)).shape == (2, 4)
    assert host(rng.choice(table)).tolist() in host(table).tolist()
    assert int(rng.choice(table[0, :])) in range(4)


def test_shuffling_and_permuting_in_place(make, device):
    (table,) = there(device, np.arange(400).reshape(20, 20))
    expected = host(make().permutation(table, axis=1))
    whole, found = (host(make().permuted(table, axis=axis)) for axis in (None, 1))

    assert np.array_equal(whole.ravel(), host(make().permutation(400)))
    other = xdev.asarray(table, copy=True)
    assert make().shuffle(other, axis=1) is None
    assert np.array_equal(host(other), expected)
    assert make().permuted(table, axis=1, out=table) is table
    assert np.array_equal(host(table), found)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((0,), ValueError, "a must be a positive integer unless no samples are taken"),
        (([], 3), ValueError, "a cannot be empty unless no samples are taken"),
        ((3.5,), ValueError, "a must be a sequence or an integer"),
        ((3, 5, False), ValueError, "Cannot take a larger sample than population"),
        ((3, 1, True, [0.5, 0.5]), ValueError, "a and p must have same size"),
        ((2, 1, True, [1, 2]), ValueError, "Probabilities do not sum to 1"),
        ((2, 1, True, [2, -1]), ValueError, "Probabilities are not non-negative"),
        ((2, 1, True, [np.nan, 1]), ValueError, "Probabilities contain NaN"),
        ((2, 1, True, [[1, 0]]), ValueError, "p must be 1-dimensional"),
        ((2, 2, False, [1, 0]), ValueError, "Fewer non-zero entries in p than size"),
    ],
)
def test_choices_refuse_what_numpy_refuses(rng, arguments, error, text):
    for generator in (np.random.default_rng(0), rng):
        with pytest.raises(error, match=text):
            generator.choice(*arguments)


def test_permutations_refuse_what_has_no_axis(rng, device):
    with pytest.raises(np.exceptions.AxisError):
        rng.permutation(xdev.arange(3, device=device), axis=1)
    with pytest.raises(TypeError, match="integer or an array"):
        rng.permutation(3.5)
    with pytest.raises(TypeError, match="in place"):
        rng.shuffle([1, 2])
    for array in (np.array(5), np.array(2.5), xdev.asarray(5, device=device)):
        with pytest.raises(np.exceptions.AxisError):
            rng.permutation(array)
    with pytest.raises(np.exceptions.AxisError):
        np.random.default_rng(0).permutation(np.array(5))
    assert host(rng.permutation(np.int64(2))).shape == (2,)
