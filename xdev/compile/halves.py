"""Floats of 16 bits: stored as such, computed in float32."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from xdev import _optional

if TYPE_CHECKING:
    import numpy as np

BFLOAT16 = (
    "bfloat16"  # the name of ml_dtypes' dtype, which NumPy knows once it is there
)


def is_half(dtype: np.dtype[Any]) -> bool:
    """Say whether values of a dtype are computed in float32 though they are smaller.

    Examples
    --------
    >>> import numpy as np
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


@cache
def stored(dtype: np.dtype[Any]) -> Any:
    """Return the Numba type of values in memory, which a load makes float32.

    The conversions are integer arithmetic. The processor's own convert lanes without a
    value along with the others, and what they hold may be told as an invalid value.
    """
    numba = _optional.numba()
    ir, models = _optional.llvm_ir(), numba.core.datamodel.models
    to_float, to_bits = (
        (_from_bfloat16, _to_bfloat16)
        if is_bfloat16(dtype)
        else (_from_float16, _to_float16)
    )

    class Half(numba.core.types.Type):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__(dtype.name)

    @numba.extending.register_model(Half)
    class HalfModel(models.PrimitiveModel):  # type: ignore[misc, name-defined]
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, ir.FloatType())

        def get_data_type(self) -> Any:
            return ir.IntType(16)

        def from_data(self, builder: Any, value: Any) -> Any:
            word = builder.zext(value, ir.IntType(32))
            return builder.bitcast(to_float(builder, word), self.be_type)

        def as_data(self, builder: Any, value: Any) -> Any:
            bits = builder.bitcast(value, ir.IntType(32))
            return builder.trunc(to_bits(builder, bits), self.get_data_type())

    return Half()


def _from_bfloat16(b: Any, word: Any) -> Any:
    return b.shl(word, word.type(16))


def _to_bfloat16(b: Any, bits: Any) -> Any:
    word = bits.type
    high = b.lshr(bits, word(16))
    odd = b.and_(high, word(1))
    even = b.lshr(b.add(b.add(bits, odd), word(0x7FFF)), word(16))
    is_nan = b.icmp_unsigned(">", b.and_(bits, word(0x7FFFFFFF)), word(0x7F800000))
    return b.select(is_nan, b.or_(high, word(0x40)), even)


ABOVE = 2.0**112  # between the exponents of float16 and of float32


def _from_float16(b: Any, half: Any) -> Any:
    word, single = half.type, _optional.llvm_ir().FloatType()
    shifted = b.shl(b.and_(half, word(0x7FFF)), word(13))
    bits = b.bitcast(b.fmul(b.bitcast(shifted, single), single(ABOVE)), word)
    endless = b.icmp_unsigned(">=", shifted, word(0x0F800000))  # and NaN
    bits = b.select(endless, b.or_(bits, word(0x7F800000)), bits)
    return b.or_(bits, b.shl(b.and_(half, word(0x8000)), word(16)))


def _to_float16(b: Any, bits: Any) -> Any:
    word, single = bits.type, _optional.llvm_ir().FloatType()
    sign = b.and_(bits, word(0x80000000))
    size = b.xor(bits, sign)
    value = b.bitcast(size, single)
    odd = b.and_(b.lshr(size, word(13)), word(1))
    normal = b.lshr(b.add(b.sub(size, word(0x38000000 - 0xFFF)), odd), word(13))
    rounded = b.bitcast(b.fadd(value, single(0.5)), word)  # an addition rounds
    small = b.sub(rounded, word(126 << 23))
    overflown = b.bitcast(b.fmul(value, single(ABOVE)), word)  # and tells of it
    large = b.and_(b.lshr(overflown, word(13)), word(0x7C00))
    half = b.select(b.icmp_unsigned("<", size, word(0x38800000)), small, normal)
    half = b.select(b.icmp_unsigned(">=", size, word(0x47800000)), large, half)
    half = b.select(b.icmp_unsigned(">", size, word(0x7F800000)), word(0x7E00), half)
    return b.or_(half, b.lshr(sign, word(16)))
