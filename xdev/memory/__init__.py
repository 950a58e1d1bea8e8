"""Memory: one caching pool a device and kind, one ledger, bridges into libraries.

Every function takes ``device=None, kind=None`` last: without a device it speaks of
the default one (:func:`reclaim` and :func:`check`: of all), without a kind of all its
kinds together.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xdev.memory import bridges
    from xdev.memory.accounting import PoolStats
    from xdev.memory.arrays import (
        free,
        host_array,
        is_pinned_address,
        pinned_array,
        record_stream,
    )
    from xdev.memory.debugging import check
    from xdev.memory.history import record_history, snapshot
    from xdev.memory.pools import Block, Pool
    from xdev.memory.registry import (
        allocated,
        get_limit,
        max_allocated,
        max_reserved,
        peak,
        pool,
        reclaim,
        reserved,
        reset_peak,
        set_limit,
        stats,
    )
    from xdev.memory.reports import status, summary
    from xdev.memory.tracking import (
        Outstanding,
        OutstandingLine,
        outstanding,
        outstanding_by_line,
        track,
    )

# One literal list, for type checkers.
# fmt: off
__all__ = [
    "Block", "Outstanding", "OutstandingLine", "Pool", "PoolStats", "allocated",
    "bridges", "check", "free", "get_limit", "host_array", "is_pinned_address",
    "max_allocated", "max_reserved", "outstanding", "outstanding_by_line", "peak",
    "pinned_array", "pool", "reclaim", "record_history", "record_stream", "reserved",
    "reset_peak", "set_limit", "snapshot", "stats", "status", "summary",
    "track",
]
# fmt: on
__dir__ = __all__.copy  # what Tab shows
# Where the names are, each module with those that it imports before it.
_ROOMS = (
    *("accounting", "pools", "registry", "reports", "tracking", "arrays", "history"),
    "debugging",
)


def __getattr__(name: str) -> Any:
    """Load the room of a name, which then is a plain attribute."""
    if name == "bridges":
        return importlib.import_module("xdev.memory.bridges")
    for room in _ROOMS if name in __all__ else ():
        module = importlib.import_module(f"xdev.memory.{room}")
        if hasattr(module, name):
            globals()[name] = value = getattr(module, name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
