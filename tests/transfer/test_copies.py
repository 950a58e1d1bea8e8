import ctypes
from contextlib import nullcontext

import numpy as np
import pytest

import xdev

DTYPES = ["bool", "int8", "uint16", "int64", "float16", "float32", "float64"]
DTYPES += ["complex64", "complex128"]
KIB = 1 << 10


def values(shape=(4, 6), dtype="float32"):
    """Random values of a dtype: zeros would hide what was not copied."""
    rng = np.random.default_rng(7)
    return (rng.standard_normal(shape) * 50).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_there_and_back(device, dtype):
    x = values(dtype=dtype)

    there = xdev.to_device(x, device)
    back = xdev.to_numpy(there)

    assert xdev.device_of(there) == device
    assert back.dtype == x.dtype
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[::2],
        lambda x: x[:, ::-1],
        lambda x: x.T,
        np.asfortranarray,
        lambda x: x[:0],
        lambda x: x[1, 2],
        lambda x: x.astype(">f4"),
        lambda x: np.broadcast_to(x[0], (3, 6)),
    ],
    ids=["step", "reversed", "T", "F", "size 0", "0-d", "byte-swapped", "broadcast"],
)
def test_any_layout_arrives_right(device, view):
    x = np.asarray(view(values()))
    x.flags.writeable = False

    there = xdev.to_device(x, device)

    np.testing.assert_array_equal(xdev.to_numpy(there), x)


def test_read_only_sources_arrive(device):
    x = values()
    x.flags.writeable = False

    np.testing.assert_array_equal(xdev.to_numpy(xdev.to_device(x, device)), x)


def test_what_is_there_comes_back_itself_and_a_copy_shares_nothing(device):
    there = xdev.to_device(values(), device, copy=True)

    assert xdev.to_device(there, device) is there
    assert xdev.to_device(there, device, copy=False) is there
    again = xdev.to_device(there, device, copy=True)
    np.testing.assert_array_equal(xdev.to_numpy(again), values())
    again[0] = 0
    np.testing.assert_array_equal(xdev.to_numpy(there), values())


def test_copy_false_refuses_a_copy():
    with pytest.raises(ValueError, match="copy=False, but only a copy"):
        xdev.to_device(values(), "fake", copy=False)


def test_out_is_written_and_returned(device):
    x = values()
    out = xdev.zeros(x.shape, dtype=xdev.float32, device=device)
    host = np.zeros_like(x)

    assert xdev.to_device(x, device, out=out) is out
    assert xdev.to_numpy(out, out=host) is host
    np.testing.assert_array_equal(host, x)


def test_out_may_have_strides(device):
    x = values()
    base = xdev.zeros((4, 12), dtype=xdev.float32, device=device)
    host = np.zeros((4, 12), dtype="float32")

    xdev.to_device(x, device, out=base[:, ::2])
    xdev.to_numpy(base[:, ::2], out=host[:, 1::2])

    np.testing.assert_array_equal(host[:, 1::2], x)
    assert not host[:, ::2].any()
    assert not xdev.to_numpy(base)[:, 1::2].any()


@pytest.mark.parametrize(
    ("out", "error", "way"),
    [
        (np.zeros((4, 5), "float32"), ValueError, "empty_like"),
        (np.zeros((4, 6), "int32"), ValueError, "empty_like"),
        (np.broadcast_to(np.float32(1), (4, 6)), ValueError, "read-only"),
    ],
    ids=["shape", "dtype", "read-only"],
)
def test_a_wrong_out_is_refused_untouched(out, error, way):
    before = out.copy()

    with pytest.raises(error, match=way):
        xdev.to_numpy(values(), out=out)

    np.testing.assert_array_equal(out, before)


def test_an_out_of_another_device_is_refused():
    with pytest.raises(xdev.DeviceMismatchError, match="out= is on cpu, but fake:0"):
        xdev.to_device(values(), "fake", out=np.zeros((4, 6), "float32"))


@pytest.mark.parametrize("thing", [[1, 2], "text", 3, None])
def test_what_is_no_array_is_refused(thing):
    with pytest.raises(TypeError, match=r"x is not an array but .*: make one with"):
        xdev.to_device(thing, "cpu")


@pytest.mark.parametrize("kind", [np.float64, np.ndarray, list])
def test_classes_are_no_arrays(kind):
    text = f"x is not an array but the class {kind.__name__}: pass an object of it$"
    for move in (xdev.to_numpy, lambda x: xdev.to_device(x, "fake")):
        with pytest.raises(TypeError, match=text):
            move(kind)


def test_buffers_are_arrays():
    buffer = (ctypes.c_float * 3)(1, 2, 3)

    assert xdev.to_numpy(buffer).tolist() == [1, 2, 3]
    assert xdev.to_numpy(bytearray(b"ab")).tolist() == [97, 98]
    x = values()
    for exporter in memoryview(x), x.view(type("Subclass", (np.ndarray,), {})):
        np.testing.assert_array_equal(
            xdev.to_numpy(xdev.to_device(exporter, "fake")), x
        )


