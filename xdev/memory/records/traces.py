"""NumPy's own live buffers, by line: what ``tracemalloc`` knows while it traces.

NumPy tells it of every buffer, its own and those that the pool serves through the
bridge; the latter are the pool's, and are left out here.
"""

from __future__ import annotations

import tracemalloc
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from xdev.memory import bridges
from xdev.memory.records import frames
from xdev.memory.records.leaks import Outstanding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xdev.memory.records.frames import Place

    #: The innermost line outside the pool, and the size that was asked for [B].
    Asked = tuple[str, int, int | None]

OWN = "NumPy's own"  # in place of a pool's name


def asked_by_numpy(places: list[Place], nbytes: int | None) -> Asked | None:
    """Return what identifies a pool's block that NumPy's bridge asked for, or None."""
    files = [file for file, _, _ in places]
    if bridges.__file__ not in files[:-1]:
        return None
    file, line, _ = places[files.index(bridges.__file__) + 1]
    return file, line, nbytes


def buffers(pooled: Iterable[Asked]) -> list[Outstanding]:
    """Return NumPy's live buffers that were made since ``tracemalloc`` was started.

    Parameters
    ----------
    pooled : iterable of Asked
        Those that are a pool's.
    """
    if not tracemalloc.is_tracing():
        return []
    known = Counter(pooled)
    found = []
    for trace in tracemalloc.take_snapshot().traces:
        if trace.domain != np.lib.tracemalloc_domain:
            continue
        lines = [(frame.filename, frame.lineno) for frame in reversed(trace.traceback)]
        asked = (*lines[0], trace.size)
        if known[asked]:
            known[asked] -= 1
            continue
        where = frames.maker((file, line, "") for file, line in lines)
        text = tuple(f"{file}:{line}" for file, line in lines)
        found.append(Outstanding(where, trace.size, None, OWN, None, text))
    return found
