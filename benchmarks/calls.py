"""One call of every function of the standard, on arrays of size 1.

The functions of the two extensions are named ``"linalg.svd"``, ``"fft.fft"``.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import xdev
from xdev.timing.comparison import check_agreement, to_host

#: Functions whose argument is not one array of size 1: what they take, by the names of
#: ``operands``; anything else is the argument itself.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "__array_namespace_info__": (),
    "acosh": ("one",),
    "arange": (1,),
    "asarray": ("x",),
    "astype": ("x", np.dtype(np.float64)),
    "bitwise_invert": ("whole",),
    "broadcast_arrays": ("x", "x"),
    "broadcast_shapes": ((1, 1), (1,)),
    "broadcast_to": ("x", (1, 1)),
    "can_cast": (np.dtype(np.float32), np.dtype(np.float64)),
    "clip": ("x", 0.0, 1.0),
    "concat": (["x", "x"],),
    "cumulative_prod": ("vector",),
    "cumulative_sum": ("vector",),
    "empty": (1,),
    "expand_dims": ("x", 0),
    "eye": (1,),
    "finfo": (np.dtype(np.float32),),
    "full": (1, 0.5),
    "full_like": ("x", 0.5),
    "iinfo": (np.dtype(np.int32),),
    "isdtype": (np.dtype(np.float32), "real floating"),
    "linspace": (0.0, 1.0, 1),
    "logical_not": ("true",),
    "meshgrid": ("vector", "vector"),
    "moveaxis": ("x", 0, 1),
    "ones": (1,),
    "permute_dims": ("x", (1, 0)),
    "repeat": ("vector", 1),
    "reshape": ("x", (1,)),
    "result_type": ("x", "x"),
    "roll": ("x", 1),
    "searchsorted": ("vector", "vector"),
    "squeeze": ("x", 0),
    "stack": (["x", "x"],),
    "take": ("vector", "indices"),
    "take_along_axis": ("vector", "indices"),
    "tile": ("x", (1, 1)),
    "where": ("true", "x", "x"),
    "zeros": (1,),
    "linalg.cross": ("three", "three"),
    "linalg.matrix_power": ("x", 2),
    "linalg.outer": ("vector", "vector"),
    "fft.fftfreq": (1,),
    "fft.hfft": ("pair",),
    "fft.irfft": ("pair",),
    "fft.irfftn": ("pair",),
    "fft.rfftfreq": (1,),
}
#: Functions of two arrays, by what they take twice.
TWO = {
    "x": (
        "add atan2 copysign divide equal floor_divide greater greater_equal hypot isin "
        "less less_equal logaddexp matmul maximum minimum multiply nextafter not_equal "
        "pow remainder subtract tensordot linalg.matmul linalg.solve "
        "linalg.tensordot"
    ),
    "vector": "vecdot linalg.vecdot",
    "whole": (
        "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"
    ),
    "true": "logical_and logical_or logical_xor",
}
ARGUMENTS |= {
    name: (operand, operand) for operand, names in TWO.items() for name in names.split()
}
#: The functions that take ``device=``: they may cost more than the others.
PLACED = frozenset(
    [
        "arange",
        "asarray",
        "astype",
        "empty",
        "empty_like",
        "eye",
        "from_dlpack",
        "full",
        "full_like",
        "linspace",
        "ones",
        "ones_like",
        "zeros",
        "zeros_like",
        "fft.fftfreq",
        "fft.rfftfreq",
    ]
)


def names() -> list[str]:
    """Return the names of all functions of the standard."""
    rooms = {"": xdev, "linalg.": xdev.linalg, "fft.": xdev.fft}
    found = [
        f"{prefix}{name}"
        for prefix, room in rooms.items()
        for name in (room.facade.__all__ if room is xdev else room.__all__)
        if callable(function := getattr(room, name)) and not isinstance(function, type)
    ]
    found.remove("namespace")  # xdev's own
    return found


def operands(device: object) -> dict[str, Any]:
    """Return the arrays that calls are made of."""
    return {
        "x": xdev.full((1, 1), 0.5, dtype="float32", device=device),
        "one": xdev.full((1, 1), 1.0, dtype="float32", device=device),
        "vector": xdev.full(1, 0.5, dtype="float32", device=device),
        "pair": xdev.ones(2, dtype="complex64", device=device),
        "three": xdev.ones(3, dtype="float32", device=device),
        "whole": xdev.ones((1, 1), dtype="int32", device=device),
        "true": xdev.ones((1, 1), dtype="bool", device=device),
        "indices": xdev.zeros(1, dtype="int64", device=device),
    }


def arguments(name: str, arrays: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments of the call of a function."""
    return tuple(_filled(each, arrays) for each in ARGUMENTS.get(name, ("x",)))


def _filled(value: Any, arrays: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_filled(each, arrays) for each in value]
    return arrays[value] if isinstance(value, str) and value in arrays else value


def own(name: str) -> Any:
    """Return xdev's function of a name."""
    return operator.attrgetter(name)(xdev)


def check(name: str, plain: Any, args: tuple[Any, ...]) -> None:
    """Raise unless xdev's function and the library's give the same.

    Raises
    ------
    ResultsDifferError
        They do not.
    """
    found, expected = (_comparable(name, call(*args)) for call in (own(name), plain))
    check_agreement((f"the library's {name}", expected), ("xdev's", found), rtol=None)


def _comparable(name: str, result: Any) -> Any:
    if name in ("empty", "empty_like"):
        return np.asarray(result.shape)
    if name in ("finfo", "iinfo"):
        return np.asarray([float(result.min), float(result.max), result.bits])
    if name == "result_type":
        return np.asarray(result.num)
    if name == "__array_namespace_info__":
        return np.asarray(len(result.dtypes(kind="integral")))
    return to_host(result)
