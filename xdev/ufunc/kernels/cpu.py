"""Kernels on NumPy arrays: a compiled loop over points, shared by threads."""

from __future__ import annotations

from array import array
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, final

from numpy import ndarray

from xdev import native
from xdev.compile import threads
from xdev.compile.grid import LENGTH, WORD, cpu as compiler
from xdev.ufunc.foreign import NUMBERS
from xdev.ufunc.inputs import too_large
from xdev.ufunc.kernels import arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.ufunc.kernels.decorator import Extents
    from xdev.ufunc.kernels.functions import KernelFunction, Plan

MOST = 64  # calls of one grid that are known at a time


def run(
    function: KernelFunction,
    extents: Extents,
    args: Sequence[Any],
    *,
    checked: bool = False,
) -> Plan:
    """Run for every point; return what ran.

    Parameters
    ----------
    function : KernelFunction
        The kernel's.
    extents : Extents
        The points.
    args : sequence
        NumPy arrays and numbers.
    checked : bool
        Whether accesses out of bounds are reported, whatever ``XDEV_DEBUG`` is.

    Raises
    ------
    TypeError, ValueError, OverflowError
        The arguments are wrong, or the function cannot be compiled for them: nothing
        was written.
    IndexError
        An access was out of bounds; where that is checked.
    """
    indices = extents.dimensions
    names = function.split(indices, len(args))
    operands = [arguments.host(x, function.name) for x in args]
    key = checked, *map(arguments.key, operands)
    plan = function.plan(key, indices, operands, compiler.loop, checked=checked)
    try:
        words = arguments.words(operands, plan.kinds)
    except OverflowError as error:
        owners = [x.owner for x in operands]
        dtypes = [kind.dtype for kind in plan.kinds]
        raise too_large(owners, dtypes, function.name, names) from error
    arguments.begin_writes(args, operands, names, function.name, plan.writes)
    compute(function, extents, plan, words)
    return plan


def compute(
    function: KernelFunction, extents: Extents, plan: Plan, words: Sequence[Any]
) -> None:
    """Run a plan for every point.

    Parameters
    ----------
    function : KernelFunction
        The kernel's.
    extents : Extents
        The points.
    plan : Plan
        What a call returned.
    words : sequence
        The arguments, as :func:`xdev.ufunc.kernels.arguments.words` has them.
    """
    report = array("q", bytes(WORD * LENGTH))
    address, _ = report.buffer_info()
    memory, loop = plan.pack(*extents.shape, address, *words), plan.machine
    plan.each = threads.compute(
        loop, loop.code.address, memory, extents.size, plan.each
    )
    if report[0]:
        function.refuse_reported(report, extents.dimensions)


@final
class Repeats:
    """The calls over one grid that were made before, by types and layouts.

    What they do not know goes the general way.

    Parameters
    ----------
    function : KernelFunction
        The kernel's.
    extents : Extents
        The grid.
    """

    __slots__ = ("_extents", "_function", "_plans")

    def __init__(self, function: KernelFunction, extents: Extents) -> None:
        self._function, self._extents = function, extents
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
        compute(self._function, self._extents, plan, values + layouts)
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
