"""``Generator``: NumPy's generator, with the same values on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.device import as_device, default_device
from xdev.random import draws, kernels, selection
from xdev.random.draws import Philox

if TYPE_CHECKING:
    from xdev.device import Device

FLOAT32 = np.dtype(np.float32)


@final
class Generator:
    """Random values on one device; :func:`default_rng` makes one.

    Methods and arguments are those of :class:`numpy.random.Generator`. A value depends
    on the seed, on how many calls came before, and on its place in the result: devices,
    threads and the result's shape make no difference. Without a size (and with numbers
    for parameters) a result is a number, computed on the host: on a GPU, nothing waits.

    Parameters
    ----------
    bit_generator : Philox
        Where random words come from.
    device : device
        Where results are made, and in which library's arrays.

    Attributes
    ----------
    bit_generator : Philox
        Its ``state`` may be read and set.
    device : Device
        Where results are made.

    Raises
    ------
    DeviceUnavailableError, ConfigurationError
        There is no such device, or it cannot be used.

    Examples
    --------
    >>> import xdev
    >>> rng = xdev.random.default_rng(1, device="cpu")
    >>> rng.random((2, 3)).shape, rng.device
    ((2, 3), Device('cpu'))
    """

    def __init__(self, bit_generator: Philox, device: object = None) -> None:
        self.bit_generator = bit_generator
        self.device: Device = as_device(default_device() if device is None else device)
        self._draws = draws.Draws(bit_generator, self.device)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Uniform numbers of [0, 1): multiples of 2^-53, of 2^-24 for float32.

        Parameters
        ----------
        size : int or sequence of int, optional
            The result's shape; without it, and without ``out``, a number.
        dtype : dtype
            float64 or float32.
        out : array, optional
            Where the values go: of this shape and dtype, on this device, of any
            strides and library. It is returned.

        Returns
        -------
        array or float
            Of ``size``'s shape and of ``dtype``, on the generator's device.

        Raises
        ------
        TypeError, ValueError
            An argument is no size or no such dtype, or ``out`` does not fit.
        DeviceMismatchError
            ``out`` is on another device.

        Examples
        --------
        >>> import xdev
        >>> rng = xdev.random.default_rng(1, device="cpu")
        >>> rng.random(3) < 1
        array([ True,  True,  True])
        """
        if draws.float_dtype(dtype, "random") == draws.FLOAT64:
            return self._draws.floats(kernels.uniform64, size, 0.0, 1.0, out=out)
        return self._draws.floats(kernels.uniform32, size, dtype=FLOAT32, out=out)

    def standard_normal(
        self, size: Any = None, dtype: Any = np.float64, out: Any = None
    ) -> Any:
        """Normal numbers of mean 0 and variance 1, by the method of Box and Muller.

        Parameters
        ----------
        size : int or sequence of int, optional
            The result's shape; without it, and without ``out``, a number.
        dtype : dtype
            float64 or float32.
        out : array, optional
            Where the values go: of this shape and dtype, on this device, of any
            strides and library. It is returned.

        Returns
        -------
        array or float
            Of ``size``'s shape and of ``dtype``, on the generator's device.

        Raises
        ------
        TypeError, ValueError
            An argument is no size or no such dtype, or ``out`` does not fit.
        DeviceMismatchError
            ``out`` is on another device.

        Examples
        --------
        >>> import xdev
        >>> rng = xdev.random.default_rng(1, device="cpu")
        >>> rng.standard_normal((2, 3), dtype="float32").dtype
        dtype('float32')
        """
        if draws.float_dtype(dtype, "standard_normal") == draws.FLOAT64:
            return self._draws.floats(kernels.normal64, size, 0.0, 1.0, out=out)
        return self._draws.floats(kernels.normal32, size, dtype=FLOAT32, out=out)

    def standard_exponential(
        self,
        size: Any = None,
        dtype: Any = np.float64,
        method: str = "zig",  # noqa: ARG002 - NumPy's choice; here there is one way
        out: Any = None,
    ) -> Any:
        """Exponential numbers of mean 1: minus the logarithm of a uniform number.

        Parameters
        ----------
        size : int or sequence of int, optional
            The result's shape; without it, and without ``out``, a number.
        dtype : dtype
            float64 or float32.
        method : str
            NumPy's choice of a method; there is one here, and it is not read.
        out : array, optional
            Where the values go: of this shape and dtype, on this device, of any
            strides and library. It is returned.

        Returns
        -------
        array or float
            Of ``size``'s shape and of ``dtype``, on the generator's device.

        Raises
        ------
        TypeError, ValueError
            An argument is no size or no such dtype, or ``out`` does not fit.
        DeviceMismatchError
            ``out`` is on another device.

        Examples
        --------
        >>> import xdev
        >>> rng = xdev.random.default_rng(1, device="cpu")
        >>> rng.standard_exponential(1000).min() >= 0
        np.True_
        """
        if draws.float_dtype(dtype, "standard_exponential") == draws.FLOAT64:
            return self._draws.floats(kernels.exponential64, size, 1.0, out=out)
        return self._draws.floats(kernels.exponential32, size, dtype=FLOAT32, out=out)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Uniform numbers of [low, high), in float64.

        Parameters
        ----------
        low, high : number or array
            The ends; arrays of this device broadcast against each other and ``size``.
        size : int or sequence of int, optional
            The result's shape; without it, that of the parameters.

        Returns
        -------
        float64 array or float
            Of ``size``'s shape, on the generator's device.

        Raises
        ------
        OverflowError
            ``high - low`` is not finite.
        ValueError
            ``high`` is less than ``low``, or shapes do not fit together.
        DeviceMismatchError
            A parameter is an array of another device.

        Examples
        --------
        >>> import xdev
        >>> rng = xdev.random.default_rng(1, device="cpu")
        >>> low = xdev.asarray([0.0, 10.0, 20.0], device="cpu")
        >>> xdev.floor(rng.uniform(low, low + 10, size=(5, 3)) / 10)[0]
        array([0., 1., 2.])
        """
        start, stop = self._parameters(low=low, high=high)
        width = draws.width_of(start, stop)
        draws.not_negative(width, "high - low")
        return self._draws.scaled(kernels.uniform64, size, start, width)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normal numbers of mean ``loc`` and standard deviation ``scale``, in float64.

        Parameters
        ----------
        loc, scale : number or array
            Mean, and standard deviation from 0 on; arrays of this device broadcast
            against each other and ``size``.
        size : int or sequence of int, optional
            The result's shape; without it, that of the parameters.

        Returns
        -------
        float64 array or float
            Of ``size``'s shape, on the generator's device.

        Raises
        ------
        ValueError
            ``scale`` is negative, or shapes do not fit together.
        TypeError
            A parameter is no number and no array, or ``size`` no shape.
        DeviceMismatchError
            A parameter is an array of another device.

        Examples
        --------
        >>> import xdev
        >>> rng = xdev.random.default_rng(1, device="cpu")
        >>> abs(rng.normal(100.0, 0.1, size=1000).mean() - 100.0) < 0.1
        np.True_
        """
        mean, deviation = self._parameters(loc=loc, scale=scale)
        draws.not_negative(deviation, "scale")
        return self._draws.scaled(kernels.normal64, size, mean, deviation)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Exponential numbers of mean ``scale``, in float64.

        Parameters
        ----------
        scale : number or array
            The mean, from 0 on; an array of this device broadcasts against ``size``.
        size : int or sequence of int, optional
            The result's shape; without it, that of the parameters.

        Returns
        -------
        float64 array or float
            Of ``size``'s shape, on the generator's device.

        Raises
        ------
        ValueError
            ``scale`` is negative, or shapes do not fit together.
        TypeError
            A parameter is no number and no array, or ``size`` no shape.
        DeviceMismatchError
            A parameter is an array of another device.

        Examples
        --------
        >>> import xdev
        >>> rng = xdev.random.default_rng(1, device="cpu")
        >>> rng.exponential(5.0, size=(2, 3)).shape
        (2, 3)
        """
        (mean,) = self._parameters(scale=scale)
        draws.not_negative(mean, "scale")
        return self._draws.scaled(kernels.exponential64, size, mean)

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = np.int64,
        endpoint: bool = False,
    ) -> Any:
        """Integers of [low, high), or of [0, low) where ``high`` is not given.

        Each is the upper part of a product: the number of values times a random
        fraction, which has 64 bits for up to 2^32 values, else 128. Chances of values
        differ by less than 2^-32 of a chance, which 2^64 draws would begin to show.

        Parameters
        ----------
        low, high : int or array of integers
            The ends; arrays of this device broadcast against each other and ``size``.
        size : int or sequence of int, optional
            The result's shape; without it, that of the parameters.
        dtype : dtype
            bool or any integer's.
        endpoint : bool
            Whether ``high`` is among the values.

        Returns
        -------
        array or number of ``dtype``
            Of ``size``'s shape, on the generator's device.

        Raises
        ------
        ValueError
            What is drawn from is empty or exceeds the dtype, or shapes do not fit.
        TypeError
            ``dtype`` is not an integer's, or the ends are not integers.
        DeviceMismatchError
            A parameter is an array of another device.

        Examples
        --------
        >>> import xdev
        >>> rng = xdev.random.default_rng(1, device="cpu")
        >>> dice = rng.integers(1, 6, size=1000, endpoint=True)
        >>> dice.min(), dice.max()
        (np.int64(1), np.int64(6))
        """
        return self._draws.adopted(
            selection.integers(self._draws, low, high, size, dtype, bool(endpoint))
        )

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,  # noqa: ARG002 - the order is random anyway
    ) -> Any:
        """Random elements of an array, or integers of [0, a).

        Parameters
        ----------
        a : int, or array of this device
            What is chosen from; a list becomes an array.
        size : int or sequence of int, optional
            How many; without it, one: of a 1-D array of a device, a 0-d one there.
        replace : bool
            Whether an element may be chosen again.
        p : array, optional
            The chance of each, of sum 1. The host waits until it is checked.
        axis : int
            Along which axis of ``a``.
        shuffle : bool
            Accepted: without replacement the order is always random.

        Returns
        -------
        array
            Of ``size``'s shape in place of the axis; int64 of an int ``a``, else of
            ``a``'s dtype.

        Raises
        ------
        ValueError
            There is nothing to choose from, too little without replacement, ``p`` does
            not fit, or ``a`` is neither an integer nor an array.

        Examples
        --------
        >>> import xdev
        >>> rng = xdev.random.default_rng(1, device="cpu")
        >>> hand = rng.choice(52, size=5, replace=False)
        >>> len({int(card) for card in hand})
        5
        """
        return self._draws.adopted(
            selection.choice(self._draws, a, size, replace, p, axis)
        )

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """A shuffled copy of an array along an axis, or of the integers of [0, x).

        The order is that of random words of 64 bits, sorted.

        Parameters
        ----------
        x : int, or array of this device
            How many integers, or what is shuffled; a list becomes an array.
        axis : int
            Along which axis of ``x``.

        Returns
        -------
        array
            Of ``x``'s shape and dtype; int64 of an int.

        Raises
        ------
        TypeError
            ``x`` is neither an integer nor an array.

        Examples
        --------
        >>> import xdev
        >>> rng = xdev.random.default_rng(1, device="cpu")
        >>> sorted(rng.permutation(5).tolist())
        [0, 1, 2, 3, 4]
        """
        return self._draws.adopted(selection.permutation(self._draws, x, axis))

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Shuffle an array of this device in place along an axis.

        Parameters
        ----------
        x : array of this device
            What is shuffled.
        axis : int
            Along which axis.

        Raises
        ------
        TypeError
            ``x`` is not an array.

        Examples
        --------
        >>> import xdev
        >>> rng = xdev.random.default_rng(1, device="cpu")
        >>> x = xdev.arange(6, device="cpu")
        >>> rng.shuffle(x)
        >>> xdev.sort(x)
        array([0, 1, 2, 3, 4, 5])
        """
        selection.shuffle(self._draws, x, axis)

    def permuted(self, x: Any, *, axis: int | None = None, out: Any = None) -> Any:
        """A copy of an array, each slice along ``axis`` shuffled for itself.

        Parameters
        ----------
        x : array of this device
            What is shuffled.
        axis : int, optional
            Without it, all elements are shuffled as one.
        out : array, optional
            Where the copy goes, of a dtype that holds ``x``'s; it may be ``x``.

        Returns
        -------
        array
            Of ``x``'s shape and dtype, or ``out``.

        Raises
        ------
        TypeError, ValueError
            ``x`` is not an array, or ``out`` is of another shape or too narrow a dtype.

        Examples
        --------
        >>> import xdev
        >>> rng = xdev.random.default_rng(1, device="cpu")
        >>> x = xdev.asarray([[1, 2, 3], [4, 5, 6]], device="cpu")
        >>> xdev.sort(rng.permuted(x, axis=1), axis=1)
        array([[1, 2, 3],
               [4, 5, 6]])
        """
        return selection.permuted(self._draws, x, axis, out)

    def spawn(self, n_children: int) -> list[Generator]:
        """Return independent generators on this device, for parallel streams.

        Parameters
        ----------
        n_children : int
            How many.

        Returns
        -------
        list of Generator
            Others each time it is called.

        Raises
        ------
        ValueError, TypeError
            ``n_children`` is negative, or no integer.
        MemoryError
            No list holds so many.

        Examples
        --------
        >>> import xdev
        >>> one, two = xdev.random.default_rng(1).spawn(2)
        """
        return [Generator(b, self.device) for b in self.bit_generator.spawn(n_children)]

    def _parameters(self, **parameters: Any) -> list[Any]:
        """Return parameters as numbers, or float64 arrays of this device."""
        how = self.device, draws.FLOAT64
        return [draws.parameter(x, name, *how) for name, x in parameters.items()]

    if not TYPE_CHECKING:  # type checkers say themselves what there is

        def __getattr__(self, name: str) -> Any:
            raise draws.missing(name)

    def __getstate__(self) -> tuple[Philox, Device]:
        return self.bit_generator, self.device

    def __setstate__(self, state: tuple[Philox, Device]) -> None:
        self.__init__(*state)

    def __repr__(self) -> str:
        return f"Generator(Philox4x32, device={self.device!r})"


def default_rng(seed: Any = None, device: object = None) -> Generator:
    """Return a generator of random values on a device.

    Parameters
    ----------
    seed : None, int, sequence of int, numpy.random.SeedSequence, Philox or Generator
        As :func:`numpy.random.default_rng` takes it; None asks the operating system. A
        Philox, or the one of a Generator, is shared; a Generator of the device comes
        back itself.
    device : device, optional
        Where results are made; the default device unless given, or the Generator's. If
        it names a library, as ``xdev.device_of(tensor)`` does, they are its arrays.

    Returns
    -------
    Generator
        Of :class:`Philox`'s random words.

    Raises
    ------
    TypeError, ValueError
        ``seed`` is none of these.
    DeviceUnavailableError, ConfigurationError
        There is no such device, or it cannot be used.

    Examples
    --------
    >>> rng = default_rng(42, device="cpu")
    >>> rng.integers(0, 10, size=5)
    array([...])
    """
    if isinstance(seed, Generator):
        wanted = seed.device if device is None else as_device(device)
        if wanted == seed.device and wanted.library == seed.device.library:
            return seed
        seed = seed.bit_generator
    return Generator(seed if isinstance(seed, Philox) else Philox(seed), device)
