"""How NumPy's functions, and floats of 16 bits, are computed on the CPU.

In LLVM's instructions, or in compiled Python, which serves CUDA, too.
"""

from __future__ import annotations

import math
import os
from functools import cache
from typing import Any, final

import numpy as np

from xdev import _optional

Dtypes = tuple[np.dtype[Any], ...]

# Floating point exceptions, as C's ``feraiseexcept`` and its like number them.

# By the processor: division by zero, overflow, underflow, an invalid value.
BITS = {"aarch64": (2, 4, 8, 1)}.get(os.uname().machine, (4, 8, 16, 1))
DIVIDE, OVER, UNDER, INVALID = BITS
ALL = 0x1F


# Integers' quotients, remainders, shifts and powers, which are NumPy's.
#
# On the CPU nothing here is undefined, whatever the operands: LLVM may forget a test
# for a divisor of zero, which the processor traps, where a product that is zero has
# overflowed.


def frozen(builder: Any, value: Any) -> Any:
    """Emit LLVM's ``freeze``, for which llvmlite has no word."""
    instructions = _optional.llvm_ir().instructions
    freeze = instructions.Instruction(builder.block, value.type, "freeze", [value])
    builder._insert(freeze)  # noqa: SLF001 - as all its methods do
    return freeze


def truncated(builder: Any, value: Any, width: int, signed: bool, *, host: bool) -> Any:
    """Emit a float as an integer of so many bits.

    A float that the type cannot hold becomes what C's compilers make of it on x86-64:
    the low bits of a wider integer. LLVM alone has no answer then, or several.
    """
    integer = _optional.llvm_ir().IntType
    word = integer(32 if width + (not signed) <= 32 else 64)  # noqa: PLR2004 - bits
    lower, top = value, word(0)
    if width == 64 and not signed:  # noqa: PLR2004
        middle = value.type(2.0**63)
        above = builder.fcmp_ordered(">=", value, middle)
        lower = builder.select(above, builder.fsub(value, middle), value)
        top = builder.select(above, word(1 << 63), top)
    whole = builder.fptosi(lower, word)
    whole = builder.xor(frozen(builder, whole) if host else whole, top)
    return builder.trunc(whole, integer(width)) if width < word.width else whole


def called(builder: Any, name: str, result: Any, *values: Any) -> Any:
    """Emit a call of a C function, or of an intrinsic of LLVM's."""
    kind = _optional.llvm_ir().FunctionType(result, [value.type for value in values])
    insert = _optional.numba().core.cgutils.get_or_insert_function
    return builder.call(insert(builder.module, kind, name), values)


def flags_call(builder: Any, name: str, exceptions: int) -> Any:
    """Emit a call of one of C's functions of floating point exceptions."""
    number = _optional.llvm_ir().IntType(32)
    return called(builder, name, number, number(exceptions))


def raise_flag(builder: Any, condition: Any, exception: int) -> None:
    """Emit C's ``feraiseexcept`` where a condition holds."""
    with builder.if_then(condition, likely=False):
        flags_call(builder, "feraiseexcept", exception)


