"""CUDA devices through CuPy's runtime: nothing here runs before the first use."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev.device.registry import Backend
from xdev.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

FIRST_CUDA_13_DRIVER = 13000
NO_DRIVER = "no CUDA driver (libcuda.so.1) is on this machine"
GET_DRIVER, NO_GPU = "install NVIDIA's driver for the GPU", "or use XDEV_DEVICE=cpu"
FORKED = (
    "CUDA was started before this process was forked, and a child cannot use it: start "
    'workers with multiprocessing.get_context("spawn"), or fork before the first use'
)


@cache
def driver_library() -> Any:
    """Return the driver's library."""
    return ctypes.CDLL("libcuda.so.1")


def driver_version() -> int | None:
    """Return the driver's CUDA version, as in 13000, or None without a driver.

    It asks the driver's library alone; no context is made.
    """
    version = ctypes.c_int(0)
    try:
        failed = driver_library().cuDriverGetVersion(ctypes.byref(version))
    except OSError:
        return None
    return None if failed else version.value


def _install_command() -> str:
    version = driver_version()
    if version is None:
        return _optional.CUDA_EXTRA
    extra = "cu13" if version >= FIRST_CUDA_13_DRIVER else "cu12"
    return f"""python -m pip install ".[{extra}]" in xdev's checkout"""


@cache
def _probe() -> tuple[int, str | None]:
    """Return how many devices there are at the first look, or why there is none."""
    driver = driver_version()
    if not _optional.installed("cupy"):
        if driver is None:
            ways = f"{GET_DRIVER}, then {_install_command()}, {NO_GPU}"
            return 0, f"CuPy is not installed, and {NO_DRIVER}: {ways}"
        there = f"though a driver of CUDA {driver // 1000} is there"
        return 0, f"CuPy is not installed, {there}: {_install_command()}"
    if driver is None:
        return 0, f"{NO_DRIVER}: {GET_DRIVER}, {NO_GPU}"
    try:
        count = _optional.cupy().cuda.runtime.getDeviceCount()
    except Exception as error:  # noqa: BLE001 - a broken driver or CuPy fails anyhow
        return 0, (
            f"CuPy cannot use the CUDA driver ({type(error).__name__}: {error}): "
            f"check `nvidia-smi`, and that CuPy fits the driver: {_install_command()}"
        )
    none = "the CUDA driver sees no device: check `nvidia-smi` and CUDA_VISIBLE_DEVICES"
    return count, None if count else none


@final
class CudaBackend(Backend):
    """The CUDA devices that CuPy can use."""

    libraries: tuple[str, ...] = ("cupy",)
    #: Whether this is a child of a process that had started CUDA.
    forked = False
    _used = False

    def after_fork(self) -> None:
        """Note in a child whether its parent had started CUDA."""
        self.forked = self._used

    def count(self) -> int:
        """Return how many devices CuPy can use."""
        return 0 if self.forked else _probe()[0]

    def reason(self, index: int) -> str | None:
        """Say why a device cannot be used, with the fix."""
        if self.forked:
            return FORKED
        count, reason = _probe()
        if reason is None and index >= count:
            others = f" to 'cuda:{count - 1}'" if count > 1 else ""
            return f"this process sees {count} CUDA device(s): 'cuda:0'{others}"
        self._used = self._used or reason is None
        return reason

    def current(self) -> int:
        """Return CuPy's current device; 0 while CuPy is not in use."""
        if "cupy" not in sys.modules or self.forked:
            return 0
        try:
            return int(_optional.cupy().cuda.runtime.getDevice())
        except Exception:  # noqa: BLE001 - no driver: nothing is current
            return 0

    def native(self, index: int) -> Any:
        """Return the ``cupy.cuda.Device``."""
        return _optional.cupy().cuda.Device(index)

    def index_of(self, native: Any) -> int:
        """Return the index of a ``cupy.cuda.Device``."""
        return int(native.id)

    def use(self, index: int) -> AbstractContextManager[Any]:
        """Make a device CuPy's current one."""
        return self.native(index)  # type: ignore[no-any-return]

    def synchronize(self, index: int) -> None:
        """Wait until all work queued on a device is done."""
        self.native(index).synchronize()

    def stream(self, index: int) -> Any:
        """Make a stream that does not wait for the default stream."""
        with self.use(index):
            return _optional.cupy().cuda.Stream(non_blocking=True)

    def current_stream(self, index: int) -> Any:
        """Return CuPy's current stream on a device."""
        return _optional.cupy().cuda.get_current_stream(index)

    def elapsed(self, start: Any, end: Any) -> float:
        """Return the time between two events [s]."""
        return float(_optional.cupy().cuda.get_elapsed_time(start, end)) * 1e-3

    def can_access_peer(self, index: int, peer: int) -> bool:
        """Ask the driver; a device may always read its own memory."""
        runtime = _optional.cupy().cuda.runtime
        return index == peer or bool(runtime.deviceCanAccessPeer(index, peer))

    def index_of_pointer(self, address: int) -> int | None:
        """Return the device of memory at an address; None where there is none.

        An empty array may have any address.
        """
        if not address:
            return None
        runtime = _optional.cupy().cuda.runtime
        try:
            index = int(runtime.pointerGetAttributes(address).device)
        except runtime.CUDARuntimeError as error:
            if (reason := self.reason(0)) is None:
                raise
            text = f"cuda:0 cannot be used: {reason}"
            raise DeviceUnavailableError(text) from error
        return None if index < 0 else index

    def index_of_memory(self, address: int, shape: tuple[int, ...]) -> int | None:
        """Return the device of an array's memory; None of an empty one without any."""
        index = self.index_of_pointer(address)
        if index is None and 0 not in shape:
            raise ValueError(
                f"an array of shape {tuple(shape)} is, by __cuda_array_interface__, at "
                f"{address:#x}, where no CUDA device has memory: pass host memory as a "
                f"NumPy array, by xdev.to_device(x, 'cuda')"
            )
        return index


_kind = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_pointer_of = _kind(("PyCapsule_GetPointer", ctypes.pythonapi))


def cupy_function(module: Any, name: str, kind: str) -> int:
    """Return the address of a C function that a module of CuPy's offers to others."""
    capsule = vars(module).get("__pyx_capi__", {}).get(name)
    try:
        return int(_pointer_of(capsule, kind.encode()))
    except ValueError as error:  # there is none, or it is of another type
        raise DeviceUnavailableError(
            f"this CuPy has no C function {kind} {name}: install a release that "
            f"xdev supports: {_install_command()}"
        ) from error


def current_stream_function() -> int:
    """Return the address of the C function that returns CuPy's current stream."""
    streams = _optional.cupy_streams()
    return cupy_function(streams, "get_current_stream_ptr", "intptr_t (void)")


def current_device_function() -> int:
    """Return the address of the C function that returns the current device's index.

    It takes a number that means nothing.
    """
    device = _optional.cupy().cuda.device
    return cupy_function(device, "get_device_id", "int (int __pyx_skip_dispatch)")


BACKEND = CudaBackend()
os.register_at_fork(after_in_child=BACKEND.after_fork)
