"""A function's source, rewritten so that it computes in NumPy's dtypes."""

from __future__ import annotations

import ast
import copy
import operator
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.ufunc import sources
from xdev.ufunc.casts import Casts
from xdev.ufunc.flow import Flow
from xdev.ufunc.kinds import OPERATORS, UNSIGNED, is_dtype, strong, weak
from xdev.ufunc.parameters import shown
from xdev.ufunc.rules import result_dtype
from xdev.ufunc.scalar import is_plain
from xdev.ufunc.scope import OfNumbers, Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.ufunc.kinds import Kind
    from xdev.ufunc.rules import Rules

    Called = Callable[[Any, tuple[Kind, ...]], tuple[Any, Kind]]


@final
class Widths:
    """Puts casts into a function's source.

    Parameters
    ----------
    function : callable
        The function.
    rules : Rules
        Its inputs' dtypes, and whether a signature made them.
    called : callable
        As :class:`Flow` takes it.
    inner : callable
        As :class:`Casts` takes it.
    inside : bool
        Whether compiled code calls it.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        rules: Rules,
        called: Called,
        inner: Callable[[Any, tuple[np.dtype[Any], ...]], Any],
        *,
        inside: bool,
    ) -> None:
        self._function, self._rules, self._called = function, rules, called
        self._inner, self._inside = inner, inside

    def __call__(self, tree: ast.FunctionDef) -> dict[str, Any]:
        """Rewrite the source; return what it then reads, by name."""
        scope, flow = _analysed(self._function, tree, self._rules, self._called)
        casts = Casts(
            self._function,
            self._rules.inputs,
            flow,
            scope,
            compiled(flow.returned, self._rules.working),
            self._inner,
            bounded=self._rules.bounded,
            inside=self._inside,
        )
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
    return _given(_returned(function, rules, called), rules.working)


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
        As :class:`Widths` takes them.
    inferred : tuple of numpy.dtype
        What they are where the source does not tell.
    """
    kinds = _returned(function, rules, called) if rules.numpys else None
    if not isinstance(kinds, tuple):
        kinds = (kinds,) * len(inferred)
    bools = rules.working.kind == "b"  # a count of bools alone is one, as NumPy's sum
    return tuple(
        dtype
        if kind is None or (bools and weak(kind) is int)
        else np.dtype(number)
        if (number := weak(kind))
        else result_dtype(kind, rules.working)
        for kind, dtype in zip(kinds, inferred, strict=True)
    )


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
    OfNumbers(scope).visit(tree)
    _Plain(scope).visit(tree)
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


def _given(kind: Kind, working: np.dtype[Any]) -> Kind:
    """Return the kind of a result in a function that calls this one."""
    if isinstance(kind, tuple):
        return tuple(_given(each, working) for each in kind)
    return weak(kind) or compiled(kind, working)


def compiled(kind: Kind, working: np.dtype[Any]) -> Kind:
    """Return the kind in which compiled code returns a result."""
    if isinstance(kind, tuple):
        return tuple(compiled(each, working) for each in kind)
    if kind is None:
        return None
    if weak(kind):
        return np.dtype(weak(kind))
    return strong(result_dtype(kind, working))


BINARY: dict[Any, Any] = {function: kind for kind, (_, function) in OPERATORS.items()}
ORDERS = {
    ast.Lt: ("lt", "less"),
    ast.LtE: ("le", "less_equal"),
    ast.Gt: ("gt", "greater"),
    ast.GtE: ("ge", "greater_equal"),
    ast.Eq: ("eq", "equal"),
    ast.NotEq: ("ne", "not_equal"),
}
COMPARISONS: dict[Any, type[ast.cmpop]] = {
    function: kind
    for kind, (python, numpys) in ORDERS.items()
    for function in (getattr(operator, python), getattr(np, numpys))
}


@final
class _Plain(ast.NodeTransformer):
    """Writes ``x += y``, and functions that Python has operators for, with these.

    And the arguments of plain functions that go by name in their places.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        function = self._scope.static(node.func)
        if self._scope.builtin(node.func) == "pow":
            function = operator.pow
        if is_plain(function):
            return self._by_place(node, function)
        if not isinstance(function, np.ufunc | BuiltinFunctionType):
            return node
        found: ast.expr = node
        match node:
            case ast.Call(args=[left, right], keywords=[]) if function in COMPARISONS:
                found = ast.Compare(left, [COMPARISONS[function]()], [right])
            case ast.Call(args=[left, right], keywords=[]) if function in BINARY:
                found = ast.BinOp(left, BINARY[function](), right)
        return ast.copy_location(found, node)

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
        if not isinstance(node.target, ast.Name):
            return node
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        both = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        return ast.copy_location(ast.Assign([node.target], both), node)
