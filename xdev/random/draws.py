"""Draws: what a generator takes from its source of words, on its device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import facade
from xdev.device import device_of
from xdev.device.natives import natives
from xdev.random import kernels
from xdev.random.arguments import broadcast, is_array, out_shape, shape_of, write
from xdev.random.cpu import single
from xdev.random.homes import home
from xdev.random.philox import words64
from xdev.transfer.foreign import plain_device

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.compile.indexed import Indexed
    from xdev.device import Device
    from xdev.random.bits import Philox

    Shape = tuple[int, ...]
    Function = Callable[..., Any]

FLOAT64, UINT64 = np.dtype(np.float64), np.dtype(np.uint64)


@final
class Draws:
    """Values of kernels; each draw is one call of the source.

    Parameters
    ----------
    source : Philox
        Where keys and numbers of calls come from.
    device : Device
        Where arrays are made, and whose.
    """

    def __init__(self, source: Philox, device: Device) -> None:
        self.source, self.device = source, device
        self.plain = plain_device(device)  # where values are computed
        self._home = home(self.plain)

    def given(self, x: Any) -> Any:
        """Return a result as the user gets it: an array of the device's library."""
        library = self.device.library
        if library is None or not is_array(x):
            return x
        return natives(library).adopt(x, self.device.native)

    def number(self, kernel: Indexed, *values: float) -> Any:
        """Return one value, computed on the host, as a Python number."""
        key, call = self.source.take()
        return single(kernel)(key, call, *values)

    def array(self, kernel: Indexed, shape: Shape, *values: float) -> Any:
        """Return an array of values."""
        memory = self._home.make(shape, kernel.result)
        self._home.fill(kernel, memory, (*self.source.take(), *values))
        return self._home.array(memory)

    def words(self, shape: Shape) -> Any:
        """Return random words of 64 bits, as uint64."""
        return self.array(kernels.kernel(words64, UINT64), shape)

    def floats(
        self,
        function: Function,
        size: Any,
        *values: float,
        dtype: np.dtype[Any] = FLOAT64,
        out: Any = None,
    ) -> Any:
        """Return a number, an array, or ``out`` with values in it.

        Raises
        ------
        TypeError, ValueError, DeviceMismatchError
            ``size`` is none, or ``out`` does not fit.
        """
        kernel, shape = kernels.kernel(function, dtype), shape_of(size)
        if out is not None:
            extents = out_shape(out, shape, dtype, self.device)
            out_of_reach = self.device.type == "fake" and device_of(out).library
            if out_of_reach or hasattr(out, "dask"):  # which has no memory
                write(out, self.array(kernel, extents, *values))
                return out
            memory = self._home.memory(out)
            self._home.fill(kernel, memory, (*self.source.take(), *values))
            return out
        if shape is None:
            return self.number(kernel, *values)
        return self.given(self.array(kernel, shape, *values))

    def scaled(self, function: Function, size: Any, *parameters: Any) -> Any:
        """Return float64 values with an offset, if there are two parameters, and scale.

        Parameters
        ----------
        function : callable
            Of :mod:`~xdev.random.kernels`.
        size : int or sequence of int, optional
            The result's shape; None: that of the parameters.
        *parameters : number or array
            The offset, if there is one, then the factor.
        """
        if not any(map(is_array, parameters)):
            return self.floats(function, size, *map(float, parameters))
        *offset, factor = parameters
        shape = broadcast(shape_of(size), *parameters)
        standard = (0.0, 1.0) if offset else (1.0,)
        made = self.array(kernels.kernel(function, FLOAT64), shape, *standard)
        facade.multiply(made, factor, out=made)
        if offset:
            facade.add(made, offset[0], out=made)
        return self.given(made)
