"""Random values on CUDA devices: one kernel launch a call."""

from __future__ import annotations

import math
import struct
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional, facade, native
from xdev._plain_calls import SLOT
from xdev.compile import indexed as compiler, launch
from xdev.compile.cubins import BLOCK
from xdev.device.cuda import BACKEND
from xdev.facade import cuda_launches
from xdev.facade.dispatch import factory
from xdev.random.draws import READ_ONLY
from xdev.ufunc import cuda_operands
from xdev.ufunc.cuda_operands import read
from xdev.ufunc.layout import contiguous

if TYPE_CHECKING:
    from xdev.compile.indexed import Indexed
    from xdev.device import Device

LARGE = 2**20  # words that are sorted by their halves
PLANS = 512  # pairs of a kernel and a number of elements that are kept
BLOCKS = 2112  # at most, sixteen for each multiprocessor of an H200


def order(words: Any) -> Any:
    """Return the order of random words of 64 bits, which few of 32 bits share.

    CuPy sorts 32 bits twice as fast as 64.
    """
    if words.size < LARGE:
        return facade.argsort(words)
    cupy = _optional.cupy()
    with words.device:
        order = cupy.argsort(words.view(np.uint32)[1::2])
        ties = cuda_launches.Program("xdev::order_ties", items=1)
        blocks = math.ceil(words.size / ties.threads)
        cuda_launches.run(ties, blocks, [words, order], words.size)
    return order


capability = cache(launch.capability)


@lru_cache(maxsize=PLANS)
def _plan(kernel: Indexed, size: int, capability: tuple[int, int]) -> launch.Launch:
    """Return what runs a kernel over a number of elements."""
    blocks = min(math.ceil(size / (BLOCK * kernel.lanes)), BLOCKS)
    slots = *(launch.Value.number(0, x) for x in kernel.parameters), launch.Value()
    turns = size // (kernel.lanes * BLOCK * blocks)
    parameter = bytes(SLOT * len(slots)) + struct.pack("=qq", size, turns)
    machine = _loaded(kernel, capability)
    return launch.Launch(machine, blocks, BLOCK, parameter, slots)


@cache
def _loaded(kernel: Indexed, capability: tuple[int, int]) -> Any:
    return launch.Kernel(*compiler.cubin(kernel, capability))


def fill(device: Device, kernel: Indexed, out: Any, values: tuple[Any, ...]) -> None:
    """Write a call's values into an array of a GPU, element by element in C order."""
    memory: Any = read(out, "random")
    if not memory.writable:
        raise ValueError(READ_ONLY)
    size = math.prod(memory.shape)
    if not size:
        return
    with _optional.cupy().cuda.Device(device.index):
        if memory.strides != contiguous(memory.shape, memory.dtype.itemsize):
            contents = factory(device).empty(memory.shape, memory.dtype)
            fill(device, kernel, contents, values)
            with cuda_operands.ordered([memory]):
                memory.cupy()[...] = contents
            return
        run = _plan(kernel, size, capability(device.index))
        if native.calls.are_of_current_stream([out]):
            run([*values, memory.address])
            return
        with cuda_operands.ordered([memory]):
            run([*values, memory.address])


def array(
    device: Device, kernel: Indexed, shape: tuple[int, ...], values: tuple[Any, ...]
) -> Any:
    """Return a new array of a call's values."""
    if BACKEND.current() != device.index:
        with _optional.cupy().cuda.Device(device.index):
            return array(device, kernel, shape, values)
    out = cuda_launches.launched(
        _filled, values, ("random", kernel, shape, device.index)
    )
    return factory(device).empty(shape, kernel.result) if out is NotImplemented else out


def _filled(
    _: tuple[Any, ...], kernel: Indexed, shape: tuple[int, ...], index: int
) -> cuda_launches.Move | None:
    """Plan :func:`array`."""
    size = math.prod(shape)
    if not size:
        return None
    return _plan(kernel, size, capability(index)), kernel.result, shape
