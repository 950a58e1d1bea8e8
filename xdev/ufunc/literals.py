"""A function's source, rewritten so that it computes in NumPy's dtypes.

Compilers compute integers in 64 bits, so results get casts. And literals inside a
function are weak, as in NEP 50: ``x * 3`` keeps x's dtype. Numba takes a literal for
int64 or float64, and so computes in float64 what was meant in float32. So each number
that is an operand, is assigned, returned or compared becomes a constant of the dtype
that NumPy would give it. Python numbers that a name outside the function stands for
(``math.pi``, a module's ``SCALE``) count as literals.

Where no more is known of what a float stands beside, its dtype is that of the inputs'
result type; integers are the compiler's there.
"""

from __future__ import annotations

import ast
import copy
import math
from contextlib import suppress
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple, cast, final

import numpy as np

from xdev.compile.errors import KEEPERS
from xdev.ufunc import kinds, sources
from xdev.ufunc.flow import Flow
from xdev.ufunc.inputs import shown
from xdev.ufunc.rewriting import Plain
from xdev.ufunc.sources import FunctionScope, inside

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.ufunc.kinds import Called, Kind, Rules

    #: What calls give, as :class:`Flow` takes it.
    Calling = Callable[[Any, tuple[Kind, ...]], tuple[Called, Any] | None]
    Rewriting = Callable[[ast.FunctionDef, FunctionScope], object]


NUMBAS = -(2**63), 2**64 - 1  # the integers that Numba has


class Typed(NamedTuple):
    """A function with typed literals, and what it returns, None: its source is mute."""

    function: Callable[..., Any]
    returned: Kind = None


def analysed(
    function: Callable[..., Any],
    source: ast.FunctionDef,
    rules: Rules,
    called: Calling,
    also: Rewriting | None = None,
) -> tuple[ast.FunctionDef, FunctionScope, Flow]:
    """Return a source in plain words, and what its names and expressions are.

    It is refused, with the line, where it may read a name before that is assigned, or
    reduces a number.
    """
    code, tree = function.__code__, copy.deepcopy(source)
    tree.decorator_list, tree.args.defaults = [], []  # nothing of them is computed
    scope = FunctionScope(tree, sources.outside(function))
    if also:
        also(tree, scope)
    Plain(scope, operators=bool(rules.inputs)).visit(tree)
    own = {*code.co_varnames, *code.co_cellvars}
    flow = Flow(tree, own, rules.kinds, scope, called)
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
    return tree, scope, flow


def _refuse_without_source(function: Callable[..., Any], rules: Rules) -> None:
    """Refuse integers that compilers widen where there is no source to rewrite."""
    if rules.needs_source:
        inputs = ", ".join(map(str, rules.inputs))
        code = function.__code__
        raise TypeError(
            f"{function.__name__}({inputs}): no source was found at "
            f"{code.co_filename}:{code.co_firstlineno}, by which bools and integers "
            f"have NumPy's dtypes; compilers would give other numbers. {KEEPERS}, "
            "cast the arguments to int64, or give signatures, as "
            f'@vectorize(["int64({inputs})"]), which compute in 64 bits'
        )


def returned(function: Callable[..., Any], rules: Rules, called: Calling) -> Kind:
    """Return the kind of what a function gives, None where it has no source."""
    source = sources.find(function.__code__)
    if source is None:
        return None
    *_, flow = analysed(function, source.node, rules, called)
    return rules.compiled(flow.returned, keeps_weak=True)


