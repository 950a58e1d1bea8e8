"""What a snapshot says of each moment, against what was seen at that moment."""

from hypothesis import given, strategies as st

from xdev import memory
from xdev.memory.history import snapshot_of, state_after, timeline
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource

MIB = 1 << 20
#: Acquire so many bytes, or drop the block of a number, or give back what is free.
STEPS = st.lists(
    st.tuples(st.sampled_from("adar"), st.integers(1, 30 * MIB)), max_size=40
)


def step(pool, kept, action, number):
    if action == "a":
        kept.append(pool.acquire(number))
    elif action == "d" and kept:
        pool.release(kept.pop(number % len(kept)))
    elif action == "r":
        pool.reclaim()


@given(before=STEPS, steps=STEPS, entries=st.sampled_from([7, 1000]))
def test_every_moment_of_a_record_is_known(before, steps, entries):
    pool, kept, seen = Pool(FakeSource(1 << 34)), [], []
    for action, number in before:
        step(pool, kept, action, number)
    start = pool.stats()
    memory.record_history(max_entries=entries)
    try:
        for action, number in steps:
            step(pool, kept, action, number)
            look = pool.stats()
            seen.append((look.allocated, look.reserved))
        found = snapshot_of([pool])
    finally:
        memory.record_history(enabled=False)

    line = timeline(found, 0)
    look = pool.stats()
    last = state_after(found, 0)
    assert last.blocks == {block.address: block.nbytes for block in kept}
    assert (last.allocated, last.reserved) == (look.allocated, look.reserved)
    assert state_after(found, 0, len(line.seconds)).blocks == last.blocks
    assert state_after(found, 0, len(line.seconds)).segments == last.segments
    for count, (used, held) in enumerate(
        zip(line.allocated, line.reserved, strict=True), start=1
    ):
        state = state_after(found, 0, count)
        assert (state.allocated, state.reserved) == (used, held)
    if entries == 1000:
        first = state_after(found, 0, 0)
        assert (first.allocated, first.reserved) == (start.allocated, start.reserved)
        moments = iter(zip(line.allocated, line.reserved, strict=True))
        told = [(start.allocated, start.reserved), *moments]
        position = 0
        for moment in seen:  # each is one of the moments, in order
            position = told.index(moment, position)
