"""A source that fails at any of its calls: the accounts stay true, nothing leaks.

A random history of requests, drops, marks and reclaims runs over two pools under one
limit; then again with the first source call failing, the second, and so on. After every
step the ledgers must equal a model that knows only the blocks alive and what is lent.
"""

from itertools import pairwise

import hypothesis
import numpy as np
import pytest
from memory_laws import POLICIES, pools_under

from xdev.testing import FakeSource

MIB = 1 << 20
STEPS = 24
HISTORIES = hypothesis.settings().max_examples // 10  # `deep` runs 200
#: A large segment that one stream keeps a piece of, and another needs the rest of.
SHARED = [[0, 0, 40 * MIB, 0], [0, 6, 0, 0], [0, 0, 2 * MIB, 0], [0, 0, 30 * MIB, 1]]
#: What the plain source behind is asked. Without a split or a cache, all that another
#: stream left free is a whole segment, and goes back before it would be taken over.
ASKED = {"allocate", "free", "record", "done", "synchronize"}
ASKED_OF = dict.fromkeys(POLICIES, ASKED)
ASKED_OF |= {"split": ASKED | {"wait"}, "simple": ASKED | {"wait"}}


class Run:
    """One history with one fault, against the model."""

    def __init__(self, policy, which=0, faults=()):
        self.sources = [FakeSource(48 * MIB) for _ in range(2)]
        self.sources[which].faults = set(faults)
        self.pools = pools_under(64 * MIB, policy, self.sources)
        self.held = [[], []]
        self.failed = 0

    def guarded(self, call, *args):
        """Return what a call returns, or None where the fault or a refusal came."""
        try:
            return call(*args)
        except (MemoryError, RuntimeError) as error:
            self.failed += "injected" in f"{error}{error.__cause__}"
            return None

    def step(self, which, action, nbytes, stream):
        pool, held = self.pools[which], self.held[which]
        if action < 6:
            block = self.guarded(pool.acquire, nbytes, stream)
            if block is not None:
                held.append(block)
        elif action == 11:
            self.guarded(pool.reclaim, nbytes % (4 * MIB))
        elif action == 10 and held:
            pool.state.mark(held[nbytes % len(held)].chunk, [stream + 1])
        elif action == 9 and held:
            self.guarded(pool.release, held.pop(nbytes % len(held)))
        elif held:
            held.pop(nbytes % len(held))
        self.compare()

    def compare(self):
        reserved = 0
        for pool, source, held in zip(self.pools, self.sources, self.held, strict=True):
            stats = self.guarded(pool.stats) or pool.stats()  # there is one fault only
            assert stats.allocated == sum(block.nbytes for block in held)
            assert stats.live == len(held) == stats.acquired - stats.released
            assert stats.reserved == sum(source.lent.values())
            reserved += stats.reserved
            spans = sorted((block.address, block.nbytes) for block in held)
            for (start, nbytes), (after, _) in pairwise(spans):
                assert start + nbytes <= after
        assert self.pools[0].budget.reserved == reserved

    def end(self):
        self.held = [[], []]
        for pool, source in zip(self.pools, self.sources, strict=True):
            if self.guarded(pool.reclaim) is None:
                pool.reclaim()
            assert source.lent == {}, "a later reclaim left something out"
        self.compare()
        return self


def history(seed):
    """Return steps: which pool, what, how much, on which stream."""
    generator = np.random.default_rng(seed)
    largest = int(generator.choice([4096, 3 * MIB, 40 * MIB]))
    steps = generator.integers(0, [2, 12, largest, 3], size=(STEPS, 4))
    steps[:, 2] >>= generator.integers(0, 8, size=STEPS)
    return SHARED * (seed % 3 == 0) + steps.tolist()


def replay(steps, *args):
    run = Run(*args)
    for step in steps:
        run.step(*step)
    return run.end()


@pytest.mark.usefixtures("few_objects")
def test_a_fault_at_any_source_call_leaves_the_accounts_true(policy):
    seen, asked = 0, set()
    for seed in range(HISTORIES):
        steps = history(seed)
        for which, source in enumerate(replay(steps, policy).sources):
            asked |= {call[0] for call in source.log}
            for at in range(len(source.log)):
                seen += replay(steps, policy, which, {at}).failed
    assert asked >= ASKED_OF[policy], "a kind of call was never made"
    assert seen, "no fault was ever noticed"
