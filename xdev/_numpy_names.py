"""NumPy's and CuPy's names that xdev lacks, and what gives the same result.

From here come the errors for a missing name, what fake arrays say in NumPy's functions,
and the table of docs/coming-from/numpy.md; tests compute both sides of each row.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy as np


def pairs(text: str) -> dict[str, str]:
    """Return names and what stands for each, written "name:other"."""
    return dict(pair.split(":") for pair in text.split())


FLAT_X, FLAT_Y = "xp.reshape(x, (-1,))", "xp.reshape(y, (-1,))"

_RENAMED = pairs(
    "absolute:abs conjugate:conj arcsin:asin arccos:acos arctan:atan "
    "arcsinh:asinh arccosh:acosh arctanh:atanh fix:trunc around:round "
    "invert:bitwise_invert bitwise_not:bitwise_invert asanyarray:asarray "
    "linalg.norm:linalg.vector_norm"
)
_RENAMED_OF_TWO = pairs(
    "power:pow mod:remainder true_divide:divide arctan2:atan2 "
    "left_shift:bitwise_left_shift right_shift:bitwise_right_shift "
    "cross:linalg.cross"
)
#: A call of NumPy's, with what its arrays hold where that matters: the same call here.
SAME = {
    # other names
    **{f"{name}(x)": f"xp.{own}(x)" for name, own in _RENAMED.items()},
    **{f"{name}(x, y)": f"xp.{own}(x, y)" for name, own in _RENAMED_OF_TWO.items()},
    # elementwise
    "rint(x) of floats": "xp.round(x)",
    # products
    "dot(x, y)": (
        "xp.matmul(x, y) if y.ndim < 3 else xp.tensordot(x, y, axes=((-1,), (-2,)))"
    ),
    "outer(x, y)": f"xp.linalg.outer({FLAT_X}, {FLAT_Y})",
    "trace(x)": "xp.linalg.trace(xp.moveaxis(x, (0, 1), (-2, -1)))",
    "diagonal(x)": "xp.linalg.diagonal(xp.moveaxis(x, (0, 1), (-2, -1)))",
    "linalg.norm(x, ord)": (
        "xp.linalg.vector_norm(x, ord=ord) if x.ndim == 1 else "
        "xp.linalg.matrix_norm(x, ord=ord)"
    ),
    # reductions and scans
    "amax(x, axis)": "xp.max(x, axis=axis)",
    "amin(x, axis)": "xp.min(x, axis=axis)",
    "ptp(x, axis)": "xp.max(x, axis=axis) - xp.min(x, axis=axis)",
    "cumsum(x, axis)": "xp.cumulative_sum(x, axis=axis)",
    "cumsum(x)": f"xp.cumulative_sum({FLAT_X})",
    "cumprod(x, axis)": "xp.cumulative_prod(x, axis=axis)",
    "cumprod(x)": f"xp.cumulative_prod({FLAT_X})",
    "array_equal(x, y)": "x.shape == y.shape and bool(xp.all(x == y))",
    # searching, sets
    "argwhere(x)": "xp.stack(xp.nonzero(x), axis=1)",
    "flatnonzero(x)": f"xp.nonzero({FLAT_X})[0]",
    "unique(x) without NaN": "xp.sort(xp.unique_values(x))",
    # shapes
    "array(x)": "xp.asarray(x, copy=True)",
    "copy(x)": "xp.asarray(x, copy=True)",
    "concatenate(arrays, axis=0)": "xp.concat(arrays, axis=0)",
    "hstack(arrays)": "xp.concat(arrays, axis=0 if arrays[0].ndim == 1 else 1)",
    "vstack(arrays)": (
        "xp.stack(arrays) if arrays[0].ndim == 1 else xp.concat(arrays, axis=0)"
    ),
    "transpose(x)": "xp.permute_dims(x, tuple(reversed(range(x.ndim))))",
    "transpose(x, axes)": "xp.permute_dims(x, axes)",
    "swapaxes(x, i, j)": "xp.moveaxis(x, (i, j), (j, i))",
    "ravel(x)": FLAT_X,
    "atleast_1d(x)": "x if x.ndim else xp.reshape(x, (1,))",
    "atleast_2d(x)": "x if x.ndim > 1 else xp.reshape(x, (1, -1))",
    "fliplr(x)": "xp.flip(x, axis=1)",
    "flipud(x)": "xp.flip(x, axis=0)",
    "size(x)": "x.size",
    "ndim(x)": "x.ndim",
    "shape(x)": "x.shape",
}

#: CuPy's own names, and what serves here.
CUPYS = {
    "ElementwiseKernel": "xdev.vectorize, or xdev.kernel, of a Python function",
    "RawKernel": "xdev.kernel, of a Python function",
    "RawModule": "xdev.kernel, of a Python function",
    "ReductionKernel": "the reduce of xdev.vectorize(identity=...)",
    "asnumpy": "xdev.to_numpy",
    "cuda": "xdev.use_device, xdev.Stream, xdev.Event and xdev.synchronize",
    "fuse": "xdev.vectorize",
    "get_array_module": "xdev itself, or xdev.namespace(x)",
    "get_default_memory_pool": "xdev.memory, whose pool serves CuPy, too",
    "get_default_pinned_memory_pool": "xdev.memory, and xdev.empty_pinned",
    "is_available": "xdev.Device('cuda').available",
}

#: NumPy's functions of random numbers, and the methods of generators that do the same.
DRAWN = pairs(
    "rand:random randint:integers randn:standard_normal random_sample:random "
    "ranf:random sample:random"
)


def refuse(room: str, name: str) -> NoReturn:
    """Raise the error for a name that a module of the standard's names lacks."""
    way = advice(f"{room}.{name}".removeprefix("xdev."))
    if way is None and room == "xdev" and name in CUPYS:
        text = f"xdev has no {name!r} (CuPy's): use {CUPYS[name]}"
        raise AttributeError(text, name=name)
    if way is None:  # Python looks for a name like it
        text = f"module {room!r} has no attribute {name!r}"
        raise AttributeError(text, name=name, obj=sys.modules[room])
    # Without the module: what has a name like it may do another thing.
    raise AttributeError(f"{room} has no {name!r} (NumPy's): {way}", name=name)


