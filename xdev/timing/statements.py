"""Loops around what is timed: a function, or a statement as a string."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any, final

# Source text, a parsed module, or what is called without arguments.
Code = str | ast.Module | Callable[[], object]

# The names of the files that users' code is in, in tracebacks. The loop is the second:
# there the setup's lines are numbered on from the statement's.
SETUP, STATEMENT = "<setup>", "<statement>"
# As in timeit.Timer: the setup and the statement share the function's variables, so
# that these are as fast as in users' functions. The setup goes before the first line.
TEMPLATE = """
def loop(_rounds, _start, _stop, _call=_call, _setup=_setup, _locals=locals):
    _begin = _start()
    for _round in _rounds:
        pass
    return _begin, _stop(), _locals()
"""


@final
class Loop:
    """A setup, then a statement many times between two readings of a clock.

    Parameters
    ----------
    statement : str, ast.Module or callable
        What is timed.
    setup : str, ast.Module or callable
        What runs before, each time that the loop is called.
    namespace : dict
        The global variables of both.

    Raises
    ------
    SyntaxError
        The source is no valid statement, or no setup.

    Examples
    --------
    >>> from itertools import count
    >>> loop = Loop("total += 1", "total = 0", {})
    >>> begin, end, variables = loop(range(5), lambda: 0.0, lambda: 2.0)
    >>> begin, end, variables["total"]
    (0.0, 2.0, 5)
    """

    __slots__ = ("_function", "_names", "_namespace")

    def __init__(self, statement: Code, setup: Code, namespace: dict[str, Any]) -> None:
        before = _parse(setup, "_setup()", SETUP, above=lines_of(statement))
        body = _parse(statement, "_call()", STATEMENT)
        both = ast.Module([*before.body, *body.body], [])
        compile(both, STATEMENT, "exec", dont_inherit=True)
        whole = ast.parse(TEMPLATE)
        function = whole.body[0]
        assert isinstance(function, ast.FunctionDef)  # noqa: S101 - for mypy
        rounds = function.body[1]
        assert isinstance(rounds, ast.For)  # noqa: S101
        rounds.body = body.body or rounds.body
        function.body[:0] = before.body
        code = compile(
            ast.fix_missing_locations(whole), STATEMENT, "exec", dont_inherit=True
        )
        made: dict[str, Any] = {"_call": statement, "_setup": setup}
        exec(code, namespace, made)  # noqa: S102 - running it is what was asked for
        self._function = made["loop"]
        self._namespace = namespace
        self._names = {
            node.id
            for part in (before, body)
            for node in ast.walk(part)
            if isinstance(node, ast.Name)
        }

    def __call__(
        self,
        rounds: Iterable[object],
        start: Callable[[], float],
        stop: Callable[[], Any],
    ) -> tuple[float, Any, dict[str, Any]]:
        """Return what ``start`` and ``stop`` gave, and the function's variables."""
        found: tuple[float, Any, dict[str, Any]] = self._function(rounds, start, stop)
        return found

    def globals_named(self) -> list[object]:
        """Return the values of the global variables that the source names."""
        return [self._namespace[name] for name in self._names & self._namespace.keys()]


def lines_of(statement: Code) -> int:
    """Return how many lines a statement has, none where it is no text."""
    return statement.count("\n") + 1 if isinstance(statement, str) else 0


def _parse(code: Code, call: str, name: str, above: int = 0) -> ast.Module:
    """Return the syntax tree of what is code by itself, so many lines further down."""
    if isinstance(code, ast.Module):
        source: ast.Module | str = code
    else:
        source = code if isinstance(code, str) else call
    # A `return` or `break` is wrong here, and in the loop it is not.
    compile(source, name, "exec", dont_inherit=True)
    if isinstance(source, ast.Module):
        return source
    return ast.parse("\n" * above + source, name)
