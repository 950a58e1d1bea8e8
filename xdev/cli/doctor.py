"""``xdev doctor``: what is broken in a set-up, and what mends it."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _config, _disk_cache, _optional, native
from xdev.cli import info
from xdev.compile import compilers, cubins
from xdev.device import Device, cuda, devices
from xdev.errors import ConfigurationError, DeviceUnavailableError
from xdev.memory import registry

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

LEVELS = BROKEN, WARNING, OK, SKIPPED = "broken", "warning", "ok", "skipped"
CHECKOUT = "in xdev's checkout"
REINSTALL = f"python -m pip install -e . {CHECKOUT}"
CUPY = {"cupy": None, "cupy_cuda11x": 11, "cupy_cuda12x": 12, "cupy_cuda13x": 13}
#: Both majors of CUDA, and the oldest Linux driver of each.
DRIVERS = {12: "525.60", 13: "580.65"}
COMPUTE_MODE = 20  # cudaDevAttrComputeMode
DEFAULT_MODE, PROHIBITED = 0, 2  # its values; all others admit one process
RATHER_ALIKE = 0.7  # share of its letters that a name has in common with what is meant
UNSET = "unset {}; xdev info lists the settings that there are"
FULL = 0.1  # the share of a device's memory that should be free

# What a check found: a level, what is wrong, what to do.
Problem = tuple[str, str, str]


def add_to(commands: Any) -> None:
    """Add the command and its options to a parser's commands."""
    info.add_command(commands, "doctor", run)


def run(options: argparse.Namespace) -> int:
    """Find what is broken in this set-up, and say what to do.

    It checks for the known ways in which a set-up fails. Of each problem one line
    says what is wrong, and one what to do. The exit status is 1 if something is
    broken. With XDEV_DEVICE=cpu a missing GPU is no problem.

    Examples
    --------
      xdev doctor          what is wrong here?
      xdev doctor --json   the same for a program
    """
    findings = [
        (name, *problem)
        for name, check in CHECKS.items()
        for problem in list(_problems(check)) or [(OK, "", "")]
    ]
    if options.json:
        keys = "check", "level", "what", "way"
        info.print_json([dict(zip(keys, one, strict=True)) for one in findings])
    else:
        for check, level, what, way in findings:
            print(info.in_columns(f"{level:<8} {check}{what and f': {what}'}", 9))
            if way:
                print(info.in_columns(f"{'':<8} -> {way}", 12))
        counts = Counter(level for _, level, *_ in findings)
        plural = {WARNING: "s" * (counts[WARNING] != 1)}
        print(*(f"{counts[x]} {x}{plural.get(x, '')}" for x in LEVELS), sep=", ")
    return int(any(level == BROKEN for _, level, *_ in findings))


def _problems(check: Callable[[], Iterator[Problem]]) -> Iterator[Problem]:
    """Run a check; an error that names its way out is a problem as well."""
    try:
        if check in OF_CUDA and _config.device().startswith(("cpu", "fake")):
            yield SKIPPED, f"XDEV_DEVICE={_config.device()} asks for no GPU", ""
        else:
            yield from check()
    except ConfigurationError:
        yield SKIPPED, "it depends on a setting that is not valid", ""
    except DeviceUnavailableError as error:
        yield _split(BROKEN, str(error))


def _split(level: str, text: str) -> Problem:
    """Return a problem of an error's text: what is wrong, a colon, what to do."""
    what, _, way = text.rpartition(": ")
    return level, what, way


def settings() -> Iterator[Problem]:
    """Look for values that are not valid, and variables that xdev does not read."""
    for name in _config.SETTINGS:
        try:
            _config.value(name)
        except ConfigurationError as error:
            yield _split(BROKEN, str(error))
    for name in _config.unknown():
        meant = _config.nearest(name, RATHER_ALIKE)
        way = f"use {meant}, or unset {name}" if meant else UNSET.format(name)
        yield WARNING, f"{name} is not a setting of xdev", way