def advice(name: str) -> str | None:
    """Return what does the same as a name of NumPy's; None if NumPy has no such."""
    if name == "random.seed":  # NumPy's has none of the generators here
        return "use xdev.random.default_rng(seed), and its methods"
    rows = [call for call in SAME if call.partition("(")[0] == name]
    if rows:
        ways = ", ".join(f"for {row} use {SAME[row]}" for row in rows)
        return ways.replace("xp.", "xdev.")
    here = vars(sys.modules["xdev"])
    *rooms, last = name.split(".")
    module = getattr(np, rooms[0], None) if rooms else np
    if last in dir(module) and not last.startswith("_"):
        numpys = getattr(module, last)
        if isinstance(numpys, type) and numpys in np.sctypeDict.values():
            last = np.dtype(numpys).name
        known = last in here and not rooms
        way = f"use xdev.{last}" if known else f"use xdev.numpy.{name}"
        return f"{way}{drawn(last)}" if rooms == ["random"] else way
    return None


def advice_on(function: Any) -> str | None:
    """Return what does the same as a function of NumPy's on any device, or None."""
    module = getattr(function, "__module__", None) or "numpy"
    name = f"{module}.{function.__name__}".removeprefix("numpy.")
    *rooms, last = name.split(".")
    own = sys.modules["xdev"]
    room = getattr(own, rooms[0], None) if rooms else own
    if last in getattr(room, "__all__", ()):
        return f"use xdev.{name}"
    return advice(name)


def drawn(name: str) -> str:
    """Return how xdev's generators draw what a function of ``numpy.random`` does."""
    method = DRAWN.get(name, name)
    if not hasattr(sys.modules["xdev"].random.Generator, method):
        return ""
    return f", or on the device xdev.random.default_rng(seed).{method}"
