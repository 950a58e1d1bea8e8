"""Beyond one machine or one GPU: Dask's engine, with what Dask cannot know.

The namespace's functions and ufuncs take collections of ``dask.array`` as they take
arrays, and creation functions make them, ``xdev.zeros(shape, chunks=...)``. Here is
what maps any other function over their blocks.
"""

from __future__ import annotations

from xdev.distributed.mapping import map_blocks as map  # noqa: A004

__all__ = ["map"]
