"""The elementary functions, as expressions of the lanes of a SIMD register.

Each operator of :class:`Lanes` emits one LLVM instruction. One expression serves a
single element and any number of them side by side, in float32 and float64, with the
same result to the last bit: nothing is fused or reordered but by :meth:`Lanes.fma`.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from xdev import _optional
from xdev.compile.cpu_math import coefficients
from xdev.compile.formulas import called

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Kind(NamedTuple):
    """A kind of floating point numbers.

    Parameters
    ----------
    width, mantissa : int
        Bits in all, and of the fraction.
    bias : int
        What is added to an exponent.
    """

    width: int
    mantissa: int
    bias: int

    @property
    def rounding(self) -> float:
        """Return the number in whose sum a small number is rounded to an integer.

        The integer stands in the lowest bits of the sum.
        """
        return 1.5 * 2.0**self.mantissa

    @property
    def sign(self) -> int:
        """Return the bits of -0.0."""
        return 1 << (self.width - 1)

    @property
    def infinity(self) -> int:
        """Return the bits of infinity."""
        return (2 * self.bias + 1) << self.mantissa

    def encoded(self, number: float) -> int:
        """Return the bits of a number."""
        return int(np.array(number, f"f{self.width // 8}").view(f"u{self.width // 8}"))

    @property
    def type(self) -> Any:
        """Return LLVM's type."""
        ir = _optional.llvm_ir()
        return ir.FloatType() if self.width == 32 else ir.DoubleType()  # noqa: PLR2004


FLOAT32 = Kind(32, 23, 127)
FLOAT64 = Kind(64, 52, 1023)


def _operator(name: str, *condition: str) -> Callable[[Lanes, Lanes | float], Lanes]:
    """Return an operator of two operands, by LLVM's instruction and its condition."""

    def operation(self: Lanes, other: Lanes | float) -> Lanes:
        emit = getattr(self.builder, name)
        return self._new(emit(*condition, self.value, self._lift(other)))

    return operation


def _arithmetic(name: str) -> Callable[[Lanes, Lanes | float], Lanes]:
    """Return one of numbers, or of their bits."""
    floating, integral = _operator(f"f{name}"), _operator(name)

    def operation(self: Lanes, other: Lanes | float) -> Lanes:
        element = getattr(self.value.type, "element", self.value.type)
        return (floating if element == self.kind.type else integral)(self, other)

    return operation


