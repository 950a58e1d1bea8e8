"""A function's source, rewritten so that it computes in NumPy's dtypes."""

from __future__ import annotations

import ast
import copy
import math
import operator
from contextlib import suppress
from functools import cache, partial, reduce
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np

from xdev.compile import cpu
from xdev.ufunc import sources
from xdev.ufunc.flow import Flow
from xdev.ufunc.kinds import (
    DIVISION,
    EXTREMES,
    OPERATORS,
    UNSIGNED,
    Kind,
    fits,
    is_dtype,
    joined,
    mixed,
    operated,
    same,
    strong,
    weak,
)
from xdev.ufunc.parameters import shown
from xdev.ufunc.rules import real
from xdev.ufunc.scalar import is_plain
from xdev.ufunc.sources import WEAK, Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.ufunc.rules import Rules

    Called = Callable[[Any, tuple[Kind, ...]], tuple[Any, Kind]]

# Casts in a function's source, by which its operators have NumPy's dtypes.


def _order(x: Any, y: Any) -> Any:
    """Return -1, 0 or 1 for uint64 and a signed integer, exactly as NumPy compares.

    Compilers take int64 for the two, in which half of uint64 is negative.
    """
    a, b = np.float64(x), np.float64(y)
    if a != b:
        return -1 if a < b else 1
    one, other = np.uint64(x), np.uint64(y)  # neither is negative
    return -1 if one < other else int(one > other)


@cache
def _compiled_order() -> Any:
    return cpu.device_function(_order)


INT64 = np.dtype(np.int64)
PYTHONS: dict[Any, np.dtype[Any]] = {
    int: INT64,
    float: np.dtype(np.float64),
}  # compilers' for Python's numbers


def compiled(kind: Kind, rules: Rules) -> Kind:
    """Return the kind in which compiled code returns a result."""
    if isinstance(kind, tuple):
        return tuple(compiled(each, rules) for each in kind)
    if kind is None:
        return None
    return np.dtype(weak(kind)) if weak(kind) else strong(rules.result(kind))


