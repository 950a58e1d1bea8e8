"""Arrays whose memory is a pool's: NumPy's, CuPy's and those of fake devices.

:func:`free` gives an array's memory back by hand, and leaves nothing behind to use. Who
owns what: the array owns its block through the one hidden object that its views share,
so their references are counted. What refers to the array itself may be a name or a
container, which is fine, or an export of its memory; of those, buffers (such as
``memoryview``), ``as_strided``'s and ``sliding_window_view``'s views, views of a
subclass (such as a masked array, whose ``.base`` is the array itself), Numba's and
CuPy's objects are found among the garbage collector's, if the array has more than one
reference. NumPy's iterators (``x.flat``, ``nditer``), DLPack capsules and PyTorch's
tensors are invisible to the collector.
"""

from __future__ import annotations

import ctypes
import gc
import math
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, final
from weakref import ref

import numpy as np
from numpy import ndarray

from xdev import _freed, _optional, native
from xdev._config import TRACKING
from xdev.device import Device, device_of, fake
from xdev.device.choice import cuda_interface
from xdev.device.streams import handle_of, live_streams
from xdev.errors import InUseError, not_array, quoted
from xdev.memory import registry, tracking
from xdev.memory.blocks import ALONE, references
from xdev.memory.pools import ADDRESSES
from xdev.memory.sources.host import HostSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from xdev.memory.blocks import Chunk
    from xdev.memory.pools import Pool

    #: Finds an array's chunk, None where no pool has it; leaves the array without it.
    Ways = tuple[Callable[[Any], Chunk | None], Callable[[Any, Chunk | None], object]]

Shape = tuple[int, ...]
Order = Literal["C", "F"]
Array = ndarray[Any, Any]
#: Zeros of so many bytes, as NumPy's, are pages that the system clears when they are
#: touched; to clear fewer takes less time than to make them.
UNTOUCHED = 32 << 20
POOLED = 64 << 10  # smaller arrays are NumPy's business, but while tracking is on [B]
PINNED = 1  # cudaMemoryTypeHost


@final
class HostLease(ctypes.Array[ctypes.c_char]):
    """A block that a NumPy array stands on.

    The hidden array made from it is the ``.base`` of the user's array and of every
    view (NumPy collapses bases), so it counts them; when all are gone, so is this.

    To NumPy it is a buffer that starts at the block and ends nowhere, so that one
    type serves every size: ``ctypes`` makes one in 50 ns, and NumPy reads it faster
    than an ``__array_interface__``. The hidden array ends where the block does.
    """

    _type_ = ctypes.c_char
    _length_ = sys.maxsize
    __slots__ = ("array", "chunk")

    chunk: Chunk
    array: ref[Any]  # the user's, as first made

    def __del__(self) -> None:
        try:
            chunk = self.chunk
        except AttributeError:  # an exception came between: the pool finds the chunk
            return
        chunk.release(chunk)


def host_array(shape: Shape, dtype: np.dtype[Any], order: Order = "C") -> Array:
    """Return an uninitialised array in host memory.

    Parameters
    ----------
    shape, dtype : tuple of int, numpy.dtype
        Extents, and what the elements are.
    order : {"C", "F"}
        Which index runs fastest.

    Returns
    -------
    numpy.ndarray
        From the host pool if it has 64 KiB or more, or while :func:`xdev.memory.track`
        is on; its memory goes back when it and its views are gone.

    Raises
    ------
    ValueError
        An extent is negative, or the array would be larger than an address.
    OutOfMemoryError
        The pool cannot serve it.

    Examples
    --------
    >>> host_array((1000, 100), np.dtype("f8")).shape
    (1000, 100)
    """
    nbytes = size_of(shape, dtype)
    small = nbytes < POOLED and (TRACKING.off or not tracking.active())
    if small or not nbytes or dtype.hasobject:
        return np.empty(shape, dtype, order)
    return _pooled(_host_pool(), shape, dtype, nbytes, order)


