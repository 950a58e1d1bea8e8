"""What is known of an expression's value, and what NumPy makes of such values.

A kind is a NumPy dtype; a Python number, of which the value is known; ``int``,
``float`` or ``complex``, a Python number of any value; a tuple of kinds; or None: not
known.
Values computed in float32 though they are stored in 16 bits are float32.
"""

from __future__ import annotations

import ast
import math
import operator
from contextlib import suppress
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.compile.formulas import Dtypes, is_half
from xdev.ufunc.dtypes import WEAK

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = Any
Kinds = tuple[Kind, ...]
#: The kinds in which a call takes its arguments, None: as they are; and its result's.
Called = tuple[Kinds | None, Kind]
BOOL, FLOAT32 = np.dtype(np.bool_), np.dtype(np.float32)
INT64, UNSIGNED = np.dtype(np.int64), np.dtype(np.uint64)
# The operators in a source, NumPy's and Python's functions of them.
NAMES = (
    "Add add add; Sub subtract sub; Mult multiply mul; Div true_divide truediv; "
    "FloorDiv floor_divide floordiv; Mod remainder mod; Pow power pow; "
    "LShift left_shift lshift; RShift right_shift rshift; BitAnd bitwise_and and_; "
    "BitOr bitwise_or or_; BitXor bitwise_xor xor; "
    "USub negative neg; UAdd positive pos; Invert invert invert; "
    "Lt less lt; LtE less_equal le; Gt greater gt; GtE greater_equal ge; "
    "Eq equal eq; NotEq not_equal ne"
)
OPERATORS: dict[type, tuple[np.ufunc, Any]] = {
    getattr(ast, node): (getattr(np, numpys), getattr(operator, python))
    for node, numpys, python in map(str.split, NAMES.split(";"))
}
SUMS = np.add, np.multiply, np.absolute  # of counts they are counts
MOST = 2**14  # bits of an integer that is computed here


