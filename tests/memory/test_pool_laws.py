"""The laws of a pool under any order of calls: a pool against the blocks alive."""

import sys
from bisect import bisect_right
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from xdev.errors import OutOfMemoryError, UseAfterFreeError
from xdev.memory import Pool
from xdev.testing import FakeSource

MIB = 1 << 20


def laws_of(name, capacity, largest):  # noqa: C901 - one short rule a law
    """The state machine of one policy over a source of some capacity."""

    class PoolLaws(RuleBasedStateMachine):
        """A pool against the plainest model of it: the blocks that are alive."""

        live = Bundle("live")

        def __init__(self):
            super().__init__()
            self.source = FakeSource(capacity)
            self.pool = Pool(self.source, name)
            self.blocks = {}
            self.peak = 0

        @rule(
            target=live,
            nbytes=st.integers(min_value=1, max_value=largest),
            stream=st.integers(min_value=0, max_value=2),
        )
        def acquire(self, nbytes, stream):
            try:
                block = self.pool.acquire(nbytes, stream)
            except OutOfMemoryError:
                assert self.pool.reclaim() == 0, "refused while something was cached"
                assert sum(self.source.lent.values()) + nbytes > capacity
                return None
            assert block.nbytes >= nbytes
            assert block.address not in self.blocks
            self.blocks[block.address] = block
            used = sum(b.nbytes for b in self.blocks.values())
            self.peak = max(self.peak, used)
            return block.address

        @rule(address=consumes(live))
        def drop(self, address):
            self.blocks.pop(address, None)

        @rule(address=consumes(live))
        def release(self, address):
            block = self.blocks.pop(address, None)
            if block is not None:
                self.pool.release(block)
                with pytest.raises(UseAfterFreeError):
                    self.pool.release(block)

        @rule(address=consumes(live), stream=st.integers(min_value=0, max_value=2))
        def drop_used_on_another_stream(self, address, stream):
            block = self.blocks.pop(address, None)
            if block is not None:
                self.pool.state.mark(block.chunk, (stream,))

        @rule(
            address=st.none() | consumes(live),
            nbytes=st.none() | st.integers(min_value=0, max_value=capacity),
        )
        def drop_and_reclaim(self, address, nbytes):
            reserved = self.pool.stats().reserved
            lent = sum(self.source.lent.values())
            self.blocks.pop(address, None)
            freed = self.pool.reclaim(nbytes)
            assert freed == lent - sum(self.source.lent.values())
            assert freed == reserved - self.pool.stats().reserved
            if nbytes is None or freed < nbytes:
                assert self.pool.reclaim() == 0, "more could have gone back"

        @invariant()
        def live_blocks_never_overlap(self):
            spans = sorted((b.address, b.nbytes) for b in self.blocks.values())
            for (start, nbytes), (after, _) in pairwise(spans):
                assert start + nbytes <= after

        @invariant()
        def live_blocks_lie_in_lent_memory(self):
            lent = sorted(self.source.lent.items())
            for block in self.blocks.values():
                at = bisect_right(lent, (block.address, sys.maxsize)) - 1
                start, nbytes = lent[at]
                assert start <= block.address
                assert block.address + block.nbytes <= start + nbytes

        @invariant()
        def every_byte_is_accounted_for(self):
            stats = self.pool.stats()
            assert stats.allocated == sum(b.nbytes for b in self.blocks.values())
            assert stats.live == len(self.blocks)
            assert stats.reserved == sum(self.source.lent.values())
            assert stats.allocated + stats.cached == stats.reserved
            assert stats.peak_allocated == self.peak
            assert stats.idle == 0 or name == "async"
            assert stats.reserved == (
                stats.grown_bytes - stats.returned_bytes + stats.idle
            )
            assert self.pool.budget.reserved == stats.reserved
            if name == "none":
                assert stats.cached == stats.waiting_bytes

        @invariant()
        def size_classes_add_up(self):
            stats = self.pool.stats()
            live = Counter((b.nbytes - 1).bit_length() for b in self.blocks.values())
            assert {c.upto: c.live for c in stats.classes if c.live} == {
                1 << number: count for number, count in live.items()
            }
            for field in ("live", "waiting", "acquired", "released"):
                assert sum(getattr(c, field) for c in stats.classes) == getattr(
                    stats, field
                )
            assert sum(c.live_bytes for c in stats.classes) == stats.allocated
            assert (
                sum(c.cached_bytes + c.waiting_bytes for c in stats.classes)
                == stats.cached - stats.idle
            )

        def teardown(self):
            self.blocks.clear()
            self.pool.reclaim()
            assert self.source.lent == {}

    return PoolLaws.TestCase


SmallSplitLaws = laws_of("split", 16 * 1024, 4096)
SmallBinnedLaws = laws_of("binned", 16 * 1024, 4096)
SmallSimpleLaws = laws_of("simple", 16 * 1024, 4096)
SmallNoneLaws = laws_of("none", 16 * 1024, 4096)
SmallAsyncLaws = laws_of("async", 16 * 1024, 4096)
LargeSplitLaws = laws_of("split", 256 * MIB, 80 * MIB)
LargeBinnedLaws = laws_of("binned", 256 * MIB, 80 * MIB)
