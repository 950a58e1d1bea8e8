"""Integer literals that do not fit beside a function's inputs, as in NEP 50.

NumPy refuses ``uint8(5) + 300`` and answers ``uint8(5) < 300``, and so does a function.
Numbers beside its own counters and indices are none of the inputs' business.
"""

from __future__ import annotations

import ast
import linecache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXTREMES = frozenset({"max", "min"})


def fits(value: int, dtype: np.dtype[Any]) -> bool:
    """Say whether an integer dtype has a value.

    Examples
    --------
    >>> fits(-1, np.dtype("uint8")), fits(255, np.dtype("uint8"))
    (False, True)
    """
    info = np.iinfo(dtype)
    return int(info.min) <= value <= int(info.max)


def check(
    function: Callable[..., Any],
    tree: ast.FunctionDef | ast.Lambda,
    dtype: np.dtype[Any],
    number: Callable[[ast.expr], complex | None],
) -> None:
    """Refuse integers that meet the inputs in arithmetic, or are returned, unless fit.

    Parameters
    ----------
    function : callable
        The function, for its name and file.
    tree : ast.FunctionDef or ast.Lambda
        Its source.
    dtype : numpy.dtype
        The inputs' integer result type.
    number : callable
        Returns the Python number that an expression stands for, else None.

    Raises
    ------
    OverflowError
        One does not fit; the text has its line.
    """
    own = _from_inputs(tree)
    for node, meeting in _meetings(tree):
        value = number(node)
        if type(value) is not int or fits(value, dtype):
            continue
        if meeting is None or any(_names(one) & own for one in meeting):
            file = function.__code__.co_filename
            line = linecache.getline(file, node.lineno).strip()
            taken = ", ".join([str(dtype)] * len(tree.args.args))
            message = (
                f"Python integer {value} out of bounds for {dtype} in "
                f"{function.__name__}: cast an argument to a larger dtype, or give a "
                f"signature, as int64({taken})\n  {file}:{node.lineno}: {line}"
            )
            raise OverflowError(message)


def _meetings(
    tree: ast.FunctionDef | ast.Lambda,
) -> Iterator[tuple[ast.expr, list[ast.expr] | None]]:
    """Yield operands with what they meet, and what is returned with None."""
    if isinstance(tree, ast.Lambda):
        yield from ((one, None) for one in _answers(tree.body))
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(left=left, op=op, right=right):
                yield left, [right]
                if not isinstance(op, ast.Pow | ast.LShift | ast.RShift):
                    yield right, [left]
            case ast.AugAssign(target=target, op=op, value=value):
                if not isinstance(op, ast.Pow | ast.LShift | ast.RShift):
                    yield value, [target]
            case ast.Call(func=ast.Name(id=name), args=args) if name in EXTREMES:
                yield from ((one, args) for one in args)
            case ast.Return(value=ast.expr() as value):
                yield from ((one, None) for one in _answers(value))


def _answers(node: ast.expr) -> Iterator[ast.expr]:
    """Yield what an expression may be, or the items of a tuple."""
    if isinstance(node, ast.IfExp):
        yield from _answers(node.body)
        yield from _answers(node.orelse)
    elif isinstance(node, ast.Tuple):
        for item in node.elts:
            yield from _answers(item)
    else:
        yield node


def _from_inputs(tree: ast.FunctionDef | ast.Lambda) -> set[str]:
    """Return the names of the inputs, and of what is computed from them."""
    own = {argument.arg for argument in tree.args.args}
    count = 0
    while count < len(own):
        count = len(own)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and (
                node.value is not None and _names(node.value) & own
            ):
                targets = (
                    node.targets if isinstance(node, ast.Assign) else [node.target]
                )
                own.update(*map(_names, targets))
    return own


def _names(node: ast.expr) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
