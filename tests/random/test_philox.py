"""The words, against the published vectors and a model in Python's integers."""

import pytest
from model import philox as model, words

import xdev
from xdev.random import Philox

# Random123's kat_vectors, lines "philox4x32 10": counter, key, words
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF,) * 4,
        (0xFFFFFFFF,) * 2,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_known_answers_are_the_models(counter, key, expected):
    assert tuple(model(counter, key)) == expected


@pytest.mark.parametrize(
    ("key", "call"), [(0, 0), (2**64 - 1, 2**64 - 1), (0x1234567890ABCDEF, 2**40 + 3)]
)
def test_words_are_the_models_on_every_device(rng, key, call):
    state = {"bit_generator": "Philox4x32", "state": {"key": key, "call": call}}
    rng.bit_generator.state = state

    found = rng.integers(0, 2**64, size=401, dtype="uint64")

    expected = [word for index in range(201) for word in words(index, key, call)]
    assert xdev.to_numpy(found).tolist() == expected[:401]


def test_calls_are_counted_across_64_bits():
    bits = Philox(0)
    bits.state = {**bits.state, "state": {"key": 3, "call": 2**64 - 1}}

    assert [bits.take()[1] for _ in range(2)] == [2**64 - 1, 0]


def test_threads_share_a_source_without_a_call_twice():
    from concurrent.futures import ThreadPoolExecutor

    bits = Philox(0)
    with ThreadPoolExecutor(8) as threads:
        calls = list(threads.map(lambda _: bits.take()[1], range(2000)))

    assert sorted(calls) == list(range(2000))
