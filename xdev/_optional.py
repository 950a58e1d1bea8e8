"""The one door to the optional libraries: CuPy, Numba, numba-cuda, cuda.core.

Each of the table's functions returns a module, loaded at the first call, or raises
:class:`~xdev.errors.DeviceUnavailableError` with the command that installs it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INSTALLED = ".dist-info"
PYTHON = os.__file__.removesuffix("/os.py")
STANDARD = PYTHON, f"{PYTHON}/lib-dynload"  # hundreds of modules, no distribution
#: The distribution is on no package index: extras are installed from its checkout.
CUDA_EXTRA = (
    """python -m pip install ".[cu13]" (CUDA 13) or ".[cu12]" (CUDA 12), in xdev's """
    "checkout"
)
#: Where Numba keeps its settings, and those that numba_unset() sets back.
CONFIGS = ("numba.core.config", "numba.cuda.core.config")
OFF = ("DEBUGINFO_DEFAULT", "CUDA_DEBUGINFO_DEFAULT", "DISABLE_JIT")
UNSET = {"BOUNDSCHECK": None, "OPT": 3, **dict.fromkeys(OFF, 0)}
_AGAIN = "python -m pip install . in xdev's checkout"


def _module(name: str, command: str) -> Callable[[], Any]:
    """Return what returns a module, loaded at the first call."""

    @cache
    def load() -> Any:
        try:
            return importlib.import_module(name)
        except ImportError as error:
            message = f"{name} cannot be imported ({error}): {command}"
            raise DeviceUnavailableError(message) from error

    return load


DASK_EXTRA = """python -m pip install ".[dask]" in xdev's checkout"""
array_api_strict = _module("array_api_strict", "pip install array-api-strict")
cuda_core = _module("cuda.core", CUDA_EXTRA)
cupy = _module("cupy", CUDA_EXTRA)
cupy_sparse = _module("cupyx.scipy.sparse", CUDA_EXTRA)
cupy_streams = _module("cupy_backends.cuda.stream", CUDA_EXTRA)  # the current ones
dask_array = _module("dask.array", DASK_EXTRA)
distributed = _module("distributed", DASK_EXTRA)
jax = _module("jax", "pip install jax")
llvm = _module("llvmlite.binding", _AGAIN)  # Numba brings it
llvm_ir = _module("llvmlite.ir", _AGAIN)
matplotlib_figure = _module(  # it draws without a screen
    "matplotlib.figure", """python -m pip install ".[plot]" in xdev's checkout"""
)
numba = _module("numba", _AGAIN)
numba_cuda_mlir = _module("numba_cuda_mlir", CUDA_EXTRA)  # numba-cuda's successor
scipy_fft = _module("scipy.fft", "pip install scipy")
scipy_sparse = _module("scipy.sparse", "pip install scipy")
torch = _module("torch", "install PyTorch, https://pytorch.org/get-started")
_numba_cuda = _module("numba.cuda", CUDA_EXTRA)


def installed(name: str) -> bool:
    """Say whether a top-level module can be found, without importing it."""
    return importlib.util.find_spec(name) is not None


@cache
def distributions() -> dict[str, str]:
    """Return what is installed, names with ``_`` for ``-``, and the versions."""
    versions: dict[str, str] = {}
    for folder in sys.path:
        if folder in STANDARD:
            continue
        with suppress(OSError):
            for name in os.listdir(folder or "."):  # noqa: PTH208 - the quickest
                if name.endswith(INSTALLED):
                    plain, _, version = name.removesuffix(INSTALLED).rpartition("-")
                    versions.setdefault(plain.lower(), version)
    return versions


def version(name: str) -> str | None:
    """Return a distribution's version, the module's where nothing else tells it."""
    number = distributions().get(name)
    if number is None and installed(name):
        number = getattr(importlib.import_module(name), "__version__", None)
    return number


@contextmanager
def numba_unset() -> Iterator[None]:
    """Let Numba compile as it does where nothing is set in the environment.

    What ``NUMBA_DISABLE_JIT``, ``NUMBA_BOUNDSCHECK`` and ``NUMBA_DEBUGINFO`` ask of a
    program's own ``@njit`` functions, xdev's loops cannot do: they call no Python. The
    lock is that under which Numba compiles, so no other thread compiles meanwhile.
    """
    with numba().core.compiler_lock.global_compiler_lock:
        configs = [vars(sys.modules[name]) for name in CONFIGS if name in sys.modules]
        before = [{name: config[name] for name in UNSET} for config in configs]
        for config in configs:
            config.update(UNSET, OPT=config["_OptLevel"](3))
        try:
            yield
        finally:
            for config, values in zip(configs, before, strict=True):
                config.update(values)


@cache
def numba_cuda() -> Any:
    """Return the module ``numba.cuda``.

    numba-cuda reads ``numpy.row_stack`` when it first compiles, a user's kernel or
    xdev's; NumPy 2.5 dropped the name, so it is put back first.
    """
    if "row_stack" not in vars(np):
        vars(np)["row_stack"] = np.vstack
    return _numba_cuda()
