# ruff: noqa: D102 - protocols.Place says what each method does
"""NumPy arrays, made in memory from xdev's host pool."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev._freed import FREED, refuse, use_after_free
from xdev._tracking import TRACKING
from xdev.errors import type_name
from xdev.facade.cpu import bare
from xdev.facade.dtype_names import to_numpy_dtype
from xdev.facade.host_memory import POOLED_FROM, SMALL, host_array, is_small, pooled
from xdev.ufunc.complaints import held_elsewhere, no_values

if TYPE_CHECKING:
    from xdev.facade.protocols import DType, Shape


_arange: Any = np.arange
_empty_like = bare("empty_like")
_linspace = bare("linspace")
OBJECT = np.dtype(object)  # this very object, for all arrays of Python's objects
NUMBERS = frozenset({bool, int, float, complex})


def as_shape(shape: Any) -> Shape:
    """Return a shape, given as an integer or a sequence of them, as a tuple.

    Raises
    ------
    TypeError
        It is neither.
    """
    try:
        if isinstance(shape, tuple | list):
            return tuple(operator.index(extent) for extent in shape)
        return (operator.index(shape),)
    except TypeError as error:
        message = (
            f"{shape!r} is not a shape: give a whole number or a tuple of them, int(n) "
            f"for an array n"
        )
        raise TypeError(message) from error


def number(name: str, value: Any) -> Any:
    """Return a fill value that is a number or a 0-d array, the host's as a scalar.

    Raises
    ------
    TypeError
        It is neither; the text names the function.
    UseAfterFreeError
        It was freed.
    """
    refuse(f"xdev.{name}", value)
    if type(value) is np.ndarray and not value.ndim:
        value = value[()]
    if isinstance(value, np.generic):
        good = not isinstance(value, np.flexible | np.datetime64 | np.timedelta64)
    else:
        good = isinstance(value, int | float | complex) or (
            getattr(value, "shape", None) == ()
        )
    if good:
        return value
    message = (
        f"xdev.{name}: fill_value is {type_name(value)}, no number: give a bool, "
        f"int, float or complex, or a 0-d array"
    )
    raise TypeError(message)


def dtype_of_number(value: Any) -> Any:
    """Return the data type of an array that is filled with a number.

    Raises
    ------
    OverflowError
        No integer data type is large enough.
    """
    found = getattr(value, "dtype", None) or np.asarray(value).dtype
    if getattr(found, "hasobject", False):
        message = (
            f"xdev.full: fill_value is an integer of {value.bit_length()} bits, which "
            f"no integer data type holds: give dtype=xdev.float64"
        )
        raise OverflowError(message)
    return found


@final
class HostPlace:
    """The host."""

    __slots__ = ()

    def empty(self, shape: Any, dtype: DType, order: str = "C") -> Any:
        try:
            if is_small(shape, dtype):
                return np.empty(shape, dtype, order)  # type: ignore[call-overload]
        except (TypeError, ValueError):
            pass  # said better below
        kind = np.dtype(np.float64) if dtype is None else to_numpy_dtype(dtype)
        if kind.hasobject:  # pointers must start as None, not as old memory
            return np.empty(shape, kind)
        return host_array()(as_shape(shape), kind, order)

    def zeros(self, shape: Any, dtype: DType) -> Any:
        try:
            if is_small(shape, dtype):
                return np.zeros(shape, dtype)
        except (TypeError, ValueError):
            pass  # said better by empty()
        out = self.empty(shape, dtype)
        out.fill(0)
        return out

    def ones(self, shape: Any, dtype: DType) -> Any:
        out = self.empty(shape, dtype)
        out.fill(1)
        return out

    def full(self, shape: Any, value: Any, dtype: DType) -> Any:
        if dtype is None:
            dtype = None if type(value) is float else dtype_of_number(value)
        out = self.empty(shape, dtype)
        out.fill(_on_host(value))
        return out

    def empty_like(self, x: Any, dtype: DType) -> Any:
        if dtype is None and TRACKING.off and x.nbytes < POOLED_FROM:
            return _empty_like(x, None, "K", False)
        kind = x.dtype if dtype is None else dtype
        return self.empty(x.shape, kind, "F" if x.flags.fnc else "C")

    def zeros_like(self, x: Any, dtype: DType) -> Any:
        return self.full_like(x, 0, dtype)

    def ones_like(self, x: Any, dtype: DType) -> Any:
        return self.full_like(x, 1, dtype)

    def full_like(self, x: Any, value: Any, dtype: DType) -> Any:
        out = self.empty_like(x, dtype)
        out.fill(_on_host(value))
        return out

    def arange(self, start: Any, stop: Any, step: Any, dtype: DType) -> Any:
        if dtype is None:
            made = _arange(start, stop, step)
            if made.dtype is OBJECT:
                raise _of_no_dtype(start, stop, step)
        else:
            made = _arange(start, stop, step, to_numpy_dtype(dtype))
        return made if made.nbytes < POOLED_FROM else pooled(made)

    def linspace(
        self, start: Any, stop: Any, num: int, dtype: DType, endpoint: bool
    ) -> Any:
        kind = None if dtype is None else to_numpy_dtype(dtype)
        made = _linspace(start, stop, num, endpoint, False, kind)
        return made if made.nbytes < POOLED_FROM else pooled(made)

    def eye(self, rows: int, columns: int, k: int, dtype: DType) -> Any:
        if dtype is None and TRACKING.off and 0 < rows * columns < SMALL:
            out = np.zeros((rows, columns))
        else:
            out = self.zeros((rows, columns), dtype)
        if -rows < k < columns:
            first = k if k >= 0 else -k * columns
            last = (columns - k) * columns  # where the diagonal leaves the matrix
            out.ravel()[first : last : columns + 1] = 1
        return out

    def asarray(self, obj: Any, dtype: DType, copy: bool | None) -> Any:
        kind = None if dtype is None else to_numpy_dtype(dtype)
        if isinstance(obj, np.ndarray):
            same = kind is None or kind == obj.dtype
            if not copy and (same or copy is False):
                return np.asarray(obj, dtype=kind, copy=copy)
            out = self.empty_like(obj, kind)
            np.copyto(out, obj, casting="unsafe")
            return out
        try:
            made = np.array(obj, dtype=kind, copy=copy)
        except (TypeError, ValueError) as error:
            refusal = no_values(obj) or held_elsewhere(_array_of_another(obj))
            if refusal is None:
                raise
            raise refusal from error
        if made.dtype in FREED:
            raise use_after_free(made, "xdev.asarray: what makes an array")
        if made.dtype.hasobject and kind is None:
            message = (
                f"xdev.asarray: a {type(obj).__name__} has no data type of the "
                f"standard: give numbers that fit one, or dtype="
            )
            raise no_values(obj) or TypeError(message)
        return pooled(made) if made.base is None else made

    def fftfreq(self, n: int, d: float, dtype: DType) -> Any:
        made = _arange(n)
        made[(n + 1) // 2 :] = _arange(-(n // 2), 0)
        made = made * (1.0 / (n * d))
        return pooled(made if dtype is None else made.astype(to_numpy_dtype(dtype)))

    def rfftfreq(self, n: int, d: float, dtype: DType) -> Any:
        made = _arange(n // 2 + 1) * (1.0 / (n * d))
        if dtype is None and made.nbytes < POOLED_FROM:
            return made
        return pooled(made if dtype is None else made.astype(to_numpy_dtype(dtype)))

    def from_dlpack(self, x: Any, copy: bool | None) -> Any:
        made = np.from_dlpack(x, copy=copy)
        return pooled(made) if copy else made


HOST = HostPlace()


def _array_of_another(nested: Any) -> Any:
    """Return the first array in nested sequences that is not NumPy's, if there is."""
    if isinstance(nested, list | tuple):
        return next((x for x in map(_array_of_another, nested) if x is not None), None)
    numpys = isinstance(nested, np.ndarray | np.generic)
    return nested if hasattr(nested, "__dlpack__") and not numpys else None


def _of_no_dtype(*given: Any) -> Exception:
    """Return the error for a range of numbers that are none of NumPy's."""
    way = "give dtype=xdev.float64"
    odd = [x for x in given if not isinstance(x, int | float | np.generic | None)]
    if odd:
        return TypeError(
            f"xdev.arange: no data type of the standard holds a "
            f"{type_name(odd[0])}: {way}"
        )
    bits = max(int(x).bit_length() for x in given if isinstance(x, int))
    return OverflowError(
        f"xdev.arange: an integer has {bits} bits, which no integer data type holds: "
        f"{way}"
    )


def _on_host(value: Any) -> Any:
    """Return a number or an array here; one of a device does not come unasked."""
    return value if type(value) in NUMBERS else np.asarray(value)
