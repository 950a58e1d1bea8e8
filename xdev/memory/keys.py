"""The ledger under the names that ``torch.cuda.memory_stats`` gives it.

What PyTorch counts and a pool does not is left out, never guessed: peaks of counts and
of the two pools, segments by pool, requested bytes but those in use.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.memory.totals import PoolStats, SizeClass

SMALL = 1 << 20  # PyTorch's small pool has the blocks up to here [B]

#: A key, and the field of PoolStats that it is.
_TOTALS = {
    "allocated_bytes.all.peak": "peak_allocated",
    "segment.all.current": "segments",
    "segment.all.allocated": "grown",
    "segment.all.freed": "returned",
    "reserved_bytes.all.current": "reserved",
    "reserved_bytes.all.peak": "peak_reserved",
    "reserved_bytes.all.allocated": "grown_bytes",
    "reserved_bytes.all.freed": "returned_bytes",
    "requested_bytes.all.current": "requested",
    "num_alloc_retries": "retries",
    "num_ooms": "refusals",
    "num_sync_all_streams": "syncs",
    "num_device_alloc": "grown",
    "num_device_free": "returned",
    # not PyTorch's
    "cached_bytes.all.current": "cached",
    "idle_bytes.all.current": "idle",
    "num_driver_calls": "driver_calls",
    "num_source_failures": "failures",
    "num_steals": "steals",
    "num_trims": "trims",
}
#: What blocks, and what bytes are called: in use, in use or waiting, split off.
_NAMES = {
    "": ("allocation", "active", "inactive_split"),
    "_bytes": ("allocated_bytes", "active_bytes", "inactive_split_bytes"),
}
_POOLS: dict[str, Callable[[SizeClass], bool]] = {
    "all": lambda _: True,
    "small_pool": lambda each: each.upto <= SMALL,
    "large_pool": lambda each: each.upto > SMALL,
}


def keys_of(looks: list[PoolStats]) -> dict[str, int]:
    """Return the sum of some looks at ledgers under PyTorch's names."""
    keys = {
        key: sum(getattr(look, field) for look in looks)
        for key, field in _TOTALS.items()
    }
    for pool, holds in _POOLS.items():
        classes = [each for look in looks for each in look.classes if holds(each)]
        for unit, (used, active, split) in _NAMES.items():
            total = partial(_total, classes, unit)
            waiting = total("waiting")
            keys |= {
                f"{used}.{pool}.current": total("live"),
                f"{used}.{pool}.allocated": total("acquired"),
                f"{used}.{pool}.freed": total("released"),
                f"{active}.{pool}.current": total("live") + waiting,
                f"{active}.{pool}.allocated": total("acquired"),
                f"{active}.{pool}.freed": total("released") - waiting,
                f"{split}.{pool}.current": total("split"),
            }
    return keys


def _total(classes: list[SizeClass], unit: str, field: str) -> int:
    return sum(getattr(each, field + unit) for each in classes)
