"""The names that a function's source reads, and those of the constants put into it."""

from __future__ import annotations

import ast
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.compile.digests import reads

if TYPE_CHECKING:
    from types import CodeType


# What xdev's names mean inside functions: NumPy's functions, which compilers know.
#
# ``xdev.sin`` and ``xdev.numpy.sin`` choose a library by the array that they are
# given; of one number, in compiled code, they are ``numpy.sin``. What compilers have
# of arrays alone is written in other words.

WEAK = (int, float, complex)  # Python's numbers, in the order in which they grow
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
class Scope:
    """What names in a function's source stand for.

    Parameters
    ----------
    tree : ast.AST
        The source.
    outside : dict
        The globals and closure variables that the function names.
    constants : dict, optional
        Names that were put into it before, with their values.
    """

    def __init__(
        self,
        tree: ast.AST,
        outside: dict[str, Any],
        constants: dict[str, Any] | None = None,
    ) -> None:
        stored = (n for n in ast.walk(tree) if isinstance(n, ast.Name | ast.arg))
        local = {
            n.arg if isinstance(n, ast.arg) else n.id
            for n in stored
            if isinstance(n, ast.arg) or isinstance(n.ctx, ast.Store)
        }
        self._outside = {k: v for k, v in outside.items() if k not in local}
        self._local = local
        #: The names that were put in, with their values.
        self.constants: dict[str, Any] = {} if constants is None else constants

    def name(self, node: ast.expr, name: str, value: object) -> ast.Name:
        """Return a global name, free in the function, that stands for the value."""
        safe = "xdev_" + "".join(c if c.isalnum() else "_" for c in name)
        while self.constants.setdefault(safe, value) is not value and (
            type(self.constants[safe]) is not type(value)
            or self.constants[safe] != value
        ):
            safe += "_"
        return ast.copy_location(ast.Name(safe, ast.Load()), node)

    def builtin(self, node: ast.expr) -> str:
        """Return the name of a builtin that a node stands for, or ''."""
        own = isinstance(node, ast.Name) and node.id not in {
            *self._local,
            *self._outside,
        }
        return node.id if own and isinstance(node, ast.Name) else ""

    def static(self, node: ast.expr) -> Any:
        """Return what an outside name or a module's attribute means, else None."""
        return numpys(self.value(node))

    def value(self, node: ast.expr) -> Any:
        """Return the value of an outside name or a module's attribute, else None."""
        if isinstance(node, ast.Name):
            return self._outside.get(node.id, self.constants.get(node.id))
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if isinstance(owner, ModuleType):
                return getattr(owner, node.attr, None)
        return None

    def number(self, node: ast.expr) -> complex | None:
        """Return the Python number that the node stands for, else None."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            bare = self.number(node.operand)
            negative = isinstance(node.op, ast.USub)
            return -bare if bare is not None and negative else bare
        value: Any
        value = node.value if isinstance(node, ast.Constant) else self.static(node)
        return value if type(value) in WEAK else None
