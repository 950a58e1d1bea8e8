"""Random values on CUDA devices: one kernel launch a call."""

from __future__ import annotations

import math
import struct
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev._plain_calls import BYTES, SLOT
from xdev.compile import launch
from xdev.compile.elementwise import BLOCK
from xdev.compile.indexed import cuda as compiler
from xdev.facade.places import place
from xdev.random.draws import HostBackend
from xdev.ufunc import cuda_streams
from xdev.ufunc.cuda_layout import contiguous
from xdev.ufunc.cuda_operands import Array, read

if TYPE_CHECKING:
    import numpy as np

    from xdev.compile.indexed import Indexed
    from xdev.device import Device

PLANS = 512  # pairs of a kernel and a number of elements that are kept


@lru_cache(maxsize=PLANS)
def _plan(kernel: Indexed, size: int, capability: tuple[int, int]) -> launch.Launch:
    """Return what runs a kernel over a number of elements."""
    blocks = math.ceil(size / compiler.Launch(kernel).span)
    slots = (launch.Value(), *[launch.Value(BYTES)] * len(kernel.parameters))
    parameter = bytes(SLOT * len(slots)) + struct.pack("=qq", size, 0)
    machine = _loaded(kernel, capability)
    return launch.Launch(machine, blocks, BLOCK, parameter, slots)


@cache
def _loaded(kernel: Indexed, capability: tuple[int, int]) -> Any:
    return launch.Kernel(*compiler.cubin(kernel, capability))


@final
class CudaBackend(HostBackend):
    """A GPU; its memory is ``Array``."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._place = place(device)
        self._capability = launch.capability(device.index)

    def make(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return new memory."""
        made = self._place.empty(shape, dtype)
        return Array(made, made.data.ptr, made.shape, made.strides, made.dtype)

    def fill(self, kernel: Indexed, memory: Array, values: tuple[Any, ...]) -> None:
        """Write a call's values, element by element in C order."""
        size = math.prod(memory.shape)
        if not size:
            return
        with _optional.cupy().cuda.Device(self.device.index):
            if memory.strides != contiguous(memory.shape, memory.dtype.itemsize):
                made = self.make(memory.shape, memory.dtype)
                self.fill(kernel, made, values)
                with cuda_streams.ordered([memory]):
                    memory.cupy()[...] = made.owner
                return
            pairs = zip(kernel.parameters, values, strict=True)
            numbers = [launch.padded(dtype.type(value)) for dtype, value in pairs]
            with cuda_streams.ordered([memory]):
                run = _plan(kernel, size, self._capability)
                run([memory.address, *numbers])

    def memory(self, out: Any) -> Array:
        """Return the memory of the user's ``out``."""
        found = read(out, "random")
        if not isinstance(found, Array):
            message = f"out must be an array, not {type(out).__name__}"
            raise TypeError(message)
        if not found.writable:
            message = "out= is read-only: pass a writable array, such as out.copy()"
            raise ValueError(message)
        return found

    def array(self, memory: Array) -> Any:
        """Return memory as the user gets it."""
        return memory.owner
