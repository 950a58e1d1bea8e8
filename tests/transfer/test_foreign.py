"""Devices that name a library: ``to_device`` makes that library's arrays."""

import ml_dtypes
import numpy as np
import pytest
from running import lending, locked

import xdev
from xdev.errors import DeviceUnavailableError

DLPACK = "shape", "__dlpack__", "__dlpack_device__"


def only_dlpack(x):
    return lending(x, *DLPACK, "dtype")


def only_interface(x):
    """Return an array that NumPy does not know but by its own protocol."""
    return lending(x, "shape", "dtype", "__array_interface__")


def labelled(x, *more, **attributes):
    """Return one of devices and data types that only its library knows, as Warp's."""
    own = {"device": "its processor", "dtype": object}
    return lending(x, *DLPACK, *more, **own | attributes)


def old(x):
    """Return one that speaks DLPack as before its version 1, and NumPy's protocol."""

    def __dlpack__(*, stream=None):  # noqa: N807 - the method
        return x.__dlpack__(stream=stream)

    return labelled(x, "__array_interface__", __dlpack__=__dlpack__)


@pytest.mark.parametrize("library", ["torch", "array_api_strict", "dask", "jax"])
@pytest.mark.parametrize("copy", [None, True])
def test_the_devices_library_is_honoured(device, library, copy):
    pytest.importorskip(library)
    target = xdev.Device(str(device), library)
    if target.reason is not None:
        with pytest.raises(DeviceUnavailableError):
            xdev.to_device(np.ones(3, "float32"), target)
        return
    x = np.arange(6, dtype="float32").reshape(2, 3)

    there = xdev.to_device(x, target, copy=copy)

    where = xdev.device_of(there)
    assert (where, where.library) == (target, library)
    back = there.compute() if library == "dask" else there
    np.testing.assert_array_equal(xdev.to_numpy(back), x)
    assert xdev.to_device(there, where) is there
    with pytest.raises(ValueError, match="copy=False"):
        xdev.to_device(x, target, copy=False)
    if copy:
        x[:] = -1
        assert xdev.to_numpy(back)[0, 1] == 1


def test_structures_keep_to_the_library():
    torch = pytest.importorskip("torch")
    moved = xdev.adapt(xdev.Device("cpu", "torch"), [np.ones(2), {"a": np.zeros(1)}])
    assert isinstance(moved[0], torch.Tensor)
    assert isinstance(moved[1]["a"], torch.Tensor)


@pytest.mark.parametrize("take", ["asarray", "to_device"])
def test_what_can_be_written_is_taken_so(take):
    x = np.arange(5.0)

    shared = getattr(xdev, take)(old(x), device="cpu", copy=False)

    shared[0] = 9
    assert x[0] == 9


def test_what_lends_memory_is_an_output():
    x, memory = np.arange(5.0), np.zeros(5)
    out = old(memory)

    assert xdev.to_device(x, "cpu", out=out) is out
    assert memory.tolist() == [0, 1, 2, 3, 4]
    assert xdev.to_numpy(xdev.asarray(x + 1, device="fake"), out=out) is out
    assert memory.tolist() == [1, 2, 3, 4, 5]
    out.dtype = memory.dtype
    assert xdev.random.default_rng(7, "cpu").random(out=out) is out
    assert memory.tolist() == xdev.random.default_rng(7, "cpu").random(5).tolist()
    closed = old(locked(memory))
    closed.dtype = memory.dtype
    for write in (
        lambda: xdev.to_numpy(x, out=closed),
        lambda: xdev.random.default_rng(7, "cpu").random(out=closed),
    ):
        with pytest.raises(ValueError, match="out= is read-only"):
            write()
    with pytest.raises(ValueError, match=r"shape \(5,\) and dtype float64"):
        xdev.to_numpy(np.ones(3), out=out)


@pytest.mark.parametrize("exporter", [only_dlpack, only_interface, labelled])
@pytest.mark.parametrize("target", ["cpu", "fake"])
@pytest.mark.parametrize("copy", [None, True])
def test_exporters_by_one_protocol_are_moved(exporter, target, copy):
    x = np.arange(5.0)

    there = xdev.to_device(exporter(x), target, copy=copy)

    assert xdev.device_of(there) == target
    assert there.dtype == x.dtype
    np.testing.assert_array_equal(xdev.to_numpy(there), x)


@pytest.mark.parametrize("library", ["torch", "jax"])
@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("target", ["cpu", "fake"])
def test_bfloat16_passes_between_libraries(library, target, copy):
    pytest.importorskip(library)
    values = np.arange(6).reshape(2, 3).T.astype(ml_dtypes.bfloat16)
    there = xdev.to_device(values, xdev.Device("cpu", library))
    assert xdev.device_of(there).library == library

    back = xdev.to_device(there, target, copy=copy)

    assert xdev.device_of(back) == target
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(xdev.to_numpy(back), values)
    with pytest.raises(ValueError, match=f"from cpu to {target}"):
        xdev.to_device(there, target, copy=False)


@pytest.mark.parametrize("library", ["torch", "array_api_strict", "jax"])
def test_a_mask_is_not_lost(library):
    pytest.importorskip(library)
    x = np.ma.masked_less(np.arange(4), 2)
    with pytest.raises(TypeError, match=r"x\.filled"):
        xdev.to_device(x, xdev.Device("cpu", library))


def test_dasks_chunks_keep_a_mask():
    pytest.importorskip("dask.array")
    x = np.ma.masked_less(np.arange(4), 2)
    there = xdev.to_device(x, xdev.Device("cpu", "dask"))
    assert there.compute().mask.tolist() == x.mask.tolist()
