"""A function's source, rewritten so that it computes in NumPy's dtypes.

Compilers compute integers in 64 bits, so results get casts. And literals inside a
function are weak, as in NEP 50: ``x * 3`` keeps x's dtype. Numba takes a literal for
int64 or float64, and so computes in float64 what was meant in float32. So each number
that is an operand, is assigned, returned or compared becomes a constant of the dtype
that NumPy would give it. Python numbers that a name outside the function stands for
(``math.pi``, a module's ``SCALE``) count as literals.

That dtype is the inputs' result type, where no more is known of what a literal stands
beside.
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
from xdev.compile.formulas import is_half
from xdev.ufunc import sources
from xdev.ufunc.flow import Flow
from xdev.ufunc.inputs import shown
from xdev.ufunc.kinds import (
    DIVISION,
    EXTREMES,
    OPERATORS,
    UNSIGNED,
    Kind,
    compiled,
    fits,
    in_caller,
    inputs,
    is_dtype,
    joined,
    mixed,
    operated,
    real,
    same,
    weak,
)
from xdev.ufunc.rewriting import Plain
from xdev.ufunc.sources import WEAK, FunctionScope, inside

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.ufunc.kinds import Rules

    Called = Callable[[Any, tuple[Kind, ...]], tuple[Any, Kind]]
    Rewriting = Callable[[ast.FunctionDef, FunctionScope], object]

BITWISE = (ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)
NUMBAS = -(2**63), 2**64 - 1  # the integers that Numba has
INTEGER_TOO = frozenset({"max", "min", "pow", "atan2", "hypot", "fmod", "copysign"})
INT64 = np.dtype(np.int64)
PYTHONS: dict[Any, np.dtype[Any]] = {
    int: INT64,
    float: np.dtype(np.float64),
}  # compilers' for Python's numbers


class Typed(NamedTuple):
    """A function with typed literals, the dtype that it works in, and what it returns.

    That is None where the source does not tell.
    """

    function: Callable[..., Any]
    working: np.dtype[Any]
    returned: Kind = None


def analysed(
    function: Callable[..., Any],
    source: ast.FunctionDef,
    rules: Rules,
    called: Called,
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
    flow = Flow(tree, own, inputs(rules), scope, called)
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


def require_source(function: Callable[..., Any], rules: Rules) -> None:
    """Refuse integers that compilers widen where there is no source to rewrite."""
    if rules.needs_source and not sources.find(function.__code__):
        inputs = ", ".join(map(str, rules.inputs))
        code = function.__code__
        raise TypeError(
            f"{function.__name__}({inputs}): no source was found at "
            f"{code.co_filename}:{code.co_firstlineno}, by which bools and integers "
            f"have NumPy's dtypes; compilers would give other numbers. {KEEPERS}, "
            "cast the arguments to int64, or give signatures, as "
            f'@vectorize(["int64({inputs})"]), which compute in 64 bits'
        )


def returned(function: Callable[..., Any], rules: Rules, called: Called) -> Kind:
    """Return the kind of what a function gives, None where it has no source."""
    source = sources.find(function.__code__)
    if source is None:
        return None
    *_, flow = analysed(function, source.node, rules, called)
    return in_caller(flow.returned, rules)


def typed(
    function: Callable[..., Any],
    rules: Rules,
    replace: Callable[[object], object],
    also: Rewriting | None = None,
    called: Called = lambda _, __: (None, None),
) -> Typed:
    """Return the function with its literals typed.

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

    Returns
    -------
    Typed
        The function keeps its name, line numbers, defaults, globals and closure.

    Raises
    ------
    TypeError
        It may read a name before it is assigned.
    """
    code, working = function.__code__, rules.working
    source = sources.find(code)
    require_source(function, rules)
    if source is None:
        outside = sources.outside(function)
        values = inside(code, outside)
        swapped = {k: v for k in outside if (v := replace(values[k])) is not outside[k]}
        return Typed(sources.rebuilt(function, code, swapped), _counted(working))
    tree, scope, flow = analysed(function, source.node, rules, called, also)
    rewriter = _Rewriter(function, scope, rules, replace, flow)
    rewriter.generic_visit(tree)
    new = sources.compiled(sources.FunctionSource(tree, source.imports), code)
    return Typed(
        sources.rebuilt(function, new, scope.constants),
        _counted(working) if rewriter.counts else working,
        flow.returned if rules.inputs else None,
    )


def _counted(working: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of counts: bools are counted in int64."""
    return np.dtype(np.int64) if working.kind == "b" else working


