import ctypes

import numpy as np
import pytest

import xdev

DTYPES = ["bool", "int8", "uint16", "int64", "float32", "float64", "complex64"]


def values(shape=(4, 6), dtype="float32"):
    """Random values of a dtype: zeros would hide what was not copied."""
    rng = np.random.default_rng(7)
    return (rng.standard_normal(shape) * 50).astype(dtype)


@pytest.fixture(params=["cpu", "fake", pytest.param("cuda", marks=pytest.mark.cuda)])
def target(request):
    """Where to, and the fake device too."""
    try:
        return xdev.Device(request.param).require()
    except xdev.DeviceUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("dtype", DTYPES)
def test_there_and_back(target, dtype):
    if target == "fake" and dtype == "float16":
        pytest.skip("array_api_strict has no float16")
    x = values(dtype=dtype)

    there = xdev.to_device(x, target)
    back = xdev.to_numpy(there)

    assert xdev.device_of(there) == target
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

    there = xdev.to_device(x, device)

    np.testing.assert_array_equal(xdev.to_numpy(there), x)


def test_read_only_sources_arrive(device):
    x = values()
    x.flags.writeable = False

    np.testing.assert_array_equal(xdev.to_numpy(xdev.to_device(x, device)), x)


def test_what_is_there_comes_back_itself(target):
    there = xdev.to_device(values(), target, copy=True)

    assert xdev.to_device(there, target) is there
    assert xdev.to_device(there, target, copy=False) is there
    again = xdev.to_device(there, target, copy=True)
    assert again is not there
    np.testing.assert_array_equal(xdev.to_numpy(again), xdev.to_numpy(there))


def test_a_copy_shares_nothing(device):
    there = xdev.to_device(values(), device)
    copy = xdev.to_device(there, device, copy=True)

    copy[0] = 0

    np.testing.assert_array_equal(xdev.to_numpy(there), values())


def test_copy_false_refuses_a_copy():
    with pytest.raises(ValueError, match="copy=False, but only a copy"):
        xdev.to_device(values(), "fake", copy=False)


def test_out_is_written_and_returned(target):
    x = values()
    out = xdev.zeros(x.shape, dtype=xdev.float32, device=target)
    host = np.zeros_like(x)

    assert xdev.to_device(x, target, out=out) is out
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
        (np.zeros((4, 6), "float64"), ValueError, "empty_like"),
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
    with pytest.raises(TypeError, match="is no array: make one first"):
        xdev.to_device(thing, "cpu")


def test_buffers_are_arrays():
    buffer = (ctypes.c_float * 3)(1, 2, 3)

    assert xdev.to_numpy(buffer).tolist() == [1, 2, 3]
    assert xdev.to_numpy(bytearray(b"ab")).tolist() == [97, 98]


@pytest.mark.cuda
def test_structured_and_object_arrays_are_refused_on_cuda(cuda):
    before = xdev.memory.allocated(cuda, "device")
    for x in (np.zeros(3, "i4,f4"), np.array([object()]), np.array(["a"])):
        with pytest.raises(TypeError, match="CUDA has no arrays of dtype"):
            xdev.to_device(x, cuda)

    assert xdev.memory.allocated(cuda, "device") == before


@pytest.mark.cuda
def test_non_blocking_copies_keep_their_source_alive(cuda):
    n = 1 << 22
    expected = np.arange(n, dtype="float32")
    stream = xdev.Stream(cuda)
    for _ in range(8):
        pinned = xdev.pin(expected)
        assert xdev.is_pinned(pinned)
        there = xdev.to_device(pinned, cuda, non_blocking=True, stream=stream)
        del pinned
        xdev.empty_pinned(n, "float32")[:] = -1  # would reuse the block, were it free
        back = xdev.empty_pinned(n, "float32")
        with stream:
            xdev.to_numpy(there, out=back, non_blocking=True)
        stream.synchronize()
        np.testing.assert_array_equal(back, expected)


@pytest.mark.cuda
def test_numba_and_exporters_are_moved_without_cupy(cuda):
    from numba import cuda as numba_cuda

    x = values()
    there = numba_cuda.to_device(x)

    np.testing.assert_array_equal(xdev.to_numpy(there), x)
    assert xdev.device_of(there) == cuda
    assert xdev.to_device(there, cuda).data.ptr == there.device_ctypes_pointer.value