@final
class Lanes:
    """One value for each lane: floating point numbers, their bits, or conditions.

    Python numbers among the operands are constants of the other operand's type.
    Bits are unsigned integers, which wrap around; they are what is compared.

    Parameters
    ----------
    builder : llvmlite's IRBuilder
        Where the instructions go.
    value : llvmlite's value
        A scalar, or a vector.
    kind : Kind
        What the numbers are, or those whose bits these are.
    """

    __slots__ = ("builder", "kind", "value")

    def __init__(self, builder: Any, value: Any, kind: Kind) -> None:
        self.builder, self.value, self.kind = builder, value, kind

    @property
    def count(self) -> int:
        """Return the number of lanes."""
        return getattr(self.value.type, "count", 1)

    __add__, __sub__ = _arithmetic("add"), _arithmetic("sub")
    __mul__, __truediv__ = _arithmetic("mul"), _arithmetic("div")
    __and__, __or__, __xor__ = map(_operator, ("and_", "or_", "xor"))
    __lshift__, __rshift__ = map(_operator, ("shl", "lshr"))
    __lt__, __ge__ = (_operator("icmp_unsigned", sign) for sign in ("<", ">="))

    def __rsub__(self, other: float) -> Lanes:
        return self._constant(other) - self

    def __rtruediv__(self, other: float) -> Lanes:
        return self._constant(other) / self

    def beyond(self, limit: float) -> Lanes:
        """Say which numbers are further from zero than a limit, on its side of zero.

        Infinity is, nan is not. Comparing numbers themselves would report nan as an
        invalid operand, so that bits are compared.
        """
        size = self.kind.infinity - self.kind.encoded(abs(limit))
        return self.bits - (self.kind.encoded(limit) + 1) < size

    def smaller(self, limit: float) -> Lanes:
        """Say which numbers are nearer to zero than a limit."""
        return self.magnitude.bits < self.kind.encoded(limit)

    def fma(self, factor: Lanes | float, summand: Lanes | float) -> Lanes:
        """Return ``self * factor + summand``, rounded once."""
        vector = f"v{self.count}" if self.count > 1 else ""
        name, kind = f"llvm.fma.{vector}f{self.kind.width}", self.value.type
        operands = self.value, self._lift(factor), self._lift(summand)
        return self._new(called(self.builder, name, kind, *operands))

    def polynomial(self, coefficients: Sequence[float]) -> Lanes:
        """Return the polynomial of these values; coefficients rise in power."""
        *lower, highest = coefficients
        start = self._constant(highest)
        return reduce(lambda sum_, c: sum_.fma(self, c), reversed(lower), start)

    def unless(self, condition: Lanes, other: Lanes | float) -> Lanes:
        """Return these values, but the others where the condition holds."""
        b = self.builder
        return self._new(b.select(condition.value, self._lift(other), self.value))

    @property
    def bits(self) -> Lanes:
        """Return the bits of the numbers."""
        ir = _optional.llvm_ir()
        return self._cast("bitcast", ir.IntType(self.kind.width), self.kind)

    @property
    def number(self) -> Lanes:
        """Return the numbers of the bits."""
        return self._cast("bitcast", self.kind.type, self.kind)

    @property
    def magnitude(self) -> Lanes:
        """Return the absolute values."""
        return (self.bits & (self.kind.sign - 1)).number

    @property
    def sign(self) -> Lanes:
        """Return the bits of the signs alone."""
        return self.bits & self.kind.sign

    def signed(self, sign: Lanes) -> Lanes:
        """Return the numbers with their sign turned where a bit of a sign is set."""
        return (self.bits ^ sign).number

    def widened(self) -> Lanes:
        """Return float32 numbers as float64."""
        return self._cast("fpext", FLOAT64.type, FLOAT64)

    def narrowed(self) -> Lanes:
        """Return float64 numbers rounded to float32."""
        return self._cast("fptrunc", FLOAT32.type, FLOAT32)

    def _cast(self, name: str, element: Any, kind: Kind) -> Lanes:
        value = getattr(self.builder, name)(self.value, shape(element, self.count))
        return Lanes(self.builder, value, kind)

    def _new(self, value: Any) -> Lanes:
        return Lanes(self.builder, value, self.kind)

    def _constant(self, number: float) -> Lanes:
        ir, llvm_type = _optional.llvm_ir(), self.value.type
        every: Any = number if self.count == 1 else [number] * self.count
        return self._new(ir.Constant(llvm_type, every))

    def _lift(self, other: Lanes | float) -> Any:
        return other.value if isinstance(other, Lanes) else self._constant(other).value


def shape(element: Any, count: int) -> Any:
    """Return LLVM's type of so many lanes."""
    return element if count == 1 else _optional.llvm_ir().VectorType(element, count)


# sin, cos and tan: multiples of pi taken off in three parts (Cody and Waite).
#
# The first difference is exact, since the quotient times the first part has no bit
# below those of the result; the others round relative to a result that, for arguments
# up to the limit, does not cancel any more.

TURNS = {32: 2.0**17, 64: 2.0**27}  # the quotient stays far from the fraction's length
PI = coefficients.PI
HALF_PI = {width: tuple(part / 2 for part in parts) for width, parts in PI.items()}
INVERSE = 0.3183098861837907  # 1 / pi


