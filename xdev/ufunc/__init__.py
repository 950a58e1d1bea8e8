"""Ufuncs of scalar Python functions: NumPy's on the CPU, one kernel launch on CUDA."""

from xdev.ufunc.decorator import vectorize
from xdev.ufunc.vectorized import Vectorized

__all__ = ["Vectorized", "vectorize"]
