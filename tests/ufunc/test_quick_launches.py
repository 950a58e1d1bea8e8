"""Calls on CuPy arrays that compiled code launches, and those that it leaves to Python.

The driver is a stand-in; the arrays, the tables and the machine code are real.
"""

import ctypes
import gc
import itertools
import weakref

import numpy as np
import pytest

from xdev import _optional
from xdev._c_functions import address_of
from xdev.compile import cupy_arrays, quick_call, quick_launch
from xdev.memory.native import cupy as native
from xdev.memory.native.front import Devices
from xdev.memory.pools import Pool
from xdev.memory.sources.host import HostSource
from xdev.memory.streams import live_streams
from xdev.ufunc import cuda_fast
from xdev.ufunc.vectorized import Vectorized

if not _optional.installed("cupy"):
    pytest.skip("needs CuPy: the group cuda", allow_module_level=True)

SHAPES = (), (1,), (700,), (7, 100), (2, 3, 4), (5, 1)


class InPythonError(Exception):
    """A call came to Python."""


def known(gpu, monkeypatch, name, *arrays, out=None):
    """Return a ufunc that knows such arrays, and whose other calls are errors."""
    f = gpu.ufunc(name)
    for _ in range(2):
        f(*arrays, out=out)

    def refuse(*_):
        raise InPythonError

    monkeypatch.setattr(f._cuda, "fast", refuse)
    return f


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("char", "behfdD")
def test_known_arrays_are_launched_without_python(gpu, monkeypatch, shape, char):
    x, y, out = (np.asarray(gpu.sample(shape, char, seed)) for seed in range(3))
    dx, dy, do = map(gpu.array, (x, y, out))
    f = known(gpu, monkeypatch, "add", dx, dy, out=do)
    for a, b in ((x, y), (y, y)):
        before = gpu.launches
        da, db = gpu.array(a), gpu.array(b)
        assert f(da, db, out=do) is do
        np.testing.assert_array_equal(out, a + b)
        out[...] = 0
        assert f(da, db, do) is do
        np.testing.assert_array_equal(out, a + b)
        made = f(da, db)
        assert type(made) is type(dx)
        assert made.dtype == x.dtype
        assert made.shape == shape
        np.testing.assert_array_equal(gpu.host(made), a + b)
        assert gpu.launches == before + 3


@pytest.mark.parametrize(("name", "nin"), [("same", 1), ("add", 2), ("chain", 3)])
def test_any_number_of_inputs(gpu, monkeypatch, name, nin):
    inputs = [gpu.sample(300, "d", seed) for seed in range(nin)]
    f = known(gpu, monkeypatch, name, *map(gpu.array, inputs))
    made = f(*map(gpu.array, inputs))
    np.testing.assert_array_equal(gpu.host(made), gpu.functions[name](*inputs))


NUMBERS = [
    *((2.5, char) for char in "fd"),
    *((3, char) for char in "bBhHlLfd"),
    (np.float64(7), "d"),
    *((np.float32(1.5), char) for char in "fd"),
]


@pytest.mark.parametrize(("number", "char"), NUMBERS)
def test_numbers_are_launched_without_python(gpu, monkeypatch, number, char):
    x = gpu.sample((30, 4), char)
    dx, do = gpu.array(x), gpu.array(np.zeros_like(x))
    for args in ((dx, number), (number, dx)):
        f = known(gpu, monkeypatch, "add", *args, out=do)
        for value in (number, number + 1):
            values = [value if each is number else each for each in args]
            expected = x + value
            assert f(*values, out=do) is do
            np.testing.assert_array_equal(gpu.host(do), expected)
            np.testing.assert_array_equal(gpu.host(f(*values)), expected)


def test_a_number_among_three(gpu, monkeypatch):
    x, y = (gpu.sample(300, "f", seed) for seed in range(2))
    f = known(gpu, monkeypatch, "chain", 2.0, gpu.array(x), gpu.array(y))
    found = f(3.0, gpu.array(x), gpu.array(y))
    np.testing.assert_array_equal(gpu.host(found), gpu.functions["chain"](3.0, x, y))


class Number(float):
    """No number that machine code converts: it may run Python."""