def typed(
    function: Callable[..., Any],
    rules: Rules,
    replace: Callable[[object], object],
    also: Rewriting | None = None,
    called: Calling = lambda _, __: None,
) -> Typed:
    """Return the function with its literals typed.

    It keeps its name, line numbers, defaults, globals and closure.

    Parameters
    ----------
    function : callable
        A Python function; where its source cannot be had it is used as it is.
    rules : Rules
        Its inputs' dtypes, and their result type.
    replace : callable
        Turns the value of an outside name into what compiled code uses instead.
    also : callable, optional
        ``also(tree, scope)`` rewrites the source before.
    called : callable, optional
        What calls give, as :class:`Flow` takes it.

    Raises
    ------
    TypeError
        It may read a name before it is assigned.
    """
    code = function.__code__
    source = sources.find(code)
    if source is None:
        _refuse_without_source(function, rules)
        outside = sources.outside(function)
        values = inside(outside)
        swapped = {k: v for k in outside if (v := replace(values[k])) is not outside[k]}
        return Typed(sources.rebuilt(function, code, swapped))
    tree, scope, flow = analysed(function, source.node, rules, called, also)
    _Rewriter(function, scope, rules, replace, flow).generic_visit(tree)
    new = sources.compiled(sources.FunctionSource(tree, source.imports), code)
    return Typed(
        sources.rebuilt(function, new, scope.constants),
        flow.returned if rules.inputs else None,
    )


