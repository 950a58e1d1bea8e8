"""What a CUDA ufunc is called with: arrays of any library, their streams, numbers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xdev import _optional
from xdev._freed import is_freed, use_after_free
from xdev._plain_calls import BYTES
from xdev.compile.launch import Value, padded
from xdev.device.choice import cuda_interface
from xdev.device.cuda import BACKEND
from xdev.device.streams import live_streams
from xdev.errors import DeviceMismatchError, not_array, type_name
from xdev.memory.arrays import mark_uses
from xdev.ufunc import foreign
from xdev.ufunc.dtypes import misfit
from xdev.ufunc.foreign import LEGACY, NUMBERS, is_cuda
from xdev.ufunc.layout import Reach, contiguous, is_contiguous

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xdev.ufunc.dtypes import Labels


class Array(NamedTuple):
    """An array, whoever owns it: on a CUDA device, or for grids in host memory."""

    owner: Any  # the user's object
    address: int  # of element (0, 0, …)
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # [B]
    dtype: np.dtype[Any]
    writable: bool = True
    stream: int | None = None  # that its owner works on, where it names one
    view: Any = None  # CuPy's, of the same memory, of a library that hands one out

    @classmethod
    def of(cls, x: Any) -> Array:
        """Return a CuPy array as one."""
        return cls(x, x.data.ptr, x.shape, x.strides, x.dtype)

    def laid_out(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
        """Return the same memory as an array of another shape."""
        return self._replace(shape=shape, strides=strides)

    @property
    def held(self) -> Any:
        """What refers to the memory, for those who look for its block."""
        return self.owner if self.view is None else self.view

    @property
    def layout(self) -> tuple[Any, ...]:
        """All that a plan depends on."""
        return self.dtype, self.shape, self.strides

    @property
    def aligned(self) -> bool:
        """Whether each element is where its dtype may be read."""
        return not any(n % self.dtype.alignment for n in (self.address, *self.strides))

    @property
    def contiguous(self) -> bool:
        """Whether the elements are in C order without gaps."""
        return is_contiguous(self.shape, self.strides, self.dtype.itemsize)

    @property
    def reach(self) -> Reach:
        """The bytes that it covers."""
        return Reach.of(self.shape, self.strides, self.dtype.itemsize)

    def is_spoilt(self, output: Array) -> bool:
        """Say whether an output lies where it is read, and not exactly there."""
        here, there = (self.address, self.layout), (output.address, output.layout)
        return here != there and self.meets(output)

    def meets(self, other: Array) -> bool:
        """Say whether two arrays have bytes in common."""
        return self.reach.meets(other.reach, other.address - self.address)

    @property
    def device(self) -> int | None:
        """The index of its device; None of an empty array that has no memory."""
        if type(self.held) is _optional.cupy().ndarray:
            return int(self.held.data.device_id)
        return BACKEND.index_of_memory(self.address, self.shape)

    def cupy(self) -> Any:
        """Return a CuPy array of the same memory: no copy, no synchronise."""
        cupy, reach, index = _optional.cupy(), self.reach, self.device
        place = BACKEND.current() if index is None else index
        start, nbytes = self.address + reach.low, reach.high - reach.low
        memory = cupy.cuda.UnownedMemory(start, nbytes, self.owner, place)
        pointer = cupy.cuda.MemoryPointer(memory, -reach.low)
        return cupy.ndarray(self.shape, self.dtype, pointer, self.strides)


class Number(NamedTuple):
    """A number that goes to the kernel by value; a Python one is weak, as in NEP 50."""

    value: Any

    @property
    def owner(self) -> Any:
        """The user's object."""
        return self.value

    @property
    def weak(self) -> bool:
        """Whether it takes the arrays' dtype as far as its kind allows."""
        return not isinstance(self.value, np.generic)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype that it has where there are no arrays."""
        return np.result_type(self.value)

    @property
    def layout(self) -> Any:
        """All that a plan depends on."""
        return type(self.value) if self.weak else self.value.dtype

    def given(self, dtype: np.dtype[Any]) -> Any:
        """Return what the launch takes for a number of a loop's dtype."""
        cast = dtype.type(self.value) if self.weak else self.value.astype(dtype)
        if Value.number(self.value, dtype).kind != BYTES:
            return self.value
        return padded(cast)


def encoders(
    values: Sequence[Value], dtypes: Sequence[np.dtype[Any]]
) -> tuple[Callable[[Any], Any] | None, ...]:
    """Return what makes bytes of the numbers that a launch takes as such."""

    def encoder(dtype: np.dtype[Any]) -> Callable[[Any], Any]:
        return lambda value: Number(value).given(dtype)

    makers = tuple(
        encoder(dtype) if value.kind == BYTES else None
        for value, dtype in zip(values, dtypes, strict=False)
    )
    return makers if any(makers) else ()


