"""Two stand-ins for GPUs, for tests where none is.

Their arrays (:mod:`xdev.device.fake_arrays`) lie in the host's memory and are computed
by NumPy, but can do no more than CuPy's: they meet no array of another device and turn
into no NumPy array unasked. Only what CUDA's compiler says, and races, are not seen.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.device.choice import Device
from xdev.device.registry import Backend

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 2  # array_api_strict's devices that are not the CPU are as many


@final
class FakeBackend(Backend):
    """Streams and events of the host, arrays of :mod:`xdev.device.fake_arrays`."""

    def count(self) -> int:
        """Return 2."""
        return COUNT

    def reason(self, index: int) -> str | None:
        """Refuse every index but 0 and 1."""
        if index < COUNT:
            return None
        return "there are two fake devices: use 'fake:0' or 'fake:1'"

    def native(self, index: int) -> Device:
        """Return the device itself, as the arrays' ``device`` is."""
        return Device(f"fake:{index}")


BACKEND = FakeBackend()
LARGE = 16 << 20  # bytes; of less the host has room while they are refused
_allocators: list[Callable[[int, int], object]] = []  # none, or the one that serves
# By identity of the array that owns the bytes, as long as it lives.
_held: dict[int, tuple[weakref.ref[Any], object]] = {}


def set_allocator(allocator: Callable[[int, int], object]) -> None:
    """Let ``allocator(nbytes, index)`` give the blocks; dropping one releases it."""
    _allocators[:] = [allocator]


def make_room(nbytes: int, index: int) -> None:
    """See to it that fake device ``index`` has room, before NumPy makes the bytes."""
    if nbytes >= LARGE and _allocators:
        _allocators[-1](nbytes, index)  # it goes back at once, for whoever is next


def account(values: np.ndarray[Any, Any], index: int) -> np.ndarray[Any, Any]:
    """Count memory as fake device ``index``'s; it is copied if not NumPy's own."""
    owner = _owner(values)
    if owner.base is not None:  # a pool's memory of the host, or a foreign buffer
        values = owner = values.copy(order="K")
    key = id(owner)
    if key not in _held and owner.nbytes and _allocators:
        block = _allocators[-1](owner.nbytes, index)
        # In C alone: at a line of Python an interrupt would leave the block held.
        _held[key] = weakref.ref(owner, partial(_held.pop, key)), block
    return values


def block_of(owner: np.ndarray[Any, Any]) -> object:
    """Return the block that is held for an array of its own bytes, None without one."""
    return _held.get(id(owner), (None, None))[1]


def _owner(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    while isinstance(values.base, np.ndarray):
        values = values.base
    return values


#: What is in NumPy's namespaces and not in CuPy's.
NOT_IN_CUPY = (
    *("ScalarType", "True_", "False_", "asmatrix", "block", "bmat"),
    *("busday_count", "busday_offset", "busdaycalendar", "bytes_", "char"),
    *("character", "clongdouble", "core", "ctypeslib", "datetime64"),
    *("datetime_as_string", "datetime_data", "dtypes", "einsum_path", "emath"),
    *("errstate", "f2py", "flexible", "frompyfunc", "fromregex", "geomspace"),
    *("get_include", "getbufsize", "geterr", "geterrcall", "histogram_bin_edges"),
    *("info", "insert", "is_busday", "isnat", "little_endian", "longdouble"),
    *("ma", "matrix", "matvec", "memmap", "nanpercentile", "nanquantile"),
    *("ndenumerate", "nditer", "nested_iters", "object_", "polyder", "polydiv"),
    *("polyint", "rec", "recarray", "record", "sctypeDict", "setbufsize"),
    *("seterr", "seterrcall", "show_runtime", "spacing", "str_", "strings"),
    *("test", "timedelta64", "typecodes", "unstack", "vecdot", "vecmat", "void"),
    *("linalg.diagonal", "linalg.matrix_norm", "linalg.multi_dot"),
    *("linalg.outer", "linalg.svdvals", "linalg.tensordot", "linalg.test"),
    *("linalg.trace", "linalg.vecdot", "linalg.vector_norm", "fft.test"),
)
#: CuPy's ufuncs that have a method; all have ``outer``.
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
METHODS_IN_CUPY = {
    "reduce": ("add", "multiply"),
    "accumulate": ("add", "multiply"),
    "reduceat": ("add",),
    "at": ("add", "maximum", "minimum", "subtract", *BITWISE),
}


def is_in_cupy(name: str) -> bool:
    """Say whether CuPy has what NumPy has under a name."""
    root, _, rest = name.partition(".")
    missing = root in NOT_IN_CUPY or name in NOT_IN_CUPY
    return not missing and root in METHODS_IN_CUPY.get(rest, (root,))
