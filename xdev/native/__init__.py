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

    from xdev.native.plain import Callable, Plan, Plans


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
    """Return a compiled module of the tier, None where the tier is not used."""
    return importlib.import_module(f"xdev.native.{name}") if STATE == COMPILED else None


_calls = module("calls") or importlib.import_module("xdev.native.plain")
if not TYPE_CHECKING:
    Callable, Plan, Plans = _calls.Callable, _calls.Plan, _calls.Plans

__all__ = ["STATE", "Callable", "Plan", "Plans", "module"]
