"""An exception at any line of the pool, as of Ctrl-C: the pool is whole after it.

One scenario is run once for each line of `xdev.memory` that it executes, and at that
line something is raised. The default suite takes a sample, `HYPOTHESIS_PROFILE=deep`
all of them.
"""

import ctypes
import gc
import linecache
import os
import random
import sys
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from memory_laws import at_lines, output, pools_under
from running import within
from without_a_driver import Client

from xdev import memory
from xdev.errors import OutOfMemoryError
from xdev.testing import FakeSource

MIB = 1 << 20
ROOM = str(Path(memory.__file__).parent)
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
SAMPLE = 40  # lines of a scenario in the default suite
ERRORS = KeyboardInterrupt, RecursionError, MemoryError


@contextmanager
def interrupting(error=None, at=-1):
    """Raise an error at line number `at` of xdev.memory, from 0; yield the lines."""
    lines = []

    def note(frame):
        # Between a ``with``'s end and its lock's release Python looks for no signal.
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if not text.lstrip().startswith("with "):
            lines.append((frame.f_code.co_filename, frame.f_lineno))
            if len(lines) - 1 == at:
                raise error

    with at_lines(ROOM, note):
        yield lines


class Driver:
    def __init__(self, policy):
        self.sources = [FakeSource(64 * MIB) for _ in range(2)]
        self.pool, self.sibling = pools_under(48 * MIB, policy, self.sources)
        self.held = []
        self.addresses = []
        self._client = None

    def acquire(self, nbytes, stream=0):
        self.held.append(self.pool.acquire(nbytes, stream))

    def python(self):
        """Acquire, drop, split, merge, steal, mark, be refused, reclaim."""
        self.acquire(1000)
        self.held.clear()
        self.sibling.acquire(9 * MIB)
        self.acquire(1000)
        self.acquire(700_000)
        self.acquire(3 * MIB, 7)
        self.held[1:2] = []
        self.acquire(100_000)
        self.pool.state.mark(self.held[0].chunk, (9,))
        self.pool.release(self.held.pop(0))
        self.acquire(20 * MIB)
        self.held.pop()
        self.acquire(20 * MIB, 3)
        with suppress(OutOfMemoryError):
            self.acquire(60 * MIB)
        self.pool.reclaim(MIB)
        self.pool.budget.set(30 * MIB)
        with suppress(OutOfMemoryError):
            self.acquire(20 * MIB)
        self.pool.budget.set(48 * MIB)
        self.held.clear()
        self.acquire(5000, 3)
        self.pool.reclaim()

    def tracked(self):
        with memory.track():
            self.acquire(1000)
            self.acquire(5000)
            self.held.pop()
            self.acquire(5000)

    def native(self):
        """Hits, misses and refusals of C clients, and what the heap takes from them."""
        for nbytes in (1000, 70_000, 3 * MIB, 60 * MIB):
            self._malloc(nbytes)
        for _ in range(2):
            if self.addresses:
                self._free(self.addresses.pop())
        self.acquire(70_000)
        self.pool.refill(9000, 0)
        self.pool.reclaim(1)
        self._malloc(9000)

    def _malloc(self, nbytes):
        """Allocate as PyTorch does."""
        if self._client is None:
            # The interpreter's lock stays held: an interrupt comes between our lines.
            self._client = Client(self.pool, ctypes.PYFUNCTYPE)
        # In one step: an interrupt may come right after it.
        malloc = self._client.torch_malloc
        self.addresses.extend(map(malloc, (nbytes,), (0,), (0,)))

    def _free(self, address):
        if address:
            self._client.free(address)

    def check(self):
        gc.collect()
        live = {block.address: block.nbytes for block in self.held}
        for address in filter(None, self.addresses):
            live[address] = self.pool.find(address).nbytes
        self._check(live)
        for address in self.addresses:
            self._free(address)
        self.held.clear()
        self.pool.reclaim()
        self.sibling.reclaim()
        self._check({})
        assert [source.lent for source in self.sources] == [{}, {}]
        self._check_from_another_thread()

    def _check(self, live):
        assert self.pool.allocated == sum(live.values())
        stats, state = self.pool.stats(), self.pool.state
        reserved = [stats.reserved, self.sibling.stats().reserved]
        assert reserved == [sum(source.lent.values()) for source in self.sources]
        assert self.pool.budget.reserved == sum(reserved)
        assert (stats.allocated, stats.live) == (sum(live.values()), len(live))
        assert stats.allocated + stats.cached == stats.reserved
        assert stats.segments == len(state.segments)
        assert stats.reserved == stats.grown_bytes - stats.returned_bytes + stats.idle
        for (start, nbytes), (after, _) in pairwise(sorted(live.items())):
            assert start + nbytes <= after
        for segment in state.segments.values():
            chunks = list(segment)
            assert sum(chunk.nbytes for chunk in chunks) == segment.nbytes
            assert all(a.address + a.nbytes == b.address for a, b in pairwise(chunks))

    def _check_from_another_thread(self):
        sizes = 1000, 100_000, 20 * MIB
        within(20, [lambda: [self.pool.acquire(nbytes).nbytes for nbytes in sizes]])


