# ruff: noqa: D102 - protocols.Place says what each method does
"""Arrays on a fake device, made as on the host and counted as the device's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.device import Device
from xdev.device.fake.arrays import FakeArray, run
from xdev.facade.places.cpu import HOST

if TYPE_CHECKING:
    from xdev.facade.protocols import DType

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
    "fftfreq",
    "rfftfreq",
)


@final
class FakePlace:
    """One fake device.

    Parameters
    ----------
    index : int
        Its number.
    """

    def __init__(self, index: int) -> None:
        self.device = Device(f"fake:{index}")
        for name in _CALLS:
            made = partial(run, f"xdev.{name}", getattr(HOST, name), on=self.device)
            setattr(self, name, made)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def asarray(self, obj: Any, dtype: DType, copy: bool | None) -> Any:
        if copy is False and not isinstance(obj, FakeArray):
            message = (
                f"xdev.asarray: copy=False, but a host object must be copied to "
                f"{self.device}: leave copy= out"
            )
            raise ValueError(message)
        if _holds_fake(obj):
            make = partial(HOST.asarray, dtype=dtype, copy=copy)
            return run("xdev.asarray", make, obj, on=self.device)
        return FakeArray(HOST.asarray(obj, dtype, copy=True), self.device)

    def from_dlpack(self, x: Any, copy: bool | None) -> Any:
        if isinstance(x, FakeArray):
            return x.copy() if copy else x[...]
        return FakeArray(np.from_dlpack(x, copy=True), self.device)


def _holds_fake(nested: Any) -> bool:
    if isinstance(nested, list | tuple):
        return any(map(_holds_fake, nested))
    return isinstance(nested, FakeArray)
