"""Elementwise roots, exponentials, logarithms, trigonometry and hyperbolics."""

from __future__ import annotations

from xdev.facade.arity import binary, unary

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "hypot",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]

acos = unary(
    "acos",
    "Inverse cosine [rad], in [0, pi].",
    "xdev.asarray([1.0, 0.0])",
    "array([0.        , 1.57079633])",
)
acosh = unary(
    "acosh",
    "Inverse hyperbolic cosine.",
    "xdev.asarray([1.0, 2.0])",
    "array([0.       , 1.3169579])",
)
asin = unary(
    "asin",
    "Inverse sine [rad], in [-pi/2, pi/2].",
    "xdev.asarray([0.0, 1.0])",
    "array([0.        , 1.57079633])",
)
asinh = unary(
    "asinh",
    "Inverse hyperbolic sine.",
    "xdev.asarray([0.0, 1.0])",
    "array([0.        , 0.88137359])",
)
atan = unary(
    "atan",
    "Inverse tangent [rad], in [-pi/2, pi/2].",
    "xdev.asarray([0.0, 1.0])",
    "array([0.        , 0.78539816])",
)
atanh = unary(
    "atanh",
    "Inverse hyperbolic tangent.",
    "xdev.asarray([0.0, 0.5])",
    "array([0.        , 0.54930614])",
)
cos = unary(
    "cos",
    "Cosine of an angle [rad].",
    "xdev.asarray([0.0, 1.0])",
    "array([1.        , 0.54030231])",
)
cosh = unary(
    "cosh",
    "Hyperbolic cosine.",
    "xdev.asarray([0.0, 1.0])",
    "array([1.        , 1.54308063])",
)
exp = unary(
    "exp",
    "Exponential, e to the power of each element.",
    "xdev.asarray([0.0, 1.0])",
    "array([1.        , 2.71828183])",
)
expm1 = unary(
    "expm1",
    "Exponential minus 1, exact near 0.",
    "xdev.asarray([0.0, 1e-10])",
    "array([0.e+00, 1.e-10])",
)
log = unary(
    "log",
    "Natural logarithm.",
    "xdev.asarray([1.0, 2.0])",
    "array([0.        , 0.69314718])",
)
log1p = unary(
    "log1p",
    "Natural logarithm of 1 + x, exact near 0.",
    "xdev.asarray([0.0, 1e-10])",
    "array([0.e+00, 1.e-10])",
)
log2 = unary(
    "log2",
    "Logarithm to base 2.",
    "xdev.asarray([1.0, 8.0])",
    "array([0., 3.])",
)
log10 = unary(
    "log10",
    "Logarithm to base 10.",
    "xdev.asarray([1.0, 1000.0])",
    "array([0., 3.])",
)
sin = unary(
    "sin",
    "Sine of an angle [rad].",
    "xdev.asarray([0.0, 1.0])",
    "array([0.        , 0.84147098])",
)
sinh = unary(
    "sinh",
    "Hyperbolic sine.",
    "xdev.asarray([0.0, 1.0])",
    "array([0.        , 1.17520119])",
)
sqrt = unary(
    "sqrt",
    "Principal square root.",
    "xdev.asarray([4.0, 2.0])",
    "array([2.        , 1.41421356])",
)
tan = unary(
    "tan",
    "Tangent of an angle [rad].",
    "xdev.asarray([0.0, 1.0])",
    "array([0.        , 1.55740772])",
)
tanh = unary(
    "tanh",
    "Hyperbolic tangent.",
    "xdev.asarray([0.0, 1.0])",
    "array([0.        , 0.76159416])",
)
atan2 = binary(
    "atan2",
    "Angle of the point (x2, x1) [rad], in [-pi, pi].",
    "xdev.asarray([1.0, -1.0]), 0.0",
    "array([ 1.57079633, -1.57079633])",
)
hypot = binary(
    "hypot",
    "Length of the hypotenuse over legs x1 and x2.",
    "xdev.asarray([3.0, 5.0]), 4.0",
    "array([5.        , 6.40312424])",
)
logaddexp = binary(
    "logaddexp",
    "Logarithm of exp(x1) + exp(x2), without overflow.",
    "xdev.asarray([0.0, 1000.0]), 0.0",
    "array([6.93147181e-01, 1.00000000e+03])",
)
