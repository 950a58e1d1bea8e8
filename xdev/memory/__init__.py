"""Memory: one caching pool a device and kind, one ledger, bridges into libraries.

Every function takes ``device=None, kind=None`` last: without a device it speaks of
the default one (:func:`reclaim`: of all), without a kind of all its kinds together.
"""

from __future__ import annotations

from xdev.memory import bridges
from xdev.memory.arrays import host_array, pinned_array
from xdev.memory.debugging.inspection import check
from xdev.memory.freeing import free
from xdev.memory.owners import is_pinned_address, record_stream
from xdev.memory.peaks import peak
from xdev.memory.pools import Block, Pool
from xdev.memory.records.history import record_history
from xdev.memory.records.leaks import Outstanding, OutstandingLine
from xdev.memory.records.snapshots import snapshot, snapshot_csv
from xdev.memory.records.tracking import outstanding, outstanding_by_line, track
from xdev.memory.registry import pool
from xdev.memory.reports import (
    allocated,
    get_limit,
    max_allocated,
    max_reserved,
    reclaim,
    reserved,
    reset_peak,
    set_limit,
    stats,
    status,
    summary,
)
from xdev.memory.totals import PoolStats

__all__ = [
    "Block",
    "Outstanding",
    "OutstandingLine",
    "Pool",
    "PoolStats",
    "allocated",
    "bridges",
    "check",
    "free",
    "get_limit",
    "host_array",
    "is_pinned_address",
    "max_allocated",
    "max_reserved",
    "outstanding",
    "outstanding_by_line",
    "peak",
    "pinned_array",
    "pool",
    "reclaim",
    "record_history",
    "record_stream",
    "reserved",
    "reset_peak",
    "set_limit",
    "snapshot",
    "snapshot_csv",
    "stats",
    "status",
    "summary",
    "track",
]
