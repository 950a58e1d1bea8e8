"""Functions that make ranges, grids, diagonals and triangles, and fft's frequencies."""

from __future__ import annotations

import math
import numbers
import operator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from xdev.device.choice import CPU, from_environment, in_context, shown
from xdev.errors import type_name
from xdev.facade.cpu import SMALL
from xdev.facade.dispatch import of_each, of_one, place
from xdev.ufunc.complaints import misplaced

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.protocols import Array, DType

__all__ = [
    "arange",
    "eye",
    "linspace",
    "meshgrid",
    "tril",
    "triu",
]

_arange: Any = np.arange
INT64 = np.dtype(np.int64)
ONE = 1  # this very object, as small integers are: an array is not even compared
PLAIN = frozenset({int, float, type(None)})  # as ranges take them with no more ado


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    dtype: DType = None,
    *more: Never,
    device: object = None,
    chunks: Any = None,
) -> Any:
    """Evenly spaced numbers in the half-open range from ``start`` to ``stop``.

    Parameters
    ----------
    start, stop, step : number
        With one argument that is ``stop``, and ``start`` is 0.
    dtype : dtype, optional
        From the arguments unless given.
    device : device, optional
        The default device unless given.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks, each made on the
        device when it is computed.

    Returns
    -------
    array
        Shape ``(ceil((stop - start) / step),)``.

    Raises
    ------
    ValueError
        ``step`` is 0, a number is NaN, or the range more than memory could ever hold.
    TypeError
        An argument is no number of the host: an array of several, or one on a device.
    ConfigurationError, DeviceUnavailableError
        There is no such device, or it cannot be used.

    Examples
    --------
    >>> import xdev
    >>> xdev.arange(0, 10, 3)
    array([0, 3, 6, 9])
    """
    if more:
        raise misplaced(arange, more)
    if (
        (stop is None and step is ONE and device is dtype is chunks is None)
        and (type(start) is int and start < SMALL)
        and (in_context() or (from_environment and from_environment[0])) is CPU
    ):
        return _arange(0, start, ONE, INT64)  # its own look for a type takes 30 ns
    start, stop = _number("arange", "start", start), _number("arange", "stop", stop)
    step = _number("arange", "step", step)
    if not step:
        message = f"xdev.arange: step is {step}, which leads nowhere: use another"
        raise ValueError(message)
    where = place(device, chunks)
    try:
        return where.arange(start, stop, step, dtype)
    except (ArithmeticError, RuntimeError, ValueError) as error:
        for label, x in ("start", start), ("stop", stop), ("step", step):
            if x in (math.inf, -math.inf) or x != x:  # noqa: PLR0124 - NaN
                message = f"xdev.arange: {label} is {x}: give a finite number"
                raise ValueError(message) from error
        raise


def _number(name: str, label: str, x: Any) -> Any:
    """Return a number of the host, None too, or refuse what is none."""
    if type(x) in PLAIN:
        return x
    if type(x) is np.ndarray and not x.ndim:
        x = x[()]
    if isinstance(x, np.generic):
        good = not isinstance(x, np.flexible)
    else:
        good = isinstance(x, numbers.Number)
    if good:
        return x
    way = f" of the host, float({label})" if getattr(x, "shape", None) == () else ""
    message = f"xdev.{name}: {label} is not a number but {type_name(x)}: give one{way}"
    raise TypeError(message)


def _whole(name: str, **arguments: Any) -> list[int]:
    """Return whole numbers of the host as Python's."""
    found = []
    for label, x in arguments.items():
        try:
            found.append(operator.index(x))
        except TypeError as error:
            scalar = getattr(x, "shape", None) == ()
            way = f" of the host, int({label})" if scalar else ""
            message = f"xdev.{name}: {label} is {shown(x)}: give a whole number{way}"
            raise TypeError(message) from error
    return found


def _sampled(name: str, n: Any, d: Any) -> tuple[int, Any]:
    """Return how many samples there are, and their distance, checked."""
    if type(n) is not int:
        (n,) = _whole(name, n=n)
    if type(d) is not float:
        d = _number(name, "d", d)
    if n < 1:
        raise ValueError(f"xdev.{name}: n is {n}: a transform has 1 element or more")
    if d == 0:
        message = f"xdev.{name}: d, the distance of the samples, is 0: give another"
        raise ValueError(message)
    return n, d


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    k: int = 0,
    dtype: DType = None,
    *more: Never,
    device: object = None,
    chunks: Any = None,
) -> Any:
    """Matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows, n_cols : int
        ``n_cols`` is ``n_rows`` unless given.
    k : int
        Which diagonal: 0 the main one, above it positive.
    dtype : dtype, optional
        float64 unless given.
    device : device, optional
        The default device unless given.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks, each made on the
        device when it is computed.

    Returns
    -------
    array
        Shape (n_rows, n_cols).

    Raises
    ------
    ValueError
        A size is negative.
    TypeError
        A size or ``k`` is no whole number.

    Examples
    --------
    >>> import xdev
    >>> xdev.eye(2, 3, k=1)
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    if more:
        raise misplaced(eye, more)
    columns = n_rows if n_cols is None else n_cols
    if type(n_rows) is not int or type(columns) is not int or type(k) is not int:
        # NumPy's own integers overflow in what is computed of them.
        n_rows, columns, k = _whole("eye", n_rows=n_rows, n_cols=columns, k=k)
    return place(device, chunks).eye(n_rows, columns, k, dtype)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *more: Never,
    dtype: DType = None,
    device: object = None,
    endpoint: bool = True,
    chunks: Any = None,
) -> Any:
    """Evenly spaced numbers over a range.

    Parameters
    ----------
    start, stop : number
        Ends of the range.
    num : int
        How many.
    dtype : dtype, optional
        Floating-point unless given.
    device : device, optional
        The default device unless given.
    endpoint : bool
        Whether ``stop`` is the last of them.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks, each made on the
        device when it is computed.

    Returns
    -------
    array
        Shape (num,).

    Raises
    ------
    ValueError
        ``num`` is negative.
    TypeError
        ``num`` is no whole number, or an end no number.

    Examples
    --------
    >>> import xdev
    >>> xdev.linspace(0, 1, 5)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if more:
        raise misplaced(linspace, more)
    where = place(device, chunks)
    try:
        return where.linspace(start, stop, num, dtype, endpoint)
    except (TypeError, ValueError):
        _whole("linspace", num=num)
        _number("linspace", "start", start)
        _number("linspace", "stop", stop)
        raise


