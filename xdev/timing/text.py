"""How times are written: IPython's ``%timeit`` text, to the byte."""

from __future__ import annotations

import math
import sys

MINUTE = 60.0
CLOCK_UNITS = (("d", 60 * 60 * 24), ("h", 60 * 60), ("min", 60), ("s", 1))
SCALES = (1, 1e3, 1e6, 1e9)


def encodable(text: str, fallback: str) -> str:
    """Return ``text`` if standard output can carry it, else ``fallback``."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return fallback
    return text


def plus_minus() -> str:
    """Return the sign between a mean and its deviation."""
    return encodable("\xb1", "+-")


def format_time(seconds: float, precision: int = 3) -> str:
    """Write a time as IPython's ``%timeit`` does.

    Parameters
    ----------
    seconds : float
        The time [s].
    precision : int
        Significant digits of a time under a minute.

    Examples
    --------
    >>> format_time(0.0051234), format_time(3725.0)
    ('5.12 ms', '1h 2min 5s')
    """
    if seconds >= MINUTE:
        return _format_clock(seconds)
    # The Greek letter, as IPython prints it, not the micro sign.
    units = ("s", "ms", encodable("\u03bcs", "us"), "ns")
    order = 3
    if seconds > 0.0:
        order = min(-int(math.floor(math.log10(seconds)) // 3), 3)
    digits = max(precision, 0)  # as `%.*g` has it
    return f"{seconds * SCALES[order]:.{digits}g} {units[order]}"


def _format_clock(seconds: float) -> str:
    parts = []
    for suffix, length in CLOCK_UNITS:
        value = int(seconds / length)
        if value > 0:
            seconds %= length
            parts.append(f"{value}{suffix}")
        if seconds < 1:
            break
    return " ".join(parts)
