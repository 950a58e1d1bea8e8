"""A function's rules, NumPy's or a signature's, and the dtypes of its results."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from xdev.compile.halves import is_half

# Result dtypes: the inputs' result type, save where the function's kind is another.
#
# Python numbers are int64, float64 and complex128; what is cast inside stays so wide.

Dtypes = tuple[np.dtype[Any], ...]
BOOL = np.dtype(np.bool_)


def result_dtypes(found: Dtypes, working: np.dtype[Any]) -> Dtypes:
    """Return the dtypes of a function's results.

    Parameters
    ----------
    found : tuple of numpy.dtype
        What the compiler infers, after its own promotions (int8 + int8 is int64).
    working : numpy.dtype
        The inputs' result type, its literals counted as NEP 50 does.

    Examples
    --------
    >>> result_dtypes((np.dtype("float64"), np.dtype("bool")), np.dtype("float32"))
    (dtype('float32'), dtype('bool'))
    """
    return tuple(_dtype(one, working) for one in found)


def result_dtype(kind: np.dtype[Any], working: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a result that NumPy gives a dtype.

    It is the inputs' result type, unless a cast inside gives what that does not have.

    Examples
    --------
    >>> result_dtype(np.dtype("int64"), np.dtype("uint8"))
    dtype('int64')
    >>> result_dtype(np.dtype("uint8"), np.dtype("int32"))
    dtype('int32')
    """
    dtype = _dtype(kind, working)
    if is_half(dtype):  # computed in float32
        return dtype if kind == np.float32 else kind
    return dtype if np.can_cast(kind, dtype) else kind


def _dtype(found: np.dtype[Any], working: np.dtype[Any]) -> np.dtype[Any]:
    """Return one result's dtype; the table is found kind by working kind."""
    if found == BOOL:
        return BOOL
    if found.kind == "c":
        return np.result_type(working, 1j)
    if working.kind == "c" and found.kind == "f":
        return real(working)
    if found.kind == "f" and working.kind not in "fV":  # true division, math.sin
        return found
    if found.kind in "iu" and working.kind not in "iub":  # counts, int(x)
        return found
    return working


def real(working: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the real part of values of an inexact dtype."""
    dtype: np.dtype[Any] = working.type(0).real.dtype
    return dtype


# By what rules a function is typed: those of NumPy, or a signature's.

WIDEST = np.dtype(np.uint64)
NATIVE = np.dtype(np.int64)  # the integers that compilers compute in


@final
class Rules:
    """How a function's integers meet.

    Parameters
    ----------
    inputs, outputs : tuple of numpy.dtype
        The function's, its results where a signature has them.
    working : numpy.dtype, optional
        Instead of the inputs' result type.
    bounded : bool, optional
        Instead of what follows from the dtypes: whether integers have NumPy's dtypes,
        into which literals must fit. A signature means Numba's integers.
    """

    __slots__ = ("bounded", "inputs", "mixed", "working")

    def __init__(
        self,
        inputs: Dtypes,
        outputs: Dtypes = (),
        *,
        working: np.dtype[Any] | None = None,
        bounded: bool | None = None,
    ) -> None:
        self.inputs = inputs
        self.working = np.result_type(*inputs) if working is None else working
        #: Whether uint64 meets signed integers.
        self.mixed = _mixed(inputs, outputs)
        self.bounded = not outputs if bounded is None else bounded

    @property
    def numpys(self) -> bool:
        """Return whether compilers' integers are not what is meant."""
        return bool(self.inputs) and (self.bounded or self.mixed)

    @property
    def needs_source(self) -> bool:
        """Return whether compilers' integers would give other numbers than NumPy's.

        Of bools they would give integers.
        """
        integers = {dtype for dtype in self.inputs if dtype.kind in "iu"}
        bools = self.working.kind == "b"
        return self.numpys and (bools or bool(integers - {NATIVE}))

    def result(self, kind: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of a result that NumPy gives a dtype."""
        return result_dtype(kind, self.working)

    @property
    def words(self) -> tuple[bool, bool]:
        """Return what a key on disk has of them, beside the inputs."""
        return self.mixed, self.bounded


def _mixed(inputs: Dtypes, outputs: Dtypes = ()) -> bool:
    """Say whether a function's integers have no common dtype.

    Parameters
    ----------
    inputs, outputs : tuple of numpy.dtype
        The inputs, and the results where a signature has them: integers among these
        say that it means to compute in integers, as Numba does.

    Examples
    --------
    >>> unsigned, signed = np.dtype("uint64"), np.dtype("int8")
    >>> _mixed((unsigned, signed)), _mixed((unsigned, unsigned))
    (True, False)
    """
    meant = any(dtype.kind in "iu" for dtype in outputs)
    others = any(dtype.kind in "ib" for dtype in inputs)
    return WIDEST in inputs and others and not meant
