"""An array made on one stream and used by xdev on another stays until that is done.

Without a driver: CuPy's arrays on simulated memory, and functions that queue work on
the simulated device in place of kernels. With one: the same promise for real.
"""

import pytest

import xdev
from xdev import memory
from xdev.device import Device
from xdev.facade import backends, cuda as facade
from xdev.memory import Pool, arrays as memory_arrays, registry
from xdev.testing import SimulatedDevice, SimulatedSource

cupy = pytest.importorskip("cupy")
SHAPE = (1000,)


class Bench:
    """A device, CuPy on its memory, and a facade whose ``add`` queues work on it."""

    def __init__(self, monkeypatch):
        from xdev.memory.bridges.cupy import device_allocator

        self.device = SimulatedDevice()
        self.source = SimulatedSource(self.device, 1 << 30)
        self.pool = Pool(self.source)
        self.tenants = {}
        current = self.device.current_stream
        self.allocate = device_allocator(self.pool.take, current)
        live = self.source.streams
        monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda *_: current())
        monkeypatch.setattr(memory_arrays, "live_streams", live)
        monkeypatch.setattr(facade, "live_streams", live)
        held = {(Device("fake"), "device"): self.pool}
        monkeypatch.setattr(registry, "_pools", held)
        self.library = facade.CuPyLibrary()
        self.library.functions["add"] = self._add
        monkeypatch.setattr(backends, "result_shape", lambda _: SHAPE)

    def _add(self, *arrays, out=None):
        out = self.array() if out is None else out
        for x in (*arrays, out):
            self.use(x)
        return out

    def array(self):
        with cupy.cuda.using_allocator(self.allocate):
            x = cupy.ndarray(SHAPE, "f4")
        self.tenants[x.data.ptr] = self.device.tenant(x.data.ptr, 4096)
        self.use(x)
        return x

    def use(self, x):
        self.tenants[x.data.ptr].use(self.device.current_stream(), seconds=1.0)

    def add(self, *arrays, out=None):
        function = self.library.bound("add", arrays[0])
        if out is None:
            return function(*arrays)
        return self.library.write("add", function, list(arrays), out)


@pytest.fixture
def bench(monkeypatch):
    return Bench(monkeypatch)


def used_and_dropped(bench, call):
    """Use an array of one stream on another, drop it, and use its stream again."""
    other = bench.device.stream()
    x = bench.array()
    other.wait_event(bench.device.null.record())
    with other:
        result = call(x)
    del x
    after = [bench.array() for _ in range(3)]
    del result, after


@pytest.mark.parametrize("into", [False, True])
def test_a_call_on_another_stream_keeps_its_arrays(bench, into):
    for _ in range(3):  # the first shows the library that there are several
        used_and_dropped(bench, lambda x: bench.add(x, out=x if into else None))
    assert bench.device.hazards == []
    assert bench.pool.stats().events >= 3


@xdev.vectorize
def plus(a, b):
    return a + b


CALLS = {
    "facade": lambda x, _: xdev.add(x, x),
    "out": lambda x, out: xdev.add(x, x, out=out),
    "ufunc": lambda x, out: plus(x, 1.0, out=out),
    "fast ufunc": lambda x, out: plus(x, x, out=out),
    "copy": lambda x, out: xdev.to_device(x, "cuda", out=out, non_blocking=True),
}


@pytest.mark.cuda
@pytest.mark.parametrize("how", CALLS)
def test_blocks_used_on_another_stream_are_marked(cuda, how):
    pool, busy = memory.pool(cuda), cupy.cuda.Stream(non_blocking=True)

    def arrays():
        return [xdev.ones(100_000, dtype=xdev.float32, device=cuda) for _ in range(2)]

    for x, out in (arrays(), arrays()):  # the second time on the quickest way
        busy.wait_event(cupy.cuda.Stream.null.record())
        with busy:
            CALLS[how](x, out)
        used = (x,) if how == "facade" else (out,) if how == "copy" else (x, out)
        for array in used:
            assert busy.ptr in pool.find(array.data.ptr).uses
    xdev.synchronize(cuda)