def interrupted(policy, scenario, error, at):
    driver, errors = Driver(policy), (error or MemoryError, MemoryError)
    with suppress(*errors, KeyboardInterrupt), interrupting(error, at) as lines:
        getattr(driver, scenario)()
    driver.check()
    return lines


def chosen(lines, rng):
    """Return numbers of executed lines: all, or each of a source's and some others."""
    if DEEP:
        return range(len(lines))
    places = {}
    for at, line in enumerate(lines):
        places.setdefault(line, []).append(at)
    sources = [line for line in places if line[0].endswith(("fake.py", "debugging.py"))]
    others = [line for line in places if line not in sources]
    sample = rng.sample(others, min(SAMPLE, len(others)))
    return sorted(rng.choice(places[line]) for line in sources + sample)


SCENARIOS = [
    *((policy, "python") for policy in ("split", "binned", "simple", "none", "async")),
    ("split", "tracked"),
    ("split", "native"),
    ("binned", "native"),
]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("policy", "scenario"), SCENARIOS)
def test_the_pool_is_whole_whatever_is_raised_wherever(
    policy, scenario, monkeypatch, request
):
    if scenario == "native":
        request.getfixturevalue("tier")
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    interrupted(policy, scenario, None, -1)  # imports are done
    lines = interrupted(policy, scenario, None, -1)
    rng = random.Random(5)  # noqa: S311 - no secret
    failures = []
    for at in chosen(lines, rng):
        error = rng.choice(ERRORS)
        try:
            interrupted(policy, scenario, error, at)
        except Exception as failure:  # noqa: BLE001 - the test shows it
            failures.append((at, lines[at], error.__name__, str(failure)[:100]))
    assert failures == []


GUARDED = f"""
import random, sys
sys.path += {list(map(str, Path(__file__).parents[:2]))!r}
from test_interrupts import chosen, interrupting
import xdev
from xdev import memory
from xdev.memory import debugging

def work():
    for _ in range(3):
        xdev.empty(100_000)
    memory.reclaim()

debugging.BLOCKS = 1  # in the quarantine
sys.unraisablehook = lambda _: None
work()
with interrupting() as lines:
    work()
for at in chosen(lines, random.Random(7)):
    try:
        with interrupting(KeyboardInterrupt, at):
            work()
    except KeyboardInterrupt:
        pass
    work()
    assert memory.allocated() == 0, lines[at]
    memory.check()
"""


def test_nothing_is_lost_under_guard():
    output(GUARDED, XDEV_DEBUG="1")


def tracked():
    with memory.track(), memory.track():
        memory.pool("cpu").acquire(1000)


def recorded():
    memory.record_history()
    memory.record_history(max_entries=10)
    memory.record_history(False)


def followed():
    with memory.peak("cpu"), memory.peak("cpu"):
        memory.pool("cpu").acquire(1000)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("scenario", [tracked, recorded, followed])
def test_nobody_listens_after_an_interrupt(scenario, error):
    pool = memory.pool("cpu")
    before = pool.state.listeners
    rng = random.Random(7)  # noqa: S311 - no secret
    with interrupting() as lines:
        scenario()
    for at in chosen(lines, rng):
        with suppress(error), interrupting(error, at):
            scenario()
        gc.collect()
        if scenario is recorded:
            memory.record_history(False)
        assert pool.state.listeners == before, lines[at]
        block = pool.acquire(1000)
        assert memory.outstanding("cpu") == pool.state.ledger._opened == []
        assert memory.snapshot("cpu")["device_traces"][0] == []
        del block