@final
class _Rewriter(ast.NodeTransformer):
    """Puts casts into a function's source, and names of typed constants.

    What it returns for an expression of a known kind computes exactly that. Where
    compilers' integers are meant, no kind is known to it.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        scope: FunctionScope,
        rules: Rules,
        replace: Callable[[object], object],
        flow: Flow,
    ) -> None:
        self._function, self._scope, self._rules = function, scope, rules
        self._replace, self._flow = replace, flow
        self._results = rules.compiled(flow.returned) if rules.inputs else None
        self._working = kinds.strong(rules.working)
        self._indices = False  # whether numbers stay as they are: in indices

    def _kind(self, node: ast.expr) -> Kind:
        return self._flow.kind(node) if self._rules.inputs else None

    def _as(self, node: ast.expr, kind: Kind) -> ast.expr:
        """Return a node in a kind, as far as both are known."""
        if isinstance(node, ast.IfExp):
            node.test = self.visit(node.test)
            node.body, node.orelse = (
                self._as(node.body, kind),
                self._as(node.orelse, kind),
            )
            return node
        if isinstance(node, ast.Tuple) and isinstance(kind, tuple):
            pairs = zip(node.elts, kind, strict=True)
            node.elts = [self._as(each, own) for each, own in pairs]
            return node
        own, kind = self._kind(node), kinds.native(kind)
        if kinds.is_number(own):
            self._refuse(node, kind)
            return self._constant(node, kind)
        node, own = self._operand(node), kinds.native(own)
        if not kinds.is_dtype(kind, "iufc") or own is None or kinds.same(own, kind):
            return node
        return self._cast(node, kind if kinds.is_dtype(own, "c") else kinds.real(kind))

    def _beside(self, node: ast.expr, kind: Kind) -> ast.expr:
        """Return an operand of what has a kind."""
        new = self._as(node, kind)
        # In loops compilers begin with the types of names before them: unsigned
        # integers that turn signed there would become floats.
        signed = kinds.is_dtype(kind, "i") and kinds.is_dtype(self._kind(node), "i")
        dtypes = self._flow.dtypes_of(node) if signed else ()
        return (
            self._cast(new, kinds.INT64)
            if any(kinds.is_dtype(d, "u") for d in dtypes)
            else new
        )

    def _operand(self, node: ast.expr) -> ast.expr:
        """Return a node rewritten, a float in the inputs' result type."""
        value = self._scope.number(node)
        if value is None or self._indices:
            return cast("ast.expr", self.visit(node))
        if type(value) is int:
            return node
        dtype = self._working
        if dtype.kind == "c" and type(value) is float:
            dtype = kinds.real(dtype)
        return self._named(node, value, np.result_type(dtype, value))

    def _constant(self, node: ast.expr, kind: Kind) -> ast.expr:
        """Return the name of a number in a dtype, or the node where it has none."""
        number = self._kind(node)
        whole = (
            type(number) is int
            and kinds.is_dtype(kind, "iu")
            and kinds.fits(number, kind)
        )
        if whole or (kinds.is_number(number) and kinds.is_dtype(kind, "fc")):
            dtype = kind if type(number) is complex else kinds.real(kind)
            if (new := self._named(node, number, dtype)) is not node:
                return new
        return self._operand(node)

    def _named(self, node: ast.expr, value: complex, dtype: np.dtype[Any]) -> ast.expr:
        """Return a constant's name, the node where the dtype is too small for it."""
        with suppress(OverflowError), np.errstate(over="ignore"):
            constant = dtype.type(value)
            if np.isfinite(constant) or type(value) is int or not np.isfinite(value):
                return self._scope.name(node, f"{dtype}_{value}", constant)
        return node

    def _cast(self, node: ast.expr, dtype: np.dtype[Any]) -> ast.expr:
        name = self._scope.name(node, str(dtype), dtype.type)
        return ast.copy_location(ast.Call(name, [node], []), node)

    def _narrowed(self, node: ast.expr, kind: Kind) -> ast.expr:
        """Return a result of compilers' 64 bits in its dtype."""
        narrow = kinds.is_dtype(kind, "iu") and not kinds.same(kind, kinds.INT64)
        return self._cast(node, kind) if narrow else node

    def _refuse(self, node: ast.expr, kind: Kind) -> None:
        """Refuse a number that is none of an integer dtype, as NumPy does."""
        value = self._kind(node)
        if (
            type(value) is not int
            or not kinds.is_dtype(kind, "iu")
            or kinds.fits(value, kind)
        ):
            return
        if self._rules.bounded:
            function, taken = self._function, ", ".join(map(str, self._rules.inputs))
            raise OverflowError(
                f"Python integer {value} out of bounds for {kind} in "
                f"{function.__name__}: cast an argument to a larger dtype, or give a "
                f"signature, as int64({taken})\n"
                f"{shown(function.__code__, node.lineno)}"
            )

    def visit_Return(self, node: ast.Return) -> ast.Return:
        """Give what is returned its dtype."""
        if node.value is not None:
            node.value = self._as(node.value, self._results)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Leave alone what a function inside returns."""
        results, self._results = self._results, None
        self.generic_visit(node)
        self._results = results
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        """Give a number the dtype that the name has elsewhere."""
        node.value = self._assigned(node.targets, node.value)
        return node

    def _assigned(self, targets: list[ast.expr], node: ast.expr) -> ast.expr:
        match targets, node:
            case [ast.Tuple(elts=names)], ast.Tuple(elts=values) if len(names) == len(
                values
            ):
                pairs = zip(names, values, strict=True)
                node.elts = [self._assigned([name], value) for name, value in pairs]
                return node
        number = self._kind(node)
        dtypes = {d for target in targets for d in self._flow.dtypes_of(target)}
        if not dtypes and kinds.is_number(number):
            dtypes = {kinds.native(number)}
        whole = type(number) is int and all(
            kinds.is_dtype(dtype, "iu") for dtype in dtypes
        )
        if whole and len(dtypes) > 1:
            dtypes = {kinds.INT64}
        return self._constant(node, *dtypes if len(dtypes) == 1 else (None,))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AugAssign:
        """Type a float that is added to what is no name."""
        node.target, node.value = self.visit(node.target), self._operand(node.value)
        return node

    def visit_BinOp(self, node: Any) -> ast.expr:
        """Compute in the result's kind."""
        kind = self._kind(node)
        if self._scope.number(node) is not None:
            return cast("ast.expr", node)
        if isinstance(node, ast.UnaryOp):
            node.operand = self._beside(node.operand, kind)
            return self._narrowed(node, kind)
        node.left = self._beside(node.left, kind)
        exponent = isinstance(node.op, ast.Pow) and not kinds.same(kind, kinds.UNSIGNED)
        if exponent and kinds.weak(self._kind(node.right)) is int:
            self._refuse(node.right, kind)
            node.right = self._operand(node.right)  # compilers multiply, in int64
        else:
            node.right = self._beside(node.right, kind)
        return self._narrowed(node, kind)

    visit_UnaryOp = visit_BinOp  # noqa: N815 - Python's

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Compare integers exactly, others in the dtype that all fit in."""
        parts = [node.left, *node.comparators]
        own = [self._kind(each) for each in parts]
        if kinds.mixed(*own) and all(kinds.is_dtype(kind, "iu") for kind in own):
            return self._exact(node, [self._operand(each) for each in parts])
        common = reduce(partial(kinds.operated, np.maximum), own)
        write = self._bound if kinds.is_dtype(common, "iu") else self._beside
        node.left, *node.comparators = [write(each, common) for each in parts]
        return node

    def _bound(self, node: ast.expr, dtype: np.dtype[Any]) -> ast.expr:
        """Return what integers are compared with: infinity where Numba has no such."""
        number = self._kind(node)
        if type(number) is int and not NUMBAS[0] <= number <= NUMBAS[1]:
            return self._scope.name(node, "endless", math.copysign(math.inf, number))
        return self._constant(node, dtype)

    def _exact(self, node: ast.Compare, parts: list[ast.expr]) -> ast.expr:
        """Return a comparison by NumPy's functions, pair by pair.

        For uint64 and a signed integer the operators of compilers take int64, in which
        half of uint64 is negative.
        """
        tests = list[ast.expr]()
        for op, *pair in zip(node.ops, parts[:-1], parts[1:], strict=True):
            ufunc, _ = kinds.OPERATORS[type(op)]
            name = self._scope.name(node, ufunc.__name__, ufunc)
            tests.append(ast.copy_location(ast.Call(name, pair, []), node))
        both = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        return ast.copy_location(both, node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Give both answers the dtype that they share."""
        return self._as(node, self._kind(node))

    def visit_Tuple(self, node: ast.Tuple) -> ast.Tuple:
        """Give numbers one dtype, by which compilers take any index."""
        items = self._kind(node) or ()
        numbers = bool(items) and all(map(kinds.is_number, items))
        node.elts = [
            self._as(each, kinds.part(items)) if numbers else self._operand(each)
            for each in node.elts
        ]
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Give arguments the dtypes that they are taken in."""
        kind = self._kind(node)
        name, function = self._scope.builtin(node.func), self._scope.static(node.func)
        known = self._flow.taken.get(node) if self._rules.inputs else None
        taken, ours = known or (None, None)
        if ours is not None:
            words = "_".join([ast.unparse(node.func), *map(str, taken or ())])
            node.func = self._scope.name(node.func, words, ours())
        else:
            node.func = self.visit(node.func)
        if taken is not None:
            pairs = zip(node.args, taken, strict=False)  # defaults have no argument
            node.args = [self._as(each, own) for each, own in pairs]
        else:
            exact = name == "range" or isinstance(function, type)
            own = self._index if exact else self._operand
            node.args = [own(each) for each in node.args]
        for word in node.keywords:
            word.value = self._index(word.value)
        if (
            kind is int or kind is float
        ):  # not by ==, by which NumPy's dtypes equal these
            return self._cast(node, kinds.native(kind))
        return self._narrowed(node, kind) if name in kinds.EXTREMES else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        """Leave the literals of indices alone."""
        node.value, node.slice = self.visit(node.value), self._index(node.slice)
        return node

    def _index(self, node: ast.expr) -> ast.expr:
        """Return a node rewritten whose literals stay as they are."""
        before, self._indices = self._indices, True
        new = self.visit(node)
        self._indices = before
        return cast("ast.expr", new)

    def visit_Name(self, node: ast.Name | ast.Attribute) -> ast.expr:
        """Put in what compiled code uses instead of an outside name."""
        new = self._replace(self._scope.static(node))
        if new is not self._scope.value(node):
            return self._scope.name(node, ast.unparse(node).replace(".", "_"), new)
        return cast("ast.expr", self.generic_visit(node))

    visit_Attribute = visit_Name  # noqa: N815 - Python's
