"""Explicit types of core arrays, as Numba writes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.ufunc.signatures import NAMES

if TYPE_CHECKING:
    from xdev.ufunc.generalized.layouts import Layout

#: For each operand the dtype, and the number of axes; None for a number.
Types = tuple[tuple[np.dtype[Any], int | None], ...]
OPERAND = re.compile(r"\s*(\w+)\s*(?:\[([:,\s1]*)\])?\s*")
WHOLE = re.compile(r"\s*(?:void\s*)?\((.*)\)\s*|([^()]*,[^()]*)", re.DOTALL)


def parse(signature: object, layout: Layout) -> Types:
    """Turn ``"void(float32[:], float32[:], float32[:])"`` into types.

    Parameters
    ----------
    signature : str or Numba signature
        The types of the inputs, then of the outputs.
    layout : Layout
        Their core dimensions.

    Raises
    ------
    TypeError
        It is none, or does not fit the core dimensions.

    Examples
    --------
    >>> from xdev.ufunc.generalized.layouts import Layout
    >>> parse("void(float32[:], int64, float32[:])", Layout.parse("(n),()->(n)"))
    ((dtype('float32'), 1), (dtype('int64'), None), (dtype('float32'), 1))
    """
    found = _operands(signature)
    operands = layout.operands
    if len(found) != len(operands):
        message = (
            f"{signature} has {len(found)} types, but {layout.text} has "
            f"{len(operands)} operands"
        )
        raise TypeError(message)
    for k, ((_, ndim), own) in enumerate(zip(found, operands, strict=True)):
        output = k >= len(layout.inputs)
        fits = ndim == len(own) or (not own and (ndim == 1 or not output))
        if ndim is None and (own or output):
            fits = False
        if not fits:
            message = (
                f"{signature}: operand {k} has the core dimensions ({','.join(own)}) "
                f"in {layout.text}, so that its type is an array of "
                f"{max(len(own), 1)} axes"
            )
            raise TypeError(message)
    return found


def _operands(signature: object) -> Types:
    taken = getattr(signature, "args", None)
    if taken is None and isinstance(signature, tuple):
        taken = signature
    if taken is not None:
        return tuple(
            (_dtype(str(getattr(kind, "dtype", kind)), signature), _axes(kind))
            for kind in taken
        )
    whole = WHOLE.fullmatch(signature) if isinstance(signature, str) else None
    if whole is None:
        message = (
            f"{signature!r} is not a signature: write it as Numba does, "
            "'void(float32[:], float32[:], float32[:])'"
        )
        raise TypeError(message)
    types = []
    for text in re.split(r",(?![^\[]*\])", whole[1] or whole[2]):
        found = OPERAND.fullmatch(text)
        if found is None:
            message = f"{signature}: {text.strip()!r} is not a type"
            raise TypeError(message)
        name, axes = found.groups()
        types.append(
            (_dtype(name, signature), None if axes is None else axes.count(",") + 1)
        )
    return tuple(types)


def _axes(kind: Any) -> int | None:
    axes: int | None = getattr(kind, "ndim", None)
    return axes


def _dtype(name: str, signature: object) -> np.dtype[Any]:
    try:
        return np.dtype(NAMES[name])
    except KeyError:
        message = f"{signature}: no type {name!r}; there are {', '.join(NAMES)}"
        raise TypeError(message) from None
