"""``xdev bench``: one ufunc on host and device arrays, beside its peers."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.cli.contest import contest
from xdev.device import Device, default_device, use_device
from xdev.errors import ConfigurationError, XdevError
from xdev.timing import Comparison, compare, verdict
from xdev.timing.environment import device_name, environment

if TYPE_CHECKING:
    from collections.abc import Mapping

DTYPES = (
    *("float16", "float32", "float64", "complex64", "complex128"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)


def add_to(commands: Any) -> None:
    """Add the command and its options to a parser's commands."""
    command = commands.add_parser(
        "bench",
        help="time f(x, y) = x + y on host and device arrays, with and without out=",
    )
    command.add_argument(
        "--n", type=_size, default=100_000, help="elements (default: %(default)s)"
    )
    command.add_argument(
        "--dtype", choices=DTYPES, default="float32", help="(default: %(default)s)"
    )
    command.add_argument(
        "--device", type=_device, help="cpu, cuda or cuda:N (default: XDEV_DEVICE)"
    )
    command.add_argument(
        "--json", type=_writable, metavar="FILE", help="write every sample to FILE"
    )
    command.add_argument(
        "--baseline",
        type=_record,
        metavar="FILE",
        help="what an earlier --json wrote: exit 1 where a row has become slower",
    )
    command.set_defaults(run=run)


def _size(text: str) -> int:
    try:
        n = int(text)
    except ValueError:
        n = 0
    if n < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number of at least 1"
        )
    return n


def _device(text: str) -> Device:
    try:
        return _timed(Device(text).require())
    except XdevError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _timed(device: Device) -> Device:
    if device.type not in ("cpu", "cuda"):
        raise ConfigurationError(f"{device} is not timed: use --device cpu or cuda")
    return device


def _writable(text: str) -> Path:
    """Return the path of a record, if it can be written."""
    path = Path(text)
    try:
        verdict.check_writable(path)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot write {text!r}: {error}") from error
    return path


def _record(text: str) -> Mapping[str, Any]:
    """Read the file at once, so that a wrong one is known before minutes of timing."""
    try:
        return verdict.read_record(text)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot read {text!r}: {error}") from error
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def run(options: argparse.Namespace) -> int:
    """Print the table and what it left out; return 1 where a row is slower than before.

    Raises
    ------
    ConfigurationError
        The baseline is of another task or another machine.
    """
    device = options.device or _timed(default_device())
    task = {"n": options.n, "dtype": options.dtype, "device": str(device)}
    if options.baseline is not None:
        _check_baseline(task, device, options.baseline)
    entered = contest(options.n, np.dtype(options.dtype), device)
    with warnings.catch_warnings():
        # Numba's advice on its own launches: no part of the table.
        warnings.filterwarnings("ignore", ".*Grid size")
        with use_device(device):  # where calls on host arrays do their work
            comparison = compare(entered.candidates, nbytes=entered.nbytes())
    print(f"x + y of {options.n:,} {options.dtype} on {device}\n")
    show(comparison)
    if device.type == "cuda":
        print("\nhost arrays: upload, call and download", end="")
    print()
    for reason, names in entered.reasons().items():
        print(f"left out: {', '.join(names)}\n  because {reason}")
    if options.json:
        record = {**task, **comparison.as_dict(), "left_out": entered.left_out}
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if options.baseline is None:
        return 0
    changes = comparison.since(options.baseline)
    print(f"\n{changes}")
    return 1 if changes.regressed else 0


def _check_baseline(
    task: dict[str, Any], device: Device, record: Mapping[str, Any]
) -> None:
    """Refuse one of something else before minutes of timing."""
    for key, value in task.items():
        if record.get(key) != value:
            raise ConfigurationError(
                f"the baseline has {key} {record.get(key)}, not {value}"
            )
    conditions = {"device": device_name(device), "cold": False}
    row = {"name": "xdev device arrays", "conditions": conditions}
    verdict.check_baseline(environment(), [row], record)


def show(comparison: Comparison) -> None:
    """Print a table; on a terminal with its verdicts coloured, where rich is there."""
    if sys.stdout.isatty() and importlib.util.find_spec("rich"):
        from rich.console import Console

        Console().print(comparison)
    else:
        print(comparison)
