"""The standard's constants and data types; these are NumPy's own."""

from __future__ import annotations

import numpy as np

__all__ = [
    "bool",
    "complex64",
    "complex128",
    "e",
    "float32",
    "float64",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "nan",
    "newaxis",
    "pi",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

bool = np.bool  # noqa: A001 - the standard's name
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float32, float64 = np.float32, np.float64
complex64, complex128 = np.complex64, np.complex128

e, inf, nan, pi = np.e, np.inf, np.nan, np.pi
newaxis = None
