"""A function's source, rewritten so that it computes in NumPy's dtypes.

Compilers compute integers in 64 bits, so results get casts. And literals inside a
function are weak, as in NEP 50: ``x * 3`` keeps x's dtype. Numba takes a literal for
int64 or float64, and so computes in float64 what was meant in float32. So each number
that is an operand, is assigned, returned or compared becomes a constant of the dtype
that NumPy would give it. Python numbers that a name outside the function stands for
(``math.pi``, a module's ``SCALE``) count as literals.

Where no more is known of what a float stands beside, its dtype is that of the inputs'
result type; integers are the compiler's there.

Each rewriter changes the tree of a function, and puts values into its scope.
"""

from __future__ import annotations

import ast
import copy
import inspect
import math
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np

from xdev import atomic
from xdev.compile.errors import KEEPERS
from xdev.compile.grid import checked
from xdev.ufunc import kinds, sources
from xdev.ufunc.flow import Flow
from xdev.ufunc.sources import FunctionScope, inside, is_plain, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xdev.ufunc.kinds import Called, Kind, Rules

    #: What calls give, as :class:`Flow` takes it.
    Calling = Callable[[Any, tuple[Kind, ...]], tuple[Called, Any] | None]
    Rewriting = Callable[[ast.FunctionDef, FunctionScope], object]


#: Functions that give an integer itself; those of compilers compute in float64.
ROUNDINGS = math.ceil, math.floor, math.trunc
NUMBAS = -(2**63), 2**64 - 1  # the integers that Numba has


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
    for node in ast.walk(tree):
        if isinstance(node, ast.Match):
            text = "has a match, which compiled code does not: write if and elif"
            raise refusal(function, node.lineno, text)
    scope = FunctionScope(tree, sources.outside(function))
    if also:
        also(tree, scope)
    Plain(scope, operators=bool(rules.inputs)).visit(tree)
    own = {*code.co_varnames, *code.co_cellvars}
    flow = Flow(tree, own, rules.kinds, scope, called)
    for name in flow.unassigned:
        text = f"may read {name.id!r} before it is assigned, where compiled code has "
        text += "any value: assign it before the condition, or on each way to this line"
        raise refusal(function, name.lineno, text)
    for node in flow.reduced if rules.inputs else ():
        value = ast.unparse(node.args[0])
        text = (
            f"calls {ast.unparse(node.func)} of {value}, which is one number, since "
            "the function sees one element at a time: compute it of the whole array "
            "before and pass it as an argument, or use @xdev.guvectorize"
        )
        raise refusal(function, node.lineno, text)
    return tree, scope, flow


def _without_source(
    function: Callable[..., Any], rules: Rules, replace: Callable[[object], object]
) -> Callable[..., Any]:
    """Return the function as it is; refuse integers that compilers would widen."""
    code, outside = function.__code__, sources.outside(function)
    if rules.needs_source:
        inputs = ", ".join(map(str, rules.inputs))
        wide = rules.words[0] or rules.working.kind == "b"
        result = "int64" if wide else rules.working
        raise TypeError(
            f"{function.__name__}({inputs}): no source was found at "
            f"{code.co_filename}:{code.co_firstlineno}, by which bools and integers "
            f"have NumPy's dtypes. {KEEPERS}, or give the types, by which integers are "
            f"computed in 64 bits, as @vectorize(['{result}({inputs})'])"
        )
    values = inside(code, outside)
    swapped = {k: v for k in outside if (v := replace(values[k])) is not outside[k]}
    return sources.rebuilt(function, code, swapped)


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
) -> tuple[Callable[..., Any], Kind]:
    """Return the function with its literals typed, and the kind that it returns.

    Without a source it is as it is, and nothing is known of what it returns. It keeps
    its name, line numbers, defaults, globals and closure. ``replace`` turns the value
    of an outside name into what compiled code uses; ``also(tree, scope)`` rewrites the
    source before.
    """
    code = function.__code__
    source = sources.find(code)
    if source is None:
        return _without_source(function, rules, replace), None
    tree, scope, flow = analysed(function, source.node, rules, called, also)
    if rules.inputs:
        flow.want_results(rules.compiled(flow.returned))
    _Rewriter(function, scope, rules, replace, flow).generic_visit(tree)
    new = sources.compiled(sources.FunctionSource(tree, source.imports), code)
    returned = flow.returned if rules.inputs else None
    return sources.rebuilt(function, new, scope.constants), returned


