"""The one compiled part: where a call costs nanoseconds. Python stands in without it.

``pip install .`` builds it where there is a C compiler; ``XDEV_NATIVE=0`` leaves it
alone. Both have the same classes, and the same tests.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from xdev import _config

if TYPE_CHECKING:
    from types import ModuleType


def _state() -> str:
    """Say whether the tier is compiled, or why it is not."""
    if not _config.native():
        return "not used: XDEV_NATIVE=0"
    try:
        importlib.import_module("xdev.native.calls")
    except ImportError as error:
        return f"not built, or for another Python: {error}"
    return COMPILED


COMPILED = "compiled"
STATE = _state()


def module(name: str) -> ModuleType | None:
    """Return a compiled module of the tier, None where it is not used or not built."""
    try:
        if STATE == COMPILED:
            return importlib.import_module(f"xdev.native.{name}")
    except ModuleNotFoundError:  # a build before there was such a module
        pass
    return None


if TYPE_CHECKING:
    from xdev import _plain_calls as calls
else:
    calls = module("calls") or importlib.import_module("xdev._plain_calls")

__all__ = ["STATE", "calls", "module"]
