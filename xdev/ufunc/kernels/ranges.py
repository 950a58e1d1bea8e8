"""Loops over ``range`` in a kernel, named so that a device may compile its own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, final

from xdev.compile.grid.cuda_loops import NAMES
from xdev.ufunc import sources

if TYPE_CHECKING:
    from collections.abc import Callable


@final
class Ranges(ast.NodeTransformer):
    """Rewrites ``for k in range(a, b)`` to ``for k in xdev_range(a, b)``.

    The name is a global of the function that stands for ``range`` itself. Other uses of
    ``range``, and those with a step, stay.

    Parameters
    ----------
    function : callable
        The function whose source is rewritten.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        code = function.__code__
        own = {*code.co_varnames, *code.co_cellvars, *sources.outside(function)}
        self._builtin = "range" not in own

    def __call__(self, tree: ast.FunctionDef | ast.Lambda) -> dict[str, Any]:
        """Rewrite a function; return the values of the names that it now reads."""
        if self._builtin:
            self.generic_visit(tree)
        return dict.fromkeys(NAMES, range)

    def visit_For(self, node: ast.For) -> ast.For:
        """Rename the range of a loop, and those of the loops inside it."""
        self.generic_visit(node)
        match node.iter:
            case ast.Call(ast.Name("range") as name, [*given], []) if 1 <= len(
                given
            ) <= len(NAMES) and not any(isinstance(one, ast.Starred) for one in given):
                name.id = NAMES[len(given) - 1]
        return node
