"""Sources that answer wrongly, or refuse: what is told, and that nothing is kept."""

import gc
import weakref
from contextlib import suppress

import pytest

from xdev.errors import OutOfMemoryError, XdevError
from xdev.memory.policies import POLICIES
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource


def test_the_sources_own_words_are_the_cause_of_a_refusal(policy):
    pool = Pool(FakeSource(4096), policy)
    local = pool.acquire(4096)
    with pytest.raises(OutOfMemoryError) as refusal:
        pool.acquire(8192)
    cause = refusal.value.__cause__
    assert "over a capacity of 4096 B" in str(cause)
    pool.budget.set(4096)
    with pytest.raises(OutOfMemoryError) as refusal:
        pool.acquire(8192)
    assert refusal.value.__cause__ is None, "it was the limit, not the source"
    del local


class Faulty:
    """A source with an address of its own choice."""

    alignment = 512

    def __init__(self, address):
        self.address, self.freed = address, []

    def allocate(self, nbytes, *order):  # noqa: ARG002
        return self.address

    def free(self, address, nbytes, *order):  # noqa: ARG002
        self.freed.append(address)

    def in_stream_order(self):
        return self

    def held(self):
        return 0

    def trim(self, keep): ...

    def record(self, stream): ...

    def wait(self, stream, event): ...

    def done(self, event):  # noqa: ARG002
        return True

    def synchronize(self): ...


@pytest.fixture(params=sorted(POLICIES))
def policy(request):
    return request.param


@pytest.mark.parametrize("null", [0, None])
def test_a_null_address_is_a_refusal(null, policy):
    pool = Pool(Faulty(null), policy)
    with pytest.raises(OutOfMemoryError) as refusal:
        pool.acquire(100)
    assert "the source returned no address" in str(refusal.value.__cause__)
    assert pool.stats().reserved == pool.budget.reserved == 0


def test_a_misaligned_address_goes_back_and_is_named(policy):
    source = Faulty(1000)
    pool = Pool(source, policy)
    with pytest.raises(XdevError, match="0x3e8, not aligned to 512"):
        pool.acquire(100)
    assert source.freed == [1000]
    assert pool.stats().reserved == pool.budget.reserved == 0


@pytest.mark.parametrize("rubbish", ["abc", 512.0, -512, 1 << 64, [512], b"\0"])
def test_what_is_no_address_is_named_and_costs_no_budget(rubbish, policy):
    source = Faulty(rubbish)
    pool = Pool(source, policy, limit=1 << 30)
    for _ in range(3):
        with pytest.raises(XdevError, match=r"returned .*, which is not an address"):
            pool.acquire(100)
    assert source.freed == []
    assert pool.stats().reserved == pool.budget.reserved == 0


class Driver(Faulty):
    """A source whose error has a cause, as a CUDA device's has."""

    def __init__(self):
        super().__init__(0)

    def allocate(self, nbytes, *order):  # noqa: ARG002
        raise MemoryError("the driver has none") from self._caught()

    def _caught(self):
        try:
            int("status 2")
        except ValueError as error:
            return error


def test_a_refusal_that_was_handled_keeps_nothing_alive(policy):
    """No frame of the failed call is in a cycle, which would hold our names."""
    pool = Pool(Driver(), policy)

    def fail():
        held = Driver()  # or any object
        with suppress(OutOfMemoryError):
            pool.acquire(100)
        return weakref.ref(held)

    gc.disable()
    try:
        assert fail()() is None
    finally:
        gc.enable()
