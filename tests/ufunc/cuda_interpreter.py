"""What stands for a GPU: an interpreter of launches, on arrays of host memory.

It reads a launch's parameters as the templates declare them.
"""

import ctypes
import itertools
import math
import struct
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from xdev import _optional
from xdev._plain_calls import ADDRESS, BYTES, SLOT

if not _optional.installed("cupy"):
    pytest.skip("needs CuPy: the group cuda", allow_module_level=True)


cupy = _optional.cupy()


def peek(address, dtype):
    """Return the element at an address as an array of no dimensions."""
    return np.ndarray((), dtype, (ctypes.c_char * dtype.itemsize).from_address(address))


class Interpreter:
    """What stands for the GPU: each launch computes at once, element by element."""

    def __init__(self):
        self.launches = 0

    def kernel(self, spec, elementwise):
        return spec, elementwise

    def launch(
        self, kernel, blocks, threads, parameter, values, _output, *, lanes, size
    ):
        _, elementwise = kernel
        slots = len(elementwise.operands) + elementwise.masked
        axes = elementwise.dimensions
        assert len(values) == slots
        index = "Q" if elementwise.wide else "I"
        offset = "q" if elementwise.wide or elementwise.far else "i"
        form = struct.Struct(f"@{1 + 3 * axes}{index}{slots * axes}{offset}")
        size, *numbers = form.unpack_from(parameter, slots * SLOT)
        extents, magics, shifts = (numbers[k * axes : (k + 1) * axes] for k in range(3))
        steps = np.reshape(numbers[3 * axes :], (slots, axes))
        for i, (extent, magic, shift) in itertools.product(
            range(100), zip(extents, magics, shifts, strict=True)
        ):
            assert elementwise.wide or (i * magic >> 32) + i >> shift == i // extent
        count = math.prod(extents)
        if elementwise.template == "rows":  # whose last extent counts groups of lanes
            assert blocks * threads >= count > (blocks - 1) * threads
            assert extents[-1] * elementwise.lanes >= size
            extents = *extents[:-1], size
            steps[:, -1] = [
                o.storage.itemsize * (o.kind in {"Linear", "Output"})
                for o in elementwise.operands
            ]
        else:
            assert count == size
            assert blocks * elementwise.span >= size > (blocks - 1) * elementwise.span

        def run(given):
            for place in np.ndindex(*extents):
                offsets = steps @ np.array(place, np.int64)
                places = [
                    v + int(at) if kind.kind == ADDRESS else v
                    for v, at, kind in zip(given, offsets, values, strict=True)
                ]
                if elementwise.masked and not peek(places.pop(), np.dtype(bool)):
                    continue
                self.compute(kernel, places, values)
            self.launches += 1

        run.values, run.lanes = values, lanes
        return run

    def compute(self, kernel, places, kinds):
        spec, elementwise = kernel
        operands = list(zip(elementwise.operands, places, strict=True))
        values = [
            (
                peek(p, o.storage).astype(o.loop)[()]
                if kind.kind == ADDRESS
                else np.frombuffer(p, o.loop, 1)[0]
                if kind.kind == BYTES
                else o.loop.type(p)
            )
            for (o, p), kind in zip(operands[: len(spec.inputs)], kinds, strict=False)
        ]
        found = spec.function(*values)
        results = found if isinstance(found, tuple) else (found,)
        for (o, p), result in zip(operands[len(values) :], results, strict=True):
            peek(p, o.storage)[()] = np.asarray(result).astype(o.loop)


def on_device(x):
    """Return a CuPy array of host memory."""
    low, high = np.lib.array_utils.byte_bounds(x) if x.size else (x.ctypes.data,) * 2
    memory = cupy.cuda.UnownedMemory(low, max(high - low, 1), x, 0)
    pointer = cupy.cuda.MemoryPointer(memory, x.ctypes.data - low)
    return cupy.ndarray(x.shape, x.dtype, pointer, x.strides)


def to_host(x):
    """Return the host memory of a result."""
    shape, strides, address = x.shape, x.strides, x.data.ptr
    raw = (ctypes.c_char * max(x.data.mem.size, 1)).from_address(x.data.mem.ptr)
    start = address - x.data.mem.ptr
    return np.ndarray(shape, x.dtype, raw, start, strides).copy()


@contextmanager
def host_memory(nbytes_of=np.empty):
    def allocate(nbytes):
        memory = nbytes_of(max(nbytes, 1), np.uint8)
        unowned = cupy.cuda.UnownedMemory(memory.ctypes.data, memory.nbytes, memory, 0)
        return cupy.cuda.MemoryPointer(unowned, 0)

    with cupy.cuda.using_allocator(allocate):
        yield


def host_copy(operand):
    """Stand for ``Array.cupy``, of whose result only ``copy()`` is used."""

    def copy():
        low, high = operand.reach.low, operand.reach.high
        raw = (ctypes.c_char * (high - low)).from_address(operand.address + low)
        view = np.ndarray(operand.shape, operand.dtype, raw, -low, operand.strides)
        return on_device(view.copy())

    return SimpleNamespace(copy=copy)
