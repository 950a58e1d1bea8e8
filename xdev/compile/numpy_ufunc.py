"""Real NumPy ufuncs of compiled inner loops, made through NumPy's C API."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

FROM_FUNC_AND_DATA = 1  # the function's place in NumPy's table
IDENTITIES = {0: 0, 1: 1, None: -1, "reorderable": -2}  # as NumPy numbers them
_FOR_EVER: list[object] = []  # what ufuncs point into: NumPy copies none of it


def register(
    loop: Any,
    inputs: Sequence[np.dtype[Any]],
    outputs: Sequence[np.dtype[Any]],
    *,
    name: str,
    doc: str,
    identity: int | str | None,
) -> np.ufunc:
    """Make a NumPy ufunc of one inner loop; the loop lives for ever.

    Parameters
    ----------
    loop : CFunc
        A function of NumPy's inner loop signature.
    inputs, outputs : sequence of numpy.dtype
        What the loop reads and writes.
    name, doc : str
        The ufunc's.
    identity : 0, 1, None or "reorderable"
        What a reduction of nothing is; None: reductions take one axis at a time.
    """
    loops = (ctypes.c_void_p * 1)(loop.address)
    data = (ctypes.c_void_p * 1)(None)
    types = bytes(dtype.num for dtype in (*inputs, *outputs))
    texts = name.encode(), doc.encode()
    _FOR_EVER.append((loop, loops, data, types, texts))
    counts = 1, len(inputs), len(outputs), IDENTITIES[identity]
    made: np.ufunc = _from_func_and_data()(loops, data, types, *counts, *texts, 0)
    return made


@cache
def _from_func_and_data() -> Any:
    """Return NumPy's ``PyUFunc_FromFuncAndData``."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = np._core._multiarray_umath._UFUNC_API  # type: ignore[attr-defined] # noqa: SLF001
    table = ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        *[ctypes.c_void_p] * 2,
        ctypes.c_char_p,
        *[ctypes.c_int] * 4,
        *[ctypes.c_char_p] * 2,
        ctypes.c_int,
    )
    return prototype(table[FROM_FUNC_AND_DATA])