def namesake() -> Iterator[Problem]:
    """Look for the other project whose module is called xdev too."""
    version = _optional.distributions().get("xdev")
    if version is not None:
        what = f"the distribution xdev {version}, another project, is installed too"
        way = "python -m pip install --force-reinstall ."
        yield BROKEN, what, f"python -m pip uninstall xdev, then, {CHECKOUT}, {way}"


def compiled() -> Iterator[Problem]:
    """Say why the native tier is not used."""
    if native.STATE == native.COMPILED:
        return
    way = "unset XDEV_NATIVE"
    if _config.native():
        way = REINSTALL
        if not any(map(shutil.which, (os.environ.get("CC") or "cc", "gcc", "clang"))):
            way = f"install a C compiler, as by apt install gcc, then {REINSTALL}"
        own = Path(native.__file__).parents[1]
        others = (Path(folder, "xdev") for folder in sys.path)
        if any((x / "native").is_dir() and not x.samefile(own) for x in others):
            way = f"run it outside {own.parent}, which hides the installed xdev"
    what = f"the native part is {native.STATE}; small calls take several times as long"
    yield WARNING, what, way


def cache() -> Iterator[Problem]:
    """Look whether compiled code can be kept on disk."""
    problem = _disk_cache.problem()
    if problem is not None:
        what = f"compiled code is kept in each process alone, since {problem}"
        yield BROKEN, what, info.OWN_FOLDER
        return
    free = shutil.disk_usage(_config.cache_dir()).free
    if free < _disk_cache.LARGEST:
        what = f"{_config.cache_dir()} is on a disk with {registry.text_of(free)} free"
        yield BROKEN, what, f"make room there, or {info.OWN_FOLDER}"


def numba() -> Iterator[Problem]:
    """Import Numba, which refuses a NumPy that it does not know."""
    try:
        _optional.numba()
    except DeviceUnavailableError as error:
        level, what, way = _split(BROKEN, str(error))
        if _optional.installed("numba"):
            way = "python -m pip install --upgrade numba, or the NumPy that it asks for"
        yield level, what, way
        return
    if "numba_cuda" in _optional.distributions() and "row_stack" not in vars(np):
        what = (
            f"NumPy {np.__version__} has no row_stack, which numba-cuda reads when it "
            f"compiles: xdev puts it back, a program with @cuda.jit alone fails"
        )
        way = "python -m pip install 'numpy<2.5', or use xdev in that program first"
        yield WARNING, what, way


def wheels() -> Iterator[Problem]:
    """Look whether there is one CuPy, of the driver's and the compiler's CUDA."""
    wheels, version = _cupy_wheels(), cuda.driver_version()
    if not wheels:  # nor need the compiler be there
        yield SKIPPED, "it is not installed", ""
        return
    newest = 12 if version is not None and version < cuda.FIRST_CUDA_13_DRIVER else 13
    extra = f"""python -m pip install ".[cu{newest}]" {CHECKOUT}"""
    anew = f"python -m pip uninstall {' '.join(wheels)}, then {extra}"
    if len(wheels) > 1:
        what = f"{' and '.join(wheels)} are installed, and have the same folder"
        yield BROKEN, what, anew
    parts = cubins.installed()["nvjitlink"]
    compilers = {int(part.partition(".")[0]) for part in parts.split("+") if part}
    for wheel, major in wheels.items():
        if major is None:
            continue
        if major < min(DRIVERS):
            yield BROKEN, f"{wheel} is of CUDA {major}, which xdev does not use", anew
        elif version is not None and major > version // 1000:
            what = (
                f"{wheel} needs a driver of CUDA {major}, and this one is of CUDA "
                f"{version // 1000}.{version % 1000 // 10}"
            )
            update = f"update the driver to {DRIVERS[major]} or newer"
            yield BROKEN, what, f"{update}, or {anew}"
        if compilers and major not in compilers:
            what = f"{wheel} is of CUDA {major}, numba-cuda's compiler of CUDA {parts}"
            yield BROKEN, what, anew


