"""``xdev info``: what is here and works; ``xdev cache``: code kept on disk."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

import xdev
from xdev import _config, _disk_cache, _optional, memory, native
from xdev.device import Device, default_device, devices
from xdev.errors import DeviceUnavailableError
from xdev.memory.registry import text_of
from xdev.timing.environment import cuda_name, processor_name, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


DAY = 24 * 60 * 60  # seconds
AGES = ((DAY, "d"), (60 * 60, "h"), (60, "min"), (1, "s"))
EXAMPLES = """
examples:
  xdev cache                   list what is kept, the last used first
  xdev cache clear             remove all of it
  xdev cache clear --older 30  remove what was not used for 30 days
  xdev cache path              print the folder
"""


def add_cache_to(commands: Any) -> None:
    """Add ``xdev cache`` to a parser's commands."""
    command = commands.add_parser(
        "cache",
        help="list or clear the compiled code that is kept on disk",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=listed)
    actions = command.add_subparsers(metavar="action")
    clear = actions.add_parser("clear", help="remove compiled code")
    clear.add_argument(
        "--older",
        type=days,
        default=0.0,
        metavar="DAYS",
        help="only what was not used for so long",
    )
    clear.set_defaults(run=cleared)
    path = actions.add_parser("path", help="print the folder")
    path.set_defaults(run=lambda _: print(_config.cache_dir()) or 0)


def listed(_: argparse.Namespace) -> int:
    """Print the folder and its entries, the last used first."""
    found = sorted(_disk_cache.files(), key=lambda file: -file[1].st_mtime)
    print(*cache_summary(), sep="\n")
    if found:
        print(f"{'kind':<8} {'function':<24} {'size':>10} {'age':>7} {'hits':>6}")
    now = time.time()
    for path, status in found:
        hits, made, name = _disk_cache.described(path) or (0, now, "(damaged)")
        size, old = text_of(status.st_size), _age(now - made)
        print(f"{path.parent.name:<8} {name:<24} {size:>10} {old:>7} {hits:>6}")
    return 0


def cleared(options: argparse.Namespace) -> int:
    """Remove the entries that were not used for some time, and say how many."""
    latest = time.time() - options.older * DAY
    old = [(path, s) for path, s in _disk_cache.files() if s.st_mtime <= latest]
    for path, _ in old:
        path.unlink(missing_ok=True)
    total = text_of(sum(status.st_size for _, status in old))
    print(f"{_config.cache_dir()}: {len(old)} entries removed, {total}")
    return 0


def cache_summary() -> list[str]:
    """Return the folder, its entries and size, and why nothing can be kept in it."""
    sizes = [status.st_size for _, status in _disk_cache.files()]
    lines = [f"{_config.cache_dir()}: {len(sizes)} entries, {text_of(sum(sizes))}"]
    problem = _disk_cache.problem()
    if problem is not None:
        lines.append(
            f"nothing is kept on disk, only in each process: {problem}; set "
            f"XDEV_CACHE_DIR to a folder of your own"
        )
    return lines


def days(text: str) -> float:
    """Return a number of days, which is not negative."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError(text)
    return number


def _age(seconds: float) -> str:
    """Return a time in its largest whole unit.

    >>> _age(3 * DAY + 5), _age(70), _age(-1)
    ('3 d', '1 min', '0 s')
    """
    for size, unit in AGES:
        if seconds >= size:
            return f"{int(seconds / size)} {unit}"
    return "0 s"


SCHEDULER = "DASK_SCHEDULER_ADDRESS"  # as Dask's own clients read it
NAMESAKE = (
    "warning: the distribution xdev {} is installed too, another project with the same "
    "module name: python -m pip uninstall xdev, then, in xdev's checkout, python -m "
    "pip install --force-reinstall ."
)


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    command = commands.add_parser(
        "info", help="print devices, versions and settings, and try every device"
    )
    command.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Print the report; return 1 where a device that is there fails, else 0."""
    _print("versions", _versions())
    _print("devices", _devices())
    if workers := _workers():
        _print("workers", workers)
    _print("settings", _settings())
    problems = {
        (device, what): try_operation(operation, device)
        for device in devices()
        for what, operation in OPERATIONS.items()
    }
    _print("compiled code", cache_summary())
    _print(
        "operations",
        (
            f"{device!s:<8} {what:<16} {f'FAIL: {problem}' if problem else 'PASS'}"
            for (device, what), problem in problems.items()
        ),
    )
    _print("memory pools", _pools())  # last: a device's first use installs bridges
    namesake = _optional.distributions().get("xdev")
    if namesake is not None:
        print(NAMESAKE.format(namesake))
    return 1 if any(problems.values()) else 0


