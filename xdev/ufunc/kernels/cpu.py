"""Kernels on NumPy arrays: a compiled loop over points, shared by threads."""

from __future__ import annotations

from array import array
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from xdev import native
from xdev.compile import threads
from xdev.compile.grid import LENGTH, WORD, cpu as compiler
from xdev.ufunc.cuda_operands import Array, Number
from xdev.ufunc.foreign import NUMBERS
from xdev.ufunc.inputs import too_large
from xdev.ufunc.kernels import arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.ufunc.kernels import Extents
    from xdev.ufunc.kernels.functions import Call, KernelFunction

MOST = 256  # calls of one kernel that are known at a time


def again(function: KernelFunction, extents: Extents, args: Sequence[Any]) -> bool:
    """Run for every point, if there was such a call before; say whether it was done.

    Parameters are those of :func:`run`, of any library.
    """
    key, values = _read(args)
    call = function.calls.get((extents.dimensions, *key))
    return call is not None and _compute(function, extents, call, values)


def run(
    function: KernelFunction,
    extents: Extents,
    args: Sequence[Any],
    *,
    checked: bool = False,
) -> None:
    """Run for every point.

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
    dtypes = [kind.dtype for kind in plan.kinds]
    owners = [x.owner for x in operands]
    arrays = [x for x in operands if isinstance(x, Array)]
    numbers = [
        (i, dtypes[i].type) for i, x in enumerate(operands) if isinstance(x, Number)
    ]
    call = plan, numbers, [n for x in arrays for n in (*x.shape, *x.strides)]
    arguments.begin_writes(args, operands, names, function.name, plan.writes)
    values = [x.address if isinstance(x, Array) else x.value for x in operands]
    if not _compute(function, extents, call, values):
        raise too_large(owners, dtypes, function.name, names)
    if not checked and all(type(x) is ndarray or isinstance(x, NUMBERS) for x in args):
        if len(function.calls) >= MOST:
            function.calls.clear()
        known, _ = _read(args)
        function.calls[indices, *known] = call


def _compute(
    function: KernelFunction, extents: Extents, call: Call, values: list[Any]
) -> bool:
    """Run a plan of addresses and numbers; say whether these fit."""
    plan, numbers, layouts = call
    try:
        for i, kind in numbers:
            values[i] = kind(values[i]).tobytes()
    except OverflowError:
        return False
    report = array("q", bytes(WORD * LENGTH))
    address, _ = report.buffer_info()
    memory = plan.pack(*extents.shape, address, *values, *layouts)
    code = plan.machine.address
    plan.each = threads.compute(plan.machine, code, memory, extents.size, plan.each)
    if report[0]:
        function.refuse_reported(report, extents.dimensions)
    return True


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
