"""``xdev info``: what is here and works; ``xdev cache``: code kept on disk."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import sys
import time
from contextlib import suppress
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

import xdev
from xdev import _config, _disk_cache, _optional, memory, native
from xdev._progress import Progress
from xdev.device import Device, default_device, devices, use_device
from xdev.errors import ConfigurationError, DeviceUnavailableError
from xdev.memory.registry import text_of
from xdev.timing.environment import cuda_name, processor_name, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


DAY = 24 * 60 * 60  # seconds
EXAMPLES = """
examples:
  xdev cache                   list what was used last
  xdev cache --all             list everything that is kept
  xdev cache clear             remove all of it
  xdev cache clear --older 30  remove what was not used for 30 days
  xdev cache warm              compile the functions' CUDA kernels ahead
  xdev cache warm --functions add,sum,sort --dtypes float32
  xdev cache path              print the folder
  xdev cache --json            all of it for a program, in bytes and seconds
"""
COLUMNS = 80  # of a terminal
LATEST = 40  # entries that are listed
#: What ``xdev cache warm`` calls, beside all elementwise functions.
FUNCTIONS = (
    *("all", "any", "argmax", "argmin", "argsort", "concat", "count_nonzero"),
    *("cumulative_prod", "cumulative_sum", "max", "mean", "min", "nonzero", "prod"),
    *("roll", "sort", "std", "sum", "unique_counts", "unique_values", "var"),
)
KINDS = ["float32", "float64", "int64"]
ENTRY = ("kind", "name", "nbytes", "age", "hits")
OWN_FOLDER = "set XDEV_CACHE_DIR to a folder of your own"


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], **texts: str
) -> argparse.ArgumentParser:
    """Add a command to a parser's; its help keeps the lines of its texts."""
    keep_lines = argparse.RawDescriptionHelpFormatter
    command: argparse.ArgumentParser
    command = commands.add_parser(name, formatter_class=keep_lines, **texts)
    command.set_defaults(run=run)
    return command


def add_cache_to(commands: Any) -> None:
    """Add ``xdev cache`` to a parser's commands."""
    about = "list or clear the compiled code that is kept on disk"
    command = add_command(commands, "cache", listed, help=about, epilog=EXAMPLES)
    command.add_argument(
        "--all", action="store_true", help=f"list more than the latest {LATEST}"
    )
    actions = command.add_subparsers(metavar="action")
    clear = add_command(actions, "clear", cleared, help="remove compiled code")
    clear.add_argument(
        "--older",
        type=days,
        default=0.0,
        metavar="DAYS",
        help="only what was not used for so long",
    )
    about = "compile the functions' CUDA kernels ahead"
    warm = add_command(actions, "warm", warmed, help=about)
    warm.add_argument(
        "--functions", type=names, help="names of xdev's, with commas (default: all)"
    )
    warm.add_argument(
        "--dtypes", type=names, default=KINDS, help=f"({','.join(KINDS)})"
    )
    path = add_command(actions, "path", folder_of, help="print the folder")
    add_json_to(command, clear, warm, path)


def names(text: str) -> list[str]:
    """Return the names that stand between commas."""
    return [name.strip() for name in text.split(",")]


def listed(options: argparse.Namespace) -> int:
    """Print the folder, and its entries, the last used first."""
    now = time.time()
    entries: list[dict[str, Any]] = []
    files = sorted(_disk_cache.files(), key=lambda file: -file[1].st_mtime)
    for path, status in files[: None if options.all or options.json else LATEST]:
        hits, saved, name = _disk_cache.described(path) or (0, now, "(damaged)")
        row = path.parent.name, name, status.st_size, now - saved, hits
        entries.append(dict(zip(ENTRY, row, strict=True)))
    if options.json:
        print_json(**cache_facts(), entries=entries)
        return 0
    print(*cache_summary().values(), sep="\n")
    if entries:
        print(f"{'kind':<8} {'function':<36} {'size':>12} {'age':>8} {'hits':>8}")
    for kind, name, nbytes, seconds, hits in map(dict.values, entries):
        size, age = text_of(nbytes), f"{seconds / DAY:.1f} d"
        print(f"{kind:<8} {name:<36.36} {size:>12} {age:>8} {hits:>8}")
    if len(files) > len(entries):
        print(f"and {len(files) - len(entries):,} more: xdev cache --all")
    return 0


