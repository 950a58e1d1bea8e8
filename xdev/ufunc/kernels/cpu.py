"""Kernels on NumPy arrays: a compiled loop over points, shared by threads."""

from __future__ import annotations

import threading
from time import perf_counter
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.compile import threads
from xdev.compile.grid import bounds as reports, cpu as compiler, packer
from xdev.ufunc.kernels import arguments, bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.compile.grid import Argument
    from xdev.ufunc.kernels.extents import Extents
    from xdev.ufunc.kernels.functions import KernelFunction

Plan = tuple[
    tuple["Argument", ...], "Callable[..., bytes]", "Callable[[int, int, bytes], None]"
]
FEW = 1024  # points that are computed first, and timed
LONG = 2e-4  # seconds of work from which on threads are worth their start
PIECE = 5e-5  # seconds that a piece should take at least


@final
class CpuKernels:
    """The loops of one kernel, by the types of its arguments.

    Parameters
    ----------
    function : KernelFunction
        The function.
    """

    def __init__(self, function: KernelFunction) -> None:
        self._function = function
        self._lock = threading.Lock()  # guards the dict below: a loop is made once
        self._plans: dict[Any, Plan] = {}

    def __call__(self, extents: Extents, args: Sequence[Any]) -> None:
        """Run for every point.

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
            An access was out of bounds; only under ``XDEV_DEBUG=1``.
        """
        function, indices = self._function, extents.dimensions
        names = function.split(indices, len(args))
        operands = [arguments.host(x, function.name) for x in args]
        key = indices, *map(arguments.key, operands)
        plan = self._plans.get(key)
        if plan is None:
            with self._lock:
                plan = self._plans.get(key)
                if plan is None:
                    kinds, working = arguments.types(operands, names, function.name)
                    grid = function.typed(indices, kinds, working)
                    plan = kinds, packer(kinds), compiler.loop(grid)
                    self._plans[key] = plan
        kinds, pack, loop = plan
        report = np.zeros(reports.LENGTH, np.int64)
        words = arguments.words(operands, kinds)
        memory = pack(*extents.shape, report.ctypes.data, *words)
        _share(loop, extents.size, memory)
        bounds.refuse(report.tolist(), function.name, names, indices)


def _share(loop: Callable[[int, int, bytes], None], n: int, memory: bytes) -> None:
    """Compute some points, and the others in threads where there is enough to do."""
    first = min(n, FEW)
    start = perf_counter()
    loop(0, first, memory)
    each = (perf_counter() - start) / max(first, 1)
    rest = n - first
    if each * rest < LONG:
        loop(first, n, memory)
        return

    def piece(start: int, stop: int) -> None:
        loop(first + start, first + stop, memory)

    threads.run(piece, rest, grain=int(PIECE / each) + 1)
