"""A function's source in other words: those that compilers have, or checked ones.

Each rewriter changes the tree of a function, and puts values into its scope.
"""

from __future__ import annotations

import ast
import copy
import inspect
import math
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np

from xdev import atomic
from xdev.compile.grid import checked
from xdev.ufunc.kinds import OPERATORS
from xdev.ufunc.sources import is_plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xdev.ufunc.sources import FunctionScope

# Words that compilers have.

#: The operators that stand for functions of two: NumPy's comparisons, all of Python's.
AS_OPERATORS: dict[Any, Any] = {
    function: operator
    for operator, functions in OPERATORS.items()
    if not issubclass(operator, ast.unaryop)
    for function in functions[0 if issubclass(operator, ast.cmpop) else 1 :]
} | {pow: ast.Pow}


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
        if self._scope.builtin(node.func) == "pow":
            function = pow
        new: ast.expr = node
        if function is math.ldexp:  # compilers cut its exponent off at 32 bits
            node.func = self._scope.name(node.func, np.ldexp.__name__, np.ldexp)
        elif function is np.clip:
            new = self._clipped(node)
        elif function is np.where and len(node.args) == 3 and not node.keywords:  # noqa: PLR2004
            new = ast.IfExp(*node.args)
        elif self._operators and is_plain(function):
            new = self._by_place(node, function)
        elif self._operators and not node.keywords:
            new = self._operation(node, function)
        return ast.copy_location(new, node)

    def _operation(self, node: ast.Call, function: Any) -> ast.expr:
        """Write an operator in the place of a function."""
        known = isinstance(function, np.ufunc | BuiltinFunctionType)
        operator = AS_OPERATORS.get(function) if known else None
        if operator is None or len(node.args) != 2:  # noqa: PLR2004 - its operands
            return node
        left, right = node.args
        if issubclass(operator, ast.cmpop):
            return ast.Compare(left, [operator()], [right])
        return ast.BinOp(left, operator(), right)

    def _clipped(self, node: ast.Call) -> ast.expr:
        """Write the larger and the smaller of two."""
        bounds = dict(zip(("min", "max"), node.args[1:], strict=False))
        bounds |= {word.arg or "": word.value for word in node.keywords}
        if not node.args or not bounds.keys() <= {"min", "max"}:
            return node
        clipped = node.args[0]
        for name, of_two in ("min", np.maximum), ("max", np.minimum):
            bound = bounds.get(name, ast.Constant(None))
            if not (isinstance(bound, ast.Constant) and bound.value is None):
                called = self._scope.name(node, of_two.__name__, of_two)
                clipped = ast.copy_location(
                    ast.Call(called, [clipped, bound], []), node
                )
        return clipped

    def _by_place(self, node: ast.Call, function: FunctionType) -> ast.Call:
        """Write each argument, or a default, in its parameter's place."""
        words = {word.arg or "**": word.value for word in node.keywords}
        starred = any(isinstance(each, ast.Starred) for each in node.args)
        if not words or "**" in words or starred:
            return node  # in their places, or Python finds these when it runs
        try:
            bound = inspect.signature(function).bind(*node.args, **words)
        except TypeError:  # Python would refuse it
            return node
        bound.apply_defaults()
        args = [
            value
            if isinstance(value, ast.expr)
            else self._scope.name(node, name, value)
            for name, value in bound.arguments.items()
        ]
        return ast.Call(node.func, args, [])

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

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        """Check the index into an argument."""
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in self._arrays:
            node.slice = self._checked(node.slice, node.value.id)
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Check the index of an atomic update of an argument."""
        self.generic_visit(node)
        if self._scope.value(node.func) in UPDATES and len(node.args) > 1:
            array, index = node.args[:2]
            if isinstance(array, ast.Name) and array.id in self._arrays:
                node.args[1] = self._checked(index, array.id)
        return node

    def _checked(self, index: ast.expr, name: str) -> ast.expr:
        """Return the call that checks an index; one with slices stays as it is."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if any(isinstance(part, ast.Slice) for part in parts):
            return index
        check = self._scope.name(index, "checked", checked)
        text = f"{check.id}(0, {name}.shape, {self._arrays[name]}, 0, {REPORT})"
        call = cast("ast.Call", _parsed(text, index)[0].value)
        call.args[0] = index
        return call


