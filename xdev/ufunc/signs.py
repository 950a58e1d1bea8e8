"""Arithmetic of uint64 with signed integers, in float64 as NumPy has it.

Compilers take int64 for the two, in which half of uint64 is negative. So where a
function has inputs of both, its operators become calls of functions that have them in
the type that both fit in; comparisons of inputs are exact.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.compile import cpu
from xdev.ufunc.rules import WIDEST

if TYPE_CHECKING:
    from collections.abc import Callable

Dtypes = tuple[np.dtype[Any], ...]
OPERATORS = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "power",
}
COMPARISONS = {  # by less(first, second): negated, swapped
    ast.Lt: (False, False),
    ast.Gt: (False, True),
    ast.LtE: (True, True),
    ast.GtE: (True, False),
}


@final
class Signs(ast.NodeTransformer):
    """Puts calls for the operators in a function's source.

    Parameters
    ----------
    function : callable
        The function.
    inputs : tuple of numpy.dtype
        Its inputs'; empty where they are not known.
    """

    def __init__(self, function: Callable[..., Any], inputs: Dtypes = ()) -> None:
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        #: Of each input that is never assigned to: its dtype, None where not known.
        self._dtypes: dict[str, np.dtype[Any] | None] = dict.fromkeys(names)
        self._dtypes |= dict(zip(names, inputs, strict=False))
        self._used: dict[str, Any] = {}

    def __call__(self, tree: ast.FunctionDef | ast.Lambda) -> dict[str, Any]:
        """Rewrite the function's body; return what it calls, by name."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._dtypes.pop(node.id, None)
        if isinstance(tree, ast.Lambda):
            tree.body = self.visit(tree.body)
        else:
            tree.body = [self.visit(statement) for statement in tree.body]
        return self._used

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Compute with the common type of both."""
        kinds = {self._kind(node.left), self._kind(node.right)}
        left, right = self.visit(node.left), self.visit(node.right)
        node.left, node.right = self._grown(left, right), self._grown(right, left)
        name = OPERATORS.get(type(node.op))
        if name is None or kinds not in ({"i", "u"}, {"?"}):
            return node
        return ast.copy_location(self._call(name, node.left, node.right), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        """Treat ``x += y`` as ``x = x + y``."""
        if not isinstance(node.target, ast.Name):
            node.value = self.visit(node.value)
            return node
        read = ast.Name(node.target.id, ast.Load())
        both = ast.BinOp(ast.copy_location(read, node), node.op, node.value)
        value = self.visit(ast.copy_location(both, node))
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Compare inputs exactly."""
        kinds = {self._kind(one) for one in (node.left, *node.comparators)}
        if kinds != {"i", "u"}:
            return self.generic_visit(node)  # type: ignore[return-value]
        left, tests = node.left, list[ast.expr]()
        for op, right in zip(node.ops, node.comparators, strict=True):
            tests.append(self._compared(op, left, right))
            left = right
        found = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        return ast.copy_location(found, node)

    def _compared(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> ast.expr:
        if type(op) not in COMPARISONS:
            equal = self._call("equal", left, right)
            return equal if isinstance(op, ast.Eq) else _not(equal)
        negated, swapped = COMPARISONS[type(op)]
        pair = (right, left) if swapped else (left, right)
        less = self._call("less", *pair)
        return _not(less) if negated else less

    def _grown(self, node: ast.expr, other: ast.expr) -> ast.expr:
        """Return an input that is a bool beside uint64 as such."""
        if self._kind(node) == "b" and self._kind(other) == "u":
            return self._call("uint64", node)
        return node

    def _kind(self, node: ast.expr) -> str:
        """Return "i" of signed integers that are inputs or made of them, "u" of uint64.

        Of inputs whose dtypes are not known "?". Literals beside them are weak.
        """
        if isinstance(node, ast.UnaryOp):
            return self._kind(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            kinds = {
                self._kind(one)
                for one in (node.left, node.right)
                if not isinstance(one, ast.Constant)
            }
            return kinds.pop() if len(kinds) == 1 else ""
        if not isinstance(node, ast.Name) or node.id not in self._dtypes:
            return ""
        dtype = self._dtypes[node.id]
        if dtype is None:
            return "?"
        if dtype.kind == "u" and dtype != WIDEST:
            return ""
        return dtype.kind

    def _call(self, name: str, *args: ast.expr) -> ast.expr:
        own = f"xdev_{name}"
        if own not in self._used:
            self._used[own] = _functions()[name]
        call = ast.Call(ast.Name(own, ast.Load()), list(args), [])
        return ast.copy_location(call, args[0])


def _not(node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(ast.Not(), node), node)


def _either(x: Any, y: Any) -> Any:
    """Return x in the type that both fit in, since all that is returned has one type.

    It is float64 for uint64 with int64. Only LLVM finds out that y never is.
    """
    if x != x and x == x:  # noqa: PLR0124
        return y
    return x


def _less(x: Any, y: Any) -> Any:
    a, b = np.float64(x), np.float64(y)
    if a != b:
        return a < b
    return np.uint64(x) < np.uint64(y)  # neither is negative


def _equal(x: Any, y: Any) -> Any:
    a, b = np.float64(x), np.float64(y)
    return a == b and np.uint64(x) == np.uint64(y)


@cache
def _functions() -> dict[str, Any]:
    """Return what is called, by name."""
    either = cpu.device_function(_either)
    plain: dict[str, Callable[..., Any]] = {
        "add": lambda x, y: either(x, y) + either(y, x),
        "subtract": lambda x, y: either(x, y) - either(y, x),
        "multiply": lambda x, y: either(x, y) * either(y, x),
        "floor_divide": lambda x, y: either(x, y) // either(y, x),
        "remainder": lambda x, y: either(x, y) % either(y, x),
        "power": lambda x, y: either(x, y) ** either(y, x),
        "less": _less,
        "equal": _equal,
    }
    made = {name: cpu.device_function(function) for name, function in plain.items()}
    return made | {"uint64": np.uint64}