def cleared(options: argparse.Namespace) -> int:
    """Remove the entries that were not used for some time, and say how many."""
    latest = time.time() - options.older * DAY
    old = [(path, s) for path, s in _disk_cache.files() if s.st_mtime <= latest]
    for path, _ in old:
        path.unlink(missing_ok=True)
    nbytes = sum(status.st_size for _, status in old)
    folder = _config.cache_dir()
    if options.json:
        print_json(folder=str(folder), removed=len(old), nbytes=nbytes)
    else:
        print(f"{folder}: {len(old)} entries removed, {text_of(nbytes)}")
    return 0


def warmed(options: argparse.Namespace) -> int:
    """Call functions on the GPU, so that their kernels are kept; say how many are new.

    Raises
    ------
    DeviceUnavailableError
        There is no GPU.
    ConfigurationError
        A function or a data type that there is not, or nothing can be kept.
    """
    device = Device("cuda").require()
    own = [n for n in xdev.__all__ if isinstance(getattr(xdev, n), type(xdev.add))]
    every = sorted({*own, *FUNCTIONS})
    chosen = options.functions or every
    known = {"functions": every, "dtypes": [*xdev.__array_namespace_info__().dtypes()]}
    for what, given in (("functions", chosen), ("dtypes", options.dtypes)):
        wrong = sorted(set(given) - set(known[what]))
        if wrong:
            listed = ", ".join(known[what])
            raise ConfigurationError(
                f"--{what} has {', '.join(wrong)}; there are {listed}"
            )
    before = cache_facts()
    if before["problem"] is not None:
        raise ConfigurationError(cache_summary()["problem"])
    pairs = list(itertools.product(chosen, options.dtypes))
    with use_device(device), Progress("kernels", len(pairs)) as progress:
        for name, dtype in pairs:
            _warm(getattr(xdev, name), xdev.ones(4096, dtype=getattr(xdev, dtype)))
            progress.update()
    new = cache_facts()["count"] - before["count"]
    if options.json:
        print_json(folder=before["folder"], calls=len(pairs), new=new)
    else:
        print(f"{before['folder']}: {new} kernels are new, of {len(pairs)} calls")
    return 0


def _warm(function: Callable[..., Any], x: Any) -> None:
    """Call a function in its plain uses, where it takes the data type."""
    if function is xdev.concat:
        function([x, x])
    elif function is xdev.roll:
        function(x, 1)
    else:
        count = getattr(function, "nin", 1)
        uses = [(x,) * count] if count == 1 else [(x, x), (x, 2)]
        with suppress(TypeError):
            for arguments in uses:
                function(*arguments)


def folder_of(options: argparse.Namespace) -> int:
    """Print the cache's folder."""
    folder = str(_config.cache_dir())
    if options.json:
        print_json(folder=folder)
    else:
        print(folder)
    return 0


def cache_facts() -> dict[str, Any]:
    """Return the folder, its entries and size, and why nothing can be kept in it."""
    sizes = [status.st_size for _, status in _disk_cache.files()]
    return {
        "folder": str(_config.cache_dir()),
        "count": len(sizes),
        "nbytes": sum(sizes),
        "problem": _disk_cache.problem(),
    }


def cache_summary() -> dict[str, str]:
    """Return the same in words."""
    facts = cache_facts()
    size = f"{facts['count']} entries, {text_of(facts['nbytes'])}"
    lines = {"folder": f"{facts['folder']}: {size}"}
    if facts["problem"] is not None:
        lines["problem"] = (
            f"nothing is kept on disk, only in each process: {facts['problem']}; "
            f"{OWN_FOLDER}"
        )
    return lines


def print_json(*values: Any, **facts: Any) -> None:
    """Print a value, or names and values, as JSON."""
    print(json.dumps(*values or (facts,), indent=1))


