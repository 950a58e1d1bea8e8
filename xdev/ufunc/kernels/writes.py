"""Which of its arrays a kernel writes, by its source.

Libraries that keep arrays for later, as autograd does, are told of those alone.
"""

from __future__ import annotations

import ast
import builtins
import math
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.ufunc import sources
from xdev.ufunc.kernels.bounds import UPDATES
from xdev.ufunc.scalar import ScalarFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FACTS = frozenset({"shape", "size", "ndim", "strides", "itemsize", "nbytes", "dtype"})
NUMBERS = abs, bool, complex, divmod, float, int, len, max, min, pow, range, round
READERS = frozenset((*NUMBERS, *(f for f in vars(math).values() if callable(f))))


@final
@dataclass(frozen=True, slots=True)
class Writes:
    """The names of the arrays that a kernel writes.

    Parameters
    ----------
    surely : frozenset of str
        Those that stand before ``[…] =``, or are updated atomically.
    perhaps : frozenset of str
        Those that other functions get, or of which parts have names of their own.
    """

    surely: frozenset[str]
    perhaps: frozenset[str]


def find(function: Callable[..., Any], arrays: Mapping[str, int]) -> Writes:
    """Return what a kernel writes.

    Parameters
    ----------
    function : callable
        Its Python function; without a source all of its arrays are ``perhaps``.
    arrays : mapping of str to int
        The names of its arrays, and how many axes they have.
    """
    source = sources.find(function.__code__)
    if source is None:
        return Writes(frozenset(), frozenset(arrays))
    visitor = _Visitor(arrays, sources.outside(function))
    body = source.node.body
    for node in body if isinstance(body, list) else [body]:
        visitor.visit(node)
    surely = frozenset(visitor.surely)
    return Writes(surely, frozenset(visitor.perhaps) - surely)


@final
class _Visitor(ast.NodeVisitor):
    """Collects the arrays that are written, or may be."""

    def __init__(self, arrays: Mapping[str, int], outside: dict[str, Any]) -> None:
        self._arrays, self._outside = arrays, outside
        self.surely: set[str] = set()
        self.perhaps: set[str] = set()

    def visit_Call(self, node: ast.Call) -> None:
        """Look at what a function gets: many only read."""
        called = self._value(node.func)
        reads = _reads(called, len(node.args))
        if called is None:
            self.visit(node.func)
        for k, argument in enumerate((*node.args, *(w.value for w in node.keywords))):
            name = self._array(argument)
            if name and not k and called in UPDATES:
                self.surely.add(name)
            if name and (reads or called in UPDATES):
                self._indices(argument)
            else:
                self.visit(argument)

    def visit_Name(self, node: ast.Name) -> None:
        """Take an array that has another name for one that is written by it."""
        self._part(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Tell x[i] from x[i] = y, and elements from parts."""
        self._part(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Tell x.shape from x.fill."""
        self._part(node)

    def _part(self, node: ast.Name | ast.Subscript | ast.Attribute) -> None:
        name = self._array(node)
        if not isinstance(node.ctx, ast.Load):
            self.surely |= {name} & self._arrays.keys()
        elif name in self._arrays and not _value_alone(node, self._arrays[name]):
            self.perhaps.add(name)
        self._indices(node)

    def _array(self, node: ast.expr) -> str:
        """Return the array that an expression is a part of; "" for others."""
        while isinstance(node, ast.Subscript | ast.Attribute):
            node = node.value
        found = isinstance(node, ast.Name) and node.id in self._arrays
        return node.id if found and isinstance(node, ast.Name) else ""

    def _indices(self, node: ast.expr) -> None:
        """Visit what stands in the brackets of an array's part."""
        while isinstance(node, ast.Subscript | ast.Attribute):
            if isinstance(node, ast.Subscript):
                self.visit(node.slice)
            node = node.value
        if not isinstance(node, ast.Name):
            self.visit(node)

    def _value(self, node: ast.expr) -> Any:
        """Return the value of an outside name or a module's attribute, else None."""
        if isinstance(node, ast.Name):
            return self._outside.get(node.id, getattr(builtins, node.id, None))
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            if isinstance(owner, ModuleType):
                return getattr(owner, node.attr, None)
        return None


def _reads(function: Any, given: int) -> bool:
    """Say whether a function is known to write none of its arguments."""
    if isinstance(function, np.ufunc):
        return given <= function.nin
    if isinstance(getattr(function, "scalar", None), ScalarFunction):
        return True
    return any(function is known for known in READERS)


def _value_alone(node: ast.expr, axes: int) -> bool:
    """Say whether a part of an array is an element, or a fact of the array."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        if isinstance(node, ast.Attribute):
            if node.attr in FACTS:
                return True
        else:
            each = (
                node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            )
            whole = (ast.Slice, ast.Starred)
            axes -= sum(not isinstance(i, whole) and not _new(i) for i in each)
        node = node.value
    return axes <= 0


def _new(index: ast.expr) -> bool:
    """Say whether an index is None or ..., which take no axis away."""
    return isinstance(index, ast.Constant) and not isinstance(index.value, int)
