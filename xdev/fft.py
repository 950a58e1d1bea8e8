"""The standard's Fourier transform extension, ``xdev.fft``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._freed import FREED
from xdev.facade.cpu import bare
from xdev.facade.dispatch import direct
from xdev.facade.transforms import (
    fftfreq,
    fftn,
    fftshift,
    ifftn,
    ifftshift,
    irfftn,
    rfftfreq,
    rfftn,
)

if TYPE_CHECKING:
    from xdev.facade.protocols import Array, Norm

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]

ndarray = np.ndarray
_fft = bare("fft.fft")
_hfft = bare("fft.hfft")
_ifft = bare("fft.ifft")
_ihfft = bare("fft.ihfft")
_irfft = bare("fft.irfft")
_rfft = bare("fft.rfft")


def __dir__() -> list[str]:
    """List the standard's names: what Tab shows."""
    return __all__


if not TYPE_CHECKING:  # type checkers know what is there

    def __getattr__(name: str) -> Any:
        """Say what does the same as a name of NumPy's."""
        from xdev._numpy_names import missing

        raise missing(__name__, name)


def fft(
    x: Array, /, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> Array:
    """Discrete Fourier transform along an axis.

    Parameters
    ----------
    x : array
        Floating-point.
    n : int, optional
        Length of the transform: ``x`` is cut, or padded with zeros; its own by default.
    axis : int
        Along which.
    norm : {"backward", "ortho", "forward"}
        Where the factor 1 / n goes: into the inverse, a root into both, or here.

    Returns
    -------
    array
        Complex, of ``x``'s precision.

    Raises
    ------
    ValueError
        ``n`` is less than 1, or the axis does not exist.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.fft(xdev.asarray([1.0, 0.0, 0.0]))
    array([1.+0.j, 1.+0.j, 1.+0.j])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _fft(x, n, axis, norm)
    return direct[type(x)]["fft.fft"](x, n=n, axis=axis, norm=norm)


def ifft(
    x: Array, /, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> Array:
    """Inverse of :func:`fft`.

    Parameters
    ----------
    x : array
        Floating-point.
    n : int, optional
        Length of the transform: ``x`` is cut, or padded with zeros; its own by default.
    axis : int
        Along which.
    norm : {"backward", "ortho", "forward"}
        Where the factor 1 / n goes: into the inverse, a root into both, or here.

    Returns
    -------
    array
        Complex, of ``x``'s precision.

    Raises
    ------
    ValueError
        ``n`` is less than 1, or the axis does not exist.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.ifft(xdev.asarray([2.0, 0.0]))
    array([1.+0.j, 1.+0.j])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _ifft(x, n, axis, norm)
    return direct[type(x)]["fft.ifft"](x, n=n, axis=axis, norm=norm)


def rfft(
    x: Array, /, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> Array:
    """Discrete Fourier transform of real numbers: the first half.

    Parameters
    ----------
    x : array
        Real floating-point.
    n : int, optional
        Length of the transform: ``x`` is cut, or padded with zeros; its own by default.
    axis : int
        Along which.
    norm : {"backward", "ortho", "forward"}
        Where the factor 1 / n goes: into the inverse, a root into both, or here.

    Returns
    -------
    array
        Complex, n // 2 + 1 along ``axis``.

    Raises
    ------
    ValueError
        ``n`` is less than 1, or the axis does not exist.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.rfft(xdev.asarray([1.0, 0.0, 0.0]))
    array([1.+0.j, 1.+0.j])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _rfft(x, n, axis, norm)
    return direct[type(x)]["fft.rfft"](x, n=n, axis=axis, norm=norm)


def irfft(
    x: Array, /, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> Array:
    """Inverse of :func:`rfft`.

    Parameters
    ----------
    x : array
        Complex.
    n : int, optional
        Length of the transform: ``x`` is cut, or padded with zeros; its own by default.
    axis : int
        Along which.
    norm : {"backward", "ortho", "forward"}
        Where the factor 1 / n goes: into the inverse, a root into both, or here.

    Returns
    -------
    array
        Real, n along ``axis``: 2 (m - 1) of m unless given.

    Raises
    ------
    ValueError
        ``n`` is less than 1, or the axis does not exist.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.irfft(xdev.asarray([1.0 + 0j, 1.0 + 0j]))
    array([1., 0.])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _irfft(x, n, axis, norm)
    return direct[type(x)]["fft.irfft"](x, n=n, axis=axis, norm=norm)


def hfft(
    x: Array, /, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> Array:
    """Transform of a signal whose second half mirrors the first, conjugated.

    Parameters
    ----------
    x : array
        Complex, the first half.
    n : int, optional
        Length of the transform: ``x`` is cut, or padded with zeros; its own by default.
    axis : int
        Along which.
    norm : {"backward", "ortho", "forward"}
        Where the factor 1 / n goes: into the inverse, a root into both, or here.

    Returns
    -------
    array
        Real, n along ``axis``: 2 (m - 1) of m unless given.

    Raises
    ------
    ValueError
        ``n`` is less than 1, or the axis does not exist.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.hfft(xdev.asarray([1.0 + 0j, 0j]))
    array([1., 1.])
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _hfft(x, n, axis, norm)
    return direct[type(x)]["fft.hfft"](x, n=n, axis=axis, norm=norm)


def ihfft(
    x: Array, /, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> Array:
    """Inverse of :func:`hfft`.

    Parameters
    ----------
    x : array
        Real floating-point.
    n : int, optional
        Length of the transform: ``x`` is cut, or padded with zeros; its own by default.
    axis : int
        Along which.
    norm : {"backward", "ortho", "forward"}
        Where the factor 1 / n goes: into the inverse, a root into both, or here.

    Returns
    -------
    array
        Complex, n // 2 + 1 along ``axis``.

    Raises
    ------
    ValueError
        ``n`` is less than 1, or the axis does not exist.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.ihfft(xdev.asarray([1.0, 1.0])).shape
    (2,)
    """
    if type(x) is ndarray and x.dtype not in FREED:
        return _ihfft(x, n, axis, norm)
    return direct[type(x)]["fft.ihfft"](x, n=n, axis=axis, norm=norm)
