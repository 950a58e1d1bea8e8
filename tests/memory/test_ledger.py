"""The ledger: sums, peaks, scopes that overlap in any order, sizes by class."""

import pytest
from hypothesis import given, strategies as st
from memory_laws import registered

from xdev import memory

MIB = 1 << 20

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "give", "open", "close", "reset"]),
        st.integers(min_value=1, max_value=99),
    ),
    max_size=40,
)


@given(STEPS)
def test_every_scope_sees_the_peak_of_its_time(steps):
    with registered({}):
        pool = memory.pool("fake")
        live, scopes, closed = [], [], []
        levels, since_reset = [0], 0
        for name, value in steps:
            if name == "take":
                live.append(pool.acquire(value << 10))
            elif name == "give" and live:
                live.pop(value % len(live))
            elif name == "open":
                context = memory.peak("fake")
                scopes.append((context, len(levels) - 1, context.__enter__()))
            elif name == "close" and scopes:
                context, start, scope = scopes.pop(value % len(scopes))
                context.__exit__(None, None, None)
                closed.append((scope, max(levels[start:])))
            elif name == "reset":
                memory.reset_peak("fake")
                since_reset = len(levels) - 1
            levels.append(sum(block.nbytes for block in live))
        assert memory.max_allocated("fake") == max(levels[since_reset:])
        assert pool.stats().acquired_bytes - pool.stats().released_bytes == levels[-1]
        assert [scope.nbytes for scope, _ in closed] == [most for _, most in closed]
        for _, start, scope in scopes:
            assert scope.nbytes == max(levels[start:])


@pytest.mark.usefixtures("no_pools")
def test_a_peak_follows_a_pool_that_is_made_inside_it():
    with memory.peak("fake") as outer:
        with memory.peak("fake") as inner:
            assert inner.nbytes == 0
            memory.pool("fake").acquire(MIB)
        memory.reset_peak("fake")
        memory.pool("fake").acquire(4096)
        with memory.peak("fake") as late:
            memory.pool("fake").acquire(8192)
    assert (outer.nbytes, inner.nbytes, late.nbytes) == (MIB, MIB, 8192)
    assert outer.reserved == 2 * MIB