def strong(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype that values of a dtype are computed in."""
    return FLOAT32 if is_half(dtype) else dtype


def real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the real part of values of a dtype."""
    part: np.dtype[Any] = dtype.type(0).real.dtype
    return part


def is_dtype(kind: Kind, kinds: str = "biufc") -> bool:
    """Say whether a kind is a dtype, of these kinds of NumPy's."""
    return isinstance(kind, np.dtype) and kind.kind in kinds


def is_number(kind: Kind) -> bool:
    """Say whether a kind is a Python number whose value is known."""
    return type(kind) in WEAK


class Count(int):
    """The kind of what operators make of bools alone: Python's integers, and weak."""


def is_count(kind: Kind) -> bool:
    """Say whether a kind is of bools, or of what operators make of bools alone."""
    return kind is Count or same(kind, BOOL)


def weak(kind: Kind) -> type | None:
    """Return the class of a Python number, None of all else."""
    if kind is Count:
        return int
    number = kind if isinstance(kind, type) else type(kind)
    return number if number in WEAK else None


def native(kind: Kind) -> Kind:
    """Return the dtype that compilers have for a Python number; other kinds stay."""
    return np.dtype(weak(kind)) if weak(kind) else kind


def fits(value: int, dtype: np.dtype[Any]) -> bool:
    """Say whether an integer dtype has a value.

    Examples
    --------
    >>> fits(-1, np.dtype("uint8")), fits(255, np.dtype("uint8"))
    (False, True)
    """
    info = np.iinfo(dtype)
    return int(info.min) <= value <= int(info.max)


def same(one: Kind, other: Kind) -> bool:
    """Say whether two kinds are one; NumPy takes ``int`` for a dtype, and 0 is 0.0."""
    return repr(one) == repr(other)


def joined(one: Kind, other: Kind) -> Kind:
    """Return the kind of what is one or the other, as ``numpy.where`` has it.

    Examples
    --------
    >>> joined(0, np.dtype("uint8")), joined(-1, np.dtype("uint8")), joined(1, 2)
    (dtype('uint8'), None, <class 'int'>)
    """
    if is_count(one) and is_count(other):
        return together(one, other)
    if any(same(kind, BOOL) for kind in (one, other)) and weak(one) != weak(other):
        return INT64 if int in (weak(one), weak(other)) else together(one, other)
    both = together(one, other, part=joined)
    for number, kind in ((one, other), (other, one)):
        if type(number) is int and is_dtype(kind, "iu") and not fits(number, kind):
            return None
    integers = is_dtype(one, "iu") or is_dtype(other, "iu")
    changed = is_dtype(both, "fc") and not (is_dtype(one) and is_dtype(other))
    return None if (integers and changed) or mixed(one, other) else both


def together(one: Kind, other: Kind, *, part: Any = None) -> Kind:
    """Return the kind of a result that is one or the other: it has one dtype.

    ``part`` does the same with the items of tuples.

    Examples
    --------
    >>> together(-1, 2), together(-1, np.dtype("uint8")), together(0.5, np.dtype("i2"))
    (<class 'int'>, dtype('uint8'), dtype('float64'))
    """
    if same(one, other):
        return one
    if is_count(one) and is_count(other):
        return Count
    tuples = [isinstance(kind, tuple) for kind in (one, other)]
    if all(tuples) and len(one) == len(other):
        return tuple(map(part or together, one, other))
    if one is None or other is None or any(tuples):
        return None
    parts = [int if same(kind, BOOL) else weak(kind) or kind for kind in (one, other)]
    if not any(map(is_dtype, parts)):
        return max(parts, key=WEAK.index)
    return np.result_type(*(part if is_dtype(part) else part(0) for part in parts))


def part(kind: Kind, index: Any = None) -> Kind:
    """Return the kind of a tuple's item, or of any where the index is no number."""
    if not isinstance(kind, tuple) or not kind:
        return None
    if type(index) is int and -len(kind) <= index < len(kind):
        return kind[index]
    of_all = reduce(joined, kind)
    return weak(of_all) or of_all


def mixed(*kinds: Kind) -> bool:
    """Say whether uint64 and signed integers are among kinds: they have no dtype."""
    signed = any(is_dtype(kind, "i") for kind in kinds)
    return signed and any(same(kind, UNSIGNED) for kind in kinds)


def exact_alone(*kinds: Kind) -> bool:
    """Say whether kinds are of integers that no common dtype compares exactly."""
    return mixed(*kinds) and all(is_dtype(kind, "iu") for kind in kinds)


def operated(ufunc: np.ufunc, *kinds: Kind) -> Kind:
    """Return the kind of an operator's result, of one operand or two.

    Bools count as Python's do, as integers that are weak; but beside a Python integer
    they are int64, as NumPy's are.

    Examples
    --------
    >>> operated(np.add, np.dtype("uint8"), np.dtype("int8")), operated(np.add, 1, 2.5)
    (dtype('int16'), <class 'float'>)
    """
    if any(kind is None or isinstance(kind, tuple) for kind in kinds):
        return None
    if all(same(kind, BOOL) for kind in kinds) and ufunc.__name__.startswith("bitwise"):
        return BOOL
    if not any(is_dtype(kind, "iufc") for kind in kinds):
        grown = [int if is_dtype(kind) else weak(kind) for kind in kinds]
        if ufunc is np.true_divide:
            grown.append(float)
        largest = max(grown, key=WEAK.index)
        beside = any(map(is_dtype, kinds)) and any(map(weak, kinds))
        if largest is not int or ufunc is np.maximum:
            return largest
        counts = is_count if ufunc in SUMS else partial(same, BOOL)
        return Count if all(map(counts, kinds)) else INT64 if beside else int
    return _resolved(ufunc, *(weak(kind) or kind for kind in kinds))[-1]


def operation(op: ast.operator | ast.unaryop, *kinds: Kind) -> Kind:
    """Return the kind of an operator's result, of numbers their result.

    Examples
    --------
    >>> operation(ast.Pow(), 10, -1), operation(ast.Div(), np.dtype("int8"), 2)
    (0.1, dtype('float64'))
    >>> operation(ast.USub(), 3), operation(ast.Invert(), np.dtype("uint8"))
    (-3, dtype('uint8'))
    """
    bits = isinstance(op, ast.Invert) and same(kinds[0], BOOL)
    if isinstance(op, ast.Not) or bits:
        return BOOL
    if type(op) not in OPERATORS:
        return None
    ufunc, python = OPERATORS[type(op)]
    large = (  # it would take Python for ever
        isinstance(op, ast.Pow | ast.LShift)
        and all(type(kind) is int for kind in kinds)
        and kinds[0].bit_length() * kinds[1] > MOST
    )
    if all(map(is_number, kinds)) and not large:
        with suppress(ArithmeticError, TypeError, ValueError):
            return python(*kinds)
    return operated(ufunc, *kinds)


@lru_cache(maxsize=512)
def _resolved(ufunc: np.ufunc, *kinds: Any) -> tuple[Any, ...]:
    """Return the dtypes of operands and result; None where NumPy has no operator."""
    try:
        return ufunc.resolve_dtypes((*kinds, None))
    except TypeError:
        return (None,)


# What calls, and values from outside, are known to be.

# Of a number the number itself, or nothing that is meant.
REDUCTIONS = [
    getattr(np, nan + name)
    for name in ("sum", "prod", "mean", "std", "var", "max", "min", "median")
    for nan in ("", "nan")
] + [np.any, np.all, np.ptp, np.average, np.cumsum, np.cumprod, np.argmax, np.argmin]
EXTREMES = frozenset({"max", "min"})
CASTS: dict[str, Kind] = dict.fromkeys(("int", "len", "round"), int)
CASTS |= {"bool": BOOL, "float": float, "complex": complex}


def kind_of(value: object) -> Kind:
    """Return the kind of an outside value."""
    if is_number(value):
        return value
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, np.generic):
        return _dtype(value.dtype)
    return tuple(map(kind_of, value)) if type(value) is tuple else None


