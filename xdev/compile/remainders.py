"""Quotients and remainders of floats, without errors that NumPy does not tell.

SIMD code computes both sides of a condition, and compares by instructions to which NaN
is an error. So Numba's condition for divisors of 0 is left out: there the rest of 1 by
1 is computed, which is 0, and beside it what x % 0 is. Signs are read as bits. A side
that divides x by y itself for other divisors would underflow.
"""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from xdev import _optional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BITS = {"float": 32, "double": 64}  # of LLVM's types


def _rest(builder: Any, x: Any, y: Any) -> Any:
    """Emit C's ``fmod``."""
    return builder.frem(x, y)


def _floor(builder: Any, x: Any) -> Any:
    """Emit C's ``floor``."""
    floor = builder.module.declare_intrinsic("llvm.floor", [x.type])
    return builder.call(floor, [x])


def quotient_and_rest(
    builder: Any,
    x: Any,
    y: Any,
    fmod: Callable[..., Any] = _rest,
    floor: Callable[..., Any] = _floor,
) -> tuple[Any, Any]:
    """Emit ``x // y`` and ``x % y``, of CPython's and NumPy's algorithm.

    Parameters
    ----------
    builder : LLVM instruction builder
        Where instructions go.
    x, y : LLVM values
        Floats of one type.
    fmod, floor : callable
        ``fmod(builder, x, y)`` and ``floor(builder, x)`` emit C's functions.
    """
    ir, b, real = _optional.llvm_ir(), builder, x.type
    word = ir.IntType(BITS[str(real)])
    sign = ir.Constant(word, -1 << (word.width - 1))
    zero, one, half, nan = (ir.Constant(real, v) for v in (0.0, 1.0, 0.5, float("nan")))

    def bits(value: Any) -> Any:
        return b.bitcast(value, word)

    def signed_zero(value: Any) -> Any:
        return b.bitcast(b.and_(value, sign), real)

    by_zero = b.fcmp_ordered("==", y, zero)
    lost = b.select(by_zero, x, nan)
    undefined = b.fdiv(b.fsub(lost, lost), zero)
    rest = fmod(b, b.select(by_zero, one, x), b.select(by_zero, one, y))
    quotient = b.fdiv(b.fsub(x, rest), y)  # x / y where that is 0
    # The rest has the divisor's sign, and the quotient is whole but for rounding.
    there, signs = b.fcmp_unordered("!=", rest, zero), b.xor(bits(rest), bits(y))
    other = b.and_(there, b.icmp_signed("<", signs, word(0)))
    rest = b.fadd(rest, b.select(other, y, zero))
    rest = b.select(there, rest, signed_zero(bits(y)))
    quotient = b.fsub(quotient, b.select(other, one, zero))
    there = b.fcmp_unordered("!=", quotient, zero)
    finite = b.select(by_zero, one, quotient)
    down = floor(b, finite)
    above = b.icmp_signed(">", bits(b.fsub(finite, down)), bits(half))
    whole = b.fadd(down, b.select(above, one, zero))
    whole = b.select(there, whole, signed_zero(b.xor(bits(x), bits(y))))
    return b.select(by_zero, quotient, whole), b.select(by_zero, undefined, rest)


@contextmanager
def without_conditions(asked: Callable[[], bool]) -> Iterator[None]:
    """Have Numba divide floats so where asked; the caller has the compiler's lock."""
    numbers: Any = importlib.import_module("numba.cpython.numbers")
    usual, utilities = numbers.real_divmod, numbers.cgutils

    def real_divmod(context: Any, builder: Any, x: Any, y: Any) -> tuple[Any, Any]:
        if asked():
            return quotient_and_rest(builder, x, y)
        found: tuple[Any, Any] = usual(context, builder, x, y)
        return found

    def is_scalar_zero(builder: Any, value: Any) -> Any:
        if asked() and str(value.type) in BITS:
            return utilities.false_bit
        return utilities.is_scalar_zero(builder, value)

    own = {**vars(utilities), "is_scalar_zero": is_scalar_zero}
    numbers.real_divmod, numbers.cgutils = real_divmod, SimpleNamespace(**own)
    try:
        yield
    finally:
        numbers.real_divmod, numbers.cgutils = usual, utilities