def _parsed(text: str, like: ast.AST) -> list[Any]:
    """Return the statements of a text, all of whose parts stand where a node does."""
    tree = ast.parse(text)
    for each in ast.walk(tree):
        ast.copy_location(each, like)
    return tree.body


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
        several = len(node.targets) > 1
        if several or not isinstance(node.targets[0], ast.Subscript):
            return node
        return self._loop(node, node.targets[0])

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Write a loop where something is added to a whole array."""
        return self._loop(node, node.target)

    def _loop(self, node: Any, target: ast.expr) -> Any:
        name, own = self.whole(target)
        if not own:
            return node
        each = _Element(self, own)
        value = each.visit(copy.deepcopy(node.value))
        if isinstance(node, ast.Assign) and not each.reads:
            return node  # a number, of which compilers fill the array
        loop = copy.copy(node)
        loop.value = value
        if isinstance(node, ast.Assign):
            loop.targets = [each.at(target, name, own)]
        else:
            loop.target = each.at(target, name, own)
        counted = self._scope.name(target, "range", range).id
        lines = [
            f"{' ' * k}for {axis} in {counted}({name}.shape[{k}]):"
            for k, axis in enumerate(each.axes)
        ]
        lines.append(f"{' ' * len(lines)}{ast.unparse(loop)}")
        return _parsed("\n".join([*each.before, *lines]), node)

    def whole(self, node: ast.AST) -> tuple[str, tuple[str, ...]]:
        """Return the name and dimensions of a parameter all of which is there."""
        name = node
        if isinstance(node, ast.Subscript):
            name, index = node.value, node.slice
            each = index.elts if isinstance(index, ast.Tuple) else [index]
            if any(ast.unparse(one) not in {":", "..."} for one in each):
                return "", ()
        label = name.id if isinstance(name, ast.Name) else ""
        return label, self._arrays.get(label, ())

    def of_elements(self, node: ast.AST) -> bool:
        """Say whether an operation gives for elements what it gives for arrays."""
        match node:
            case ast.BinOp(op=op):
                return not isinstance(op, ast.MatMult)
            case ast.UnaryOp(op=op):
                return not isinstance(op, ast.Not)
            case ast.Compare(ops=[op]):
                return isinstance(op, OF_NUMBERS)
            case ast.Call(func=func, args=args, keywords=[]):
                function = self._scope.static(func)
                known = any(function is one for one in OF_ELEMENTS)
                known |= isinstance(function, np.ufunc)
                known |= self._scope.builtin(func) == "abs"
                return known and not any(isinstance(one, ast.Starred) for one in args)
        return False


@final
class _Element(ast.NodeTransformer):
    """Writes the element of an expression of whole arrays, at the indices of a loop."""

    def __init__(self, arrays: WholeArrays, dimensions: tuple[str, ...]) -> None:
        self._arrays, self._dimensions = arrays, dimensions
        self.axes = [f"xdev_axis_{k}" for k in range(len(dimensions))]
        #: What is computed before the loop, and whether an array is read in it.
        self.before: list[str] = []
        self.reads = False

    def visit(self, node: Any) -> Any:
        """Return the element of an expression; what is no array's stays as it is."""
        name, own = self._arrays.whole(node)
        if own and self._dimensions[-len(own) :] == own:  # as NumPy broadcasts
            self.reads = True
            return self.at(node, name, own)
        if isinstance(node, ast.Call) and self._arrays.of_elements(node):
            node.args = [self.visit(one) for one in node.args]
            return node
        leaf = isinstance(node, ast.Constant | ast.Name)
        if leaf or not isinstance(node, ast.expr):
            return node
        if self._arrays.of_elements(node):
            return self.generic_visit(node)
        name = f"xdev_value_{len(self.before)}"
        self.before.append(f"{name} = {ast.unparse(node)}")
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def at(self, node: ast.expr, name: str, own: tuple[str, ...]) -> ast.expr:
        """Return the element of an array of these dimensions."""
        text = f"{name}[{', '.join(self.axes[-len(own) :])}]"
        return cast("ast.expr", _parsed(text, node)[0].value)