def test_other_numbers_are_left_to_python(gpu, monkeypatch):
    x = gpu.array(gpu.sample(300, "h"))
    f = known(gpu, monkeypatch, "add", x, 3)
    before = gpu.launches
    for other in (1 << 15, -(1 << 70), 3.0, True, np.int16(3), np.int64(3), "3", None):
        with pytest.raises(InPythonError):
            f(x, other)
        with pytest.raises(InPythonError):
            f(other, x)
    with pytest.raises(InPythonError):
        f(x, x)
    with pytest.raises(InPythonError):
        f(3, x)  # another kernel
    assert gpu.launches == before
    y = gpu.array(gpu.sample(300, "d"))
    for number in (Number(3.0), np.int8(3), True):
        g = known(gpu, monkeypatch, "add", y, number)
        with pytest.raises(InPythonError):
            g(y, number)


def test_the_dtypes_of_a_result_and_of_an_array_to_write_to_differ(gpu, monkeypatch):
    x, out = gpu.sample(300, "f"), np.zeros(300)
    dx, do = gpu.array(x), gpu.array(out)
    f = known(gpu, monkeypatch, "add", dx, dx, out=do)  # cast as it is written

    assert f(dx, dx, out=do) is do
    np.testing.assert_array_equal(out, x + x)
    with pytest.raises(InPythonError):
        f(dx, dx)  # of float32: not that launch


def test_whatever_differs_goes_to_python(gpu, monkeypatch):
    x = gpu.sample((30, 40), "f")
    dx, do = gpu.array(x), gpu.array(np.zeros_like(x))
    f = known(gpu, monkeypatch, "add", dx, dx, out=do)
    other = gpu.array(x.astype("d"))
    turned, flat = dx.T, dx.ravel()
    for args, out in [
        ((dx, other), do),
        ((other, dx), do),
        ((dx, dx), other),
        ((dx, turned), do),
        ((turned, turned), do),
        ((dx, dx), turned),
        ((flat, flat), do),
        ((dx[::2], dx[::2]), do[::2]),
        ((dx[:, 1:], dx[:, 1:]), do[:, 1:]),
        ((dx[:20], dx[:20]), do[:20]),
        ((dx, 2.0), do),
        ((2.0, dx), do),
    ]:
        with pytest.raises(InPythonError):
            f(*args, out=out)
    with pytest.raises(InPythonError):
        f(dx, dx, out=None)
    for wrong in ({"out": do, "where": True}, {"dtype": "f"}, {"casting": "unsafe"}):
        made = f(dx, dx, **wrong)  # the general way
        np.testing.assert_array_equal(gpu.host(made), x + x)
    with pytest.raises(TypeError):
        f(dx)
    with pytest.raises(TypeError):
        f(dx, out=do)
    with pytest.raises(TypeError):
        f(dx, dx, do, out=do)
    np.testing.assert_array_equal(f(x, x), x + x)  # NumPy's arrays are NumPy's


def test_what_overlaps_is_left_to_python(gpu, monkeypatch):
    memory = np.arange(200.0)
    x, out = gpu.array(memory[:100]), gpu.array(memory[100:])
    f = known(gpu, monkeypatch, "add", x, x, out=out)
    f(x, x, out=x)  # exactly there: read before it is written
    np.testing.assert_array_equal(memory[:100], 2 * np.arange(100.0))
    with pytest.raises(InPythonError):
        f(x, x, out=gpu.array(memory[1:101]))


def test_a_stream_that_is_new_is_left_to_python(gpu, monkeypatch):
    x = gpu.array(gpu.sample(50, "f"))
    f = known(gpu, monkeypatch, "add", x, x)
    stream = ctypes.c_longlong.in_dll(gpu._driver, "stream")
    monkeypatch.setattr(stream, "value", 77)
    before = gpu.launches
    with pytest.raises(InPythonError):
        f(x, x)
    assert gpu.launches == before


def test_what_an_allocation_raises_comes_once(gpu, monkeypatch):
    x = gpu.array(gpu.sample(50, "f"))
    f = known(gpu, monkeypatch, "add", x, x)
    asked = []

    def allocate(nbytes):
        asked.append(nbytes)
        raise KeyboardInterrupt

    with (
        _optional.cupy().cuda.using_allocator(allocate),
        pytest.raises(KeyboardInterrupt),
    ):
        f(x, x)
    assert asked == [200]


@pytest.fixture
def pool(monkeypatch):
    """Have CuPy served from a pool of host memory, by machine code alone."""
    zero = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: 0)  # the device and the stream
    address = address_of(zero)
    monkeypatch.setattr(native, "current_device_function", lambda: address)
    devices, made = Devices(1, address), Pool(HostSource())
    devices.open(0, made.stock.clients.make_front())

    def refuse(nbytes):
        raise InPythonError(nbytes)

    known = native.facts, quick_launch.function
    for cached in known:
        cached.cache_clear()
    quick_call.ask_first(Vectorized, quick_launch.function())
    with _optional.cupy().cuda.using_allocator(native.allocator(devices, refuse)):
        yield made
    for cached in known:
        cached.cache_clear()
    quick_call.ask_first(Vectorized, 0)
    cuda_fast._is_asked.cache_clear()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("char", "bfdD")
