"""Devices as other libraries name them: which they are, and the libraries' own objects.

A library here keeps its arrays in its own types on devices that xdev also knows, so
that an array's device says two things: where it is, and whose it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev.device import registry
from xdev.errors import ConfigurationError, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

_STRICT_CPU = "CPU_DEVICE"


@final
class Torch:
    """PyTorch: its CPU, and the CUDA devices that it sees."""

    def place(self, native: Any) -> tuple[str, int]:
        """Read ``torch.device``; without an index it is PyTorch's current one."""
        if native.type == "cpu":
            return "cpu", 0
        if native.type != "cuda":
            raise ValueError(native.type)
        if native.index is not None:
            return "cuda", int(native.index)
        cuda = _optional.torch().cuda
        return "cuda", int(cuda.current_device()) if cuda.is_initialized() else 0

    def reason(self, type: str, index: int) -> str | None:
        """Ask PyTorch how many devices it sees."""
        torch = _optional.torch()
        count = 1 if type == "cpu" else torch.cuda.device_count()
        return _beyond("PyTorch", type, index, count if type in ("cpu", "cuda") else 0)

    def native(self, type: str, index: int) -> Any:
        """Return the ``torch.device``."""
        device = _optional.torch().device
        return device("cpu") if type == "cpu" else device(type, index)

    def adopt(self, x: Any, native: Any) -> Any:
        """Share the memory where PyTorch can: writable, in steps of whole elements."""
        suits = all(step >= 0 and not step % x.itemsize for step in x.strides)
        if isinstance(x, np.ndarray):  # CuPy's can be written, and are native
            suits = suits and x.flags.behaved and x.dtype.isnative
        if not suits:
            x = x.astype(x.dtype.newbyteorder("="), order="C")
        torch, half = _optional.torch(), x.dtype.name == "bfloat16"  # DLPack lacks it
        tensor = torch.from_dlpack(x.view(np.int16) if half else x).to(native)
        return tensor.view(torch.bfloat16) if half else tensor


@final
class Jax:
    """JAX: of its CPUs (it may be told to have several) and GPUs those of this process.

    Their numbers are JAX's own.
    """

    def place(self, native: Any) -> tuple[str, int]:
        """Read ``jax.Device``."""
        kind = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda"}[native.platform]
        number = native.local_hardware_id
        return kind, native.id if number is None else int(number)

    def _all(self, type: str) -> dict[int, Any]:
        jax = _optional.jax()
        try:
            devices = jax.local_devices(backend=type)
        except RuntimeError:  # it has no such backend
            return {}
        return {self.place(native)[1]: native for native in devices}

    def reason(self, type: str, index: int) -> str | None:
        """Ask JAX for its devices."""
        return _beyond("JAX", type, index, len(self._all(type)))

    def native(self, type: str, index: int) -> Any:
        """Return the ``jax.Device``."""
        return self._all(type)[index]

    def of_traced(self, x: Any) -> Any:
        """Return where JAX computes unless told, None for what is not traced."""
        jax = _optional.jax()
        if not isinstance(x, jax.core.Tracer):
            return None
        chosen = jax.config.jax_default_device  # a device, a platform or None
        if chosen is None or isinstance(chosen, str):
            return jax.local_devices(backend=chosen)[0]
        return chosen

    def adopt(self, x: Any, native: Any) -> Any:
        """Copy: a JAX array never changes, and the memory of ``x`` may.

        ``device_put(may_alias=False)`` shares memory of NumPy's that is aligned.
        """
        jax = _optional.jax()
        if isinstance(x, np.ndarray):
            own = x.astype(x.dtype.newbyteorder("="), order="C")
        else:
            own = jax.dlpack.from_dlpack(x.copy(order="C"))
        return jax.device_put(own, native)


@final
class Strict:
    """array_api_strict: its CPU, and two more that count as the fake devices."""

    def place(self, native: Any) -> tuple[str, int]:
        """Read ``array_api_strict.Device``."""
        name = native._device  # noqa: SLF001 - it has no public name
        if name == _STRICT_CPU:
            return "cpu", 0
        return "fake", ("device1", "device2").index(name)

    def reason(self, type: str, index: int) -> str | None:
        """Say that there are three."""
        _optional.array_api_strict()
        count = {"cpu": 1, "fake": 2}.get(type, 0)
        return _beyond("array_api_strict", type, index, count)

    def native(self, type: str, index: int) -> Any:
        """Return the ``array_api_strict.Device``."""
        name = _STRICT_CPU if type == "cpu" else f"device{index + 1}"
        return _optional.array_api_strict().Device(name)

    def adopt(self, x: Any, native: Any) -> Any:
        """Copy."""
        return _optional.array_api_strict().asarray(x, device=native, copy=True)


@final
class Dask:
    """Dask: it has no device objects; its arrays are where their chunks are."""

    def place(self, native: Any) -> tuple[str, int]:
        """Refuse: nothing of Dask names a device."""
        raise ValueError(native)

    def reason(self, type: str, index: int) -> str | None:
        """Ask for the chunks' device."""
        _optional.dask_array()
        return registry.backend(type).reason(index)

    def native(self, type: str, index: int) -> Any:  # noqa: ARG002 - all are alike
        """Return what array_api_compat calls the device of every Dask array."""
        return "cpu"

    def adopt(self, x: Any, native: Any) -> Any:  # noqa: ARG002
        """Cut an array in chunks of its own type."""
        return _optional.dask_array().from_array(x, asarray=False)


Natives = Torch | Jax | Strict | Dask
JAX = Jax()
#: By the top-level module of the library's arrays and device objects.
LIBRARIES: Mapping[str, Natives] = {
    "array_api_strict": Strict(),
    "dask": Dask(),
    "jax": JAX,
    "torch": Torch(),
}


def library_of_type(kind: type) -> str | None:
    """Return the library that a type of arrays or of devices belongs to."""
    name = kind.__module__.partition(".")[0]
    name = "jax" if name == "jaxlib" else name
    return name if name in LIBRARIES else None


def natives(library: str) -> Natives:
    """Return the devices of a library."""
    if library not in LIBRARIES:
        message = f"no devices of {quoted(library)} are known"
        raise ConfigurationError(f"{message}: use one of {tuple(LIBRARIES)}")
    return LIBRARIES[library]


def _beyond(library: str, type: str, index: int, count: int) -> str | None:
    text = f"{library} has {count} devices of type {type!r}, numbered from 0"
    return None if index < count else text
