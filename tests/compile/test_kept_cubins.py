"""Cubins on disk: made anew whenever a part of the compiler is another."""

import pytest

from xdev import _optional
from xdev.compile import cubins, digests

if not all(map(_optional.installed, ("cupy", "numba_cuda"))):
    pytest.skip("needs numba-cuda and CuPy: the group cuda", allow_module_level=True)

MADE = b"\x7fELF\n\x00code", "_Z6kernelv"


@pytest.mark.usefixtures("no_disk_cache")
def test_whatever_a_cubin_depends_on_compiles_it_anew(monkeypatch):
    def is_compiled(digest="digest", parts=("ff->f", (9, 0))):
        calls = []
        make = lambda: calls.append(1) or MADE  # noqa: E731
        assert cubins.load_or_compile(digest, parts, "f", make) == MADE
        return bool(calls)

    others = {"digest": "other"}, {"parts": ("ff->f", (8, 0))}
    assert [is_compiled(**each) for each in ({}, {}, *others)] == [
        True,
        False,
        True,
        True,
    ]
    assert is_compiled(digest=None)
    assert is_compiled(digest=None)
    versions = cubins.installed()
    for part in versions:
        with monkeypatch.context() as patch:
            patch.setattr(
                cubins, "installed", lambda part=part: versions | {part: "99"}
            )
            assert is_compiled()
    monkeypatch.setattr(digests, "environment", lambda: "another xdev")
    assert is_compiled()


MOST = 80  # modules of ours: each takes a process 0.2 ms

FUNCTION = """
import math
import xdev

SCALE = 2.0

@xdev.vectorize
def shifted(x):
    return x + SCALE

def f(a, x, y):
    return 0.5 * a * shifted(x) + y * 3 - math.sin(x)
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
from xdev.ufunc import cuda

count = []
called = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 11)
called = called(lambda *_: count.append(1) or 0)
stream = ctypes.CFUNCTYPE(ctypes.c_longlong)(lambda: 0)
address = lambda function: ctypes.cast(function, ctypes.c_void_p).value
addresses = address(called), address(stream), 0, 0
native.calls.connect(*addresses, cupy.ndarray, array_maker(), print, False)
launch.capability = lambda _: (9, 0)
kernels = []

def kernel(*cubin):
    kernels.append(cubin)
    return SimpleNamespace(handle=len(cubin[0]))

launch.Kernel = kernel
cuda.BACKEND.count = lambda: 1
cupy.cuda.runtime.setDevice = lambda _: None
cuda.require = lambda: native.module("pool")  # what the bridge into CuPy loads
for name, module in list(sys.modules.items()):
    if name.startswith("xdev.ufunc.cuda") and hasattr(module, "ordered"):
        module.ordered = lambda _: nullcontext(0)  # streams of other owners
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
print(kernels)
"""


def test_a_kept_function_is_the_same_and_needs_no_compiler(tmp_path, run):
    (tmp_path / "function.py").write_text(FUNCTION)
    places = {"XDEV_CACHE_DIR": tmp_path / "cache", "PYTHONPATH": tmp_path}
    (first, made), (later, kept) = (
        run(ON_CUDA, **places).splitlines() for _ in range(2)
    )
    first, later = set(first.split()), set(later.split())

    assert kept == made
    assert {"numba", "llvmlite"} <= first
    assert not {"numba", "llvmlite"} & later
    own = {name for name in later if name.startswith("xdev.")}
    assert own <= first
    assert len(own) <= MOST
    assert "xdev.ufunc.cpu" not in own
