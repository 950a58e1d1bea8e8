"""Quotients and remainders, which are NumPy's, and the exceptions that they tell of."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Floating point exceptions, as C's ``feraiseexcept`` and its like number them.

# By the processor: division by zero, overflow, underflow, an invalid value.
BITS = {"aarch64": (2, 4, 8, 1)}.get(os.uname().machine, (4, 8, 16, 1))
DIVIDE, OVER, UNDER, INVALID = BITS
ALL = 0x1F


# Integers' quotients, remainders, shifts and powers, which are NumPy's.
#
# Nothing here is undefined, whatever the operands: LLVM may forget a test for a
# divisor of zero, which the processor traps, where a product that is zero has
# overflowed.


@final
@dataclass(frozen=True, slots=True)
class Device:
    """What differs between compilers.

    Parameters
    ----------
    settled : callable
        Emits a value about which LLVM assumes nothing: ``settled(builder, value)``.
    raise_flag : callable
        Emits that NumPy tells of a floating point exception where a condition holds:
        ``raise_flag(builder, condition, exception)``.
    """

    settled: Callable[[Any, Any], Any]
    raise_flag: Callable[[Any, Any, int], None]


def frozen(builder: Any, value: Any) -> Any:
    """Emit LLVM's ``freeze``, for which llvmlite has no word."""
    instructions = _optional.llvm_ir().instructions
    made = instructions.Instruction(builder.block, value.type, "freeze", [value])
    builder._insert(made)  # noqa: SLF001 - as all its methods do
    return made


def called(builder: Any, name: str, result: Any, *values: Any) -> Any:
    """Emit a call of a C function, or of an intrinsic of LLVM's."""
    kind = _optional.llvm_ir().FunctionType(result, [value.type for value in values])
    insert = _optional.numba().core.cgutils.get_or_insert_function
    return builder.call(insert(builder.module, kind, name), values)


def raise_flag(builder: Any, condition: Any, exception: int) -> None:
    """Emit C's ``feraiseexcept`` where a condition holds."""
    number = _optional.llvm_ir().IntType(32)
    with builder.if_then(condition, likely=False):
        called(builder, "feraiseexcept", number, number(exception))


def ignore_flag(_builder: Any, _condition: Any, _exception: int) -> None:
    """Emit nothing."""


def opaque(builder: Any, value: Any) -> Any:
    """Emit a copy of which LLVM knows nothing; NVVM has no ``freeze``."""
    ir, own = _optional.llvm_ir(), value.type
    if isinstance(value, ir.Constant):
        return value
    word = ir.IntType(max(own.width, 32))
    letter = {32: "r", 64: "l"}[word.width]
    kind, text = ir.FunctionType(word, [word]), f"mov.b{word.width} $0, $1;"
    wide = value if word == own else builder.zext(value, word)
    copy = builder.asm(kind, text, f"={letter},{letter}", [wide], side_effect=False)
    return copy if word == own else builder.trunc(copy, own)


def known(_builder: Any, value: Any) -> Any:
    """Return a value that has not overflowed."""
    return value


def _divided(
    device: Device, builder: Any, x: Any, y: Any, *, signed: bool
) -> tuple[Any, Any, Any, Any]:
    """Emit quotient and remainder, rounded to zero; the divisor; what overflows.

    By zero both are zero.
    """
    b, word = builder, x.type
    x, y = device.settled(b, x), device.settled(b, y)
    by_zero = b.icmp_unsigned("==", y, word(0))
    device.raise_flag(b, by_zero, DIVIDE)
    unsafe, overflow = by_zero, None
    if signed:
        least = b.icmp_unsigned("==", x, word(-1 << (word.width - 1)))
        overflow = b.and_(least, b.icmp_unsigned("==", y, word(-1)))
        unsafe = b.or_(by_zero, overflow)
    divisor = b.select(unsafe, word(1), y)
    quotient = (b.sdiv if signed else b.udiv)(x, divisor)
    rest = (b.srem if signed else b.urem)(x, divisor)
    return b.select(by_zero, word(0), quotient), rest, y, overflow


def _floored(
    device: Device, builder: Any, x: Any, y: Any, *, signed: bool
) -> tuple[Any, Any, Any]:
    """Emit quotient and remainder, rounded down; what overflows."""
    b, word = builder, x.type
    quotient, rest, y, overflow = _divided(device, b, x, y, signed=signed)
    if signed:
        opposite = b.icmp_signed("<", b.xor(rest, y), word(0))
        below = b.and_(opposite, b.icmp_unsigned("!=", rest, word(0)))
        quotient = b.add(quotient, b.sext(below, word))
        rest = b.add(rest, b.select(below, y, word(0)))
    return quotient, rest, overflow


def both(device: Device, builder: Any, x: Any, y: Any, *, signed: bool) -> Any:
    """Emit ``divmod(x, y)``, a list of two."""
    quotient, rest, overflow = _floored(device, builder, x, y, signed=signed)
    if overflow is not None:
        device.raise_flag(builder, overflow, OVER)
    return [quotient, rest]