def reduces_number(name: str, function: object, kinds: Kinds) -> bool:
    """Say whether a call makes one number of one number, where an array is meant."""
    of_number = bool(kinds) and (is_dtype(kinds[0]) or weak(kinds[0]) is not None)
    extreme = name in EXTREMES and len(kinds) == 1
    return of_number and (extreme or any(function is each for each in REDUCTIONS))


def of_call(  # noqa: PLR0911 - one for each function
    name: str, function: Any, kinds: Kinds
) -> Called:
    """Return what a builtin of a name, or else a function, takes and gives."""
    if name in CASTS and (name, len(kinds)) != ("round", 2):
        whole = name in ("float", "complex")  # which compilers lack for bools
        taken = (INT64 if whole and same(kind, BOOL) else kind for kind in kinds)
        return tuple(taken), CASTS[name]
    if name in EXTREMES and kinds:
        return _extreme(kinds)
    if name == "divmod" and len(kinds) == 2:  # noqa: PLR2004 - the two divided
        both = operation(ast.FloorDiv(), *kinds), operation(ast.Mod(), *kinds)
        return (both[0],) * 2, both
    if name == "abs":
        return kinds, operated(np.absolute, *kinds)
    if isinstance(function, type) and issubclass(function, np.generic):
        return None, _dtype(np.dtype(function))
    if getattr(function, "__module__", "") == "math":
        return _mathematical(function, kinds)
    return _of_ufunc(function, kinds)


def _of_ufunc(function: Any, kinds: Kinds) -> Called:
    """Return what one of NumPy's ufuncs takes and gives.

    None where compilers have other dtypes: where NumPy has float16.
    """
    if not isinstance(function, np.ufunc):
        return None, None
    resolvable = all(is_dtype(kind) or weak(kind) for kind in kinds)
    any_strong = any(map(is_dtype, kinds))
    one_result = (function.nin, function.nout) == (len(kinds), 1)
    if not (resolvable and any_strong and one_result):
        return None, None
    dtypes = _resolved(function, *(weak(kind) or kind for kind in kinds))
    half = any(dtype is None or dtype.char == "e" for dtype in dtypes)
    return (None, None) if half else (dtypes[:-1], dtypes[-1])


def _dtype(dtype: np.dtype[Any]) -> Kind:
    return dtype if is_dtype(dtype) and dtype.char not in "egG" else None


def _extreme(kinds: Kinds) -> Called:
    """Return what the largest, or smallest, of several takes and is.

    Python's integers that are no literals are compared in 64 bits, as far as those of
    the others are signed.
    """
    kind = None if mixed(*kinds) else reduce(together, kinds, kinds[0])
    if kind is None or isinstance(kind, tuple):
        return None, None
    python = is_dtype(kind, "iu") and any(each in (int, Count) for each in kinds)
    taken = INT64 if python and kind != UNSIGNED else kind
    return (taken,) * len(kinds), kind if kind is Count else weak(kind) or kind


def _mathematical(function: Callable[..., Any], kinds: Kinds) -> Called:
    """Return what a function of :mod:`math` takes and gives."""
    if function is math.gcd and all(is_dtype(k, "iu") or weak(k) is int for k in kinds):
        common = reduce(partial(operated, np.maximum), kinds)
        return (common,) * len(kinds), common
    try:
        result = type(function(*[1.0] * len(kinds)))
    except TypeError:  # it is for integers
        return None, None
    except ValueError:  # there is none of 1
        result = float
    if result is not float:
        return kinds, CASTS.get(result.__name__)
    if len(kinds) == 1 and is_dtype(kinds[0], "biu"):
        return kinds, np.dtype(np.float64)
    dtypes = {kind for kind in kinds if not weak(kind)}
    if not dtypes:
        return kinds, float
    common, *others = dtypes
    alike = not others and is_dtype(common, "f")
    return ((common,) * len(kinds), common) if alike else (None, None)


