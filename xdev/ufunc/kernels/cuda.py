"""Kernels on CUDA arrays: one launch on CuPy's current stream."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev.compile import launch
from xdev.compile.grid import bounds as reports, cuda as compiler, packer
from xdev.ufunc import cuda, cuda_streams
from xdev.ufunc.cuda_operands import Array, read
from xdev.ufunc.kernels import arguments, bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.compile.grid import Argument
    from xdev.ufunc.kernels.extents import Extents
    from xdev.ufunc.kernels.functions import KernelFunction

Plan = tuple[tuple["Argument", ...], "Callable[..., bytes]", "compiler.Kernel", bool]


@final
class CudaKernels:
    """The CUDA kernels of one function, by the types of its arguments.

    Parameters
    ----------
    function : KernelFunction
        The function.
    """

    def __init__(self, function: KernelFunction) -> None:
        self._function = function
        self._lock = threading.Lock()  # guards the dict below: a kernel is made once
        self._plans: dict[Any, Plan] = {}

    def __call__(self, extents: Extents, args: Sequence[Any]) -> None:
        """Run for every point.

        Parameters
        ----------
        extents : Extents
            The points.
        args : sequence
            CUDA arrays of one device, of any library, and numbers.

        Raises
        ------
        TypeError, ValueError, OverflowError
            The arguments are wrong, or the function cannot be compiled for them.
        DeviceMismatchError
            Arrays of two devices. Whatever is raised, nothing was written.
        IndexError
            An access was out of bounds; only under ``XDEV_DEBUG=1``, where a call
            waits until its work is done.
        """
        function, indices = self._function, extents.dimensions
        names = function.split(indices, len(args))
        operands = [read(x, function.name) for x in args]
        arrays = [x for x in operands if isinstance(x, Array)]
        with cuda.on_device(arrays, function.name) as place:
            key = place, indices, *map(arguments.key, operands)
            plan = self._plans.get(key) or self._plan(key, operands, names)
            kinds, pack, run, checked = plan
            words = arguments.words(operands, kinds)
            if not extents.size:
                return
            report = _optional.cupy().zeros(reports.LENGTH, "q") if checked else None
            address = 0 if report is None else report.data.ptr
            memory = pack(*extents.shape, address, *words)
            with cuda_streams.ordered(arrays) as stream:
                run(stream, *extents.launch, memory)
            if report is not None:
                bounds.refuse(report.tolist(), function.name, names, indices)

    def _plan(self, key: Any, operands: list[Any], names: Sequence[str]) -> Plan:
        """Compile for types that are new."""
        cuda.require()
        _, indices, *_ = key
        with self._lock:
            if key not in self._plans:
                function = self._function
                kinds, working = arguments.types(operands, names, function.name)
                grid = function.typed(indices, kinds, working)
                current = _optional.cupy().cuda.runtime.getDevice()
                cubin = compiler.cubin(grid, launch.capability(current))
                run = compiler.Kernel(*cubin)
                self._plans[key] = kinds, packer(kinds), run, grid.checked
            return self._plans[key]
