"""What a function's source tells: its expressions' kinds, and names without a value.

A name has the kind that was assigned to it last, so branches are joined, and loops gone
through until nothing changes. What is in nested functions is not known, nor what
compiled functions return.

Python raises where a name is read that has no value; compiled code goes on with
whatever is there. Which branch is taken is not known: a name is assigned after an
``if`` where both ways assign it. A loop is taken to run once at least, as those over
arrays do. What stands behind a condition in a loop (``if i > 0: …``) may be for later
rounds than the first: there all names are assigned that each round assigns.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import partial, reduce
from itertools import count, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from xdev.ufunc import kinds
from xdev.ufunc.sources import bound_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from xdev.ufunc.kinds import Called, Kind
    from xdev.ufunc.sources import FunctionScope

ROUNDS = 8  # of a loop, after which what still changes is taken for not known


class State(NamedTuple):
    """The kinds of names, and those that are assigned; None: only ``break`` goes on."""

    kinds: dict[str, Kind]
    assigned: frozenset[str] | None

    def copy(self) -> State:
        """Return one whose kinds may be changed."""
        return State(dict(self.kinds), self.assigned)


NOWHERE = State({}, None)  # where nothing runs


@final
class Flow(ast.NodeVisitor):
    """The kinds of a function's expressions, and those that they are wanted in.

    An operand is wanted in its operator's kind, an argument as a function takes it, a
    result in the dtype of all: there a rewriter casts, and types numbers. It leaves as
    it is what is wanted in no kind. Where something is wanted in None, what stands
    beside it is not known.

    ``own`` are the names that it assigns, parameters among them; ``inputs`` the kinds
    of its first parameters. ``called`` returns what a call of an outside value makes of
    its arguments' kinds: those that it takes, and that it gives; and what makes the
    function that compiled code calls. None where it is not known.
    """

    def __init__(
        self,
        tree: ast.FunctionDef | ast.Lambda,
        own: set[str],
        inputs: Sequence[Kind],
        scope: FunctionScope,
        called: Callable[[Any, tuple[Kind, ...]], tuple[Called, Any] | None],
    ) -> None:
        self._own, self._scope, self._called = own, scope, called
        self._kinds: dict[ast.AST, Kind] = {}
        self.wanted: dict[ast.AST, Kind] = {}
        self._state = State({}, frozenset())
        self._breaks, self._continues = list[State](), list[State]()
        # What each round of the loops around assigns, and what of it may be read here.
        self._rounds, self._earlier = frozenset[str](), frozenset[str]()
        #: The dtypes that a name ever has; None among them: one is not known.
        self.dtypes: defaultdict[str, set[Any]] = defaultdict(set)
        #: What makes ours for the function that a call calls, and what tells it apart.
        self.ours: dict[ast.Call, tuple[Any, Any]] = {}
        #: Calls of reductions of arrays that get numbers.
        self.reduced: list[ast.Call] = []
        #: Where names are read that may have no value.
        self.unassigned: list[ast.Name] = []
        self._returned: dict[ast.expr | None, Kind] = {}
        self._values: dict[ast.expr, set[str]] = {}  # with the names that they go to
        arguments = (each for each in ast.walk(tree.args) if isinstance(each, ast.arg))
        for argument, kind in zip_longest(arguments, inputs):
            self._name(argument.arg, kind)
        self._block([tree.body] if isinstance(tree, ast.Lambda) else tree.body)
        for value, names in self._values.items():
            self._want_as_elsewhere(value, names)
        self.want_results(None)

    @property
    def returned(self) -> Kind:
        """The kind of what the function returns."""
        return (
            reduce(kinds.together, self._returned.values()) if self._returned else None
        )

    def kind(self, node: ast.AST) -> Kind:
        """Return an expression's kind."""
        return self._kinds.get(node)

    def want(self, node: ast.expr | None, kind: Kind) -> None:
        """Have a node in a kind, of conditions both answers, of tuples the items."""
        if isinstance(node, ast.IfExp):
            self.want(node.body, kind)
            self.want(node.orelse, kind)
        elif isinstance(node, ast.Tuple) and isinstance(kind, tuple):
            for each, own in zip(node.elts, kind, strict=True):
                self.want(each, own)
        elif node is not None:
            self.wanted[node] = kind

    def want_results(self, kind: Kind) -> None:
        """Have what is returned in a kind."""
        for node in self._returned:
            self.want(node, kind)

    def _want_as_elsewhere(self, value: ast.expr, names: set[str]) -> None:
        """Have a number that is assigned in the dtype that the names have elsewhere."""
        number = self.kind(value)
        if not kinds.is_number(number):
            return
        dtypes = {dtype for name in names for dtype in self.dtypes[name]}
        dtypes = dtypes or {kinds.native(number)}
        whole = type(number) is int and all(kinds.is_dtype(d, "iu") for d in dtypes)
        if whole and len(dtypes) > 1:
            dtypes = {kinds.INT64}
        dtype: Kind = dtypes.pop() if len(dtypes) == 1 else None
        self.want(value, None if whole and not kinds.fits(number, dtype) else dtype)

    def _leave(self, *nodes: ast.expr) -> None:
        """Leave numbers in indices, and casts of them, as they are."""
        for node in nodes:
            for each in ast.walk(node):
                if self.wanted.get(each, each) is None:
                    del self.wanted[each]

    def visit(self, node: ast.AST) -> Kind:
        """Go through a statement, or find an expression's kind; not where none runs."""
        if self._state is NOWHERE:
            return None
        kind = super().visit(node)
        if isinstance(node, ast.expr):
            self._kinds[node] = kind
        return kind

    def generic_visit(self, node: ast.AST) -> Kind:
        """Go through the parts; return what an expression reads from outside."""
        super().generic_visit(node)
        if not isinstance(node, ast.expr):
            return None
        number = self._scope.number(node)
        return kinds.kind_of(self._scope.static(node)) if number is None else number

    def _block(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    # Statements.

    def visit_Assign(self, node: ast.Assign) -> None:
        """Bind each target."""
        kind = self.visit(node.value)
        for target in node.targets:
            self._bind(target, kind, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Read the target, too."""
        name = isinstance(node.target, ast.Name)
        own = self._read(node.target) if name else self.visit(node.target)
        self._bind(node.target, kinds.operation(node.op, own, self.visit(node.value)))
        self.want(node.value, None)

    def visit_Return(self, node: ast.Return) -> None:
        """Leave the function, with what is returned: of conditions both answers."""
        if node.value is not None:
            self.visit(node.value)
        self._return(node.value)
        self._state = NOWHERE

    def _return(self, node: ast.expr | None) -> None:
        if isinstance(node, ast.IfExp):
            self._return(node.body)
            self._return(node.orelse)
        else:
            self._returned[node] = None if node is None else self.kind(node)

    def _ways(self, *ways: Iterable[ast.AST | None]) -> None:
        """Go each of several ways, and on with what is after any of them."""
        before, earlier = self._state, self._earlier
        ends = list[State]()
        for nodes in ways:
            self._state, self._earlier = before.copy(), earlier | self._rounds
            self._block(nodes)
            ends.append(self._state)
        self._state = _merged(*ends)
        # Where one way leaves, what follows stands behind a condition.
        left = any(state.assigned is None for state in ends)
        self._earlier = earlier | self._rounds if left else earlier

    def visit_If(self, node: ast.If) -> None:
        """Go both ways."""
        self.visit(node.test)
        self._ways(node.body, node.orelse)

    def visit_Try(self, node: ast.Try) -> None:
        """Go on past the end, or from any point of it into a handler."""
        handlers = [each.body for each in node.handlers]
        self._ways((*node.body, *node.orelse), *handlers)
        self._block(node.finalbody)

    def visit_Break(self, _: ast.Break) -> None:
        """Keep the names for what comes after the loop."""
        self._breaks.append(self._state)
        self._state = NOWHERE

    def visit_Continue(self, _: ast.Continue) -> None:
        """Keep the names for the loop's next round."""
        self._continues.append(self._state)
        self._state = NOWHERE

    def visit_For(self, node: ast.For | ast.While) -> None:
        """Go through a loop until its names' kinds are what they were before.

        Twice at least: for what each round assigns, and with that.
        """
        if isinstance(node, ast.For):
            self.visit(node.iter)
        outer = self._breaks, self._continues, self._rounds, self._earlier
        (*_, around, earlier), assigned = outer, self._state.assigned
        read = len(self.unassigned)
        for rounds in count():
            del self.unassigned[read:]
            start = dict(self._state.kinds)
            self._state, self._earlier = State(self._state.kinds, assigned), earlier
            self._breaks, self._continues = [], []
            if isinstance(node, ast.While):
                self.visit(node.test)
            else:
                self._bind(node.target, self._element(node.iter))
            self._earlier = earlier | around
            self._block(node.body)
            self._state = _merged(self._state, *self._continues, State(start, None))
            self._rounds = around | (self._state.assigned or frozenset())
            names = self._state.kinds
            changed = [
                name for name in names if not kinds.same(names[name], start.get(name))
            ]
            if rounds and not changed:
                break
            if rounds > ROUNDS:
                names.update(dict.fromkeys(changed))
        breaks = self._breaks
        self._breaks, self._continues, self._rounds, self._earlier = outer
        match node:
            case ast.While(test=ast.Constant(value=True | 1)):
                self._state = NOWHERE  # but by ``break``
        self._block(node.orelse)
        self._state = _merged(self._state, *breaks)

    visit_While = visit_For  # noqa: N815 - Python's

    def visit_ListComp(self, node: Any) -> None:
        """Go through a loop that has names of its own."""
        before = self._state.copy()
        for each in node.generators:
            self.visit(each.iter)
            self._bind(each.target, self._element(each.iter))
            self._block(each.ifs)
        mapping = isinstance(node, ast.DictComp)
        self._block((node.key, node.value) if mapping else (node.elt,))
        self._state = before

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda | ast.FunctionDef) -> None:
        """Look at the defaults; the function inside has names of its own."""
        self._block((*node.args.defaults, *node.args.kw_defaults))
        inside = Flow(node, bound_names(node), (), self._scope, self._called)
        self.unassigned += inside.unassigned
        self.wanted |= inside.wanted
        self._kinds |= inside._kinds

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Bind the name."""
        self.visit_Lambda(node)
        self._name(node.name, None)

    def visit_alias(self, node: ast.alias) -> None:
        """Bind what is imported."""
        self._name((node.asname or node.name).partition(".")[0], None)

    # Names.

    def _name(self, name: str, kind: Kind) -> None:
        self._state.kinds[name] = kind
        if (assigned := self._state.assigned) is not None:
            self._state = State(self._state.kinds, assigned | {name})
        if kind is None or kinds.is_dtype(kind):
            self.dtypes[name].add(kind)

    def _bind(
        self, target: ast.expr, kind: Kind, value: ast.expr | None = None
    ) -> None:
        match target:
            case ast.Name(id=name):
                self._name(name, kind)
                if value is not None:
                    self._values.setdefault(value, set()).add(name)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                alike = isinstance(kind, tuple) and len(kind) == len(targets)
                items = kind if alike else [None] * len(targets)
                parts = value.elts if alike and isinstance(value, ast.Tuple) else items
                for one, own, part in zip(targets, items, parts, strict=True):
                    self._bind(one, own, part if isinstance(part, ast.expr) else None)
            case ast.Starred(value=several):
                self._bind(several, None)
            case _:
                self.visit(target)
                self.want(value, None)

    def visit_Name(self, node: ast.Name) -> Kind:
        """Read, assign, or delete a name."""
        if isinstance(node.ctx, ast.Load):
            return self._read(node)
        if isinstance(node.ctx, ast.Store):
            self._name(node.id, None)
        elif (assigned := self._state.assigned) is not None:
            self._state = State(self._state.kinds, assigned - {node.id})
        return None

    def _read(self, node: Any) -> Kind:
        """Return what a name was bound to last, or stands for outside."""
        names, assigned = self._state
        if assigned is not None and node.id in self._own - assigned - self._earlier:
            self.unassigned.append(node)
        return names[node.id] if node.id in names else self.generic_visit(node)

    # Expressions.

    def visit_Constant(self, node: ast.Constant) -> Kind:
        """Return a number, or the kind of a bool."""
        return kinds.kind_of(node.value)

    def visit_BinOp(self, node: ast.BinOp) -> Kind:
        """Return what NumPy makes of two."""
        own = self.visit(node.left), self.visit(node.right)
        kind = kinds.operation(node.op, *own)
        self.want(node.left, kind)
        power = isinstance(node.op, ast.Pow) and not kinds.same(kind, kinds.UNSIGNED)
        if power and kinds.weak(own[1]) is int:
            self.wanted.pop(node.right, None)  # compilers multiply, in int64
        else:
            self.want(node.right, kind)
        return kind

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Kind:
        """Return what NumPy makes of one."""
        kind = kinds.operation(node.op, self.visit(node.operand))
        if self._scope.number(node) is None:  # else the sign is the number's
            self.want(node.operand, kind)
        return kind

    def visit_Compare(self, node: ast.Compare) -> Kind:
        """Return the kind of bools, of integers that compilers compare as they are."""
        parts = [node.left, *node.comparators]
        own = [self.visit(each) for each in parts]
        common = reduce(partial(kinds.operated, np.maximum), own)
        exact = kinds.is_dtype(common, "iu") or kinds.exact_alone(*own)
        for each, kind in zip(parts, own, strict=True):
            if exact and not (type(kind) is int and kinds.fits(kind, common)):
                self.wanted.pop(each, None)
            else:
                self.want(each, common)
        return kinds.BOOL

    def visit_BoolOp(self, node: ast.BoolOp) -> Kind:
        """Return what any of the values is; the first is read, perhaps the others."""
        self.visit(node.values[0])
        self._ways(node.values[1:], ())
        return reduce(kinds.joined, map(self.kind, node.values))

    def visit_IfExp(self, node: ast.IfExp) -> Kind:
        """Return what either is."""
        self.visit(node.test)
        self._ways([node.body], [node.orelse])
        own = self.kind(node.body), self.kind(node.orelse)
        kind, both = kinds.joined(*own), kinds.together(*own)
        if kind is None and kinds.is_dtype(both, "f") and not kinds.mixed(*own):
            kind = both  # also where the condition is a constant
        self.want(node, kind)
        return kind

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Kind:
        """Bind a name inside an expression."""
        kind = self.visit(node.value)
        self._bind(node.target, kind)
        return kind

    def visit_Tuple(self, node: ast.Tuple) -> Kind:
        """Return the items' kinds; numbers have one dtype, so that any index serves."""
        items = tuple([self.visit(each) for each in node.elts])
        numbers = bool(items) and all(map(kinds.is_number, items))
        for each in node.elts:
            self.want(each, kinds.part(items) if numbers else None)
        starred = any(isinstance(each, ast.Starred) for each in node.elts)
        return None if starred else items

    def visit_Subscript(self, node: ast.Subscript) -> Kind:
        """Return the kind of a tuple's item."""
        self.visit(node.slice)
        self._leave(node.slice)
        return kinds.part(self.visit(node.value), self._scope.number(node.slice))

    def visit_Attribute(self, node: ast.Attribute) -> Kind:
        """Return the kind of a module's value, or of a number's part."""
        constant = self._scope.static(node)
        if constant is not None:
            return kinds.kind_of(constant)
        kind = self.visit(node.value)
        if node.attr in {"real", "imag"} and kinds.is_dtype(kind, "iufc"):
            return kinds.real(kind)
        return None

    def visit_Call(self, node: ast.Call) -> Kind:
        """Return what a function makes of its arguments."""
        self.visit(node.func)
        given = tuple([self.visit(each) for each in node.args])
        words = [word.value for word in node.keywords]
        self._block(words)
        function, name = self._scope.static(node.func), self._scope.builtin(node.func)
        for each in node.args:
            self.want(each, None)
        exact = name == "range" or isinstance(function, type)
        self._leave(*words, *(node.args if exact else ()))
        if kinds.reduces_number(name, function, given):
            self.reduced.append(node)
        if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            return None
        taken, kind = kinds.of_call(name, function, given)
        self.ours.pop(node, None)
        if kind is None and (inner := self._called(function, given)):
            (taken, kind), make = inner
            self.ours[node] = make, taken
        for each, own in zip(node.args, taken or (), strict=False):
            self.want(each, own)  # defaults have no argument
        return kind

    def _element(self, iterated: ast.expr) -> Kind:
        """Return the kind of what a loop goes over."""
        if isinstance(iterated, ast.Call):
            ranged = self._scope.builtin(iterated.func) == "range"
            return int if ranged else None
        return kinds.part(self.kind(iterated))


def _merged(*ways: State) -> State:
    """Return what names are after several ways, and what all ways assign that go on."""
    states = [state for state in ways if state is not NOWHERE]
    if not states:
        return NOWHERE
    ends = [state.assigned for state in states if state.assigned is not None]
    names = reduce(_joined, [state.kinds for state in states])
    return State(names, frozenset.intersection(*ends) if ends else None)


def _joined(one: dict[str, Kind], other: dict[str, Kind]) -> dict[str, Kind]:
    shared = {
        name: kinds.joined(one[name], other[name]) for name in one if name in other
    }
    return one | other | shared
