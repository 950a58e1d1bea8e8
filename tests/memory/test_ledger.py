"""The ledger: sums, peaks, scopes that overlap in any order."""

from hypothesis import given, strategies as st

from xdev.memory.ledger import Ledger
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource

steps = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(min_value=1, max_value=99)),
        st.tuples(st.just("give"), st.integers(min_value=0, max_value=99)),
        st.tuples(st.just("open"), st.just(0)),
        st.tuples(st.just("close"), st.integers(min_value=0, max_value=99)),
        st.tuples(st.just("reset"), st.just(0)),
    ),
    max_size=40,
)


@given(steps)
def test_every_scope_sees_the_peak_of_its_time(steps):
    ledger, live, scopes, closed = Ledger(), [], [], []
    levels, since_reset = [0], 0
    for name, value in steps:
        if name == "take":
            ledger.take(value)
            live.append(value)
        elif name == "give" and live:
            ledger.give(live.pop(value % len(live)))
        elif name == "open":
            scopes.append((ledger.open(), len(levels) - 1))
        elif name == "close" and scopes:
            scope, start = scopes.pop(value % len(scopes))
            ledger.close(scope)
            closed.append((scope, max(levels[start:])))
        elif name == "reset":
            ledger.reset_peak()
            since_reset = len(levels) - 1
        levels.append(sum(live))

    look = ledger.look(reuses=0, reused_bytes=0)
    assert look.allocated == sum(live)
    assert look.live == len(live)
    assert look.peak_allocated == max(levels[since_reset:])
    for scope, highest in closed:
        assert scope.allocated == highest
    for scope, start in scopes:
        assert scope.allocated == max(levels[start:])


def test_a_block_that_goes_round_is_counted_each_time():
    pool = Pool(FakeSource(1 << 30))
    for _ in range(10):
        pool.acquire(1000)
    held = pool.acquire(1000)
    stats = pool.stats()
    assert (stats.acquired, stats.released, stats.live) == (11, 10, 1)
    assert (stats.acquired_bytes, stats.released_bytes) == (11 * 1024, 10 * 1024)
    assert stats.peak_allocated == held.nbytes


def test_peaks_start_afresh():
    pool = Pool(FakeSource(1 << 30))
    pool.acquire(8 << 20)
    kept = pool.acquire(1000)
    assert pool.stats().peak_allocated == 8 << 20
    pool.reset_peak()
    assert pool.stats().peak_allocated == kept.nbytes
    assert pool.stats().peak_reserved == pool.stats().reserved
