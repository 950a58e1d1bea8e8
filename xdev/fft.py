"""The standard's Fourier transform extension, ``xdev.fft``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from xdev._numpy_names import refuse
from xdev.facade.backends import gives_complex, gives_real
from xdev.facade.creation import number_of_host, whole_numbers
from xdev.facade.dispatch import dispatch, factory

if TYPE_CHECKING:
    from typing import Never

    from xdev.facade.backends import Array, Axes, DType, Lengths, Norm

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip
__dir__ = __all__.copy  # what Tab shows


if not TYPE_CHECKING:  # type checkers know what is there
    __getattr__ = partial(refuse, __name__)  # says what does the same as NumPy's


@gives_complex
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
    return dispatch("fft.fft", x)(x, n=n, axis=axis, norm=norm)


@gives_complex
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
    return dispatch("fft.ifft", x)(x, n=n, axis=axis, norm=norm)


@gives_complex
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
    return dispatch("fft.rfft", x)(x, n=n, axis=axis, norm=norm)


@gives_real
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
    return dispatch("fft.irfft", x)(x, n=n, axis=axis, norm=norm)


@gives_real
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
    return dispatch("fft.hfft", x)(x, n=n, axis=axis, norm=norm)


@gives_complex
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
    return dispatch("fft.ihfft", x)(x, n=n, axis=axis, norm=norm)


@gives_complex
def fftn(
    x: Array, /, s: Lengths = None, axes: Lengths = None, norm: Norm = "backward"
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
    return dispatch("fft.fftn", x)(x, s=s, axes=axes, norm=norm)


@gives_complex
def ifftn(
    x: Array, /, s: Lengths = None, axes: Lengths = None, norm: Norm = "backward"
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
    return dispatch("fft.ifftn", x)(x, s=s, axes=axes, norm=norm)


@gives_complex
def rfftn(
    x: Array, /, s: Lengths = None, axes: Lengths = None, norm: Norm = "backward"
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
    return dispatch("fft.rfftn", x)(x, s=s, axes=axes, norm=norm)


@gives_real
def irfftn(
    x: Array, /, s: Lengths = None, axes: Lengths = None, norm: Norm = "backward"
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
    return dispatch("fft.irfftn", x)(x, s=s, axes=axes, norm=norm)


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

    Raises
    ------
    IndexError
        ``x`` has no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.fftshift(xdev.asarray([0, 1, -2, -1]))
    array([-2, -1,  0,  1])
    """
    return dispatch("fft.fftshift", x)(x, axes=axes)


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

    Raises
    ------
    IndexError
        ``x`` has no such axis.

    Examples
    --------
    >>> import xdev
    >>> xdev.fft.ifftshift(xdev.asarray([-2, -1, 0, 1]))
    array([ 0,  1, -2, -1])
    """
    return dispatch("fft.ifftshift", x)(x, axes=axes)


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
    where = factory(device, chunks, "fft.fftfreq", more)
    return where.frequencies("fftfreq", *_samples("fft.fftfreq", n, d), dtype)


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
    where = factory(device, chunks, "fft.rfftfreq", more)
    return where.frequencies("rfftfreq", *_samples("fft.rfftfreq", n, d), dtype)


def _samples(name: str, n: Any, d: Any) -> tuple[int, Any]:
    """Return how many samples there are, and their distance, checked."""
    if type(n) is not int:
        (n,) = whole_numbers(name, n=n)
    if type(d) is not float:
        d = number_of_host(name, "d", d)
    if n < 1:
        raise ValueError(f"xdev.{name}: n is {n}: a transform has 1 element or more")
    if d == 0:
        message = f"xdev.{name}: d, the distance of the samples, is 0: give another"
        raise ValueError(message)
    return n, d
