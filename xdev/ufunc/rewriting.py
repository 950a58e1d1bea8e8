"""A function's source in other words: those that compilers have, or checked ones.

Each rewriter changes the tree of a function, and puts values into its scope.
"""

from __future__ import annotations

import ast
import math
import operator
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import atomic
from xdev.compile.grid import checked
from xdev.ufunc.kinds import OPERATORS
from xdev.ufunc.sources import is_plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xdev.ufunc.sources import FunctionScope

# Words that compilers have.

BOUNDS = ("min", "max")
BINARY: dict[Any, Any] = {
    function: kind
    for kind, (_, function) in OPERATORS.items()
    if issubclass(kind, ast.operator)
}
COMPARISONS: dict[Any, type[ast.cmpop]] = {
    function: kind
    for kind, functions in OPERATORS.items()
    if issubclass(kind, ast.cmpop)
    for function in functions
}


@final
class Plain(ast.NodeTransformer):
    """Writes NumPy's ``where``, and its like, in words that compilers have for numbers.

    With ``operators`` so are ``x += y``, functions that Python has operators for, and
    arguments of plain functions that go by name.
    """

    def __init__(self, scope: FunctionScope, *, operators: bool = False) -> None:
        self._scope, self._operators = scope, operators

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Write a condition, a bound, an operator, or arguments in their places."""
        self.generic_visit(node)
        function = self._scope.static(node.func)
        if function is math.ldexp:  # compilers cut its exponent off at 32 bits
            node.func = self._scope.name(node.func, np.ldexp.__name__, np.ldexp)
        if function is np.clip:
            return self._clipped(node)
        new: ast.expr = node
        if function is np.where and len(node.args) == 3 and not node.keywords:  # noqa: PLR2004
            new = ast.IfExp(*node.args)
        elif self._operators and is_plain(function):
            return self._by_place(node, function)
        elif self._operators:
            new = self._operation(node, function)
        return ast.copy_location(new, node)

    def _operation(self, node: ast.Call, function: Any) -> ast.expr:
        """Write an operator in the place of a function."""
        if self._scope.builtin(node.func) == "pow":
            function = operator.pow
        if isinstance(function, np.ufunc | BuiltinFunctionType) and not node.keywords:
            match node.args:
                case [left, right] if function in COMPARISONS:
                    return ast.Compare(left, [COMPARISONS[function]()], [right])
                case [left, right] if function in BINARY:
                    return ast.BinOp(left, BINARY[function](), right)
        return node

    def _clipped(self, node: ast.Call) -> ast.expr:
        """Write the larger and the smaller of two."""
        bounds = dict(zip(BOUNDS, node.args[1:], strict=False))
        bounds |= {word.arg or "": word.value for word in node.keywords}
        if not node.args or not bounds.keys() <= {*BOUNDS}:
            return node
        clipped = node.args[0]
        for name, of_two in zip(BOUNDS, (np.maximum, np.minimum), strict=True):
            bound = bounds.get(name, ast.Constant(None))
            if not (isinstance(bound, ast.Constant) and bound.value is None):
                called = self._scope.name(node, of_two.__name__, of_two)
                clipped = ast.copy_location(
                    ast.Call(called, [clipped, bound], []), node
                )
        return clipped

    def _by_place(self, node: ast.Call, function: FunctionType) -> ast.Call:
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        values = function.__defaults__ or ()
        defaults = dict(zip(names[len(names) - len(values) :], values, strict=True))
        words = {word.arg: word.value for word in node.keywords}
        args = list(node.args)
        for name in names[len(args) :]:
            if not words or (name not in words and name not in defaults):
                break
            default = self._scope.name(node, name, defaults.get(name))
            args.append(words.pop(name, default))
        if words or any(isinstance(each, ast.Starred) for each in args):
            return node  # Python would refuse it, or finds the places when it runs
        return ast.copy_location(ast.Call(node.func, args, []), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """Write ``x = 0`` for ``x: int = 0``."""
        self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        """Write what is assigned to a name."""
        self.generic_visit(node)
        if not (self._operators and isinstance(node.target, ast.Name)):
            return node
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        both = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        return ast.copy_location(ast.Assign([node.target], both), node)


# ``XDEV_DEBUG=1``: every access to an argument is checked, and a wrong one named.

REPORT = "xdev_report"
UPDATES = (atomic.add, atomic.max, atomic.min, atomic.cas)


@final
class Checks(ast.NodeTransformer):
    """Rewrites ``x[i]`` to ``x[xdev_checked(i, x.shape, 0, 0, xdev_report)]``.

    ``arrays`` has the places of the arguments that are arrays. The source gets a
    parameter more.
    """

    def __init__(
        self, tree: ast.FunctionDef, scope: FunctionScope, arrays: dict[str, int]
    ) -> None:
        self._scope, self._arrays = scope, arrays
        tree.args.args.append(ast.arg(REPORT))

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        """Follow an argument to its other name."""
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in self._arrays:
            names = [each.id for each in node.targets if isinstance(each, ast.Name)]
            self._arrays |= dict.fromkeys(names, self._arrays[node.value.id])
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        """Check the index into an argument."""
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in self._arrays:
            node.slice = self._index(node.slice, node.value.id)
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Check the index of an atomic update of an argument."""
        self.generic_visit(node)
        if self._scope.value(node.func) in UPDATES and len(node.args) > 1:
            array, index = node.args[:2]
            if isinstance(array, ast.Name) and array.id in self._arrays:
                node.args[1] = self._index(index, array.id)
        return node

    def _index(self, index: ast.expr, name: str) -> ast.expr:
        if isinstance(index, ast.Slice):
            return index
        if isinstance(index, ast.Tuple) and any(
            isinstance(part, ast.Slice) for part in index.elts
        ):
            # A slice can be written in brackets alone: the other axes one by one.
            parts = [
                part if isinstance(part, ast.Slice) else self._checked(part, name, axis)
                for axis, part in enumerate(index.elts)
            ]
            return ast.copy_location(ast.Tuple(parts, ast.Load()), index)
        return self._checked(index, name)

    def _checked(self, index: ast.expr, name: str, axis: int = 0) -> ast.expr:
        """Return the call that checks an index, which begins at an axis."""
        load = ast.Load()
        shape: ast.expr = ast.Attribute(ast.Name(name, load), "shape", load)
        if axis:
            shape = ast.Subscript(shape, ast.Slice(ast.Constant(axis)), load)
        numbers = ast.Constant(self._arrays[name]), ast.Constant(axis)
        arguments = [index, shape, *numbers, ast.Name(REPORT, load)]
        check = self._scope.name(index, "checked", checked)
        return ast.copy_location(ast.Call(check, arguments, []), index)


