"""The quickest way to a loop on the CPU: arrays and numbers as in a call before.

What it does not know goes the general way.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from numpy import ndarray

from xdev.compile.machine_words import DATA
from xdev.ufunc.foreign import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.compile.grid import Argument
    from xdev.ufunc.kernels.cpu import CpuKernels, Plan
    from xdev.ufunc.kernels.decorator import Extents

MOST = 64  # calls of one grid that are known at a time
word_at = ctypes.c_int64.from_address  # by an array's attributes 0.9 us


@final
@dataclass(slots=True)
class _Known:
    """A call that was made before.

    Parameters
    ----------
    plan : Plan
        What ran.
    numbers : list
        The places of numbers, and the types that they have there.
    layouts : list of int
        The arrays' shapes and strides.
    """

    plan: Plan
    numbers: list[tuple[int, Any]]
    layouts: list[int]


@final
class Repeats:
    """The loops of a kernel over one grid, by types and layouts.

    Parameters
    ----------
    kernels : CpuKernels
        Runs a plan, of what its arguments are in memory.
    extents : Extents
        The grid.
    """

    __slots__ = ("_extents", "_kernels", "_known")

    def __init__(self, kernels: CpuKernels, extents: Extents) -> None:
        self._kernels, self._extents = kernels, extents
        self._known: dict[Any, _Known] = {}

    def __call__(self, args: Sequence[Any]) -> bool:
        """Run, if there was such a call before; say whether it was done."""
        key, values = _read(args)
        found = self._known.get(key)
        if found is None:
            return False
        try:
            for i, kind in found.numbers:
                values[i] = kind(values[i]).tobytes()
        except OverflowError:  # which the general way says in words
            return False
        self._kernels.compute(self._extents, found.plan, values + found.layouts)
        return True

    def learn(
        self, args: Sequence[Any], plan: Plan, arguments: Sequence[Argument]
    ) -> None:
        """Remember what ran.

        Parameters
        ----------
        args : sequence
            The arguments of the call.
        plan : Plan
            What ran.
        arguments : sequence of Argument
            The types that it has the arguments in.
        """
        if not all(type(x) is ndarray or isinstance(x, NUMBERS) for x in args):
            return
        layouts = [
            number
            for x in args
            if type(x) is ndarray
            for number in (*x.shape, *x.strides)
        ]
        numbers = [
            (i, argument.dtype.type)
            for i, (x, argument) in enumerate(zip(args, arguments, strict=True))
            if type(x) is not ndarray
        ]
        if len(self._known) >= MOST:
            self._known.clear()
        key, _ = _read(args)
        self._known[key] = _Known(plan, numbers, layouts)


def _read(args: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """Return all that a loop depends on, and the addresses and numbers.

    A freed array has a dtype of its own, which no call before had.
    """
    key: list[Any] = []
    values: list[Any] = []
    for x in args:
        kind = type(x)
        if kind is ndarray:
            key += x.dtype, x.shape, x.strides, x.flags.num
            values.append(word_at(id(x) + DATA).value)
        else:
            key.append(kind)
            values.append(x)
    return tuple(key), values
