"""CUDA's driver, by C: what machine code calls, and what those calls need."""

from __future__ import annotations

import ctypes
import sys
from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, final

from xdev._c_functions import address_of
from xdev.errors import XdevError

if TYPE_CHECKING:
    from collections.abc import Sequence

UNTIMED = 2  # CU_EVENT_DISABLE_TIMING


@final
class Driver:
    """The functions of the library, by address, and events to be used again.

    Attributes
    ----------
    enter, up, down, record, wait : int
        As :class:`~xdev.transfer.express.Line` has them.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self.enter = address_of(library.cuCtxSetCurrent)
        self.up = address_of(library.cuMemcpyHtoDAsync_v2)
        self.down = address_of(library.cuMemcpyDtoHAsync_v2)
        self.record = address_of(library.cuEventRecord)
        self.wait = address_of(library.cuEventSynchronize)
        self._contexts: dict[int, int] = {}
        self._events: dict[int, deque[int]] = {}  # by context: those nobody uses

    def context(self, index: int) -> int:
        """Return a device's primary context, which the CUDA runtime uses, too."""
        found = self._contexts.get(index)
        if found is None:
            device, context = ctypes.c_int(), ctypes.c_void_p()
            self._check(self._library.cuDeviceGet(ctypes.byref(device), index))
            # For ever: the runtime keeps it as well, until the process ends.
            retain = self._library.cuDevicePrimaryCtxRetain
            self._check(retain(ctypes.byref(context), device))
            found = self._contexts[index] = context.value or 0
        return found

    def take_events(self, context: int, count: int) -> Sequence[int]:
        """Return events of a context, which is the current device's."""
        free = self._events.setdefault(context, deque())
        taken = []
        for _ in range(count):
            try:
                taken.append(free.pop())
            except IndexError:
                taken.append(self._event(context))
        return taken

    def _event(self, context: int) -> int:
        """Make one; to the runtime a device is current before its context is."""
        event = ctypes.c_void_p()
        self._check(self._library.cuCtxSetCurrent(ctypes.c_void_p(context)))
        self._check(self._library.cuEventCreate(ctypes.byref(event), UNTIMED))
        return event.value or 0

    def give_events(self, context: int, events: Sequence[int]) -> None:
        """Take events back."""
        self._events[context].extend(events)

    def explain(self, status: int) -> str:
        """Return the name and the text of an error."""
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        self._library.cuGetErrorName(status, ctypes.byref(name))
        self._library.cuGetErrorString(status, ctypes.byref(text))
        words = [part.value.decode() for part in (name, text) if part.value]
        return ": ".join(words) or f"error {status} of CUDA's driver"

    def _check(self, status: int) -> None:
        if status:
            raise XdevError(self.explain(status))


@cache
def driver() -> Driver:
    """Return the process's."""
    return Driver(library())


@cache
def library() -> ctypes.CDLL:
    """Return the library of CUDA's driver."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
