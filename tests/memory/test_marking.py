"""An array made on one stream and used by xdev on another is marked for it."""

import pytest
from running import add

import xdev
from xdev import memory
from xdev.device.streams import LiveStreams
from xdev.facade import backends, cuda as facade
from xdev.memory import Pool, arrays as memory_arrays
from xdev.testing import SimulatedDevice, SimulatedSource

cupy = pytest.importorskip("cupy")


@pytest.mark.parametrize("into", [False, True])
def test_a_call_of_cupys_on_another_stream_marks_its_arrays(
    monkeypatch, on_fake_memory, into
):
    device, live = SimulatedDevice(), LiveStreams()
    pool, other = Pool(SimulatedSource(device, 1 << 30)), device.stream()
    monkeypatch.setattr(cupy.cuda, "get_current_stream", device.current_stream)
    monkeypatch.setattr(backends, "result_shape", lambda _: (1000,))
    for module in (memory_arrays, facade):
        monkeypatch.setattr(module, "live_streams", live)
    library = facade.CuPyLibrary()
    library.functions["matmul"] = lambda *_, out=None: out
    with on_fake_memory(pool):
        arrays = [cupy.ndarray((1000,), "f4") for _ in range(2)]
    memory_arrays.mark_uses(arrays)  # on their own stream
    with other:
        function = library.bound("matmul", arrays[0])
        if into:  # which itself shows that there is another
            library.write("matmul", function, arrays[:1], arrays[1])
        else:
            memory_arrays.mark_uses([])
            library.bound("matmul", arrays[0])(*arrays)
    assert [pool.find(x.data.ptr).uses for x in arrays] == [{other.ptr}] * 2


CALLS = {
    "facade": lambda x, _: xdev.add(x, x),
    "out": lambda x, out: xdev.add(x, x, out=out),
    "ufunc": lambda x, out: add(x, 1.0, out=out),
    "fast ufunc": lambda x, out: add(x, x, out=out),
    "view": lambda x, _: xdev.add(xdev.flip(xdev.expand_dims(x, axis=0)), 1.0),
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
        both = how in ("out", "ufunc", "fast ufunc")
        used = (out,) if how == "copy" else (x, out) if both else (x,)
        for array in used:
            assert busy.ptr in pool.find(array.data.ptr).uses
    xdev.synchronize(cuda)