def huge(x: Lanes) -> Lanes:
    """Say which arguments the reduction does not take."""
    return x.magnitude.beyond(TURNS[x.kind.width])


def sin(x: Lanes) -> Lanes:
    """Return the sine."""
    kind = x.kind
    far = x.magnitude.fma(INVERSE, kind.rounding)
    rest = _turned(x.magnitude, far - kind.rounding, PI[kind.width])
    odd = far.bits << (kind.width - 1)
    return _sine(rest).signed(odd ^ x.sign)


def cos(x: Lanes) -> Lanes:
    """Return the cosine: a sine whose argument is off by half a turn."""
    kind = x.kind
    far = x.magnitude.fma(INVERSE, -0.5) + kind.rounding
    quotient = (far - kind.rounding).fma(2.0, 1.0)
    rest = _turned(x.magnitude, quotient, HALF_PI[kind.width])
    even = (far.bits << (kind.width - 1)) ^ kind.sign
    return _sine(rest).signed(even)


def tan(x: Lanes) -> Lanes:
    """Return the tangent; what the reduction rounds off is put back."""
    kind = x.kind
    first, second, third = HALF_PI[kind.width]
    far = x.magnitude.fma(2 * INVERSE, kind.rounding)
    quotient = far - kind.rounding
    start = quotient.fma(-first, x.magnitude)
    taken = quotient * second
    rest = start - taken
    added = rest - start
    lost = (start - (rest - added)) - (taken + added)
    lost = quotient.fma(-third, lost - quotient.fma(second, 0.0 - taken))
    square = rest * rest
    series = square.polynomial(coefficients.TAN[kind.width])
    tangent = rest + (rest * square).fma(series, square.fma(lost, lost))
    odd, even = (far.bits & 1) >= 1, (far.bits & 1) < 1
    # By 2, since LLVM may divide by all lanes first where 1 is chosen: 0 / 0 at zero.
    turned = (tangent + tangent).unless(odd, -1.0) / tangent.unless(even, 2.0)
    return turned.signed(x.sign)


def _turned(x: Lanes, quotient: Lanes, parts: tuple[float, ...]) -> Lanes:
    for part in parts:
        x = quotient.fma(-part, x)
    return x


def _sine(x: Lanes) -> Lanes:
    """Return the sine of at most a quarter turn."""
    square = x * x
    series = square.polynomial(coefficients.SIN[x.kind.width])
    cube = x.fma(x.fma(x, 0.0 - square), x * square)
    return cube.fma(series, x)


# exp, exp2, expm1 and tanh: 2 to the power of an integer times a polynomial.

LOG2_E = 1.4426950408889634
LEAST = {32: -105.0, 64: -746.0}  # exp of it, and of all below, is zero
LEAST_2 = {32: -151.0, 64: -1076.0}  # likewise exp2
GREATEST = {32: 88.0, 64: 709.0}  # from here on exp may be too large
GREATEST_2 = {32: 127.0, 64: 1023.0}  # likewise exp2
MINUS_ONE = {32: -20.0, 64: -40.0}  # expm1 of it is -1
TANH_ONE = {32: 10.0, 64: 20.0}  # tanh of it is 1
TINY = 2.0**-60  # expm1 of anything smaller is the argument


def overflows(greatest: dict[int, float]) -> Callable[[Lanes], Lanes]:
    """Return what says which arguments may have too large a power."""
    return lambda x: x.beyond(greatest[x.kind.width])


def exp(x: Lanes) -> Lanes:
    """Return the exponential."""
    width = x.kind.width
    power, rest, _ = _reduced(x.unless(x.beyond(LEAST[width]), LEAST[width]))
    series = rest.polynomial(coefficients.EXP[width])
    return scaled((rest * rest).fma(series, rest) + 1.0, power)


