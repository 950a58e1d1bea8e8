"""Measure: ``timeit`` for one function, ``compare`` for several that do the same."""

from xdev.timing.agreement import ResultsDifferError
from xdev.timing.comparison import Comparison, Row, compare
from xdev.timing.result import Timing
from xdev.timing.sampling import timeit
from xdev.timing.verdict import Ratio

__all__ = [
    "Comparison",
    "Ratio",
    "ResultsDifferError",
    "Row",
    "Timing",
    "compare",
    "timeit",
]
