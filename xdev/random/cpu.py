"""Random values in host memory."""

from __future__ import annotations

import struct
from ctypes import byref, c_char
from functools import cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.compile.indexed import cpu as compiler
from xdev.memory import host_array
from xdev.transfer.cpu import shared

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.compile.indexed import Indexed
    from xdev.device import Device


@cache
def single(kernel: Indexed) -> Callable[..., Any]:
    """Return what computes the value at index 0 from parameters, as a Python number."""
    kind: Any = np.ctypeslib.as_ctypes_type(kernel.result)
    fill, pack = compiler.loop(kernel), _packed(kernel)

    def value(*values: float) -> Any:
        out = kind()
        fill(byref(out), 1, pack(*values))
        return out.value

    return value


def _fill(kernel: Indexed, out: Any, values: tuple[Any, ...]) -> None:
    if out.size:
        address = byref(c_char.from_buffer(out))  # quicker than out.ctypes.data
        compiler.loop(kernel)(address, out.size, _packed(kernel)(*values))


@cache
def _packed(kernel: Indexed) -> Callable[..., bytes]:
    """Return what packs parameters into 8 bytes each."""
    chars = ("d" if dtype.kind == "f" else "Q" for dtype in kernel.parameters)
    return struct.Struct("=" + "".join(chars)).pack


@final
class CpuHome:
    """The host, as :class:`xdev.random.homes.Home` says.

    Parameters
    ----------
    device : Device
        The host; there is one.
    """

    def __init__(self, device: Device) -> None:
        self.device = device

    def make(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Return new memory."""
        return host_array(shape, dtype)

    def fill(self, kernel: Indexed, memory: Any, values: tuple[Any, ...]) -> None:
        """Write a call's values, element by element in C order."""
        if memory.flags.carray:
            _fill(kernel, memory, values)
        else:
            made = host_array(memory.shape, memory.dtype)
            _fill(kernel, made, values)
            np.copyto(memory, made)

    def memory(self, out: Any) -> Any:
        """Return the memory of the user's ``out``."""
        found = shared(out)
        if not found.flags.writeable:
            message = "out= is read-only: pass a writable array, such as out.copy()"
            raise ValueError(message)
        return found

    def array(self, memory: Any) -> Any:
        """Return memory as the user gets it."""
        return memory
