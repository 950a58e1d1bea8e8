"""The engine: ufuncs that run where their arrays are.

Here is the class; what makes ufuncs of a user's functions loads at its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev.ufunc.ufuncs import Ufunc

if TYPE_CHECKING:
    from xdev.ufunc.scalar import vectorize

__all__ = ["Ufunc", "vectorize"]
__dir__ = __all__.copy  # what Tab shows


def __getattr__(name: str) -> Any:
    if name != "vectorize":
        text = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(text)
    from xdev.ufunc.scalar import vectorize

    globals()[name] = vectorize
    return vectorize
