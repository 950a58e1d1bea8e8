"""Fourier transforms along several axes, for ``fft``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xdev._freed import FREED
from xdev.facade.cpu import bare
from xdev.facade.libraries import direct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.facade.protocols import Array, Norm

__all__ = [
    "fftn",
    "ifftn",
    "irfftn",
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