def quotient(device: Device, builder: Any, x: Any, y: Any, *, signed: bool) -> Any:
    """Emit ``x // y``."""
    return both(device, builder, x, y, signed=signed)[0]


def rest(device: Device, builder: Any, x: Any, y: Any, *, signed: bool) -> Any:
    """Emit ``x % y``."""
    return _floored(device, builder, x, y, signed=signed)[1]


def remainder(device: Device, builder: Any, x: Any, y: Any, *, signed: bool) -> Any:
    """Emit ``numpy.fmod(x, y)``, which has the sign of ``x``."""
    return _divided(device, builder, x, y, signed=signed)[1]


def left(_device: Device, builder: Any, x: Any, y: Any, *, signed: bool) -> Any:  # noqa: ARG001
    """Emit ``x << y``; a shift by a negative number is one by many bits."""
    b, word = builder, x.type
    few = b.icmp_unsigned("<", y, word(word.width))
    return b.select(few, b.shl(x, b.select(few, y, word(0))), word(0))


def right(_device: Device, builder: Any, x: Any, y: Any, *, signed: bool) -> Any:
    """Emit ``x >> y``."""
    b, word = builder, x.type
    few = b.icmp_unsigned("<", y, word(word.width))
    if signed:
        return b.ashr(x, b.select(few, y, word(word.width - 1)))
    return b.select(few, b.lshr(x, b.select(few, y, word(0))), word(0))


def power(device: Device, builder: Any, x: Any, y: Any, *, signed: bool) -> Any:
    """Emit ``x ** y`` by repeated squares, which wrap; one below 1 is 0.

    0 to a negative power is the least integer, as infinity is when it is cast.
    """
    b, word = builder, x.type
    x, y = device.settled(b, x), device.settled(b, y)
    start, body, done = b.block, *(b.append_basic_block("power") for _ in range(2))
    some = b.icmp_unsigned("!=", y, word(0))
    b.cbranch(some, body, done)
    b.position_at_end(body)
    product, square, bits = (b.phi(word) for _ in range(3))
    following = (
        b.mul(product, b.select(_odd(b, bits), square, word(1))),
        b.mul(square, square),
        b.lshr(bits, word(1)),
    )
    for phi, first, after in zip(
        (product, square, bits), (word(1), x, y), following, strict=True
    ):
        phi.add_incoming(first, start)
        phi.add_incoming(after, body)
    b.cbranch(b.icmp_unsigned("!=", following[2], word(0)), body, done)
    b.position_at_end(done)
    found = b.phi(word)
    found.add_incoming(word(1), start)
    found.add_incoming(following[0], body)
    return _inverted(b, x, y, found) if signed else found


def _inverted(builder: Any, x: Any, y: Any, power: Any) -> Any:
    """Emit the power, or what it is where the exponent is negative."""
    b, word = builder, x.type
    result = word(0)
    for base, inverse in (
        (0, word(-1 << (word.width - 1))),
        (1, word(1)),
        (-1, b.select(_odd(b, y), word(-1), word(1))),
    ):
        result = b.select(b.icmp_unsigned("==", x, word(base)), inverse, result)
    return b.select(b.icmp_signed("<", y, word(0)), result, power)


def _odd(builder: Any, value: Any) -> Any:
    return builder.trunc(value, _optional.llvm_ir().IntType(1))


def multiple(x: Any, y: Any) -> Any:
    """Return ``numpy.lcm(x, y)``, in Python; it wraps."""
    a, b = np.uint64(abs(x)), np.uint64(abs(y))
    common, rest = a, b
    while rest != 0:
        common, rest = rest, common % rest
    return common if common == 0 else a // common * b


# Quotients and remainders of floats, without errors that NumPy does not tell.
#
# SIMD code computes both sides of a condition, and compares by instructions to which
# NaN is an error. So Numba's condition for divisors of 0 is left out: there the rest
# of 1 by 1 is computed, which is 0, and beside it what x % 0 is. Signs are read as
# bits. A side that divides x by y itself for other divisors would underflow.

WIDTHS = {"float": 32, "double": 64}  # of LLVM's types


def quotient_and_rest(
    builder: Any,
    values: Sequence[Any],
    fmod: Callable[..., Any],
    floor: Callable[..., Any],
) -> tuple[Any, Any]:
    """Emit ``x // y`` and ``x % y``, of CPython's and NumPy's algorithm.

    Parameters
    ----------
    builder : LLVM instruction builder
        Where instructions go.
    values : two LLVM values
        Floats of one type.
    fmod, floor : callable
        ``fmod(builder, x, y)`` and ``floor(builder, x)`` emit C's functions.
    """
    x, y = values
    ir, b, real = _optional.llvm_ir(), builder, x.type
    word = ir.IntType(WIDTHS[str(real)])
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