def cleared(array: Array) -> Array:
    """Return a new array of numbers, in C's order or Fortran's, with zeros in it."""
    memory = (array.T if array.flags.fnc else array).reshape(-1).view(np.uint8)
    lease = lease_of(array)
    if array.nbytes >= UNTOUCHED and lease is not None:
        segment = lease.chunk.segment
        source = segment.owner.source  # type: ignore[attr-defined] # a state
        if isinstance(source, HostSource):
            address = lease.chunk.address
            pages = source.clear_pages(address, array.nbytes, segment.address)
            memory[pages.stop :].fill(0)
            memory = memory[: pages.start]
    memory.fill(0)  # bytes: in half of the time of numbers
    return array


def transposed(array: Array, axes: Sequence[int]) -> Array:
    """Return a new array's transpose in its place: what may be freed by hand."""
    turned, lease = array.transpose(axes), lease_of(array)
    if lease is not None:
        lease.array = ref(turned)
    return turned


def lease_of(array: Array) -> HostLease | None:
    """Return what a pool's array, or a view of one, stands on; None of others."""
    lease = getattr(array.base, "base", None)
    return lease if isinstance(lease, HostLease) else None


@cache
def _host_pool() -> Pool:
    """Return the one host pool without looking it up by name each time."""
    return registry.pool("cpu", "host")


def pinned_array(shape: Shape, dtype: np.dtype[Any], order: Order = "C") -> Array:
    """Return an uninitialised array in page-locked host memory.

    Parameters
    ----------
    shape, dtype, order : tuple of int, numpy.dtype, {"C", "F"}
        As :func:`host_array` takes them; any size is the pool's.

    Raises
    ------
    DeviceUnavailableError, TypeError
        There is no CUDA device to lock memory for. The dtype holds Python objects.

    Examples
    --------
    >>> pinned_array((2,), np.dtype(object))
    Traceback (most recent call last):
    TypeError: pinned memory cannot hold Python objects, dtype object
    """
    nbytes = size_of(shape, dtype)
    if dtype.hasobject:
        raise TypeError(f"pinned memory cannot hold Python objects, dtype {dtype}")
    pool = registry.pool("cpu", "pinned")
    return _pooled(pool, shape, dtype, nbytes, order)


