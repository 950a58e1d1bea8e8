"""``xdev info``: what is here and works; ``xdev cache``: code kept on disk."""

from __future__ import annotations

import argparse
import inspect
import itertools
import json
import platform
import time
from contextlib import suppress
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

import xdev
from xdev import _config, _disk_cache, memory, native
from xdev._progress import Progress
from xdev.device import Device, default_device, devices, use_device
from xdev.errors import ConfigurationError, DeviceUnavailableError
from xdev.memory.registry import text_of
from xdev.timing.environment import cuda_name, processor_name, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


DAY = 24 * 60 * 60  # seconds
COLUMNS = 80  # of a terminal
LATEST = 40  # entries that are listed
#: What ``xdev cache warm`` calls, beside all elementwise functions.
FUNCTIONS = (
    *("all", "any", "argmax", "argmin", "argsort", "concat", "count_nonzero"),
    *("cumulative_prod", "cumulative_sum", "max", "mean", "min", "nonzero", "prod"),
    *("roll", "sort", "std", "sum", "unique_counts", "unique_values", "var"),
)
DTYPES = ["float32", "float64", "int64"]
OWN_FOLDER = "set XDEV_CACHE_DIR to a folder of your own"


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], int],
    unset: object = False,
) -> argparse.ArgumentParser:
    """Add a command to a parser's; the function's docstring is its help.

    ``unset`` is what ``--json`` is where it is not given; None: it has its own.
    """
    about, _, examples = (inspect.getdoc(run) or "").partition("\n\n")
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=about,
        description=about,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run)
    if unset is not None:
        about = "print JSON, for a program"
        command.add_argument("--json", action="store_true", default=unset, help=about)
    return command


def print_json(facts: object) -> None:
    """Print a value as JSON."""
    print(json.dumps(facts, indent=1))


