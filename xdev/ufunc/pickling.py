"""Pickles of what a decorator made of a Python function: with that function inside.

``pickle`` takes functions by name, tools for other machines (cloudpickle, and so Dask)
take those of ``__main__`` and closures along by value. Both find a decorated function
at ``name.__wrapped__``, since the name itself is the decorator's object.

The source goes along, by which dtypes inside are found: not all machines have the file.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from xdev.ufunc import sources

if TYPE_CHECKING:
    from collections.abc import Callable

INSIDE = ".__wrapped__"


def parts(
    made: Any, function: Callable[..., Any]
) -> tuple[Callable[..., Any], sources.Excerpt | None]:
    """Return the function in a decorator's object, named to be found; its source."""
    if _named(made.__module__, made.__qualname__) is made:
        function.__qualname__ = made.__qualname__ + INSIDE
    return function, sources.excerpt(function.__code__)


def owner(function: Callable[..., Any], excerpt: sources.Excerpt | None) -> Any:
    """Return the decorator's object that a module has of a function, else None.

    The function then gets the source that it came with.
    """
    sources.restore(function, excerpt)
    if not function.__qualname__.endswith(INSIDE):
        return None
    found = _named(function.__module__, function.__qualname__.removesuffix(INSIDE))
    return found if getattr(found, "__wrapped__", None) is function else None


def _named(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
