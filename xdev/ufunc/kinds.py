"""What is known of an expression's value, and what NumPy makes of two such.

A kind is a NumPy dtype; a Python number, of which the value is known; ``int``,
``float`` or ``complex``, a Python number of any value; a tuple of kinds; or None: not
known.
Values computed in float32 though they are stored in 16 bits are float32.
"""

from __future__ import annotations

import ast
import math
import operator
from contextlib import suppress
from functools import lru_cache, partial, reduce
from itertools import count
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.compile.halves import is_half
from xdev.ufunc.rules import real

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.ufunc.scope import Scope

Kind = Any
Names = dict[str, Kind]
Kinds = tuple[Kind, ...]
NUMBERS = (int, float, complex)  # in the order in which they grow
BOOL, FLOAT32 = np.dtype(np.bool_), np.dtype(np.float32)
UNSIGNED = np.dtype(np.uint64)
OPERATORS: dict[type, tuple[np.ufunc, Any]] = {
    ast.Add: (np.add, operator.add),
    ast.Sub: (np.subtract, operator.sub),
    ast.Mult: (np.multiply, operator.mul),
    ast.Div: (np.true_divide, operator.truediv),
    ast.FloorDiv: (np.floor_divide, operator.floordiv),
    ast.Mod: (np.remainder, operator.mod),
    ast.Pow: (np.power, operator.pow),
    ast.LShift: (np.left_shift, operator.lshift),
    ast.RShift: (np.right_shift, operator.rshift),
    ast.BitAnd: (np.bitwise_and, operator.and_),
    ast.BitOr: (np.bitwise_or, operator.or_),
    ast.BitXor: (np.bitwise_xor, operator.xor),
}
UNARY: dict[type, tuple[np.ufunc, Any]] = {
    ast.USub: (np.negative, operator.neg),
    ast.UAdd: (np.positive, operator.pos),
    ast.Invert: (np.invert, operator.invert),
}
GROWING = ast.Pow | ast.LShift
MOST = 2**14  # bits of an integer that is computed here


