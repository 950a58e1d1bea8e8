"""``XDEV_DEBUG=1``: every access to an argument is checked, and a wrong one named."""

from __future__ import annotations

import ast
from types import ModuleType
from typing import TYPE_CHECKING, Any, final

from xdev import atomic
from xdev.compile.grid.emission import checked

if TYPE_CHECKING:
    from collections.abc import Sequence

CHECK, REPORT = "xdev_checked", "xdev_report"
UPDATES = (atomic.add, atomic.max, atomic.min, atomic.cas)


@final
class Checks(ast.NodeTransformer):
    """Rewrites ``x[i]`` to ``x[xdev_checked(i, x.shape, 0, 0, xdev_report)]``.

    Parameters
    ----------
    arrays : dict of str to int
        The arguments that are arrays, with their places.
    outside : dict
        The values of the function's outside names.

    Attributes
    ----------
    done : bool
        Whether a function was rewritten.
    """

    def __init__(self, arrays: dict[str, int], outside: dict[str, Any]) -> None:
        self._arrays, self._outside = arrays, outside
        self.done = False

    def __call__(self, tree: ast.FunctionDef | ast.Lambda) -> dict[str, Any]:
        """Rewrite a function; return the values of the names that it now reads."""
        tree.args.args.append(ast.arg(REPORT))
        if isinstance(tree, ast.Lambda):
            tree.body = self.visit(tree.body)
        else:
            tree.body = [self.visit(statement) for statement in tree.body]
        self.done = True
        return {CHECK: checked}

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
        if self._value(node.func) in UPDATES and len(node.args) > 1:
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
        call = ast.Call(ast.Name(CHECK, load), arguments, [])
        return ast.copy_location(call, index)

    def _value(self, node: ast.expr) -> Any:
        """Return the value of an outside name or a module's attribute, else None."""
        if isinstance(node, ast.Name):
            return self._outside.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            if isinstance(owner, ModuleType):
                return getattr(owner, node.attr, None)
        return None


def refuse(
    report: Sequence[int], name: str, arguments: Sequence[str], dimensions: int
) -> None:
    """Raise the error that a kernel has reported, if there is one.

    Parameters
    ----------
    report : sequence of int
        What :mod:`xdev.compile.grid.emission` writes.
    name : str
        The kernel's name.
    arguments : sequence of str
        Its arguments' names.
    dimensions : int
        How many indices it has.

    Raises
    ------
    IndexError
        An access was out of bounds.
    """
    if not report[0]:
        return
    number, axis, index, length = report[1:5]
    point = ", ".join(map(str, report[-dimensions:]))
    message = (
        f"{name}: {arguments[number]} has {length} elements along axis {axis}, and the "
        f"index there is {index}, at point ({point})"
    )
    raise IndexError(message)
