"""Arenas: parts that never overlap, blocks that go with the last user."""

from itertools import pairwise

from hypothesis import given, strategies as st

from xdev.memory.pools import Arena, Pool
from xdev.testing import FakeSource

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(0, 20_000), st.integers(1, 2)),
        st.tuples(st.just("give"), st.integers(0, 50), st.just(0)),
    ),
    max_size=60,
)


@given(STEPS)
def test_parts_in_use_never_overlap_and_lie_in_the_arenas_blocks(steps):
    pool, arena = Pool(FakeSource(capacity=1 << 30)), Arena()
    live, used = [], {1: [], 2: []}
    for verb, n, stream in steps:
        if verb == "take":
            part = arena.take(pool.acquire, n, stream)
            assert part.nbytes >= n
            start, end = span(part)
            # What another stream's work may still use is never handed out.
            assert not any(a < end and start < b for a, b in used[3 - stream])
            used[stream].append((start, end))
            live.append(part)
        elif live:
            part = live.pop(n % len(live))
            part.release(part)
        spans = sorted(map(span, live))
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
        blocks = list(map(span, arena.blocks))
        assert all(any(a <= s and e <= b for a, b in blocks) for s, e in spans)
    assert pool.stats().allocated == sum(block.nbytes for block in arena.blocks)


def span(x):
    return x.address, x.address + x.nbytes