@final
class _Rewriter(ast.NodeTransformer):
    """Puts casts into a function's source, and names of typed constants.

    Where compilers' integers are meant, no kind is known to it.
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
        self._results = compiled(flow.returned, rules) if rules.inputs else None
        half = is_half(rules.working)
        self._working = np.dtype(np.float32) if half else rules.working
        #: Numbers that stay as they are: bits, exponents, parts of indices.
        self._kept, self._indices = set[ast.expr](), False
        self._compared = set[ast.expr]()
        self.counts = False  # whether an integer literal takes part in arithmetic

    def _operand(self, node: ast.expr) -> ast.expr:
        """Return the constant of a literal beside values of the inputs' result type."""
        value = self._scope.number(node)
        if value is None and isinstance(node, ast.Tuple):
            node.elts = [self._operand(each) for each in node.elts]
        elif value is None or self._indices or node in self._kept:
            node = cast("ast.expr", self.visit(node))
        elif (constant := self._typed(value)) is not None:
            self.counts |= constant.dtype.kind in "iu" and node not in self._compared
            return self._scope.name(node, f"{constant.dtype}_{value}", constant)
        elif type(value) is int and self._too_large(value):
            if node in self._compared and not NUMBAS[0] <= value <= NUMBAS[1]:
                endless = math.copysign(math.inf, value)
                return self._scope.name(node, "endless", endless)
        elif isinstance(node, ast.UnaryOp):
            node.operand = self._operand(node.operand)
        return node  # with its sign, for which unsigned dtypes have no place

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
        if not dtypes and type(number) in PYTHONS:
            dtypes = {PYTHONS[type(number)]}
        if all(is_dtype(dtype, "iu") for dtype in dtypes) and type(number) is int:
            dtypes = dtypes if len(dtypes) == 1 else {INT64}
        return self._constant(node, *dtypes if len(dtypes) == 1 else (None,))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AugAssign:
        """Treat ``x += 1`` as ``x + 1``."""
        both = ast.BinOp(ast.Constant(None), node.op, node.value)
        node.value = self._computed(both, None).right
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Leave alone what a function inside returns."""
        results, self._results = self._results, None
        self.generic_visit(node)
        self._results = results
        return node

    def visit_BinOp(self, node: Any) -> ast.expr:
        """Give the result its dtype."""
        kind = self._kind(node)
        return self._narrowed(self._computed(node, kind), kind)

    visit_UnaryOp = visit_BinOp  # noqa: N815 - Python's

    def _computed(self, node: Any, kind: Kind) -> Any:
        """Return an operation of a kind, in compilers' 64 bits."""
        if self._scope.number(node) is not None:
            return node
        if isinstance(node, ast.UnaryOp):
            node.operand = self._beside(node.operand, kind)
            return node
        if isinstance(node.op, BITWISE) and self._working.kind not in "iu":
            self._kept |= {node.left, node.right}
        node.left = self._beside(node.left, kind)
        multiplied = isinstance(node.op, ast.Pow) and not same(kind, UNSIGNED)
        exponent = type(self._scope.number(node.right)) is int
        if multiplied and (exponent or weak(self._kind(node.right)) is int):
            self._refuse(node.right, kind)
            self._kept.add(node.right)
            self.counts |= exponent
            node.right = self._operand(node.right)  # compilers multiply, in int64
        else:
            node.right = self._beside(node.right, kind)
        return node

    def _beside(self, node: ast.expr, kind: Kind) -> ast.expr:
        """Return an operand of what has a kind."""
        new = self._as(node, kind)
        # In loops compilers begin with the types of names before them: unsigned
        # integers that turn signed there would become floats.
        signed = is_dtype(kind, "i") and is_dtype(self._kind(node), "i")
        dtypes = self._flow.dtypes_of(node) if signed else ()
        return self._cast(new, INT64) if any(is_dtype(d, "u") for d in dtypes) else new

    def _as(self, node: ast.expr, kind: Kind) -> ast.expr:
        """Return a node in a kind, as far as it is known."""
        own = self._kind(node)
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
        python = self._kind(node) is int and is_dtype(kind, "iu")
        node = self._operand(node)
        return self._cast(node, INT64) if python else node

    def _refuse(self, node: ast.expr, kind: Kind) -> None:
        """Refuse a number that is none of an integer dtype, as NumPy does."""
        value = self._kind(node)
        if type(value) is not int or not is_dtype(kind, "iu") or fits(value, kind):
            return
        if self._rules.bounded:
            function, taken = self._function, ", ".join(map(str, self._rules.inputs))
            raise OverflowError(
                f"Python integer {value} out of bounds for {kind} in "
                f"{function.__name__}: cast an argument to a larger dtype, or give a "
                f"signature, as int64({taken})\n"
                f"{shown(function.__code__, node.lineno)}"
            )

    def _constant(self, node: ast.expr, kind: Kind) -> ast.expr:
        """Return the name of a number in a dtype, or the node where it has none."""
        number = self._kind(node)
        dtype = INT64 if weak(kind) is int else kind
        whole = type(number) is int and is_dtype(dtype, "iu") and fits(number, dtype)
        if whole or (type(number) in WEAK and is_dtype(dtype, "fc")):
            if type(number) is not complex:
                dtype = real(dtype)
            with suppress(OverflowError), np.errstate(over="ignore"):
                constant = dtype.type(number)
                exact = type(number) is int or not np.isfinite(number)
                if exact or np.isfinite(constant):
                    return self._scope.name(node, f"{dtype}_{number}", constant)
        return self._operand(node)

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
        self._compared.update(parts)
        kinds = [self._kind(part) for part in parts]
        if mixed(*kinds) and all(is_dtype(kind, "iu") for kind in kinds):
            return self._exact(node, [self._operand(part) for part in parts])
        common = reduce(partial(operated, np.maximum), kinds)
        if is_dtype(common, "fc") or weak(common) in PYTHONS:
            node.left, *node.comparators = [self._beside(p, common) for p in parts]
        elif is_dtype(common, "iu"):
            node.left, *node.comparators = [self._constant(p, common) for p in parts]
        else:
            node.left, *node.comparators = map(self._operand, parts)
        return node

    def _exact(self, node: ast.Compare, parts: list[ast.expr]) -> ast.expr:
        """Return a comparison by NumPy's functions, pair by pair.

        For uint64 and a signed integer the operators of compilers take int64, in which
        half of uint64 is negative.
        """
        tests = list[ast.expr]()
        for op, *pair in zip(node.ops, parts[:-1], parts[1:], strict=True):
            ufunc, _ = OPERATORS[type(op)]
            name = self._scope.name(node, ufunc.__name__, ufunc)
            tests.append(ast.copy_location(ast.Call(name, pair, []), node))
        both = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        return ast.copy_location(both, node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Give both answers the dtype that they share."""
        kind = self._kind(node)
        node.test = self.visit(node.test)
        node.body, node.orelse = self._as(node.body, kind), self._as(node.orelse, kind)
        return node

    def _extreme(self, node: ast.Call, kind: Kind) -> ast.expr:
        """Return ``max`` or ``min`` of a dtype, which compares Python's integers too.

        A negative one is below all of uint64.
        """
        if not any(self._kind(each) is int for each in node.args):
            node.args = [self._as(each, kind) for each in node.args]
            return node
        unsigned = same(kind, UNSIGNED)
        for k, each in enumerate(node.args):
            python = self._kind(each) is int
            node.args[k] = self._as(each, kind if unsigned and not python else INT64)
            if unsigned and python:
                zero = self._scope.name(each, "int64_0", INT64.type(0))
                above = ast.Call(ast.Name("max", ast.Load()), [node.args[k], zero], [])
                node.args[k] = self._cast(ast.copy_location(above, each), kind)
        return self._narrowed(node, kind)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Give arguments the dtypes that they are taken in."""
        kind, taken = self._kind(node), self._flow.taken.get(node)
        name, function = self._scope.builtin(node.func), self._scope.static(node.func)
        if not self._rules.inputs:
            return self._called(node, function)
        if taken is not None:
            dtypes, device_function = taken
            pairs = zip(node.args, dtypes, strict=False)  # defaults have no argument
            node.args = [self._as(each, dtype) for each, dtype in pairs]
            if device_function is None:
                node.func = self.visit(node.func)
            else:
                words = "_".join([ast.unparse(node.func), *map(str, dtypes)])
                node.func = self._scope.name(node.func, words, device_function())
            return node
        common = kind if name in EXTREMES or function is math.gcd else None
        if name == DIVISION and isinstance(kind, tuple):
            common = kind[0]
        if name in EXTREMES:
            self._refuse_extremes(node)
            if is_dtype(kind, "iu"):
                return self._extreme(node, kind)
        if is_dtype(common, "iufc"):
            node.args = [self._as(each, common) for each in node.args]
            return node
        python = kind is int or kind is float  # NumPy's dtypes equal these
        self._kept.update(node.args if python else ())
        new = self._called(node, function)
        return self._cast(new, PYTHONS[kind]) if python else new

    def _refuse_extremes(self, node: ast.Call) -> None:
        """Refuse numbers that are none of the other arguments' dtype."""
        strong = [*filter(is_dtype, map(self._kind, node.args))]
        common = reduce(joined, strong) if strong else None
        for each in node.args:
            if self._scope.number(each) is not None:
                self._refuse(each, common)

    def _called(self, node: ast.Call, function: Any) -> ast.Call:
        """Type floats among the arguments; integers only where they are values."""
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        whole = name == "range" or isinstance(function, type)
        node.func = self.visit(node.func)
        for k, each in enumerate(node.args):
            index = type(self._scope.number(each)) is int and name not in INTEGER_TOO
            own = self._index if whole or index else self._operand
            node.args[k] = own(each)
        for word in node.keywords:
            word.value = self._index(word.value)
        return node

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

    def _kind(self, node: ast.expr) -> Kind:
        return self._flow.kind(node) if self._rules.inputs else None

    def _too_large(self, value: int) -> bool:
        """Say whether an integer is none of the dtype that the inputs have."""
        whole = self._rules.integers and self._working.kind in "iu"
        return whole and not fits(value, self._working)

    def _typed(self, value: complex) -> Any:
        """Return the number in the dtype that NEP 50 gives it, None to leave it."""
        if isinstance(value, int) and not self._rules.integers:
            return None
        beside = self._working
        if beside.kind == "c" and not isinstance(value, complex):
            beside = real(beside)
        try:
            dtype = np.result_type(beside, value)
            with np.errstate(over="ignore"):
                constant = dtype.type(value)
        except OverflowError:  # too large for the dtype: Numba's own will do
            return None
        return constant if np.isfinite(constant) or not np.isfinite(value) else None
