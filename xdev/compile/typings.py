"""What Numba inferred of functions, on disk: no later process asks it again."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, cast

import numpy as np

from xdev._disk_cache import DiskCache
from xdev.compile import digests

Level = Literal["all", "inexact", "none"]  # which literals take the inputs' dtype
LEVELS: tuple[Level, ...] = ("all", "inexact", "none")  # tried in this order
Dtypes = tuple[np.dtype[Any], ...]
_cache = DiskCache("typings")


class Typing(NamedTuple):
    """How a function's literals are typed, and its results' dtypes."""

    level: Level
    outputs: Dtypes


def key(digest: str, inputs: Dtypes, rules: object = None) -> str:
    """Name the typing of a function for dtypes, by rules that their ``repr`` tells."""
    names = [dtype.name for dtype in inputs]
    return digests.joined(digest, names, rules, digests.environment())


def load(key: str) -> Typing | None:
    """Return what was inferred by an earlier process, or None."""
    body = _cache.load(key)
    if body is None:
        return None
    level, *names = body.decode().split()
    return Typing(cast("Level", level), tuple(map(np.dtype, names)))


def save(key: str, typing: Typing, name: str) -> None:
    """Keep what was inferred for later processes."""
    words = [typing.level, *(dtype.name for dtype in typing.outputs)]
    _cache.save(key, " ".join(words).encode(), name)
