"""PyTorch's device memory, by its pluggable allocator; opt-in.

Who owns what, for how long: the pools own the segments, PyTorch's storages hold blocks,
each on the stream that PyTorch names. Its functions are the native tier's, which need
no Python and no lock of it; where no free block of the very class is left they call
Python, and the pool's ladder serves. A refusal is PyTorch's ``RuntimeError``.
``Tensor.record_stream`` marks the block.

PyTorch takes an allocator before it first allocates, and keeps it for the life of the
process: the bridge goes in before that or not at all, and does not come out. PyTorch's
own figures (``torch.cuda.memory_allocated``) are not kept then; xdev's are.
"""

from __future__ import annotations

import ctypes
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev.device import Device
from xdev.memory import registry
from xdev.memory.bridges import native_functions, serve

if TYPE_CHECKING:
    from xdev.memory.pools import Pool

THROW = "_ZN3c106detail14torchCheckFailEPKcS2_jS2_"  # c10::detail::torchCheckFail
_kept: list[Any] = []  # PyTorch keeps the allocator for the life of the process


@final
class TorchBridge:
    """PyTorch's choice of CUDA allocator."""

    def install(self) -> str | None:
        """Set the allocator, unless PyTorch has used its own."""
        torch = _optional.torch()
        Device("cuda").require()
        tier = native_functions("torch")
        pools = [registry.pool(str(device)) for device in _devices()]
        served = tier.CupyAllocator(len(pools), 0)
        for index, pool in enumerate(pools):
            lists = serve(pool)
            if lists is None:
                name = pool.state.policy.name
                return f"the pools keep nothing under the policy {name!r}"
            served.open(index, lists)
        marking, throw = partial(mark, pools), _throw(torch)
        malloc, free, record = tier.torch_functions(served, marking, throw)
        native = torch._C._cuda_customAllocator(malloc, free)  # noqa: SLF001 - takes addresses
        native.set_record_stream_fn(record)
        allocator = torch.cuda.memory._CUDAAllocator(native)  # noqa: SLF001
        try:
            torch.cuda.memory.change_current_allocator(allocator)
        except RuntimeError as error:
            return f"PyTorch uses an allocator already ({error})"
        _kept.append(native)
        return None

    def uninstall(self) -> str | None:
        """Return why it stays."""
        return "PyTorch keeps its allocator for the life of the process"


def _devices() -> list[Device]:
    from xdev.device import devices

    return [device for device in devices() if device.type == "cuda"]


def mark(pools: list[Pool], address: int, stream: int) -> None:
    """Mark a block: PyTorch's ``void record(void *address, cudaStream_t stream)``."""
    for pool in pools:
        chunk = pool.find(address)
        if chunk is not None:
            pool.state.mark(chunk, (stream,))


def _throw(torch: Any) -> int:
    """Return the address of PyTorch's function that throws its error; 0 without."""
    library = Path(torch.__file__).parent / "lib" / "libc10.so"
    function = getattr(ctypes.CDLL(str(library)), THROW, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0
