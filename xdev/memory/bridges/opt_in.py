"""Bridges that go in by name alone: NumPy's buffers, PyTorch's device memory.

Who owns what, for how long: the pools own the segments, and a library's buffer is a
block from its making to its end.

NumPy and PyTorch call the native tier's C functions, which need neither Python nor its
lock. Only where no free block of the very class is left do they call Python, and the
pool's ladder serves: the limit holds, and a refusal is the library's own error.
"""

from __future__ import annotations

import atexit
import ctypes
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional, native
from xdev._forks import immortal, module_lock
from xdev.device import Device, devices
from xdev.errors import ConfigurationError
from xdev.memory import registry
from xdev.memory.arrays import POOLED
from xdev.memory.bridges import miss

if TYPE_CHECKING:
    from types import ModuleType

    from xdev.memory.pools import Pool

THROW = "_ZN3c106detail14torchCheckFailEPKcS2_jS2_"  # c10::detail::torchCheckFail
_lock = module_lock()  # guards the one below
_handlers: list[Any] = []  # the one that NumPy has, from the first time on


def native_functions(library: str) -> ModuleType:
    """Return the native tier's C functions, which a library is to call."""
    module = native.module("pool")
    if module is None:
        raise ConfigurationError(
            f"the bridge into {library} needs xdev's compiled part, which is "
            f"{native.STATE}: install xdev where there is a C compiler (pip install ., "
            f"with Cython, in its checkout), and do not set XDEV_NATIVE=0"
        )
    return module


def serve(pool: Pool) -> Any:
    """Return a pool's native free lists, whose misses Python serves from now on.

    None where the pool keeps nothing. It ends with the interpreter.
    """
    lists = pool.state.share()
    if lists is not None:
        lists.serve(partial(miss, pool))
        atexit.register(lists.serve, None)
    return lists


def _keeps_nothing(pool: Pool) -> str:
    return f"{pool.name}: its policy {pool.state.policy.name!r} keeps nothing"


@final
class NumpyBridge:
    """NumPy's default allocator, for new arrays of 64 KiB and more.

    A thread starts with NumPy's default handler, whichever its parent set, so the
    bridge sets no handler: it puts the native tier's functions into the default one,
    which NEP 49 describes. Other arrays stay the allocator's that was there, also where
    they grow: only that one knows how large its buffers are.

    After ``uninstall`` NumPy allocates as before. The bridge's ``free`` stays in place
    for ever, since arrays may: what is not the pool's goes to the ``free`` that was
    there. Nothing of it ends with the interpreter.
    """

    def install(self) -> str | None:
        """Serve new arrays, unless this thread's handler is not NumPy's default."""
        name = np._core.multiarray.get_handler_name()  # type: ignore[attr-defined] # noqa: SLF001
        if name != "default_allocator":
            return f"NumPy's memory handler was set to {name!r}"
        tier = native_functions("numpy")
        pool = registry.pool("cpu", "host")
        lists = serve(pool)
        if lists is None:
            return _keeps_nothing(pool)
        with _lock:
            if not _handlers:
                handler = tier.NumpyHandler(POOLED)
                handler.serve(lists)
                if not _handlers:  # nor did a finalizer make it meanwhile
                    _handlers.append(handler)
                    handler.install()
            _handlers[0].serve(lists)
        return None

    def uninstall(self) -> None:
        """Let NumPy allocate as before."""
        with _lock:
            _handlers[0].serve(None)


@final
class TorchBridge:
    """PyTorch's choice of CUDA allocator, which it keeps for the life of the process.

    It goes in before PyTorch first allocates or not at all. A block belongs to the
    stream that PyTorch names, and ``Tensor.record_stream`` marks it. PyTorch's own
    figures (``torch.cuda.memory_allocated``) are not kept then; xdev's are.
    """

    def install(self) -> str | None:
        """Set the allocator, unless PyTorch has used its own."""
        torch = _optional.torch()
        Device("cuda").require()
        tier = native_functions("torch")
        cuda = [device for device in devices() if device.type == "cuda"]
        pools = [registry.pool(str(device)) for device in cuda]
        served = tier.CupyAllocator(len(pools), 0)
        for index, pool in enumerate(pools):
            lists = serve(pool)
            if lists is None:
                return _keeps_nothing(pool)
            served.open(index, lists)
        marking, throw = partial(mark, pools), _throw(torch)
        malloc, free, record = tier.torch_functions(served, marking, throw)
        allocator = torch._C._cuda_customAllocator(malloc, free)  # noqa: SLF001 - takes addresses
        allocator.set_record_stream_fn(record)
        chosen = torch.cuda.memory._CUDAAllocator(allocator)  # noqa: SLF001
        try:
            torch.cuda.memory.change_current_allocator(chosen)
        except RuntimeError as error:
            return f"PyTorch uses an allocator already ({error})"
        immortal(allocator)
        return None

    def uninstall(self) -> str | None:
        """Return why it stays."""
        return "PyTorch keeps its allocator for the life of the process"


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
