"""CuPy's operators by the engine: ``memory.bridges.install("cupy-operators")``."""

from __future__ import annotations

from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev._numpy_names import pairs
from xdev.facade import elementwise, statistical

if TYPE_CHECKING:
    from collections.abc import Callable


#: By Python's name of an operator, the standard's.
COMPARISONS = pairs("eq:equal ge:greater_equal gt:greater")
COMPARISONS |= pairs("le:less_equal lt:less ne:not_equal")
BINARY = pairs("add:add floordiv:floor_divide mod:remainder mul:multiply pow:pow")
BINARY |= pairs("sub:subtract truediv:divide lshift:bitwise_left_shift or:bitwise_or")
BINARY |= pairs("rshift:bitwise_right_shift and:bitwise_and xor:bitwise_xor")
UNARY = pairs("abs:abs invert:bitwise_invert neg:negative pos:positive")
METHODS = ("all", "any", "max", "mean", "min", "std", "sum", "var")
NUMBERS = (bool, int, float, complex)
ERRORS = (TypeError, ValueError, OverflowError)  # CuPy then answers in its words


@final
class OperatorsBridge:
    """The operators and reducing methods of ``cupy.ndarray``.

    What is not of arrays of exactly this type on one device and Python's numbers, or is
    refused by the engine, goes to what was there: CuPy's own.
    """

    def __init__(self) -> None:
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
    for form, operands_of in FORMS.items():
        for short, name in (BINARY if form else BINARY | COMPARISONS).items():
            word = f"__{form}{short}__"
            methods[word] = _binary(array, word, name, operands_of)
    for short, name in UNARY.items():
        function = getattr(elementwise, name)
        methods[f"__{short}__"] = _method(array, f"__{short}__", function)
    for name in METHODS:
        methods[name] = _method(array, name, getattr(statistical, name))
    for name, function in methods.items():  # where pickle finds them
        function.__module__ = array.__module__
        function.__qualname__ = f"{array.__qualname__}.{name}"
    return methods


#: What an operator of two computes with: as it is, reflected and in place.
FORMS: dict[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    "": lambda x, y: (x, y),
    "r": lambda x, y: (y, x),
    "i": lambda x, y: (x, y, x),
}


def _binary(
    array: type, operator: str, name: str, operands_of: Callable[..., tuple[Any, ...]]
) -> Callable[..., Any]:
    own, function = getattr(array, operator), getattr(elementwise, name)
    launch, kinds = function.launches, {array, *NUMBERS}

    @wraps(own)
    def operate(x: Any, y: Any, *modulo: Any) -> Any:
        if not modulo:  # CuPy says what pow makes of one
            operands = operands_of(x, y)
            result = launch(*operands)
            if result is not NotImplemented:
                return result
            if type(x) is array and type(y) in kinds:
                with suppress(*ERRORS):
                    return function(*operands)
        return own(x, y, *modulo)

    return operate


def _method(array: type, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    own = getattr(array, name)

    @wraps(own)
    def compute(x: Any, *axis: Any, **keywords: Any) -> Any:
        options = {k: v for k, v in keywords.items() if v is not None}
        served = not axis[1:] and options.keys() <= {"axis", "keepdims"}
        if served and type(x) is array:
            with suppress(*ERRORS):
                return function(x, *axis, **options)
        return own(x, *axis, **keywords)

    return compute