@final
class _Rewriter(ast.NodeTransformer):
    """Puts casts into a function's source, and names of typed constants."""

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

    def _kind(self, node: ast.AST) -> Kind:
        return self._flow.kind(node) if self._rules.inputs else None

    def visit(self, node: Any) -> Any:
        """Return a node in the kind in which it is wanted, as far as both are known."""
        if node not in self._flow.wanted:
            return super().visit(node)
        own, kind = self._kind(node), kinds.native(self._flow.wanted[node])
        if not self._rules.inputs:
            kind = None
        number = own if kinds.is_number(own) else self._scope.number(node)
        if number is not None:
            return self._number(node, number, kind)
        new, own = super().visit(node), kinds.native(own)
        known = own is not None and kinds.is_dtype(kind, "iufc")
        if known and not kinds.same(own, kind):
            return self._cast(new, kind if own.kind == "c" else kinds.real(kind))
        # In loops compilers begin with the types of names before them: unsigned
        # integers that turn signed there would become floats.
        signed = kinds.is_dtype(own, "i") and kinds.is_dtype(kind, "i")
        dtypes = self._flow.dtypes[getattr(node, "id", "")] if signed else ()
        turned = any(kinds.is_dtype(dtype, "u") for dtype in dtypes)
        return self._cast(new, own) if turned else new

    def _number(self, node: ast.expr, number: Any, kind: Kind) -> ast.expr:
        """Return the name of a number in a dtype, or the node where it has none.

        Where nothing is known beside it, that of a float is the inputs' result type.
        """
        whole = type(number) is int
        if whole and kinds.is_dtype(kind, "iu") and not kinds.fits(number, kind):
            self._refuse(node, number, kind)
        elif kinds.is_dtype(kind, "iufc" if whole else "fc"):
            dtype = kind if type(number) is complex else kinds.real(kind)
            return self._named(node, number, dtype)
        elif not whole:
            dtype = kinds.strong(self._rules.working)
            if dtype.kind == "c" and type(number) is float:
                dtype = kinds.real(dtype)
            return self._named(node, number, np.result_type(dtype, number))
        return cast("ast.expr", super().visit(node))

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

    def _refuse(self, node: ast.expr, value: int, dtype: np.dtype[Any]) -> None:
        """Refuse a number that an integer dtype does not have, as NumPy does."""
        if self._rules.bounded:
            taken = ", ".join(map(str, self._rules.inputs))
            text = (
                f"has Python integer {value} out of bounds for {dtype}: cast an "
                f"argument to a larger dtype, or give a signature, as int64({taken})"
            )
            raise refusal(self._function, node.lineno, text, OverflowError)

    def visit_BinOp(self, node: Any) -> ast.expr:
        """Give the result its dtype, which an exponent, too, must fit."""
        kind = self._kind(node)
        if isinstance(node, ast.BinOp) and kinds.is_dtype(kind, "iu"):
            number = self._kind(node.right)
            if type(number) is int and not kinds.fits(number, kind):
                self._refuse(node.right, number, kind)
        literal = self._scope.number(node) is not None
        self.generic_visit(node)
        return cast("ast.expr", node) if literal else self._narrowed(node, kind)

    visit_UnaryOp = visit_BinOp  # noqa: N815 - Python's

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Compare integers exactly: by infinity, or NumPy's functions, pair by pair.

        For uint64 and a signed integer the operators of compilers take int64, in which
        half of uint64 is negative.
        """
        own = list(map(self._kind, (node.left, *node.comparators)))
        self.generic_visit(node)
        parts = [
            self._scope.name(each, "endless", math.copysign(math.inf, kind))
            if type(kind) is int and not NUMBAS[0] <= kind <= NUMBAS[1]
            else each
            for each, kind in zip((node.left, *node.comparators), own, strict=True)
        ]
        node.left, *node.comparators = parts
        if not kinds.exact_alone(*own):
            return node
        tests = list[ast.expr]()
        for op, *pair in zip(node.ops, parts[:-1], parts[1:], strict=True):
            ufunc, _ = kinds.OPERATORS[type(op)]
            name = self._scope.name(node, ufunc.__name__, ufunc)
            tests.append(ast.copy_location(ast.Call(name, pair, []), node))
        both = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        return ast.copy_location(both, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Call compiled functions, and give Python's numbers their dtypes."""
        kind, name = self._kind(node), self._scope.builtin(node.func)
        rounds = name == "round" or self._scope.static(node.func) in ROUNDINGS
        alone = len(node.args) == 1 and not node.keywords
        if rounds and alone and kinds.is_dtype(self._kind(node.args[0]), "iu"):
            return self._cast(self.visit(node.args[0]), kinds.INT64)
        make, taken = self._flow.ours.get(node, (None, ()))
        if make is not None:
            words = "_".join([ast.unparse(node.func), *map(str, taken)])
            node.func = self._scope.name(node.func, words, make())
        self.generic_visit(node)
        if kind is int or kind is float:  # NumPy's dtypes equal these
            return self._cast(node, kinds.native(kind))
        return self._narrowed(node, kind) if name in kinds.EXTREMES else node

    def visit_Name(self, node: ast.Name | ast.Attribute) -> ast.expr:
        """Put in what compiled code uses instead of an outside name."""
        new = self._replace(self._scope.static(node))
        if new is not self._scope.value(node):
            return self._scope.name(node, ast.unparse(node).replace(".", "_"), new)
        return cast("ast.expr", self.generic_visit(node))

    visit_Attribute = visit_Name  # noqa: N815 - Python's


