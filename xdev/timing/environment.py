"""Where a measurement was made: versions, platform and devices, for the records."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdev import _optional

if TYPE_CHECKING:
    from xdev.device import Device

# The distributions that bring a library; CuPy has one for each CUDA major.
DISTRIBUTIONS = {
    "numpy": ("numpy",),
    "numba": ("numba",),
    "numba-cuda": ("numba-cuda",),
    "cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy"),
    "cuda-core": ("cuda-core",),
    "array-api-compat": ("array-api-compat",),
    "dask": ("dask",),
    "numexpr": ("numexpr",),
    "torch": ("torch",),
    "jax": ("jax",),
    "warp": ("warp-lang",),
    "rmm": ("rmm-cu13", "rmm-cu12"),
}


def versions() -> dict[str, str | None]:
    """Return the version of Python and of each library, None where it is absent.

    Reads the installed packages' records; imports none of them.

    Examples
    --------
    >>> sorted(versions())[:4]
    ['array-api-compat', 'cuda-core', 'cupy', 'dask']
    """
    found: dict[str, str | None] = {
        "python": platform.python_version(),
        "xdev": sys.modules["xdev"].__version__,
    }
    for name, distributions in DISTRIBUTIONS.items():
        found[name] = next(filter(None, map(_version, distributions)), None)
    return found


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def cuda_name(index: int = 0) -> str | None:
    """Return a CUDA device's name, as in ``"NVIDIA H200"``.

    None without a device, and where this process has not loaded CuPy: a record of
    a run on the CPU is not worth the seconds that a driver takes to start.
    """
    if sys.modules.get("cupy") is None:
        return None
    runtime = _optional.cupy().cuda.runtime
    try:
        return str(runtime.getDeviceProperties(index)["name"].decode())
    except RuntimeError:  # CUDARuntimeError: no driver, no device
        return None


def device_name(device: Device) -> str:
    """Return what a record calls a device: its product's name, where it has one."""
    name = cuda_name(device.index) if device.type == "cuda" else None
    return name or str(device)


def processor_name() -> str:
    """Return the processor's model name, or its architecture where none is known."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:  # not Linux
        pass
    return platform.processor() or platform.machine()


def environment() -> dict[str, Any]:
    """Return what a reader of the record must know to judge its numbers.

    Returns
    -------
    dict
        ``versions`` (:func:`versions`), ``platform``, ``processor``, ``cores`` that
        this process may use, ``cuda`` (:func:`cuda_name`), ``program``
        and ``date`` (UTC, ISO 8601).
    """
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "platform": platform.platform(),
        "processor": processor_name(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "cuda": cuda_name(),
        "program": "/".join(Path(sys.argv[0]).parts[-2:]),
    }
