"""What ``finfo`` returns, loaded at its first call: to make the class takes 0.2 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from xdev.facade.protocols import DType


class FloatInfo(NamedTuple):
    """Limits of a floating-point data type, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType
