"""What is left of an array whose memory was given back by hand.

The object stays where users hold it, without any memory. A NumPy array gets, in place,
a data type with which NumPy itself computes nothing: calls that work pay no test, and
only the way of an error looks whether an argument was freed. The data type has no
bytes where the memory went back, and those of the array's own where the memory is not
a pool's and stays as it is. An array of CuPy's, or a fake one, gets a class of this
module's kind, which no fast way takes. What cannot be changed is noted here.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from xdev.errors import UseAfterFreeError


def _dtype(itemsize: int) -> np.dtype[Any]:
    """Return the data type of freed NumPy arrays whose elements had so many bytes."""
    # Of two fields: ``logical_and`` takes an only field for the record itself.
    names = ["freed before, by xdev.memory.free", "memory"]  # NumPy's errors show them
    fields = {"names": names, "formats": ["V0", "V0"], "offsets": [0, 0]}
    return np.dtype({**fields, "itemsize": itemsize})  # type: ignore[call-overload,no-any-return]


EMPTY = _dtype(0)  # of what has no memory any more
#: The data types of freed NumPy arrays; one for each size that was met.
FREED = {EMPTY}
#: By identity: freed arrays that have no mark of their own, or whose line is known; and
#: the lines that freed them.
_noted: dict[int, tuple[weakref.ref[Any], str]] = {}
# NumPy 2.5 deprecates to set the attribute, and has this method for who must.
_set_dtype: Any = getattr(np.ndarray, "_set_dtype", np.ndarray.dtype.__set__)  # type: ignore[attr-defined]


class Remains:
    """What the class of a freed array of another library derives from, before all."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<freed array of shape {self.shape}>"  # type: ignore[attr-defined]

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise use_after_free(self)

    __str__ = __repr__
    __array__ = __array_function__ = __array_ufunc__ = __dlpack__ = _refuse
    __format__ = __iter__ = __len__ = item = tobytes = tolist = _refuse
    __bool__ = __int__ = __float__ = __complex__ = _refuse


def is_freed(x: object) -> bool:
    """Say whether an array's memory was given back by hand."""
    if isinstance(x, np.ndarray) and x.dtype in FREED:
        return True
    noted = _noted.get(id(x)) if _noted else None
    return isinstance(x, Remains) or (noted is not None and noted[0]() is x)


def mark(x: np.ndarray[Any, Any]) -> None:
    """Make a NumPy array one of no values, in place; its memory stays as it is."""
    dtype = _dtype(x.itemsize)
    FREED.add(dtype)
    if x.dtype.hasobject:  # NumPy does not let go of what such an array refers to
        note(x)
    else:
        _set_dtype(x, dtype)


def note(x: Any, line: str = "") -> None:
    """Remember that an array was freed, and by which line, as long as it lives."""
    if isinstance(x, np.generic):  # a number: there is nothing to free
        return
    key = id(x)
    line = line or _noted.get(key, (None, ""))[1]
    _noted[key] = weakref.ref(x, lambda _: _noted.pop(key, None)), line


def refuse(name: str, x: object) -> None:
    """Raise UseAfterFreeError if the array that a function got was freed."""
    if is_freed(x):
        raise use_after_free(x, f"{name}: the array")


def use_after_free(x: Any, what: str = "this array") -> UseAfterFreeError:
    """Return the error for the use of a freed array, given as ``what``."""
    _, line = _noted.get(id(x), (None, ""))
    where = f" at {line}" if line else ""
    shape = getattr(x, "shape", None)  # what only exports memory may have none
    of_shape = "" if shape is None else f" of shape {tuple(shape)}"
    return UseAfterFreeError(
        f"{what}{of_shape} was freed before{where}, by "
        f"xdev.memory.free: free it after its last use"
    )