# Words that compilers have.

#: The operators that stand for functions of two: NumPy's comparisons, all of Python's.
AS_OPERATORS: dict[Any, Any] = {
    function: operator
    for operator, functions in kinds.OPERATORS.items()
    if not issubclass(operator, ast.unaryop)
    for function in functions[0 if issubclass(operator, ast.cmpop) else 1 :]
} | {pow: ast.Pow}


@final
class Plain(ast.NodeTransformer):
    """Writes NumPy's ``where``, and its like, in words that compilers have for numbers.

    With ``operators`` so are ``x += y``, functions that Python has operators for, and
    arguments of plain functions that go by name.
    """

    def __init__(self, scope: FunctionScope, *, operators: bool = False) -> None:
        self._scope, self._operators = scope, operators

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Write a condition, a bound, an operator, or arguments in their places."""
        self.generic_visit(node)
        function = self._scope.static(node.func)
        if self._scope.builtin(node.func) == "pow":
            function = pow
        new: ast.expr = node
        if function is math.ldexp:  # compilers cut its exponent off at 32 bits
            node.func = self._scope.name(node.func, np.ldexp.__name__, np.ldexp)
        elif function is np.clip:
            new = self._clipped(node)
        elif function is np.where and len(node.args) == 3 and not node.keywords:  # noqa: PLR2004
            new = ast.IfExp(*node.args)
        elif self._operators and is_plain(function):
            new = self._by_place(node, function)
        elif self._operators and not node.keywords:
            new = self._operation(node, function)
        return ast.copy_location(new, node)

    def _operation(self, node: ast.Call, function: Any) -> ast.expr:
        """Write an operator in the place of a function."""
        known = isinstance(function, np.ufunc | BuiltinFunctionType)
        operator = AS_OPERATORS.get(function) if known else None
        if operator is None or len(node.args) != 2:  # noqa: PLR2004 - its operands
            return node
        left, right = node.args
        if issubclass(operator, ast.cmpop):
            return ast.Compare(left, [operator()], [right])
        return ast.BinOp(left, operator(), right)

    def _clipped(self, node: ast.Call) -> ast.expr:
        """Write the larger and the smaller of two."""
        bounds = dict(zip(("min", "max"), node.args[1:], strict=False))
        bounds |= {word.arg or "": word.value for word in node.keywords}
        if not node.args or not bounds.keys() <= {"min", "max"}:
            return node
        clipped = node.args[0]
        for name, of_two in ("min", np.maximum), ("max", np.minimum):
            bound = bounds.get(name, ast.Constant(None))
            if not (isinstance(bound, ast.Constant) and bound.value is None):
                called = self._scope.name(node, of_two.__name__, of_two)
                clipped = ast.Call(called, [clipped, bound], [])
                ast.copy_location(clipped, node)
        return clipped

    def _by_place(self, node: ast.Call, function: FunctionType) -> ast.Call:
        """Write each argument, or a default, in its parameter's place."""
        words = {word.arg or "**": word.value for word in node.keywords}
        starred = any(isinstance(each, ast.Starred) for each in node.args)
        if not words or "**" in words or starred:
            return node  # in their places, or Python finds these when it runs
        try:
            bound = inspect.signature(function).bind(*node.args, **words)
        except TypeError:  # Python would refuse it
            return node
        bound.apply_defaults()
        put = self._scope.name
        args = [
            value if isinstance(value, ast.expr) else put(node, name, value)
            for name, value in bound.arguments.items()
        ]
        return ast.Call(node.func, args, [])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """Write ``x = 0`` for ``x: int = 0``."""
        self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        """Write what is assigned to a name."""
        self.generic_visit(node)
        if not (self._operators and isinstance(node.target, ast.Name)):
            return node
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        both = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        return ast.copy_location(ast.Assign([node.target], both), node)


