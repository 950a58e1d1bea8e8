"""The native free lists beside the plainest model of a cache."""

import ctypes
import gc
import random
import sys

import pytest

from xdev.memory import policies
from xdev.memory.blocks import Segment

QUANTUM = 512


@pytest.fixture
def lists(tier):
    return tier.FreeLists(QUANTUM, eighths=False)


def chunk(address, nbytes, stream=0):
    made = Segment(address, nbytes, None).first
    made.stream = stream
    return made


class Model:
    """A dict of lists: what the tables and links stand for."""

    def __init__(self):
        self.free = {}  # (stream, class) -> addresses, last in first out
        self.odd = []
        self.live = {}  # address -> (chunk, class)

    def take(self, size, stream):
        stack = self.free.get((stream, size))
        if not stack:
            return 0
        address, entry = stack.pop()
        self.live[address] = entry
        return address

    def take_back(self, address):
        if address in self.live:
            chunk, size = entry = self.live.pop(address)
            home = self.free.setdefault((chunk.stream, size), []) if size else self.odd
            home.append((address, entry))
            return True
        return address in dict(self.idle())

    def idle(self):
        return [pair for stack in self.free.values() for pair in stack] + self.odd


@pytest.mark.parametrize("seed", range(8))
def test_any_history_is_that_of_the_model(lists, seed):
    model, rng = Model(), random.Random(seed)  # noqa: S311 - no secret
    next_address, least = 1 << 20, 0
    for _ in range(3000):
        action = rng.choice("aattttggggmdl")
        size, stream = QUANTUM * rng.randint(1, 5), rng.choice([0, 1, 0x7F0012345600])
        if action == "a":
            next_address += QUANTUM * rng.randint(5, 9)
            made, class_ = chunk(next_address, size, stream), rng.choice([size, 0])
            free = bool(class_) and rng.random() < 0.3
            assert lists.adopt(made, class_, free=free)
            model.live[next_address] = made, class_
            if free:
                model.take_back(next_address)
        elif action == "t":
            found = lists.take(size - rng.randint(0, 511), stream)
            assert found == model.take(size, stream)
        elif action == "g" and model.live:
            address = rng.choice([*model.live, 8 * QUANTUM])
            assert lists.take_back(address) == model.take_back(address)
        elif action == "m" and model.live:
            address = rng.choice(list(model.live))
            made, _ = model.live[address]
            lists.mark(made)
            model.live[address] = made, 0
        elif action == "d" and rng.random() < 0.2:
            found, idle = lists.drain(), [made for _, (made, _) in model.idle()]
            assert len(found) == len(idle)
            assert set(map(id, found)) == set(map(id, idle))
            least -= sum(made.nbytes for made in idle)  # the ledger's loss
            model.free, model.odd = {}, []
        idle = sum(made.nbytes for _, (made, _) in model.idle())
        least = min(least, idle)
        if action == "l":
            assert lists.least_idle() == least
            least = idle
        assert (lists.idle, lists.odd) == (idle, bool(model.odd))
    free = {address for address, _ in model.idle()}
    for address, (made, _) in [*model.live.items(), *model.idle()]:
        assert lists.look(made)[0] == (address in free)


@pytest.mark.parametrize("name", ["split", "binned", "simple"])
def test_classes_are_the_policys(tier, name):
    policy, rng = policies.named(name), random.Random(1)  # noqa: S311
    sizes = [rng.randrange(1 << rng.randint(1, 40)) for _ in range(2000)]
    for nbytes in [0, 1, 511, 512, 513, *sizes]:
        lists = tier.FreeLists(QUANTUM, eighths=name == "binned")
        size = policy.granted(nbytes, QUANTUM)
        lists.adopt(chunk(1 << 40, size), size, free=True)
        assert lists.take(nbytes, 0) == 1 << 40


def test_a_chunk_lives_as_long_as_it_is_held(lists):
    made = chunk(1 << 20, 1024)
    before = sys.getrefcount(made)
    for _ in range(10):
        lists.adopt(made, 1024)
        assert sys.getrefcount(made) == before + 1
        lists.take_back(1 << 20)
        assert lists.drain() == [made]
    gc.collect()
    assert sys.getrefcount(made) == before


def test_a_live_block_is_of_the_stream_that_it_was_made_on(tier, lists):
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_ssize_t] * 2)
    of_stream, address = kind(tier.IS_OF_STREAM), 0x7_0000_0000
    assert not of_stream(address, 77)
    made = chunk(address, QUANTUM, 77)
    assert lists.adopt(made, QUANTUM)
    assert of_stream(address, 77)
    assert not of_stream(address, 0)
    assert not of_stream(address + QUANTUM, 77)
    assert lists.take_back(address)
    assert not of_stream(address, 77)  # nobody's, until it is taken again
    assert lists.take(QUANTUM, 77) == address
    assert of_stream(address, 77)
    made.stream = 78  # 77 has ended
    lists.mark(made)
    assert not of_stream(address, 77)
    assert of_stream(address, 78)
    lists.take_back(address)
    assert lists.take(QUANTUM, 77) == 0
    assert lists.drain() == [made]
