# ruff: noqa: A001 - the standard names functions as Python does
"""The standard's elementwise functions: ufuncs of the engine. CuPy's operators."""

from __future__ import annotations

from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, cast, final

from xdev.facade import statistical
from xdev.facade.backends import PYTHON_SCALARS
from xdev.facade.cpu import REAL
from xdev.facade.definitions import StandardDefinition
from xdev.facade.dispatch import dispatch, launches, refuse, resolve_operands
from xdev.ufunc.argument_errors import misplaced, no_array
from xdev.ufunc.ufuncs import Ufunc

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Never

    from xdev.facade.backends import (
        Array,
        Binary,
        BinaryTest,
        Unary,
        UnaryReal,
        UnaryTest,
    )

#: Of each what it is, and an example: its arguments, of which the first is made an
#: array, and the array that it shows.
_TABLE = """\
abs: Absolute value; the magnitude of a complex number. | [-1.5, 2.0] -> [1.5, 2. ]
acos: Inverse cosine [rad], in [0, pi]. | [1.0, 0.0] -> [0.        , 1.57079633]
acosh: Inverse hyperbolic cosine. | [1.0, 2.0] -> [0.       , 1.3169579]
add: Sum. | [1.0, 2.0], 10 -> [11., 12.]
asin: Inverse sine [rad], in [-pi/2, pi/2]. | [0.0, 1.0] -> [0.        , 1.57079633]
asinh: Inverse hyperbolic sine. | [0.0, 1.0] -> [0.        , 0.88137359]
atan: Inverse tangent [rad], in [-pi/2, pi/2]. | [0.0, 1.0] -> [0.        , 0.78539816]
atan2: Angle of the point (x2, x1) [rad], in [-pi, pi].
    | [1.0, -1.0], 0.0 -> [ 1.57079633, -1.57079633]
atanh: Inverse hyperbolic tangent. | [0.0, 0.5] -> [0.        , 0.54930614]
bitwise_and: Bits set in both. | [12, 10], 6 -> [4, 2]
bitwise_invert: Every bit inverted; logical not of booleans. | [0, 7] -> [-1, -8]
bitwise_left_shift: Bits moved left by x2 places. | [1, 3], 4 -> [16, 48]
bitwise_or: Bits set in either. | [12, 10], 6 -> [14, 14]
bitwise_right_shift: Bits moved right by x2 places. | [16, 48], 4 -> [1, 3]
bitwise_xor: Bits set in one of the two. | [12, 10], 6 -> [10, 12]
ceil: Smallest whole number that is not less. | [-1.5, 1.5] -> [-1.,  2.]
conj: Complex conjugate. | [1 + 2j, 3 - 4j] -> [1.-2.j, 3.+4.j]
copysign: Magnitude of x1 with the sign of x2. | [1.0, -2.0], -1.0 -> [-1., -2.]
cos: Cosine of an angle [rad]. | [0.0, 1.0] -> [1.        , 0.54030231]
cosh: Hyperbolic cosine. | [0.0, 1.0] -> [1.        , 1.54308063]
divide: Quotient, a floating-point number. | [1.0, 2.0], 4 -> [0.25, 0.5 ]
equal: Whether equal. | [1, 2], 2 -> [False,  True]
exp: Exponential, e to the power of each element.
    | [0.0, 1.0] -> [1.        , 2.71828183]
expm1: Exponential minus 1, exact near 0. | [0.0, 1e-10] -> [0.e+00, 1.e-10]
floor: Largest whole number that is not greater. | [-1.5, 1.5] -> [-2.,  1.]
floor_divide: Quotient rounded towards minus infinity. | [-7, 7], 2 -> [-4,  3]
greater: Whether x1 > x2. | [1, 2, 3], 2 -> [False, False,  True]
greater_equal: Whether x1 >= x2. | [1, 2, 3], 2 -> [False,  True,  True]
hypot: Length of the hypotenuse over legs x1 and x2.
    | [3.0, 5.0], 4.0 -> [5.        , 6.40312424]
imag: Imaginary part. | [1 + 2j, 3 - 4j] -> [ 2., -4.]
isfinite: Whether neither infinite nor NaN.
    | [1.0, xdev.inf, xdev.nan] -> [ True, False, False]
isinf: Whether infinite, of either sign.
    | [1.0, xdev.inf, xdev.nan] -> [False,  True, False]
isnan: Whether not a number. | [1.0, xdev.inf, xdev.nan] -> [False, False,  True]
less: Whether x1 < x2. | [1, 2, 3], 2 -> [ True, False, False]
less_equal: Whether x1 <= x2. | [1, 2, 3], 2 -> [ True,  True, False]
log: Natural logarithm. | [1.0, 2.0] -> [0.        , 0.69314718]
log10: Logarithm to base 10. | [1.0, 1000.0] -> [0., 3.]
log1p: Natural logarithm of 1 + x, exact near 0. | [0.0, 1e-10] -> [0.e+00, 1.e-10]
log2: Logarithm to base 2. | [1.0, 8.0] -> [0., 3.]
logaddexp: Logarithm of exp(x1) + exp(x2), without overflow.
    | [0.0, 1000.0], 0.0 -> [6.93147181e-01, 1.00000000e+03]
logical_and: Logical and. | [True, False], True -> [ True, False]
logical_not: Logical not. | [True, False] -> [False,  True]
logical_or: Logical or. | [True, False], False -> [ True, False]
logical_xor: Logical exclusive or. | [True, False], True -> [False,  True]
maximum: The larger of the two; NaN if either is. | [1.0, 3.0], 2.0 -> [2., 3.]
minimum: The smaller of the two; NaN if either is. | [1.0, 3.0], 2.0 -> [1., 2.]
multiply: Product. | [1.5, 2.0], 2 -> [3., 4.]
negative: The number of opposite sign. | [1.0, -2.0] -> [-1.,  2.]
nextafter: Next number after x1 in the direction of x2.
    | [0.0, 1.0], 2.0 -> [5.e-324, 1.e+000]
not_equal: Whether not equal. | [1, 2], 2 -> [ True, False]
positive: The number itself, copied. | [1.0, -2.0] -> [ 1., -2.]
pow: x1 to the power of x2. | [2.0, 3.0], 3 -> [ 8., 27.]
real: Real part; of a NumPy array, a view. | [1 + 2j, 3 - 4j] -> [1., 3.]
reciprocal: One divided by each element. | [2.0, 4.0] -> [0.5 , 0.25]
remainder: Remainder of the division, with the sign of x2. | [-7, 7], 3 -> [2, 1]
round: Nearest whole number; halves go to the even one.
    | [0.5, 1.5, 2.6] -> [0., 2., 3.]
sign: Sign: -1, 0 or 1; x / abs(x) of a complex number.
    | [-2.5, 0.0, 3.0] -> [-1.,  0.,  1.]
signbit: Whether the sign bit is set, as in -0.0.
    | [-0.0, 0.0, -1.0] -> [ True, False,  True]
sin: Sine of an angle [rad]. | [0.0, 1.0] -> [0.        , 0.84147098]
sinh: Hyperbolic sine. | [0.0, 1.0] -> [0.        , 1.17520119]
sqrt: Principal square root. | [4.0, 2.0] -> [2.        , 1.41421356]
square: Square. | [1.5, -2.0] -> [2.25, 4.  ]
subtract: Difference. | [1.0, 2.0], 10 -> [-9., -8.]
tan: Tangent of an angle [rad]. | [0.0, 1.0] -> [0.        , 1.55740772]
tanh: Hyperbolic tangent. | [0.0, 1.0] -> [0.        , 0.76159416]
trunc: Whole number nearest to 0 of the two around. | [-1.5, 1.5] -> [-1.,  1.]
"""