def exp2(x: Lanes) -> Lanes:
    """Return two to the power of x."""
    width = x.kind.width
    x = x.unless(x.beyond(LEAST_2[width]), LEAST_2[width])
    power = x + x.kind.rounding
    rest = x - (power - x.kind.rounding)
    return scaled(rest.fma(rest.polynomial(coefficients.EXP2[width]), 1.0), power)


def expm1(x: Lanes) -> Lanes:
    """Return the exponential less one."""
    least = MINUS_ONE[x.kind.width]
    return _expm1(x.unless(x.beyond(least), least)).unless(x.smaller(TINY), x)


def tanh(x: Lanes) -> Lanes:
    """Return the hyperbolic tangent, by expm1 of twice the argument.

    That is not accurate enough for small numbers in float32.
    """
    kind = x.kind
    size, limit = x.magnitude, TANH_ONE[kind.width]
    size = size.unless(size.beyond(limit), limit)
    grown = _expm1(size + size)
    result = grown / (grown + 2.0)
    if kind is FLOAT32:
        square = size * size
        series = square.polynomial(coefficients.TANH[32])
        near = (size * square).fma(series, size)
        result = result.unless(size.smaller(coefficients.TANH_LIMIT), near)
    return result.signed(x.sign)


def scaled(x: Lanes, power: Lanes) -> Lanes:
    """Return x times two to a power, which stands in the lowest bits of a number.

    Two steps: the power alone may be out of the format, and the product subnormal.
    """
    kind = x.kind
    exponent = power.bits - (kind.encoded(kind.rounding) - 2 * kind.bias)
    half = exponent >> 1
    whole = x * (half << kind.mantissa).number
    return whole * ((exponent - half) << kind.mantissa).number


