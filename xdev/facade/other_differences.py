"""Where other libraries depart from the standard, and what serves in their place."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _unique_all(x: Any) -> Any:
    xp = importlib.import_module("array_api_compat.torch")
    strict = importlib.import_module("array_api_compat.common._aliases")
    values, inverse, counts = xp.unique(x, return_inverse=True, return_counts=True)
    places = xp.arange(x.numel(), device=x.device)
    first = xp.full(values.shape, x.numel(), dtype=places.dtype, device=x.device)
    first = first.scatter_reduce(0, inverse.reshape(-1), places, "amin")
    return strict.UniqueAllResult(values, first, inverse, counts)


def _svdvals(x: Any) -> Any:
    xp: Any = importlib.import_module("array_api_compat.dask.array")
    return xp.linalg.svd(x, full_matrices=False)[1]


#: By the namespace's name and the standard's, with the reason.
MENDED: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "array_api_compat.dask.array": {
        "linalg.svdvals": _svdvals,  # array_api_compat asks for full matrices
    },
    "array_api_compat.torch": {
        "unique_all": _unique_all,  # PyTorch counts, but does not say where
    },
}
