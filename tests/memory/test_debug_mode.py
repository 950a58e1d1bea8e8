"""``XDEV_DEBUG=1`` in programs: arrays of every kind are guarded."""

from textwrap import dedent

import pytest
from memory_laws import process

POLICIES = ("split", "binned", "simple", "none")


PREAMBLE = """
import ctypes, random
from itertools import pairwise
import numpy as np, xdev
from xdev import memory
from xdev.errors import MemoryCorruptionError

def found():
    try:
        memory.check()
    except MemoryCorruptionError as error:
        text = str(error)
    else:
        text = ""
    memory.check()  # each is told once
    return text
"""


def run(program, **environment):
    done = process(PREAMBLE + dedent(program), XDEV_DEBUG="1", **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("policy", POLICIES)
def test_host_arrays_are_guarded_by_xdev_debug(policy):
    program = """
    x = xdev.empty(1001, dtype=xdev.float32)
    assert np.isnan(x).all()
    assert (xdev.zeros(100_000) == 0).all()
    x[:] = 1
    assert memory.check() > 0

    ctypes.memset(x.ctypes.data + x.nbytes, 0, 1)
    print(found())
    ctypes.memset(x.ctypes.data - 1, 0, 1)
    print(found())
    address = x.ctypes.data
    memory.free(x)
    ctypes.memset(address + 8, 0, 1)
    print(found())
    y = xdev.ones(10)
    ctypes.memset(y.ctypes.data + y.nbytes, 0, 1)
    """
    out, errors = run(program, XDEV_MEMORY_POOL=policy)
    past, before, after = out.splitlines()
    assert "0 B past the end of the 4,004 B block" in past
    assert "made at <string>:18" in past
    assert "1 B before the 4,004 B block" in before
    assert "8 B into the 4,004 B block" in after
    assert "made at <string>:18 and freed at <string>:29" in after
    assert errors.startswith("xdev: cpu: memory was written 0 B past the end of the 80")


def test_a_forked_child_has_guards_of_its_own():
    program = """
    import os
    x = xdev.ones(1000)
    y = xdev.ones(1000)
    del y
    child = os.fork()
    if child == 0:
        assert memory.check() == 0
        z = xdev.ones(1000)
        assert memory.check() > 0
        del z, x
        memory.reclaim()
        memory.check()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), memory.check() > 0)
    """
    assert run(program) == ("0 True\n", "")


LAWS = """
rng, pool, live = random.Random(5), memory.pool("cpu"), {}

def write(address):
    ctypes.memset(address, ctypes.c_uint8.from_address(address).value ^ 0x55, 1)

for _ in range(200):
    action = rng.choice("aaaadmbp")
    address = rng.choice(list(live)) if live else 0
    if action == "a":
        nbytes = rng.choice([0, rng.randrange(5000), rng.randrange(100_000)])
        block = pool.acquire(nbytes, rng.randrange(3))
        assert block.nbytes == max(1, nbytes)
        memory_of = ctypes.string_at(block.address, block.nbytes)
        assert memory_of == bytes([0xFF]) * block.nbytes  # NaN
        assert ctypes.string_at(block.address + block.nbytes, 64) == bytes([0xFD]) * 64
        ctypes.memset(block.address, 0, block.nbytes)
        live[block.address] = block
    elif address and action == "d":
        del live[address]
    elif address and action == "m":
        pool.state.mark(live[address].chunk, (rng.randrange(4),))
    elif address and action == "b":
        write(address - 1 - rng.randrange(64))
        assert "memory was written" in found()
    elif address and action == "p":
        block = live.pop(address)
        at = block.address + rng.randrange(block.nbytes)
        del block
        assert pool.stats().live == len(live)
        write(at)
        assert f"{at:#x}" in found()
    assert found() == ""
    spans = sorted((b.address, b.nbytes) for b in live.values())
    assert all(a + n + 64 <= b for (a, n), (b, _) in pairwise(spans))
block = None
live.clear()

# It waits for what came back after it; damage is raised by the next request.
address = pool.acquire(1000).address
others = [pool.acquire(1000) for _ in range(900)]
assert address not in {block.address for block in others}
others.clear()
pool.stats()
write(pool.acquire(1000).address + 1000)
pool.stats()
try:
    pool.acquire(10)
except MemoryCorruptionError as error:
    assert "past the end of the 1,000 B block" in str(error)
else:
    raise AssertionError
assert pool.stats().live == 0
for _ in range(1100):  # out of the quarantine
    pool.acquire(1000)
pool.stats()
write(address)
memory.reclaim(device="cpu")
assert "free memory was written" in found()
memory.reclaim(device="cpu")
assert memory.reserved("cpu", "host") == 0
"""


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_within_bounds_is_silent_and_all_else_is_found(policy):
    assert run(LAWS, XDEV_MEMORY_POOL=policy) == ("", "")


def test_what_numpy_dropped_is_guarded_too():
    program = """
    import contextlib

    with contextlib.suppress(xdev.ConfigurationError):  # without the compiled part
        memory.bridges.install("numpy")
    if memory.bridges.installed():
        x = np.ones(12_345)
        assert np.isnan(np.empty(20_000)).all()
        ctypes.memset(x.ctypes.data + x.nbytes, 0, 1)
        del x
        assert "0 B past the end of the 98,760 B block" in found()
    """
    assert run(program) == ("", "")


@pytest.mark.cuda
def test_device_memory_is_guarded(cuda):  # noqa: ARG001
    program = """
    import cupy

    x = xdev.empty(1001, dtype=xdev.float32, device="cuda")
    assert cupy.isnan(x).all()
    x[:] = 1
    y = (x + x).sum()
    assert float(y) == 2002
    assert memory.check() > 0
    outside = cupy.ndarray(
        (1,), "u1", cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(
            x.data.ptr + x.nbytes, 1, x), 0))
    outside.fill(0)
    print(found())
    address = x.data.ptr
    after = cupy.ndarray(
        (1,), "u1",
        cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(address + 8, 1, None), 0))
    del outside
    memory.free(x)
    memory.allocated("cuda")
    after.fill(0)
    print(found())
    for stream in [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]:
        with stream:
            for n in (10, 1000, 1_000_000):
                a = cupy.arange(n)
                assert int((a + a).sum()) == n * (n - 1)
    pinned = xdev.empty_pinned(1000)
    pinned[:] = 3
    assert memory.check() > 0
    """
    out, errors = run(program, XDEV_DEVICE="cuda")
    past, after = out.splitlines()
    assert "0 B past the end of the 4,004 B block" in past
    assert "8 B into the 4,004 B block" in after
    assert errors == ""
