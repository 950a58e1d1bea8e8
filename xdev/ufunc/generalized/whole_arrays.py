"""Assignments to whole arrays in a function of core arrays, written as loops.

For ``out[:] = (x - m) / 2`` compilers ask for new memory, which compiled loops do not
have: they cannot know that ``x`` and ``out`` have one shape, as the layout says.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.ufunc import sources
from xdev.ufunc.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

COMPARISONS = ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq
OF_ELEMENTS = np.where, np.clip  # beside ufuncs


@final
class WholeArrays(ast.NodeTransformer):
    """Rewrites ``out[:] = x`` to ``for k in range(out.shape[0]): out[k] = x[k]``.

    Parameters
    ----------
    function : callable
        The function whose source is rewritten.
    dimensions : mapping of str to tuple of str
        The core dimensions of each parameter.
    """

    def __init__(
        self, function: Callable[..., Any], dimensions: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._outside, self._dimensions = sources.outside(function), dimensions

    def __call__(self, tree: ast.FunctionDef | ast.Lambda) -> dict[str, Any]:
        """Rewrite a function; return the values of the names that it now reads."""
        nodes = [*ast.walk(tree)]
        names = {node for node in nodes if isinstance(node, ast.Name)}
        # x += y writes into the array, and binds no name anew.
        names -= {node.target for node in nodes if isinstance(node, ast.AugAssign)}
        anew = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
        self._arrays = {k: v for k, v in self._dimensions.items() if k not in anew}
        self._scope = Scope(tree, self._outside)
        self.generic_visit(tree)
        return self._scope.constants

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Leave functions inside alone, whose parameters are others."""
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Write a loop where a whole array is assigned from others."""
        target = node.targets[0]
        if not isinstance(target, ast.Subscript) or len(node.targets) > 1:
            return node
        return self._loop(node, target)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Write a loop where something is added to a whole array."""
        return self._loop(node, node.target)

    def _loop(self, node: ast.Assign | ast.AugAssign, target: ast.expr) -> Any:
        if not (own := self.whole(target)):
            return node
        each = _Element(self, own)
        value = each.of(node.value)
        if isinstance(node, ast.Assign) and not each.reads:
            return node  # a number, of which compilers fill the array
        element = each.at(target, own, ast.Store())
        loop: ast.stmt = (
            ast.Assign([element], value)
            if isinstance(node, ast.Assign)
            else ast.AugAssign(element, node.op, value)
        )
        for axis in reversed(range(len(own))):
            shape = ast.Attribute(_name(target), "shape", ast.Load())
            length = ast.Subscript(shape, ast.Constant(axis), ast.Load())
            counted = self._scope.name(target, "range_to", range)  # as spans.NAMES has
            ranged = ast.Call(counted, [length], [])
            loop = ast.For(ast.Name(each.axes[axis], ast.Store()), ranged, [loop], [])
        return [ast.copy_location(made, node) for made in (*each.before, loop)]

    def whole(self, node: ast.expr) -> tuple[str, ...]:
        """Return the dimensions of a parameter all of which is there, else none."""
        name = node
        if isinstance(node, ast.Subscript):
            name, index = node.value, node.slice
            each = index.elts if isinstance(index, ast.Tuple) else [index]
            if any(ast.unparse(one) not in {":", "..."} for one in each):
                return ()
        return self._arrays.get(name.id, ()) if isinstance(name, ast.Name) else ()

    def of_elements(self, node: ast.Call) -> bool:
        """Say whether a call gives for elements what it gives for arrays."""
        function = self._scope.static(node.func)
        known = isinstance(function, np.ufunc) or any(
            function is one for one in OF_ELEMENTS
        )
        return (known or self._scope.builtin(node.func) == "abs") and not (
            node.keywords or any(isinstance(one, ast.Starred) for one in node.args)
        )


@final
class _Element:
    """The element of an expression of whole arrays, at the indices of a loop."""

    def __init__(self, arrays: WholeArrays, dimensions: tuple[str, ...]) -> None:
        self._arrays, self._dimensions = arrays, dimensions
        self.axes = [f"xdev_axis_{k}" for k in range(len(dimensions))]
        #: What is computed before the loop, and whether an array is read in it.
        self.before: list[ast.stmt] = []
        self.reads = False

    def of(self, node: ast.expr) -> ast.expr:
        """Return the element of an expression; what is no array's stays as it is."""
        own = self._arrays.whole(node)
        if own and self._dimensions[-len(own) :] == own:  # as NumPy broadcasts
            self.reads = True
            return self.at(node, own, ast.Load())
        match node:
            case ast.BinOp(left, op, right) if not isinstance(op, ast.MatMult):
                node = ast.BinOp(self.of(left), op, self.of(right))
            case ast.UnaryOp(op, operand) if not isinstance(op, ast.Not):
                node = ast.UnaryOp(op, self.of(operand))
            case ast.Compare(left, [op], [right]) if isinstance(op, COMPARISONS):
                node = ast.Compare(self.of(left), [op], [self.of(right)])
            case ast.Call() if self._arrays.of_elements(node):
                node = ast.Call(node.func, [self.of(one) for one in node.args], [])
            case ast.Constant() | ast.Name():
                pass
            case _:
                node = self._before(node)
        return node

    def _before(self, node: ast.expr) -> ast.Name:
        """Return the name of what is computed before the loop."""
        name = f"xdev_value_{len(self.before)}"
        self.before.append(ast.Assign([ast.Name(name, ast.Store())], node))
        return ast.Name(name, ast.Load())

    def at(
        self, node: ast.expr, own: tuple[str, ...], context: ast.expr_context
    ) -> ast.Subscript:
        """Return the element of an array of these dimensions."""
        axes: list[ast.expr] = [
            ast.Name(name, ast.Load()) for name in self.axes[-len(own) :]
        ]
        index = axes[0] if len(axes) == 1 else ast.Tuple(axes, ast.Load())
        return ast.Subscript(_name(node), index, context)


def _name(node: ast.expr) -> ast.Name:
    """Return the array's name in ``x``, or in ``x[:]``."""
    name = node.value if isinstance(node, ast.Subscript) else node
    return ast.Name(ast.unparse(name), ast.Load())
