"""Writes the end of xdev/compile/cpu_math.py: best polynomials, by Remez's exchange.

It prints what stands there from the line on that names this program, in half a minute,
and needs mpmath. Each polynomial is the one of its
degree whose greatest error, times a weight, is least. Its coefficients are rounded one
after the other where the interval starts at zero, the rest fitted anew each time.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

from mpmath import mp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

mp.dps = 50
GRID = 400  # places where the error is looked at
ROUNDS = 12
SMALL = mp.mpf("1e-20")
HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.01")
QUARTER = mp.pi / 4 * mp.mpf("1.01")
ROOT = mp.sqrt(2)
RATIO = ((ROOT - 1) / (ROOT + 1) * mp.mpf("1.001")) ** 2
FLOAT32, FLOAT64 = "f", "d"


@dataclass(frozen=True)
class Fit:
    """A polynomial sought: ``weight * (function - polynomial)`` is to be small."""

    function: Callable[[Any], Any]
    weight: Callable[[Any], Any]
    low: Any
    high: Any


def odd(function: Callable[[Any], Any], high: Any) -> Fit:
    """Fit P in x + x^3 P(x^2) to an odd function; the relative error counts."""

    def rest(square: Any) -> Any:
        x = mp.sqrt(square)
        return (function(x) / x - 1) / square

    def weight(square: Any) -> Any:
        x = mp.sqrt(square)
        return square * x / function(x)

    return Fit(rest, weight, 0, high**2)


def beyond(function: Callable[[Any], Any], start: int, low: Any, high: Any) -> Fit:
    """Fit P in the known terms of a power series + x^start P(x), relatively."""
    known = mp.taylor(function, 0, start - 1)

    def rest(x: Any) -> Any:
        return (function(x) - mp.polyval(known[::-1], x)) / x**start

    value = function if known[0] == 0 else lambda x: max(function(x), SMALL)
    return Fit(rest, lambda x: x**start / value(x), low, high)


def twice_artanh(square: Any) -> Any:
    """Return what 2 artanh(s) has beyond 2 s, over s^3."""
    s = mp.sqrt(square)
    return (2 * mp.atanh(s) / s - 2) / square


FITS = {
    "SIN": odd(mp.sin, 2 * QUARTER),
    "TAN": odd(mp.tan, QUARTER),
    "TANH": odd(mp.tanh, mp.mpf("0.6")),
    "EXP": beyond(mp.exp, 2, -HALF_LN2, HALF_LN2),
    "EXPM1": beyond(mp.expm1, 2, -HALF_LN2, HALF_LN2),
    "EXP2": beyond(lambda x: mp.mpf(2) ** x, 1, mp.mpf("-0.501"), mp.mpf("0.501")),
    "LOG32": beyond(lambda x: mp.log(1 + x), 3, 1 / ROOT - 1, ROOT - 1),
    "LOG64": Fit(twice_artanh, lambda z: z / 2, 0, RATIO),
    "LOG_POW": Fit(
        lambda z: (twice_artanh(z) / 2 - mp.mpf(1) / 3) / z, lambda z: z**2, 0, RATIO
    ),
    "ERF": Fit(
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
        0,
        1,
    ),
    "ERF32": Fit(
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
        0,
        mp.mpf("0.81"),
    ),
    "ERFC32": Fit(
        lambda x: mp.log(mp.erfc(1 + x)), lambda x: mp.erfc(1 + x), -0.12, 2.95
    ),
    "ERFC64": Fit(
        lambda x: mp.log(mp.erfc(1 + x)), lambda x: mp.erfc(1 + x), -0.02, 4.95
    ),
}
TABLES: dict[str, tuple[str, dict[int, tuple[str, str, int]]]] = {
    "SIN": (
        "x + x^3 P(x^2) to a quarter turn",
        {32: ("SIN", "f", 4), 64: ("SIN", "d", 8)},
    ),
    "TAN": ("x + x^3 P(x^2) to an eighth", {32: ("TAN", "f", 7), 64: ("TAN", "d", 14)}),
    "TANH": ("x + x^3 P(x^2) to 0.6", {32: ("TANH", "f", 5)}),
    "EXP": ("1 + r + r^2 P(r)", {32: ("EXP", "f", 5), 64: ("EXP", "d", 10)}),
    "EXPM1": ("r + r^2 P(r)", {32: ("EXPM1", "f", 6), 64: ("EXPM1", "d", 11)}),
    "EXP2": ("1 + r P(r)", {32: ("EXP2", "f", 6), 64: ("EXP2", "d", 11)}),
    "LOG": (
        "log(1 + f): f - f^2 / 2 + f^3 P(f); 2 s + s^3 P(s^2) of s = f / (2 + f)",
        {32: ("LOG32", "f", 8), 64: ("LOG64", "d", 7)},
    ),
    "LOG_POW": (
        "2 s + s^3 P(s^2), computed in float64; s + s^3 (1/3 + s^2 P(s^2))",
        {32: ("LOG64", "d", 4), 64: ("LOG_POW", "d", 8)},
    ),
    "ERF": ("x + x P(x^2)", {32: ("ERF32", "f", 6), 64: ("ERF", "d", 12)}),
    "ERFC": ("log(erfc(1 + u))", {32: ("ERFC32", "f", 8), 64: ("ERFC64", "d", 20)}),
}
SUMS = {
    "PI": ("pi", mp.pi, 3),
    "LN2": ("log(2)", mp.log(2), 2),
    "LOG2_E": ("log2(e)", 1 / mp.log(2), 2),
    "LOG10_2": ("log10(2)", mp.log10(2), 2),
    "LOG10_E": ("log10(e)", mp.log10(mp.e), 2),
    "TWO_LOG2_E": ("2 log2(e)", 2 / mp.log(2), 2),
    "THIRD": ("1/3", mp.mpf(1) / 3, 2),
}


def exchange(fit: Fit, powers: range) -> list[Any]:
    """Return the coefficients of the best polynomial with these powers."""
    low, high, n = mp.mpf(fit.low), mp.mpf(fit.high), len(powers)

    def spread(turns: Any) -> Any:
        x = (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * turns)
        return x if abs(x) > SMALL else (high - low) / 1000

    places = [spread(mp.mpf(k) / GRID) for k in range(GRID + 1)]
    values = [(x, fit.function(x), fit.weight(x)) for x in places]
    chosen = [spread((k + mp.mpf(1) / 2) / (n + 1)) for k in range(n + 1)]
    for _ in range(ROUNDS):
        system, right = mp.matrix(n + 1), mp.matrix(n + 1, 1)
        for i, x in enumerate(chosen):
            for j, power in enumerate(powers):
                system[i, j] = x**power
            system[i, n] = (-1) ** i / fit.weight(x)
            right[i] = fit.function(x)
        found = list(mp.lu_solve(system, right))[:n]
        errors = [
            w * (y - sum(c * x**p for c, p in zip(found, powers, strict=True)))
            for x, y, w in values
        ]
        peaks = list(extrema(errors))
        while len(peaks) > n + 1:
            first = abs(errors[peaks[0]]) < abs(errors[peaks[-1]])
            peaks.pop(0 if first else -1)
        if len(peaks) <= n:
            break  # as good as the arithmetic allows
        chosen = [places[k] for k in peaks]
    return found


def extrema(errors: list[Any]) -> Iterator[int]:
    """Yield where the error is greatest between one change of its sign and the next."""
    best = 0
    for k in range(1, len(errors)):
        if mp.sign(errors[k]) != mp.sign(errors[best]):
            yield best
            best = k
        elif abs(errors[k]) > abs(errors[best]):
            best = k
    yield best


def rounded(value: Any, kind: str) -> float:
    """Return the nearest number of a format."""
    number: float = struct.unpack(kind, struct.pack(kind, float(value)))[0]
    return number


def polynomial(fit: Fit, count: int, kind: str) -> list[float]:
    """Return the coefficients of the best polynomial, rounded."""
    found = exchange(fit, range(count))
    if fit.low != 0:
        return [rounded(c, kind) for c in found]
    kept: list[float] = []
    while len(kept) < count:
        kept.append(rounded(found[0], kind))
        powers = range(len(kept), count)
        known = kept[::-1]
        rest = Fit(
            lambda x, known=known: fit.function(x) - mp.polyval(known, x),
            fit.weight,
            fit.low,
            fit.high,
        )
        found = exchange(rest, powers) if powers else []
    return kept


def parts(value: Any, count: int, kind: str) -> list[str]:
    """Return the texts of numbers that add up to a value."""
    found = []
    for _ in range(count):
        found.append(text(rounded(value, kind), kind))
        value -= rounded(value, kind)
    return found


def text(number: float, kind: str) -> str:
    """Return the shortest text that the format reads as the number."""
    if kind == FLOAT64:
        return repr(number)
    for digits in range(6, 10):
        short = f"{number:.{digits}g}"
        if rounded(float(short), kind) == number:
            break
    return repr(float(short))


def table(name: str, what: str, widths: dict[int, list[str]]) -> str:
    """Return the lines of a table."""
    numbers = " | ".join(" ".join(widths.get(width, ())) for width in (32, 64))
    return f"\n# {what}\n" + fill(f'{name}: Final = _table("""{numbers}""")', 88)


def main() -> None:
    """Print the tables, and what reads them."""
    print("# Polynomials and constants by tools/minimax.py: do not edit.\n#")
    print("# By the width of the format, 32 | 64 bits. Coefficients rise in power;")
    print("# sums of numbers stand for one value that is longer than the format.\n\n")
    print("def _table(text: str) -> dict[int, tuple[float, ...]]:")
    print('    narrow, wide = (tuple(map(float, x.split())) for x in text.split("|"))')
    print("    return {32: narrow, 64: wide}\n\n")
    root = 1 / ROOT
    bits = [struct.unpack(i, struct.pack(f, float(root)))[0] for f, i in ("fI", "dQ")]
    print(f"SQRT_HALF: Final = {{32: {bits[0]:#x}, 64: {bits[1]:#x}}}  # its bits")
    print("TANH_LIMIT: Final = 0.6  # where its polynomial ends")
    print("ERF_LIMIT: Final = {32: 0.9, 64: 1.0}  # likewise")
    for name, (what, value, count) in SUMS.items():
        sums = {w: parts(value, count, f) for w, f in ((32, "f"), (64, "d"))}
        print(table(name, what, sums))
    for name, (what, widths) in TABLES.items():
        every = {
            width: [text(c, kind) for c in polynomial(FITS[fit], count, kind)]
            for width, (fit, kind, count) in widths.items()
        }
        print(table(name, what, every))


if __name__ == "__main__":
    main()
