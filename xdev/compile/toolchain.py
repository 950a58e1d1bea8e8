"""The parts of the CUDA compiler: their versions, and whether they fit together."""

from __future__ import annotations

import importlib
import re
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev.compile import digests
from xdev.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The packages that bring each part, with ``_`` for ``-``.
PACKAGES = {
    "nvrtc": ("nvidia_cuda_nvrtc", "nvidia_cuda_nvrtc_cu12"),
    "nvvm": ("nvidia_nvvm", "nvidia_cuda_nvcc_cu12"),
    "nvjitlink": ("nvidia_nvjitlink", "nvidia_nvjitlink_cu12"),
    "cuda.core": ("cuda_core",),
    "numba-cuda": ("numba_cuda", "numba_cuda_mlir"),
}
CUDA_12 = 12  # whose packages have its number in their names
# By what is installed: the first one's function in xdev.compile.numba_cuda.
ADAPTERS = {"numba_cuda": "ltoir", "numba_cuda_mlir": "mlir_ltoir"}
LIBRARIES = ("nvrtc", "nvjitlink")  # parts that tell which CUDA they are of


@cache
def adapter() -> Callable[..., bytes]:
    """Return the adapter to the compiler that is installed, numba-cuda before its heir.

    Its parameters are those of :func:`xdev.compile.numba_cuda.ltoir`.

    Raises
    ------
    DeviceUnavailableError
        There is none; the text has the command that installs one.
    """
    # Numba itself still has a module numba.cuda, an old one.
    name = next((name for name in ADAPTERS if _optional.installed(name)), None)
    if name is None:
        message = f"{' and '.join(ADAPTERS)} are missing: {_optional.CUDA_EXTRA}"
        raise DeviceUnavailableError(message)
    made: Callable[..., bytes] = getattr(
        importlib.import_module("xdev.compile.numba_cuda"), ADAPTERS[name]
    )
    return made


@cache
def installed() -> dict[str, str]:
    """Return the version of each part that decides the machine code.

    No part is loaded, but those that came without a package of their own.
    """
    found = {}
    known = _optional.distributions()
    for part, packages in PACKAGES.items():
        versions = [known[name] for name in packages if name in known]
        if not versions and part in LIBRARIES:
            versions = [".".join(map(str, _bound(part) or ()))]
        found[part] = "+".join(versions)
    return found


def kept(
    digest: str | None,
    parts: object,
    name: str,
    make: Callable[[], tuple[bytes, str]],
    unchanged: Callable[[], bool] = lambda: True,
) -> tuple[bytes, str]:
    """Return a cubin and its kernel's name, compiled where no process has done so.

    Parameters are those of :func:`xdev.compile.digests.kept`.
    """
    every = parts, sorted(installed().items())
    return digests.kept("cubins", digest, every, name, make, unchanged)


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
        listed = ", ".join(f"{k} {v or '-'}" for k, v in installed().items())
        raise DeviceUnavailableError(
            f"cannot link a CUDA kernel: {error}\nThe compiler's parts are "
            f"{listed}. nvJitLink must be no older than NVVM and NVRTC: "
            f"{_update(_bound('nvrtc') or (13, 0))}"
        ) from error


def check() -> None:
    """Refuse an nvJitLink that is older than NVRTC or NVVM.

    Raises
    ------
    DeviceUnavailableError
        It is; the text has the command that updates it.
    """
    linker = _bound("nvjitlink")
    # The library NVVM tells the version of its language, only its package that of CUDA.
    nvvm = tuple(map(int, re.findall(r"\d+", installed()["nvvm"])[:2]))
    for name, compiler in (("NVRTC", _bound("nvrtc")), ("NVVM", nvvm)):
        if linker and compiler and linker[:2] < compiler[:2]:
            message = (
                "nvJitLink {}.{} is older than {} {}.{}, whose code it cannot link: "
            ).format(*linker[:2], name, *compiler[:2])
            raise DeviceUnavailableError(message + _update(compiler))


def _update(compiler: tuple[int, ...]) -> str:
    """Return the command that installs an nvJitLink for a compiler's version."""
    package = "nvidia-nvjitlink" + ("-cu12" if compiler[0] == CUDA_12 else "")
    return f"pip install '{package}>={compiler[0]}.{compiler[1]}'"


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
