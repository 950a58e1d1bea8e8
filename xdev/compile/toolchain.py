"""The parts of the CUDA compiler: their versions, and whether they fit together."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

UPDATE = "pip install --upgrade nvidia-nvjitlink"


@cache
def versions() -> dict[str, str]:
    """Return the version of each part that decides the machine code."""
    parts = {name: _bound(name) for name in ("nvrtc", "nvvm", "nvjitlink")}
    found = {name: ".".join(map(str, v)) for name, v in parts.items() if v}
    for package in ("cuda-core", "numba-cuda", "nvidia-nvvm"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def link(parts: list[bytes], arch: str, *, fma: bool) -> bytes:
    """Link LTO-IR to a cubin, optimised as a whole.

    Parameters
    ----------
    parts : list of bytes
        LTO-IR of NVRTC or NVVM.
    arch : str
        The architecture, as in ``"sm_90"``.
    fma : bool
        Whether a product and a sum may become one rounding. This is why nvJitLink is
        called itself: the option that ``cuda.core`` writes for it is refused.
    """
    linker: Any = importlib.import_module("cuda.bindings.nvjitlink")
    options = [f"-arch={arch}", "-lto", f"-fma={int(fma)}"]
    handle = linker.create(len(options), options)
    try:
        for part in parts:
            linker.add_data(handle, linker.InputType.LTOIR, part, len(part), "part")
        linker.complete(handle)
        cubin = bytearray(linker.get_linked_cubin_size(handle))
        linker.get_linked_cubin(handle, cubin)
    finally:
        linker.destroy(handle)
    return bytes(cubin)


@contextmanager
def explained() -> Iterator[None]:
    """Turn a failure to compile or link a template into an error that says what to do.

    Raises
    ------
    DeviceUnavailableError
        nvJitLink is older than NVRTC or NVVM, whose code it then cannot read, or
        the compiler failed otherwise; the text has its message and the versions.
    """
    check()
    try:
        yield
    except Exception as error:  # each part raises an error type of its own
        message = (
            f"cannot link a CUDA kernel: {error}\nThe compiler's parts are "
            f"{versions()}. nvJitLink must be no older than NVVM and NVRTC: {UPDATE}"
        )
        raise DeviceUnavailableError(message) from error


def check() -> None:
    """Refuse an nvJitLink that is older than NVRTC.

    Raises
    ------
    DeviceUnavailableError
        It is; the text has the command that updates it.
    """
    linker, compiler = _bound("nvjitlink"), _bound("nvrtc")
    if linker and compiler and linker < compiler:
        message = (
            "nvJitLink {}.{} is older than NVRTC {}.{}, whose code it cannot link: "
        ).format(*linker, *compiler)
        raise DeviceUnavailableError(message + UPDATE)


@cache
def _bound(name: str) -> tuple[int, ...] | None:
    """Return the version that a library reports, None where it cannot be loaded."""
    _optional.cuda_core()
    try:
        module: Any = importlib.import_module(f"cuda.bindings.{name}")
        if name == "nvrtc":
            _, *numbers = module.nvrtcVersion()
            return tuple(numbers)
        return tuple(module.version())
    except (ImportError, RuntimeError, AttributeError):
        return None
