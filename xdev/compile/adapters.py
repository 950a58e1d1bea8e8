"""The compiler of Python functions to LTO-IR: numba-cuda, or its successor."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

from xdev import _optional
from xdev.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from types import ModuleType

COMPILERS = ("numba_cuda", "numba_cuda_mlir")  # the first that is installed


@cache
def adapter() -> ModuleType:
    """Return the adapter to the compiler that is installed, numba-cuda before its heir.

    Raises
    ------
    DeviceUnavailableError
        There is none; the text has the command that installs one.
    """
    # Numba itself still has a module numba.cuda, an old one.
    name = next((name for name in COMPILERS if _optional.installed(name)), None)
    if name is None:
        message = f"{' and '.join(COMPILERS)} are missing: {_optional.CUDA_EXTRA}"
        raise DeviceUnavailableError(message)
    return importlib.import_module(f"xdev.compile.{name}")
