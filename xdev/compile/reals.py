"""Functions of real numbers as NumPy has them, compiled where compilers lack them."""

from __future__ import annotations

import math
from typing import Any

LOG2 = math.log(2)


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
