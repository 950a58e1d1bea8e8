"""Fourier transforms over several axes, and their frequencies: of xdev.fft."""

from __future__ import annotations

from numbers import Number
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._freed import FREED
from xdev.device.choice import CPU, from_environment, in_context, shown
from xdev.facade.cpu import bare
from xdev.facade.dispatch import direct
from xdev.facade.host_memory import SMALL
from xdev.facade.places import collections, place
from xdev.ufunc.complaints import misplaced

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Never

    from xdev.facade.protocols import Array, Axes, DType, Norm

__all__ = [
    "fftfreq",
    "fftn",
    "fftshift",
    "ifftn",
    "ifftshift",
    "irfftn",
    "rfftfreq",
    "rfftn",
]

ndarray = np.ndarray


_fftn = bare("fft.fftn")


_ifftn = bare("fft.ifftn")


_irfftn = bare("fft.irfftn")


_rfftn = bare("fft.rfftn")


def fftn(
    x: Array,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Discrete Fourier transform along several axes.

    Parameters
    ----------
    x : array
        Floating-point.
    s : sequence of ints, optional
        Lengths of the transforms; ``x``'s own unless given.
    axes : sequence of ints, optional
        Along which; the last ``len(s)``, or all, unless given.
    norm : {"backward", "ortho", "forward"}
        Where the factor 1 / n goes: into the inverse, a root into both, or here.

    Returns
    -------
    array
        Complex, of ``x``'s precision.

    Raises
    ------
    ValueError
        A length is less than 1, or an axis does not exist.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.fftn(xdev.ones((2, 2)))
    array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _fftn(x, s, axes, norm)
    return direct[type(x)]["fft.fftn"](x, s=s, axes=axes, norm=norm)


def ifftn(
    x: Array,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Inverse of :func:`fftn`.

    Parameters
    ----------
    x : array
        Floating-point.
    s : sequence of ints, optional
        Lengths of the transforms; ``x``'s own unless given.
    axes : sequence of ints, optional
        Along which; the last ``len(s)``, or all, unless given.
    norm : {"backward", "ortho", "forward"}
        Where the factor 1 / n goes: into the inverse, a root into both, or here.

    Returns
    -------
    array
        Complex, of ``x``'s precision.

    Raises
    ------
    ValueError
        A length is less than 1, or an axis does not exist.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.ifftn(xdev.ones((2, 2)))
    array([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _ifftn(x, s, axes, norm)
    return direct[type(x)]["fft.ifftn"](x, s=s, axes=axes, norm=norm)


def rfftn(
    x: Array,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Discrete Fourier transform of real numbers along several axes.

    Parameters
    ----------
    x : array
        Real floating-point.
    s : sequence of ints, optional
        Lengths of the transforms; ``x``'s own unless given.
    axes : sequence of ints, optional
        Along which; the last ``len(s)``, or all, unless given.
    norm : {"backward", "ortho", "forward"}
        Where the factor 1 / n goes: into the inverse, a root into both, or here.

    Returns
    -------
    array
        Complex, the last axis halved.

    Raises
    ------
    ValueError
        A length is less than 1, or an axis does not exist.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.rfftn(xdev.ones((2, 2))).shape
    (2, 2)
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _rfftn(x, s, axes, norm)
    return direct[type(x)]["fft.rfftn"](x, s=s, axes=axes, norm=norm)


def irfftn(
    x: Array,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Inverse of :func:`rfftn`.

    Parameters
    ----------
    x : array
        Complex.
    s : sequence of ints, optional
        Lengths of the transforms; ``x``'s own unless given.
    axes : sequence of ints, optional
        Along which; the last ``len(s)``, or all, unless given.
    norm : {"backward", "ortho", "forward"}
        Where the factor 1 / n goes: into the inverse, a root into both, or here.

    Returns
    -------
    array
        Real.

    Raises
    ------
    ValueError
        A length is less than 1, or an axis does not exist.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.irfftn(xdev.fft.rfftn(xdev.ones((2, 2))))
    array([[1., 1.],
           [1., 1.]])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _irfftn(x, s, axes, norm)
    return direct[type(x)]["fft.irfftn"](x, s=s, axes=axes, norm=norm)


_arange: Any = np.arange


_fftshift = bare("fft.fftshift")


_ifftshift = bare("fft.ifftshift")


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
    if type(d) is not float or not d:
        _check_distance("fftfreq", d)
    if type(n) is not int or n < 1:
        n = _length("fftfreq", n)
    where = place(device) if chunks is None else collections(chunks, device)
    return where.fftfreq(n, d, dtype)


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
    if device is dtype is chunks is None and type(n) is int and 0 < n < SMALL:
        chosen = in_context() or (from_environment and from_environment[0])
        if chosen is CPU and type(d) is float and d:
            return _arange(n // 2 + 1) * (1.0 / (n * d))
    if type(d) is not float or not d:
        _check_distance("rfftfreq", d)
    if type(n) is not int or n < 1:
        n = _length("rfftfreq", n)
    where = place(device) if chunks is None else collections(chunks, device)
    return where.rfftfreq(n, d, dtype)


def _length(name: str, n: Any) -> int:
    try:
        length = index(n)
    except TypeError as error:
        message = f"xdev.fft.{name}: n is {shown(n)}: give a whole number"
        raise TypeError(message) from error
    if length < 1:
        message = f"xdev.fft.{name}: n is {n}: a transform has 1 element or more"
        raise ValueError(message)
    return length


def _check_distance(name: str, d: Any) -> None:
    """Refuse a distance of samples that is no number, or 0."""
    if not isinstance(d, Number | np.generic) and type(d) is not ndarray:
        message = f"xdev.fft.{name}: d is {shown(d)}: give a number"
        raise TypeError(message)
    shape = getattr(d, "shape", ())
    if shape:
        message = f"xdev.fft.{name}: d has shape {shape}: give one number"
        raise TypeError(message)
    if d == 0:
        message = f"xdev.fft.{name}: d, the distance of the samples, is 0: give another"
        raise ValueError(message)


def fftshift(x: Array, /, axes: Axes = None) -> Array:
    """Elements in the order of their frequencies, 0 in the middle.

    Parameters
    ----------
    x : array
        Any shape.
    axes : int or tuple of ints, optional
        All of them unless given.

    Returns
    -------
    array
        Of ``x``'s shape.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.fftshift(xdev.asarray([0, 1, -2, -1]))
    array([-2, -1,  0,  1])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _fftshift(x, axes)
    return direct[type(x)]["fft.fftshift"](x, axes=axes)


def ifftshift(x: Array, /, axes: Axes = None) -> Array:
    """Inverse of :func:`fftshift`.

    Parameters
    ----------
    x : array
        Any shape.
    axes : int or tuple of ints, optional
        All of them unless given.

    Returns
    -------
    array
        Of ``x``'s shape.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.ifftshift(xdev.asarray([-2, -1, 0, 1]))
    array([ 0,  1, -2, -1])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _ifftshift(x, axes)
    return direct[type(x)]["fft.ifftshift"](x, axes=axes)
