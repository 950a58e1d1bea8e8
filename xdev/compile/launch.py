"""Running compiled kernels on CuPy's current stream: one driver call each."""

from __future__ import annotations

import ctypes
import importlib
import struct
import threading
from functools import cache
from typing import TYPE_CHECKING, Any, final

from xdev import _optional

if TYPE_CHECKING:
    from collections.abc import Callable

KNOWN_STREAMS = 64
SLOT = 16  # bytes that an operand has at the start of a struct parameter
_ADDRESS = struct.Struct("=Q").pack


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
class Packed:
    """A kernel whose only parameter is one struct.

    Parameters
    ----------
    kernel : cuda.core.Kernel
        The kernel.
    blocks, threads : int
        The shape of the launch.
    parameter : bytes
        The struct: a slot for each operand, which calls fill, then what stays.
    """

    __slots__ = ("_blocks", "_function", "_parameter", "_threads")

    def __init__(
        self, kernel: Any, blocks: int, threads: int, parameter: bytes
    ) -> None:
        # The kernel itself is kept: it owns the machine code.
        self._function = kernel, _driver().CUfunction(int(kernel.handle))
        self._blocks, self._threads, self._parameter = blocks, threads, parameter

    def __call__(self, stream: int, values: list[Any]) -> None:
        """Launch with addresses and NumPy scalars, which go to the struct's slots."""
        streams().get(stream)  # a thread's first call takes the context
        # A buffer for each call: another thread may launch the same plan meanwhile.
        data = bytearray(self._parameter)
        for i, value in enumerate(values):
            field = _ADDRESS(value) if type(value) is int else value.tobytes()
            data[SLOT * i : SLOT * i + len(field)] = field
        memory = (ctypes.c_char * len(data)).from_buffer(data)
        parameters = ctypes.c_void_p(ctypes.addressof(memory))
        driver = _driver()
        _, function = self._function
        (error,) = driver.cuLaunchKernel(
            function,
            *(self._blocks, 1, 1),
            *(self._threads, 1, 1),
            0,
            driver.CUstream(stream),
            ctypes.addressof(parameters),
            0,
        )
        if error:
            message = f"the CUDA driver refused the launch: {error.name}"
            raise RuntimeError(message)


@cache
def _driver() -> Any:
    _optional.cuda_core()
    return importlib.import_module("cuda.bindings.driver")


def capability(device: int) -> tuple[int, int]:
    """Return a device's compute capability, as in ``(9, 0)``."""
    text: str = _optional.cupy().cuda.Device(device).compute_capability
    return int(text[:-1]), int(text[-1])
