"""PyTorch's device memory, by its pluggable allocator; opt-in.

Who owns what, for how long: the pools own the segments, PyTorch's storages hold blocks,
each on the stream that PyTorch names. Its two functions are machine code that needs no
Python and no lock of it; where no free block of the very class is left they call
Python, and the pool's ladder serves. A refusal is PyTorch's ``RuntimeError``.
A million blocks can be PyTorch's at a time (:data:`~xdev.memory.native.layout.BLOCKS`);
the error that refuses more says so. ``Tensor.record_stream`` marks the block.

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
from xdev._machine_code import immortal
from xdev.device import Device
from xdev.memory import registry
from xdev.memory.bridges.misses import serve
from xdev.memory.native.front import Devices, answering
from xdev.memory.native.layout import BLOCKS
from xdev.memory.native.machine import machine

if TYPE_CHECKING:
    from xdev.memory.pools import Pool

THROW = "_ZN3c106detail14torchCheckFailEPKcS2_jS2_"  # c10::detail::torchCheckFail
WHERE = b"xdev"
REFUSED = b"out of memory: xdev's pool refused; see xdev.memory.summary('cuda')"
NOT_SERVED = (
    f"xdev's pool cannot lend this block: PyTorch may have {BLOCKS:,} at a time, and "
    f"none that is new once Python ends"
).encode()


@final
class TorchBridge:
    """PyTorch's choice of CUDA allocator."""

    def install(self) -> str | None:
        """Set the allocator, unless PyTorch has used its own."""
        torch = _optional.torch()
        Device("cuda").require()
        pools = [registry.pool(str(device)) for device in _devices()]
        fronts = [serve(pool) for pool in pools]
        if None in fronts:
            name = pools[0].stock.policy.name
            return f"the pools keep nothing under the policy {name!r}"
        devices = Devices(len(pools))
        devices.throw(_throw(torch), WHERE, REFUSED, NOT_SERVED)
        for index, front in enumerate(filter(None, fronts)):
            devices.open(index, front)
        code = machine()
        ctypes.c_int64.from_address(code.torch_word).value = devices.address
        native = torch._C._cuda_customAllocator(  # noqa: SLF001 - takes addresses
            code.addresses["torch_malloc"], code.addresses["torch_free"]
        )
        devices.record(answering(partial(_record, pools)))
        native.set_record_stream_fn(code.addresses["torch_record"])
        allocator = torch.cuda.memory._CUDAAllocator(native)  # noqa: SLF001
        try:
            torch.cuda.memory.change_current_allocator(allocator)
        except RuntimeError as error:
            return f"PyTorch uses an allocator already ({error})"
        immortal(native)
        return None

    def uninstall(self) -> str | None:
        """Return why it stays."""
        return "PyTorch keeps its allocator for the life of the process"


def _devices() -> list[Device]:
    from xdev.device import devices

    return [device for device in devices() if device.type == "cuda"]


def _record(pools: list[Pool], address: int, stream: int, _: int) -> None:
    """Mark a block: PyTorch's ``void record(void *address, cudaStream_t stream)``."""

    def mark() -> None:
        for pool in pools:
            chunk = pool.find(address)
            if chunk is not None:
                pool.stock.mark(chunk, (stream,))

    try:
        mark()
    except KeyboardInterrupt:  # it comes again; without a mark, data would be lost
        mark()
        raise


def _throw(torch: Any) -> int:
    """Return the address of PyTorch's function that throws its error; 0 without."""
    library = Path(torch.__file__).parent / "lib" / "libc10.so"
    function = getattr(ctypes.CDLL(str(library)), THROW, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0
