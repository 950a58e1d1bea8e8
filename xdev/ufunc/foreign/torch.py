"""PyTorch's tensors, on the CPU and on CUDA."""

from __future__ import annotations

import importlib
from contextlib import suppress
from functools import cache
from typing import Any, final

import numpy as np

from xdev import _optional
from xdev.memory.arrays import record_stream
from xdev.memory.streams import live_streams
from xdev.ufunc.foreign import Adapter

LEGACY = 1  # the null stream's name where 0 means none


def is_array_type(kind: type) -> bool:
    """Say whether a type of PyTorch's is one of tensors."""
    return issubclass(kind, _optional.torch().Tensor)


@final
class TorchAdapter(Adapter):
    """Tensors that are dense; a view that PyTorch conjugates lazily is made real."""

    def on_cuda(self, x: Any) -> bool:
        """Ask the tensor."""
        return bool(x.is_cuda)

    def to_native(self, x: Any, name: str) -> Any:
        """Return a view; a tensor that records gradients must be detached first."""
        torch = _optional.torch()
        self._refuse_gradient(x, name)
        dense = x.layout is torch.strided and not x.is_nested
        if not (dense and (x.is_cpu or x.is_cuda)):
            layout = "nested" if x.is_nested else str(x.layout).removeprefix("torch.")
            raise TypeError(
                f"{name}() takes dense tensors on the CPU or on CUDA, not a {layout} "
                f"one on {str(x.device)!r}: convert it, x.to_dense() or x.to('cpu')"
            )
        plain = x.detach() if x.requires_grad else x
        if x.is_conj() or x.is_neg():
            plain = plain.resolve_conj().resolve_neg()
        try:
            if x.is_cuda:
                return _cupy_view(plain, _numpy_dtype(plain.dtype))
            if plain.dtype is torch.bfloat16:
                return plain.view(torch.int16).numpy().view(_numpy_dtype(plain.dtype))
            return plain.numpy()
        except (TypeError, ImportError) as error:
            raise TypeError(
                f"{name}(): NumPy has no dtype {x.dtype}: convert the tensor first"
            ) from error

    def stream(self, x: Any) -> int | None:
        """Return PyTorch's current stream on the tensor's device."""
        if not x.is_cuda:
            return None
        return (
            int(_optional.torch().cuda.current_stream(x.device).cuda_stream) or LEGACY
        )

    def begin_write(self, x: Any, name: str, label: str = "out") -> None:
        """Refuse views that are not memory of their own; gradients see the write."""
        self._refuse_gradient(x, name)
        if x.is_conj() or x.is_neg():
            raise TypeError(
                f"{name}(): {label} is a lazily conjugated or negated view: pass the "
                "tensor that it was made from, or x.resolve_conj().resolve_neg()"
            )
        if 0 in x.stride() and any(
            n > 1 and not step for n, step in zip(x.shape, x.stride(), strict=True)
        ):
            raise TypeError(
                f"{name}(): {label} is expanded, its elements share memory: clone it"
            )
        if not x.is_inference():  # autograd may have kept the old values
            _optional.torch().autograd.graph.increment_version(x)

    def from_native(self, made: Any, like: Any) -> Any:
        """Return a tensor of a result's memory."""
        torch = _optional.torch()
        # The one dtype here that is an extension's; no protocol between them has it.
        half = made.dtype.kind == "V"
        if isinstance(made, np.ndarray | np.generic):
            made = np.asarray(made)
            tensor = torch.from_numpy(made.view(np.int16) if half else made)
        else:
            self._keep(made, like)
            # -1: without order between streams. Who called sees to that.
            capsule = (made.view(np.int16) if half else made).__dlpack__(stream=-1)
            tensor = torch.from_dlpack(capsule)
        return tensor.view(torch.bfloat16) if half else tensor

    def _keep(self, made: Any, like: Any) -> None:
        """Keep a result's memory, once dropped, until PyTorch's stream is done."""
        stream = self.stream(like) if like.is_cuda else None
        here = _optional.cupy().cuda.get_current_stream().ptr
        if stream not in (None, here or LEGACY) and here not in live_streams.captured:
            with suppress(ValueError):  # the memory is not a pool's
                record_stream(made, stream)

    def _refuse_gradient(self, x: Any, name: str) -> None:
        if x.requires_grad and _optional.torch().is_grad_enabled():
            raise TypeError(
                f"{name}() got a tensor that requires a gradient, and none passes "
                "through it: pass x.detach(), or call it under torch.no_grad()"
            )


def _cupy_view(x: Any, dtype: np.dtype[Any]) -> Any:
    cupy = _optional.cupy()
    size = dtype.itemsize
    steps = tuple(step * size for step in x.stride())
    ends = ((n - 1) * step for n, step in zip(x.shape, steps, strict=True))
    nbytes = sum(ends) + size if x.numel() else 0
    address = x.data_ptr() if nbytes else 0
    memory = cupy.cuda.UnownedMemory(address, nbytes, x, x.device.index)
    pointer = cupy.cuda.MemoryPointer(memory, 0)
    return cupy.ndarray(tuple(x.shape), dtype, pointer, steps)


@cache
def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    word = str(dtype).removeprefix("torch.")
    if word == "bfloat16":
        importlib.import_module("ml_dtypes")  # gives NumPy the name
    return np.dtype(word)


ADAPTER = TorchAdapter()
