"""Whether a function's names are assigned wherever they are read, and read at all.

Python raises where one is not assigned; compiled code goes on with whatever is there.

Which branch is taken is not known: a name is assigned after an ``if`` where both ways
assign it. A loop is taken to run once at least, as those over arrays do. What stands
behind a condition in a loop (``if i > 0: …``) may be for later rounds than the first:
there all names are assigned that each round assigns.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, TypeGuard, final

from xdev.ufunc import sources
from xdev.ufunc.parameters import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Names = frozenset[str] | None  # None: nothing runs here


def refuse_unassigned(function: Callable[..., Any], tree: ast.FunctionDef) -> None:
    """Refuse a function that may read a name before it is assigned.

    Parameters
    ----------
    function : callable
        The Python function.
    tree : ast.FunctionDef
        Its source.

    Raises
    ------
    TypeError
        There is such a name; the text has the line.
    """
    for node in _Visitor(tree).unassigned():
        message = (
            f"{function.__name__} may read {node.id!r} before it is assigned, where "
            "compiled code has any value: assign it before the condition, or on each "
            f"way to this line\n{shown(function.__code__, node.lineno)}"
        )
        raise TypeError(message)


def refuse_lost(function: Callable[..., Any], numbers: Iterable[str]) -> None:
    """Refuse a function that adds to a number which it was given, and never reads it.

    The caller's number stays as it is, as in Python, where arrays change.

    Parameters
    ----------
    function : callable
        The Python function.
    numbers : iterable of str
        Its parameters that are numbers.

    Raises
    ------
    TypeError
        There is such a number; the text has the line.
    """
    source = sources.find(function.__code__)
    nodes = [] if source is None else [*ast.walk(source.node)]
    for name in numbers:
        own = [node for node in nodes if _adds(node, name)]
        within = {each for node in own for each in ast.walk(node)}
        if own and not any(_reads(node, name) for node in nodes if node not in within):
            message = (
                f"{function.__name__}: {name} is a number, which {name} += … changes "
                "for one point alone, and nothing reads it: give an array and write "
                f"into it, in a kernel by xdev.atomic.add({name}, 0, value)\n"
                f"{shown(function.__code__, own[0].lineno)}"
            )
            raise TypeError(message)


def _adds(node: ast.AST, name: str) -> TypeGuard[ast.stmt]:
    """Say whether a statement is ``name += …``, or ``name = name + …``."""
    match node:
        case ast.AugAssign(target=ast.Name(id=found)):
            return found == name
        case ast.Assign(targets=[ast.Name(id=found)]):
            return found == name and any(_reads(x, name) for x in ast.walk(node.value))
    return False


def _reads(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Load)
    )


@final
class _Visitor(ast.NodeVisitor):
    """Collects the names that are read where not all ways assign them."""

    def __init__(self, tree: ast.FunctionDef) -> None:
        each = ast.walk(tree.args)
        self._assigned: Names = frozenset(x.arg for x in each if isinstance(x, ast.arg))
        self._breaks, self._continues = list[Any](), list[Any]()
        # What each round of the loops around assigns, and what of it may be read here.
        self._rounds, self._earlier = frozenset[str](), frozenset[str]()
        self._bound, self._outer = set[str](), set[str]()
        self._read, self._inside = list[ast.Name](), list[ast.Name]()
        self._all(tree.body)

    def unassigned(self) -> list[ast.Name]:
        """Return where names of the function's own are read that may have no value."""
        own = self._bound - self._outer
        return [node for node in self._read if node.id in own] + self._inside

    def visit_Name(self, node: ast.Name) -> None:
        """Read, assign, or delete a name."""
        if isinstance(node.ctx, ast.Load):
            if self._assigned is not None and not (
                node.id in self._assigned or node.id in self._earlier
            ):
                self._read.append(node)
        elif isinstance(node.ctx, ast.Store):
            self._bind(node.id)
        elif self._assigned is not None:
            self._assigned -= {node.id}

    def _bind(self, name: str) -> None:
        self._bound.add(name)
        if self._assigned is not None:
            self._assigned |= {name}

    def _all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        """Leave out names of others."""
        self._outer.update(node.names)

    visit_Nonlocal = visit_Global  # noqa: N815 - Python's

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Bind the name; what is inside runs at another time."""
        self.visit_Lambda(node)
        self._inside += _Visitor(node).unassigned()
        self._bind(node.name)

    def visit_Lambda(self, node: ast.Lambda | ast.FunctionDef) -> None:
        """Look at the defaults; what is inside runs at another time."""
        self._all((*node.args.defaults, *node.args.kw_defaults))

    def visit_Assign(self, node: Any) -> None:
        """Read before assigning; ``x: int`` alone assigns nothing."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is not None:
            self._all((node.value, *targets))

    visit_AnnAssign = visit_NamedExpr = visit_Assign  # noqa: N815 - Python's

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Read the target, too."""
        if isinstance(node.target, ast.Name):
            self.visit(ast.copy_location(ast.Name(node.target.id, ast.Load()), node))
        self.visit_Assign(node)

    def _ways(self, *ways: Iterable[ast.AST | None]) -> None:
        """Go each of several ways, and on with what all of them assign."""
        before, earlier = self._assigned, self._earlier
        ends: list[Names] = []
        for nodes in ways:
            self._assigned, self._earlier = before, earlier | self._rounds
            self._all(nodes)
            ends.append(self._assigned)
        self._assigned = _merged(ends)
        # Where one way leaves, what follows stands behind a condition.
        self._earlier = earlier | self._rounds if None in ends else earlier

    def visit_If(self, node: ast.If | ast.IfExp) -> None:
        """Go both ways."""
        self.visit(node.test)
        ways = (node.body, node.orelse)
        self._ways(*[way if isinstance(way, list) else [way] for way in ways])

    visit_IfExp = visit_If  # noqa: N815 - Python's

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Read the first value, and perhaps the others."""
        self.visit(node.values[0])
        self._ways(node.values[1:], ())

    def visit_Match(self, node: ast.Match) -> None:
        """Go the way of each case, and past all of them."""
        self.visit(node.subject)
        last = node.cases[-1]
        total = isinstance(last.pattern, ast.MatchAs) and not (
            last.pattern.pattern or last.guard
        )
        cases = [(each.pattern, each.guard, *each.body) for each in node.cases]
        self._ways(*cases, *([] if total else [()]))

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        """Bind what a case takes."""
        self.generic_visit(node)
        if node.name is not None:
            self._bind(node.name)

    visit_MatchStar = visit_MatchAs  # noqa: N815 - Python's

    def visit_Try(self, node: ast.Try) -> None:
        """Go on past the end, or from any point of it into a handler."""
        handlers = [each.body for each in node.handlers]
        for name in (each.name for each in node.handlers if each.name):
            self._bind(name)
        self._ways((*node.body, *node.orelse), *handlers)
        self._all(node.finalbody)

    def visit_Return(self, node: ast.Return) -> None:
        """Leave the function."""
        self.generic_visit(node)
        self._assigned = None

    def visit_Break(self, _: ast.Break) -> None:
        """Leave the loop."""
        self._breaks.append(self._assigned)
        self._assigned = None

    def visit_Continue(self, _: ast.Continue) -> None:
        """Leave the round."""
        self._continues.append(self._assigned)
        self._assigned = None

    def visit_For(self, node: ast.For) -> None:
        """Go through a loop over what there is."""
        self.visit(node.iter)
        self._loop(node, [node.target, *node.body])

    def visit_While(self, node: ast.While) -> None:
        """Go through a loop with a condition."""
        self.visit(node.test)
        self._loop(node, node.body)

    def _loop(self, node: ast.For | ast.While, body: list[Any]) -> None:
        """Go through a loop twice: for what a round assigns, and with that."""
        before, read, outer = self._assigned, len(self._read), self._rounds
        earlier, jumps = self._earlier, (self._breaks, self._continues)
        for _ in range(2):
            del self._read[read:]
            self._assigned, self._earlier = before, earlier | outer
            self._breaks, self._continues = [], []
            self._all(body)
            self._assigned = _merged([self._assigned, *self._continues])
            self._rounds = outer | (self._assigned or frozenset())
        breaks = self._breaks
        (self._breaks, self._continues), self._rounds = jumps, outer
        self._earlier = earlier
        endless = isinstance(node, ast.While) and (
            isinstance(node.test, ast.Constant) and bool(node.test.value)
        )
        if endless:
            self._assigned = None
        self._all(node.orelse)
        self._assigned = _merged([self._assigned, *breaks])

    def visit_ListComp(self, node: Any) -> None:
        """Go through a loop that has names of its own."""
        before, bound = self._assigned, set(self._bound)
        for each in node.generators:
            self._all((each.iter, each.target, *each.ifs))
        mapping = isinstance(node, ast.DictComp)
        self._all((node.key, node.value) if mapping else (node.elt,))
        self._assigned, self._bound = before, bound

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp  # noqa: N815


def _merged(ways: list[Names]) -> Names:
    """Return what all ways assign that go on."""
    ends = [names for names in ways if names is not None]
    return frozenset.intersection(*ends) if ends else None