# Result dtypes: the inputs' result type, save where the function's kind is another.
#
# Python numbers are int64, float64 and complex128; what is cast inside stays so wide.


def result_dtype(kind: np.dtype[Any], working: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a result that NumPy gives a dtype.

    It is the inputs' result type, unless a cast inside gives what that does not have.

    Examples
    --------
    >>> result_dtype(np.dtype("int64"), np.dtype("uint8"))
    dtype('int64')
    >>> result_dtype(np.dtype("uint8"), np.dtype("int32"))
    dtype('int32')
    """
    dtype = _of_result(kind, working)
    if is_half(dtype):  # computed in float32
        return dtype if kind == np.float32 else kind
    return dtype if np.can_cast(kind, dtype) else kind


def _of_result(inferred: np.dtype[Any], working: np.dtype[Any]) -> np.dtype[Any]:
    """Return one result's dtype; the table is found kind by working kind."""
    if inferred == BOOL:
        return BOOL
    if inferred.kind == "c":
        return np.result_type(working, 1j)
    if working.kind == "c" and inferred.kind == "f":
        return real(working)
    if inferred.kind == "f" and working.kind not in "fV":  # true division, math.sin
        return inferred
    if inferred.kind in "iu" and working.kind not in "iub":  # counts, int(x)
        return inferred
    return working


# By what rules a function is typed: those of NumPy, or a signature's.


@final
class Rules:
    """How a function's integers meet, by its inputs, and a signature's outputs.

    ``working`` stands instead of the inputs' result type. ``bounded`` says whether
    integers have NumPy's dtypes, into which literals must fit: a signature means
    Numba's. Where those would give other numbers, it ``needs_source``. ``words`` are
    what a key on disk has of the rules, beside the inputs.
    """

    def __init__(
        self,
        inputs: Dtypes,
        outputs: Dtypes = (),
        *,
        working: np.dtype[Any] | None = None,
        bounded: bool | None = None,
    ) -> None:
        self.inputs = inputs
        self.working = np.result_type(*inputs) if working is None else working
        self.bounded = not outputs if bounded is None else bounded
        # Uint64 and signed integers have no common dtype. Integers among a signature's
        # results say that it means to compute in integers, as Numba does.
        signed = any(dtype.kind in "ib" for dtype in inputs)
        meant = any(dtype.kind in "iu" for dtype in outputs)
        mixed = UNSIGNED in inputs and signed and not meant
        self.words = mixed, self.bounded
        whole = {dtype for dtype in inputs if dtype.kind in "iu"}
        self.needs_source = any(self.words) and bool(
            inputs and (self.working.kind == "b" or whole - {INT64})
        )

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of the inputs.

        Where a signature means compilers' integers these are int64, of unsigned ones
        nothing is known.
        """
        mixed, bounded = self.words

        def kind(dtype: np.dtype[Any]) -> Kind:
            if bounded or not is_dtype(dtype, "iu"):
                return strong(dtype)
            if is_dtype(dtype, "u"):
                return dtype if mixed and dtype == UNSIGNED else None
            return INT64

        return [kind(dtype) for dtype in self.inputs]

    def compiled(self, kind: Kind, *, keeps_weak: bool = False) -> Kind:
        """Return the kind in which compiled code returns a result.

        With ``keeps_weak`` it is what a function that calls this one gets.
        """
        if isinstance(kind, tuple):
            return tuple(self.compiled(each, keeps_weak=keeps_weak) for each in kind)
        if kind is None or weak(kind):
            return weak(kind) if keeps_weak else native(kind)
        return strong(result_dtype(kind, self.working))

    def outputs(self, kinds: Kind, inferred: Dtypes) -> Dtypes:
        """Return the dtypes of a function's results.

        ``kinds`` are what the source tells, ``inferred`` what the compiler infers.
        """
        if not isinstance(kinds, tuple):
            kinds = (kinds,) * len(inferred)
        bools = self.working.kind == "b"

        def dtype(kind: Kind, own: np.dtype[Any]) -> np.dtype[Any]:
            if kind is None:
                return _of_result(own, INT64 if bools else self.working)
            if bools and kind is Count:  # one of bools, as NumPy's sum
                return BOOL
            return native(kind) if weak(kind) else result_dtype(kind, self.working)

        return tuple(map(dtype, kinds, inferred))
