"""Kernels on CUDA arrays: one launch on CuPy's current stream."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from xdev import _optional, native
from xdev._plain_calls import BYTES, LIMIT
from xdev.compile import launch
from xdev.compile.grid import (
    HEADER,
    LENGTH,
    WORD,
    Grid,
    cuda as compiler,
    packer,
)
from xdev.compile.launch import Launch, Value
from xdev.ufunc import cuda, cuda_streams
from xdev.ufunc.cuda_operands import Array, Number, handed, read
from xdev.ufunc.foreign import NUMBERS
from xdev.ufunc.kernels import arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.compile.grid import Argument
    from xdev.ufunc.kernels import Extents
    from xdev.ufunc.kernels.functions import KernelFunction


def run(
    function: KernelFunction, extents: Extents, args: Sequence[Any]
) -> native.calls.LaunchPlan | None:
    """Run for every point.

    Parameters
    ----------
    function : KernelFunction
        The kernel's.
    extents : Extents
        The points.
    args : sequence
        CUDA arrays of one device, of any library, and numbers.

    Returns
    -------
    LaunchPlan or None
        What another such call would launch. None where nothing ran, accesses are
        checked, or arrays are of other libraries.

    Raises
    ------
    TypeError, ValueError, OverflowError
        The arguments are wrong, or the function cannot be compiled for them.
    DeviceMismatchError
        Arrays of two devices. Whatever is raised, nothing was written.
    IndexError
        An access was out of bounds; only under ``XDEV_DEBUG=1``, where a call waits
        until its work is done.
    """
    indices, name = extents.dimensions, function.name
    names = function.split(indices, len(args))
    operands = [read(x, name, label) for x, label in zip(args, names, strict=True)]
    arrays = [x for x in operands if isinstance(x, Array)]
    with cuda.on_device(arrays, name) as place:
        fits = arguments.sizes(extents, arrays)
        key = "cuda", place, *fits, *map(arguments.key, operands)
        plan = function.plan(key, indices, operands, partial(loaded, fits=fits))
        dtypes = [kind.dtype for kind in plan.kinds]
        values = handed(operands, dtypes, name, names)
        arguments.begin_writes(args, operands, names, name, plan.writes)
        if not extents.size:
            return None
        report = _optional.cupy().zeros(LENGTH, "q") if plan.checked else None
        address = 0 if report is None else report.data.ptr
        found = launch_of(plan.machine, plan.kinds, extents, operands, address)
        with cuda_streams.ordered(arrays):
            found(values)
        if report is not None:
            function.refuse_reported(report.tolist(), indices)
            return None
        array = _optional.cupy().ndarray
        if not all(type(x) is array or isinstance(x, NUMBERS) for x in args):
            return None
        encoders = tuple(
            Number.encoder(dtype) if value.kind == BYTES else None
            for value, dtype in zip(found.values, dtypes, strict=True)
        )
        return native.calls.LaunchPlan(found, encoders=encoders)


def loaded(grid: Grid, *, fits: tuple[bool, bool]) -> Any:
    """Return a function's kernel on the current device.

    Parameters
    ----------
    grid : Grid
        The function and its types.
    fits : (bool, bool)
        As :func:`xdev.ufunc.kernels.arguments.sizes` returns it.

    Raises
    ------
    TypeError
        It cannot be compiled, or CUDA hands over no memory of that size.
    """
    cuda.require()
    if grid.words * WORD > LIMIT:
        raise TypeError(
            f"{grid.function.__name__} has too many arguments for CUDA: their "
            f"addresses, shapes and strides take {grid.words * WORD} bytes of at "
            f"most {LIMIT}"
        )
    here = launch.capability(_optional.cupy().cuda.runtime.getDevice())
    narrow, small = fits
    return launch.Kernel(*compiler.cubin(grid, here, narrow=narrow, small=small))


def launch_of(
    kernel: Any,
    kinds: tuple[Argument, ...],
    extents: Extents,
    operands: Sequence[Array | Number],
    report: int = 0,
) -> Launch:
    """Return the launch over a grid: all of it but addresses and numbers."""
    values = tuple(
        Value() if isinstance(x, Array) else Value.number(x.value, kind.dtype)
        for x, kind in zip(operands, kinds, strict=True)
    )
    slots = (0 if isinstance(x, Array) else b"" for x in operands)
    arrays = (x for x in operands if isinstance(x, Array))
    layouts = [number for x in arrays for number in (*x.shape, *x.strides)]
    memory = packer(kinds)(*extents.shape, report, *slots, *layouts)
    return Launch(kernel, *extents.launch, memory, values, first=HEADER * WORD)
