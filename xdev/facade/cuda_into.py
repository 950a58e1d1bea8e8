"""CuPy's elementwise functions into arrays that are there, with no ado."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, final

from xdev.device.cuda import current_stream_function
from xdev.facade.functions import Functions
from xdev.facade.libraries import PYTHON_SCALARS
from xdev.memory.owners import mark_uses
from xdev.memory.streams import ONE_STREAM, live_streams

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.facade.cuda import CuPyLibrary


@final
class Into:
    """What is called with ``out=``, where all of CuPy's arrays are on one device.

    It computes what is surely right, and returns NotImplemented, with nothing done, for
    the rest: the general way knows, or says what is wrong.

    Parameters
    ----------
    library : CuPyLibrary
        By its functions it computes.

    Attributes
    ----------
    one, two : Functions
        For one input and two: ``two[name](x1, x2, out)``; ``out`` is an array of
        CuPy's.
    """

    __slots__ = ("_library", "_stream", "one", "two")

    def __init__(self, library: CuPyLibrary) -> None:
        self._library = library
        self._stream = ctypes.PYFUNCTYPE(ctypes.c_int64)(current_stream_function())
        self.one, self.two = Functions(self._one), Functions(self._two)

    def _one(self, name: str) -> Callable[[Any, Any], Any]:
        array, functions = self._library.namespace.ndarray, self._library.functions
        stream, refuse = self._stream, self._library.refuse

        def write(x: Any, out: Any) -> Any:
            if type(x) is not array or x.shape != out.shape:
                return NotImplemented
            if not live_streams.several and stream() not in ONE_STREAM:
                mark_uses((x, out))  # as yet no pool may have seen the stream
            try:
                return functions[name](x, out=out)
            except TypeError:
                refuse(name, functions[name], [x], out)
                raise

        return write

    def _two(self, name: str) -> Callable[[Any, Any, Any], Any]:
        array, functions = self._library.namespace.ndarray, self._library.functions
        stream, refuse = self._stream, self._library.refuse

        def write(x1: Any, x2: Any, out: Any) -> Any:
            # CuPy's own would broadcast the result to what it is written to.
            if type(x1) is array:
                fits = x1.shape == out.shape and (
                    x2.shape == out.shape
                    if type(x2) is array
                    else type(x2) in PYTHON_SCALARS
                )
            else:
                fits = (
                    type(x1) in PYTHON_SCALARS
                    and type(x2) is array
                    and x2.shape == out.shape
                )
            if not fits:
                return NotImplemented
            if not live_streams.several and stream() not in ONE_STREAM:
                mark_uses((x1, x2, out))
            try:
                return functions[name](x1, x2, out=out)
            except TypeError:
                refuse(name, functions[name], [x1, x2], out)
                raise

        return write
