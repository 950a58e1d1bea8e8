"""Measure: ``timeit`` one function, ``compare`` several, ``sweep`` over sizes."""

from xdev.timing.agreement import ResultsDifferError
from xdev.timing.bandwidth import copy_bandwidth
from xdev.timing.baseline import Changes
from xdev.timing.comparison import compare
from xdev.timing.measurement import timeit
from xdev.timing.report import Comparison, Row
from xdev.timing.result import Timing
from xdev.timing.sweeps import Sweep, sweep
from xdev.timing.verdict import Ratio

__all__ = [
    "Changes",
    "Comparison",
    "Ratio",
    "ResultsDifferError",
    "Row",
    "Sweep",
    "Timing",
    "compare",
    "copy_bandwidth",
    "sweep",
    "timeit",
]
