"""The quickest way to a loop on the CPU: arrays and numbers as in a call before.

What it does not know goes the general way. A call that it meets again becomes a row of
machine code, by which others like it go past Python, once that code is there.
"""

from __future__ import annotations

import ctypes
import sys
from _thread import allocate_lock
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from numpy import ndarray

from xdev.compile.grid.called import MOST
from xdev.compile.machine_words import DATA
from xdev.ufunc.on_cuda import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.compile.grid import Argument
    from xdev.compile.grid.called import Called
    from xdev.compile.grid.quick import Rows
    from xdev.ufunc.kernels.cpu import CpuKernels, Plan
    from xdev.ufunc.kernels.extents import Extents

word_at = ctypes.c_int64.from_address  # by an array's attributes 0.9 us
# Guards the rows of all kernels. Nobody waits for it: a finalizer of the thread that
# has it would for ever, and what is not told now is told at a later call.
_telling = allocate_lock()


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
    told : bool
        Whether machine code was told of it, or cannot be.
    """

    plan: Plan
    numbers: list[tuple[int, Any]]
    layouts: list[int]
    told: bool = False


@final
class Repeats:
    """The loops of a kernel over one grid, by types and layouts.

    Parameters
    ----------
    kernels : CpuKernels
        Runs a plan, of what its arguments are in memory.
    extents : Extents
        The grid.
    owner : Called
        What is called; it keeps this.
    """

    __slots__ = ("_connection", "_extents", "_kernels", "_known", "_rows")

    def __init__(self, kernels: CpuKernels, extents: Extents, owner: Called) -> None:
        self._kernels, self._extents = kernels, extents
        self._known: dict[Any, _Known] = {}
        self._connection = owner.connection()
        self._rows: Rows | None = None

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
        if not found.told and _telling.acquire(blocking=False):
            try:
                self._tell(args, found)
            finally:
                _telling.release()
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
        if len(self._known) >= MOST and not self._forget():
            return
        key, _ = _read(args)
        self._known[key] = _Known(plan, numbers, layouts)

    def _forget(self) -> bool:
        """Forget all calls, if nobody tells of one; say whether it was done."""
        if not _telling.acquire(blocking=False):
            return False
        try:
            self._known.clear()
            if self._rows is not None:
                self._rows.clear()
        finally:
            _telling.release()
        return True

    def _tell(self, args: Sequence[Any], known: _Known) -> None:
        """Have machine code make such calls, if it can, and is worth compiling."""
        if sys.is_finalizing():  # no module can be loaded any more
            return
        try:
            from xdev.ufunc.kernels import cpu_quick

            if cpu_quick.is_worth_it():
                known.told = True
                if self._rows is None:
                    self._rows = cpu_quick.Rows(self._connection)
                cpu_quick.add(
                    self._rows, self._extents, args, known.plan, known.layouts
                )
        except Exception:  # noqa: BLE001 - the call is done, and did not ask for this
            known.told = True


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
