"""Kernels over indices: a function of an index writes its own elements of an array.

The function reads no array, so that nothing but the result passes through memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.compile.cpu import device_function
from xdev.compile.digests import named_globals

if TYPE_CHECKING:
    from collections.abc import Callable

INDEX = np.dtype(np.uint64)


@final
@dataclass(frozen=True, slots=True, eq=False)  # a key of dicts: hashed as an object
class Indexed:
    """A function of an index, and the types that it is compiled for.

    Each object is compiled for itself: keep one for all calls.

    Parameters
    ----------
    function : callable
        ``function(index, *parameters)``, plain Python on scalars. It returns ``lanes``
        values, a tuple of them if there are several: elements ``lanes * index`` and
        following. It may call other plain functions that its module names.
    parameters : tuple of numpy.dtype
        The parameters' dtypes, 8 bytes at most each; the index is an uint64.
    result : numpy.dtype
        The dtype of the elements; what the function returns is cast to it.
    lanes : int
        How many elements an index has: 1, 2 or 4.
    """

    function: Callable[..., Any]
    parameters: tuple[np.dtype[Any], ...]
    result: np.dtype[Any]
    lanes: int

    @property
    def types(self) -> tuple[object, ...]:
        """What decides the machine code beside the function."""
        return self.parameters, self.result, self.lanes

    def callable(self) -> Callable[..., Any]:
        """Return the function with those that it calls compiled, on every device."""
        return closed(self.function)


def _callees(function: FunctionType) -> dict[str, FunctionType]:
    """Return the plain functions that a function names."""
    named = ((n, function.__globals__.get(n)) for n in function.__code__.co_names)
    return {n: value for n, value in named if isinstance(value, FunctionType)}


def closed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a plain function whose callees are compiled ones."""
    plain: Any = function
    names = {
        name: device_function(closed(callee))
        for name, callee in _callees(plain).items()
    }
    known = {**named_globals(plain), **names}
    made = FunctionType(plain.__code__, known, plain.__name__, plain.__defaults__)
    made.__doc__ = plain.__doc__
    return made
