# ruff: noqa: D102 - protocols.Place says what each method does
"""Arrays of any array API library, made by its own functions."""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any, final

from xdev.device import device_of
from xdev.device.choice import CPU
from xdev.device.copies import announce, guards
from xdev.facade.dispatch import library_named
from xdev.transfer.exporters import dtype_of

if TYPE_CHECKING:
    from xdev.device import Device
    from xdev.facade.protocols import DType, Library


#: The namespaces that serve the arrays of :attr:`xdev.Device.library`.
_NAMESPACES = {
    "array_api_strict": "array_api_strict",
    "jax": "jax.numpy",
    "torch": "array_api_compat.torch",
}


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


def foreign(device: Device) -> Any:
    """Return the place of a device for the arrays of its library."""
    if device.library == "dask":
        from xdev.facade.places.dask import CollectionPlace

        return CollectionPlace(device)
    namespace = importlib.import_module(_NAMESPACES[str(device.library)])
    return OtherPlace(library_named(namespace), device.native)
