"""The order between CUDA work and other libraries', with stand-ins for both."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from xdev import _optional
from xdev.device.streams import live_streams
from xdev.ufunc import cuda_operands, foreign
from xdev.ufunc.cuda_operands import Array

F4 = np.dtype("f4")


class DeviceArray(np.ndarray):
    """As CuPy's."""


class Cupy:
    """Streams and events as far as the order needs them; all is noted."""

    ndarray = DeviceArray

    def __init__(self):
        self.log = []
        stream = SimpleNamespace(ptr=0, synchronize=lambda: self.log.append("wait"))
        self.cuda = SimpleNamespace(
            get_current_stream=lambda: stream,
            Event=lambda **_: SimpleNamespace(ptr=70),
            runtime=SimpleNamespace(
                eventRecord=lambda event, on: self.log.append(("record", event, on)),
                streamWaitEvent=lambda on, event: self.log.append(("after", on, event)),
            ),
        )
        self.stream = stream

    def ascontiguousarray(self, x):
        self.log.append("copied" if not x.flags.c_contiguous else "as it is")
        return np.ascontiguousarray(x).view(DeviceArray)


@pytest.fixture
def cupy(monkeypatch):
    made = Cupy()
    monkeypatch.setattr(_optional, "cupy", lambda: made)
    monkeypatch.setattr(cuda_operands, "mark_uses", lambda _: None)
    return made


def array(*, stream=None, view=None):
    return Array("owner", 64, (3,), (4,), F4, stream=stream, view=view)


def test_a_librarys_stream_is_ordered_and_the_host_does_not_wait(cupy):
    with cuda_operands.ordered([array(stream=8, view="view"), array()]):
        cupy.log.append("launch")

    before = [("record", 70, 8), ("after", 0, 70)]
    after = [("record", 70, 0), ("after", 8, 70)]
    assert cupy.log == [*before, "launch", *after]


def test_a_library_without_a_stream_gets_its_array_back_when_all_is_done(cupy):
    with cuda_operands.ordered([array(view="view"), array()]):
        cupy.log.append("launch")

    assert cupy.log == ["launch", "wait"]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(), (3, 4)])
def test_jax_sees_results_that_are_computed_and_in_cs_order(
    cupy, monkeypatch, order, shape
):
    library = SimpleNamespace(
        dlpack=SimpleNamespace(from_dlpack=lambda x: cupy.log.append("imported") or x),
        device_put=lambda x, device, may_alias: (x, device, may_alias),
    )
    monkeypatch.setattr(_optional, "jax", lambda: library)
    values = np.arange(float(np.prod(shape))).reshape(shape).astype(F4, order)
    like = SimpleNamespace(devices=lambda: {"gpu:1"})
    # Only NumPy's own arrays lie in host memory.
    monkeypatch.setattr(foreign, "np", SimpleNamespace(ndarray=int, generic=int))

    found, *where = foreign.JaxAdapter().from_native(values.view(DeviceArray), like)

    np.testing.assert_array_equal(np.asarray(found), values)
    assert (found.shape, found.flags.c_contiguous, where) == (
        shape,
        True,
        ["gpu:1", True],
    )
    copied = order == "F" and shape != ()
    assert cupy.log == ["copied" if copied else "as it is", "wait", "imported"]


@pytest.fixture
def jax_array(cupy, monkeypatch):
    library = SimpleNamespace(core=SimpleNamespace(Tracer=int))
    monkeypatch.setattr(_optional, "jax", lambda: library)
    places = SimpleNamespace(place=lambda _: ("cuda", 1))
    monkeypatch.setattr(foreign, "natives", lambda _: places)
    cupy.cuda.Device = nullcontext
    cupy.from_dlpack = lambda x: cupy.log.append("read") or x
    where = SimpleNamespace(platform="gpu")
    return SimpleNamespace(
        devices=lambda: [where],
        dtype=F4,
        block_until_ready=lambda: cupy.log.append("ready"),
    )


def test_jax_arrays_are_ready_when_they_are_read_and_no_part_of_a_capture(
    cupy, jax_array, monkeypatch
):
    assert foreign.JaxAdapter().to_native(jax_array, "f") is jax_array
    assert cupy.log == ["ready", "read"]
    monkeypatch.setattr(live_streams, "captured", {cupy.stream.ptr})
    with pytest.raises(TypeError, match="no part in the order"):
        foreign.JaxAdapter().to_native(jax_array, "f")
    assert cupy.log == ["ready", "read"]