def _reduced(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Return x as a multiple of log 2, the rest, and what the rest lost in rounding.

    The multiple stands in the lowest bits of the number returned.
    """
    first, second = coefficients.LN2[x.kind.width]
    power = x.fma(LOG2_E, x.kind.rounding)
    count = power - x.kind.rounding
    start = count.fma(-first, x)
    rest = count.fma(-second, start)
    return power, rest, count.fma(-second, start - rest)


def _expm1(x: Lanes) -> Lanes:
    """Return the exponential less one, accurate for small x."""
    kind = x.kind
    power, rest, lost = _reduced(x)
    series = rest.polynomial(coefficients.EXPM1[kind.width])
    small = rest + (rest * rest).fma(series, rest.fma(lost, lost))
    scale = ((power.bits + kind.bias) << kind.mantissa).number
    return scale.fma(small, scale - 1.0)


# log, log2, log10 and log1p: an exponent, and the logarithm of a number near one.

Pair = tuple[float, ...]


def not_positive(x: Lanes) -> Lanes:
    """Say which arguments are not positive, or subnormal, infinite, or nan."""
    kind = x.kind
    least = 1 << kind.mantissa
    return x.bits - least >= kind.infinity - least


def not_above_minus_one(x: Lanes) -> Lanes:
    """Say of which arguments log1p is not finite; the largest, and nan, too."""
    kind = x.kind
    largest = kind.infinity - (1 << kind.mantissa)
    return (x + 1.0).bits - 1 >= largest - 1


def log(x: Lanes) -> Lanes:
    """Return the natural logarithm."""
    return _whole(*split(x), coefficients.LN2[x.kind.width])


def log2(x: Lanes) -> Lanes:
    """Return the logarithm to base 2."""
    return _whole(*split(x), (1.0, 0.0), coefficients.LOG2_E[x.kind.width])


def log10(x: Lanes) -> Lanes:
    """Return the logarithm to base 10."""
    two, e = coefficients.LOG10_2, coefficients.LOG10_E
    return _whole(*split(x), two[x.kind.width], e[x.kind.width])


def log1p(x: Lanes) -> Lanes:
    """Return the logarithm of 1 + x; what the sum rounds off is put back."""
    kind = x.kind
    total = x + 1.0
    added = total - 1.0
    lost = (1.0 - (total - added)) + (x - added)
    exponent, near = split(total)
    shrink = (2 * kind.bias - exponent) << kind.mantissa
    near = lost.fma(shrink.number, near)
    result = _whole(exponent, near, coefficients.LN2[kind.width])
    return result.unless(x.smaller(TINY), x)


def split(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return n and f of x = 2^n (1 + f), with 1 + f between the roots of 1/2 and 2.

    n is an integer with the format's bias added; x is positive and normal.
    """
    kind = x.kind
    root = coefficients.SQRT_HALF[kind.width]
    shifted = x.bits + (kind.encoded(1.0) - root)
    fraction = (shifted & ((1 << kind.mantissa) - 1)) + root
    return shifted >> kind.mantissa, fraction.number - 1.0


def counted(exponent: Lanes) -> Lanes:
    """Return a biased exponent as a number: the lowest bits of a large one."""
    kind = exponent.kind
    large = 2.0**kind.mantissa
    bits = (kind.bias + kind.mantissa) << kind.mantissa
    return (exponent | bits).number - (large + kind.bias)


def _whole(exponent: Lanes, near: Lanes, two: Pair, e: Pair | None = None) -> Lanes:
    """Return the logarithm of 2^n (1 + f) to some base, from those of 2 and e to it.

    Both are sums of two numbers; that of e is one if left out.
    """
    count, high, low = counted(exponent), near, _log_rest(near)
    if e is not None:
        high = near * e[0]
        lost = near.fma(e[1], near.fma(e[0], 0.0 - high))
        low = low.fma(e[0], lost)
    return count.fma(two[0], high) + count.fma(two[1], low)


def _log_rest(near: Lanes) -> Lanes:
    """Return the logarithm of 1 + f less f."""
    series = coefficients.LOG[near.kind.width]
    square = near * near
    if near.kind is FLOAT32:  # a power series is short enough
        return (near * square).fma(near.polynomial(series), square * -0.5)
    ratio = near / (near + 2.0)
    half, root = square * 0.5, ratio * ratio
    return ratio.fma(root.fma(root.polynomial(series), half), 0.0 - half)


# pow: two to the power of y times the logarithm of x to base 2.

ENOUGH = 2.0**66  # a larger exponent makes every power but those of one 0 or infinite
POWERS = {32: 200.0, 64: 1100.0}  # powers of two beyond the format


def not_plain(x: Lanes, y: Lanes) -> Lanes:
    """Say where the base is not positive, or an operand is infinite or nan."""
    return not_positive(x) | (y.magnitude.bits >= y.kind.infinity)


def power(x: Lanes, y: Lanes) -> Lanes:
    """Return x to the power of y."""
    return _power32(x, y) if x.kind is FLOAT32 else _power64(x, y)


def _power32(x: Lanes, y: Lanes) -> Lanes:
    """Compute the logarithm in float64: it leaves no error to care for."""
    exponent, near = split(x)
    near = near.widened()
    ratio = near / (near + 2.0)
    square = ratio * ratio
    series = square.polynomial(coefficients.LOG_POW[32])
    logarithm = (ratio * square).fma(series, ratio + ratio)
    count = counted(exponent).widened()
    power = y.widened() * logarithm.fma(coefficients.LOG2_E[64][0], count)
    power = _bounded(power, POWERS[32])
    large = power.kind.rounding
    whole = (power + large) - large
    rest = (power - whole).narrowed()
    root = rest.fma(rest.polynomial(coefficients.EXP2[32]), 1.0)
    return scaled(root, whole.narrowed() + x.kind.rounding)


def _power64(x: Lanes, y: Lanes) -> Lanes:
    """Compute with the logarithm as a sum of two numbers."""
    high, low = _log2(x)
    y = _bounded(y, ENOUGH)
    power = y * high
    lost = y.fma(low, y.fma(high, 0.0 - power))
    lost = lost.unless(power.magnitude.beyond(POWERS[64]), 0.0)
    power = _bounded(power, POWERS[64])
    far = power + power.kind.rounding
    rest = (power - (far - power.kind.rounding)) + lost
    return scaled(rest.fma(rest.polynomial(coefficients.EXP2[64]), 1.0), far)


def _bounded(x: Lanes, limit: float) -> Lanes:
    return x.unless(x.beyond(limit), limit).unless(x.beyond(-limit), -limit)


def _log2(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return the logarithm to base 2 as the sum of two numbers, to some 68 bits.

    It is 2 artanh(s) of s = f / (2 + f), an odd series: s + s^3 (1/3 + ...).
    """
    exponent, near = split(x)
    below = near + 2.0
    inverse = 1.0 / below
    s = near * inverse
    s_low = (s.fma(0.0 - below, near) - s * (near - (below - 2.0))) * inverse
    square = s * s
    square_low = s.fma(s_low + s_low, s.fma(s, 0.0 - square))
    third, third_low = coefficients.THIRD[64]
    tail = square.fma(square.polynomial(coefficients.LOG_POW[64]), third_low)
    c = tail + third
    c_low = (third - c) + tail
    h = square * c
    h_low = square.fma(c, 0.0 - h) + square.fma(c_low, square_low * c)
    cubic = s * h
    high = s + cubic
    low = s.fma(h, 0.0 - cubic) + s.fma(h_low, s_low.fma(h, s_low))
    low = ((s - high) + cubic) + low
    two, two_low = coefficients.TWO_LOG2_E[64]
    product = high * two
    product_low = high.fma(two, 0.0 - product) + high.fma(two_low, low * two)
    count = counted(exponent)
    total = count + product
    return total, ((count - total) + product) + product_low


# fmod: the dividend less a multiple of the divisor, rounded once.
#
# The multiple is among the two that are next to the dividend. So the difference is
# exact: it is smaller than the divisor, and has no bit below the divisor's last.
# Where it is negative the divisor is added, which is exact likewise. float32 is
# computed in float64, so that quotients may be as large.

APART = 51  # the quotient is below two to this power, where ``rounding`` rounds it


def not_near(x: Lanes, y: Lanes) -> Lanes:
    """Say where the divisor is zero, subnormal, infinite or nan, or x far beyond it.

    Not where x is infinite or nan, of which the remainder is nan.
    """
    kind, size, divisor = x.kind, x.magnitude.bits, y.magnitude.bits
    far = (size >= divisor + (APART << kind.mantissa)) & (size < kind.infinity)
    return far | not_positive(y.magnitude)


def fmod(x: Lanes, y: Lanes) -> Lanes:
    """Return the remainder, with the sign of x."""
    if x.kind is FLOAT32:
        return fmod(x.widened(), y.widened()).narrowed()
    kind, size, divisor = x.kind, x.magnitude, y.magnitude
    # A quotient of numbers far below the divisor could underflow.
    quotient = size.unless(size.bits < divisor.bits, 0.0) / divisor
    whole = (quotient + kind.rounding) - kind.rounding
    rest = whole.fma(0.0 - divisor, size)
    rest += divisor.unless(rest.bits < kind.sign, 0.0)
    return (rest.bits | x.sign).number


# erf: an odd polynomial near zero, beyond it one less the exponential of another.

ERF_ONE = {32: 4.0, 64: 6.0}  # erf of it is 1


def erf(x: Lanes) -> Lanes:
    """Return the error function."""
    width = x.kind.width
    size = x.magnitude
    size = size.unless(size.beyond(ERF_ONE[width]), ERF_ONE[width])
    near = size.fma((size * size).polynomial(coefficients.ERF[width]), size)
    shifted = size - 1.0
    far = 1.0 - exp(shifted.polynomial(coefficients.ERFC[width]))
    return near.unless(size.beyond(coefficients.ERF_LIMIT[width]), far).signed(x.sign)
