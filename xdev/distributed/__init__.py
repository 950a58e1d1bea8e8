"""Beyond one machine or one GPU: Dask's engine, with what Dask cannot know.

The namespace's functions and ufuncs take collections of ``dask.array`` as they take
arrays, and creation functions make them, ``xdev.zeros(shape, chunks=...)``. Here is
what maps any other function over their blocks, and what gives workers their devices.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from xdev.distributed.mapping import map_blocks as map  # noqa: A004

if TYPE_CHECKING:
    from xdev.distributed.clusters import local_cluster, memory_status
    from xdev.distributed.workers import WorkerPlugin
else:
    _LAZY = {
        "WorkerPlugin": "workers",
        "local_cluster": "clusters",
        "memory_status": "clusters",
    }

    def __getattr__(name: str) -> Any:
        """Load what needs the package ``distributed``, which ``map`` does not."""
        if name not in _LAZY:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        module = importlib.import_module(f"{__name__}.{_LAZY[name]}")
        return getattr(module, name)


__all__ = ["WorkerPlugin", "local_cluster", "map", "memory_status"]
