"""A function's source in words that compilers have, and what its values are."""

from __future__ import annotations

import ast
import copy
import math
import operator
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.ufunc import sources
from xdev.ufunc.flow import Flow
from xdev.ufunc.kinds import OPERATORS, UNSIGNED, Kind, is_dtype, strong, weak
from xdev.ufunc.parameters import shown
from xdev.ufunc.scalar import is_plain
from xdev.ufunc.sources import Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.ufunc.kinds import Rules

    Called = Callable[[Any, tuple[Kind, ...]], tuple[Any, Kind]]


def analysed(
    function: Callable[..., Any],
    tree: ast.FunctionDef,
    rules: Rules,
    called: Called,
) -> tuple[Scope, Flow]:
    """Write a source in plain words; return what its names and expressions are.

    Parameters
    ----------
    function, tree, rules
        The function, its source, and its inputs' dtypes.
    called : callable
        As :class:`Flow` takes it.

    Raises
    ------
    TypeError
        It may read a name before it is assigned, or reduces a number; the text has the
        line.
    """
    code = function.__code__
    scope = Scope(tree, sources.outside(function))
    Plain(scope, operators=bool(rules.inputs)).visit(tree)
    kind = strong if rules.bounded else _wide
    flow = Flow(tree, code, [kind(dtype) for dtype in rules.inputs], scope, called)
    for name in flow.unassigned:
        raise TypeError(
            f"{function.__name__} may read {name.id!r} before it is assigned, where "
            "compiled code has any value: assign it before the condition, or on each "
            f"way to this line\n{shown(code, name.lineno)}"
        )
    for node in flow.reduced if rules.inputs else ():
        value = ast.unparse(node.args[0])
        raise TypeError(
            f"{function.__name__} calls {ast.unparse(node.func)} of {value}, which is "
            "one number, since the function sees one element at a time: compute it of "
            "the whole array before and pass it as an argument, or use "
            f"@xdev.guvectorize\n{shown(code, node.lineno)}"
        )
    return scope, flow


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
        raise TypeError(
            f"{function.__name__}({inputs}): no source was found at "
            f"{code.co_filename}:{code.co_firstlineno}, by which bools and integers "
            "have NumPy's dtypes; compilers would give other numbers. Put the function "
            "into a file, use IPython or the shell of Python 3.13 or later, which keep "
            "sources, cast the arguments to int64, or give signatures, as "
            f'@vectorize(["int64({inputs})"]), which compute in 64 bits'
        )


def returned(function: Callable[..., Any], rules: Rules, called: Called) -> Kind:
    """Return the kind of what a function gives, None where it has no source."""
    source = sources.find(function.__code__)
    if source is None:
        return None
    _, flow = analysed(function, copy.deepcopy(source.node), rules, called)
    return _given(flow.returned, rules)


def outputs(
    kinds: Kind, rules: Rules, inferred: tuple[np.dtype[Any], ...]
) -> tuple[np.dtype[Any], ...]:
    """Return the dtypes of a function's results.

    Parameters
    ----------
    kinds : kind
        What the source tells that it returns, None where it does not.
    rules : Rules
        The function's.
    inferred : tuple of numpy.dtype
        What the results are then.
    """
    if not isinstance(kinds, tuple):
        kinds = (kinds,) * len(inferred)

    def dtype(kind: Kind, own: np.dtype[Any]) -> np.dtype[Any]:
        # A count of bools alone is one, as NumPy's sum.
        if kind is None or (rules.working.kind == "b" and weak(kind) is int):
            return own
        return np.dtype(weak(kind)) if weak(kind) else rules.result(kind)

    return tuple(map(dtype, kinds, inferred))


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


def compiled(kind: Kind, rules: Rules) -> Kind:
    """Return the kind in which compiled code returns a result."""
    if isinstance(kind, tuple):
        return tuple(compiled(each, rules) for each in kind)
    if kind is None:
        return None
    return np.dtype(weak(kind)) if weak(kind) else strong(rules.result(kind))


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