def _ufuncs() -> dict[str, Ufunc]:
    """Return the ufuncs of the table."""
    ufuncs = {}
    for line in _TABLE.replace("\n    ", " ").splitlines():
        head, _, example = line.partition(" | ")
        name, _, summary = head.partition(": ")
        arguments, _, shown = example.partition(" -> ")
        function = StandardDefinition(name, summary, arguments, shown)
        identity = getattr(function.numpy, "identity", None)
        if name in ("maximum", "minimum"):
            identity = "reorderable"
        ufuncs[name] = Ufunc(function, identity=identity)
    return ufuncs


_UFUNCS = _ufuncs()
#: The docstrings' examples, where doctest finds them.
__test__ = {name: ufunc.__doc__ for name, ufunc in _UFUNCS.items()}
if not TYPE_CHECKING:  # who see all names that are bound here
    __all__ = [*_UFUNCS, "clip"]  # noqa: PLE0604 - they are strings

globals().update(_UFUNCS)
if TYPE_CHECKING:  # what type checkers are told of these
    (abs, imag, real) = cast("list[UnaryReal]", ())
    (
        acos, acosh, asin, asinh, atan, atanh, bitwise_invert, ceil, conj, cos, cosh,
        exp, expm1, floor, log, log10, log1p, log2, negative, positive, reciprocal,
        round, sign, sin, sinh, sqrt, square, tan, tanh, trunc,
    ) = cast("list[Unary]", ())  # fmt: skip
    (isfinite, isinf, isnan, logical_not, signbit) = cast("list[UnaryTest]", ())
    (
        add, atan2, bitwise_and, bitwise_left_shift, bitwise_or, bitwise_right_shift,
        bitwise_xor, copysign, divide, floor_divide, hypot, logaddexp, maximum, minimum,
        multiply, nextafter, pow, remainder, subtract,
    ) = cast("list[Binary]", ())  # fmt: skip
    (
        equal, greater, greater_equal, less, less_equal, logical_and, logical_or,
        logical_xor, not_equal,
    ) = cast("list[BinaryTest]", ())  # fmt: skip

