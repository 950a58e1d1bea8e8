# ruff: noqa: F403, F405 - each topic's ``__all__`` says what is public
"""The array API standard 2025.12, on whatever arrays it is given.

Its two extensions are :mod:`xdev.linalg` and :mod:`xdev.fft`, which load at their first
use. The names are written out a second time because type checkers read them here.
"""

from __future__ import annotations

from numpy import (
    bool,  # noqa: A004 - the standard's name
    complex64,
    complex128,
    e,
    float32,
    float64,
    inf,
    int8,
    int16,
    int32,
    int64,
    nan,
    newaxis,
    pi,
    uint8,
    uint16,
    uint32,
    uint64,
)

from xdev.facade.creation import *
from xdev.facade.elementwise import *
from xdev.facade.filling import *
from xdev.facade.inspection import *
from xdev.facade.linear_algebra import *
from xdev.facade.manipulation import *
from xdev.facade.searching import *
from xdev.facade.statistical import *

# fmt: off
__all__ = [
    "__array_api_version__", "__array_namespace_info__", "abs", "acos", "acosh", "add",
    "all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "asin", "asinh",
    "astype", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bool",
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "ceil", "clip",
    "complex64", "complex128", "concat", "conj", "copysign", "cos", "cosh",
    "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "divide", "e",
    "empty", "empty_like", "equal", "exp", "expand_dims", "expm1", "eye", "finfo",
    "flip", "float32", "float64", "floor", "floor_divide", "from_dlpack", "full",
    "full_like", "greater", "greater_equal", "hypot", "iinfo", "imag", "inf", "int8",
    "int16", "int32", "int64", "isdtype", "isfinite", "isin", "isinf", "isnan", "less",
    "less_equal", "linspace", "log", "log1p", "log2", "log10", "logaddexp",
    "logical_and", "logical_not", "logical_or", "logical_xor", "matmul",
    "matrix_transpose", "max", "maximum", "mean", "meshgrid", "min", "minimum",
    "moveaxis", "multiply", "namespace", "nan", "negative", "newaxis", "nextafter",
    "nonzero", "not_equal", "ones", "ones_like", "permute_dims", "pi", "positive",
    "pow", "prod", "real", "reciprocal", "remainder", "repeat", "reshape",
    "result_type", "roll", "round", "searchsorted", "sign", "signbit", "sin", "sinh",
    "sort", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "take",
    "take_along_axis", "tan", "tanh", "tensordot", "tile", "tril", "triu", "trunc",
    "uint8", "uint16", "uint32", "uint64", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "unstack", "var", "vecdot", "where", "zeros",
    "zeros_like",
]
# fmt: on
__dir__ = __all__.copy  # what Tab shows
