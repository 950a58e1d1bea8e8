"""Running compiled kernels on CuPy's current stream: one driver call each."""

from __future__ import annotations

import importlib
import threading
from functools import cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev.compile import machine_launch
from xdev.compile.machine_launch import KNOWN_STREAMS, SLOT
from xdev.compile.machine_words import WORD

if TYPE_CHECKING:
    from collections.abc import Callable

Shape = tuple[int, int, int]
FLOATS = {"f": machine_launch.FLOAT, "d": machine_launch.DOUBLE}
INTEGERS = {"i": machine_launch.SIGNED, "u": machine_launch.UNSIGNED}


def load(cubin: bytes, name: str) -> Any:
    """Return a kernel of a cubin; it runs on every device of its architecture."""
    return _optional.cuda_core().ObjectCode.from_cubin(cubin).get_kernel(name)


@final
class Streams:
    """CuPy's streams as ``cuda.core`` takes them.

    Attributes
    ----------
    known : dict
        From the handle to the stream. A handle is all that is kept, so one that was
        closed and came back is as good as new.
    """

    def __init__(self) -> None:
        self.known: dict[int, Any] = {}
        self._thread = threading.local()

    def get(self, handle: int) -> Any:
        """Return the stream of a handle; CuPy's null stream is the legacy one.

        A thread's first launch needs the device's context, which CuPy makes current
        only in its own calls: here it is made so.
        """
        if not hasattr(self._thread, "ready"):
            runtime = _optional.cupy().cuda.runtime
            runtime.setDevice(runtime.getDevice())
            self._thread.ready = True
        found = self.known.get(handle)
        if found is None:
            core = _optional.cuda_core()
            found = (
                core.Stream.from_handle(handle)
                if handle
                else core.LEGACY_DEFAULT_STREAM
            )
            if len(self.known) >= KNOWN_STREAMS:
                self.known.clear()
            self.known[handle] = found
        return found


@cache
def streams() -> Streams:
    """Return the one table of streams."""
    return Streams()


def launcher() -> Callable[..., None]:
    """Return ``launch(stream, config, kernel, *numbers)``, the fastest launch."""
    launch: Callable[..., None] = _optional.cuda_core().launch
    return launch


@final
class Plain:
    """A kernel whose parameters are numbers, the last one the number of elements.

    Parameters
    ----------
    kernel : cuda.core.Kernel
        The kernel.
    blocks, threads : int
        The shape of the launch.
    size : int
        The number of elements.
    """

    __slots__ = ("config", "kernel", "size")

    def __init__(self, kernel: Any, blocks: int, threads: int, size: int) -> None:
        core = _optional.cuda_core()
        self.config = core.LaunchConfig(grid=(blocks,), block=(threads,))
        self.kernel, self.size = kernel, size

    def __call__(self, stream: int, values: list[Any]) -> None:
        """Launch with addresses and NumPy scalars."""
        found = streams().get(stream)
        launcher()(found, self.config, self.kernel, *values, self.size)


@final
class Value:
    """How a value gets into its slot of a kernel's parameter.

    Parameters
    ----------
    kind : int
        One of :mod:`~xdev.compile.machine_launch`: an address, or what number it is.
    low, high : int
        An address strictly between these distances from the output's overlaps it;
        ``low`` is 64 less the bits of an integer.
    same : bool
        Whether it may be the output itself: what is read is then written.
    """

    __slots__ = ("high", "kind", "low", "same")

    def __init__(
        self,
        kind: int = machine_launch.ADDRESS,
        low: int = 0,
        high: int = 0,
        *,
        same: bool = False,
    ) -> None:
        self.kind, self.low, self.high, self.same = kind, low, high, same

    @classmethod
    def number(cls, value: object, loop: np.dtype[Any]) -> Value:
        """Say how a number is handed over: the machine's conversion, or as bytes.

        Python's own numbers, and what no conversion rounds twice, are converted by the
        launch.
        """
        floating = isinstance(value, bool | int | float | np.floating)
        if floating and loop.char in FLOATS:
            return cls(FLOATS[loop.char])
        if type(value) is int and loop.kind in INTEGERS:
            return cls(INTEGERS[loop.kind], 64 - 8 * loop.itemsize)
        return cls(machine_launch.BYTES)


@final
class Launch:
    """A kernel with one struct as its parameter, and all of a launch but the values.

    Parameters
    ----------
    kernel : cuda.core.Kernel
        The kernel.
    blocks, threads : int or (int, int, int)
        The shape of the launch: along x, or along x, y and z.
    parameter : bytes
        The struct: a slot of 16 bytes for each value, and before and after them what
        stays.
    values : tuple of Value
        How each value gets into its slot.
    output : int or None
        Which value is the output that inputs, those before it, must not overlap.
    first : int
        Where in the struct the first slot is [B], a multiple of 16.

    Attributes
    ----------
    address : int
        What ``machine_launch.Starter.start`` takes as its plan.
    values : tuple of Value
        The argument.
    """

    __slots__ = ("_kernel", "_words", "address", "values")

    def __init__(
        self,
        kernel: Any,
        blocks: int | Shape,
        threads: int | Shape,
        parameter: bytes,
        values: tuple[Value, ...],
        output: int | None = None,
        *,
        first: int = 0,
    ) -> None:
        self._kernel = kernel  # it owns the machine code
        self.values = values
        nbytes = len(parameter) + -len(parameter) % SLOT
        head = [int(kernel.handle)]
        for shape in (blocks, threads):
            head += (shape, 1, 1) if isinstance(shape, int) else shape
        head += nbytes, len(values), -1 if output is None else output, first
        head += [0] * (machine_launch.HEAD - len(head))
        for value in values:
            head += [value.kind, value.low, value.high, value.same]
        words = np.zeros((WORD * len(head) + nbytes) // 8 + 4, np.int64)
        words = words[-words.ctypes.data % SLOT // WORD :]
        words[: len(head)] = head
        start = WORD * len(head)  # a multiple of SLOT: all parts are
        words.view(np.uint8)[start : start + len(parameter)] = np.frombuffer(
            parameter, np.uint8
        )
        self._words = words
        self.address = int(words.ctypes.data)

    def __call__(self, stream: int, values: list[Any]) -> None:
        """Launch with addresses and numbers, those of kind ``BYTES`` as 16 bytes.

        Parameters
        ----------
        stream : int
            The handle of CuPy's current stream.
        values : list
            One for each slot.

        Raises
        ------
        RuntimeError
            The driver refused the launch.
        """
        known, native = streams(), machine_launch.starter()
        known.get(stream)  # a thread's first call takes the context
        error = native.start(self.address, *values)
        if error == machine_launch.NEW_STREAM:
            native.know(list(known.known))
            error = native.start(self.address, *values)
        if error:
            message = f"the CUDA driver refused the launch: {_name(error)}"
            raise RuntimeError(message)


def _name(error: int) -> str:
    driver = importlib.import_module("cuda.bindings.driver")
    return str(driver.CUresult(error).name) if error > 0 else f"value {error}"


def capability(device: int) -> tuple[int, int]:
    """Return a device's compute capability, as in ``(9, 0)``."""
    text: str = _optional.cupy().cuda.Device(device).compute_capability
    return int(text[:-1]), int(text[-1])
