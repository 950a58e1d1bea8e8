"""What only a real device shows: order, time and lifetimes."""

import gc

import numpy as np
import pytest
from running import normal

import xdev

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("cuda")]

MIB = 1 << 20
SPIN = """
extern "C" __global__ void spin(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) { }
}
"""
LONG = 2_000_000_000  # about a second


@pytest.fixture
def busy(cuda):
    """A stream that runs a long kernel when it is told to."""
    import cupy

    kernel = cupy.RawKernel(SPIN, "spin")
    kernel.compile()
    stream = xdev.Stream(cuda)

    def start(on=stream):
        with on:
            kernel((1,), (1,), (np.int64(LONG),))
        return on

    yield start
    xdev.synchronize(cuda)


def pinned_in_use():
    gc.collect()
    return xdev.memory.allocated("cpu", "pinned")


def test_uploads_from_pinned_memory_do_not_wait(cuda, busy):
    expected = normal(4 * MIB)
    pinned = xdev.pin(expected)
    stream = busy()

    there = xdev.to_device(pinned, cuda, stream=stream, non_blocking=True)
    under_way = not stream.done
    del pinned  # its memory must outlive the copy
    for _ in range(4):
        xdev.empty_pinned(4 * MIB, "float32")[:] = -1
    stream.synchronize()

    assert under_way, "the host waited for the kernel before the copy"
    np.testing.assert_array_equal(xdev.to_numpy(there), expected)


def test_small_uploads_wait_for_nothing(cuda, busy):
    x = normal(1000)
    busy(xdev.current_stream(cuda))

    there = xdev.to_device(x, cuda)
    under_way = not xdev.current_stream(cuda).done
    x[:] = -1

    assert under_way
    np.testing.assert_array_equal(xdev.to_numpy(there), normal(1000))


def test_downloads_to_pinned_memory_do_not_wait(cuda, busy):
    expected = normal(4 * MIB)
    there = xdev.to_device(expected, cuda)
    stream = busy()

    with stream:
        back = xdev.to_numpy(there, non_blocking=True)
    under_way = not stream.done
    del there
    for _ in range(4):
        xdev.full((4 * MIB,), -1.0, dtype=xdev.float32, device=cuda)
    stream.synchronize()

    assert under_way
    assert xdev.is_pinned(back)
    np.testing.assert_array_equal(back, expected)


def test_pinned_memory_comes_back_when_the_device_is_done(cuda):
    x = normal(10 * MIB)
    xdev.synchronize(cuda)
    before = pinned_in_use()

    for _ in range(3):
        stream = xdev.Stream(cuda)
        there = xdev.to_device(xdev.pin(x), cuda, stream=stream, non_blocking=True)
        xdev.to_device(x, cuda, stream=stream, non_blocking=True)
        xdev.to_device(x, cuda)
        xdev.to_numpy(there, non_blocking=True)
        del stream
    xdev.synchronize(cuda)

    assert pinned_in_use() == before


def test_numba_arrays_are_moved_where_they_are(cuda):
    from numba import cuda as numba_cuda

    x = normal(1000)
    there = numba_cuda.to_device(x)
    out = numba_cuda.device_array(1000, "float32")

    np.testing.assert_array_equal(xdev.to_numpy(there), x)
    assert xdev.device_of(there) == cuda
    assert xdev.to_device(there, cuda).data.ptr == there.device_ctypes_pointer.value
    assert xdev.to_device(x[::-1], cuda, out=out) is out
    np.testing.assert_array_equal(out.copy_to_host(), x[::-1])


def test_a_foreign_stream_is_ordered_without_the_host(cuda, busy):
    import cupy
    from numba import cuda as numba_cuda

    stream = xdev.Stream(cuda)
    foreign = numba_cuda.external_stream(stream.ptr)
    x = cupy.zeros(4 * MIB, "float32")
    xdev.synchronize(cuda)
    exported = numba_cuda.as_cuda_array(x, sync=False)
    exported.stream = foreign  # what the exporter says of its work
    x[:] = 0  # what loads kernels or modules is done before: that takes time, or waits
    xdev.to_device(exported, cuda)
    xdev.to_device(exported, cuda, copy=True)
    xdev.synchronize(cuda)
    busy(stream)
    with stream:
        x[:] = 7

    adopted = xdev.to_device(exported, cuda)
    copied = xdev.to_device(exported, cuda, copy=True)
    under_way = not stream.done
    with stream:
        x[:] = -1  # comes after the copy, by an event

    assert under_way, "the host waited for the exporter's stream"
    assert (xdev.to_numpy(copied) == 7).all()
    stream.synchronize()
    assert (xdev.to_numpy(adopted) == -1).all()


