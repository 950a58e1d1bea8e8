"""What kinds a function's expressions have, found in its source.

A name has the kind that was assigned to it last, so branches are joined, and loops gone
through until nothing changes. What is in nested functions, ``with`` and ``try`` is not
known, nor what compiled functions return.
"""

from __future__ import annotations

import ast
from functools import reduce
from itertools import count
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.ufunc.kinds import (
    BOOL,
    Kind,
    binary,
    is_dtype,
    joined,
    kind_of,
    of_call,
    of_ufunc,
    reduces_number,
    same,
    together,
    unary,
    weak,
)
from xdev.ufunc.rules import real

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.ufunc.sources import Scope

    Names = dict[str, Kind]

ROUNDS = 8  # of a loop, after which what still changes is taken for not known


@final
class Flow(ast.NodeVisitor):
    """The kinds of a function's expressions.

    Parameters
    ----------
    tree : ast.FunctionDef
        Its source.
    inputs : sequence of kinds
        Its inputs'.
    scope : Scope
        What its names stand for.
    called : callable
        Returns what a call of an outside value makes of its arguments' kinds: the
        dtypes that it takes, None where they are not known, and the kind that it gives.
    """

    def __init__(
        self,
        tree: ast.FunctionDef,
        inputs: Sequence[Kind],
        scope: Scope,
        called: Callable[[Any, tuple[Kind, ...]], tuple[Any, Kind]],
    ) -> None:
        self._scope, self._called = scope, called
        self._kinds: dict[ast.AST, Kind] = {}
        self._breaks, self._continues = list[Any](), list[Any]()
        self._names: Names | None = {}  # None: nothing runs here
        self._dtypes: dict[str, set[Any]] = {}
        #: Of each call of a ufunc the dtypes that it takes.
        self.taken: dict[ast.Call, tuple[np.dtype[Any], ...]] = {}
        #: Calls of reductions of arrays that get numbers.
        self.reduced: list[ast.Call] = []
        self._returned: dict[ast.AST, Kind] = {}
        arguments = (*tree.args.posonlyargs, *tree.args.args)
        for argument, kind in zip(arguments, inputs, strict=True):
            self._name(argument.arg, kind)
        self._block(tree.body)

    @property
    def returned(self) -> Kind:
        """The kind of what the function returns."""
        return reduce(together, self._returned.values()) if self._returned else None

    def kind(self, node: ast.AST) -> Kind:
        """Return an expression's kind."""
        return self._kinds.get(node)

    def dtypes_of(self, target: ast.expr) -> set[Any]:
        """Return the dtypes that a name ever has; None among them: one is not known."""
        if not isinstance(target, ast.Name):
            return {None}
        return self._dtypes.get(target.id, set())

    def visit(self, node: ast.AST) -> Kind:
        """Go through a statement, or find an expression's kind."""
        kind = super().visit(node)
        if isinstance(node, ast.expr):
            self._kinds[node] = kind
        return kind

    def generic_visit(self, node: ast.AST) -> Kind:
        """Return what an expression reads; of a statement nothing is known."""
        if isinstance(node, ast.expr):
            number = self._scope.number(node)
            return kind_of(self._scope.static(node)) if number is None else number
        for part in ast.walk(node):
            match part:
                case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name):
                    self._name(name, None)
                case ast.Return():
                    self._returned[part] = None
        return None

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self._names is not None:
                self.visit(statement)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Bind each target."""
        kind = self.visit(node.value)
        for target in node.targets:
            self._bind(target, kind)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Bind the target, where there is a value."""
        if node.value is not None:
            self._bind(node.target, self.visit(node.value))

    def visit_Return(self, node: ast.Return) -> None:
        """Leave the function."""
        if node.value is None:
            self._returned[node] = None
        else:
            self.visit(node.value)
            self._return(node.value)
        self._names = None

    def _return(self, node: ast.expr) -> None:
        """Keep what is returned, of conditions both answers."""
        if isinstance(node, ast.IfExp):
            self._return(node.body)
            self._return(node.orelse)
        else:
            self._returned[node] = self.kind(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Go through an expression alone."""
        self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        """Go both ways."""
        self.visit(node.test)
        before = dict(self._known)
        self._block(node.body)
        after, self._names = self._names, before
        self._block(node.orelse)
        self._names = _merged(after, self._names)

    def visit_Break(self, _: ast.Break) -> None:
        """Keep the names for what comes after the loop."""
        self._breaks.append(self._names)
        self._names = None

    def visit_Continue(self, _: ast.Continue) -> None:
        """Keep the names for the loop's next round."""
        self._continues.append(self._names)
        self._names = None

    def visit_For(self, node: ast.For) -> None:
        """Go through a loop over ``range`` or a tuple."""
        self.visit(node.iter)
        self._loop(node)

    def visit_While(self, node: ast.While) -> None:
        """Go through a loop with a condition."""
        self._loop(node)

    def _loop(self, node: ast.For | ast.While) -> None:
        """Go through a loop until its names' kinds are what they were before."""
        outer = self._breaks, self._continues
        for rounds in count():
            start = dict(self._known)
            self._breaks, self._continues = [], []
            if isinstance(node, ast.While):
                self.visit(node.test)
            else:
                self._bind(node.target, self._element(node.iter))
            self._block(node.body)
            for names in (start, *self._continues):
                self._names = _merged(self._names, names)
            changed = [n for n, k in self._known.items() if not same(k, start.get(n))]
            if not changed:
                break
            if rounds > ROUNDS:
                self._known.update(dict.fromkeys(changed))
        breaks = self._breaks
        self._breaks, self._continues = outer
        self._block(node.orelse)
        for names in breaks:
            self._names = _merged(self._names, names)

    @property
    def _known(self) -> Names:
        return {} if self._names is None else self._names

    def _name(self, name: str, kind: Kind) -> None:
        self._known[name] = kind
        if kind is None or is_dtype(kind):
            self._dtypes.setdefault(name, set()).add(kind)

    def _bind(self, target: ast.expr, kind: Kind) -> None:
        match target:
            case ast.Name(id=name):
                self._name(name, kind)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                alike = isinstance(kind, tuple) and len(kind) == len(targets)
                parts = kind if alike else [None] * len(targets)
                for one, part in zip(targets, parts, strict=True):
                    self._bind(one, part)
            case ast.Starred(value=value):
                self._bind(value, None)
            case _:
                self.visit(target)

    def visit_Name(self, node: ast.Name) -> Kind:
        """Return what a name was bound to last, or stands for outside."""
        inside = node.id in self._known
        return self._known[node.id] if inside else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> Kind:
        """Return a number, or the kind of a bool."""
        return kind_of(node.value)

    def visit_BinOp(self, node: ast.BinOp) -> Kind:
        """Return what NumPy makes of two."""
        return binary(node.op, self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Kind:
        """Return what NumPy makes of one."""
        return unary(node.op, self.visit(node.operand))

    def visit_Compare(self, node: ast.Compare) -> Kind:
        """Return the kind of bools."""
        for each in (node.left, *node.comparators):
            self.visit(each)
        return BOOL

    def visit_BoolOp(self, node: ast.BoolOp) -> Kind:
        """Return what any of the values is."""
        return reduce(joined, [self.visit(each) for each in node.values])

    def visit_IfExp(self, node: ast.IfExp) -> Kind:
        """Return what either is."""
        self.visit(node.test)
        return joined(self.visit(node.body), self.visit(node.orelse))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Kind:
        """Bind a name inside an expression."""
        kind = self.visit(node.value)
        self._bind(node.target, kind)
        return kind

    def visit_Tuple(self, node: ast.Tuple) -> Kind:
        """Return the items' kinds."""
        return tuple([self.visit(each) for each in node.elts])

    def visit_Subscript(self, node: ast.Subscript) -> Kind:
        """Return the kind of a tuple's item."""
        self.visit(node.slice)
        return _part(self.visit(node.value), self._scope.number(node.slice))

    def visit_Attribute(self, node: ast.Attribute) -> Kind:
        """Return the kind of a module's value, or of a number's part."""
        outside = self._scope.static(node)
        if outside is not None:
            return kind_of(outside)
        kind = self.visit(node.value)
        if node.attr in {"real", "imag"} and is_dtype(kind, "iufc"):
            return real(kind)
        return None

    def visit_Call(self, node: ast.Call) -> Kind:
        """Return what a function makes of its arguments."""
        self.visit(node.func)
        kinds = tuple([self.visit(each) for each in node.args])
        function = self._scope.static(node.func)
        name = self._scope.builtin(node.func)
        if reduces_number(function, kinds):
            self.reduced.append(node)
        if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            return None
        if (found := of_call(name, function, kinds)) is not None:
            return found
        if isinstance(function, np.ufunc):
            taken, given = of_ufunc(function, kinds)
        else:
            taken, given = self._called(function, kinds)
        if taken is not None:
            self.taken[node] = taken
        return given

    def _element(self, iterated: ast.expr) -> Kind:
        """Return the kind of what a loop goes over."""
        if isinstance(iterated, ast.Call):
            ranged = self._scope.builtin(iterated.func) == "range"
            return int if ranged else None
        return _part(self.kind(iterated), None)


def _part(kind: Kind, index: Any) -> Kind:
    """Return the kind of a tuple's item, or of any where the index is no number."""
    if not isinstance(kind, tuple) or not kind:
        return None
    if type(index) is int and -len(kind) <= index < len(kind):
        return kind[index]
    found = reduce(joined, kind)
    return weak(found) or found


def _merged(one: Names | None, other: Names | None) -> Names | None:
    """Return what names are after two ways; one without a name does not read it."""
    if one is None or other is None:
        return other if one is None else one
    shared = {name: joined(one[name], other[name]) for name in one if name in other}
    return one | other | shared
