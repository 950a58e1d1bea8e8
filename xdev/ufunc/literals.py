"""Literals inside a function are weak, as in NEP 50: ``x * 3`` keeps x's dtype.

Numba takes a literal for int64 or float64, and so computes in float64 what was meant
in float32. So the function's source is rewritten: each number that is an operand, is
assigned, returned or compared becomes a constant of the dtype that NumPy would give
it. Python numbers that a name outside the function stands for (``math.pi``, a module's
``SCALE``) count as literals.

That dtype is the inputs' result type. Where more is known of what a literal stands
beside, :mod:`xdev.ufunc.casts` has put a constant there before.
"""

from __future__ import annotations

import ast
import copy
import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast, final

import numpy as np

from xdev.compile.halves import is_half
from xdev.ufunc import sources
from xdev.ufunc.assignments import refuse_unassigned
from xdev.ufunc.casts import Plain
from xdev.ufunc.kinds import fits
from xdev.ufunc.rules import real
from xdev.ufunc.sources import Scope, inside

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.compile.typings import Level

BITWISE = (ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)
NUMBAS = -(2**63), 2**64 - 1  # the integers that Numba has
INTEGER_TOO = frozenset({"max", "min", "pow", "atan2", "hypot", "fmod", "copysign"})


class Typed(NamedTuple):
    """A function with typed literals, and the dtype that it works in."""

    function: Callable[..., Any]
    working: np.dtype[Any]


def typed(
    function: Callable[..., Any],
    working: np.dtype[Any],
    level: Level,
    replace: Callable[[object], object],
    also: Callable[[ast.FunctionDef], dict[str, Any]] | None = None,
) -> Typed:
    """Return the function with its literals typed.

    Parameters
    ----------
    function : callable
        A Python function; where its source cannot be had it is used as it is.
    working : numpy.dtype
        The inputs' result type.
    level : "all", "inexact" or "none"
        Which literals: those meant as an index may not become floats, and only
        the compiler can tell, so it is asked in this order.
    replace : callable
        Turns the value of an outside name into what compiled code uses instead.
    also : callable, optional
        Another rewriting of the source, which comes first; it returns the values of
        names that it puts in.

    Returns
    -------
    Typed
        The function keeps its name, line numbers, defaults, globals and closure.

    Raises
    ------
    TypeError
        It may read a name before it is assigned.
    """
    code = function.__code__
    outside = sources.outside(function)
    source = sources.find(code)
    if source is not None:
        refuse_unassigned(function, source.node)
    if source is None or level == "none":
        known = inside(code, outside)
        swapped = {k: v for k in outside if (v := replace(known[k])) is not outside[k]}
        return Typed(sources.rebuilt(function, code, swapped), _counted(working))
    tree = copy.deepcopy(source.node)
    tree.decorator_list, tree.args.defaults = [], []  # nothing of them is computed
    scope = Scope(tree, outside, also(tree) if also else {})
    Plain(scope).visit(tree)
    rewriter = _Rewriter(scope, working, level, replace)
    rewriter.generic_visit(tree)
    new = sources.compiled(sources.Source(tree, source.imports), code)
    return Typed(
        sources.rebuilt(function, new, scope.constants),
        _counted(working) if rewriter.counts else working,
    )