def in_columns(text: str, indent: int) -> str:
    """Return a text in lines that a terminal shows whole, all but the first indented.

    >>> print(in_columns("cuda  " + "cannot " * 12, 6))
    cuda  cannot cannot cannot cannot cannot cannot cannot cannot cannot cannot
          cannot cannot
    """
    return fill(
        text,
        COLUMNS,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def add_json_to(*commands: argparse.ArgumentParser) -> None:
    """Add the option ``--json`` to commands that print JSON then."""
    for command in commands:
        command.add_argument(
            "--json", action="store_true", help="print JSON, for a program"
        )


def days(text: str) -> float:
    """Return a number of days, which is not negative."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError(text)
    return number


SCHEDULER = "DASK_SCHEDULER_ADDRESS"  # as Dask's own clients read it
#: The other project of that name is installed.
NAMESAKE = (
    "the distribution xdev {} is installed too, another project with the same module "
    "name"
)
WITHOUT_NAMESAKE = (
    "python -m pip uninstall xdev, then, in xdev's checkout, python -m pip install "
    "--force-reinstall ."
)


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    command = add_command(
        commands,
        "info",
        run,
        help="print devices, versions and settings, and try every device",
        epilog="It tries a function and a ufunc on every device. What is wrong, and\n"
        "what to do, tells xdev doctor; xdev info tells what there is.",
    )
    add_json_to(command)


def run(options: argparse.Namespace) -> int:
    """Print the report; return 1 where a device that is there fails, else 0."""
    problems = {
        f"{device!s:<8} {name}": try_operation(operation, device)
        for device in devices()
        for name, operation in OPERATIONS.items()
    }
    sections: dict[str, Mapping[str, Any]] = {
        "versions": _versions(),
        "devices": _devices(),
        "workers": _workers(),
        "settings": _settings(),
        "compiled code": cache_summary(),
        "operations": {
            " ".join(name.split()): f"FAIL: {problem}" if problem else "PASS"
            for name, problem in problems.items()
        },
        "memory pools": _pools(),  # last: a device's first use installs bridges
    }
    if options.json:
        print_json(sections)
    else:
        _print(sections)
    return 1 if any(problems.values()) else 0


def _print(sections: Mapping[str, Mapping[str, Any]]) -> None:
    for title, lines in sections.items():
        if lines:
            print(title)
        for name, text in lines.items():
            told = "-" if text is None else text
            print(in_columns(f"  {name:<19} {told}", 22))
    namesake = _optional.distributions().get("xdev")
    if namesake is not None:
        print(f"warning: {NAMESAKE.format(namesake)}: {WITHOUT_NAMESAKE}")


def _versions() -> dict[str, str | None]:
    return {
        **versions(),
        "native part": native.STATE,
        "platform": platform.platform(),
    }


def _devices() -> dict[str, str]:
    rows = {"cpu": processor_name()}
    reason = Device("cuda").reason
    others = [device for device in devices() if device.type != "cpu"]
    rows |= {str(device): cuda_name(device.index) or "" for device in others}
    if reason is not None:
        rows["cuda"] = f"cannot be used: {reason}"
    try:
        return {**rows, "default": str(default_device())}
    except DeviceUnavailableError as error:
        return {**rows, "default": f"none: {error}"}


def _workers() -> dict[str, str]:
    """Return the devices of Dask's workers, where there is a client or a scheduler."""
    if "distributed" not in sys.modules and SCHEDULER not in os.environ:
        return {}
    from xdev.distributed import clusters

    try:
        return clusters.devices_of_workers()
    except OSError as error:
        address = os.environ.get(SCHEDULER)
        return {"scheduler": f"{address} does not answer: {error}"}


def _settings() -> dict[str, str]:
    return {
        name: f"{value}{'' if is_set else '  (default)'}"
        for name, (value, is_set) in _config.values().items()
    } | dict.fromkeys(_config.unknown(), "is not a setting of xdev")


def _pools() -> dict[str, str]:
    rows = {"policy": _config.memory_pool()}
    for device in devices():
        limit = memory.get_limit(device)
        rows[f"limit of {device}"] = "none" if limit is None else text_of(limit)
    rows["bridges"] = ", ".join(sorted(memory.bridges.installed())) or "none"
    if allocators := memory.bridges.left_alone():
        rows["left alone"] = ", ".join(": ".join(each) for each in allocators.items())
    return rows


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
