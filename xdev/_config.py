"""The settings: one function an ``XDEV_*`` variable, read once, at first use."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import TypeVar

from xdev.errors import ConfigurationError

T = TypeVar("T")

#: The policies that there are; xdev.memory.policies has the rules of each.
POLICIES = ("split", "binned", "simple", "none", "async")
SWITCHES = {
    "1": True,
    "true": True,
    "on": True,
    "0": False,
    "false": False,
    "off": False,
}
AT_EXIT = "exit"  # a value of XDEV_MEMORY_TRACK
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def _read(name: str) -> str | None:
    """Return the variable's text; empty counts as unset."""
    return os.environ.get(name, "").strip() or None


def _refuse(name: str, text: str, valid: str) -> ConfigurationError:
    return ConfigurationError(f"{name}={text!r} is not valid: use {valid}")


def _choice(name: str, valid: dict[str, T]) -> T:
    text = _read(name) or "0"
    if text.lower() not in valid:
        raise _refuse(name, text, "one of " + ", ".join(valid))
    return valid[text.lower()]


def _switch(name: str) -> bool:
    return _choice(name, SWITCHES)


@cache
def device() -> str:
    """Return ``XDEV_DEVICE``: auto, cpu, cuda, cuda:N, fake or fake:N."""
    text = _read("XDEV_DEVICE") or "auto"
    if not re.fullmatch(r"auto|cpu|(cuda|fake)(:\d+)?", text):
        raise _refuse("XDEV_DEVICE", text, "auto, cpu, cuda, cuda:N, fake or fake:N")
    return text


@cache
def memory_pool() -> str:
    """Return ``XDEV_MEMORY_POOL``: the name of the pools' policy."""
    text = _read("XDEV_MEMORY_POOL") or POLICIES[0]
    if text not in POLICIES:
        raise _refuse("XDEV_MEMORY_POOL", text, "one of " + ", ".join(POLICIES))
    return text


@cache
def memory_limit() -> int | float | None:
    """Return ``XDEV_MEMORY_LIMIT``: bytes (int), a fraction of the device, or None."""
    text = _read("XDEV_MEMORY_LIMIT")
    return None if text is None else parse_limit(text, "XDEV_MEMORY_LIMIT")


@cache
def memory_track() -> bool | str:
    """Return ``XDEV_MEMORY_TRACK``: whether live blocks remember who made them.

    ``"exit"``: they do, and are reported when the program ends.
    """
    valid: dict[str, bool | str] = {**SWITCHES, AT_EXIT: AT_EXIT}
    return _choice("XDEV_MEMORY_TRACK", valid)


@cache
def numpy_pool() -> bool:
    """Return ``XDEV_NUMPY_POOL``: whether NumPy's buffers come from the host pool."""
    return _switch("XDEV_NUMPY_POOL")


def parse_limit(limit: int | str, name: str = "limit") -> int | float:
    """Turn ``2**30``, ``"4GiB"`` or ``"80%"`` into bytes (int) or a fraction (float).

    Raises
    ------
    ConfigurationError
        ``limit`` is negative, above 100 %, or no such text; it lists the forms.
    """
    forms = 'bytes (4294967296), a size ("4GiB", "500 MB") or a share ("80%")'
    number = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*|%)", str(limit).strip())
    if number is None or isinstance(limit, bool):
        raise _refuse(name, str(limit), forms)
    value, unit = float(number[1]), number[2].upper()
    if unit == "%" and value <= 100:  # noqa: PLR2004 - per cent
        return value / 100
    if unit in UNITS and value * UNITS[unit] < 2**63:
        exact = int(number[1]) if number[1].isdigit() else None
        return int(value * UNITS[unit]) if exact is None else exact * UNITS[unit]
    raise _refuse(name, str(limit), forms)


@cache
def num_threads() -> int:
    """Return ``XDEV_NUM_THREADS``, or the number of processors this process may use."""
    text = _read("XDEV_NUM_THREADS")
    if text is None:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else (os.cpu_count() or 1)
        )
    if not text.isdigit() or int(text) < 1:
        raise _refuse("XDEV_NUM_THREADS", text, "a whole number of at least 1")
    return int(text)


@cache
def cache_dir() -> Path:
    """Return ``XDEV_CACHE_DIR``, or ``xdev`` in the user's cache folder."""
    text = _read("XDEV_CACHE_DIR")
    if text is not None:
        if Path(text).exists() and not Path(text).is_dir():
            raise _refuse("XDEV_CACHE_DIR", text, "a folder, or a path to make one at")
        return Path(text)
    return Path(_read("XDG_CACHE_HOME") or Path.home() / ".cache") / "xdev"


@cache
def debug() -> bool:
    """Return ``XDEV_DEBUG``: whether checks that cost time are on."""
    return _switch("XDEV_DEBUG")
