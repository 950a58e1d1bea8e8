"""Measure: ``timeit`` one function, ``compare`` several, ``sweep`` over sizes."""

from xdev.timing.comparison import (
    Comparison,
    ResultsDifferError,
    Row,
    compare,
    copy_bandwidth,
)
from xdev.timing.result import Timing
from xdev.timing.sampling import timeit
from xdev.timing.sweeps import Sweep, sweep
from xdev.timing.verdict import Changes, Ratio

__all__ = [
    "Changes", "Comparison", "Ratio", "ResultsDifferError", "Row", "Sweep", "Timing",
    "compare", "copy_bandwidth", "sweep", "timeit",
]  # fmt: skip
__dir__ = __all__.copy  # what Tab shows
