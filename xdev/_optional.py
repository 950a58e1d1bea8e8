"""The one door to the optional libraries: CuPy, Numba, numba-cuda, cuda.core.

Each function returns its module, loaded at the first call, or raises
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
    from collections.abc import Iterator

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
UNSET = {
    "BOUNDSCHECK": None,
    "DEBUGINFO_DEFAULT": 0,
    "CUDA_DEBUGINFO_DEFAULT": 0,
    "DISABLE_JIT": 0,
    "OPT": 3,
}
_AGAIN = "python -m pip install . in xdev's checkout"


def _load(name: str, command: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        message = f"{name} cannot be imported ({error}): {command}"
        raise DeviceUnavailableError(message) from error


def installed(name: str) -> bool:
    """Say whether a top-level module can be found, without importing it."""
    return importlib.util.find_spec(name) is not None


@cache
def distributions() -> dict[str, str]:
    """Return what is installed, names with ``_`` for ``-``, and the versions.

    Importing ``importlib.metadata`` for that takes 12 ms.
    """
    found: dict[str, str] = {}
    for folder in sys.path:
        if folder in STANDARD:
            continue
        with suppress(OSError):
            for name in os.listdir(folder or "."):  # noqa: PTH208 - the quickest
                if name.endswith(INSTALLED):
                    plain, _, version = name.removesuffix(INSTALLED).rpartition("-")
                    found.setdefault(plain.lower(), version)
    return found


def version(name: str) -> str | None:
    """Return a distribution's version, asking the module where nothing else tells it.

    None where it is not installed.
    """
    known = distributions().get(name)
    if known is None and installed(name):
        known = getattr(importlib.import_module(name), "__version__", None)
    return known


@cache
def cupy() -> Any:
    """Return the module ``cupy``."""
    return _load("cupy", CUDA_EXTRA)


@cache
def cupy_streams() -> Any:
    """Return the module in which CuPy keeps its current streams."""
    return _load("cupy_backends.cuda.stream", CUDA_EXTRA)


@cache
def numba() -> Any:
    """Return the module ``numba``."""
    return _load("numba", _AGAIN)


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
    return _load("numba.cuda", CUDA_EXTRA)


@cache
def numba_cuda_mlir() -> Any:
    """Return the module ``numba_cuda_mlir``, numba-cuda's successor."""
    return _load("numba_cuda_mlir", CUDA_EXTRA)


@cache
def cuda_core() -> Any:
    """Return the module ``cuda.core``."""
    return _load("cuda.core", CUDA_EXTRA)


@cache
def rmm() -> Any:
    """Return the module ``rmm``."""
    return _load("rmm", "pip install rmm-cu13 (CUDA 13) or rmm-cu12 (CUDA 12)")


@cache
def array_api_strict() -> Any:
    """Return the module ``array_api_strict``, which has devices of its own."""
    return _load("array_api_strict", "pip install array-api-strict")


@cache
def torch() -> Any:
    """Return the module ``torch``."""
    return _load("torch", "install PyTorch, https://pytorch.org/get-started")


@cache
def jax() -> Any:
    """Return the module ``jax``."""
    return _load("jax", "pip install jax")


@cache
def dask_array() -> Any:
    """Return the module ``dask.array``."""
    return _load("dask.array", """python -m pip install ".[dask]" in xdev's checkout""")


@cache
def distributed() -> Any:
    """Return the module ``distributed``."""
    return _load(
        "distributed", """python -m pip install ".[dask]" in xdev's checkout"""
    )


@cache
def llvm() -> Any:
    """Return the module ``llvmlite.binding``, which Numba brings."""
    return _load("llvmlite.binding", _AGAIN)


@cache
def llvm_ir() -> Any:
    """Return the module ``llvmlite.ir``."""
    return _load("llvmlite.ir", _AGAIN)


@cache
def scipy_sparse() -> Any:
    """Return the module ``scipy.sparse``."""
    return _load("scipy.sparse", "pip install scipy")


@cache
def cupy_sparse() -> Any:
    """Return the module ``cupyx.scipy.sparse``."""
    return _load("cupyx.scipy.sparse", CUDA_EXTRA)


@cache
def tqdm() -> Any:
    """Return the module ``tqdm.auto``, which draws progress bars."""
    return _load("tqdm.auto", "pip install tqdm")


@cache
def matplotlib_figure() -> Any:
    """Return the module ``matplotlib.figure``, which draws without a screen."""
    return _load(
        "matplotlib.figure", """python -m pip install ".[plot]" in xdev's checkout"""
    )