# ``XDEV_DEBUG=1``: every access to an argument is checked, and a wrong one named.

REPORT = "xdev_report"
UPDATES = (atomic.add, atomic.max, atomic.min, atomic.cas)


@final
class Checks(ast.NodeTransformer):
    """Rewrites ``x[i]`` to ``x[xdev_checked(i, x.shape, 0, 0, xdev_report)]``.

    ``arrays`` has the places of the arguments that are arrays. The source gets a
    parameter more.
    """

    def __init__(
        self, tree: ast.FunctionDef, scope: FunctionScope, arrays: dict[str, int]
    ) -> None:
        self._scope, self._arrays = scope, arrays
        tree.args.args.append(ast.arg(REPORT))

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        """Check the index into an argument."""
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in self._arrays:
            node.slice = self._checked(node.slice, node.value.id)
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Check the index of an atomic update of an argument."""
        self.generic_visit(node)
        if self._scope.value(node.func) in UPDATES and len(node.args) > 1:
            array, index = node.args[:2]
            if isinstance(array, ast.Name) and array.id in self._arrays:
                node.args[1] = self._checked(index, array.id)
        return node

    def _checked(self, index: ast.expr, name: str) -> ast.expr:
        """Return the call that checks an index; one with slices stays as it is."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if any(isinstance(part, ast.Slice) for part in parts):
            return index
        check = self._scope.name(index, "checked", checked)
        text = f"{check.id}(0, {name}.shape, {self._arrays[name]}, 0, {REPORT})"
        call = cast("ast.Call", _parsed(text, index)[0].value)
        call.args[0] = index
        return call


def _parsed(text: str, like: ast.AST) -> list[Any]:
    """Return the statements of a text, all of whose parts stand where a node does."""
    tree = ast.parse(text)
    for each in ast.walk(tree):
        ast.copy_location(each, like)
    return tree.body


# Assignments to whole arrays in a function of core arrays, written as loops.
#
# For ``out[:] = (x - m) / 2`` compilers ask for new memory, which compiled loops do
# not have: they cannot know that ``x`` and ``out`` have one shape, as the layout
# says.

OF_NUMBERS = ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq  # comparisons
OF_ELEMENTS = np.where, np.clip  # beside ufuncs


