"""A kernel launch as a C function of Python: arguments in, one driver call, no Python.

``start(plan, *values)`` costs 0.1 µs more than the driver's call does. It is written
for LLVM here, so that it needs no Numba, and kept on disk.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import TYPE_CHECKING, final

from xdev import _machine_code
from xdev._c_functions import address_of, made_of
from xdev._disk_cache import DiskCache
from xdev.compile import machine_words
from xdev.device.cuda import current_stream_function

if TYPE_CHECKING:
    from collections.abc import Callable

SLOT = 16  # bytes that an operand has in a kernel's parameter
LIMIT = 4096  # bytes of a kernel's parameter that every driver takes
KNOWN_STREAMS = 64

# A plan's words, then four words for each value, then the parameter. Blocks and threads
# are three each; HEAD is even, so that the parameter is aligned as a slot is.
FUNCTION, BLOCKS, THREADS, NBYTES, COUNT, OUTPUT, FIRST, HEAD = 0, 1, 4, 7, 8, 9, 10, 12
KIND, LOW, HIGH, SAME, EACH = range(5)
# How a value gets into its slot. Of an integer, LOW is 64 less its bits.
ADDRESS, DOUBLE, FLOAT, SIGNED, UNSIGNED, BYTES = range(6)

# What ``start`` returns but for the driver's own errors, which are positive.
STARTED, NO_VALUE, OVERLAP, NEW_STREAM = 0, -1, -2, -3

FUNCTIONS = (
    "PyLong_AsUnsignedLongLong",
    "PyLong_AsLongLong",
    "PyFloat_AsDouble",
    "PyBytes_AsString",
    "PyErr_Occurred",
    "PyErr_Clear",
    "PyLong_FromLong",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)
STREAM = len(FUNCTIONS)  # words of the table: addresses, then the known streams
LAUNCH, STREAMS, FIRST_STREAM = range(STREAM + 1, STREAM + 4)
WORDS = FIRST_STREAM + KNOWN_STREAMS
TABLE = "xdev_launch_table"
NAME = "xdev_launch"
_cache = DiskCache("native")


@final
class Starter:
    """The function, and the table that it works by.

    Attributes
    ----------
    start : callable
        ``start(plan, *values)`` launches on CuPy's current stream; ``plan`` is an
        address. Returns 0, an error of the driver, or one of ``NO_VALUE`` (a value
        does not fit), ``OVERLAP`` (an input overlaps the output), ``NEW_STREAM``: then
        nothing was launched.
    """

    start: Callable[..., int]

    def __init__(self, stream: int, launch: int) -> None:
        place = _machine_code.load(_binary())
        self._table = (ctypes.c_int64 * WORDS).from_address(place(TABLE))
        for k, name in enumerate(FUNCTIONS):
            self._table[k] = address_of(getattr(ctypes.pythonapi, name))
        self._table[STREAM], self._table[LAUNCH] = stream, launch
        self.start = made_of(NAME, place(NAME))

    def know(self, handles: list[int]) -> None:
        """Say which streams need no look by Python."""
        for k, handle in enumerate(handles[-KNOWN_STREAMS:]):
            self._table[FIRST_STREAM + k] = handle
        self._table[STREAMS] = min(len(handles), KNOWN_STREAMS)


@cache
def starter() -> Starter:
    """Return the one of the process."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    driver = ctypes.CDLL(name)
    stream = current_stream_function()
    return Starter(stream, address_of(driver.cuLaunchKernel))


def _binary() -> bytes:
    """Return the function's machine code."""
    files = __file__.replace(".py", "_code.py"), machine_words.__file__
    key = _machine_code.key(__file__, *files)
    found = _cache.load(key)
    if found is None:
        from xdev.compile import machine_launch_code

        found = _machine_code.emit([machine_launch_code.text()], long=False)
        _cache.save(key, found, NAME)
    return found
