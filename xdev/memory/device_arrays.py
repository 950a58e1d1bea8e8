"""CuPy arrays at the lowest cost of making one."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from xdev import _optional, native

if TYPE_CHECKING:
    from collections.abc import Callable


@cache
def array_maker() -> Callable[..., Any]:
    """Return ``make(shape, dtype, order="C", memory=None)``, a maker of CuPy arrays.

    ``memory`` is a ``MemoryPointer`` to where the array lies; without one it lies in
    memory of its own, uninitialised.

    ``cupy.ndarray`` passes its arguments through two layers of Python before its
    compiled base takes them; for an array of 100,000 elements that is a quarter of the
    whole cost. Here the base takes them at once.
    """
    make: Callable[..., Any] = native.calls.make_arrays_of(_optional.cupy().ndarray)
    return make
