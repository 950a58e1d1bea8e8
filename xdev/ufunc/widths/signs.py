"""Comparisons of uint64 with signed integers, which are exact as NumPy's.

Compilers take int64 for the two, in which half of uint64 is negative.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.compile import cpu
from xdev.ufunc.widths.kinds import mixed

if TYPE_CHECKING:
    from xdev.ufunc.scope import Scope
    from xdev.ufunc.widths.kinds import Kind

COMPARISONS = {  # by less(first, second): negated, swapped
    ast.Lt: (False, False),
    ast.Gt: (False, True),
    ast.LtE: (True, True),
    ast.GtE: (True, False),
}


def compared(
    node: ast.Compare, parts: list[ast.expr], kinds: list[Kind], scope: Scope
) -> ast.expr:
    """Return a comparison, one pair after the other.

    Parameters
    ----------
    node : ast.Compare
        The comparison.
    parts, kinds : list
        What it compares, rewritten, and its kinds.
    scope : Scope
        Where names of functions come from.
    """
    tests = list[ast.expr]()
    for k, op in enumerate(node.ops):
        left, right = parts[k : k + 2]
        if mixed(*kinds[k : k + 2]):
            tests.append(_exact(op, left, right, scope))
        else:
            tests.append(ast.copy_location(ast.Compare(left, [op], [right]), node))
    found = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
    return ast.copy_location(found, node)


def _exact(op: ast.cmpop, left: ast.expr, right: ast.expr, scope: Scope) -> ast.expr:
    if type(op) not in COMPARISONS:
        equal = _call("equal", left, right, scope)
        return equal if isinstance(op, ast.Eq) else _not(equal)
    negated, swapped = COMPARISONS[type(op)]
    pair = (right, left) if swapped else (left, right)
    less = _call("less", *pair, scope)
    return _not(less) if negated else less


def _call(name: str, left: ast.expr, right: ast.expr, scope: Scope) -> ast.expr:
    called = scope.name(left, name, _functions()[name])
    return ast.copy_location(ast.Call(called, [left, right], []), left)


def _not(node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(ast.Not(), node), node)


def _less(x: Any, y: Any) -> Any:
    a, b = np.float64(x), np.float64(y)
    if a != b:
        return a < b
    return np.uint64(x) < np.uint64(y)  # neither is negative


def _equal(x: Any, y: Any) -> Any:
    a, b = np.float64(x), np.float64(y)
    return a == b and np.uint64(x) == np.uint64(y)


@cache
def _functions() -> dict[str, Any]:
    """Return what is called, by name."""
    return {
        "less": cpu.device_function(_less),
        "equal": cpu.device_function(_equal),
    }
