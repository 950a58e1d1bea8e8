"""What kinds a function's expressions have, found in its source.

A name has the kind that was assigned to it last, so branches are joined, and loops gone
through until nothing changes. What is in nested functions, ``with`` and ``try`` is not
known, nor what compiled functions return.
"""

from __future__ import annotations

import ast
from functools import reduce
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.ufunc.widths.kinds import (
    BOOL,
    NUMBERS,
    OPERATORS,
    Kind,
    is_dtype,
    joined,
    operated,
    same,
    weak,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.ufunc.scope import Scope

    Names = dict[str, Kind]

UNARY = {ast.USub: np.negative, ast.UAdd: np.positive, ast.Invert: np.invert}
EXTREMES = frozenset({"max", "min"})
CASTS = {"bool": BOOL, "int": int, "float": float, "complex": complex}
ROUNDS = 9  # of a loop, after which what still changes is taken for not known


@final
class Flow:
    """The kinds of a function's expressions.

    Parameters
    ----------
    tree : ast.FunctionDef or ast.Lambda
        Its source.
    inputs : sequence of kinds
        Its inputs'.
    scope : Scope
        What its names stand for.
    called : callable
        Returns what a call of an outside value makes of its arguments' kinds: the dtypes
        that it takes, None where they are not known, and the kind that it returns.
    """

    def __init__(
        self,
        tree: ast.FunctionDef | ast.Lambda,
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
        self._returned: list[Kind] = []
        arguments = (*tree.args.posonlyargs, *tree.args.args)
        for argument, kind in zip(arguments, inputs, strict=True):
            self._bind(ast.Name(argument.arg, ast.Store()), kind)
        if isinstance(tree, ast.Lambda):
            self._returned.append(self._of(tree.body))
        else:
            self._block(tree.body)

    @property
    def returned(self) -> Kind:
        """The kind of what the function returns."""
        return reduce(joined, self._returned) if self._returned else None

    def kind(self, node: ast.AST) -> Kind:
        """Return an expression's kind."""
        return self._kinds.get(node)

    def dtypes_of(self, target: ast.expr) -> set[Any]:
        """Return the dtypes that a name ever has; None among them: one is not known."""
        named = isinstance(target, ast.Name)
        return self._dtypes.get(target.id, set()) if named else {None}

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self._names is not None:
                self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:  # noqa: C901 - one case each
        match node:
            case ast.Assign(targets=targets, value=value):
                kind = self._of(value)
                for target in targets:
                    self._bind(target, kind)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind(target, self._of(value))
            case ast.Return(value=ast.expr() as value):
                self._returned.append(self._of(value))
                self._names = None
            case ast.If(test=test, body=body, orelse=orelse):
                self._of(test)
                before = self._copy()
                self._block(body)
                after, self._names = self._names, before
                self._block(orelse)
                self._names = _merged(after, self._names)
            case ast.For(target=target, iter=iterated):
                self._of(iterated)
                self._loop(node, target, self._element(iterated))
            case ast.While():
                self._loop(node)
            case ast.Break():
                self._breaks.append(self._names)
                self._names = None
            case ast.Continue():
                self._continues.append(self._names)
                self._names = None
            case ast.Expr(value=value):
                self._of(value)
            case _:
                self._forget(node)

    def _loop(
        self, node: ast.For | ast.While, target: ast.expr | None = None, kind: Kind = 0
    ) -> None:
        """Go through a loop until its names' kinds are what they were before."""
        outer = self._breaks, self._continues
        rounds = 0
        while True:
            rounds += 1
            start = self._copy()
            self._breaks, self._continues = [], []
            if isinstance(node, ast.While):
                self._of(node.test)
            elif target is not None:
                self._bind(target, kind)
            self._block(node.body)
            for names in (start, *self._continues):
                self._names = _merged(self._names, names)
            changed = [n for n, k in self._known.items() if not same(k, start.get(n))]
            if not changed:
                break
            if rounds >= ROUNDS:
                self._known.update(dict.fromkeys(changed))
        breaks = self._breaks
        self._breaks, self._continues = outer
        self._block(node.orelse)
        for names in breaks:
            self._names = _merged(self._names, names)

    def _forget(self, node: ast.AST) -> None:
        """Take what a statement binds for not known."""
        for part in ast.walk(node):
            match part:
                case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name):
                    self._bind(ast.Name(name, ast.Store()), None)
                case ast.Return():
                    self._returned.append(None)

    @property
    def _known(self) -> Names:
        return {} if self._names is None else self._names

    def _copy(self) -> Names:
        return dict(self._known)

    def _bind(self, target: ast.expr, kind: Kind) -> None:
        match target:
            case ast.Name(id=name):
                self._known[name] = kind
                if kind is None or is_dtype(kind):
                    self._dtypes.setdefault(name, set()).add(kind)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                alike = isinstance(kind, tuple) and len(kind) == len(targets)
                parts = kind if alike else [None] * len(targets)
                for one, part in zip(targets, parts, strict=True):
                    self._bind(one, part)
            case ast.Starred(value=value):
                self._bind(value, None)
            case _:
                self._of(target)

    def _of(self, node: ast.expr) -> Kind:
        """Find an expression's kind, and those of its parts."""
        kind = self._kinds[node] = self._found(node)
        return kind

    def _found(self, node: ast.expr) -> Kind:  # noqa: C901, PLR0911 - one case each
        match node:
            case ast.Name(id=name) if name in self._known:
                return self._known[name]
            case ast.Constant(value=bool()):
                return BOOL
            case ast.BinOp(left=left, op=op, right=right):
                kinds = self._of(left), self._of(right)
                ufunc = OPERATORS.get(type(op))
                return operated(ufunc, *kinds) if ufunc else None
            case ast.UnaryOp(op=op, operand=operand):
                kind = self._of(operand)
                if (number := self._scope.number(node)) is not None:
                    return number
                if isinstance(op, ast.Not):
                    return BOOL
                inverse = isinstance(op, ast.Invert) and same(kind, BOOL)
                return BOOL if inverse else operated(UNARY[type(op)], kind)
            case ast.Compare(left=left, comparators=comparators):
                for each in (left, *comparators):
                    self._of(each)
                return BOOL
            case ast.BoolOp(values=values):
                return reduce(joined, [self._of(each) for each in values])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._of(test)
                return joined(self._of(body), self._of(orelse))
            case ast.NamedExpr(target=target, value=value):
                kind = self._of(value)
                self._bind(target, kind)
                return kind
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple([self._of(each) for each in parts])
            case ast.Subscript(value=value, slice=index):
                self._of(index)
                return self._part(self._of(value), self._scope.number(index))
            case ast.Attribute(value=value, attr=attribute):
                owner = self._scope.static(node)
                if owner is not None:
                    return _value(owner)
                kind = self._of(value)
                parts = attribute in {"real", "imag"} and is_dtype(kind, "iufc")
                return kind.type(0).real.dtype if parts else None
            case ast.Call():
                return self._call(node)
        number = self._scope.number(node)
        return _value(self._scope.static(node)) if number is None else number

    def _call(self, node: ast.Call) -> Kind:
        self._of(node.func)
        kinds = tuple([self._of(each) for each in node.args])
        function = self._scope.static(node.func)
        name = self._scope.builtin(node.func)
        if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            return None
        if name in CASTS:
            return CASTS[name]
        if isinstance(function, type) and issubclass(function, np.generic):
            return _dtype(np.dtype(function))
        if name in EXTREMES and kinds:
            return _extreme(kinds)
        if name == "abs" and len(kinds) == 1:
            (kind,) = kinds
            return None if same(kind, BOOL) else operated(np.absolute, kind)
        if getattr(function, "__module__", "") == "math":
            return _mathematical(function, kinds)
        if isinstance(function, np.ufunc):
            taken, returned = _ufunc(function, kinds)
        else:
            taken, returned = self._called(function, kinds)
        if taken is not None:
            self.taken[node] = taken
        return returned

    def _element(self, iterated: ast.expr) -> Kind:
        """Return the kind of what a loop goes over."""
        match iterated:
            case ast.Call(func=function) if self._scope.builtin(function) == "range":
                return int
        return self._part(self.kind(iterated), None)

    @staticmethod
    def _part(kind: Kind, index: Any) -> Kind:
        """Return the kind of a tuple's item; any of them where the index is None."""
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


def _value(value: object) -> Kind:
    """Return the kind of an outside value."""
    if type(value) in NUMBERS:
        return value
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, np.generic):
        return _dtype(value.dtype)
    return tuple(map(_value, value)) if type(value) is tuple else None


