"""Whether one candidate is faster than another, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95
# A verdict asks for more than the interval that is shown: of programs that are the
# same, at most one pair in fifty may be told apart, however much their times scatter.
SURE = 0.98
# Two programs whose times differ by less are the same for a user's purposes.
MARGIN = 1.03
# So many rounds may give a verdict, by SURE; fewer never do.
ROUNDS = 7


@dataclass(frozen=True, slots=True)
class Ratio:
    """The time of one candidate over that of another.

    Parameters
    ----------
    middle : float
        The median of the ratios.
    low, high : float
        The ends of its interval of 95 % confidence; 0 and infinity where there were
        too few times to give one (fewer than 6 rounds).
    verdict : str
        ``"faster"``, ``"slower"``, ``"same"`` (within 3 %) or ``"unclear"``, with 98 %
        confidence.
    enough : bool
        Whether there were times enough for a verdict; if not, it is ``"unclear"``
        whatever they are.
    """

    middle: float
    low: float
    high: float
    verdict: str
    enough: bool = True

    @property
    def sure(self) -> bool:
        """Whether there were times enough for an interval."""
        return self.high != float("inf")


def ratio(
    times: Sequence[float], baseline: Sequence[float], *, margin: float = MARGIN
) -> Ratio:
    """Compare times that were taken in the same rounds.

    The interval is that of the sign test: it assumes nothing of how times scatter,
    and an odd slow round does not move it.

    Parameters
    ----------
    times, baseline : sequence of float, length (rounds,)
        Seconds of each round [s].
    margin : float
        Times that differ by less than this factor are the same.

    Examples
    --------
    >>> ratio([2.0, 2.0, 2.2, 2.0, 1.9, 2.0, 2.1], [1.0] * 7).verdict
    'slower'
    """
    ratios = sorted(a / b for a, b in zip(times, baseline, strict=True))
    return _judge(ratios, _heads(len(ratios)), margin)


def ratio_of_unpaired(
    times: Sequence[float], baseline: Sequence[float], *, margin: float = MARGIN
) -> Ratio:
    """Compare times of two measurements, such as those of two days.

    The interval is that of the Mann-Whitney test (Hodges and Lehmann's): like
    :func:`ratio` it assumes nothing of how times scatter, but that they scatter alike.

    Parameters
    ----------
    times, baseline : sequence of float
        Seconds of a call in each run [s]; as many as there are of each.
    margin : float
        Times that differ by less than this factor are the same.

    Examples
    --------
    >>> ratio_of_unpaired([2.0, 2.1, 2.2, 1.9], [1.0, 1.1, 1.2, 1.05, 0.9]).sure
    True
    """
    ratios = sorted(a / b for a in times for b in baseline)
    return _judge(ratios, _inversions(len(times), len(baseline)), margin)


def _judge(ratios: list[float], counts: list[int], margin: float) -> Ratio:
    low, high = _interval(ratios, counts, CONFIDENCE)
    least, most = _interval(ratios, counts, SURE)
    return Ratio(
        median(ratios),
        low,
        high,
        verdict=_verdict(least, most, margin),
        enough=most != float("inf"),
    )


def _verdict(low: float, high: float, margin: float) -> str:
    if high < 1 / margin:
        return "faster"
    if low > margin:
        return "slower"
    return "same" if low >= 1 / margin and high <= margin else "unclear"


def _interval(
    ratios: list[float], counts: list[int], confidence: float
) -> tuple[float, float]:
    """Return the ends between which the true ratio is with so much confidence.

    ``counts[k]`` of ``sum(counts)`` equally likely cases leave ``k`` ratios below it.
    """
    allowed, tail, outside = (1 - confidence) * sum(counts), 0, -1
    for count in counts:
        tail += 2 * count
        if tail > allowed:
            break
        outside += 1
    if outside < 0:
        return 0.0, float("inf")
    return ratios[outside], ratios[-1 - outside]


def _heads(rounds: int) -> list[int]:
    """Return how many ways ``rounds`` coins have to show 0, 1, 2, ... heads."""
    return [comb(rounds, heads) for heads in range(rounds + 1)]


def _inversions(first: int, second: int) -> list[int]:
    """Return how many ways two sets have to be shuffled with 0, 1, 2, ... inversions.

    The coefficients of the Gaussian binomial of ``first + second`` over ``first``.
    """
    counts = [1] + [0] * (first * second)
    for i in range(1, first + 1):
        for power in reversed(range(second + i, len(counts))):
            counts[power] -= counts[power - second - i]
        for power in range(i, len(counts)):
            counts[power] += counts[power - i]
    return counts
