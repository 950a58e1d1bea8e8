# ruff: noqa: D102 - protocols.Place says what each method does
"""Arrays of any array API library, made by its own functions."""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.device import device_of
from xdev.device.choice import CPU
from xdev.device.copies import announce, guards
from xdev.facade.libraries import library_named
from xdev.transfer.exporters import dtype_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.device import Device
    from xdev.facade.protocols import DType, Library


#: The namespaces that serve the arrays of :attr:`xdev.Device.library`.
_NAMESPACES = {
    "array_api_strict": "array_api_strict",
    "dask": "array_api_compat.dask.array",
    "jax": "jax.numpy",
    "torch": "array_api_compat.torch",
}
_CALLS = (
    "empty",
    "zeros",
    "ones",
    "full",
    "empty_like",
    "zeros_like",
    "ones_like",
    "full_like",
    "arange",
    "linspace",
    "eye",
    "asarray",
    "fftfreq",
    "rfftfreq",
)


@final
class OtherPlace:
    """One device of an array API library.

    Parameters
    ----------
    library : Library
        Whose functions make the arrays.
    device : object
        The library's own device object.
    """

    __slots__ = ("device", "library", "xp")

    def __init__(self, library: Library, device: Any) -> None:
        self.library, self.device = library, device
        self.xp: Any = library.namespace

    def _with(self, dtype: DType) -> dict[str, Any]:
        return {"dtype": self.library.dtype(dtype), "device": self.device}

    def empty(self, shape: Any, dtype: DType) -> Any:
        return self.xp.empty(shape, **self._with(dtype))

    def zeros(self, shape: Any, dtype: DType) -> Any:
        return self.xp.zeros(shape, **self._with(dtype))

    def ones(self, shape: Any, dtype: DType) -> Any:
        return self.xp.ones(shape, **self._with(dtype))

    def full(self, shape: Any, value: Any, dtype: DType) -> Any:
        return self.xp.full(shape, value, **self._with(dtype))

    def empty_like(self, x: Any, dtype: DType) -> Any:
        return self.xp.empty_like(x, **self._with(dtype))

    def zeros_like(self, x: Any, dtype: DType) -> Any:
        return self.xp.zeros_like(x, **self._with(dtype))

    def ones_like(self, x: Any, dtype: DType) -> Any:
        return self.xp.ones_like(x, **self._with(dtype))

    def full_like(self, x: Any, value: Any, dtype: DType) -> Any:
        return self.xp.full_like(x, value, **self._with(dtype))

    def arange(self, start: Any, stop: Any, step: Any, dtype: DType) -> Any:
        return self.xp.arange(start, stop, step, **self._with(dtype))

    def linspace(
        self, start: Any, stop: Any, num: int, dtype: DType, endpoint: bool
    ) -> Any:
        return self.xp.linspace(
            start, stop, num, endpoint=endpoint, **self._with(dtype)
        )

    def eye(self, rows: int, columns: int, k: int, dtype: DType) -> Any:
        make = self.library.bound("eye", None)
        return make(rows, columns, k=k, **self._with(dtype))

    def asarray(self, obj: Any, dtype: DType, copy: bool | None) -> Any:
        made = self.xp.asarray(obj, copy=copy, **self._with(dtype))
        if guards.get() and made.ndim and not hasattr(obj, "shape"):
            there = device_of(made)
            if there.type != "cpu":
                announce(CPU, there, math.prod(made.shape) * dtype_of(made).itemsize)
        return made

    def fftfreq(self, n: int, d: float, dtype: DType) -> Any:
        return self.xp.fft.fftfreq(n, d=d, **self._with(dtype))

    def rfftfreq(self, n: int, d: float, dtype: DType) -> Any:
        return self.xp.fft.rfftfreq(n, d=d, **self._with(dtype))

    def from_dlpack(self, x: Any, copy: bool | None) -> Any:
        return self.xp.from_dlpack(x, device=self.device, copy=copy)


@final
class ChunkedPlace:
    """Dask arrays with their chunks on another device than the host.

    Dask's own functions make chunks of NumPy arrays; each is moved when it is computed.

    Parameters
    ----------
    host : OtherPlace
        Dask's arrays of NumPy chunks.
    device : Device
        Where the chunks go.
    """

    def __init__(self, host: OtherPlace, device: Device) -> None:
        self._chunks, self.from_dlpack = str(device), host.from_dlpack
        transfer = importlib.import_module("xdev.transfer")
        self._xp, self._to_device = host.xp, transfer.to_device
        for name in _CALLS:
            function = getattr(host, name)
            liking = self._like if name.endswith("_like") else self._as_given
            setattr(self, name, self._moving(function, liking))

    def _as_given(self, x: Any) -> Any:
        return x

    def _like(self, x: Any) -> Any:
        """Return the same chunks of NumPy arrays: Dask makes others' by their own."""
        return self._xp.empty(x.shape, dtype=x.dtype, chunks=x.chunks)

    def _moving(
        self, function: Callable[..., Any], prepared: Callable[[Any], Any]
    ) -> Callable[..., Any]:
        def moved(first: Any, *args: Any) -> Any:
            made = function(prepared(first), *args)
            if device_of(made) == self._chunks:
                return made
            meta = np.empty((0,) * made.ndim, made.dtype)
            return made.map_blocks(
                self._to_device,
                self._chunks,
                dtype=made.dtype,
                meta=self._to_device(meta, self._chunks),
            )

        return moved


def foreign(device: Device) -> Any:
    """Return the place of a device for the arrays of its library."""
    namespace = importlib.import_module(_NAMESPACES[str(device.library)])
    host = OtherPlace(library_named(namespace), device.native)
    if device.library == "dask" and device.type != "cpu":
        return ChunkedPlace(host, device)
    return host
