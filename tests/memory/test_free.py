"""What free() gives back, and what it leaves because something still uses it."""

import gc
import pickle
import threading
import types

import numpy as np
import pytest
from memory_laws import USES
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from running import within

import xdev
from xdev import memory
from xdev.errors import InUseError, UseAfterFreeError

SHAPE = (200, 200)


class Subclass(np.ndarray):
    """NumPy makes the array itself the base of a view of another class."""


@pytest.mark.parametrize(
    "export",
    [
        memoryview,
        lambda x: as_strided(x, (3,), (8,)),
        lambda x: sliding_window_view(x, 3, axis=0),
        lambda x: x.ctypes,
        pickle.PickleBuffer,
        np.ma.masked_array,
        lambda x: x.view(np.matrix),
        lambda x: [x.view(Subclass)],
    ],
)
def test_exported_memory_is_in_use(export):
    x = xdev.ones(SHAPE, device="cpu")
    exported = export(x)
    names = [x, {"x": x}]
    with pytest.raises(InUseError, match="still use"):
        memory.free(x)
    del exported
    gc.collect()
    memory.free(x)
    assert names[0] is x


# -- what is not the pool's -----------------------------------------------------------


OWN = {
    "small": lambda: np.ones(10),
    "strided view": lambda: np.ones((9, 9))[::2, ::3].T,
    "broadcast": lambda: np.broadcast_to(1.0, (3, 4)),
    "0-d": lambda: np.array(1.0),
    "empty": lambda: np.ones((0, 3)),
    "no bytes": lambda: np.zeros(3, "V0"),
    "read-only": lambda: np.frombuffer(bytes(80)),
    "structured": lambda: np.zeros(3, "f8,i4"),
    "text": lambda: np.array(["a", "bcd"]),
    "objects": lambda: np.array([None, "x"], object),
    "masked": lambda: np.ma.masked_array([1.0, 2.0], [True, False]),
    "records": lambda: np.rec.array([(1, 2.0)]),
}


@pytest.mark.parametrize("kind", OWN)
def test_of_numpys_own_arrays_nothing_goes_back_and_they_are_freed(kind):
    x = OWN[kind]()
    view, held, before = x[...], {"x": x}, memory.allocated("cpu")
    expected = repr(np.array(view))

    assert memory.free(x) == 0

    assert memory.allocated("cpu") == before
    assert held["x"] is x
    assert repr(np.array(view)) == expected
    for use in (memory.free, xdev.to_numpy, xdev.device_of):
        with pytest.raises(UseAfterFreeError, match="freed before"):
            use(x)
    if kind != "objects":
        with pytest.raises(UseAfterFreeError):
            xdev.reshape(x, (-1,))
    memory.free(view)


def test_a_scalar_is_freed_as_often_as_one_likes():
    x = xdev.sum(xdev.ones(3, device="cpu"))
    assert memory.free(x) == memory.free(x) == 0
    assert x == 3


def test_a_pools_memory_in_a_view_of_numpys_own_is_in_use():
    x = xdev.ones(SHAPE, device="cpu")
    for view in (
        np.asarray(memoryview(x)),
        x.view(Subclass),
        np.from_dlpack(x),
        as_strided(x, (3,), (8,)),
    ):
        with pytest.raises(InUseError, match="is a view"):
            memory.free(view)


@pytest.mark.parametrize("shape", [(), (0,), (200, 200)])
@pytest.mark.parametrize("how", ["made", "computed", "copied", "from the host"])
def test_a_program_that_frees_runs_and_errs_alike_on_every_device(device, shape, how):
    ones = xdev.ones(shape, dtype=xdev.float32, device=device)
    x = {
        "made": lambda: ones,
        "computed": lambda: xdev.asarray(xdev.add(ones, ones)),
        "copied": lambda: xdev.to_device(ones, device, copy=True),
        "from the host": lambda: xdev.asarray(np.ones(shape, "f4"), device=device),
    }[how]()
    before = memory.allocated(device)

    nbytes = memory.free(x)

    assert memory.allocated(device) == before - nbytes
    assert x.shape == shape
    own = xdev.sum, lambda x: xdev.add(x, x), lambda x: xdev.add(ones, ones, out=x)
    for use in (*USES, *own):
        with pytest.raises(UseAfterFreeError):
            use(x)


