"""``FreedArray``: what a fake array is after :func:`xdev.memory.free`."""

from __future__ import annotations

from typing import Any, final

from xdev._freed import Remains, use_after_free
from xdev.device.fake.arrays import FakeArray
from xdev.device.fake.surface import CONVERSIONS


@final
class FreedArray(FakeArray, Remains):  # type: ignore[misc]
    """What is left of an array whose memory was given back by hand."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<freed array of shape {self.shape}>"

    __str__ = __repr__


def _refusal(self: FreedArray, *_: Any, **__: Any) -> Any:
    raise use_after_free(self)


for _name in (
    *("array", "array_function", "array_ufunc", "dlpack", "len", "iter", "format"),
    *CONVERSIONS,
):
    setattr(FreedArray, f"__{_name}__", _refusal)
del _name
