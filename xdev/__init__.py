"""xdev: array code written once, run on a CPU or a CUDA GPU.

``import xdev as xp`` is an array API namespace (standard 2025.12) over NumPy and CuPy;
one caching pool serves every buffer, and ``@vectorize`` makes ufuncs for both devices.
Importing it loads NumPy and nothing else: the rooms below load at their first use, or
with it, those of ufuncs on CUDA, where CuPy was imported before.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from xdev import _config, _tracebacks, device, errors, facade, ufunc
from xdev.device import *  # noqa: F403 - devices and streams, as its __all__ says
from xdev.device import registry as _registry
from xdev.errors import (
    ConfigurationError,
    DeviceMismatchError,
    DeviceUnavailableError,
    InUseError,
    OutOfMemoryError,
    UseAfterFreeError,
    XdevError,
)
from xdev.facade import *  # noqa: F403 - the standard's names, as facade.__all__ says
from xdev.facade.inspection import (
    __array_api_version__ as __array_api_version__,
    __array_namespace_info__ as __array_namespace_info__,
)

if TYPE_CHECKING:
    from xdev import (
        atomic,
        distributed,
        fft,
        linalg,
        memory,
        numpy as numpy,  # public, though no star brings it
        random,
        testing,
        timing,
        transfer,
    )
    from xdev.timing import compare, timeit
    from xdev.transfer import *  # noqa: F403 - those of _TRANSFER
    from xdev.ufunc import vectorize
    from xdev.ufunc.generalized import guvectorize
    from xdev.ufunc.graphs import graph
    from xdev.ufunc.kernels import kernel
else:
    _ROOMS = frozenset((
        "atomic", "distributed", "fft", "linalg", "memory", "numpy", "random",
        "testing", "timing", "transfer",
    ))  # fmt: skip
    _TRANSFER = (
        "adapt", "batches", "cu", "empty_pinned", "is_pinned", "pin", "to_device",
        "to_numpy", "transfer_guard",
    )  # fmt: skip
    _LAZY = {
        **dict.fromkeys(_TRANSFER, "xdev.transfer"),
        **dict.fromkeys(("compare", "timeit"), "xdev.timing"),
        "vectorize": "xdev.ufunc",
        "guvectorize": "xdev.ufunc.generalized",
        "graph": "xdev.ufunc.graphs",
        "kernel": "xdev.ufunc.kernels",
    }

    def __getattr__(name: str) -> Any:
        """Load a room, or a room for its name; say what does the same as NumPy's."""
        if name in _ROOMS:
            return importlib.import_module(f"xdev.{name}")
        if name.startswith("_"):  # Python asks before it imports a module
            text = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(text, name=name, obj=sys.modules[__name__])
        if name not in _LAZY:
            from xdev._numpy_names import refuse

            refuse(__name__, name)
        globals()[name] = value = getattr(importlib.import_module(_LAZY[name]), name)
        return value


if "cupy" in sys.modules:  # its user's first call need not wait for them
    for _room in (
        *("ufunc.cuda", "ufunc.scalar", "ufunc.expressions", "ufunc.calls"),
        *("facade.cuda", "memory.bridges.cupy", "memory.sources.cuda"),
    ):
        importlib.import_module(f"xdev.{_room}")

__version__ = "0.1.0"


def __dir__() -> list[str]:
    """List the public names: what Tab shows."""
    return sorted((*__all__, "numpy"))  # a star would hide NumPy itself


def load_ipython_extension(shell: Any) -> None:
    """Register ``%xtimeit`` and ``%%xtimeit``: what ``%load_ext xdev`` calls."""
    from xdev.jupyter import TimingMagics

    shell.register_magics(TimingMagics)
    _tracebacks.install_in(shell)


_registry.when_started(
    "cuda", lambda: importlib.import_module("xdev.memory.bridges").install_default()
)
_registry.when_started(
    "fake", lambda: importlib.import_module("xdev.memory.arrays").serve_fake_arrays()
)

# fmt: off
__all__ = [
    "ConfigurationError", "DeviceMismatchError", "DeviceUnavailableError", "InUseError",
    "OutOfMemoryError", "UseAfterFreeError", "XdevError", "__version__", "adapt",
    "atomic", "batches", "compare", "cu", "device", "distributed", "empty_pinned",
    "errors", "facade", "fft", "graph", "guvectorize", "is_pinned", "kernel", "linalg",
    "memory", "pin", "random", "testing", "timeit", "timing", "to_device", "to_numpy",
    "transfer", "transfer_guard", "ufunc", "vectorize",
]
# fmt: on
__all__ += device.__all__
__all__ += dir(facade)  # noqa: PLE0605 - a list

# Asked for by the environment: from the first array on, and from CuPy's import on.
if _config.at_import(_config.numpy_pool):
    importlib.import_module("xdev.memory.bridges").install("numpy")
if _config.at_import(_config.cupy_operators):
    importlib.import_module("xdev.memory.bridges").install_operators()