@final
class Casts(ast.NodeTransformer):
    """Puts casts into a function's source, and typed constants where they are known.

    Parameters
    ----------
    function, rules
        The function, and its inputs' dtypes.
    flow : Flow
        The kinds in its source.
    scope : Scope
        Where the casts get their names.
    inner : callable
        Returns what compiled code calls for a ufunc that takes dtypes.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        rules: Rules,
        flow: Flow,
        scope: Scope,
        inner: Callable[[Any, tuple[np.dtype[Any], ...]], Any],
    ) -> None:
        self._function, self._rules, self._flow = function, rules, flow
        self._scope, self._inner = scope, inner
        self._results = compiled(flow.returned, rules)

    def visit_Return(self, node: ast.Return) -> ast.Return:
        """Give what is returned its dtype."""
        if node.value is not None:
            node.value = self._result(node.value, self._results)
        return node

    def _result(self, node: ast.expr, kind: Kind) -> ast.expr:
        if isinstance(node, ast.Tuple) and isinstance(kind, tuple):
            pairs = zip(node.elts, kind, strict=True)
            node.elts = [self._result(each, own) for each, own in pairs]
            return node
        if isinstance(node, ast.IfExp):
            node.test = self.visit(node.test)
            node.body = self._result(node.body, kind)
            node.orelse = self._result(node.orelse, kind)
            return node
        return self._as(node, kind)

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        """Give a number the dtype that the name has elsewhere."""
        node.value = self._assigned(node.targets, node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        """Do so for ``x: int = 0``."""
        if node.value is not None:
            node.value = self._assigned([node.target], node.value)
        return node

    def _assigned(self, targets: list[ast.expr], node: ast.expr) -> ast.expr:
        match targets, node:
            case [ast.Tuple(elts=names)], ast.Tuple(elts=values) if len(names) == len(
                values
            ):
                pairs = zip(names, values, strict=True)
                node.elts = [self._assigned([name], value) for name, value in pairs]
                return node
        number = self._flow.kind(node)
        dtypes = {d for target in targets for d in self._flow.dtypes_of(target)}
        if not dtypes and type(number) in PYTHONS:
            dtypes = {PYTHONS[type(number)]}
        if all(is_dtype(dtype, "iu") for dtype in dtypes) and type(number) is int:
            dtypes = dtypes if len(dtypes) == 1 else {INT64}
        return self._constant(node, *dtypes if len(dtypes) == 1 else (None,))

    def visit_FunctionDef(self, node: Any) -> Any:
        """Leave a function inside alone."""
        return node

    visit_Lambda = visit_FunctionDef  # noqa: N815 - Python's

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Give the result its dtype."""
        kind = self._flow.kind(node)
        return self._narrowed(self._computed(node, kind), kind)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Give the result its dtype."""
        kind = self._flow.kind(node)
        return self._narrowed(self._computed(node, kind), kind)

    def _computed(self, node: ast.BinOp | ast.UnaryOp, kind: Kind) -> ast.expr:
        """Return an operation of a kind, in compilers' 64 bits."""
        if self._scope.number(node) is not None:
            return node
        if isinstance(node, ast.UnaryOp):
            node.operand = self._operand(node.operand, kind)
            return node
        node.left = self._operand(node.left, kind)
        multiplied = isinstance(node.op, ast.Pow) and not same(kind, UNSIGNED)
        if multiplied and weak(self._flow.kind(node.right)) is int:
            self._refuse(node.right, kind)
            node.right = self.visit(node.right)  # compilers multiply, in int64
        else:
            node.right = self._operand(node.right, kind)
        return node

    def _operand(self, node: ast.expr, kind: Kind) -> ast.expr:
        """Return an operand of what has a kind."""
        own = self._flow.kind(node)
        wide = is_dtype(kind, "iu") and not same(kind, UNSIGNED)
        if type(own) not in WEAK and (wide or is_dtype(own, "fc")):
            # As compilers widen it. In loops they begin with the types of names before
            # them: unsigned integers that turn signed there would become floats.
            turned = is_dtype(own, "i") and any(
                is_dtype(each, "u") for each in self._flow.dtypes_of(node)
            )
            found = self._visited(node, kind)
            return self._cast(found, INT64) if turned else found
        return self._as(node, kind)

    def _as(self, node: ast.expr, kind: Kind) -> ast.expr:
        """Return a node in a kind, as far as it is known."""
        own = self._flow.kind(node)
        self._refuse(node, kind)
        kind = PYTHONS.get(weak(kind), kind)
        if type(own) in WEAK:
            return self._constant(node, kind)
        node = self._visited(node, kind)
        if own is int and same(kind, INT64):
            return node
        if not is_dtype(kind, "iufc") or own is None or same(own, kind):
            return node
        is_complex = is_dtype(own, "c") or weak(own) is complex
        return self._cast(node, kind if is_complex else real(kind))

    def _visited(self, node: ast.expr, kind: Kind) -> ast.expr:
        """Return a node rewritten, an integer where it is to be one of a dtype.

        On CUDA compilers have floats for those of Python's that ``math.floor`` gives.
        """
        python = self._flow.kind(node) is int and is_dtype(kind, "iu")
        node = self.visit(node)
        return self._cast(node, INT64) if python else node

    def _refuse(self, node: ast.expr, kind: Kind) -> None:
        """Refuse a number that is none of an integer dtype, as NumPy does.

        Raises
        ------
        OverflowError
            It is not; the text has its line.
        """
        value = self._flow.kind(node)
        if type(value) is not int or not is_dtype(kind, "iu") or fits(value, kind):
            return
        if self._rules.bounded:
            function, taken = self._function, ", ".join(map(str, self._rules.inputs))
            message = (
                f"Python integer {value} out of bounds for {kind} in "
                f"{function.__name__}: cast an argument to a larger dtype, or give a "
                f"signature, as int64({taken})\n"
                f"{shown(function.__code__, node.lineno)}"
            )
            raise OverflowError(message)

    def _constant(self, node: ast.expr, kind: Kind) -> ast.expr:
        """Return the name of a number in a dtype, or the node where it has none."""
        number = self._flow.kind(node)
        dtype = INT64 if weak(kind) is int else kind
        whole = type(number) is int and is_dtype(dtype, "iu") and fits(number, dtype)
        if whole or (type(number) in WEAK and is_dtype(dtype, "fc")):
            if type(number) is not complex:
                dtype = real(dtype)
            with suppress(OverflowError), np.errstate(over="ignore"):
                constant = dtype.type(number)
                known = type(number) is int or not np.isfinite(number)
                if known or np.isfinite(constant):
                    return self._scope.name(node, f"{dtype}_{number}", constant)
        return cast("ast.expr", self.visit(node))  # float64, or an integer of 64 bits

    def _narrowed(self, node: ast.expr, kind: Kind) -> ast.expr:
        """Return a result of compilers' 64 bits in its dtype."""
        narrow = is_dtype(kind, "iu") and not same(kind, INT64)
        return self._cast(node, kind) if narrow else node

    def _cast(self, node: ast.expr, dtype: np.dtype[Any]) -> ast.expr:
        name = self._scope.name(node, str(dtype), dtype.type)
        return ast.copy_location(ast.Call(name, [node], []), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Compare integers exactly, others in the dtype that all fit in."""
        parts = [node.left, *node.comparators]
        kinds = [self._flow.kind(part) for part in parts]
        if mixed(*kinds) and all(is_dtype(kind, "iu") for kind in kinds):
            parts = [self.visit(part) for part in parts]
            return self._exact(node, parts, kinds)
        common = reduce(partial(operated, np.maximum), kinds)
        if is_dtype(common, "fc") or weak(common) in PYTHONS:
            node.left, *node.comparators = [self._operand(p, common) for p in parts]
            return node
        if is_dtype(common, "iu"):
            node.left, *node.comparators = [self._constant(p, common) for p in parts]
            return node
        return self.generic_visit(node)  # type: ignore[return-value]

    def _exact(
        self, node: ast.Compare, parts: list[ast.expr], kinds: list[Kind]
    ) -> ast.expr:
        """Return a comparison pair by pair, of parts that are rewritten."""
        tests = list[ast.expr]()
        for k, op in enumerate(node.ops):
            left, right = parts[k : k + 2]
            if mixed(*kinds[k : k + 2]):
                order = self._scope.name(left, "order", _compiled_order())
                left, right = ast.Call(order, [left, right], []), ast.Constant(0)
            tests.append(ast.copy_location(ast.Compare(left, [op], [right]), node))
        found = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        return ast.copy_location(found, node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Give both answers the dtype that they share."""
        kind = self._flow.kind(node)
        node.test = self.visit(node.test)
        node.body, node.orelse = self._as(node.body, kind), self._as(node.orelse, kind)
        return node

    def _extreme(self, node: ast.Call, kind: Kind) -> ast.expr:
        """Return ``max`` or ``min`` of a dtype, which compares Python's integers too.

        A negative one is below all of uint64.
        """
        if not any(self._flow.kind(each) is int for each in node.args):
            node.args = [self._as(each, kind) for each in node.args]
            return node
        unsigned = same(kind, UNSIGNED)
        for k, each in enumerate(node.args):
            python = self._flow.kind(each) is int
            node.args[k] = self._as(each, kind if unsigned and not python else INT64)
            if unsigned and python:
                zero = self._scope.name(each, "int64_0", INT64.type(0))
                above = ast.Call(ast.Name("max", ast.Load()), [node.args[k], zero], [])
                node.args[k] = self._cast(ast.copy_location(above, each), kind)
        return self._narrowed(node, kind)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Give arguments the dtypes that they are taken in."""
        kind, taken = self._flow.kind(node), self._flow.taken.get(node)
        name, function = self._scope.builtin(node.func), self._scope.static(node.func)
        if taken is not None:
            pairs = zip(node.args, taken, strict=False)  # defaults have no argument
            node.args = [self._as(each, dtype) for each, dtype in pairs]
            if not isinstance(function, np.ufunc):
                words = "_".join([ast.unparse(node.func), *map(str, taken)])
                own = self._inner(function, taken)
                node.func = self._scope.name(node.func, words, own)
            return node
        if name in EXTREMES:
            strong = list(filter(is_dtype, map(self._flow.kind, node.args)))
            common = reduce(joined, strong) if strong else None
            for each in node.args:
                if self._scope.number(each) is not None:
                    self._refuse(each, common)
            if is_dtype(kind, "iu"):
                return self._extreme(node, kind)
        common = None
        if name in EXTREMES or function is math.gcd:
            common = kind
        elif name == DIVISION and isinstance(kind, tuple):
            common = kind[0]
        if is_dtype(common, "iufc"):
            node.args = [self._as(each, common) for each in node.args]
            return node
        self.generic_visit(node)
        python = kind is int or kind is float  # NumPy's dtypes equal these
        return self._cast(node, PYTHONS[kind]) if python else node


# A function's source, rewritten so that it computes in NumPy's dtypes.


def cast_source(
    function: Callable[..., Any],
    rules: Rules,
    called: Called,
    inner: Callable[[Any, tuple[np.dtype[Any], ...]], Any],
    tree: ast.FunctionDef,
) -> dict[str, Any]:
    """Put casts into a function's source; return what it then reads, by name.

    Parameters
    ----------
    function, rules
        The function, its inputs' dtypes, and whether a signature made them.
    called : callable
        As :class:`Flow` takes it.
    inner : callable
        As :class:`Casts` takes it.
    tree : ast.FunctionDef
        The source.
    """
    scope, flow = _analysed(function, tree, rules, called)
    casts = Casts(function, rules, flow, scope, inner)
    casts.generic_visit(tree)
    return scope.constants


def require_source(function: Callable[..., Any], rules: Rules) -> None:
    """Refuse integers that compilers widen where nothing can be rewritten.

    Raises
    ------
    TypeError
        The function has no source.
    """
    if rules.needs_source and not sources.find(function.__code__):
        inputs = ", ".join(map(str, rules.inputs))
        code = function.__code__
        message = (
            f"{function.__name__}({inputs}): no source was found at "
            f"{code.co_filename}:{code.co_firstlineno}, by which bools and integers "
            "have NumPy's dtypes; compilers would give other numbers. Put the function "
            "into a file, use IPython or the shell of Python 3.13 or later, which keep "
            "sources, cast the arguments to int64, or give signatures, as "
            f'@vectorize(["int64({inputs})"]), which compute in 64 bits'
        )
        raise TypeError(message)


def returned(function: Callable[..., Any], rules: Rules, called: Called) -> Kind:
    """Return the kind of what a function gives, None where it has no source."""
    return _given(_returned(function, rules, called), rules)


def outputs(
    function: Callable[..., Any],
    rules: Rules,
    called: Called,
    inferred: tuple[np.dtype[Any], ...],
) -> tuple[np.dtype[Any], ...]:
    """Return the dtypes of a function's results.

    Parameters
    ----------
    function, rules, called
        As :func:`cast_source` takes them.
    inferred : tuple of numpy.dtype
        What they are where the source does not tell.
    """
    kinds = _returned(function, rules, called) if rules.numpys else None
    if not isinstance(kinds, tuple):
        kinds = (kinds,) * len(inferred)

    def dtype(kind: Kind, own: np.dtype[Any]) -> np.dtype[Any]:
        # A count of bools alone is one, as NumPy's sum.
        if kind is None or (rules.working.kind == "b" and weak(kind) is int):
            return own
        return np.dtype(weak(kind)) if weak(kind) else rules.result(kind)

    return tuple(map(dtype, kinds, inferred))


def _returned(function: Callable[..., Any], rules: Rules, called: Called) -> Kind:
    source = sources.find(function.__code__)
    if source is None:
        return None
    _, flow = _analysed(function, copy.deepcopy(source.node), rules, called)
    return flow.returned


def _analysed(
    function: Callable[..., Any],
    tree: ast.FunctionDef,
    rules: Rules,
    called: Called,
) -> tuple[Scope, Flow]:
    scope = Scope(tree, sources.outside(function))
    Plain(scope, operators=True).visit(tree)
    kind = strong if rules.bounded else _wide
    flow = Flow(tree, [kind(dtype) for dtype in rules.inputs], scope, called)
    for node in flow.reduced:
        value = ast.unparse(node.args[0])
        message = (
            f"{function.__name__} calls {ast.unparse(node.func)} of {value}, which is "
            "one number, since the function sees one element at a time: compute it of "
            "the whole array before and pass it as an argument, or use "
            f"@xdev.guvectorize\n{shown(function.__code__, node.lineno)}"
        )
        raise TypeError(message)
    return scope, flow


def _wide(dtype: np.dtype[Any]) -> Kind:
    """Return the kind of an input where a signature means compilers' integers."""
    if is_dtype(dtype, "u"):
        return dtype if dtype == UNSIGNED else None
    return np.dtype(np.int64) if is_dtype(dtype, "i") else strong(dtype)


def _given(kind: Kind, rules: Rules) -> Kind:
    """Return the kind of a result in a function that calls this one."""
    if isinstance(kind, tuple):
        return tuple(_given(each, rules) for each in kind)
    return weak(kind) or compiled(kind, rules)


BOUNDS = ("min", "max")
BINARY: dict[Any, Any] = {
    function: kind
    for kind, (_, function) in OPERATORS.items()
    if issubclass(kind, ast.operator)
}
ORDERS = "Lt less lt; LtE less_equal le; Gt greater gt; GtE greater_equal ge; "
COMPARISONS: dict[Any, type[ast.cmpop]] = {
    function: getattr(ast, node)
    for node, numpys, python in map(
        str.split, (ORDERS + "Eq equal eq; NotEq not_equal ne").split(";")
    )
    for function in (getattr(np, numpys), getattr(operator, python))
}


@final
class Plain(ast.NodeTransformer):
    """Writes NumPy's ``where``, and its like, in words that compilers have for numbers.

    Parameters
    ----------
    scope : Scope
        What the names in the source stand for.
    operators : bool
        Whether ``x += y``, and functions that Python has operators for, are written
        with these, and arguments of plain functions that go by name in their places.
    """

    def __init__(self, scope: Scope, *, operators: bool = False) -> None:
        self._scope, self._operators = scope, operators

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Write a condition, a bound, an operator, or arguments in their places."""
        self.generic_visit(node)
        function = self._scope.static(node.func)
        if function is math.ldexp:  # compilers cut its exponent off at 32 bits
            node.func = self._scope.name(node.func, np.ldexp.__name__, np.ldexp)
        if function is np.clip:
            return self._clipped(node)
        found: ast.expr = node
        if function is np.where and len(node.args) == 3 and not node.keywords:  # noqa: PLR2004
            found = ast.IfExp(*node.args)
        elif self._operators and is_plain(function):
            return self._by_place(node, function)
        elif self._operators:
            found = self._operation(node, function)
        return ast.copy_location(found, node)

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
        found = node.args[0]
        for name, of_two in zip(BOUNDS, (np.maximum, np.minimum), strict=True):
            bound = bounds.get(name, ast.Constant(None))
            if not (isinstance(bound, ast.Constant) and bound.value is None):
                called = self._scope.name(node, of_two.__name__, of_two)
                found = ast.copy_location(ast.Call(called, [found, bound], []), node)
        return found

    def _by_place(self, node: ast.Call, function: FunctionType) -> ast.Call:
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        given = function.__defaults__ or ()
        defaults = dict(zip(names[len(names) - len(given) :], given, strict=True))
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

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        """Write what is assigned to a name."""
        if not (self._operators and isinstance(node.target, ast.Name)):
            return node
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        both = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        return ast.copy_location(ast.Assign([node.target], both), node)
