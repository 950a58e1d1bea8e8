"""What xdev's names mean inside functions: NumPy's functions, which compilers know.

``xdev.sin`` and ``xdev.numpy.sin`` choose a library by the array that they are given;
of one number, in compiled code, they are ``numpy.sin``. What compilers have of arrays
alone is written in other words.
"""

from __future__ import annotations

import ast
import math
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.compile.digests import reads

if TYPE_CHECKING:
    from types import CodeType

    from xdev.ufunc.scope import Scope

BOUNDS = ("min", "max")
FACADE = "xdev.facade"  # where the standard's names have theirs; a room above
NAMES = "xdev.numpy.names"  # and NumPy's


def numpys(value: Any) -> Any:
    """Return NumPy's function of a value's name where it is xdev's, else the value.

    Examples
    --------
    >>> import xdev
    >>> numpys(xdev.sin), numpys(len)
    (<ufunc 'sin'>, <built-in function len>)
    """
    name = getattr(value, "__name__", None)
    if type(name) is str and vars(sys.modules[FACADE]).get(name) is value:
        return getattr(np, name, value)
    if getattr(value, "__module__", None) == NAMES:
        found = getattr(value, "__wrapped__", None)
        # What `functools.wraps` such a function has its name and module as well.
        if found is not None and getattr(np, str(name), None) is found:
            return found
    return value


def inside(code: CodeType, outside: dict[str, Any]) -> dict[str, Any]:
    """Return a function's outside values as compiled code reads them.

    Modules whose functions are xdev's become ones with NumPy's.

    Parameters
    ----------
    code : code
        The function's, whose source is not known.
    outside : dict
        The globals and closure variables that it names.
    """
    found = {name: numpys(value) for name, value in outside.items()}
    for name, _, attributes in reads(code):
        owner = found.get(name)
        if isinstance(owner, ModuleType) and attributes:
            found[name] = _with(owner, *attributes)
    return found


def _with(module: ModuleType, name: str, *rest: str) -> ModuleType:
    """Return a module, another where what stands under a name is not NumPy's."""
    own = getattr(module, name, None)
    value = _with(own, *rest) if rest and isinstance(own, ModuleType) else numpys(own)
    if value is own:
        return module
    made = ModuleType(module.__name__)
    vars(made).update(vars(module) | {name: value})
    return made


@final
class OfNumbers(ast.NodeTransformer):
    """Writes NumPy's ``where``, and its like, in words that compilers have for numbers.

    Parameters
    ----------
    scope : Scope
        What the names in the source stand for.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Write a condition, or the larger and the smaller of two."""
        self.generic_visit(node)
        function = self._scope.static(node.func)
        if function is math.ldexp:  # compilers cut its exponent off at 32 bits
            node.func = self._scope.name(node.func, np.ldexp.__name__, np.ldexp)
        if function is np.where and len(node.args) == 3 and not node.keywords:  # noqa: PLR2004
            return ast.copy_location(ast.IfExp(*node.args), node)
        if function is not np.clip or not node.args:
            return node
        found, *places = node.args
        bounds = dict(zip(BOUNDS, places, strict=False))
        bounds |= {word.arg or "": word.value for word in node.keywords}
        if not bounds.keys() <= {*BOUNDS}:
            return node
        for name, of_two in zip(BOUNDS, (np.maximum, np.minimum), strict=True):
            bound = bounds.get(name, ast.Constant(None))
            if not (isinstance(bound, ast.Constant) and bound.value is None):
                called = self._scope.name(node, of_two.__name__, of_two)
                found = ast.copy_location(ast.Call(called, [found, bound], []), node)
        return found
