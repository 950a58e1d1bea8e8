"""Kernels on CUDA arrays: one launch on CuPy's current stream."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, final

from xdev import _optional, native
from xdev._plain_calls import BYTES, LIMIT
from xdev.compile import launch
from xdev.compile.grid import (
    HEADER,
    WORD,
    cuda as compiler,
    emission as reports,
    packer,
)
from xdev.compile.launch import Launch, Value
from xdev.ufunc import cuda, cuda_streams
from xdev.ufunc.cuda_operands import Array, Number, handed, read
from xdev.ufunc.foreign import NUMBERS
from xdev.ufunc.kernels import arguments, functions

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from xdev.compile.grid import Argument, Grid
    from xdev.ufunc.kernels.decorator import Extents
    from xdev.ufunc.kernels.functions import KernelFunction

KNOWN = 1024  # launches that are kept at a time


@final
class Compiled(NamedTuple):
    """A kernel for types of arguments."""

    kinds: tuple[Argument, ...]
    pack: Callable[..., bytes]
    kernel: Any
    checked: bool
    #: Returns the names of the arrays that are written.
    writes: Callable[[], Container[str]] = tuple

    @classmethod
    def of(cls, grid: Grid, *, narrow: bool, small: bool) -> Compiled:
        """Compile a function for the current device; load it.

        Raises
        ------
        TypeError
            It cannot be compiled, or CUDA hands over no memory of that size.
        """
        if grid.words * WORD > LIMIT:
            message = (
                f"{grid.function.__name__} has too many arguments for CUDA: their "
                f"addresses, shapes and strides take {grid.words * WORD} bytes of at "
                f"most {LIMIT}"
            )
            raise TypeError(message)
        here = launch.capability(_optional.cupy().cuda.runtime.getDevice())
        cubin = compiler.cubin(grid, here, narrow=narrow, small=small)
        kinds = grid.arguments
        return cls(kinds, packer(kinds), launch.Kernel(*cubin), grid.checked)

    def launch(
        self, extents: Extents, operands: Sequence[Array | Number], report: int = 0
    ) -> Launch:
        """Return the launch over a grid: all of it but addresses and numbers."""
        words = arguments.words(operands, self.kinds)
        values = tuple(
            Value() if isinstance(x, Array) else Value.number(x.value, kind.dtype)
            for x, kind in zip(operands, self.kinds, strict=True)
        )
        memory = self.pack(*extents.shape, report, *words)
        return Launch(self.kernel, *extents.launch, memory, values, first=HEADER * WORD)


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
        self._lock = threading.Lock()  # guards the next dict: a kernel is made once
        self._compiled: dict[Any, Compiled] = {}
        self._launches: dict[Any, Launch] = {}

    def __call__(
        self, extents: Extents, args: Sequence[Any]
    ) -> native.calls.LaunchPlan | None:
        """Run for every point.

        Parameters
        ----------
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
            An access was out of bounds; only under ``XDEV_DEBUG=1``, where a call
            waits until its work is done.
        """
        function, indices = self._function, extents.dimensions
        names = function.split(indices, len(args))
        operands = [
            read(x, function.name, label) for x, label in zip(args, names, strict=True)
        ]
        arrays = [x for x in operands if isinstance(x, Array)]
        with cuda.on_device(arrays, function.name) as place:
            narrow = extents.whole and arguments.narrow(extents.shape, arrays)
            sizes = narrow, arguments.small(arrays)
            key = place, indices, sizes, *map(arguments.key, operands)
            compiled = self._compiled.get(key) or self._compile(key, operands, names)
            dtypes = [kind.dtype for kind in compiled.kinds]
            values = handed(operands, dtypes, function.name, names)
            arguments.begin_writes(
                args, operands, names, function.name, compiled.writes
            )
            if not extents.size:
                return None
            if compiled.checked:
                report = _optional.cupy().zeros(reports.LENGTH, "q")
                run = compiled.launch(extents, operands, report.data.ptr)
                with cuda_streams.ordered(arrays):
                    run(values)
                functions.refuse_reported(
                    report.tolist(), function.name, names, indices
                )
                return None
            layouts = key, extents, *(x.layout for x in arrays)
            found = self._launches.get(layouts)
            if found is None:
                found = compiled.launch(extents, operands)
                if len(self._launches) >= KNOWN:
                    self._launches.clear()
                self._launches[layouts] = found
            with cuda_streams.ordered(arrays):
                found(values)
            array = _optional.cupy().ndarray
            if not all(type(x) is array or isinstance(x, NUMBERS) for x in args):
                return None
            encoders = tuple(
                Number.encoder(dtype) if value.kind == BYTES else None
                for value, dtype in zip(found.values, dtypes, strict=True)
            )
            return native.calls.LaunchPlan(found, encoders=encoders)

    def _compile(
        self, key: Any, operands: list[Array | Number], names: Sequence[str]
    ) -> Compiled:
        """Compile for types that are new."""
        cuda.require()
        _, indices, (narrow, small), *_ = key
        with self._lock:
            if key not in self._compiled:
                function = self._function
                kinds, working = arguments.types(operands, names, function.name)
                grid = function.typed(indices, kinds, working)
                typing = indices, kinds, working
                with function.refusing_writes(*typing):
                    made = Compiled.of(grid, narrow=narrow, small=small)
                writes = partial(function.writes, *typing)
                self._compiled[key] = made._replace(writes=writes)
            return self._compiled[key]
