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
    from xdev.distributed.clusters import WorkerPlugin, local_cluster, memory_status
else:

    def __getattr__(name: str) -> Any:
        """Load what needs the package ``distributed``, which ``map`` does not."""
        if name not in ("WorkerPlugin", "local_cluster", "memory_status"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.clusters"), name)


__all__ = ["WorkerPlugin", "local_cluster", "map", "memory_status"]
__dir__ = __all__.copy  # what Tab shows