# Assignments to whole arrays in a function of core arrays, written as loops.
#
# For ``out[:] = (x - m) / 2`` compilers ask for new memory, which compiled loops do
# not have: they cannot know that ``x`` and ``out`` have one shape, as the layout
# says.

OF_NUMBERS = ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq  # comparisons
OF_ELEMENTS = np.where, np.clip  # beside ufuncs


@final
class WholeArrays(ast.NodeTransformer):
    """Rewrites ``out[:] = x`` to ``for k in range(out.shape[0]): out[k] = x[k]``.

    ``dimensions`` has each parameter's core dimensions. Visit the parts of ``tree``.
    """

    def __init__(
        self,
        tree: ast.FunctionDef,
        scope: FunctionScope,
        dimensions: Mapping[str, tuple[str, ...]],
    ) -> None:
        nodes = [*ast.walk(tree)]
        names = {node for node in nodes if isinstance(node, ast.Name)}
        # x += y writes into the array, and binds no name anew.
        names -= {node.target for node in nodes if isinstance(node, ast.AugAssign)}
        anew = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
        self._arrays = {k: v for k, v in dimensions.items() if k not in anew}
        self._scope = scope

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
            counted = self._scope.name(target, "range", range)
            ranged = ast.Call(counted, [length], [])
            loop = ast.For(ast.Name(each.axes[axis], ast.Store()), ranged, [loop], [])
        return [
            ast.copy_location(statement, node) for statement in (*each.before, loop)
        ]

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
        elementwise = isinstance(function, np.ufunc) or any(
            function is one for one in OF_ELEMENTS
        )
        return (elementwise or self._scope.builtin(node.func) == "abs") and not (
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
            case ast.Compare(left, [op], [right]) if isinstance(op, OF_NUMBERS):
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