def _counted(working: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of counts: bools are counted in int64."""
    return np.dtype(np.int64) if working.kind == "b" else working


@final
class _Rewriter(ast.NodeTransformer):
    """Puts names of typed constants where literals are operands."""

    def __init__(
        self,
        scope: Scope,
        working: np.dtype[Any],
        level: Level,
        replace: Callable[[object], object],
    ) -> None:
        self._scope, self._replace = scope, replace
        self.working = np.dtype(np.float32) if is_half(working) else working
        self.integers = level == "all"
        self.counts = False  # whether an integer literal takes part in arithmetic

    def operand(self, node: ast.expr, *, compared: bool = False) -> ast.expr:
        """Return the typed constant of a literal, or the node rewritten."""
        value = self._scope.number(node)
        constant = None if value is None else self._typed(value)
        if constant is None:
            if type(value) is int and self._too_large(value):
                if compared and not NUMBAS[0] <= value <= NUMBAS[1]:
                    return self._scope.name(
                        node, "endless", math.copysign(math.inf, value)
                    )
                return node  # with its sign, for which unsigned dtypes have no place
            if isinstance(node, ast.UnaryOp):
                node.operand = self.operand(node.operand)
                return node
            if isinstance(node, ast.Tuple):
                node.elts = [self.operand(e) for e in node.elts]
                return node
            return cast("ast.expr", self.visit(node))
        self.counts |= constant.dtype.kind in "iu" and not compared
        return self._scope.name(node, f"{constant.dtype}_{value}", constant)

    def visit_BinOp(self, node: ast.BinOp) -> ast.BinOp:
        """Type both operands, but integer exponents and floats' bits."""
        if isinstance(node.op, BITWISE) and self.working.kind not in "iu":
            return cast("ast.BinOp", self.generic_visit(node))
        exponent = (
            isinstance(node.op, ast.Pow) and type(self._scope.number(node.right)) is int
        )
        node.left = self.operand(node.left)
        self.counts |= exponent
        if not exponent:
            node.right = self.operand(node.right)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.Compare:
        """Type what is compared."""
        node.left = self.operand(node.left, compared=True)
        node.comparators = [self.operand(c, compared=True) for c in node.comparators]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.IfExp:
        """Type both answers."""
        node.test = self.visit(node.test)
        node.body, node.orelse = self.operand(node.body), self.operand(node.orelse)
        return node

    def _value(self, node: Any) -> Any:
        if node.value is not None:
            node.value = self.operand(node.value)
        return node

    visit_Assign = visit_AnnAssign = visit_Return = _value  # noqa: N815 - Python's

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AugAssign:
        """Treat ``x += 1`` as ``x + 1``."""
        both = ast.BinOp(ast.Constant(None), node.op, node.value)
        node.value = self.visit_BinOp(both).right
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Type floats among the arguments; integers only where they are values."""
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name == "range" or isinstance(self._scope.static(node.func), type):
            node.args = [self._index(argument) for argument in node.args]
            return node
        node.func = self.visit(node.func)
        for k, argument in enumerate(node.args):
            index = (
                type(self._scope.number(argument)) is int and name not in INTEGER_TOO
            )
            node.args[k] = argument if index else self.operand(argument)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        """Leave the literals of indices alone."""
        node.value = self.visit(node.value)
        node.slice = self._index(node.slice)
        return node

    def _index(self, node: ast.expr) -> ast.expr:
        """Put in what compiled code uses for functions, and nothing else."""
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and isinstance(
                part.func, ast.Name | ast.Attribute
            ):
                part.func = self._replaced(part.func)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Put in what compiled code uses instead of an outside name."""
        return self._replaced(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Put in what compiled code uses instead of a module's attribute."""
        new = self._replaced(node)
        return cast("ast.expr", self.generic_visit(node)) if new is node else new

    def _replaced(self, node: ast.Name | ast.Attribute) -> ast.expr:
        new = self._replace(self._scope.static(node))
        if new is self._scope.value(node):
            return node
        return self._scope.name(node, ast.unparse(node).replace(".", "_"), new)

    def _too_large(self, value: int) -> bool:
        """Say whether an integer is none of the dtype that the inputs have."""
        return (
            self.integers
            and self.working.kind in "iu"
            and not fits(value, self.working)
        )

    def _typed(self, value: complex) -> Any:
        """Return the number in the dtype that NEP 50 gives it, None to leave it."""
        if isinstance(value, int) and not self.integers:
            return None
        weak = self.working
        if weak.kind == "c" and not isinstance(value, complex):
            weak = real(weak)
        try:
            dtype = np.result_type(weak, value)
            with np.errstate(over="ignore"):
                constant = dtype.type(value)
        except OverflowError:  # too large for the dtype: Numba's own will do
            return None
        return constant if np.isfinite(constant) or not np.isfinite(value) else None