_BOUNDS = REAL | {type(None)}


def clip(
    x: Array,
    /,
    min: Any = None,
    max: Any = None,
    out: Array | None = None,
    **rest: Never,
) -> Array:
    """Limit each element to the range from ``min`` to ``max``.

    Parameters
    ----------
    x : array
        Real numbers, any shape.
    min, max : array or number, optional
        Ends of the range, of shapes that broadcast with ``x``. Where ``x`` has
        integers, what is beyond the range of their data type means its ends, and 0.5 is
        1 as ``min`` and 0 as ``max``. None: no limit on that side.
    out : array, optional
        Where to write: an array of the result's shape, on the same device, that can
        hold its data type.

    Returns
    -------
    array
        Of ``x``'s data type; ``out`` if given. NaN stays NaN.

    Raises
    ------
    DeviceMismatchError
        The arrays are of two devices or libraries.
    ValueError, TypeError
        ``out`` has another shape or is read-only; it cannot hold the data type. A
        number that limits integers is NaN.

    Examples
    --------
    >>> import xdev
    >>> xdev.clip(xdev.asarray([-1.0, 0.5, 7.0]), 0, 1)
    array([0. , 0.5, 1. ])
    """
    if rest:
        raise misplaced(clip, (), rest)
    if out is None and type(min) in _BOUNDS and type(max) in _BOUNDS:
        if type(x) in launches:
            result = launches[type(x)]["clip"](x, min, max)
            if result is not NotImplemented:
                return result
        try:
            return dispatch("clip", x)(x, min, max)
        except (TypeError, ValueError):
            refuse("clip", x=x, min=min, max=max)
            raise
    if type(x) in PYTHON_SCALARS:  # whose data type would be the result's
        raise no_array("clip", "x", x)
    if type(out) is tuple and len(out) == 1:
        (out,) = out  # as NumPy's ufuncs take it
    arguments = {"x": x, "min": min, "max": max}
    library, like, values, _ = resolve_operands("clip", out, arguments, {})
    function: Any = library.bound("clip", like)
    if out is None:
        return function(*values)
    return library.write("clip", function, values, out)


# CuPy's operators: ``memory.bridges.install("cupy-operators")``.