def _print(title: str, lines: Iterable[str]) -> None:
    print(title, *(f"  {line}" for line in lines), sep="\n")


def _versions() -> list[str]:
    return [f"{name:<17} {found or '-'}" for name, found in versions().items()] + [
        f"{'native part':<17} {native.STATE}",
        f"{'platform':<17} {platform.platform()}",
    ]


def _devices() -> list[str]:
    lines = [f"{'cpu':<8} {processor_name()}"]
    reason = Device("cuda").reason
    found = [device for device in devices() if device.type != "cpu"]
    lines += [f"{device!s:<8} {cuda_name(device.index) or ''}" for device in found]
    if reason is not None:
        lines.append(f"{'cuda':<8} cannot be used: {reason}")
    try:
        return [*lines, f"{'default':<8} {default_device()}"]
    except DeviceUnavailableError as error:
        return [*lines, f"{'default':<8} none: {error}"]


def _workers() -> list[str]:
    """Return the devices of Dask's workers, where there is a client or a scheduler."""
    if "distributed" not in sys.modules and SCHEDULER not in os.environ:
        return []
    from xdev.distributed import clusters

    try:
        found = clusters.devices_of_workers()
    except OSError as error:
        return [
            f"the scheduler at {os.environ.get(SCHEDULER)} does not answer: {error}"
        ]
    return [f"{worker:<26} {text}" for worker, text in found.items()]


def _settings() -> list[str]:
    known = _config.values().items()
    return [
        *(f"{n:<17} {v}{'' if given else '  (default)'}" for n, (v, given) in known),
        *(f"{name:<17} is not a setting of xdev" for name in _config.unknown()),
    ]


def _pools() -> list[str]:
    rows: list[tuple[str, object]] = [("policy", _config.memory_pool())]
    for device in devices():
        limit = memory.get_limit(device)
        rows.append((f"limit of {device}", "none" if limit is None else text_of(limit)))
    installed = ", ".join(sorted(memory.bridges.installed()))
    rows.append(("bridges", installed or "none"))
    for library, found in memory.bridges.left_alone().items():
        rows.append(("left alone", f"{library}: {found}"))
    return [f"{name:<17} {value}" for name, value in rows]


def _array_operation(device: Device) -> bool:
    x = xdev.arange(1000, dtype=xdev.float32, device=device)
    total = xdev.to_numpy(xdev.sum(xdev.add(x, x)))
    return bool(total == 999 * 1000)


def _ufunc(device: Device) -> bool:
    @xdev.vectorize
    def twice(x: Any) -> Any:
        return x + x

    x = xdev.arange(1000, dtype=xdev.float32, device=device)
    out = xdev.empty(1000, dtype=xdev.float32, device=device)
    twice(x, out=out)
    return bool(np.array_equal(xdev.to_numpy(out), 2 * np.arange(1000)))


OPERATIONS: dict[str, Callable[[Device], bool]] = {
    "array": _array_operation,
    "@vectorize out=": _ufunc,
}


def try_operation(operation: Callable[[Device], bool], device: Device) -> str | None:
    """Return why an operation fails on a device, None where it works."""
    try:
        right = operation(device)
    except Exception as error:  # noqa: BLE001 - whatever breaks is what is asked for
        return f"{type(error).__name__}: {error}"
    return None if right else "the result is wrong"