def size_of(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return the bytes of an array of a shape, or raise ValueError [B]."""
    if not (isinstance(shape, tuple | list) and isinstance(dtype, np.dtype)):
        way = "give a tuple of whole numbers, (n,), and numpy.dtype(name)"
        raise TypeError(f"shape is {quoted(shape)} and dtype {quoted(dtype)}: {way}")
    for extent in shape:
        if extent < 0:
            raise ValueError(f"shape {shape} has a negative extent: use 0 or more")
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes >= ADDRESSES:
        message = f"an array of shape {shape} and dtype {dtype} is larger than memory"
        raise ValueError(f"{message} can be: {nbytes:,} B")
    return nbytes


def _pooled(pool: Pool, shape: Shape, dtype: Any, nbytes: int, order: Order) -> Array:
    chunk = pool.take(nbytes)
    lease = _lease(chunk.address)
    lease.chunk = chunk
    # The hidden array has the array's shape: a view of like shape is the fastest.
    if order == "C":
        array = ndarray(shape, dtype, lease)[...]
    else:
        array = ndarray(shape[::-1], dtype, lease).T
    lease.array = ref(array)
    return array


_lease: Any = HostLease.from_address  # looked up once


def record_stream(x: Any, stream: object) -> None:
    """Keep an array's memory, once dropped, until a stream is done with it.

    Needed where an array made on one stream is used on another by a library that xdev
    does not see.

    Parameters
    ----------
    x : array
        NumPy (pinned or not), or any ``__cuda_array_interface__`` exporter.
    stream : int or Stream
        xdev's or CuPy's stream, or a CUDA stream handle.

    Raises
    ------
    TypeError
        ``stream`` is neither a stream nor an int.
    ValueError
        It is not a handle, or the array's memory is not a pool's (of NumPy's arrays
        that is no error where the stream is the CPU's).
    UseAfterFreeError
        It was freed.

    Examples
    --------
    >>> import xdev
    >>> from xdev import memory
    >>> x = xdev.empty(100_000, device="cpu")
    >>> memory.record_stream(x, xdev.Stream("cpu"))
    """
    if not hasattr(stream, "ptr"):
        stream = handle_of(stream)
    _freed.refuse("xdev.memory.record_stream", x)
    if is_fake(x):
        return  # its work is done when a call returns
    chunk: Any = find(_address(x))
    if chunk is not None:
        chunk.segment.owner.mark(chunk, (live_streams.see(stream),))
    elif not isinstance(x, ndarray) or str(getattr(stream, "device", "")) != "cpu":
        what = f"this {type(x).__name__} does not lie in memory of xdev's pools"
        nor = "nor do NumPy's own arrays, and those below 64 KiB"
        way = "keep it until stream.synchronize() returns"
        raise ValueError(f"{what} ({nor}): {way}")


def mark_uses(xs: Iterable[Any], device: int | None = None, stream: Any = None) -> None:
    """Do as :func:`record_stream` for all CUDA arrays that the current stream uses.

    It costs little until there is a second stream. Who queues work on arrays, or on
    sequences of arrays, calls it before. ``device`` is their index, CuPy's current one
    without it; ``stream`` the current stream there, from who knows it.
    """
    if stream is None:
        if device is None and native.calls.are_of_current_stream(xs):
            return
        current = _optional.cupy().cuda.get_current_stream
        stream = current() if device is None else current(device)
    handle = live_streams.see(stream)
    if live_streams.several and handle not in live_streams.captured:
        _mark_all(xs, handle)


def _mark_all(xs: Iterable[Any], handle: int) -> None:
    for x in xs:
        if isinstance(x, list | tuple):
            _mark_all(x, handle)
            continue
        chunk = device_chunk(x)
        if chunk and chunk.stream != handle and handle not in (chunk.uses or ()):
            chunk.segment.owner.mark(chunk, (handle,))


def device_chunk(x: Any) -> Any:
    """Return the chunk that a CUDA array lies in, or None."""
    if not hasattr(type(x), "__cuda_array_interface__"):
        return None
    pointer: Any = getattr(x, "data", None)
    memory = getattr(pointer, "mem", None)  # CuPy's: quicker than the interface
    chunk = getattr(memory, "xdev_chunk", None)
    if chunk is not None:
        return chunk
    return find(_address(x) if memory is None else pointer.ptr, "device")


def _address(x: Any) -> int:
    if isinstance(x, np.ndarray):
        return int(x.ctypes.data)
    if hasattr(type(x), "device_ctypes_pointer"):  # Numba's: its interface takes 10 µs
        return x.device_ctypes_pointer.value or 0
    interface = None if isinstance(x, type) else cuda_interface(x)
    if interface is None:
        raise ValueError(f"x is {not_array(x, 'pass an array of host or CUDA memory')}")
    return int(interface["data"][0] or 0)  # empty arrays may have none


def is_fake(x: Any) -> bool:
    """Say whether ``x`` is an array on a fake device."""
    arrays = sys.modules.get("xdev.device.fake_arrays")  # else there is none
    return arrays is not None and type(x) is arrays.FakeArray


def find(address: int, kind: str | None = None) -> Chunk | None:
    """Return the live chunk that an address lies in, or None."""
    for (_, name), pool in registry.everything().items():
        if kind in (None, name) and (chunk := pool.find(address)):
            return chunk
    return None


def is_pinned_address(address: int) -> bool:
    """Say whether an address lies in page-locked host memory, the pool's or other.

    Parameters
    ----------
    address : int
        Of host memory.

    Examples
    --------
    >>> is_pinned_address(np.zeros(3).ctypes.data)
    False
    """
    if find(address, "pinned") is not None:
        return True
    if "cupy" not in sys.modules or not Device("cuda").available:
        return False
    runtime = _optional.cupy().cuda.runtime
    return int(runtime.pointerGetAttributes(address).type) == PINNED


def serve_fake_arrays() -> None:
    """Let fake arrays hold blocks of the pools from now on."""
    fake.set_allocator(lambda nbytes, at: registry.pool(f"fake:{at}").acquire(nbytes))


@cache
def array_maker() -> Callable[..., Any]:
    """Return ``make(shape, dtype, order="C", memory=None)``, a quick maker for CuPy.

    ``memory`` is a ``MemoryPointer`` to where the array lies; without one it lies in
    memory of its own, uninitialised. ``cupy.ndarray`` passes its arguments through two
    layers of Python, a quarter of the whole cost; here its compiled base takes them.
    """
    make: Callable[..., Any] = native.calls.make_arrays_of(_optional.cupy().ndarray)
    return make


#: Libraries whose objects that refer to an array may use its memory.
LIBRARIES = frozenset({"numpy", "cupy", "cupyx", "numba", "pickle"})
BUFFER = type(gc.get_referents(memoryview(b""))[0])  # what a memoryview stands on
VIEW = "this array is a view: free the array that it was made from"
_being_freed: dict[int, object] = {}  # by identity: the arrays being freed now


def free(x: Any) -> int:
    """Give an array's memory back now, in place of when its last reference goes.

    It is for what is not needed any more: work queued on other streams must be recorded
    (:func:`record_stream`), and other libraries must not use the array. Where the
    memory is xdev's pools' it goes back; other memory stays as it is and with whom it
    is. Either way ``x`` is freed: xdev's functions refuse it, and so does what computes
    in NumPy and CuPy.

    Parameters
    ----------
    x : array
        The array as it was made, not a view.

    Returns
    -------
    int
        How much went back to the pool; 0 for what is not the pool's, as are NumPy's own
        arrays, xdev's below 64 KiB on the CPU among them, and scalars [B].

    Raises
    ------
    InUseError
        ``x`` is a view of a pool's memory, or a view or an exported buffer still uses
        it.
    UseAfterFreeError
        It was freed before.
    TypeError
        ``x`` is not an array.

    Examples
    --------
    >>> import xdev
    >>> x = xdev.empty(100_000, device="cpu")
    >>> free(x)
    800000
    >>> xdev.sum(x)
    Traceback (most recent call last):
    xdev.errors.UseAfterFreeError: xdev.sum: x of shape (100000,) was freed before...
    """
    shared = sys.getrefcount(x) > ONE_NAME
    token = object()  # one thread at a time; no lock, since a finalizer may free
    if _being_freed.setdefault(id(x), token) is not token:
        raise _freed.use_after_free(x)
    try:
        _freed.refuse("xdev.memory.free", x)
        find_chunk, strip = _ways(x)
        chunk, nbytes = find_chunk(x), 0
        line = tracking.origin(tracking.stack(2)) if tracking.active() else ""
        state: Any = chunk and chunk.segment.owner
        if chunk is not None and not state.inherited:
            if shared:
                _refuse_exports(x)
            if hasattr(state.source, "poison"):  # a guarded one
                state.source.poison(chunk, line)
            nbytes = chunk.nbytes
        strip(x, chunk)
        if line:
            _freed.note(x, line)
        return nbytes
    finally:
        del _being_freed[id(x)]


def _ways(x: Any) -> Ways:
    """Return how an array's chunk is found, and how the array is left without it."""
    if isinstance(x, np.ndarray):
        return _host_chunk, _strip_host
    if is_fake(x):
        return _fake_chunk, _strip_fake
    if type(x).__module__.startswith("cupy") and type(x) is _optional.cupy().ndarray:
        return _device_chunk, _strip_device
    device_of(x)  # raises for what is not an array
    # Other libraries' arrays are theirs to give back.
    return lambda _: None, lambda x, _: _freed.note(x)


def _seen_by_free(x: object) -> int:
    return sys.getrefcount(x)


def _one_name() -> int:
    x = object()
    return _seen_by_free(x)


ONE_NAME = _one_name()  # the references to what a caller of free() has one name for


def _host_chunk(x: Any) -> Chunk | None:
    held, lease = [x.base], lease_of(x)
    if lease is None:
        if held[0] is not None and find(int(x.ctypes.data)) is not None:
            raise InUseError(VIEW)
        return None
    if lease.array() is not x:
        raise InUseError(VIEW)
    _refuse_views(held)
    return lease.chunk


def _device_chunk(x: Any) -> Chunk | None:
    """Return the chunk of a CuPy array that the bridge's allocator served."""
    chunk: Chunk | None = device_chunk(x)
    if chunk is not None:
        if x.base is not None or x.data.ptr != x.data.mem.ptr:
            raise InUseError(VIEW)
        _refuse_views([x.data.mem])  # the array's own pointer has one
        _refuse_views([x.data])
    return chunk


def _fake_chunk(x: Any) -> Chunk | None:
    """Return the chunk that a fake array alone uses; None if it has no memory."""
    held = [x._values]  # noqa: SLF001 - a friend
    if held[0].base is not None:
        raise InUseError(VIEW)
    _refuse_views(held)
    return getattr(fake.block_of(held[0]), "chunk", None)


def _refuse_views(held: list[Any]) -> None:
    """Raise InUseError if more than the array itself refers to its hidden owner.

    The list has another reference, and there is no third.
    """
    count = references(held)[0] - ALONE - 1
    if count > 0:
        held.clear()  # an error that is kept has its frames: they are no view
        message = f"{count} view(s) still use this array's memory: drop them first"
        raise InUseError(message)


def _refuse_exports(x: Any) -> None:
    """Look through the collector's objects for those that use an array's memory."""
    for holder in gc.get_referrers(x):
        kind = type(holder)
        if kind is BUFFER or kind.__module__.partition(".")[0] in LIBRARIES:
            raise _used_by("exported buffer" if kind is BUFFER else kind.__qualname__)
    for other in gc.get_objects():  # NumPy does not tell the collector of a base
        if issubclass(type(other), np.ndarray) and other.base is x:
            raise _used_by(type(other).__qualname__)


def _used_by(what: str) -> InUseError:
    return InUseError(f"a view ({what}) still uses this array's memory: drop it first")


def _strip_host(x: Any, chunk: Chunk | None) -> None:
    """Make a NumPy array one without bytes, in place; its hidden base goes."""
    if chunk is None:
        _freed.mark(x)
    else:
        x.__setstate__((1, x.shape, _freed.EMPTY, False, b""))


def _strip_fake(x: Any, _: object) -> None:
    """Make a fake array one without bytes, in place; its block goes back."""
    from xdev.device.fake_arrays import FreedArray

    x._values = np.empty(x.shape, _freed.EMPTY)  # noqa: SLF001 - keeps the shape
    x.__class__ = FreedArray


def _strip_device(x: Any, _: object) -> None:
    """Make a CuPy array one without bytes, in place; its memory goes."""
    memory = _optional.cupy().cuda.memory
    device = x.data.device_id
    nowhere = memory.MemoryPointer(memory.UnownedMemory(0, 0, None, device), 0)
    x.__class__ = freed_type()
    x._init((), "V0", nowhere)  # noqa: SLF001 - keeps the shape, as nothing else does


@cache
def freed_type() -> Any:
    """Return the class of freed CuPy arrays; CuPy must be there."""

    @final
    class FreedArray(_freed.Remains, _optional.cupy().ndarray):  # type: ignore[misc]
        """What is left of a ``cupy.ndarray``."""

        __slots__ = ()
        __cuda_array_interface__ = property(_freed.Remains.__dlpack__)

    return FreedArray