@final
class Integers:
    """Emits NumPy's functions of integers of one type.

    On the ``host`` divisions trap, and NumPy tells of floating point exceptions.
    """

    def __init__(self, builder: Any, *, signed: bool, host: bool) -> None:
        self._builder, self._signed, self._host = builder, signed, host

    def divmod(self, x: Any, y: Any) -> list[Any]:
        """Emit ``divmod(x, y)``."""
        quotient, rest, overflow = self._floored(x, y)
        if overflow is not None and self._host:
            raise_flag(self._builder, overflow, OVER)
        return [quotient, rest]

    def floor_divide(self, x: Any, y: Any) -> Any:
        """Emit ``x // y``."""
        return self.divmod(x, y)[0]

    def remainder(self, x: Any, y: Any) -> Any:
        """Emit ``x % y``."""
        return self._floored(x, y)[1]

    def fmod(self, x: Any, y: Any) -> Any:
        """Emit ``numpy.fmod(x, y)``, which has the sign of ``x``."""
        return self._divided(x, y)[1]

    def left_shift(self, x: Any, y: Any) -> Any:
        """Emit ``x << y``; a shift by a negative number is one by many bits."""
        return self._shifted(self._builder.shl, x, y)

    def right_shift(self, x: Any, y: Any) -> Any:
        """Emit ``x >> y``."""
        b, word = self._builder, x.type
        if not self._signed:
            return self._shifted(b.lshr, x, y)
        few = b.icmp_unsigned("<", y, word(word.width))
        return b.ashr(x, b.select(few, y, word(word.width - 1)))

    def _shifted(self, emit: Any, x: Any, y: Any) -> Any:
        """Emit a shift to zeros, by however many bits."""
        b, word = self._builder, x.type
        few = b.icmp_unsigned("<", y, word(word.width))
        return b.select(few, emit(x, b.select(few, y, word(0))), word(0))

    def _divided(self, x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
        """Emit quotient and remainder, rounded to zero; the divisor; what overflows.

        By zero both are zero.
        """
        b, word = self._builder, x.type
        if self._host:
            x, y = frozen(b, x), frozen(b, y)
        by_zero = b.icmp_unsigned("==", y, word(0))
        if self._host:
            raise_flag(b, by_zero, DIVIDE)
        unsafe, overflow = by_zero, None
        if self._signed:
            least = b.icmp_unsigned("==", x, word(-1 << (word.width - 1)))
            overflow = b.and_(least, b.icmp_unsigned("==", y, word(-1)))
            unsafe = b.or_(by_zero, overflow)
        divisor = b.select(unsafe, word(1), y)
        quotient = (b.sdiv if self._signed else b.udiv)(x, divisor)
        rest = (b.srem if self._signed else b.urem)(x, divisor)
        return b.select(by_zero, word(0), quotient), rest, y, overflow

    def _floored(self, x: Any, y: Any) -> tuple[Any, Any, Any]:
        """Emit quotient and remainder, rounded down; what overflows."""
        b, word = self._builder, x.type
        quotient, rest, y, overflow = self._divided(x, y)
        if self._signed:
            opposite = b.icmp_signed("<", b.xor(rest, y), word(0))
            below = b.and_(opposite, b.icmp_unsigned("!=", rest, word(0)))
            quotient = b.add(quotient, b.sext(below, word))
            rest = b.add(rest, b.select(below, y, word(0)))
        return quotient, rest, overflow


def integer_power(x: Any, y: Any) -> Any:
    """Return x ** y by repeated squares, which wrap; one below 1 is 0."""
    if y < 0 and abs(x) != 1:
        return np.uint64(0)
    power, square, left, one = np.uint64(1), np.uint64(x), np.uint64(y), np.uint64(1)
    while left != 0:
        if left & one:
            power *= square
        square, left = square * square, left >> one
    return power


def lcm(x: Any, y: Any) -> Any:
    """Return ``numpy.lcm(x, y)``, in Python; it wraps."""
    a, b = np.uint64(abs(x)), np.uint64(abs(y))
    common, rest = a, b
    while rest != 0:
        common, rest = rest, common % rest
    return common if common == 0 else a // common * b


# Quotients and remainders of floats, without errors that NumPy does not tell.
#
# SIMD code computes both sides of a condition, and compares by instructions to which
# NaN is an error. So there is no condition for divisors of 0: there the rest of 1 by 1
# is computed, and beside it what x % 0 is. Signs are read as bits.

FLOAT_BITS = {"float": 32, "double": 64}  # of LLVM's types


def float_divmod(b: Any, x: Any, y: Any, *, host: bool) -> tuple[Any, Any]:
    """Emit ``x // y`` and ``x % y`` of floats, of CPython's and NumPy's algorithm."""
    ir, real = _optional.llvm_ir(), x.type
    width = FLOAT_BITS[str(real)]
    word, suffix = ir.IntType(width), {32: "f", 64: ""}[width]
    fmod, floor = f"__nv_fmod{suffix}", f"__nv_floor{suffix}"
    if host:
        fmod, floor = f"fmod{suffix}", f"llvm.floor.f{width}"
    sign = ir.Constant(word, -1 << (word.width - 1))
    zero, one, half, nan = (ir.Constant(real, v) for v in (0.0, 1.0, 0.5, float("nan")))

    def bits(value: Any) -> Any:
        return b.bitcast(value, word)

    def signed_zero(value: Any) -> Any:
        return b.bitcast(b.and_(value, sign), real)

    by_zero = b.fcmp_ordered("==", y, zero)
    lost = b.select(by_zero, x, nan)
    undefined = b.fdiv(b.fsub(lost, lost), zero)
    valid = (b.select(by_zero, one, value) for value in (x, y))
    rest = called(b, fmod, real, *valid)
    quotient = b.fdiv(b.fsub(x, rest), y)  # x / y where that is 0
    # The rest has the divisor's sign, and the quotient is whole but for rounding.
    there, signs = b.fcmp_unordered("!=", rest, zero), b.xor(bits(rest), bits(y))
    other = b.and_(there, b.icmp_signed("<", signs, word(0)))
    rest = b.fadd(rest, b.select(other, y, zero))
    rest = b.select(there, rest, signed_zero(bits(y)))
    quotient = b.fsub(quotient, b.select(other, one, zero))
    there = b.fcmp_unordered("!=", quotient, zero)
    finite = b.select(by_zero, one, quotient)
    down = called(b, floor, real, finite)
    above = b.icmp_signed(">", bits(b.fsub(finite, down)), bits(half))
    whole = b.fadd(down, b.select(above, one, zero))
    whole = b.select(there, whole, signed_zero(b.xor(bits(x), bits(y))))
    return b.select(by_zero, quotient, whole), b.select(by_zero, undefined, rest)


# Functions of complex numbers, which are NumPy's at zeros and infinities, too.
#
# Those in Python are compiled for every device; the C library's, from which NumPy has
# them, serve the CPU, and what has no entry there is Numba's on CUDA.

INFINITY, NAN = math.inf, math.nan
# Where squares overflow and underflow in float64, and what brings them back.
LARGE, SMALL, DOWN, UP = 2.0**500, 2.0**-500, 2.0**-600, 2.0**600
LOG2, LOG10 = math.log(2), math.log(10)
PRODUCT = 100.0  # larger exponents are none of a product
SHORT = 3  # exponents of products that do not begin with 1
LIBRARY = {
    name: "c" + name.replace("arc", "a").replace("power", "pow")
    for name in (
        *("arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cos", "cosh"),
        *("exp", "log", "power", "sin", "sinh", "sqrt", "tan", "tanh"),
    )
}


def absolute(z: Any) -> Any:
    """Return the distance from zero, which no square on the way to it spoils."""
    x, y = abs(z.real), abs(z.imag)
    larger = max(x, y)
    factor = DOWN if larger > LARGE else (UP if larger < SMALL else 1.0)
    back = UP if larger > LARGE else (DOWN if larger < SMALL else 1.0)
    a, b = x * factor, y * factor
    distance = math.sqrt(a * a + b * b) * back
    return INFINITY if (x == INFINITY) | (y == INFINITY) else distance


def narrow_absolute(z: Any) -> Any:
    """Return that of a complex64, of which float64 has the squares."""
    x, y = np.float64(z.real), np.float64(z.imag)
    distance = math.sqrt(x * x + y * y)
    return INFINITY if (abs(x) == INFINITY) | (abs(y) == INFINITY) else distance


def sign(z: Any) -> Any:
    """Return the number of the same direction at distance 1."""
    x, y = z.real, z.imag
    size = math.hypot(x, y)
    if size == 0:
        return complex(0.0, 0.0)
    if size == INFINITY and (abs(x) != INFINITY or abs(y) != INFINITY):
        x = math.copysign(1.0, x) if abs(x) == INFINITY else 0.0
        y = math.copysign(1.0, y) if abs(y) == INFINITY else 0.0
        return complex(x, y)
    return complex(x / size, y / size)


def unsigned_sign(x: Any) -> Any:
    """Return 1 of an unsigned integer, or 0 of 0."""
    return x != 0


def rint(z: Any) -> Any:
    """Return the number whose parts are whole, the nearest ones."""
    return complex(np.rint(z.real), np.rint(z.imag))


def expm1(z: Any) -> Any:
    """Return exp(z) - 1, also where that is small."""
    half = math.sin(z.imag / 2)
    real = math.expm1(z.real) * math.cos(z.imag) - 2 * half * half
    return complex(real, math.exp(z.real) * math.sin(z.imag))


def log1p(z: Any) -> Any:
    """Return log(1 + z)."""
    x = z.real + 1
    return complex(math.log(math.hypot(x, z.imag)), math.atan2(z.imag, x))


def exp(z: Any) -> Any:
    """Return the exponential."""
    size = math.exp(z.real)
    if z.imag == 0:
        return complex(size, z.imag)
    if size == 0 and not math.isfinite(z.imag):
        return complex(0.0, 0.0)
    return complex(size * math.cos(z.imag), size * math.sin(z.imag))


def log(z: Any) -> Any:
    """Return the logarithm, also near a distance of 1."""
    x, y = abs(z.real), abs(z.imag)
    larger, smaller = max(x, y), min(x, y)
    angle = math.atan2(z.imag, z.real)
    if 0.5 < larger < 1.5:  # noqa: PLR2004 - the distance may be near 1
        square = (larger - 1) * (larger + 1) + smaller * smaller
        return complex(math.log1p(square) / 2, angle)
    size = math.hypot(x, y)
    if size == INFINITY and larger < INFINITY:
        return complex(math.log(math.hypot(x / 2, y / 2)) + math.log(2.0), angle)
    return complex(math.log(size), angle)


def power(z: Any, w: Any) -> Any:
    """Return z to the power of w, by the logarithm."""
    size, angle = math.hypot(z.real, z.imag), math.atan2(z.imag, z.real)
    distance = size**w.real * math.exp(-w.imag * angle)
    angle = w.real * angle + w.imag * math.log(size)
    return complex(distance * math.cos(angle), distance * math.sin(angle))


def exp2(z: Any) -> Any:
    """Return 2 to the power of z."""
    return np.exp(complex(z.real * LOG2, z.imag * LOG2))


def log2(z: Any) -> Any:
    """Return the logarithm to the base of 2."""
    w = np.log(z)
    return complex(w.real / LOG2, w.imag / LOG2)


def log10(z: Any) -> Any:
    """Return the logarithm to the base of 10."""
    w = np.log(z)
    return complex(w.real / LOG10, w.imag / LOG10)


def is_product(z: Any, w: Any) -> Any:
    """Say whether a power is a product, or one of zero."""
    exponent = w.real
    whole = (
        (w.imag == 0) & (abs(exponent) < PRODUCT) & (math.floor(exponent) == exponent)
    )
    return whole | ((z.real == 0) & (z.imag == 0))


def product(z: Any, w: Any) -> Any:
    """Return such a power; products are in NumPy's order, which NaN depends on."""
    x, y, n = z.real, z.imag, abs(w.real)
    if n == 0 and w.imag == 0:
        return complex(1.0, 0.0)
    if x == 0 and y == 0:
        return complex(0.0, 0.0) if w.real > 0 else complex(NAN, NAN)
    a, b, left = x, y, int(n)
    p, q, first = 1.0, 0.0, 0 < w.real <= SHORT
    while left != 0:
        if left & 1:
            p, q = (a, b) if first else (p * a - q * b, p * b + q * a)
            first = False
        a, b, left = a * a - b * b, 2 * a * b, left >> 1
    if w.real > 0:
        return complex(p, q)
    return 1.0 / complex(p, q)


# Functions of real numbers as NumPy has them, compiled where compilers lack them.


def logaddexp(x: Any, y: Any) -> Any:
    """Return log(exp(x) + exp(y)), of equal infinities too."""
    if x == y:
        return x + LOG2
    rest = x - y
    larger = x if rest > 0 else y
    return larger + math.log1p(math.exp(-abs(rest)))  # NaN, if the difference is


def logaddexp2(x: Any, y: Any) -> Any:
    """Return the logarithm to the base of 2 of the sum of two powers of it."""
    if x == y:
        return x + 1
    rest = x - y
    larger = x if rest > 0 else y
    return larger + math.log1p(2.0 ** -abs(rest)) / LOG2


def complex_div(a: Any, b: Any) -> Any:
    """Return CPython's quotient of complex numbers, and NumPy's where that raises."""
    areal, aimag, breal, bimag = a.real, a.imag, b.real, b.imag
    abs_breal, abs_bimag = abs(breal), abs(bimag)
    if abs_breal >= abs_bimag:
        if abs_breal == 0:
            return complex(areal / abs_breal, aimag / abs_breal)
        ratio = bimag / breal
        denom = breal + bimag * ratio
        return complex((areal + aimag * ratio) / denom, (aimag - areal * ratio) / denom)
    if abs_bimag >= abs_breal:
        ratio = breal / bimag
        denom = breal * ratio + bimag
        return complex((areal * ratio + aimag) / denom, (aimag * ratio - areal) / denom)
    return complex(NAN, NAN)


# Floats of 16 bits: stored as such, computed in float32.

BFLOAT16 = "bfloat16"  # ml_dtypes' dtype, which NumPy knows once it is there


def is_half(dtype: np.dtype[Any]) -> bool:
    """Say whether values of a dtype are computed in float32 though they are smaller."""
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

    The conversions are integer arithmetic: the processor's own tell of invalid values
    in lanes without a value.
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
