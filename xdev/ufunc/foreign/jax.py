"""JAX's arrays, on the CPU and on CUDA: arguments, never outputs.

On CUDA the host waits for JAX's work before a call, and for the call's own work. JAX
has streams of its own, and memory that it uses again as soon as nobody refers to it; it
can be told of work on others' streams neither before it frees an argument nor before it
reads a result. (DLPack would have both sides order their streams; but JAX's newer
runtime takes every imported array to be ready.)
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from xdev import _optional
from xdev.device.natives import natives
from xdev.memory.streams import live_streams
from xdev.ufunc.foreign import Adapter


def is_array_type(kind: type) -> bool:
    """Say whether a type of JAX's is one of arrays, or of what stands for them."""
    jax = _optional.jax()
    return issubclass(kind, jax.Array | jax.core.Tracer)


@final
class JaxAdapter(Adapter):
    """Arrays on one device."""

    mutable = False

    def on_cuda(self, x: Any) -> bool:
        """Ask the array, if it is one."""
        return not self._traced(x) and {d.platform for d in x.devices()} == {"gpu"}

    def to_native(self, x: Any, name: str) -> Any:
        """Return a view that cannot be written."""
        if self._traced(x):
            raise TypeError(
                f"{name}() cannot be traced by JAX: call it outside jax.jit and "
                "jax.grad, or through jax.pure_callback"
            )
        (device, *others) = x.devices()
        if others:
            raise TypeError(
                f"{name}() takes arrays of one device, and this jax.Array lies on "
                f"{len(others) + 1}: gather it with jax.device_put(x, device)"
            )
        if not isinstance(x.dtype, np.dtype) or device.platform not in {"cpu", "gpu"}:
            raise TypeError(
                f"{name}() takes numbers on the CPU or on CUDA, not a jax.Array of "
                f"{x.dtype} on {device.platform}"
            )
        if device.platform == "cpu":
            return np.asarray(x)
        cupy = _optional.cupy()
        if cupy.cuda.get_current_stream().ptr in live_streams.captured:
            raise TypeError(
                f"{name}() is being captured, and a graph has no part in the order of "
                "JAX's work: pass what cupy.from_dlpack(x) returned before"
            )
        x.block_until_ready()
        with cupy.cuda.Device(natives("jax").place(device)[1]):
            return cupy.from_dlpack(x)

    def begin_write(self, x: Any, name: str, label: str = "out") -> None:  # noqa: ARG002
        """Refuse, of any array."""
        raise TypeError(
            f"{name}(): {label} is a jax.Array, and JAX's arrays are immutable: leave "
            "out= away and take the result, which is a jax.Array too"
        )

    def from_native(self, made: Any, like: Any) -> Any:
        """Return a result as an array on the device of ``like``, once it is computed.

        It is in C's order, the only one that all of JAX's parts agree on.
        """
        jax = _optional.jax()
        (device,) = like.devices()
        if isinstance(made, np.ndarray | np.generic):
            return jax.device_put(np.asarray(made), device, may_alias=True)
        cupy = _optional.cupy()
        made = cupy.ascontiguousarray(made).reshape(made.shape)
        cupy.cuda.get_current_stream().synchronize()
        return jax.device_put(jax.dlpack.from_dlpack(made), device, may_alias=True)

    def _traced(self, x: Any) -> bool:
        return isinstance(x, _optional.jax().core.Tracer)


ADAPTER = JaxAdapter()
