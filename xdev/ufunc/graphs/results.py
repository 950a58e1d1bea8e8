"""What a captured function returns: arrays in lists, tuples and dicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._freed import is_freed, use_after_free
from xdev.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PROTOCOLS = ("__array_namespace__", "__cuda_array_interface__", "__dlpack__")


def rebuild(move: Callable[[Any], Any], whole: Any) -> Any:
    """Return the containers anew, each leaf moved; None is no leaf.

    Examples
    --------
    >>> rebuild(lambda x: x + 1, {"a": [1, 2], "b": (None, 3)})
    {'a': [2, 3], 'b': (None, 4)}
    """
    if whole is None:
        return None
    if isinstance(whole, dict):
        return {key: rebuild(move, part) for key, part in whole.items()}
    if isinstance(whole, list | tuple):
        parts = [rebuild(move, part) for part in whole]
        kind: Any = type(whole)
        if isinstance(whole, list):
            return parts
        return kind._make(parts) if hasattr(kind, "_make") else tuple(parts)
    return move(whole)


def leaves(whole: Any) -> list[Any]:
    """Return the leaves in order.

    Examples
    --------
    >>> leaves({"a": [1, 2], "b": (None, 3)})
    [1, 2, 3]
    """
    found: list[Any] = []
    rebuild(found.append, whole)
    return found


def form(whole: Any) -> Any:
    """Return what does not change between replays: containers, shapes, dtypes."""
    return rebuild(lambda x: (x.shape, x.dtype), whole)


def check_arrays(name: str, whole: Any) -> None:
    """Raise CaptureError unless all leaves are arrays or NumPy scalars."""
    for x in leaves(whole):
        kind = type(x)
        if isinstance(x, np.generic) or any(hasattr(kind, p) for p in PROTOCOLS):
            continue
        message = (
            f"{name} returns {kind.__name__}, which a replay cannot write to: return "
            "arrays, or lists, tuples and dicts of them"
        )
        raise CaptureError(message)


def check_alive(name: str, arrays: Iterable[Any], what: str = "an argument") -> None:
    """Raise UseAfterFreeError if one of a graph's arrays was freed since."""
    for x in arrays:
        if is_freed(x):
            raise use_after_free(x, f"the graph of {name}: {what}")


def name_of(f: Any) -> str:
    """Return what messages call a function.

    Examples
    --------
    >>> name_of(len)
    'len'
    """
    return str(getattr(f, "__name__", None) or type(f).__name__)
