"""Whether one candidate is faster than another, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95
# Two programs whose times differ by less are the same for a user's purposes.
MARGIN = 1.03


@dataclass(frozen=True, slots=True)
class Ratio:
    """The time of one candidate over that of another.

    Parameters
    ----------
    middle : float
        The median of the rounds' ratios.
    low, high : float
        The ends of its interval of 95 % confidence; 0 and infinity where there were
        fewer than 6 rounds, which can give no such interval.
    """

    middle: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether there were rounds enough for an interval."""
        return self.high != float("inf")

    @property
    def verdict(self) -> str:
        """``"faster"``, ``"slower"``, ``"same"`` (within 3 %) or ``"unclear"``."""
        if self.high < 1 / MARGIN:
            return "faster"
        if self.low > MARGIN:
            return "slower"
        if self.low >= 1 / MARGIN and self.high <= MARGIN:
            return "same"
        return "unclear"


def ratio(times: Sequence[float], baseline: Sequence[float]) -> Ratio:
    """Compare times that were taken in the same rounds.

    The interval is that of the sign test: it assumes nothing of how times scatter,
    and an odd slow round does not move it.

    Parameters
    ----------
    times, baseline : sequence of float, length (rounds,)
        Seconds of each round [s].

    Examples
    --------
    >>> ratio([2.0, 2.0, 2.2, 2.0, 1.9, 2.0], [1.0] * 6).verdict
    'slower'
    """
    ratios = sorted(a / b for a, b in zip(times, baseline, strict=True))
    outside = _ranks_outside(len(ratios))
    if outside is None:
        return Ratio(median(ratios), 0.0, float("inf"))
    return Ratio(median(ratios), ratios[outside], ratios[-1 - outside])


def _ranks_outside(count: int) -> int | None:
    """Return how many values each end may leave out; None if even none is unsure."""
    outside, tail = None, 0.0
    for rank in range(count):
        tail += 2 * comb(count, rank) / 2**count
        if tail > 1 - CONFIDENCE:
            break
        outside = rank
    return outside
