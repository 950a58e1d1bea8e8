"""What a process loads for a function that an earlier one compiled."""

import os
import subprocess
import sys

import pytest

from xdev import _optional

CUDA = all(map(_optional.installed, ("cupy", "numba_cuda")))
MOST = 80  # modules of ours: each takes a process 0.2 ms

FUNCTION = """
import math

def f(a, x, y):
    return 0.5 * a * x + y * 3 - math.sin(x)
"""

# All is real, the cubin too, but for the driver: a launch is counted. The memory is the
# host's.
ON_CUDA = """
import ctypes, sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import xdev, function
import cupy

before = set(sys.modules)
f = xdev.vectorize(function.f)

from xdev import native
from xdev.compile import launch
from xdev.memory.arrays import array_maker
from xdev.ufunc import cuda, cuda_streams

count = []
called = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 11)
called = called(lambda *_: count.append(1) or 0)
stream = ctypes.CFUNCTYPE(ctypes.c_longlong)(lambda: 0)
address = lambda function: ctypes.cast(function, ctypes.c_void_p).value
addresses = address(called), address(stream), 0, 0
native.calls.connect(*addresses, cupy.ndarray, array_maker(), print, False)
launch.capability = lambda _: (9, 0)
launch.Kernel = lambda cubin, name: SimpleNamespace(handle=len(cubin))
cuda.BACKEND.count = lambda: 1
cupy.cuda.runtime.setDevice = lambda _: None
cuda.require = lambda: native.module("pool")  # what the bridge into CuPy loads
cuda_streams.ordered = lambda _: nullcontext(0)
cupy.cuda.runtime.getDevice = lambda: 0
memory = []

def allocate(nbytes):
    memory.append(np.zeros(max(nbytes, 1), np.uint8))
    address = memory[-1].ctypes.data
    unowned = cupy.cuda.UnownedMemory(address, nbytes, memory[-1], 0)
    return cupy.cuda.MemoryPointer(unowned, 0)

with cupy.cuda.using_allocator(allocate):
    x = cupy.ndarray((1000,), "f4")
    for number in 1, 2:
        assert f(x, x, x).shape == x.shape
        assert len(count) == number
        print(*(set(sys.modules) - before))
"""

ON_THE_CPU = """
import sys
import numpy as np
import xdev, function

before = set(sys.modules)
x = np.ones(1000, "f4")
assert xdev.vectorize(function.f)(x, x, x).dtype == x.dtype
print(*(set(sys.modules) - before))
"""


def loaded(program, folder):
    """Return the modules that a program says it loaded, in a process of its own.

    A set for each of its calls: what was loaded by then.
    """
    (folder / "function.py").write_text(FUNCTION)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "XDEV_CACHE_DIR": str(folder / "cache"),
            "PYTHONPATH": str(folder),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [set(line.split()) for line in done.stdout.splitlines()]


needs_cuda = pytest.mark.skipif(
    not CUDA, reason="needs CuPy and numba-cuda: the group cuda"
)


@pytest.mark.parametrize(
    ("program", "rooms"),
    [
        pytest.param(ON_CUDA, "cuda", marks=needs_cuda),
        (ON_THE_CPU, "cpu"),
    ],
    ids=["cuda", "cpu"],
)
def test_a_kept_function_needs_no_compiler(tmp_path, program, rooms):
    first = loaded(program, tmp_path)[-1]
    second, *_, later = loaded(program, tmp_path) * 2

    assert {"numba", "llvmlite"} <= first
    assert "numba" not in later
    assert ("llvmlite" in later) == (rooms == "cpu")  # where LLVM loads what is kept
    own = {name for name in second if name.startswith("xdev.")}
    assert own <= first
    assert len(own) <= MOST
    assert {name for name in ("cpu", "cuda") if f"xdev.ufunc.{name}" in own} == {rooms}
