"""What holds of every method: devices, shapes, out=, seeds, streams, states."""

import copy

import numpy as np
import pytest
from running import host, pickled, same

import xdev
from xdev.random import default_rng

METHODS = {
    "random": lambda rng, size, **k: rng.random(size, **k),
    "random, float32": lambda rng, size, **k: rng.random(size, np.float32, **k),
    "normal": lambda rng, size, **k: rng.standard_normal(size, **k),
    "normal, float32": lambda rng, size, **k: rng.standard_normal(size, "float32", **k),
    "exponential": lambda rng, size, **k: rng.standard_exponential(size, **k),
    "exponential, float32": (
        lambda rng, size, **k: rng.standard_exponential(size, xdev.float32, **k)
    ),
}
SIZED = METHODS | {
    "uniform": lambda rng, size: rng.uniform(-3, 1e10, size),
    "normal of parameters": lambda rng, size: rng.normal(-3, 0.1, size),
    "exponential of a scale": lambda rng, size: rng.exponential(7.1, size),
    "integers": lambda rng, size: rng.integers(-5, 95, size),
    "integers, int8": lambda rng, size: rng.integers(-5, 95, size, np.int8),
    "integers, bool": lambda rng, size: rng.integers(0, 1, size, bool, endpoint=True),
    "integers, 33 bits": lambda rng, size: rng.integers(0, 2**33 + 1, size),
    "integers, all": lambda rng, size: rng.integers(0, 2**64, size, np.uint64),
    "choice": lambda rng, size: rng.choice(1000, size),
    "choice of chances": lambda rng, size: rng.choice(3, size, p=[0.2, 0.3, 0.5]),
}
GOLDEN = {
    "integers": [157, 57, 573, 243, 551],
    "random": ["0x1.7ff7ec4646aaep-1", "0x1.fdef52fdee9f4p-3"],
    "normal": [
        "-0x1.65ad3008c9ed9p-1",
        "0x1.198bbae2dc2f8p-2",
        "-0x1.f50de3e334783p-3",
    ],
    "exponential": ["0x1.278445ac4a5c6p-4", "0x1.f54af0198908cp-2"],
    "permutation": [4, 5, 2, 0, 1, 3],
}
SIZES = [0, 1, 2, 3, 4, 5, 127, 1000, 4099]


def same_bits(found, expected):
    """Compare bit for bit, where signs of zeros count as well."""
    same(found, host(expected))
    assert host(found).tobytes() == host(expected).tobytes()


@pytest.mark.parametrize("method", SIZED.values(), ids=SIZED)
def test_values_are_the_cpus_bit_for_bit(device, method):
    for size in SIZES:
        found = method(default_rng(7, device), size)

        assert xdev.device_of(found) == device
        same_bits(found, method(default_rng(7, "cpu"), size))


@pytest.mark.parametrize("method", SIZED.values(), ids=SIZED)
def test_shapes_and_lengths_do_not_matter(make, method):
    line = xdev.to_numpy(method(make(), 4099))

    for shape in [(3, 5), (5, 3, 7), (2, 0), (4099,), (1, 1)]:
        found = xdev.to_numpy(method(make(), shape))
        same_bits(found, line[: found.size].reshape(shape))


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[::2, ::3],
        lambda x: x[::-1, 1:],
        lambda x: x.T,
        lambda x: x[1, 1:4],
        lambda x: x[:0],
    ],
    ids=["steps", "backwards", "transposed", "odd start", "empty"],
)
def test_out_may_have_any_strides(make, device, method, view):
    dtype = method(make(), 1).dtype
    whole = xdev.full((6, 9), -7.0, dtype=dtype, device=device)
    expected = xdev.to_numpy(whole).copy()
    view(expected)[...] = xdev.to_numpy(method(make(), view(expected).shape))

    out = view(whole)

    assert method(make(), out.shape, out=out) is out
    same_bits(whole, expected)


@pytest.mark.parametrize(
    "seed",
    [0, 12345, 2**100, [1, 2, 3], np.random.SeedSequence(5), np.int64(3)],
    ids=str,
)
def test_seeds_are_numpys(device, seed):
    first = default_rng(seed, device).random(10)
    twin = (
        seed
        if not isinstance(seed, np.random.SeedSequence)
        else (np.random.SeedSequence(5))
    )

    same_bits(first, default_rng(twin, device).random(10))
    other = xdev.to_numpy(default_rng(987, device).random(10))
    assert not np.any(xdev.to_numpy(first) == other)


USE_NONE = r"the seed is .*\(seed, device\): use None"


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        *((seed, USE_NONE) for seed in ("a", 1.5, -1, [-1])),
        *(([1, -1], "non-negative"), (np.array([3, -1]), "non-negative")),
        ([1.5], r"SeedSequence \(.*integer"),
    ],
    ids=str,
)
def test_seeds_that_numpy_refuses(device, seed, words):
    with pytest.raises((TypeError, ValueError)) as numpys:
        np.random.default_rng(seed)
    with pytest.raises(numpys.type, match=words):
        default_rng(seed, device)


def test_calls_differ_and_follow_the_state(rng):
    state = rng.bit_generator.state
    one, two = (xdev.to_numpy(rng.random(50)) for _ in range(2))
    rng.bit_generator.state = state

    assert not np.any(one == two)
    same_bits(rng.random(50), one)
    same_bits(rng.random(50), two)


def test_streams_are_numpys_children_and_later_ones_are_others(make, device):
    rng = make(11)
    children = rng.spawn(3)
    expected = np.random.SeedSequence(11).spawn(4)

    assert [child.device for child in children] == [device] * 3
    for child, seed in zip((*children, *rng.spawn(1)), expected, strict=True):
        same_bits(child.random(20), default_rng(seed, device).random(20))


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, pickled])
def test_copies_go_on_from_here(rng, clone):
    rng.random(3)
    twin = clone(rng)

    assert twin.device == rng.device
    if clone is copy.copy:  # as of NumPy's: one source
        assert twin.bit_generator is rng.bit_generator
    else:
        same_bits(twin.normal(size=9), rng.normal(size=9))
        assert twin.spawn(1)[0].random() == rng.spawn(1)[0].random()


def test_seeded_values_stay_what_they_are():
    """Programs keep their results: another version must not change these."""
    rng = default_rng(42, "cpu")

    assert rng.integers(0, 1000, 5).tolist() == GOLDEN["integers"]
    assert [x.hex() for x in rng.random(2).tolist()] == GOLDEN["random"]
    assert [x.hex() for x in rng.normal(size=3).tolist()] == GOLDEN["normal"]
    assert [x.hex() for x in rng.exponential(size=2).tolist()] == GOLDEN["exponential"]
    assert rng.permutation(6).tolist() == GOLDEN["permutation"]
