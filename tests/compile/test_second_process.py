"""What one process compiled, the next one runs without a compiler."""

import numpy as np
import pytest

import xdev
from xdev import _config, _optional

CUDA = all(map(_optional.installed, ("cupy", "numba_cuda")))
needs_cuda = pytest.mark.skipif(
    not CUDA, reason="needs CuPy and numba-cuda: the group cuda"
)
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

def g(x):
    return math.gamma(x) + math.erf(x)
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
kernels = []

def kernel(*cubin):
    kernels.append(cubin)
    return SimpleNamespace(handle=len(cubin[0]))

launch.Kernel = kernel
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
print(kernels)
"""

ON_THE_CPU = """
import sys
import numpy as np
import xdev, function

before = set(sys.modules)
x = np.ones(1000, "f4")
result = xdev.vectorize(function.f)(x, x, x)
assert result.dtype == x.dtype
print(*(set(sys.modules) - before))
print(result.tobytes().hex())
"""


@pytest.fixture
def lines(tmp_path, run):
    """Return the lines that a program prints, with a cache of the test's own."""
    (tmp_path / "function.py").write_text(FUNCTION)
    places = {"XDEV_CACHE_DIR": tmp_path / "cache", "PYTHONPATH": tmp_path}
    return lambda program: run(program, **places).splitlines()


@pytest.mark.parametrize(
    ("program", "rooms"),
    [pytest.param(ON_CUDA, "cuda", marks=needs_cuda), (ON_THE_CPU, "cpu")],
    ids=["cuda", "cpu"],
)
def test_a_kept_function_is_the_same_and_needs_no_compiler(lines, program, rooms):
    *_, first, made = lines(program)
    second, *_, later, kept = lines(program) * 2
    first, second, later = (set(line.split()) for line in (first, second, later))

    assert kept == made
    assert {"numba", "llvmlite"} <= first
    assert "numba" not in later
    assert ("llvmlite" in later) == (rooms == "cpu")  # where LLVM loads what is kept
    own = {name for name in second if name.startswith("xdev.")}
    assert own <= first
    assert len(own) <= MOST
    assert {name for name in ("cpu", "cuda") if f"xdev.ufunc.{name}" in own} == {rooms}


RANDOM = """
import sys
import numpy as np
import xdev

rng = xdev.random.default_rng(7, device="cpu")
chances = [0.1, 0.2, 0.7]
drawn = rng.choice(3, 9, p=chances), rng.choice(3, 2, replace=False, p=chances)
drawn += rng.integers(0, np.arange(1, 10)), rng.normal(size=3)
print(*(x.tobytes().hex() for x in drawn))
print("numba" in sys.modules)
"""


def test_random_numbers_need_no_numba_the_second_time(lines):
    drawn, compiled = lines(RANDOM)

    assert compiled == "True"
    assert lines(RANDOM) == [drawn, "False"]


OF_NUMBAS_LIBRARY = """
import math
import numpy as np
import xdev, function

x = np.linspace(1, 5, 9)
expected = [math.gamma(v) + math.erf(v) for v in x]
assert np.allclose(xdev.vectorize(function.g)(x), expected, rtol=1e-13)
"""


def test_a_function_of_numbas_library_is_found_again(lines):
    """`gamma` is in no C library by that name: Numba brings what the code calls."""
    for _ in range(2):
        lines(OF_NUMBAS_LIBRARY)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path)
    return tmp_path


def scaled(x):
    return x * 3


def test_dtypes_with_and_without_source_do_not_mix(cache):
    """Literals are weak only where their source is known."""
    x = np.ones(3, np.float32)
    assert xdev.vectorize(scaled)(x).dtype == np.float32
    namespace = {}
    exec("def scaled(x): return x * 3", namespace)  # noqa: S102

    xdev.vectorize(namespace["scaled"])(x)

    assert len(list((cache / "typings").iterdir())) == 1