def handed(
    operands: Sequence[Array | Number],
    dtypes: Sequence[np.dtype[Any]],
    name: str,
    labels: Labels,
) -> list[Any]:
    """Return what a launch takes for operands of a loop's dtypes."""
    try:
        return [
            x.address if isinstance(x, Array) else x.given(dtype)
            for x, dtype in zip(operands, dtypes, strict=True)
        ]
    except OverflowError as error:
        numbers = [x.owner for x in operands]
        raise misfit(numbers, dtypes, name, labels) or error from None


def read(x: Any, name: str, label: str = "an argument") -> Array | Number:
    """Return what an argument is; the names are for errors."""
    if type(x) is _optional.cupy().ndarray:
        return Array.of(x)
    if isinstance(x, NUMBERS):
        return Number(x)
    if isinstance(x, Array | Number):
        return x
    if foreign.is_numbas(type(x)):
        place = foreign.numbas_address(x), x.shape, x.strides, x.dtype
        return _checked(Array(x, *place, stream=foreign.numbas_stream(x)), name)
    memory = _of_library(x, name)
    if memory is not None:
        return memory
    if is_freed(x):
        raise use_after_free(x, f"{name}: {label}")
    if isinstance(x, np.ndarray) and x.ndim == 0:
        return Number(x[()])
    arrays = ("__array__", "__array_interface__")
    if any(hasattr(type(x), protocol) for protocol in arrays):
        raise DeviceMismatchError(
            f"{name} got arrays of two devices: {label} ({type_name(x)}) is on cpu, "
            "others are on cuda; move it with xdev.to_device(x, 'cuda')"
        )
    raise TypeError(f"{name}: {label} is {not_array(x, 'pass an array or a number')}")


def _of_library(x: Any, name: str) -> Array | Number | None:
    """Return another library's array on a device, or number; None for other things."""
    adapter = foreign.of(type(x))
    if adapter is None or adapter is foreign.LENDER:
        return _exported(x, name) if is_cuda(x) else None
    view = adapter.to_native(x, name)
    if isinstance(view, np.ndarray):
        return None if view.ndim else Number(view[()])
    place = view.data.ptr, view.shape, view.strides, view.dtype
    stream = adapter.stream(x)
    return Array(x, *place, writable=adapter.mutable, stream=stream, view=view)


def _exported(x: Any, name: str) -> Array | None:
    interface = cuda_interface(x)
    if interface is None:
        return None
    if interface.get("mask") is not None:
        message = f"{name}: arrays with a mask are not supported: pass where= instead"
        raise TypeError(message)
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    address, read_only = interface["data"]
    strides = interface.get("strides") or contiguous(shape, dtype.itemsize)
    place = address or 0, shape, tuple(strides), dtype  # empty arrays may have none
    array = Array(x, *place, not read_only, interface.get("stream"))
    return _checked(array, name)


def _checked(x: Array, name: str) -> Array:
    """Refuse an array whose elements a kernel cannot read."""
    if not x.dtype.isnative:
        message = f"{name}: dtype {x.dtype.str} has the wrong byte order: cast it first"
        raise TypeError(message)
    if x.address % x.dtype.alignment:
        raise ValueError(
            f"{name}: an array of {x.dtype} at address {x.address:#x} is not aligned: "
            "copy it first"
        )
    return x


# Order between CuPy's current stream and the streams that other owners name.


@contextmanager
def ordered(arrays: list[Array]) -> Iterator[None]:
    """Run a launch after the work of the arrays' streams, and their next work after it.

    The order is the device's business, by events: the host waits for nothing, but for
    the launch where a library gives a view of its array and no stream to order. Arrays
    of the pools stay, once dropped, until the launch is done.
    """
    stream = _optional.cupy().cuda.get_current_stream()
    others = {x.stream for x in arrays} - {None, stream.ptr or LEGACY}
    if stream.ptr in live_streams.captured:
        others = set()  # the graph's replays are ordered, not its capture
    for other in others:
        _order(other, stream.ptr)
    mark_uses([x.held for x in arrays])
    try:
        yield
    finally:
        for other in others:
            _order(stream.ptr, other)
        if any(x.view is not None and x.stream is None for x in arrays):
            stream.synchronize()


def _order(first: Any, then: Any) -> None:
    """Let the later work of one stream wait for the work queued on another so far."""
    cuda = _optional.cupy().cuda
    event = cuda.Event(disable_timing=True)
    cuda.runtime.eventRecord(event.ptr, first)
    cuda.runtime.streamWaitEvent(then, event.ptr)
