"""Floats of 16 bits: stored as such, computed in float32.

Their conversions are integer arithmetic, since not every CPU has instructions for it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from xdev import _optional

BFLOAT16 = (
    "bfloat16"  # the name of ml_dtypes' dtype, which NumPy knows once it is there
)


def is_half(dtype: np.dtype[Any]) -> bool:
    """Say whether values of a dtype are computed in float32 though they are smaller.

    Examples
    --------
    >>> is_half(np.dtype("float16")), is_half(np.dtype("float32"))
    (True, False)
    """
    return dtype.char == "e" or is_bfloat16(dtype)


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Say whether a dtype is ml_dtypes' bfloat16."""
    return dtype.kind == "V" and dtype.name == BFLOAT16


def computed(dtype: np.dtype[Any]) -> Any:
    """Return the Numba type that values of a dtype are computed in."""
    numba = _optional.numba()
    if is_half(dtype):
        return numba.core.types.float32
    return numba.np.numpy_support.from_dtype(dtype)


def conversions(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return functions of the bits to float32 and back, rounded to even."""
    return _bfloat16() if is_bfloat16(dtype) else _float16()


@cache
def _float16() -> tuple[Any, Any]:
    above, below = np.float32(2.0**112), np.uint32(126 << 23)
    magic = np.float32(0.5)

    def widen(half):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        shifted = np.uint32(half & 0x7FFF) << np.uint32(13)
        value = np.uint32(shifted).view(np.float32) * above
        bits = np.float32(value).view(np.uint32)
        if shifted >= 0x0F800000:  # noqa: PLR2004 - inf and nan
            bits = np.uint32(bits | 0x7F800000)
        bits = np.uint32(bits | (np.uint32(half & 0x8000) << np.uint32(16)))
        return np.uint32(bits).view(np.float32)

    def narrow(value):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        bits = np.uint32(np.float32(value).view(np.uint32))
        sign = np.uint32(bits & 0x80000000)
        bits = np.uint32(bits ^ sign)
        if bits > 0x7F800000:  # noqa: PLR2004 - nan
            half = np.uint32(0x7E00)
        elif bits >= 0x47800000:  # noqa: PLR2004 - at least 2**16: an overflow, told
            endless = np.float32(np.uint32(bits).view(np.float32) * above)
            half = np.uint32((np.float32(endless).view(np.uint32) >> 13) & 0x7C00)
        elif bits < 0x38800000:  # noqa: PLR2004 - subnormal: an addition rounds
            rounded = np.float32(np.uint32(bits).view(np.float32) + magic)
            half = np.uint32(np.float32(rounded).view(np.uint32) - below)
        else:
            odd = np.uint32((bits >> 13) & 1)
            half = np.uint32(np.uint32(bits - 0x38000000 + 0xFFF + odd) >> 13)
        return np.uint16(half | (sign >> 16))

    return widen, narrow


@cache
def _bfloat16() -> tuple[Any, Any]:
    def widen(half):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        return np.uint32(np.uint32(half) << np.uint32(16)).view(np.float32)

    def narrow(value):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        bits = np.uint32(np.float32(value).view(np.uint32))
        if np.uint32(bits & 0x7FFFFFFF) > 0x7F800000:  # noqa: PLR2004 - nan
            return np.uint16((bits >> 16) | 0x40)
        odd = np.uint32((bits >> 16) & 1)
        return np.uint16(np.uint32(bits + 0x7FFF + odd) >> 16)

    return widen, narrow
