"""Pickles of what a decorator made of a Python function: with that function inside.

``pickle`` takes functions by name, tools for other machines (cloudpickle, and so Dask)
take those of ``__main__`` and closures along by value. Both find a decorated function
at ``name.__wrapped__``, since the name itself is the decorator's object.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

INSIDE = ".__wrapped__"


def reachable(made: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside a decorator's object, under a name that finds it."""
    if _named(made.__module__, made.__qualname__) is made:
        function.__qualname__ = made.__qualname__ + INSIDE
    return function


def owner(function: Callable[..., Any]) -> Any:
    """Return the decorator's object that a module has of a function, else None."""
    if not function.__qualname__.endswith(INSIDE):
        return None
    found = _named(function.__module__, function.__qualname__.removesuffix(INSIDE))
    return found if getattr(found, "__wrapped__", None) is function else None


def _named(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
