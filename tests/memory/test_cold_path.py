"""What the pool does does not grow with what is free: bytecodes are counted."""

import sys

import pytest

from xdev.memory import Pool
from xdev.testing import FakeSource

KIB, MIB = 1 << 10, 1 << 20
FEW, MANY = 100, 5_000


def bytecodes(call):
    """How many bytecodes a call runs, its callees included."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def fragmented(n):
    """A pool with n free blocks of n sizes between live ones, which are returned."""
    pool = Pool(FakeSource(1 << 50))
    blocks = [pool.acquire(16 * MIB + KIB * number) for number in range(2 * n)]
    kept = blocks[1::2]
    del blocks
    pool.reclaim(0)
    return pool, kept


@pytest.fixture(scope="module")
def pools():
    return {n: fragmented(n) for n in (FEW, MANY)}


#: The second number tells the calls apart: none is served by what the last one dropped.
STEPS = {
    "a larger block": lambda pool, k: pool.acquire(16 * MIB + KIB * (9 + 2 * k)),
    "another stream's": lambda pool, k: pool.acquire(16 * MIB + KIB * k, 1 + k),
    "what nothing holds": lambda pool, k: pool.acquire((100 + k) * MIB),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_takes_no_longer_with_more_that_is_free(step, pools):
    def run(n):
        pool, _ = pools[n]
        for k in range(2):  # the first time sets up, Python's own counting too
            pool.reclaim(0)
            count = bytecodes(lambda k=k: STEPS[step](pool, k))
        return count

    few, many = run(FEW), run(MANY)

    assert few > 10
    assert many <= 2 * few
