# ruff: noqa: D102 - backends.Factory says what each method does
"""The fake devices' arrays as a library of the facade: NumPy's functions, CuPy's rules.

What is mended for NumPy is mended for them. They are made as on the host, and counted
as the device's.
"""

from __future__ import annotations

import operator
from functools import cache, partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.device import Device
from xdev.device.choice import CPU
from xdev.device.copies import announce
from xdev.device.fake import make_room
from xdev.device.fake_arrays import FakeArray, fake, run, strict
from xdev.facade.backends import (
    FLOAT64,
    MAKERS,
    Factory,
    Library,
    as_shape,
    dtype_of_number,
    to_numpy_dtype,
)
from xdev.facade.cpu import HOST, NUMPY, first_in
from xdev.memory.arrays import size_of

if TYPE_CHECKING:
    from types import ModuleType

    from xdev.facade.backends import DType, Function

SHAPED = ("empty", "zeros", "ones", "full")  # makers whose first argument is a shape


@final
class FakeLibrary(Library):
    """NumPy's data types, ufuncs with ``out=``, two devices."""

    device_type = "fake"

    def __init__(self) -> None:
        super().__init__(
            fake, lambda name: strict(f"xdev.{name}", NUMPY.bound(name, None))
        )

    def device(self, x: Any) -> int:
        """Return the device's number."""
        return int(x.device.index)


@cache
def library(_: ModuleType | None = None) -> Library:
    """Return the one library object of fake arrays."""
    return FakeLibrary()


@final
class FakeFactory(Factory):
    """One fake device."""

    def __init__(self, index: int) -> None:
        self.device = Device(f"fake:{index}")
        for name in set(MAKERS).difference(vars(FakeFactory)):
            setattr(self, name, partial(self._make, name, getattr(HOST, name)))

    def _make(self, name: str, make: Function, *args: Any, **options: Any) -> Any:
        """Make an array, if the device has room for it; sizes are the host's."""
        if name in SHAPED:
            shape, *value, dtype = as_shape(args[0]), *args[1:]
            if dtype is None:
                dtype = dtype_of_number(value[0]) if value else FLOAT64
            make_room(size_of(shape, to_numpy_dtype(dtype)), self.device.index)
            args = shape, *value, dtype
        elif name == "linspace":
            operator.index(args[2])
        return run(f"xdev.{name}", make, *args, on=self.device, **options)

    def asarray(self, obj: Any, dtype: DType, copy: bool | None) -> Any:
        if copy is False and not isinstance(obj, FakeArray):
            raise ValueError(
                f"xdev.asarray: copy=False, but a host object must be copied to "
                f"{self.device}: leave copy= out"
            )
        if first_in(obj, lambda x: isinstance(x, FakeArray)) is not None:
            make = partial(HOST.asarray, dtype=dtype, copy=copy)
            return run("xdev.asarray", make, obj, on=self.device)
        array = FakeArray(HOST.asarray(obj, dtype, copy=True), self.device)
        if array.ndim:  # one number goes with a launch
            announce(CPU, self.device, array.nbytes)
        return array

    def from_dlpack(self, x: Any, copy: bool | None) -> Any:
        if isinstance(x, FakeArray):
            return x.copy() if copy else x[...]
        return FakeArray(np.from_dlpack(x, copy=True), self.device)