def test_views_of_a_pools_memory_are_in_use_on_every_device(device):
    x = xdev.ones(SHAPE, device=device)
    for view in (x[1:], x[:], x.T, x.reshape(-1)):
        with pytest.raises(InUseError, match="is a view"):
            memory.free(view)
        with pytest.raises(InUseError, match="still use"):
            memory.free(x)
    del view
    assert memory.free(x) > 0


def test_a_refusal_that_is_kept_is_no_view(device):
    x = xdev.ones(SHAPE, device=device)
    view = x[1:]
    with pytest.raises(InUseError) as kept:
        memory.free(x)
    del view
    assert memory.free(x) > 0
    assert kept.value.__traceback__ is not None


def test_a_list_of_freed_arrays_makes_none():
    x = xdev.ones(3, device="cpu")
    memory.free(x)
    with pytest.raises(UseAfterFreeError, match=r"^xdev\.asarray"):
        xdev.asarray([x, x])


FLOAT = np.dtype("f4")


def array():
    return memory.host_array((100_000,), FLOAT)


@pytest.mark.parametrize("x", ["text", None, [np.ones(3)], np.ndarray])
def test_what_is_no_array_is_neither_freed_nor_marked(x):
    with pytest.raises(TypeError, match="x is not an array but"):
        memory.free(x)
    with pytest.raises(ValueError, match="x is not an array but"):
        memory.record_stream(x, 7)


def test_of_several_threads_one_frees():
    outcomes = []
    for _ in range(50):
        x, start = array(), threading.Barrier(3)

        def release(x=x, start=start):
            start.wait()
            try:
                memory.free(x)
            except UseAfterFreeError:
                return "refused"
            return "freed"

        outcomes += within(60, [release] * 3)
    assert outcomes.count("freed") == 50
    assert outcomes.count("refused") == 100


def test_record_stream_keeps_a_block_until_it_is_polled():
    x = array()
    before = memory.allocated("cpu")
    for stream in (7, np.int64(7), xdev.Stream("cpu")):
        memory.record_stream(x[10:], stream)
    del x
    assert memory.allocated("cpu") < before
    memory.record_stream(np.empty(10), xdev.Stream("cpu"))  # its work is done
    with pytest.raises(ValueError, match=r"pools.*keep it until stream\.synchronize"):
        memory.record_stream(np.empty(100_000), 7)


@pytest.mark.parametrize("device", ["cpu", "fake"])
def test_record_stream_of_what_is_no_stream_is_refused(device):
    x = xdev.ones(100_000, device=device)
    for stream in ("x", None, 1.5, types.SimpleNamespace(), -1, 1 << 70):
        error = ValueError if isinstance(stream, int) else TypeError
        with pytest.raises(error, match=r"stream.*use an int such as stream\.ptr"):
            memory.record_stream(x, stream)


@pytest.mark.cuda
def test_cupy_arrays_are_freed_by_the_same_rules(cuda):  # noqa: ARG001
    import cupy

    assert "cupy" in memory.bridges.installed()
    before = memory.allocated("cuda")
    x = cupy.empty(100_000, "f4")
    y = x[1:]
    for in_use in (x, y):
        with pytest.raises(InUseError):
            memory.free(in_use)
    del y, in_use
    memory.record_stream(x, cupy.cuda.Stream())
    memory.free(x)
    assert memory.allocated("cuda") == before
    with pytest.raises(UseAfterFreeError):
        memory.free(x)
    del x
    assert memory.allocated("cuda") == before