def test_tensors_are_moved(cuda):
    torch = pytest.importorskip("torch")
    x = normal(MIB)

    on_cuda, on_host = torch.from_numpy(x).cuda(), torch.from_numpy(x)

    np.testing.assert_array_equal(xdev.to_numpy(on_cuda), x)
    np.testing.assert_array_equal(xdev.to_numpy(xdev.to_device(on_host, cuda)), x)
    assert xdev.to_device(on_cuda, cuda).data.ptr == on_cuda.data_ptr()
    pinned = on_host.pin_memory().numpy()
    assert xdev.is_pinned(pinned)
    np.testing.assert_array_equal(xdev.to_numpy(xdev.to_device(pinned, cuda)), x)


def test_big_arrays_of_any_layout_arrive(cuda):
    x = normal((3000, 2000))
    swapped, pinned = x.astype(">f4"), xdev.pin(x)
    for view in (x.T, x[::2, 1::3], x[:, ::-1], swapped, pinned, pinned.T, pinned[::2]):
        there = xdev.to_device(view, cuda)
        np.testing.assert_array_equal(xdev.to_numpy(there), view)
        out = np.zeros((2, *view.shape), x.dtype)[1].T
        np.testing.assert_array_equal(xdev.to_numpy(there.T, out=out), view.T)


# -- small arrays, which cross in packs ------------------------------------------------


def test_every_dtype_shape_and_stride_goes_to_cuda_and_back(cuda, small_arrays):
    arrays = [
        *small_arrays,
        np.arange(100_000.0),
        np.asfortranarray(np.ones((200, 300))),
    ]

    there = xdev.adapt(cuda, arrays)

    for x, y in zip(arrays, there, strict=True):
        assert xdev.device_of(y) == cuda
        assert y.dtype == x.dtype.newbyteorder("=")
        assert y.flags.fnc == x.flags.fnc
        np.testing.assert_array_equal(y.get(), x)
    strided = [y[::2] if y.ndim else y for y in there]
    for made in (there, strided):
        for x, y in zip(made, xdev.adapt("cpu", made), strict=True):
            assert type(y) is np.ndarray
            assert y.flags.owndata or y.nbytes > (64 << 10)
            np.testing.assert_array_equal(y, x.get())


def test_a_pack_is_given_back_with_its_last_array_and_none_before(cuda):
    gc.collect()
    before = xdev.memory.allocated(cuda, "device")
    there = xdev.adapt(cuda, [np.ones(8), np.ones(8), np.ones(8)])
    assert xdev.memory.allocated(cuda, "device") - before == 3 * 256 + 256

    with pytest.raises(xdev.InUseError):
        xdev.memory.free(there[1])
    last = there.pop()
    there.clear()
    assert xdev.memory.allocated(cuda, "device") > before
    np.testing.assert_array_equal(last.get(), np.ones(8))
    del last
    assert xdev.memory.allocated(cuda, "device") == before


# -- two GPUs, by the streams of both -------------------------------------------------


@pytest.fixture
def two():
    both = [device for device in xdev.devices() if device.type == "cuda"][:2]
    if len(both) < 2:
        pytest.skip("there is one CUDA device")
    return both


@pytest.mark.parametrize("current", [0, 1])
@pytest.mark.parametrize("out", [False, True])
def test_peers_copy_in_both_directions(two, current, out):
    import cupy

    x = normal((2000, 1500))
    with cupy.cuda.Device(current):
        for source, target in (two, two[::-1]):
            there = xdev.to_device(x, source)
            for view in (there, there.T, there[::2, ::3]):
                made = (
                    xdev.empty(view.shape, dtype=xdev.float64, device=target)
                    if out
                    else None
                )
                moved = xdev.to_device(view, target, out=made)
                assert xdev.device_of(moved) == target
                np.testing.assert_array_equal(xdev.to_numpy(moved), xdev.to_numpy(view))


def test_a_peers_source_may_be_dropped_at_once(two):
    first, second = two
    expected = normal(16 * MIB)
    for _ in range(5):
        there = xdev.to_device(expected, first)
        moved = xdev.to_device(there, second)
        del there
        for _ in range(3):  # would reuse the memory, were it free
            xdev.full(expected.shape, -1.0, dtype=xdev.float32, device=first)
        np.testing.assert_array_equal(xdev.to_numpy(moved), expected)
