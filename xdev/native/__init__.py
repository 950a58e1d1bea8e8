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


COMPILED = "compiled"
STATE = COMPILED if _config.at_import(_config.native) else "not used: XDEV_NATIVE=0"


def module(name: str) -> ModuleType | None:
    """Return a compiled module of the tier, None where it is not used or not built."""
    return importlib.import_module(f"xdev.native.{name}") if STATE == COMPILED else None


if TYPE_CHECKING:
    from xdev import _plain_calls as calls
else:
    try:
        calls = module("calls")
    except ImportError as error:
        calls, STATE = None, f"not built, or for another Python: {error}"
    calls = calls or importlib.import_module("xdev._plain_calls")

__all__ = ["STATE", "calls", "module"]