def meshgrid(*arrays: Array, indexing: Literal["xy", "ij"] = "xy") -> tuple[Array, ...]:
    """Coordinate arrays of a grid.

    Parameters
    ----------
    *arrays : array
        Coordinates along each axis, 1-D.
    indexing : {"xy", "ij"}
        ``"xy"``: the first coordinate runs along the second axis.

    Returns
    -------
    tuple of arrays
        As many as arguments, each of the grid's shape.

    Raises
    ------
    DeviceMismatchError
        The arrays are of two devices or libraries.

    Examples
    --------
    >>> import xdev
    >>> x, y = xdev.meshgrid(xdev.arange(3), xdev.arange(2))
    >>> y
    array([[0, 0, 0],
           [1, 1, 1]])
    """
    if not arrays:
        return ()
    found = of_each("meshgrid", "arrays", arrays)(*arrays, indexing=indexing)
    return tuple(found)


def tril(x: Array, /, k: int = 0) -> Array:
    """Lower triangle of matrices; the rest is zero.

    Parameters
    ----------
    x : array
        Shape (..., M, N).
    k : int
        The highest diagonal kept.

    Returns
    -------
    array
        Of ``x``'s shape.

    Examples
    --------
    >>> import xdev
    >>> xdev.tril(xdev.ones((2, 2)))
    array([[1., 0.],
           [1., 1.]])
    """
    return of_one("tril", x)(x, k=k)


def triu(x: Array, /, k: int = 0) -> Array:
    """Upper triangle of matrices; the rest is zero.

    Parameters
    ----------
    x : array
        Shape (..., M, N).
    k : int
        The lowest diagonal kept.

    Returns
    -------
    array
        Of ``x``'s shape.

    Examples
    --------
    >>> import xdev
    >>> xdev.triu(xdev.ones((2, 2)))
    array([[1., 1.],
           [0., 1.]])
    """
    return of_one("triu", x)(x, k=k)


def fftfreq(
    n: int,
    /,
    d: float = 1.0,
    *more: Never,
    dtype: DType = None,
    device: object = None,
    chunks: Any = None,
) -> Any:
    """Frequencies of :func:`fft`'s elements [1/s].

    Parameters
    ----------
    n : int
        Length of the transform.
    d : float
        Distance of the samples [s].
    dtype : dtype, optional
        Floating-point; float64 unless given.
    device : device, optional
        The default device unless given.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks.

    Returns
    -------
    array
        Shape (n,): 0 upwards, then the negative ones.

    Raises
    ------
    TypeError, ValueError
        ``n`` is no whole number, or below 1; ``d`` is no number, or 0.
    ConfigurationError, DeviceUnavailableError
        There is no such device, or it cannot be used.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.fftfreq(4, d=0.5)
    array([ 0. ,  0.5, -1. , -0.5])
    """
    if more:
        raise misplaced(fftfreq, more)
    n, d = _sampled("fft.fftfreq", n, d)
    return place(device, chunks).fftfreq(n, d, dtype)


def rfftfreq(
    n: int,
    /,
    d: float = 1.0,
    *more: Never,
    dtype: DType = None,
    device: object = None,
    chunks: Any = None,
) -> Any:
    """Frequencies of :func:`rfft`'s elements [1/s].

    Parameters
    ----------
    n : int
        Length of the transform.
    d : float
        Distance of the samples [s].
    dtype : dtype, optional
        Floating-point; float64 unless given.
    device : device, optional
        The default device unless given.
    chunks : int, tuple, dict or str, optional
        Given, the result is a collection of Dask's in such chunks.

    Returns
    -------
    array
        Shape (n // 2 + 1,).

    Raises
    ------
    TypeError, ValueError
        ``n`` is no whole number, or below 1; ``d`` is no number, or 0.
    ConfigurationError, DeviceUnavailableError
        There is no such device, or it cannot be used.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.rfftfreq(4, d=0.5)
    array([0. , 0.5, 1. ])
    """
    if more:
        raise misplaced(rfftfreq, more)
    n, d = _sampled("fft.rfftfreq", n, d)
    return place(device, chunks).rfftfreq(n, d, dtype)