@pytest.mark.parametrize(
    "nbytes",
    [4, 64 * KIB - 4, 64 * KIB, 64 * KIB + 4, 1024 * KIB, 1024 * KIB + 4, 9000 * KIB],
)
def test_every_size_arrives(device, nbytes):
    x = values(nbytes // 4)

    np.testing.assert_array_equal(xdev.to_numpy(xdev.to_device(x, device)), x)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_copy_is_laid_out_as_its_source(real_device, order):
    x = np.array(values((300, 200)), order=order)

    there = xdev.to_device(x, real_device, copy=True)
    again = xdev.to_device(there, real_device, copy=True)
    back = xdev.to_device(again, "cpu", copy=True)

    for made in (there, again, back):
        assert (made.flags.c_contiguous, made.flags.f_contiguous) == (
            order == "C",
            order == "F",
        )
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize("kind", ["float64", "complex64"])
def test_out_is_cast_to_as_copyto_does(device, kind):
    x = values()
    out = xdev.zeros(x.shape, dtype=getattr(xdev, kind), device=device)
    host = np.zeros(x.shape, "complex128")

    xdev.to_device(x, device, out=out)
    xdev.to_numpy(out, out=host)

    np.testing.assert_array_equal(host, x)


def test_overlapping_out_is_right(device):
    there = xdev.to_device(values((50, 60)), device, copy=True)

    xdev.to_device(there[::-1, :], device, out=there)

    np.testing.assert_array_equal(xdev.to_numpy(there), values((50, 60))[::-1])


def test_copies_may_be_non_blocking(device):
    x = xdev.pin(values((300, 1000)))

    there = xdev.to_device(x, device, non_blocking=True)
    back = xdev.to_numpy(there, non_blocking=True)
    xdev.synchronize(device)

    np.testing.assert_array_equal(back, values((300, 1000)))


@pytest.mark.parametrize("own", [True, False])
def test_a_copy_may_be_queued_on_a_stream(device, own):
    stream = xdev.Stream(device) if own else xdev.current_stream(device)

    there = xdev.to_device(values(), device, copy=True, stream=stream)

    np.testing.assert_array_equal(xdev.to_numpy(there), values())


@pytest.mark.parametrize(("target", "other"), [("fake", "cpu"), ("cpu", "fake:0")])
def test_a_stream_of_another_device_is_refused(target, other):
    with pytest.raises(
        xdev.DeviceMismatchError, match=f"stream= is of {other}, but the"
    ):  # whether there is a copy or not
        xdev.to_device(values(), target, stream=xdev.Stream(other))


@pytest.mark.parametrize("stream", [3, 0, "null", nullcontext()])
@pytest.mark.parametrize("copy", [True, None])
def test_what_is_no_stream_is_refused(device, stream, copy):
    for x in (values(), xdev.asarray(values(), device=device)):
        with pytest.raises(TypeError, match=rf"xdev\.Stream\('{device}(:0)?'\)"):
            xdev.to_device(x, device, copy=copy, stream=stream)


WAYS = {
    "i4,f4": r'move its fields one by one, as x\["f0"\]',
    "longdouble": r'convert it first, as in x.astype\("float32"\)',
    "O": r'convert it first, as in x.astype\("float32"\)',
    "U3": r"leave text out, or encode it, as numpy\.unique\(.*\)\[1\] does",
    "M8[s]": r'convert it first, as in x.astype\("int64"\)',
}


@pytest.mark.parametrize("dtype", WAYS)
def test_what_devices_cannot_hold_is_refused_uncounted(device, dtype):
    x = np.zeros(3, dtype)
    if device == "cpu":  # NumPy holds it
        assert xdev.to_device(x, device, copy=True).dtype == x.dtype
        return
    before = xdev.memory.allocated(device, "device")

    with (
        xdev.transfer_guard("allow") as counts,
        pytest.raises(
            TypeError, match=rf"^{device} has no arrays of dtype .*: {WAYS[dtype]}$"
        ),
    ):
        xdev.to_device(x, device)

    assert counts.copies == 0
    assert xdev.memory.allocated(device, "device") == before


def test_arrays_of_an_unknown_dtype_are_refused_clearly():
    class Tensor:
        shape, dtype, device = (3,), "torch.qint8", "cpu"

    with pytest.raises(TypeError, match="no dtype 'qint8': convert the Tensor"):
        xdev.to_device(Tensor(), "fake")


def test_a_mask_is_not_lost(device):
    x = np.ma.masked_less(np.arange(4), 2)
    if device == "cpu":
        assert xdev.to_device(x, device) is x
    for options in {"copy": True}, {"out": xdev.asarray(x.data, device=device)}:
        with pytest.raises(TypeError, match=r"x\.filled"):
            xdev.to_device(x, device, **options)


def test_freed_arrays_are_refused(device):
    x = xdev.empty((300, 300), device=device)
    xdev.memory.free(x)

    with pytest.raises(xdev.UseAfterFreeError):
        xdev.to_device(x, "cpu", copy=True)
