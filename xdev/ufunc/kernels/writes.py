"""Which of its arrays a kernel writes, by its source.

Libraries that keep arrays for later, as autograd does, are told of those alone.
"""

from __future__ import annotations

import ast
import builtins
import math
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.ufunc import sources
from xdev.ufunc.kernels.bounds import UPDATES
from xdev.ufunc.numpys import numpys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
        Those that stand before ``[…] =`` or ``+=``, or are updated atomically.
    perhaps : frozenset of str
        Those that other functions get, or of which parts have names of their own.
    flat : frozenset of str
        Those of the first that are written as ``x.flat[…]``.
    """

    surely: frozenset[str]
    perhaps: frozenset[str]
    flat: frozenset[str] = frozenset()


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
    visitor = _Visitor(function, arrays)
    body = source.node.body
    for node in body if isinstance(body, list) else [body]:
        visitor.visit(node)
    surely = frozenset(visitor.surely)
    return Writes(surely, frozenset(visitor.perhaps) - surely, frozenset(visitor.flat))


@final
class _Visitor(ast.NodeVisitor):
    """Collects the arrays that are written, or may be."""

    def __init__(self, function: Callable[..., Any], arrays: Mapping[str, int]) -> None:
        code, self._outside = function.__code__, sources.outside(function)
        self._arrays, self._own = arrays, {*code.co_varnames, *code.co_cellvars}
        # Any name may be one's then.
        self._slices = _makes_slices(function, (), {})
        self.surely: set[str] = set()
        self.perhaps: set[str] = set()
        self.flat: set[str] = set()

    def visit_Call(self, node: ast.Call) -> None:
        """Look at what a function gets: many only read."""
        called = numpys(self._value(node.func))
        reads = _reads(called, len(node.args))
        if called is None:
            self.visit(node.func)
        updated = [word.value for word in node.keywords if word.arg == "a"]
        updated = updated or node.args[:1]  # of an atomic operation
        for argument in (*node.args, *(word.value for word in node.keywords)):
            name = self._array(argument)
            if name and called in UPDATES and argument in updated:
                self.surely.add(name)
            if name and (reads or called in UPDATES):
                self._indices(argument)
            else:
                self.visit(argument)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Take x += y for a write, where x = y is but a name."""
        if isinstance(node.target, ast.Name):
            self.surely |= {node.target.id} & self._arrays.keys()
        self.generic_visit(node)

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
            if not isinstance(node, ast.Name):
                written = {name} & self._arrays.keys()
                self.surely |= written
                if isinstance(node.value, ast.Attribute) and node.value.attr == "flat":
                    self.flat |= written
        elif name in self._arrays and not self._value_alone(node, self._arrays[name]):
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
        if isinstance(node, ast.Name) and node.id not in self._own:
            return self._outside.get(node.id, getattr(builtins, node.id, None))
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            if isinstance(owner, ModuleType):
                return getattr(owner, node.attr, None)
        return None

    def _value_alone(self, node: ast.expr, axes: int) -> bool:
        """Say whether a part of an array is an element, or a fact of the array."""
        while isinstance(node, ast.Subscript | ast.Attribute):
            if isinstance(node, ast.Attribute):
                if node.attr in FACTS:
                    return True
            else:
                index = node.slice
                each = index.elts if isinstance(index, ast.Tuple) else [index]
                axes -= sum(map(self._takes_axis, each))
            node = node.value
        return axes <= 0

    def _takes_axis(self, index: ast.expr) -> bool:
        """Say whether an index is a number, as far as the source tells.

        None and ... take no axis away, slices none whole; names may stand for them.
        """
        if isinstance(index, ast.Slice | ast.Starred):
            return False
        if isinstance(index, ast.Constant):
            return isinstance(index.value, int)
        outer = index.value if isinstance(index, ast.Attribute) else index
        if isinstance(outer, ast.Name) and outer.id in self._outside:
            return isinstance(self._value(index), int | np.integer)
        return not self._slices or isinstance(index, ast.BinOp | ast.UnaryOp)


def _reads(function: Any, given: int) -> bool:
    """Say whether a function is known to write none of its arguments."""
    if isinstance(function, np.ufunc):
        return given <= function.nin
    return any(function is known for known in READERS)


def _makes_slices(value: Any, names: tuple[str, ...], seen: dict[Any, Any]) -> bool:
    """Say whether a value is a slice, has one, or is a function that may make one.

    Parameters
    ----------
    value : object
        What a function reads, or itself.
    names : tuple of str
        Those that the function has, as which it may read what is in a module.
    seen : dict
        What was looked at with which names, by identity: values may have no hash.
    """
    value = numpys(getattr(value, "py_func", value))
    if str(getattr(value, "__module__", "")).startswith("xdev."):
        return False  # those that compiled code may call make none
    if value is slice or isinstance(value, slice):
        return True
    key = id(value), names
    parts: Iterable[Any] = ()
    if key in seen:
        return False
    seen[key] = value
    if isinstance(value, tuple):
        parts = value
    elif isinstance(value, ModuleType):
        parts = [vars(value).get(name) for name in names]
    elif isinstance(value, FunctionType):
        names = value.__code__.co_names
        parts = sources.outside(value).values()
    return "slice" in names or any(_makes_slices(part, names, seen) for part in parts)
