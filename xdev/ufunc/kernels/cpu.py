"""Kernels on NumPy arrays: a compiled loop over points, shared by threads."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, final

from numpy import ndarray

from xdev import native
from xdev._forks import module_lock
from xdev.compile import threads
from xdev.compile.grid import WORD, cpu as compiler, emission as reports, packer
from xdev.ufunc.foreign import NUMBERS
from xdev.ufunc.inputs import too_large
from xdev.ufunc.kernels import arguments, functions

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from xdev.compile.grid import Argument
    from xdev.ufunc.kernels.decorator import Extents
    from xdev.ufunc.kernels.functions import KernelFunction

MOST = 64  # calls of one grid that are known at a time
_lock = module_lock()  # guards the making of plans: each is made once


@final
@dataclass(slots=True)
class Plan:
    """A loop over points, for arguments of some types.

    Parameters
    ----------
    kinds : tuple of Argument
        The types.
    pack : callable
        Returns the loop's memory, of the arguments.
    loop : callable
        ``loop(start, stop, memory)``, a C function.
    address : int
        The loop's.
    writes : callable
        Returns the names of the arrays that are written.
    each : float
        Seconds that a point took the last time that threads shared them, 0 before; a
        guess for the next.
    """

    kinds: tuple[Argument, ...]
    pack: Callable[..., bytes]
    loop: Any
    address: int
    writes: Callable[[], Container[str]]
    each: float = 0.0


@final
class CpuKernels:
    """The loops of one kernel, by the types of its arguments.

    Parameters
    ----------
    function : KernelFunction
        The function.
    checked : bool
        Whether accesses out of bounds are reported, whatever ``XDEV_DEBUG`` is.
    """

    def __init__(self, function: KernelFunction, *, checked: bool = False) -> None:
        self._function, self._checked = function, checked
        self._plans: dict[Any, Plan] = {}

    def __call__(self, extents: Extents, args: Sequence[Any]) -> Plan:
        """Run for every point; return what ran.

        Parameters
        ----------
        extents : Extents
            The points.
        args : sequence
            NumPy arrays and numbers.

        Raises
        ------
        TypeError, ValueError, OverflowError
            The arguments are wrong, or the function cannot be compiled for them:
            nothing was written.
        IndexError
            An access was out of bounds; where that is checked.
        """
        function, indices = self._function, extents.dimensions
        names = function.split(indices, len(args))
        operands = [arguments.host(x, function.name) for x in args]
        key = indices, *map(arguments.key, operands)
        plan = self._plans.get(key)
        if plan is None:
            with _lock:
                plan = self._plans.get(key)
                if plan is None:
                    kinds, working = arguments.types(operands, names, function.name)
                    grid = function.typed(
                        indices, kinds, working, checked=self._checked
                    )
                    typing = indices, kinds, working
                    with function.refusing_writes(*typing):
                        loop: Any = compiler.loop(grid)
                    address = loop.code.address
                    found = partial(function.writes, *typing)
                    plan = Plan(kinds, packer(kinds), loop, address, found)
                    self._plans[key] = plan
        try:
            words = arguments.words(operands, plan.kinds)
        except OverflowError as error:
            owners = [x.owner for x in operands]
            dtypes = [kind.dtype for kind in plan.kinds]
            raise too_large(owners, dtypes, function.name, names) from error
        arguments.begin_writes(args, operands, names, function.name, plan.writes)
        self.compute(extents, plan, words)
        return plan

    def compute(self, extents: Extents, plan: Plan, words: Sequence[Any]) -> None:
        """Run a plan for every point.

        Parameters
        ----------
        extents : Extents
            The points.
        plan : Plan
            What a call returned.
        words : sequence
            The arguments, as :func:`xdev.ufunc.kernels.arguments.words` has them.
        """
        report = array("q", bytes(WORD * reports.LENGTH))
        address, _ = report.buffer_info()
        memory = plan.pack(*extents.shape, address, *words)
        plan.each = threads.compute(
            plan.loop, plan.address, memory, extents.size, plan.each
        )
        if report[0]:
            function, indices = self._function, extents.dimensions
            names = function.split(indices, len(plan.kinds))
            functions.refuse_reported(report, function.name, names, indices)


@final
class Repeats:
    """The calls over one grid that were made before, by types and layouts.

    What they do not know goes the general way.

    Parameters
    ----------
    kernels : CpuKernels
        Runs a plan, of what its arguments are in memory.
    extents : Extents
        The grid.
    """

    __slots__ = ("_extents", "_kernels", "_plans")

    def __init__(self, kernels: CpuKernels, extents: Extents) -> None:
        self._kernels, self._extents = kernels, extents
        # With the places and types of numbers, and the arrays' shapes and strides.
        self._plans: dict[Any, tuple[Plan, list[tuple[int, Any]], list[int]]] = {}

    def __call__(self, args: Sequence[Any]) -> bool:
        """Run, if there was such a call before; say whether it was done."""
        key, values = _read(args)
        found = self._plans.get(key)
        if found is None:
            return False
        plan, numbers, layouts = found
        try:
            for i, kind in numbers:
                values[i] = kind(values[i]).tobytes()
        except OverflowError:  # which the general way says in words
            return False
        self._kernels.compute(self._extents, plan, values + layouts)
        return True

    def store(self, args: Sequence[Any], plan: Plan) -> None:
        """Remember what ran of arguments."""
        if not all(type(x) is ndarray or isinstance(x, NUMBERS) for x in args):
            return
        arrays = [x for x in args if type(x) is ndarray]
        layouts = [number for x in arrays for number in (*x.shape, *x.strides)]
        kinds = enumerate(zip(args, plan.kinds, strict=True))
        numbers = [(i, k.dtype.type) for i, (x, k) in kinds if type(x) is not ndarray]
        if len(self._plans) >= MOST:
            self._plans.clear()
        key, _ = _read(args)
        self._plans[key] = plan, numbers, layouts


@cache
def _address() -> Callable[[Any], int]:
    """Return what tells where an array begins; the array's own attributes take 1 µs."""
    compiled = native.module("threads")
    return attrgetter("ctypes.data") if compiled is None else compiled.address


def _read(args: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """Return all that a loop depends on, and the addresses and numbers.

    A freed array has a dtype of its own, which no call before had.
    """
    key: list[Any] = []
    values: list[Any] = []
    address = _address()
    for x in args:
        if type(x) is ndarray:
            key += x.dtype, x.shape, x.strides, x.flags.num
            values.append(address(x))
        else:
            key.append(type(x))
            values.append(x)
    return tuple(key), values
