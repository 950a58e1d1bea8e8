"""Parameters that count: ends of ``range``, and indices.

Beside floats a Python integer given for one stays an integer. A parameter that does
nothing else meets no value, so that it has no part in the results' dtype.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.ufunc import sources
from xdev.ufunc.inputs import WEAK, dtype_of, fits, resolve
from xdev.ufunc.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Dtypes = tuple[np.dtype[Any], ...]

INT64 = np.dtype(np.int64)


@final
class Counts:
    """The parameters of a function that count, found in its source.

    Parameters
    ----------
    function : callable
        The function; without a source, no parameter is known to count.
    """

    __slots__ = ("_alone", "_used")

    def __init__(self, function: Callable[..., Any]) -> None:
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        source = sources.find(code)
        used, everywhere = list[str](), list[str]()
        if source is not None:
            everywhere += _names(source.node)
            scope = Scope(source.node, sources.outside(function))
            for part in _counting(source.node, scope):
                used += _names(part)
        self._used = [name in used for name in names]
        self._alone = [
            name in used and used.count(name) == everywhere.count(name)
            for name in names
        ]

    def resolve(
        self, args: Sequence[Any], signatures: Sequence[Dtypes], name: str
    ) -> Dtypes:
        """Return each argument's dtype.

        Parameters
        ----------
        args : sequence
            Arrays and numbers.
        signatures : sequence of tuples of numpy.dtype
            Inputs that the function declares: a Python number takes what the first of
            them that fits has in its place.
        name : str
            The function's, for errors.
        """
        for taken in signatures:
            if len(args) == len(taken) and all(map(fits, args, taken)):
                pairs = zip(args, taken, strict=True)
                return tuple(d if type(x) in WEAK else dtype_of(x) for x, d in pairs)
        dtypes = resolve(args, name)
        if signatures or all(dtype.kind in "iub" for dtype in dtypes):
            return dtypes
        whole = [
            type(x) is int and used for x, used in zip(args, self._used, strict=False)
        ]
        if all(whole):
            return dtypes
        others = [x for x, count in zip(args, whole, strict=True) if not count]
        rest = iter(resolve(others, name))
        return tuple(INT64 if count else next(rest) for count in whole)

    def working(self, inputs: Dtypes) -> np.dtype[Any]:
        """Return the result type of the inputs that do more than count.

        Without any it is bool, beside which Python numbers are int64 and float64.
        """
        pairs = zip(inputs, self._alone, strict=False)
        values = [dtype for dtype, alone in pairs if not (alone and dtype.kind in "iu")]
        return np.result_type(*(values or inputs or [np.dtype(np.bool_)]))


def _counting(tree: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """Go through the outermost calls of ``range``, and indices."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and scope.builtin(node.func) == "range":
            yield node
        elif isinstance(node, ast.Subscript):
            yield node.slice
            yield from _counting(node.value, scope)
        else:
            yield from _counting(node, scope)


def _names(tree: ast.AST) -> Iterator[str]:
    return (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
