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


def _load() -> tuple[ModuleType, str]:
    """Return the tier, and in words which it is."""
    if not _config.native():
        reason = "not used: XDEV_NATIVE=0"
    else:
        try:
            return importlib.import_module("xdev.native.tier"), "compiled"
        except ImportError as error:
            reason = f"not built, or for another Python: {error}"
    return importlib.import_module("xdev.native.plain"), reason


_tier, STATE = _load()  # STATE: which it is, in words
if not TYPE_CHECKING:
    Callable, Plan, Plans = _tier.Callable, _tier.Plan, _tier.Plans

__all__ = ["STATE", "Callable", "Plan", "Plans"]
