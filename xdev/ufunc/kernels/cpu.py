"""Kernels on NumPy arrays: a compiled loop over points, shared by threads."""

from __future__ import annotations

import ctypes
import threading
from array import array
from time import perf_counter
from typing import TYPE_CHECKING, Any, final

from xdev import _config
from xdev.compile.grid import WORD, bounds as reports, cpu as compiler, packer
from xdev.ufunc.kernels import arguments, bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.compile.grid import Argument
    from xdev.ufunc.kernels.extents import Extents
    from xdev.ufunc.kernels.functions import KernelFunction

Plan = tuple[
    tuple["Argument", ...], "Callable[..., bytes]", "Callable[[int, int, bytes], None]"
]
FEW, PART = 1024, 256  # points that are timed first: so many, or such a part of few
MORE = 8  # times as many come then
TELLING = 3e-6  # seconds; what takes less tells of the call's own time
LONG = 2e-5  # seconds of work from which on threads are worth their start
PIECE = 5e-6  # seconds that a piece should take at least


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
        self._lock = threading.Lock()  # guards the dict below: a loop is made once
        self._plans: dict[Any, Plan] = {}

    def __call__(
        self, extents: Extents, args: Sequence[Any]
    ) -> tuple[Plan, tuple[Argument, ...]]:
        """Run for every point; return what ran, and the arguments' types.

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
            with self._lock:
                plan = self._plans.get(key)
                if plan is None:
                    kinds, working = arguments.types(operands, names, function.name)
                    grid = function.typed(
                        indices, kinds, working, checked=self._checked
                    )
                    with arguments.explaining(operands, names, function.name):
                        plan = kinds, packer(kinds), compiler.loop(grid)
                    self._plans[key] = plan
        self.compute(extents, plan, arguments.words(operands, plan[0]))
        return plan, plan[0]

    def compute(self, extents: Extents, plan: Plan, words: Sequence[Any]) -> None:
        """Run a plan for every point.

        Parameters
        ----------
        extents : Extents
            The points.
        plan : tuple
            What a call returned.
        words : sequence
            The arguments, as :func:`xdev.ufunc.kernels.arguments.words` has them.
        """
        _, pack, loop = plan
        report = array("q", bytes(WORD * reports.LENGTH))
        address, _ = report.buffer_info()
        _share(loop, extents.size, pack(*extents.shape, address, *words))
        if report[0]:
            function, indices = self._function, extents.dimensions
            names = function.split(indices, len(plan[0]))
            bounds.refuse(report, function.name, names, indices)


def _share(loop: Callable[[int, int, bytes], None], n: int, memory: bytes) -> None:
    """Compute some points, and the others in threads where there is enough to do."""
    first, few = 0, max(min(n // PART, FEW), 1)
    each = 1.0  # seconds; not known yet, so some are timed
    while each * (n - first) >= LONG:
        start = perf_counter()
        loop(first, first + few, memory)
        seconds = perf_counter() - start
        first, each = first + few, seconds / few
        if seconds >= TELLING:
            break
        few = min(MORE * few, n - first)
    if each * (n - first) < LONG or _config.num_threads() == 1:
        loop(first, n, memory)
        return
    from xdev.compile import threads  # only for those that need them
    from xdev.compile.team.threads import address_of

    context = address_of(ctypes.c_char_p(memory))
    grain = int(PIECE / each) + 1
    threads.share(address_of(loop), context, first, n, grain=grain)