@final
class WholeArrays(ast.NodeTransformer):
    """Rewrites ``out[:] = x`` to ``for k in range(out.shape[0]): out[k] = x[k]``.

    ``dimensions`` has each parameter's core dimensions. Visit the parts of ``tree``.
    """

    def __init__(
        self,
        tree: ast.FunctionDef,
        scope: FunctionScope,
        dimensions: Mapping[str, tuple[str, ...]],
    ) -> None:
        nodes = [*ast.walk(tree)]
        names = {node for node in nodes if isinstance(node, ast.Name)}
        # x += y writes into the array, and binds no name anew.
        names -= {node.target for node in nodes if isinstance(node, ast.AugAssign)}
        anew = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
        self._arrays = {k: v for k, v in dimensions.items() if k not in anew}
        self._scope = scope

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Leave functions inside alone, whose parameters are others."""
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Write a loop where a whole array is assigned from others."""
        several = len(node.targets) > 1
        if several or not isinstance(node.targets[0], ast.Subscript):
            return node
        return self._loop(node, node.targets[0])

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Write a loop where something is added to a whole array."""
        return self._loop(node, node.target)

    def _loop(self, node: Any, target: ast.expr) -> Any:
        name, own = self.whole(target)
        if not own:
            return node
        each = _Element(self, own)
        value = each.visit(copy.deepcopy(node.value))
        if isinstance(node, ast.Assign) and not each.reads:
            return node  # a number, of which compilers fill the array
        loop = copy.copy(node)
        loop.value = value
        if isinstance(node, ast.Assign):
            loop.targets = [each.at(target, name, own)]
        else:
            loop.target = each.at(target, name, own)
        counted = self._scope.name(target, "range", range).id
        lines = [
            f"{' ' * k}for {axis} in {counted}({name}.shape[{k}]):"
            for k, axis in enumerate(each.axes)
        ]
        lines.append(f"{' ' * len(lines)}{ast.unparse(loop)}")
        return _parsed("\n".join([*each.before, *lines]), node)

    def whole(self, node: ast.AST) -> tuple[str, tuple[str, ...]]:
        """Return the name and dimensions of a parameter all of which is there."""
        name = node
        if isinstance(node, ast.Subscript):
            name, index = node.value, node.slice
            each = index.elts if isinstance(index, ast.Tuple) else [index]
            if any(ast.unparse(one) not in {":", "..."} for one in each):
                return "", ()
        label = name.id if isinstance(name, ast.Name) else ""
        return label, self._arrays.get(label, ())

    def of_elements(self, node: ast.AST) -> bool:
        """Say whether an operation gives for elements what it gives for arrays."""
        match node:
            case ast.BinOp(op=op):
                return not isinstance(op, ast.MatMult)
            case ast.UnaryOp(op=op):
                return not isinstance(op, ast.Not)
            case ast.Compare(ops=[op]):
                return isinstance(op, OF_NUMBERS)
            case ast.Call(func=func, args=args, keywords=[]):
                function = self._scope.static(func)
                known = any(function is one for one in OF_ELEMENTS)
                known |= isinstance(function, np.ufunc)
                known |= self._scope.builtin(func) == "abs"
                return known and not any(isinstance(one, ast.Starred) for one in args)
        return False


@final
class _Element(ast.NodeTransformer):
    """Writes the element of an expression of whole arrays, at the indices of a loop."""

    def __init__(self, arrays: WholeArrays, dimensions: tuple[str, ...]) -> None:
        self._arrays, self._dimensions = arrays, dimensions
        self.axes = [f"xdev_axis_{k}" for k in range(len(dimensions))]
        #: What is computed before the loop, and whether an array is read in it.
        self.before: list[str] = []
        self.reads = False

    def visit(self, node: Any) -> Any:
        """Return the element of an expression; what is no array's stays as it is."""
        name, own = self._arrays.whole(node)
        if own and self._dimensions[-len(own) :] == own:  # as NumPy broadcasts
            self.reads = True
            return self.at(node, name, own)
        if isinstance(node, ast.Call) and self._arrays.of_elements(node):
            node.args = [self.visit(one) for one in node.args]
            return node
        leaf = isinstance(node, ast.Constant | ast.Name)
        if leaf or not isinstance(node, ast.expr):
            return node
        if self._arrays.of_elements(node):
            return self.generic_visit(node)
        name = f"xdev_value_{len(self.before)}"
        self.before.append(f"{name} = {ast.unparse(node)}")
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def at(self, node: ast.expr, name: str, own: tuple[str, ...]) -> ast.expr:
        """Return the element of an array of these dimensions."""
        text = f"{name}[{', '.join(self.axes[-len(own) :])}]"
        return cast("ast.expr", _parsed(text, node)[0].value)
