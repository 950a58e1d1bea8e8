"""Elementwise comparisons, predicates, logical and bitwise operations."""

from __future__ import annotations

from xdev.facade.arity import binary, unary

__all__ = [
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "equal",
    "greater",
    "greater_equal",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "signbit",
]

bitwise_invert = unary(
    "bitwise_invert",
    "Every bit inverted; logical not of booleans.",
    "xdev.asarray([0, 7])",
    "array([-1, -8])",
)
isfinite = unary(
    "isfinite",
    "Whether neither infinite nor NaN.",
    "xdev.asarray([1.0, xdev.inf, xdev.nan])",
    "array([ True, False, False])",
)
isinf = unary(
    "isinf",
    "Whether infinite, of either sign.",
    "xdev.asarray([1.0, xdev.inf, xdev.nan])",
    "array([False,  True, False])",
)
isnan = unary(
    "isnan",
    "Whether not a number.",
    "xdev.asarray([1.0, xdev.inf, xdev.nan])",
    "array([False, False,  True])",
)
logical_not = unary(
    "logical_not",
    "Logical not.",
    "xdev.asarray([True, False])",
    "array([False,  True])",
)
signbit = unary(
    "signbit",
    "Whether the sign bit is set, as in -0.0.",
    "xdev.asarray([-0.0, 0.0, -1.0])",
    "array([ True, False,  True])",
)
bitwise_and = binary(
    "bitwise_and",
    "Bits set in both.",
    "xdev.asarray([12, 10]), 6",
    "array([4, 2])",
)
bitwise_left_shift = binary(
    "bitwise_left_shift",
    "Bits moved left by x2 places.",
    "xdev.asarray([1, 3]), 4",
    "array([16, 48])",
)
bitwise_or = binary(
    "bitwise_or",
    "Bits set in either.",
    "xdev.asarray([12, 10]), 6",
    "array([14, 14])",
)
bitwise_right_shift = binary(
    "bitwise_right_shift",
    "Bits moved right by x2 places.",
    "xdev.asarray([16, 48]), 4",
    "array([1, 3])",
)
bitwise_xor = binary(
    "bitwise_xor",
    "Bits set in one of the two.",
    "xdev.asarray([12, 10]), 6",
    "array([10, 12])",
)
equal = binary(
    "equal",
    "Whether equal.",
    "xdev.asarray([1, 2]), 2",
    "array([False,  True])",
)
greater = binary(
    "greater",
    "Whether x1 > x2.",
    "xdev.asarray([1, 2, 3]), 2",
    "array([False, False,  True])",
)
greater_equal = binary(
    "greater_equal",
    "Whether x1 >= x2.",
    "xdev.asarray([1, 2, 3]), 2",
    "array([False,  True,  True])",
)
less = binary(
    "less",
    "Whether x1 < x2.",
    "xdev.asarray([1, 2, 3]), 2",
    "array([ True, False, False])",
)
less_equal = binary(
    "less_equal",
    "Whether x1 <= x2.",
    "xdev.asarray([1, 2, 3]), 2",
    "array([ True,  True, False])",
)
logical_and = binary(
    "logical_and",
    "Logical and.",
    "xdev.asarray([True, False]), True",
    "array([ True, False])",
)
logical_or = binary(
    "logical_or",
    "Logical or.",
    "xdev.asarray([True, False]), False",
    "array([ True, False])",
)
logical_xor = binary(
    "logical_xor",
    "Logical exclusive or.",
    "xdev.asarray([True, False]), True",
    "array([False,  True])",
)
not_equal = binary(
    "not_equal",
    "Whether not equal.",
    "xdev.asarray([1, 2]), 2",
    "array([ True, False])",
)
