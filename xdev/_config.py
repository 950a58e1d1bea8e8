"""The settings: one function an ``XDEV_*`` variable, read once, at first use."""

from __future__ import annotations

import os
import re
import sys
import warnings
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, TypeVar, final

from xdev.errors import ConfigurationError, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

T = TypeVar("T")

#: The policies that there are; xdev.memory.policies has the rules of each.
POLICIES = ("split", "binned", "simple", "none", "async")
SWITCHES = dict.fromkeys(("1", "true", "on"), True)
SWITCHES |= dict.fromkeys(("0", "false", "off"), False)
AT_EXIT = "exit"  # a value of XDEV_MEMORY_TRACK
TRACKER = "xdev.memory.tracking"
SETTINGS = (
    *("XDEV_DEVICE", "XDEV_MEMORY_POOL", "XDEV_MEMORY_LIMIT", "XDEV_MEMORY_TRACK"),
    *("XDEV_NUMPY_POOL", "XDEV_NATIVE", "XDEV_NUM_THREADS", "XDEV_CACHE_DIR"),
    *("XDEV_CUPY_OPERATORS", "XDEV_DEBUG"),
)
OF_TESTS = ("XDEV_TEST_BACKENDS", "XDEV_TEST_DEVICES", "XDEV_TEST_LIBRARIES")
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
LARGEST = 2**63  # what a limit in bytes must be below
TOP_LEVEL = 1000  # frames up: the environment is no line's of the program
ALIKE = 0.8  # share of its letters that a misspelt name has in common
NUMBER = r"(\d{1,19})(\.\d+)?\s*([A-Za-z]*|%)"
MOST_THREADS = 1024
FORMS = 'bytes (4294967296), a size ("4GiB", "1.5 GB") or a share ("80%", or 0.8)'


def _read(name: str) -> str | None:
    """Return the variable's text; empty counts as unset."""
    _warn_of_misspelt()
    return os.environ.get(name, "").strip() or None


def unknown() -> list[str]:
    """Return the ``XDEV_*`` variables that are set and that xdev does not read."""
    return sorted(
        name
        for name in os.environ
        if name.startswith("XDEV_") and name not in SETTINGS + OF_TESTS
    )


def nearest(name: str, alike: float) -> str:
    """Return the setting that a name nearly is, by that share; empty if none is."""
    from difflib import get_close_matches  # takes long to import

    return "".join(get_close_matches(name, SETTINGS, 1, alike))


@cache
def _warn_of_misspelt() -> None:
    """Warn of a variable that is nearly one of xdev's; others may be another's."""
    for name in unknown():
        if meant := nearest(name, ALIKE):
            message = f"{name} is not a setting of xdev, and ignored: use {meant}"
            warnings.warn(message, stacklevel=TOP_LEVEL)


def _refuse(name: str, text: str, valid: str) -> ConfigurationError:
    return ConfigurationError(f"{name}={quoted(text)} is not valid: use {valid}")


def _choice(name: str, valid: Mapping[str, T], default: str) -> Callable[[], T]:
    """Return the function that reads a variable which has some values only."""

    def read() -> T:
        text = _read(name) or default
        if text.lower() not in valid:
            raise _refuse(name, text, "one of " + ", ".join(valid))
        return valid[text.lower()]

    return cache(read)


#: The name of the pools' policy.
memory_pool = _choice(
    "XDEV_MEMORY_POOL", {name: name for name in POLICIES}, POLICIES[0]
)
#: Whether live blocks remember who made them; "exit": they do, and are reported when
#: the program ends.
memory_track = _choice("XDEV_MEMORY_TRACK", {**SWITCHES, AT_EXIT: AT_EXIT}, "off")


@final
class Tracking:
    """Whether nobody tracks, for certain (``off``): xdev.memory.tracking says it."""

    __slots__ = ("off",)

    def __init__(self) -> None:
        self.off = False

    def found_off(self) -> bool:
        """Say the same, by the environment alone while that room is not loaded."""
        if TRACKER not in sys.modules:
            self.off = not (memory_track() or debug())
            self.off = self.off and TRACKER not in sys.modules  # it tracks, maybe
        return self.off


