"""The core's functions, plain and compiled, beside the plainest model of a cache."""

import random

import numpy as np
import pytest

from xdev.memory import policies
from xdev.memory.native import core, entries, layout, operations
from xdev.memory.native.machine import ENTRIES, machine

QUANTUM = 512
CORE_ENTRIES = [name for name in ENTRIES if name.startswith("core_")]


def fresh_core(*, eighths=False):
    words = np.zeros(layout.WORDS, np.int64)
    words[layout.OPEN], words[layout.QUANTUM] = 1, QUANTUM
    words[layout.EIGHTHS] = eighths
    return words


def plain():
    """The entries as Python runs them; integers of any size, one thread."""
    return {name: getattr(entries, name) for name in CORE_ENTRIES}


def compiled():
    return {name: machine().function(name) for name in CORE_ENTRIES}


class Model:
    """A dict of lists: what the tables and links stand for."""

    def __init__(self):
        self.free = {}  # (stream, class) -> addresses, last in first out
        self.odd = []
        self.live = {}  # address -> (nbytes, stream, class)

    def take(self, size, stream):
        stack = self.free.get((stream, size))
        if not stack:
            return 0
        address, entry = stack.pop()
        self.live[address] = entry
        return address

    def give(self, address):
        if address in self.live:
            _nbytes, stream, size = entry = self.live.pop(address)
            home = self.free.setdefault((stream, size), []) if size else self.odd
            home.append((address, entry))
            return 1
        return int(address in dict(self.idle()))

    def idle(self):
        return [pair for stack in self.free.values() for pair in stack] + self.odd


@pytest.mark.parametrize("make", [plain, compiled])
@pytest.mark.parametrize("seed", range(4))
def test_any_history_is_that_of_the_model(make, seed):
    calls, words, model = make(), fresh_core(), Model()
    address_of, rng = words.ctypes.data, random.Random(seed)  # noqa: S311 - no secret
    out = np.zeros(64, np.int64)
    next_address = 1 << 20
    for _ in range(1500):
        action = rng.choice("aattttggggmd")
        size, stream = QUANTUM * rng.randint(1, 5), rng.choice([0, 1, 0x7F0012345600])
        if action == "a":
            next_address += QUANTUM * rng.randint(5, 9)
            class_ = rng.choice([size, size, 0])
            number = calls["core_adopt"](
                address_of, next_address, size, stream, class_, 0
            )
            assert number >= 0
            model.live[next_address] = (size, stream, class_)
        elif action == "t":
            found = calls["core_take"](address_of, size - rng.randint(0, 511), stream)
            assert found == model.take(size, stream)
        elif action == "g" and model.live:
            address = rng.choice([*model.live, 8 * QUANTUM])
            assert calls["core_give"](address_of, address) == model.give(address)
        elif action == "m" and model.live:
            address = rng.choice(list(model.live))
            calls["core_mark"](address_of, address)
            nbytes, stream, _ = model.live[address]
            model.live[address] = (nbytes, stream, 0)
        elif action == "d" and rng.random() < 0.2:
            found = set()
            count = len(out)
            while count == len(out):
                count = calls["core_drain"](address_of, out.ctypes.data, len(out))
                found |= set(out[:count].tolist())
            assert found == {address for address, _ in model.idle()}
            model.free, model.odd = {}, []
        idle = sum(entry[0] for _, entry in model.idle())
        assert words[layout.IDLE] == idle
    held = len(model.live) + len(model.idle())
    assert np.count_nonzero(words[layout.KEY : layout.KEY + layout.SLOTS]) == held


@pytest.mark.parametrize("name", ["split", "binned", "simple"])
def test_classes_are_the_policys(name):
    policy = policies.named(name)
    words = fresh_core(eighths=name == "binned")
    rng = random.Random(1)  # noqa: S311
    sizes = [rng.randrange(1 << rng.randint(1, 40)) for _ in range(2000)]
    for nbytes in [0, 1, 511, 512, 513, *sizes]:
        assert core.granted(words, nbytes) == policy.granted(nbytes, QUANTUM)


def test_the_peak_is_of_what_is_in_use():
    words, calls = fresh_core(), compiled()
    at = words.ctypes.data
    words[layout.BASE] = words[layout.PEAK] = 1024
    calls["core_adopt"](at, 1 << 20, 1024, 0, 1024, 0)
    calls["core_give"](at, 1 << 20)
    words[layout.PEAK] = 0
    assert calls["core_take"](at, 1024, 0) == 1 << 20
    assert words[layout.PEAK] == 1024


def test_a_closed_core_takes_back_and_hands_nothing_out():
    words, calls = fresh_core(), compiled()
    at = words.ctypes.data
    calls["core_adopt"](at, 1 << 20, 1024, 0, 1024, 0)
    words[layout.OPEN] = 0
    assert calls["core_give"](at, 1 << 20) == 1
    assert calls["core_take"](at, 1024, 0) == 0
    words[layout.OPEN] = 1
    assert calls["core_take"](at, 1024, 0) == 1 << 20


def test_a_child_gives_back_nothing_of_its_parents():
    words, calls = fresh_core(), compiled()
    at = words.ctypes.data
    for address in (1 << 20, 1 << 21):
        calls["core_adopt"](at, address, 1024, 0, 1024, 0)
    calls["core_give"](at, 1 << 20)
    core.inherit(words)
    assert calls["core_take"](at, 1024, 0) == 0
    assert calls["core_give"](at, 1 << 21) == 1
    assert calls["core_give"](at, 1 << 21) == 0
    assert words[layout.IDLE] == 0


def test_bins_beyond_the_last_start_afresh():
    words, calls = fresh_core(), compiled()
    at, out = words.ctypes.data, np.zeros(1 << 14, np.int64)
    many = layout.MOST_BINS + 10
    for number in range(many):
        address, size = (1 << 30) + number * (1 << 22), QUANTUM * (number + 1)
        assert calls["core_adopt"](at, address, size, 0, size, 0) == number
        assert calls["core_give"](at, address) == 1
    assert calls["core_take"](at, QUANTUM * many, 0) > 0
    assert calls["core_drain"](at, out.ctypes.data, len(out)) == many - 1


def test_a_full_core_says_so():
    words, calls = fresh_core(), compiled()
    at = words.ctypes.data
    for number in range(layout.BLOCKS):
        assert calls["core_adopt"](at, (1 << 30) + 512 * number, 512, 0, 512, 0) >= 0
    assert calls["core_adopt"](at, 1 << 20, 512, 0, 512, 0) == -1
    assert calls["core_give"](at, 1 << 20) == 0


def test_the_plain_operations_are_those_of_the_machine():
    words = fresh_core()
    at = words.ctypes.data
    operations.lock(at)
    assert words[layout.LOCK] == 1
    operations.unlock(at)
    assert words[layout.LOCK] == 0
    assert operations.load(at + 8 * layout.QUANTUM) == QUANTUM
    assert entries.core_of(at, -1) == 0