def in_columns(text: str, indent: int) -> str:
    """Return a text in lines of a terminal's width, all but the first indented."""
    return fill(
        text,
        COLUMNS,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def add_to(commands: Any) -> None:
    """Add ``xdev info`` and ``xdev cache`` to a parser's commands."""
    add_command(commands, "info", run)
    command = add_command(commands, "cache", listed)
    about = f"list more than the latest {LATEST}"
    command.add_argument("--all", action="store_true", help=about)
    actions = command.add_subparsers(metavar="action")
    kept = argparse.SUPPRESS  # or an action's --json undoes that of `cache`
    clear = add_command(actions, "clear", cleared, kept)
    about = "only what was not used for so many days"
    clear.add_argument("--older", type=days, default=0.0, metavar="DAYS", help=about)
    warm = add_command(actions, "warm", warmed, kept)
    about = "names, with commas between them (default: all)"
    warm.add_argument("--functions", type=names, help=about)
    about = f"names likewise (default: {','.join(DTYPES)})"
    warm.add_argument("--dtypes", type=names, default=DTYPES, help=about)
    add_command(actions, "path", told_of_folder, kept)


def names(text: str) -> list[str]:
    """Return the names that stand between commas."""
    return text.replace(" ", "").split(",")


def days(text: str) -> float:
    """Return a number of days, which is not negative."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError(text)
    return number


def listed(options: argparse.Namespace) -> int:
    """List or clear the compiled code that is kept on disk.

    Examples
    --------
      xdev cache                   list what was used last
      xdev cache --all             list everything that is kept
      xdev cache clear             remove all of it
      xdev cache clear --older 30  remove what was not used for 30 days
      xdev cache warm              compile the functions' CUDA kernels ahead
      xdev cache warm --functions add,sum,sort --dtypes float32
      xdev cache path              print the folder
      xdev cache --json            all of it for a program, in bytes and seconds
    """
    now = time.time()
    entries: list[dict[str, Any]] = []
    files = sorted(_disk_cache.files(), key=lambda file: -file[1].st_mtime)
    for path, status in files[: None if options.all or options.json else LATEST]:
        saved, name = _disk_cache.described(path) or (now, "(damaged)")
        entry = {"kind": path.parent.name, "name": name, "nbytes": status.st_size}
        entries.append(entry | {"age": now - saved})
    if options.json:
        print_json(cache_facts() | {"entries": entries})
        return 0
    print(*cache_summary().values(), sep="\n")
    if entries:
        print(f"{'kind':<8} {'function':<36} {'size':>12} {'age':>8}")
    for kind, name, nbytes, seconds in map(dict.values, entries):
        size, age = text_of(nbytes), f"{seconds / DAY:.1f} d"
        print(f"{kind:<8} {name:<36.36} {size:>12} {age:>8}")
    if len(files) > len(entries):
        print(f"and {len(files) - len(entries):,} more: xdev cache --all")
    return 0


def cleared(options: argparse.Namespace) -> int:
    """Remove compiled code.

    Examples
    --------
      xdev cache clear               remove all of it
      xdev cache clear --older 30    remove what was not used for 30 days
    """
    latest = time.time() - options.older * DAY
    old = [(path, s) for path, s in _disk_cache.files() if s.st_mtime <= latest]
    for path, _ in old:
        path.unlink(missing_ok=True)
    nbytes = sum(status.st_size for _, status in old)
    text = f": {len(old)} entries removed, {text_of(nbytes)}"
    return told_of_folder(options, text, removed=len(old), nbytes=nbytes)


def warmed(options: argparse.Namespace) -> int:
    """Compile the functions' CUDA kernels ahead.

    It needs a GPU. Programs then find the kernels on disk, where their first calls
    would have compiled them.

    Examples
    --------
      xdev cache warm                                all functions, three data types
      xdev cache warm --functions add,sum,sort       these alone
      xdev cache warm --dtypes float32,complex64     for these data types
    """
    device = Device("cuda").require()
    own = [n for n in xdev.__all__ if isinstance(getattr(xdev, n), type(xdev.add))]
    every = sorted({*own, *FUNCTIONS})
    chosen = options.functions or every
    known = {"functions": every, "dtypes": [*xdev.__array_namespace_info__().dtypes()]}
    for what, given in (("functions", chosen), ("dtypes", options.dtypes)):
        if wrong := sorted(set(given) - set(known[what])):
            raise ConfigurationError(
                f"--{what} has {', '.join(wrong)}; there are {', '.join(known[what])}"
            )
    if problem := cache_summary().get("problem"):
        raise ConfigurationError(problem)
    before = cache_facts()["count"]
    pairs = list(itertools.product(chosen, options.dtypes))
    with use_device(device), Progress("kernels", len(pairs)) as progress:
        for name, dtype in pairs:
            _warm(getattr(xdev, name), xdev.ones(4096, dtype=getattr(xdev, dtype)))
            progress.update()
    new = cache_facts()["count"] - before
    text = f": {new} kernels are new, of {len(pairs)} calls"
    return told_of_folder(options, text, calls=len(pairs), new=new)


def _warm(function: Callable[..., Any], x: Any) -> None:
    """Call a function in its plain uses, where it takes the data type."""
    if function is xdev.concat:
        function([x, x])
    elif function is xdev.roll:
        function(x, 1)
    else:
        binary = getattr(function, "nin", 1) > 1
        with suppress(TypeError):
            for arguments in [(x, x), (x, 2)] if binary else [(x,)]:
                function(*arguments)


def told_of_folder(options: argparse.Namespace, text: str = "", **facts: object) -> int:
    """Print the folder.

    Examples
    --------
      xdev cache path                where compiled code is kept
      du -sh "$(xdev cache path)"    what it takes on disk
    """
    folder = str(_config.cache_dir())
    if options.json:
        print_json({"folder": folder, **facts})
    else:
        print(f"{folder}{text}")
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
    folder, count, nbytes, problem = cache_facts().values()
    lines = {"folder": f"{folder}: {count} entries, {text_of(nbytes)}"}
    if problem is not None:
        lines["problem"] = (
            f"nothing is kept on disk, only in each process: {problem}; {OWN_FOLDER}"
        )
    return lines


def run(options: argparse.Namespace) -> int:
    """Print devices, versions and settings, and try every device.

    It tries a function and a ufunc on every device: the exit status is 1 if one
    fails. What is wrong, and what to do, tells xdev doctor.

    Examples
    --------
      xdev info                    what is here, and does it work?
      xdev info --json             the same for a program
      XDEV_DEVICE=cuda xdev info   would a program find the GPU?
    """
    problems = {
        f"{device} {name}": try_operation(operation, device)
        for device in devices()
        for name, operation in OPERATIONS.items()
    }
    sections: dict[str, Mapping[str, Any]] = {
        "versions": versions()
        | {"native part": native.STATE, "platform": platform.platform()},
        "devices": _devices(),
        "settings": {
            name: f"{value}{'' if is_set else '  (default)'}"
            for name, (value, is_set) in _config.values().items()
        }
        | dict.fromkeys(_config.unknown(), "is not a setting of xdev"),
        "compiled code": cache_summary(),
        "operations": {
            name: f"FAIL: {problem}" if problem else "PASS"
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


def _pools() -> dict[str, str]:
    rows = {"policy": _config.memory_pool()}
    for device in devices():
        limit = memory.get_limit(device)
        rows[f"limit of {device}"] = "none" if limit is None else text_of(limit)
    rows["bridges"] = ", ".join(sorted(memory.bridges.installed())) or "none"
    if allocators := memory.bridges.left_alone():
        rows["left alone"] = ", ".join(": ".join(each) for each in allocators.items())
    return rows


def _array(device: Device) -> bool:
    x = xdev.arange(1000, dtype=xdev.float32, device=device)
    return bool(xdev.to_numpy(xdev.sum(xdev.add(x, x))) == 999 * 1000)


def _ufunc(device: Device) -> bool:
    x = xdev.arange(1000, dtype=xdev.float32, device=device)
    out = xdev.empty_like(x)
    xdev.vectorize(lambda x: x + x)(x, out=out)
    return bool(np.array_equal(xdev.to_numpy(out), 2 * np.arange(1000)))


OPERATIONS = {"array": _array, "@vectorize out=": _ufunc}


def try_operation(operation: Callable[[Device], bool], device: Device) -> str | None:
    """Return why an operation fails on a device, None where it works."""
    try:
        right = operation(device)
    except Exception as error:  # noqa: BLE001 - whatever breaks is what is asked for
        return f"{type(error).__name__}: {error}"
    return None if right else "the result is wrong"