def strong(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype that values of a dtype are computed in."""
    return FLOAT32 if is_half(dtype) else dtype


def is_dtype(kind: Kind, kinds: str = "biufc") -> bool:
    """Say whether a kind is a dtype, of these kinds of NumPy's."""
    return isinstance(kind, np.dtype) and kind.kind in kinds


def weak(kind: Kind) -> type | None:
    """Return the class of a Python number, None of all else."""
    found = kind if isinstance(kind, type) else type(kind)
    return found if found in NUMBERS else None


def fits(value: int, dtype: np.dtype[Any]) -> bool:
    """Say whether an integer dtype has a value.

    Examples
    --------
    >>> fits(-1, np.dtype("uint8")), fits(255, np.dtype("uint8"))
    (False, True)
    """
    info = np.iinfo(dtype)
    return int(info.min) <= value <= int(info.max)


def same(one: Kind, other: Kind) -> bool:
    """Say whether two kinds are one; NumPy takes ``int`` for a dtype, and 0 is 0.0."""
    return repr(one) == repr(other)


def joined(one: Kind, other: Kind) -> Kind:
    """Return the kind of what is one or the other, as ``numpy.where`` has it.

    Examples
    --------
    >>> joined(0, np.dtype("uint8")), joined(-1, np.dtype("uint8")), joined(1, 2)
    (dtype('uint8'), None, <class 'int'>)
    """
    if same(one, other):
        return one
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return tuple(map(joined, one, other))
    for number, kind in ((one, other), (other, one)):
        if type(number) is int and is_dtype(kind, "iu") and not fits(number, kind):
            return None
    both = operated(np.maximum, one, other)
    integers = is_dtype(one, "iu") or is_dtype(other, "iu")
    changed = is_dtype(both, "fc") and not (is_dtype(one) and is_dtype(other))
    return None if (integers and changed) or mixed(one, other) else both


def together(one: Kind, other: Kind) -> Kind:
    """Return the kind of a result that is one or the other: it has one dtype.

    Examples
    --------
    >>> together(-1, 2), together(-1, np.dtype("uint8")), together(0.5, np.dtype("i2"))
    (<class 'int'>, dtype('uint8'), dtype('float64'))
    """
    if one is None or other is None or same(one, other):
        return None if one is None or other is None else one
    if isinstance(one, tuple) or isinstance(other, tuple):
        alike = isinstance(one, tuple) and isinstance(other, tuple)
        if not alike or len(one) != len(other):
            return None
        return tuple(map(together, one, other))
    parts = [int if same(kind, BOOL) else weak(kind) or kind for kind in (one, other)]
    if not any(map(is_dtype, parts)):
        return max(parts, key=NUMBERS.index)
    return np.result_type(*(part if is_dtype(part) else part(0) for part in parts))


def mixed(*kinds: Kind) -> bool:
    """Say whether uint64 and signed integers are among kinds: they have no dtype."""
    signed = any(is_dtype(kind, "i") for kind in kinds)
    return signed and any(same(kind, UNSIGNED) for kind in kinds)


def operated(ufunc: np.ufunc, *kinds: Kind) -> Kind:
    """Return the kind of an operator's result, of one operand or two.

    Bools count as Python's do, as integers that are weak; but beside a Python integer
    they are int64, as NumPy's are.

    Examples
    --------
    >>> operated(np.add, np.dtype("uint8"), np.dtype("int8")), operated(np.add, 1, 2.5)
    (dtype('int16'), <class 'float'>)
    """
    if any(kind is None or isinstance(kind, tuple) for kind in kinds):
        return None
    if all(same(kind, BOOL) for kind in kinds) and ufunc.__name__.startswith("bitwise"):
        return BOOL
    if not any(is_dtype(kind, "iufc") for kind in kinds):
        grown = [int if is_dtype(kind) else weak(kind) for kind in kinds]
        if ufunc is np.true_divide:
            grown.append(float)
        found = max(grown, key=NUMBERS.index)
        beside = any(map(is_dtype, kinds)) and any(map(weak, kinds))
        operator_of_ints = found is int and ufunc is not np.maximum
        return np.dtype(np.int64) if beside and operator_of_ints else found
    return _resolved(ufunc, *(weak(kind) or kind for kind in kinds))


def unary(op: ast.unaryop, kind: Kind) -> Kind:
    """Return the kind of a unary operator's result, of a number its result.

    Examples
    --------
    >>> unary(ast.USub(), 3), unary(ast.Invert(), np.dtype("uint8"))
    (-3, dtype('uint8'))
    """
    bits = isinstance(op, ast.Invert) and same(kind, BOOL)
    if isinstance(op, ast.Not) or bits:
        return BOOL
    ufunc, python = UNARY[type(op)]
    if type(kind) in NUMBERS:
        with suppress(TypeError):
            return python(kind)
    return operated(ufunc, kind)


def binary(op: ast.operator, left: Kind, right: Kind) -> Kind:
    """Return the kind of a binary operator's result, of two numbers their result.

    Examples
    --------
    >>> binary(ast.Pow(), 10, -1), binary(ast.Div(), np.dtype("int8"), 2)
    (0.1, dtype('float64'))
    """
    if type(op) not in OPERATORS:
        return None
    ufunc, python = OPERATORS[type(op)]
    whole = type(left) is type(right) is int
    large = isinstance(op, GROWING) and whole and left.bit_length() * right > MOST
    if type(left) in NUMBERS and type(right) in NUMBERS and not large:
        with suppress(ArithmeticError, TypeError, ValueError):
            return python(left, right)
    return operated(ufunc, left, right)


@lru_cache(maxsize=512)
def _resolved(ufunc: np.ufunc, *kinds: Any) -> Kind:
    try:
        return ufunc.resolve_dtypes((*kinds, None))[-1]
    except TypeError:  # NumPy has no such operator
        return None


# What calls, and values from outside, are known to be.

# Of a number the number itself, or nothing that is meant.
REDUCTIONS = [
    getattr(np, nan + name)
    for name in ("sum", "prod", "mean", "std", "var", "max", "min", "median")
    for nan in ("", "nan")
] + [np.any, np.all, np.ptp, np.average, np.cumsum, np.cumprod, np.argmax, np.argmin]
EXTREMES = frozenset({"max", "min"})
DIVISION = "divmod"
CASTS = {
    "bool": BOOL,
    "int": int,
    "float": float,
    "complex": complex,
    "len": int,
    "round": int,
}


def kind_of(found: object) -> Kind:
    """Return the kind of an outside value."""
    if type(found) in NUMBERS:
        return found
    if isinstance(found, bool):
        return BOOL
    if isinstance(found, np.generic):
        return _dtype(found.dtype)
    return tuple(map(kind_of, found)) if type(found) is tuple else None


def of_call(name: str, function: Any, kinds: Kinds) -> Kind:
    """Return the kind of what a function gives.

    Parameters
    ----------
    name : str
        That of a builtin, or ''.
    function : object
        Else what is called.
    kinds : tuple of kinds
        Its arguments'.
    """
    if name in CASTS and (name, len(kinds)) != ("round", 2):
        return CASTS[name]
    if name in EXTREMES and kinds:
        return _extreme(kinds)
    if isinstance(function, type) and issubclass(function, np.generic):
        return _dtype(np.dtype(function))
    if getattr(function, "__module__", "") == "math":
        return _mathematical(function, kinds)
    return _arithmetic(name, kinds)


def reduces_number(function: object, kinds: Kinds) -> bool:
    """Say whether a call makes one number of one number, where an array is meant."""
    is_number = bool(kinds) and (is_dtype(kinds[0]) or weak(kinds[0]) is not None)
    return is_number and any(function is each for each in REDUCTIONS)


def of_ufunc(function: np.ufunc, kinds: Kinds) -> tuple[Any, Kind]:
    """Return the dtypes that one of NumPy's ufuncs takes, and what it gives.

    None where compilers have others: where NumPy has float16.
    """
    known = all(is_dtype(kind) or weak(kind) for kind in kinds)
    strong = any(map(is_dtype, kinds))
    if not known or not strong or (function.nin, function.nout) != (len(kinds), 1):
        return None, None
    try:
        dtypes = function.resolve_dtypes(
            (*(weak(kind) or kind for kind in kinds), None)
        )
    except TypeError:
        return None, None
    *taken, given = dtypes
    half = any(dtype.char == "e" for dtype in dtypes)
    return (None, None) if half else (tuple(taken), given)


def _dtype(dtype: np.dtype[Any]) -> Kind:
    return dtype if is_dtype(dtype) and dtype.char not in "egG" else None


def _extreme(kinds: Kinds) -> Kind:
    """Return the kind of the largest, or smallest, of several, or of a tuple's items.

    Uint64 and signed integers have no common dtype.
    """
    found = None if mixed(*kinds) else reduce(together, kinds, kinds[0])
    return None if isinstance(found, tuple) else weak(found) or found


def _arithmetic(name: str, kinds: Kinds) -> Kind:
    """Return the kind of what a builtin that is an operator too gives."""
    if name == DIVISION and len(kinds) == 2:  # noqa: PLR2004 - the two divided
        return binary(ast.FloorDiv(), *kinds), binary(ast.Mod(), *kinds)
    if name == "abs" and not any(same(kind, BOOL) for kind in kinds):
        return operated(np.absolute, *kinds)
    return None


def _mathematical(function: Callable[..., Any], kinds: Kinds) -> Kind:
    """Return the kind of what a function of :mod:`math` gives."""
    if function is math.gcd and all(is_dtype(k, "iu") or weak(k) is int for k in kinds):
        return reduce(partial(operated, np.maximum), kinds)
    try:
        found = type(function(*[1.0] * len(kinds)))
    except TypeError:  # it is for integers
        return None
    except ValueError:  # there is none of 1
        found = float
    if found is not float:
        return CASTS.get(found.__name__)
    if len(kinds) == 1 and is_dtype(kinds[0], "biu"):
        return np.dtype(np.float64)
    alike = is_dtype(kinds[0], "f") and all(same(kind, kinds[0]) for kind in kinds)
    return kinds[0] if alike else None


# What kinds a function's expressions have, found in its source.
#
# A name has the kind that was assigned to it last, so branches are joined, and loops
# gone through until nothing changes. What is in nested functions, ``with`` and
# ``try`` is not known, nor what compiled functions return.

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

    @property
    def branches(self) -> bool:
        """Whether there are several results, which have one dtype."""
        return len(self._returned) > 1

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
