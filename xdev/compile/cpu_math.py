"""Vectorized mathematics on the CPU, in the place of the C library's in compiled code.

The elementary functions are expressions of the lanes of a SIMD register.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, final

from xdev import _optional
from xdev.compile.lanes import FLOAT32, FLOAT64, Lanes, module_text, symbol

if TYPE_CHECKING:
    from collections.abc import Callable


# sin, cos and tan: multiples of pi taken off in three parts (Cody and Waite).
#
# The first difference is exact, since the quotient times the first part has no bit
# below those of the result; the others round relative to a result that, for arguments
# up to the limit, does not cancel any more.

TURNS = {32: 2.0**17, 64: 2.0**27}  # the quotient stays far from the fraction's length
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
    rest = _turned(x.magnitude, quotient, _half_pi(kind.width))
    even = (far.bits << (kind.width - 1)) ^ kind.sign
    return _sine(rest).signed(even)


def tan(x: Lanes) -> Lanes:
    """Return the tangent; what the reduction rounds off is put back."""
    kind = x.kind
    first, second, third = _half_pi(kind.width)
    far = x.magnitude.fma(2 * INVERSE, kind.rounding)
    quotient = far - kind.rounding
    start = quotient.fma(-first, x.magnitude)
    taken = quotient * second
    rest = start - taken
    added = rest - start
    lost = (start - (rest - added)) - (taken + added)
    lost = quotient.fma(-third, lost - quotient.fma(second, 0.0 - taken))
    square = rest * rest
    series = square.polynomial(TAN[kind.width])
    tangent = rest + (rest * square).fma(series, square.fma(lost, lost))
    odd, even = (far.bits & 1) >= 1, (far.bits & 1) < 1
    # By 2, since LLVM may divide by all lanes first where 1 is chosen: 0 / 0 at zero.
    turned = (tangent + tangent).unless(odd, -1.0) / tangent.unless(even, 2.0)
    return turned.signed(x.sign)


def _turned(x: Lanes, quotient: Lanes, parts: tuple[float, ...]) -> Lanes:
    for part in parts:
        x = quotient.fma(-part, x)
    return x


def _half_pi(width: int) -> tuple[float, ...]:
    return tuple(part / 2 for part in PI[width])


def _sine(x: Lanes) -> Lanes:
    """Return the sine of at most a quarter turn."""
    square = x * x
    series = square.polynomial(SIN[x.kind.width])
    cube = x.fma(x.fma(x, 0.0 - square), x * square)
    return cube.fma(series, x)


# exp, exp2, expm1 and tanh: 2 to the power of an integer times a polynomial.

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
    series = rest.polynomial(EXP[width])
    return scaled((rest * rest).fma(series, rest) + 1.0, power)


def exp2(x: Lanes) -> Lanes:
    """Return two to the power of x."""
    width = x.kind.width
    x = x.unless(x.beyond(LEAST_2[width]), LEAST_2[width])
    power = x + x.kind.rounding
    rest = x - (power - x.kind.rounding)
    return scaled(rest.fma(rest.polynomial(EXP2[width]), 1.0), power)


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
        series = square.polynomial(TANH[32])
        near = (size * square).fma(series, size)
        result = result.unless(size.smaller(TANH_LIMIT), near)
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
    first, second = LN2[x.kind.width]
    power = x.fma(LOG2_E[x.kind.width][0], x.kind.rounding)
    count = power - x.kind.rounding
    start = count.fma(-first, x)
    rest = count.fma(-second, start)
    return power, rest, count.fma(-second, start - rest)


def _expm1(x: Lanes) -> Lanes:
    """Return the exponential less one, accurate for small x."""
    kind = x.kind
    power, rest, lost = _reduced(x)
    series = rest.polynomial(EXPM1[kind.width])
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
    return _whole(*split(x), LN2[x.kind.width])


def log2(x: Lanes) -> Lanes:
    """Return the logarithm to base 2."""
    return _whole(*split(x), (1.0, 0.0), LOG2_E[x.kind.width])


def log10(x: Lanes) -> Lanes:
    """Return the logarithm to base 10."""
    two, e = LOG10_2, LOG10_E
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
    result = _whole(exponent, near, LN2[kind.width])
    return result.unless(x.smaller(TINY), x)


def split(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return n and f of x = 2^n (1 + f), with 1 + f between the roots of 1/2 and 2.

    n is an integer with the format's bias added; x is positive and normal.
    """
    kind = x.kind
    root = SQRT_HALF[kind.width]
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
    series = LOG[near.kind.width]
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
    series = square.polynomial(LOG_POW[32])
    logarithm = (ratio * square).fma(series, ratio + ratio)
    count = counted(exponent).widened()
    power = y.widened() * logarithm.fma(LOG2_E[64][0], count)
    power = _bounded(power, POWERS[32])
    large = power.kind.rounding
    whole = (power + large) - large
    rest = (power - whole).narrowed()
    root = rest.fma(rest.polynomial(EXP2[32]), 1.0)
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
    return scaled(rest.fma(rest.polynomial(EXP2[64]), 1.0), far)


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
    third, third_low = THIRD[64]
    tail = square.fma(square.polynomial(LOG_POW[64]), third_low)
    c = tail + third
    c_low = (third - c) + tail
    h = square * c
    h_low = square.fma(c, 0.0 - h) + square.fma(c_low, square_low * c)
    cubic = s * h
    high = s + cubic
    low = s.fma(h, 0.0 - cubic) + s.fma(h_low, s_low.fma(h, s_low))
    low = ((s - high) + cubic) + low
    two, two_low = TWO_LOG2_E[64]
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
    near = size.fma((size * size).polynomial(ERF[width]), size)
    shifted = size - 1.0
    far = 1.0 - exp(shifted.polynomial(ERFC[width]))
    return near.unless(size.beyond(ERF_LIMIT[width]), far).signed(x.sign)