def _dtype(dtype: np.dtype[Any]) -> Kind:
    return dtype if is_dtype(dtype) and dtype.char not in "egG" else None


def _extreme(kinds: Sequence[Kind]) -> Kind:
    """Return the kind of the largest, or smallest, of several, or of a tuple's items.

    A Python number that is not known may be any of them: so the result is not known.
    """
    if len(kinds) == 1 or any(same(kind, BOOL) or kind is int for kind in kinds):
        return None
    return reduce(joined, kinds)


def _mathematical(function: Callable[..., Any], kinds: tuple[Kind, ...]) -> Kind:
    """Return the kind of what a function of :mod:`math` gives."""
    try:
        found = type(function(*[1.0] * len(kinds)))
    except TypeError:  # it is for integers
        return None
    except ValueError:  # there is none of 1
        found = float
    if found is not float:
        return {int: int, bool: BOOL}.get(found)
    if len(kinds) == 1 and is_dtype(kinds[0], "biu"):
        return np.dtype(np.float64)
    alike = is_dtype(kinds[0], "f") and all(same(kind, kinds[0]) for kind in kinds)
    return kinds[0] if alike else None


def _ufunc(ufunc: np.ufunc, kinds: tuple[Kind, ...]) -> tuple[Any, Kind]:
    """Return what one of NumPy's ufuncs takes and gives, where compilers have that."""
    known = all(is_dtype(kind, "iuf") or weak(kind) for kind in kinds)
    if not known or ufunc.nout > 1 or ufunc.nin != len(kinds):
        return None, None
    try:
        dtypes = ufunc.resolve_dtypes((*(weak(k) or k for k in kinds), None))
    except TypeError:
        return None, None
    *taken, given = dtypes
    strange = any(dtype.char == "e" for dtype in dtypes)
    return (None, None) if strange else (tuple(taken), given)
