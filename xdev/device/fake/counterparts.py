"""What xdev calls a function of NumPy's."""

from __future__ import annotations

import sys
from operator import attrgetter
from typing import Any

#: By NumPy's name: the standard's, where that is another one.
RENAMED = {
    **dict.fromkeys(("concatenate", "hstack", "vstack"), "concat"),
    **{f"arc{x}": f"a{x}" for x in ("sin", "cos", "tan", "tan2")},
    **{f"arc{x}": f"a{x}" for x in ("sinh", "cosh", "tanh")},
    **{x: f"bitwise_{x}" for x in ("invert", "left_shift", "right_shift")},
    **{x: f"linalg.{x}" for x in ("outer", "cross", "trace", "diagonal")},
    "absolute": "abs",
    "fabs": "abs",
    "power": "pow",
    "conjugate": "conj",
    "amax": "max",
    "amin": "min",
    "around": "round",
    "cumsum": "cumulative_sum",
    "cumprod": "cumulative_prod",
    "dot": "matmul",
    "inner": "vecdot",
    "transpose": "permute_dims",
    "ravel": "reshape",
    "swapaxes": "moveaxis",
    "unique": "unique_values",
    "norm": "linalg.vector_norm or xdev.linalg.matrix_norm",
}


def counterpart(function: Any) -> str | None:
    """Return what xdev calls a function of NumPy's; None: it has nothing like it."""
    name = function.__name__
    if name in RENAMED:
        return f"xdev.{RENAMED[name]}"
    module = getattr(function, "__module__", None) or "numpy"
    own = f"{module}.{name}".removeprefix("numpy.")
    try:
        attrgetter(own)(sys.modules["xdev"])
    except AttributeError:
        return None
    return f"xdev.{own}"
