"""How arrays meet in one kernel: broadcasting, collapsing, overlap. Integers only."""

from __future__ import annotations

from contextlib import suppress
from math import prod
from typing import NamedTuple

import numpy as np

from xdev.ufunc import layout

Shape = tuple[int, ...]


def broadcast(inputs: list[Shape], outputs: list[Shape], name: str) -> Shape:
    """Return the common shape; outputs take part but are not stretched.

    Raises
    ------
    ValueError
        The shapes do not broadcast, or an output has another shape than the result.
    """
    try:
        common = np.broadcast_shapes(*inputs)
    except ValueError:
        listed = " ".join(map(_text, inputs))
        raise ValueError(f"{name}: shapes {listed} do not broadcast together") from None
    with suppress(ValueError):  # the loop finds what does not fit
        common = np.broadcast_shapes(common, *outputs)
    for one in outputs:
        if one != common:
            raise ValueError(
                f"{name}: out has shape {_text(one)}, but the result has "
                f"{_text(common)}: pass an out of that shape"
            )
    return common


def stretch(shape: Shape, strides: Shape, to: Shape) -> Shape:
    """Return an array's strides as an array of a shape that it broadcasts to."""
    missing = len(to) - len(shape)
    kept = (
        0 if extent == 1 else stride
        for extent, stride in zip(shape, strides, strict=True)
    )
    return (0,) * missing + tuple(kept)


def contiguous(shape: Shape, itemsize: int) -> Shape:
    """Return the strides of a C-contiguous array [B]."""
    return tuple(itemsize * prod(shape[i + 1 :]) for i in range(len(shape)))


def collapse(shape: Shape, strides: list[Shape]) -> tuple[Shape, list[Shape]]:
    """Merge the axes that every array steps through as through one.

    The first array's memory order is that of the axes, so put outputs first: scattered
    writes cost more than scattered reads.

    Returns
    -------
    (shape, strides)
        At least one axis, slowest first; no axis of extent 1 where there is another.
    """
    axes = [i for i in layout.axes(strides[:1]) if shape[i] != 1]
    extents: list[int] = []
    steps: list[list[int]] = []  # for each axis, every array's stride
    for axis in axes:
        here = [each[axis] for each in strides]
        if steps and steps[-1] == [shape[axis] * step for step in here]:
            extents[-1] *= shape[axis]
            steps[-1] = here
        else:
            extents.append(shape[axis])
            steps.append(here)
    if not extents:
        return (1,), [(0,) for _ in strides]
    return tuple(extents), [tuple(each) for each in zip(*steps, strict=True)]


class Reach(NamedTuple):
    """The bytes that an array covers, from its address on: low <= 0 < high."""

    low: int
    high: int

    @classmethod
    def of(cls, shape: Shape, strides: Shape, itemsize: int) -> Reach:
        """Return an array's reach; an empty one has none."""
        if 0 in shape:
            return cls(0, 0)
        ends = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
        low = sum(end for end in ends if end < 0)
        return cls(low, sum(end for end in ends if end > 0) + itemsize)

    def meets(self, other: Reach, distance: int) -> bool:
        """Say whether the arrays overlap; the other begins ``distance`` further on."""
        return self.low < other.high + distance and other.low + distance < self.high


def divisor(extent: int) -> tuple[int, int]:
    """Return ``magic, shift`` with ``i // extent == (i * magic >> 32) + i >> shift``.

    It holds for 0 <= i < 2**31 (Granlund & Montgomery 1994, "Division by Invariant
    Integers using Multiplication").

    Examples
    --------
    >>> magic, shift = divisor(7)
    >>> all((i * magic >> 32) + i >> shift == i // 7 for i in range(1000))
    True
    """
    shift = (extent - 1).bit_length()
    return ((1 << shift) - extent) * (1 << 32) // extent + 1, shift


def _text(shape: Shape) -> str:
    return str(shape).replace(" ", "")