# Of each function of the C library the result, of :class:`Lanes`, and which of them
# are rare: these the C library computes.
FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "cos": (cos, huge),
    "erf": (erf, None),
    "exp": (exp, overflows(GREATEST)),
    "exp2": (exp2, overflows(GREATEST_2)),
    "expm1": (expm1, overflows(GREATEST)),
    "fmod": (fmod, not_near),
    "log": (log, not_positive),
    "log10": (log10, not_positive),
    "log1p": (log1p, not_above_minus_one),
    "log2": (log2, not_positive),
    "pow": (power, not_plain),
    "sin": (sin, huge),
    "tan": (tan, huge),
    "tanh": (tanh, None),
}
SYMBOLS = {
    spelling: (name, kind)
    for name in FUNCTIONS
    for kind, suffix in ((FLOAT32, "f"), (FLOAT64, ""))
    for spelling in (f"llvm.{name}.f{kind.width}", f"{name}{suffix}")
}
CALLED = re.compile(r"@([\w.]+)\(")


@final
class Linkable:
    """A module of LLVM's that Numba links into a library, as it links its own."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._reload_init: set[Any] = set()

    def _ensure_finalized(self) -> None:
        """Do nothing: the module is optimised with what it is linked into."""

    def _get_module_for_linking(self) -> Any:
        return self._module


def vectorized(library: Any) -> Any:
    """Return what to link instead of a function's own library, by Numba.

    That is the library itself, if it calls nothing that is vectorized here, or the CPU
    is too old.
    """
    llvm = _optional.llvm()
    module = library._get_module_for_linking()  # noqa: SLF001
    text = str(module)
    used = {SYMBOLS[name] for name in CALLED.findall(text) if name in SYMBOLS}
    if not used or not _has_fma():
        return library
    module = llvm.parse_assembly(CALLED.sub(_renamed, text))
    for name, kind in used:
        part = llvm.parse_assembly(module_text(name, kind, *FUNCTIONS[name]))
        part.triple, part.data_layout = module.triple, module.data_layout
        module.link_in(part)
    return Linkable(module)


def _has_fma() -> bool:
    """Say whether the CPU has fused multiplication and addition."""
    context = _optional.numba().core.registry.cpu_target.target_context
    triple, _, features = context.codegen().magic_tuple()
    return not triple.startswith("x86") or "+fma," in f"{features},"


def _renamed(call: re.Match[str]) -> str:
    spelled = SYMBOLS.get(call[1])
    return f"@{symbol(*spelled)}(" if spelled else call[0]


# Polynomials and constants by tools/minimax.py: do not edit.
#
# By the width of the format, 32 | 64 bits. Coefficients rise in power;
# sums of numbers stand for one value that is longer than the format.


def _table(text: str) -> dict[int, tuple[float, ...]]:
    narrow, wide = (tuple(map(float, x.split())) for x in text.split("|"))
    return {32: narrow, 64: wide}


SQRT_HALF: Final = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}  # its bits
TANH_LIMIT: Final = 0.6  # where its polynomial ends
ERF_LIMIT: Final = {32: 0.9, 64: 1.0}  # likewise

# pi
PI: Final = _table("""3.1415927 -8.742278e-08 -3.430249e-15 | 3.141592653589793
1.2246467991473532e-16 -2.9947698097183397e-33""")

# log(2)
LN2: Final = _table("""0.6931472 -1.9046542e-09 | 0.6931471805599453
2.3190468138462996e-17""")

# log2(e)
LOG2_E: Final = _table("""1.442695 1.925963e-08 | 1.4426950408889634
2.0355273740931033e-17""")

# log10(2)
LOG10_2: Final = _table("""0.30103 -1.4320989e-08 | 0.3010299956639812
-2.8037281277851704e-18""")

# log10(e)
LOG10_E: Final = _table("""0.4342945 -1.010305e-08 | 0.4342944819032518
1.098319650216765e-17""")

# 2 log2(e)
TWO_LOG2_E: Final = _table("""2.88539 3.851926e-08 | 2.8853900817779268
4.0710547481862066e-17""")

# 1/3
THIRD: Final = _table("""0.33333334 -9.934108e-09 | 0.3333333333333333
1.850371707708594e-17""")

# x + x^3 P(x^2) to a quarter turn
SIN: Final = _table("""-0.16666658 0.00833303 -0.0001980685 2.599519e-06 |
-0.16666666666666666 0.0083333333333332 -0.00019841269841208557 2.7557319210738975e-06
-2.505210681799012e-08 1.6058936260767856e-10 -7.642887809470572e-13
2.719964259814686e-15""")

# x + x^3 P(x^2) to an eighth
TAN: Final = _table("""0.33333352 0.13332571 0.05407098 0.021222606 0.010995554
-0.00011877307 0.0044815615 | 0.33333333333332565 0.13333333333443495
0.05396825391300747 0.02186948993327893 0.008863214639503953 0.003592329520210184
0.0014545145163555545 0.0005960801382967511 0.00021941017090684463 0.0001425967834178267
-3.488304883311347e-05 9.720792022622617e-05 -4.903528262571595e-05
2.1856817345286046e-05""")

# x + x^3 P(x^2) to 0.6
TANH: Final = _table("""-0.333333 0.13331936 -0.053784717 0.020798625 -0.005897966 |
""")

# 1 + r + r^2 P(r)
EXP: Final = _table("""0.49999994 0.16666515 0.041668456 0.008369419 0.001381316 |
0.5000000000000012 0.16666666666666385 0.04166666666651916 0.008333333333507734
0.0013888888946919486 0.0001984126948600726 2.4801489352447346e-05
2.7557597317855194e-06 2.7631687374071863e-07 2.4998953697063096e-08""")

# r + r^2 P(r)
EXPM1: Final = _table("""0.5 0.16666667 0.041666314 0.0083332155 0.0013944313
0.00019964649 | 0.5000000000000001 0.1666666666666667 0.041666666666651114
0.008333333333325565 0.0013888888896005718 0.00019841269876805023 2.480157402485796e-05
2.7557252898008513e-06 2.7568138126257066e-07 2.5106251335391596e-08
1.7688201627616388e-09""")

# 1 + r P(r)
EXP2: Final = _table("""0.69314724 0.24022652 0.055503096 0.00961769 0.001340695
0.00015595369 | 0.6931471805599457 0.24022650695910097 0.05550410866478989
0.009618129107606658 0.0013333558153524234 0.0001540353044215126 1.5252727333764255e-05
1.3215442322483358e-06 1.0180657901016278e-07 7.0726409268347685e-09
4.0780906738141905e-10""")

# log(1 + f): f - f^2 / 2 + f^3 P(f); 2 s + s^3 P(s^2) of s = f / (2 + f)
LOG: Final = _table("""0.3333333 -0.25000823 0.20001227 -0.16623357 0.14201751
-0.13160184 0.12761621 -0.07634547 | 0.6666666666666735 0.3999999999940875
0.2857142874391106 0.2222219839885302 0.18183574225286486 0.15313777545525162
0.14798865860707103""")

# 2 s + s^3 P(s^2), computed in float64; s + s^3 (1/3 + s^2 P(s^2))
LOG_POW: Final = _table("""0.6666666563709864 0.4000033725312515 0.28537167845737843
0.23584989761751796 | 0.19999999999999987 0.14285714285723522 0.11111111108535073
0.09090909463552166 0.07692276512832329 0.0666823212317397 0.058359303055929
0.06006729275737383""")

# x + x P(x^2)
ERF: Final = _table("""0.12837915 -0.37612504 0.11281922 -0.026770493 0.004998959
-0.00060207996 | 0.12837916709551256 -0.37612638903183343 0.11283791670936917
-0.02686617064194706 0.005223977596574592 -0.0008548325474081266 0.00012055280071033322
-1.4924455524577278e-05 1.6444001680446165e-06 -1.618266736544761e-07
1.361019021800105e-08 -7.594232113498202e-10""")

# log(erfc(1 + u))
ERFC: Final = _table("""-1.8496056 -2.6389675 -0.8431074 -0.041561224 0.010040096
-0.0020037678 0.00028468051 -2.0629253e-05 | -1.8496055099332482 -2.6389675142347913
-0.8431072563584883 -0.04156109804629415 0.010033825429830216 -0.0019779029776147
0.0002373244531894668 2.6271349471561833e-05 -2.7143696760700962e-05
9.582234029795276e-06 -2.0254105237257157e-06 1.0955063721309474e-07
1.2197589991156482e-07 -6.55481714791341e-08 2.0499060650219276e-08
-4.5612117486837074e-09 7.348773916238292e-10 -8.202835237664901e-11
5.682758085053038e-12 -1.838286953244029e-13""")