_UNARY = {"abs": abs, "invert": bitwise_invert, "neg": negative, "pos": positive}
_BINARY = {
    "add": add, "and": bitwise_and, "floordiv": floor_divide,
    "lshift": bitwise_left_shift, "mod": remainder, "mul": multiply, "or": bitwise_or,
    "pow": pow, "rshift": bitwise_right_shift, "sub": subtract, "truediv": divide,
    "xor": bitwise_xor,
}  # fmt: skip
_COMPARISONS = {
    "eq": equal, "ge": greater_equal, "gt": greater, "le": less_equal, "lt": less,
    "ne": not_equal,
}  # fmt: skip
_METHODS = ("all", "any", "max", "mean", "min", "std", "sum", "var")
_ERRORS = (TypeError, ValueError, OverflowError)  # CuPy then answers in its words


@final
class OperatorsBridge:
    """The operators and reducing methods of ``cupy.ndarray``.

    What is not of arrays of exactly this type on one device and Python's numbers, or is
    refused by the engine, goes to what was there: CuPy's own.
    """

    def __init__(self) -> None:
        from xdev import _optional  # `import xdev` does not need it

        self._array: Any = _optional.cupy().ndarray
        self._set: dict[str, tuple[Any, Any]] = {}  # by name, with what was there

    def install(self) -> None:
        """Set them."""
        for name, method in _methods(self._array).items():
            self._set[name] = method, vars(self._array).get(name)
            setattr(self._array, name, method)

    def uninstall(self) -> None:
        """Put back what was there, unless somebody set another since."""
        while self._set:
            name, (method, before) = self._set.popitem()
            if vars(self._array).get(name) is method:
                delattr(self._array, name)
                if before is not None:
                    setattr(self._array, name, before)


def _methods(array: type) -> dict[str, Callable[..., Any]]:
    """Return what is set on CuPy's arrays, by name."""
    methods: dict[str, Callable[..., Any]] = {}
    for short, ufunc in _BINARY.items():
        for form in "", "r", "i":  # as it is, reflected and in place
            word = f"__{form}{short}__"
            methods[word] = _binary(array, word, ufunc, form)
    for short, ufunc in _COMPARISONS.items():
        methods[f"__{short}__"] = _binary(array, f"__{short}__", ufunc)
    unary: dict[str, Any] = {f"__{short}__": x for short, x in _UNARY.items()}
    reducing = {name: getattr(statistical, name) for name in _METHODS}
    for name, function in (unary | reducing).items():
        methods[name] = _method(array, name, function)
    for name, method in methods.items():  # where pickle finds them
        method.__module__ = array.__module__
        method.__qualname__ = f"{array.__qualname__}.{name}"
    return methods


def _binary(
    array: type, word: str, function: Any, form: str = ""
) -> Callable[..., Any]:
    own, launch = getattr(array, word), function.launches
    kinds = {array, *PYTHON_SCALARS}

    def general(x: Any, y: Any, modulo: tuple[Any, ...], *operands: Any) -> Any:
        # What pow makes of a third one is CuPy's matter.
        if not modulo and type(x) is array and type(y) in kinds:
            with suppress(*_ERRORS):
                return function(*operands)
        return own(x, y, *modulo)

    def plain(x: Any, y: Any, *modulo: Any) -> Any:
        result = NotImplemented if modulo else launch(x, y)
        return general(x, y, modulo, x, y) if result is NotImplemented else result

    def reflected(x: Any, y: Any, *modulo: Any) -> Any:
        result = NotImplemented if modulo else launch(y, x)
        return general(x, y, modulo, y, x) if result is NotImplemented else result

    def in_place(x: Any, y: Any, *modulo: Any) -> Any:
        result = NotImplemented if modulo else launch(x, y, x)
        return general(x, y, modulo, x, y, x) if result is NotImplemented else result

    return wraps(own)({"r": reflected, "i": in_place}.get(form, plain))


def _method(array: type, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    own = getattr(array, name)

    @wraps(own)
    def compute(x: Any, *axis: Any, **keywords: Any) -> Any:
        options = {k: v for k, v in keywords.items() if v is not None}
        served = not axis[1:] and options.keys() <= {"axis", "keepdims"}
        if served and type(x) is array:
            with suppress(*_ERRORS):
                return function(x, *axis, **options)
        return own(x, *axis, **keywords)

    return compute
