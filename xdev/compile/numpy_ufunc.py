"""Real NumPy ufuncs of compiled inner loops, made through NumPy's C API."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._forks import immortal

if TYPE_CHECKING:
    from collections.abc import Sequence

# Functions' places in NumPy's table.
FROM_FUNC_AND_DATA_AND_SIGNATURE = 31
REGISTER_LOOP_FOR_TYPE = 2
USER = 256  # the first number of dtypes that others bring
IDENTITIES = {0: 0, 1: 1, None: -1, "reorderable": -2}  # as NumPy numbers them


def register(
    loop: Any,
    inputs: Sequence[np.dtype[Any]],
    outputs: Sequence[np.dtype[Any]],
    *,
    name: str,
    doc: str,
    identity: int | str | None,
    signature: str | None = None,
) -> np.ufunc:
    """Make a NumPy ufunc of one inner loop; the loop lives for ever.

    Parameters
    ----------
    loop : object with an ``address``
        A function of NumPy's inner loop signature.
    inputs, outputs : sequence of numpy.dtype
        What the loop reads and writes.
    name, doc : str
        The ufunc's.
    identity : 0, 1, None or "reorderable"
        What a reduction of nothing is; None: reductions take one axis at a time.
    signature : str, optional
        The core dimensions of a generalized ufunc, as in ``"(n),(n)->()"``.
    """
    loops = (ctypes.c_void_p * 1)(loop.address)
    data = (ctypes.c_void_p * 1)(None)
    numbers = [dtype.num for dtype in (*inputs, *outputs)]
    # A dtype that NumPy has not from itself has a larger number, and its own call.
    user = next((number for number in numbers if number >= USER), None)
    types = bytes(numbers) if user is None else b""
    texts = name.encode(), doc.encode()
    dimensions = None if signature is None else signature.encode()
    # What the ufunc points into: NumPy copies none of it.
    immortal((loop, loops, data, types, texts, dimensions))
    counts = int(user is None), len(inputs), len(outputs), IDENTITIES[identity]
    make = _function(
        FROM_FUNC_AND_DATA_AND_SIGNATURE,
        ctypes.py_object,
        *[ctypes.c_void_p] * 2,
        ctypes.c_char_p,
        *[ctypes.c_int] * 4,
        *[ctypes.c_char_p] * 2,
        ctypes.c_int,
        ctypes.c_char_p,
    )
    made: np.ufunc = make(loops, data, types, *counts, *texts, 0, dimensions)
    if user is not None:
        add = _function(
            REGISTER_LOOP_FOR_TYPE,
            ctypes.c_int,
            ctypes.py_object,
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_int),
            ctypes.c_void_p,
        )
        add(made, user, loop.address, (ctypes.c_int * len(numbers))(*numbers), None)
    return made


@cache
def _function(place: int, result: Any, *arguments: Any) -> Any:
    """Return a function of NumPy's table, by its place there, which never changes."""
    capsule = np._core._multiarray_umath._UFUNC_API  # type: ignore[attr-defined] # noqa: SLF001
    kinds = ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p
    content = ctypes.PYFUNCTYPE(*kinds)(("PyCapsule_GetPointer", ctypes.pythonapi))
    table = (ctypes.c_void_p * (place + 1)).from_address(content(capsule, None) or 0)
    return ctypes.PYFUNCTYPE(result, *arguments)(table[place] or 0)
