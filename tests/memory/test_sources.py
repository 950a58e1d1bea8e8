"""What a pool tells where a source answers wrongly, or fails."""

import random

import pytest

from xdev.errors import OutOfMemoryError, XdevError
from xdev.memory import Pool
from xdev.testing import FakeSource


def test_the_sources_own_words_are_the_cause_of_a_refusal(policy):
    pool = Pool(FakeSource(4096), policy)
    local = pool.acquire(4096)
    with pytest.raises(OutOfMemoryError) as refusal:
        pool.acquire(8192)
    cause = refusal.value.__cause__
    assert "over a capacity of 4096 B" in str(cause)
    assert cause.__traceback__ is None, "its frames would keep what they name"
    pool.budget.set(4096)
    with pytest.raises(OutOfMemoryError) as refusal:
        pool.acquire(8192)
    assert refusal.value.__cause__ is None, "it was the limit, not the source"
    del local


def faulty(address):
    """Return a source with an address of its own choice, in stream order too."""
    source = FakeSource(1 << 30)
    source.freed = []
    source.allocate = lambda *_: address
    source.free = lambda address, *_: source.freed.append(address)
    source.in_stream_order, source.held = lambda: source, lambda: 0
    source.trim = lambda _: None
    return source


WRONG = [(1000, "0x3e8, not aligned to 512")]
WRONG += [
    (rubbish, r"returned .*, which is not an address")
    for rubbish in ("abc", 512.0, -512, 1 << 64, [512], b"\0")
]
WRONG += [(null, "cannot allocate 100 B") for null in (0, None)]


@pytest.mark.parametrize(("address", "text"), WRONG)
def test_a_wrong_address_is_named_and_costs_no_budget(address, text, policy):
    source = faulty(address)
    pool = Pool(source, policy, limit=1 << 30)
    for _ in range(3):
        with pytest.raises(XdevError, match=text) as refusal:
            pool.acquire(100)
    cause = str(refusal.value.__cause__)
    assert address or "the source returned no address" in cause
    assert source.freed == [1000] * 3 * (address == 1000)
    assert pool.budget.reserved == pool.stats().reserved == 0


MIB = 1 << 20


@pytest.mark.parametrize("call", ["wait", "synchronize"])
def test_what_a_failed_call_held_is_not_in_use_while_its_error_lives(call):
    """As in a notebook, which keeps the last error."""
    source = FakeSource(128 * MIB)
    pool = Pool(source)
    held = [pool.acquire(6 * MIB), pool.acquire(5 * MIB, 2), pool.acquire(5 * MIB, 2)]
    pool.acquire(40 * MIB)
    del held[1]
    setattr(source, call, lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError) as error:
        pool.acquire(39 * MIB, 1) if call == "wait" else pool.reclaim()
    delattr(source, call)
    stats = pool.stats()
    assert (stats.live, stats.allocated) == (2, sum(block.nbytes for block in held))
    assert error.value is not None


def fails_at(at, policy):
    """Use a pool whose source's call number ``at`` fails; return the calls, the faults.

    After every step the accounts are those of a model.
    """
    source = FakeSource(128 << 20, faults={at})
    pool, held, faults = Pool(source, policy=policy), [], 0
    draw = random.Random(0)  # noqa: S311

    def tried(call, *args):
        nonlocal faults
        try:
            return call(*args)
        except (MemoryError, RuntimeError) as error:
            faults += "injected" in f"{error}{error.__cause__}"

    for _ in range(60):
        if draw.random() < 0.6:
            block = tried(pool.acquire, draw.randrange(1, 8 << 20), draw.randrange(3))
            held += [block] * (block is not None)
            del block
        elif held:
            held.pop(draw.randrange(len(held)))
        else:
            tried(pool.reclaim)
        stats = tried(pool.stats) or pool.stats()
        in_use = sum(block.nbytes for block in held), len(held)
        assert (stats.allocated, stats.live) == in_use
        assert stats.reserved == sum(source.lent.values())
    held.clear()
    tried(pool.reclaim)
    pool.reclaim()
    assert source.lent == {}
    return len(source.log), faults


@pytest.mark.parametrize("policy", ["split", "binned", "simple", "none"])
def test_a_fault_at_any_call_leaves_the_accounts_true(policy):
    calls, none = fails_at(-1, policy)
    assert none == 0
    assert sum(fails_at(at, policy)[1] for at in range(calls)) > 0
