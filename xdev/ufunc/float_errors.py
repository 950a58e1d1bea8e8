"""Floating point errors of a computation in parts, told once as NumPy tells them."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from xdev.compile.divisions import BITS
from xdev.errors import users_level

# By the names of np.errstate, in NumPy's order: the words of NumPy's messages, and the
# error's number there.
ERRORS = {
    "divide": ("divide by zero", 1),
    "over": ("overflow", 2),
    "under": ("underflow", 4),
    "invalid": ("invalid value", 8),
}


def report(name: str, exceptions: int) -> None:
    """Do what the caller's ``np.errstate`` says to each kind of error.

    Parameters
    ----------
    name : str
        What computed.
    exceptions : int
        What C's ``fetestexcept`` returned where it did, or-ed.

    Raises
    ------
    FloatingPointError
        ``np.errstate`` says ``"raise"``.
    """
    met = [
        (kind, *error)
        for (kind, error), bit in zip(ERRORS.items(), BITS, strict=True)
        if exceptions & bit
    ]
    if not met:
        return
    settings: dict[str, Any] = dict(np.geterr())
    numbers = sum(number for *_, number in met)
    for kind, words, _ in met:
        _report(settings[kind], words, f"{words} encountered in {name}", numbers)


def _report(setting: str, words: str, text: str, numbers: int) -> None:
    if setting == "raise":
        raise FloatingPointError(text)
    if setting == "warn":
        warnings.warn(text, RuntimeWarning, stacklevel=users_level())
    elif setting == "print":
        sys.stderr.write(f"Warning: {text}\n")
    elif setting == "call":
        caller: Any = np.geterrcall()
        caller(words, numbers)
    elif setting == "log":
        log: Any = np.geterrcall()
        log.write(f"Warning: {text}\n")
