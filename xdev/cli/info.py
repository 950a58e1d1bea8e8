"""``xdev info``: devices, versions, settings, pools; whether each device works."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np

import xdev
from xdev import _config, memory, native
from xdev.cli import cache, settings
from xdev.device import Device, default_device, devices
from xdev.errors import DeviceUnavailableError
from xdev.memory.reports import text_of
from xdev.timing.environment import cuda_name, processor_name, versions

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

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
    workers = _workers()
    if workers:
        _print("workers", workers)
    _print("settings", _settings())
    problems = {
        (device, what): try_operation(operation, device)
        for device in devices()
        for what, operation in OPERATIONS.items()
    }
    _print("compiled code", [cache.summary(), *cache.problems()])
    _print("operations", starmap(_outcome, problems.items()))
    _print("memory pools", _pools())  # last: a device's first use installs bridges
    for warning in _warnings():
        print(warning)
    return 1 if any(problems.values()) else 0


def _print(title: str, lines: Iterable[str]) -> None:
    print(title, *(f"  {line}" for line in lines), sep="\n")


def _outcome(tried: tuple[Device, str], problem: str | None) -> str:
    device, what = tried
    return f"{device!s:<8} {what:<16} {f'FAIL: {problem}' if problem else 'PASS'}"


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
    lines = [
        f"{name:<17} {value}{'' if given else '  (default)'}"
        for name, (value, given) in settings.read().items()
    ]
    return lines + [
        f"{name:<17} is not a setting of xdev" for name in _config.unknown()
    ]


def _pools() -> list[str]:
    limits = {device: memory.get_limit(device) for device in devices()}
    installed = ", ".join(sorted(memory.bridges.installed())) or "none"
    return [
        f"{'policy':<17} {settings.read()['XDEV_MEMORY_POOL'][0]}",
        *(
            f"{f'limit of {device}':<17} {'none' if limit is None else text_of(limit)}"
            for device, limit in limits.items()
        ),
        f"{'bridges':<17} {installed}",
        *(
            f"{'left alone':<17} {library}: {found}"
            for library, found in memory.bridges.left_alone().items()
        ),
    ]


def _warnings() -> list[str]:
    try:
        return [NAMESAKE.format(version("xdev"))]
    except PackageNotFoundError:
        return []


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