def gpu() -> Iterator[Problem]:
    """Say why CUDA cannot be used, where the check of CuPy has not said it."""
    name = _config.device()
    reason = Device("cuda" if name == "auto" else name).reason
    if reason and any(level == BROKEN for level, *_ in wheels()):
        yield SKIPPED, "it cannot be used, as said above", ""
    elif reason:
        wanted = _cupy_wheels() or name != "auto"
        yield _split(BROKEN if wanted else WARNING, reason)


def compiler() -> Iterator[Problem]:
    """Look for numba-cuda, and whether the compiler's parts fit together."""
    if _cupy_wheels():
        compilers.adapter()
        cubins.check()
    else:
        yield SKIPPED, "CuPy is not installed", ""


def cards() -> Iterator[Problem]:
    """Look for devices that other processes hold."""
    if not _cuda_devices():
        yield SKIPPED, "there is no GPU", ""
    for device in _cuda_devices():
        mode, free, total = _card(device)
        if mode != DEFAULT_MODE or not total:
            admits = "no" if mode == PROHIBITED else "one"
            refuses = "" if total else ", and refuses this one"
            what = f"{device} admits {admits} process{refuses}"
            level = WARNING if total else BROKEN
            yield level, what, f"sudo nvidia-smi -i {device.index} -c DEFAULT"
        elif free < FULL * total:
            sizes = " of ".join(map(registry.text_of, (free, total)))
            what = f"{device} has {sizes} free: others hold the rest"
            way = "end processes that nvidia-smi lists, or set CUDA_VISIBLE_DEVICES"
            yield WARNING, what, way


def _card(device: Device) -> tuple[int, int, int]:
    """Return a device's mode, and its free and whole memory [B]; 0 if it refuses us."""
    runtime = _optional.cupy().cuda.runtime
    mode = runtime.deviceGetAttribute(COMPUTE_MODE, device.index)
    try:
        with device.native:
            return mode, *runtime.memGetInfo()
    except runtime.CUDARuntimeError:
        return mode, 0, 0


def limit() -> Iterator[Problem]:
    """Look for a limit above the memory that there is."""
    most = _config.memory_limit()
    for device in devices():
        total = registry.total(device)
        if isinstance(most, int) and most > total:
            what = (
                f"XDEV_MEMORY_LIMIT is {registry.text_of(most)}, and {device} has "
                f"{registry.text_of(total)}: it limits nothing"
            )
            yield WARNING, what, "set a smaller one, or a share such as 80%"


def forks() -> Iterator[Problem]:
    """Look whether worker processes could use CUDA."""
    if _cuda_devices() and multiprocessing.get_all_start_methods()[0] == "fork":
        what = "multiprocessing forks, and a child cannot use CUDA after its parent has"
        way = 'multiprocessing.set_start_method("spawn") at the start of the program'
        yield WARNING, what, way


def use() -> Iterator[Problem]:
    """Call a function and compile a ufunc on every device."""
    for device in devices():
        for name, operation in info.OPERATIONS.items():
            problem = info.try_operation(operation, device)
            if problem is not None:
                what = f"{name} fails on {device}, {problem}"
                yield BROKEN, what, "mend what is above, then run xdev doctor again"


def _cupy_wheels() -> dict[str, int | None]:
    """Return the CuPy distributions that are installed, and the CUDA major of each."""
    installed = _optional.distributions()
    return {
        name.replace("_", "-"): major
        for name, major in CUPY.items()
        if name in installed
    }


def _cuda_devices() -> list[Device]:
    return [device for device in devices() if device.type == "cuda"]


CHECKS: dict[str, Callable[[], Iterator[Problem]]] = {
    "settings": settings,
    "other xdev": namesake,
    "native part": compiled,
    "kernel cache": cache,
    "Numba and NumPy": numba,
    "CuPy": wheels,
    "GPU": gpu,
    "CUDA compiler": compiler,
    "GPU memory": cards,
    "memory limit": limit,
    "processes": forks,
    "every device": use,
}
OF_CUDA = {wheels, gpu, compiler, cards, forks}