TRACKING = Tracking()
#: Whether NumPy's buffers come from the host pool.
numpy_pool = _choice("XDEV_NUMPY_POOL", SWITCHES, "off")
#: Whether the operators of CuPy's arrays are the engine's.
cupy_operators = _choice("XDEV_CUPY_OPERATORS", SWITCHES, "off")
#: Whether the compiled part is used where it is built.
native = _choice("XDEV_NATIVE", SWITCHES, "on")
#: Whether checks that cost time are on.
debug = _choice("XDEV_DEBUG", SWITCHES, "off")


def at_import(switch: Callable[[], bool]) -> bool:
    """Return a switch; in xdev's own commands one that is not valid is off."""
    try:
        return switch()
    except ConfigurationError:
        program, words = sys.argv[0], sys.orig_argv
        if program == "-m":
            program = words[words.index("-m") + 1]
        if os.path.basename(program) != "xdev":  # noqa: PTH119 - pathlib loads more
            raise
        return False


@cache
def device() -> str:
    """Return ``XDEV_DEVICE``: auto, cpu, cuda, cuda:N, fake or fake:N."""
    text = _read("XDEV_DEVICE") or "auto"
    devices = re.compile(r"auto|cpu|(cuda|fake)(:\d{1,9})?", re.ASCII)
    if not devices.fullmatch(text):
        valid = "auto, cpu, cuda, cuda:N, fake or fake:N"
        if devices.fullmatch(text.lower()):
            valid = f"{text.lower()}, in lower case; there are {valid}"
        raise _refuse("XDEV_DEVICE", text, valid)
    return text


@cache
def memory_limit() -> int | float | None:
    """Return ``XDEV_MEMORY_LIMIT``: bytes (int), a fraction of the device, or None."""
    text = _read("XDEV_MEMORY_LIMIT")
    return None if text is None else parse_limit(text, "XDEV_MEMORY_LIMIT")


def parse_limit(limit: object, name: str = "limit") -> int | float:
    """Turn a limit into bytes (int) or a fraction (float): ``FORMS`` lists what is."""
    plain = not isinstance(limit, bool)
    if plain and isinstance(limit, Integral):
        if 0 <= (nbytes := int(limit)) < LARGEST:
            return nbytes
        small = nbytes.bit_length() <= 64  # noqa: PLR2004 - Python prints no giants
        limit = nbytes if small else f"about 2**{nbytes.bit_length()}"
    elif plain and isinstance(limit, Real):
        if 0 <= limit <= 1:  # type: ignore[operator]
            return float(limit)
    elif number := re.fullmatch(NUMBER, str(limit).strip(), re.ASCII):
        whole, rest, unit = number[1], number[2] or "", number[3].upper()
        share = float(whole + rest)
        if unit == "%" and share <= 100:  # noqa: PLR2004 - per cent
            return share / 100
        if rest and not unit and share <= 1:
            return share
        size = UNITS.get(unit, LARGEST)
        nbytes = int(whole) * size + int(float(rest or 0) * size)
        if nbytes < LARGEST and not (rest and size == 1):
            return nbytes
    raise _refuse(name, str(limit).strip(), FORMS)


@cache
def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


@cache
def num_threads() -> int:
    """Return ``XDEV_NUM_THREADS``, or the number of processors this process may use."""
    text = _read("XDEV_NUM_THREADS")
    if text is None:
        return min(processors(), MOST_THREADS)
    if not re.fullmatch(r"0*[1-9]\d{0,3}", text, re.ASCII) or int(text) > MOST_THREADS:
        valid = f"a whole number from 1 to {MOST_THREADS}"
        raise _refuse("XDEV_NUM_THREADS", text, valid)
    return int(text)


@cache
def cache_dir() -> Path:
    """Return ``XDEV_CACHE_DIR``, or ``xdev`` in the user's cache folder."""
    from pathlib import Path  # takes 3 ms to import where NumPy has not done so

    text = _read("XDEV_CACHE_DIR")
    if text is not None:
        # Not pathlib's tests, which raise where a name is too long or may not be read.
        if os.path.exists(text) and not os.path.isdir(text):  # noqa: PTH110, PTH112
            raise _refuse("XDEV_CACHE_DIR", text, "a folder, or a path to make one at")
        return Path(text)
    return Path(_read("XDG_CACHE_HOME") or Path.home() / ".cache") / "xdev"


def value(name: str) -> object:
    """Return the value of a setting, by its variable's name."""
    return globals()[name.removeprefix("XDEV_").lower()]()


def values() -> dict[str, tuple[object, bool]]:
    """Return each setting's value, and whether the environment set it."""
    return {name: (value(name), _read(name) is not None) for name in SETTINGS}
