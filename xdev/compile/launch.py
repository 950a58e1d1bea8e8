"""Running compiled kernels on CuPy's current stream: one driver call each."""

from __future__ import annotations

import ctypes
import importlib
from functools import cache
from typing import Any, NamedTuple, final

import numpy as np

from xdev import _optional, native
from xdev._plain_calls import (
    ADDRESS,
    BYTES,
    DOUBLE,
    FLOAT,
    NEW_STREAM,
    SIGNED,
    SLOT,
    UNSIGNED,
)
from xdev.device.cuda import (
    BACKEND,
    cupy_function,
    current_device_function,
    current_stream_function,
    driver_library,
)
from xdev.device.streams import live_streams
from xdev.memory.arrays import array_maker, mark_uses

NO_CONTEXT = 201  # the driver's CUDA_ERROR_INVALID_CONTEXT
FLOATS = {"f": FLOAT, "d": DOUBLE}
INTEGERS = {"i": SIGNED, "u": UNSIGNED}


@cache
def connect() -> None:
    """Tell the launches of the driver and of CuPy, once."""
    cupy, pool = _optional.cupy(), native.module("pool")
    runtime = cupy.cuda.runtime
    launch = ctypes.cast(driver_library().cuLaunchKernel, ctypes.c_void_p)
    native.calls.connect(
        launch.value or 0,
        current_stream_function(),
        current_device_function(),
        cupy_function(runtime, "setDevice", "PyObject *(int, int __pyx_skip_dispatch)"),
        cupy.ndarray,
        array_maker(),
        mark_uses,
        BACKEND.count() > 1,
        pool.IS_OF_STREAM if pool else 0,
        cupy.cuda.driver.launchKernel,
    )
    live_streams.when_several.append(native.calls.use_several_streams)
    if live_streams.several:
        native.calls.use_several_streams()


@final
class Kernel:
    """A kernel of a cubin; it runs on every device of its architecture.

    It stays loaded: captured graphs may launch it. The driver is called itself, since
    the import of ``cuda.core`` takes 0.1 s. A launch takes its ``handle``.
    """

    def __init__(self, cubin: bytes, name: str) -> None:
        connect()
        driver, library, kernel = driver_library(), ctypes.c_void_p(), ctypes.c_void_p()
        none = None, None, 0
        _check(driver.cuLibraryLoadData(ctypes.byref(library), cubin, *none, *none))
        _check(driver.cuLibraryGetKernel(ctypes.byref(kernel), library, name.encode()))
        self.handle = kernel.value or 0


def _check(error: int) -> None:
    if error:
        raise RuntimeError(f"the CUDA driver refused the kernel: {_name(error)}")


class Value(NamedTuple):
    """How a value gets into its slot of a kernel's parameter.

    An address strictly between the distances ``low`` and ``high`` from the output's
    overlaps it; of an integer ``low`` is 64 less its bits.
    """

    kind: int = ADDRESS  # one of _plain_calls': an address, or what number it is
    low: int = 0
    high: int = 0
    same: bool = False  # whether it may be the output itself: read, then written
    itemsize: int = 0  # of an array's elements, 0 for numbers [B]

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
        return cls(BYTES)


def padded(number: np.generic) -> bytes:
    """Return what goes into the slot of a number that is handed over as bytes."""
    return number.tobytes().ljust(SLOT, b"\0")


@final
class Launch(native.calls.Launch):
    """A kernel with one struct as its parameter, and all of a launch but the values."""

    def __call__(self, values: list[Any]) -> None:
        """Launch with addresses and numbers, those of kind ``BYTES`` as 16 bytes."""
        error = self.start(values)
        if error in (NEW_STREAM, NO_CONTEXT):
            runtime = _optional.cupy().cuda.runtime
            runtime.setDevice(runtime.getDevice())  # takes a thread's context
            native.calls.know_stream()
            error = self.start(values)
        if error:
            raise RuntimeError(f"the CUDA driver refused the launch: {_name(error)}")


def _name(error: int) -> str:
    driver = importlib.import_module("cuda.bindings.driver")
    return str(driver.CUresult(error).name) if error > 0 else f"value {error}"


def capability(device: int) -> tuple[int, int]:
    """Return a device's compute capability, as in ``(9, 0)``."""
    text: str = _optional.cupy().cuda.Device(device).compute_capability
    return int(text[:-1]), int(text[-1])