def test_results_lie_in_the_pool(gpu, monkeypatch, pool, shape, char):
    x, y = (np.asarray(gpu.sample(shape, char, seed)) for seed in range(2))
    dx, dy = gpu.array(x), gpu.array(y)
    out = gpu.array(np.zeros_like(x))
    f = known(gpu, monkeypatch, "add", dx, dy, out=out)
    with pytest.raises(InPythonError, match=f"^{x.nbytes}$"):
        f(dx, dy)  # the pool has no such block yet
    pool.stock_up(x.nbytes, 0)
    for _ in range(3):
        made = f(dx, dy)
        assert pool.stats().live == 1
        assert (made.shape, made.strides, made.dtype) == (shape, x.strides, x.dtype)
        assert made.data.mem.size == x.nbytes
        np.testing.assert_array_equal(gpu.host(made), x + y)
        del made
        assert pool.stats().live == 0


def test_nothing_is_kept_but_the_result(gpu, monkeypatch):
    x = gpu.array(gpu.sample(50, "f"))
    f = known(gpu, monkeypatch, "add", x, x)
    made = weakref.ref(f(x, x))
    assert made() is None
    out = gpu.array(np.zeros(50, "f"))
    result = weakref.ref(f(x, x, out=out))
    del out
    assert result() is None
    whole = weakref.ref(f)
    monkeypatch.undo()
    del f
    gc.collect()
    assert whole() is None


def test_the_newest_sizes_are_known(gpu, monkeypatch):
    f = gpu.ufunc("add")
    most = quick_launch.MOST_ROWS
    arrays = {n: gpu.array(gpu.sample(n, "f")) for n in range(1, 2 * most)}
    for n, _ in itertools.product(arrays, range(2)):
        f(arrays[n], arrays[n])

    def refuse(*_):
        raise InPythonError

    monkeypatch.setattr(f._cuda, "fast", refuse)
    for n, x in arrays.items():
        if n < most:
            with pytest.raises(InPythonError):
                f(x, x)
        else:
            np.testing.assert_array_equal(gpu.host(f(x, x)), 2 * gpu.host(x))


def test_a_second_stream_ends_it(gpu, monkeypatch):
    x = gpu.array(gpu.sample(50, "f"))
    f = known(gpu, monkeypatch, "add", x, x)
    f(x, x)
    for tell in live_streams.when_several[-1:]:
        tell()
    with pytest.raises(InPythonError):
        f(x, x)
    quick_call.ask_first(Vectorized, quick_launch.function())
    f(x, x)


def test_arrays_that_are_not_understood_are_pythons_business(gpu, monkeypatch):
    monkeypatch.setattr(cupy_arrays, "layout", lambda: None)
    quick_launch.function.cache_clear()
    cuda_fast._is_asked.cache_clear()
    quick_call.ask_first(Vectorized, 0)
    x = gpu.sample(50, "f")
    f, dx = gpu.ufunc("add"), gpu.array(x)
    for _ in range(3):
        np.testing.assert_array_equal(gpu.host(f(dx, dx)), x + x)
    quick_launch.function.cache_clear()
    cuda_fast._is_asked.cache_clear()


def test_rows_that_change_while_a_result_is_made(gpu):
    """As by a finalizer, or by another thread: its kernel would write too much."""
    x = gpu.array(gpu.sample(50, "d"))
    f, cupy = gpu.ufunc("add"), _optional.cupy()
    for _ in range(2):
        f(x, x)
    others = [gpu.array(np.ones(1000 + k)) for k in range(quick_launch.MOST_ROWS)]
    memory, asked = np.full(4096, 7.0), []

    def allocate(nbytes):
        asked.append(nbytes)
        if len(asked) == 1:
            for other in others:
                for _ in range(2):
                    f(other, other, out=other)
        unowned = cupy.cuda.UnownedMemory(memory.ctypes.data, memory.nbytes, memory, 0)
        return cupy.cuda.MemoryPointer(unowned, 0)

    with cupy.cuda.using_allocator(allocate):
        made = f(x, x)

    np.testing.assert_array_equal(memory[:50], 2 * gpu.host(x))
    assert (memory[50:] == 7).all()
    assert made.shape == (50,)
