"""Rows of machine code for calls of kernels that came again; loaded for the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.compile.grid import calls
from xdev.compile.grid.quick import Given, Limits, Rows, is_worth_it
from xdev.ufunc.kernels import cpu

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.compile.grid import Argument
    from xdev.ufunc.kernels.cpu import Plan
    from xdev.ufunc.kernels.extents import Extents

__all__ = ["Rows", "add", "is_worth_it"]
# What is done with numbers of other types than the kernel has them in; all else is
# Python's, whose errors and warnings have words.
WAYS = {
    (float, "d"): calls.COPIED,
    (float, "f"): calls.NARROWED,
    (complex, "D"): calls.COPIED,
    (int, np.dtype(np.int64).char): calls.COUNTED,
    (bool, "?"): calls.TRUTH,
}


def add(
    rows: Rows,
    extents: Extents,
    args: Sequence[Any],
    plan: Plan,
    layouts: Sequence[int],
) -> None:
    """Have machine code make such calls, if it can.

    Parameters
    ----------
    rows : Rows
        Those of the kernel with its grid.
    extents : Extents
        The grid.
    args : sequence
        The arguments of such a call.
    plan : Plan
        What ran.
    layouts : sequence of int
        The arrays' shapes and strides.
    """
    given = [
        known
        for each in zip(args, plan.kinds, strict=True)
        if (known := _given(*each)) is not None
    ]
    if plan.checked or len(given) < len(args):
        return
    empty = (0 if type(x) is np.ndarray else b"" for x in args)
    rows.add(
        given,
        plan.pack(*extents.shape, 0, *empty, *layouts),
        plan.address,
        extents.size,
        limits=Limits(
            *(cpu.LONG, cpu.TELLING, cpu.OWN, cpu.PIECE),
            *(cpu.FEW, cpu.PART, cpu.MORE),
        ),
        seconds=plan.each * extents.size,
        kept=plan,
    )


def _given(x: Any, argument: Argument) -> Given | None:
    """Return what machine code takes for such an argument, None if it takes none."""
    dtype, kind = argument.dtype, type(x)
    if kind is np.ndarray:
        return Given(x.dtype, x.ndim, x.flags.num & calls.MATTERS)
    way = WAYS.get((kind, dtype.char))
    if way is None and kind is dtype.type:
        way = calls.COPIED
    return None if way is None else Given(kind, way, argument.words)
