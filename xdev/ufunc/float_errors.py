"""Floating point errors of a computation in parts, told once as NumPy tells them."""

from __future__ import annotations

import sys
import warnings
from typing import Any, final

import numpy as np

# The words of NumPy's messages, by the names of np.errstate, in NumPy's order.
WORDS = {
    "divide": "divide by zero",
    "over": "overflow",
    "under": "underflow",
    "invalid": "invalid value",
}


@final
class Errors:
    """What several threads met; they compute under ``np.errstate(all="call")``."""

    def __init__(self) -> None:
        self._flags: dict[str, int] = {}

    def collect(self, words: str, flags: int) -> None:
        """Take in one error, as NumPy calls this."""
        self._flags[words] = flags

    def tell(self, name: str) -> None:
        """Do what the caller's ``np.errstate`` says to each kind of error.

        Raises
        ------
        FloatingPointError
            It says ``"raise"``.
        """
        if not self._flags:
            return
        settings: dict[str, Any] = dict(np.geterr())
        for kind, words in WORDS.items():
            if words in self._flags:
                self._tell(settings[kind], words, f"{words} encountered in {name}")

    def _tell(self, setting: str, words: str, text: str) -> None:
        if setting == "raise":
            raise FloatingPointError(text)
        if setting == "warn":
            warnings.warn(text, RuntimeWarning, stacklevel=_users_level())
        elif setting == "print":
            sys.stderr.write(f"Warning: {text}\n")
        elif setting == "call":
            caller: Any = np.geterrcall()
            caller(words, self._flags[words])
        elif setting == "log":
            log: Any = np.geterrcall()
            log.write(f"Warning: {text}\n")


def _users_level() -> int:
    """Return how many frames up the user's line is, as ``warnings.warn`` counts."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001 - as warnings does
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("xdev."):
        level, frame = level + 1, frame.f_back
    return level
