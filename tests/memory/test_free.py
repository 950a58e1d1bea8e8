"""What free() gives back, and what it leaves because something still uses it."""

import gc
import pickle
import types

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import xdev
from xdev import memory
from xdev.errors import InUseError

SHAPE = (200, 200)


class Subclass(np.ndarray):
    """NumPy makes the array itself the base of a view of another class."""


@pytest.mark.parametrize(
    "export",
    [
        memoryview,
        lambda x: memoryview(x)[10:],
        lambda x: as_strided(x, (3,), (8,)),
        lambda x: sliding_window_view(x, 3, axis=0),
        lambda x: as_strided(x, (3,), (8,))[1:],
        lambda x: x.ctypes,
        pickle.PickleBuffer,
        np.ma.masked_array,
        lambda x: np.ma.masked_array(x)[3:],
        lambda x: x.view(np.matrix),
        lambda x: x.view(np.recarray),
        lambda x: [x.view(Subclass)],
        lambda x: x.view(Subclass)[::2].T,
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


def test_a_strided_view_is_a_view():
    x = xdev.ones(SHAPE, device="cpu")
    view = as_strided(x, (3,), (8,))
    with pytest.raises(InUseError, match="is a view"):
        memory.free(view)
    assert (view == 1).all()


def test_names_and_containers_do_not_keep_an_array_from_being_freed():
    before = memory.allocated("cpu")
    x = xdev.ones(SHAPE, device="cpu")
    names = [x, {"x": x}, (x,), types.SimpleNamespace(x=x), lambda: x]
    memory.free(x)
    assert memory.allocated("cpu") == before
    assert names[0] is x


@pytest.mark.parametrize(
    "shape", [(100_000,), (0,), (), (2, 3, 4), (100, 1000), (1,) * 32]
)
@pytest.mark.parametrize("order", "CF")
def test_arrays_of_all_shapes_are_freed(shape, order):
    with memory.track():
        x = memory.host_array(shape, np.dtype("c16"), order)
        if x.size:
            before = memory.allocated("cpu")
            memory.free(x)
            assert memory.allocated("cpu") < before
            assert x.shape == shape
        else:  # there is no memory in it
            with pytest.raises(ValueError, match="pools"):
                memory.free(x)


def test_a_finalizer_may_free():
    before = memory.allocated("cpu")

    class Late:
        def __init__(self):
            self.array = xdev.ones(SHAPE, device="cpu")
            self.itself = self

        def __del__(self):
            memory.free(self.array)

    for _ in range(20):
        Late()
    gc.collect()
    assert memory.allocated("cpu") == before
