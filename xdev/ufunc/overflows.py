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
ARITHMETIC = ast.Add | ast.Sub | ast.Mult | ast.FloorDiv | ast.Mod


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
    """Refuse integers that meet an input itself in arithmetic, unless they fit.

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
    inputs = {argument.arg for argument in tree.args.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            inputs.discard(node.id)
    for node in _meeting(tree, inputs):
        value = number(node)
        if type(value) is int and not fits(value, dtype):
            file = function.__code__.co_filename
            line = linecache.getline(file, node.lineno).strip()
            taken = ", ".join([str(dtype)] * len(tree.args.args))
            message = (
                f"Python integer {value} out of bounds for {dtype} in "
                f"{function.__name__}: cast an argument to a larger dtype, or give a "
                f"signature, as int64({taken})\n  {file}:{node.lineno}: {line}"
            )
            raise OverflowError(message)


def _meeting(tree: ast.AST, inputs: set[str]) -> Iterator[ast.expr]:
    """Yield what stands beside a bare input where NumPy gives it the input's dtype."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, ARITHMETIC):
                operands = [left, right]
            case ast.Call(func=ast.Name(id=name), args=args) if name in EXTREMES:
                operands = args
            case _:
                continue
        beside = [one for one in operands if not _is_input(one, inputs)]
        if len(beside) < len(operands):
            yield from beside


def _is_input(node: ast.expr, inputs: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in inputs
