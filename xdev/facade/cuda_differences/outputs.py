"""Functions that lack ``out=`` or take it elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional

if TYPE_CHECKING:
    from collections.abc import Callable


def written(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function that returns a view ``out=``; the cast is checked by the copy."""

    def with_out(x: Any, out: Any = None) -> Any:
        result = function(x)
        if out is None:
            return result
        _optional.cupy().copyto(out, result, casting="same_kind")
        return out

    return with_out


def round_(x: Any, out: Any = None) -> Any:
    """Round to whole numbers, halves to the even one."""
    if isinstance(x, np.generic):
        x = _optional.cupy().asarray(x)
    return x.round(0, out)
