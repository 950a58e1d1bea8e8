"""How arrays lie in memory, and how kernels go over them; the CPU's new results."""

from __future__ import annotations

import struct
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import ndarray

from xdev.compile.cubins import ACCESS, BLOCK, WARP, WARPS
from xdev.memory.arrays import host_array, transposed

if TYPE_CHECKING:
    from collections.abc import Sequence

Shape = tuple[int, ...]
SHORT = 64  # elements of a line that one thread folds
THREADS = 2**18  # about what a large GPU runs at once
SEGMENTS = 2048  # of a line, at most: few threads join their folds
SEGMENT = 2**15  # bytes of a segment, at least
POOLED = 64 * 1024  # results of so many bytes come from xdev's pool


def broadcast(inputs: list[Shape], outputs: list[Shape], name: str) -> Shape:
    """Return the common shape; outputs take part but are not stretched."""
    try:
        common = np.broadcast_shapes(*inputs)
    except ValueError:
        listed = " ".join(map(str, inputs))
        raise ValueError(f"{name}: shapes {listed} do not broadcast together") from None
    with suppress(ValueError):  # the loop finds what does not fit
        common = np.broadcast_shapes(common, *outputs)
    for one in outputs:
        if one != common:
            raise ValueError(
                f"{name}: out has shape {one}, but the result has {common}: pass an "
                "out of that shape"
            )
    return common


def picked(values: Sequence[int], places: Sequence[int]) -> Shape:
    """Return the values at places, in their order."""
    return tuple(values[place] for place in places)


def contiguous(shape: Shape, itemsize: int) -> Shape:
    """Return the strides of a C-contiguous array [B]."""
    return tuple(itemsize * prod(shape[i + 1 :]) for i in range(len(shape)))


def is_contiguous(shape: Shape, strides: Shape, itemsize: int) -> bool:
    """Say whether elements are in C order without gaps."""
    triples = zip(shape, strides, contiguous(shape, itemsize), strict=True)
    return 0 in shape or all(n == 1 or own == step for n, own, step in triples)


def collapse(shape: Shape, strides: list[Shape]) -> tuple[Shape, list[Shape]]:
    """Merge the axes that every array steps through as through one.

    The first array's memory order is that of the axes, so put outputs first: scattered
    writes cost more than scattered reads. At least one axis is left, slowest first; of
    several none has extent 1.
    """
    merged = [i for i in axes(strides[:1]) if shape[i] != 1]
    extents: list[int] = []
    steps: list[list[int]] = []  # for each axis, every array's stride
    for axis in merged:
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


# ``order="K"``: in the memory order of the inputs.


def stretch(shape: Shape, strides: Shape, to: Shape) -> Shape:
    """Return an array's strides once it has a shape, 0 along a repeated axis [B].

    Examples
    --------
    >>> stretch((2, 1), (8, 8), (4, 2, 3))
    (0, 8, 0)
    """
    kept = [step if n != 1 else 0 for n, step in zip(shape, strides, strict=True)]
    return (*(0,) * (len(to) - len(shape)), *kept)


def axes(strides: Sequence[Sequence[int]]) -> Shape:
    """Return the axes from the one with the largest steps to the smallest.

    Each input's strides are those after broadcasting, 0 along a repeated axis [B].

    Examples
    --------
    >>> axes([(8, 80), (8, 80)])
    (1, 0)
    """
    ordered: list[int] = []
    for axis in reversed(range(len(strides[0]))):  # innermost first, as NumPy sorts
        place = len(ordered)
        for i in reversed(range(len(ordered))):
            smaller = _smaller(axis, ordered[i], strides)
            if smaller is None:
                continue
            if not smaller:
                break
            place = i
        ordered.insert(place, axis)
    return tuple(reversed(ordered))


def places(shape: Shape, arrays: Sequence[Any], order: Any) -> Shape:
    """Return the axes of a new result as they lie in memory, the slowest first.

    It is as an ``order`` of NumPy's says, of arrays that broadcast to the shape.
    """
    kind, every = str(order).upper(), tuple(range(len(shape)))
    if kind == "A":
        kind = "F" if arrays and all(map(_is_fortran, arrays)) else "C"
    if kind in ("C", "F"):
        return every if kind == "C" else every[::-1]
    steps = [stretch(x.shape, x.strides, shape) for x in arrays]
    return axes(steps or [(0,) * len(shape)])


def _is_fortran(x: Any) -> bool:
    """Say whether an array is contiguous in Fortran's order, and not in C's."""
    shape, strides, itemsize = x.shape, x.strides, x.dtype.itemsize
    fortran = is_contiguous(shape[::-1], strides[::-1], itemsize)
    return fortran and not is_contiguous(shape, strides, itemsize)


def _smaller(axis: int, other: int, strides: Sequence[Sequence[int]]) -> bool | None:
    """Say whether an axis has smaller steps; C order wins a conflict, None: unknown."""
    steps = [(abs(s[axis]), abs(s[other])) for s in strides if s[axis] and s[other]]
    return all(one < two for one, two in steps) if steps else None


# Results on the CPU.


def bound(operands: Sequence[Any]) -> int:
    """Return a number of elements that the result does not exceed.

    It is the result's own where all arrays have one shape.
    """
    size, shapes = 1, []
    for x in operands:
        if type(x) is ndarray and (shape := x.shape) not in shapes:
            shapes.append(shape)
            size *= x.size
    return size


def pooled(
    operands: Sequence[Any],
    outputs: Sequence[np.dtype[Any]],
    *,
    where: Any = True,
    order: str = "K",
    least: int = POOLED,
    **_: Any,
) -> tuple[Any, ...] | None:
    """Return large results from xdev's pool, in the layout that NumPy would choose.

    Results of less than ``least`` bytes are left to NumPy: None in the tuple, or in its
    place.
    """
    arrays = []
    straight = order == "K"
    for x in operands if where is True else (*operands, where):
        if type(x) is ndarray:
            arrays.append(x)
            straight = straight and x.flags.c_contiguous
        elif isinstance(x, ndarray):
            return None  # a subclass, which decides on its results
    shape = _common_shape(arrays)
    if not shape:
        return None  # of NumPy's scalars; or NumPy has to refuse them
    size, axes, any_large = prod(shape), None, False
    results: list[Any] = []
    for dtype in outputs:
        if size * dtype.itemsize < least:
            results.append(None)
            continue
        any_large = True
        if not (straight or order == "C"):
            axes = axes or places(shape, arrays, order)
        made = ordered(axes, shape, dtype) if axes else host_array(shape, dtype)
        results.append(made)
    return tuple(results) if any_large else None


def _common_shape(arrays: Sequence[Any]) -> Shape | None:
    """Return the shape that arrays broadcast to, or None."""
    shape: Shape | None = arrays[0].shape if arrays else None
    for x in arrays:
        if x.shape != shape:
            break
    else:
        return shape
    with suppress(ValueError, RuntimeError):  # which has more than 32 dimensions
        return np.broadcast_shapes(*(x.shape for x in arrays))
    return None


def ordered(
    axes: Sequence[int], shape: Sequence[int], dtype: np.dtype[Any]
) -> ndarray[Any, Any]:
    """Return a new array of a shape whose axes lie in memory in an order.

    An array that may be freed by hand is its own, no view of another one.
    """
    straight = host_array(picked(shape, axes), dtype)
    return transposed(straight, sorted(range(len(axes)), key=axes.__getitem__))


# Lines of reductions and scans, and the threads that work on them.


class Lines(NamedTuple):
    """The lines of arrays along one axis: what they are of, and where each begins."""

    extents: Shape  # of the dimensions that count lines, merged; at least one
    source: Shape  # each array's strides along them [B]
    target: Shape
    mask: Shape
    length: int  # elements of a line
    steps: tuple[int, int, int]  # each array's stride along a line [B]

    @property
    def number(self) -> int:
        """The number of lines."""
        return prod(self.extents)

    @property
    def across(self) -> bool:
        """Whether neighbours in memory are of different lines."""
        inner = abs(self.source[-1])
        return 0 < inner < abs(self.steps[0]) and self.extents[-1] >= WARP

    def wide(self, itemsize: int) -> int:
        """Return how many neighbour lines a thread reads at once."""
        lines = min(ACCESS // itemsize, 4)
        side_by_side = self.across and self.source[-1] == itemsize
        return lines if side_by_side and self.extents[-1] % lines == 0 else 1

    def split(
        self, group: int, span: int, itemsize: int, wide: int = 1
    ) -> tuple[int, int]:
        """Return how many segments a line has, and the elements of each.

        ``group`` threads work on a segment, a multiple of ``span`` elements, and each
        thread on ``wide`` lines.
        """
        if not self.length:
            return 1, 0
        wanted = min(SEGMENTS, -(-2 * THREADS * wide // (self.number * group)))
        least = SHORT * group if group <= WARPS else -(-SEGMENT // itemsize)
        splits = max(1, min(wanted, self.length // least))
        each = -(-self.length // splits)
        each += -each % span
        return -(-self.length // each), each

    def partial(self, splits: int, itemsize: int) -> Lines:
        """Return the same lines with a result for each segment, one after the other."""
        target = contiguous(self.extents, splits * itemsize)
        steps = self.steps[0], itemsize, self.steps[2]
        return self._replace(target=target, steps=steps)

    def parameter(self, splits: int, each: int) -> bytes:
        """Lay it out as ``Lines`` in fold.cuh is."""
        numbers = [self.number, self.length, splits, each, *self.extents]
        numbers += (*self.source, *self.target, *self.mask, *self.steps)
        return struct.pack(f"={len(numbers)}q", *numbers)


def lines(
    shape: Shape, axes: Shape, source: Shape, target: Shape, mask: Shape
) -> Lines | None:
    """Return the lines along axes that merge to one; None where they do not.

    ``shape`` is that of all arrays, ``source``, ``target`` and ``mask`` are their
    strides [B].

    Examples
    --------
    >>> lines((4, 5, 6), (1, 2), (240, 48, 8), (8, 0, 0), (0, 0, 0)).length
    30
    """
    along, strides = _merged(shape, axes, [source, target, mask])
    if len(along) > 1:
        return None
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    extents, (ours, theirs, masks) = _merged(shape, kept, [target, source, mask])
    one, two, three = (each[0] for each in strides)
    return Lines(extents, theirs, ours, masks, along[0], (one, two, three))


def _merged(
    shape: Shape, axes: Shape, strides: list[Shape]
) -> tuple[Shape, list[Shape]]:
    """Merge some axes; the first array's memory order is theirs."""
    return collapse(picked(shape, axes), [picked(each, axes) for each in strides])


def reducing(found: Lines, contiguous: bool) -> int:
    """Return how many threads fold a segment together."""
    if found.length <= SHORT:
        return 1
    if found.across:
        return WARPS
    few = found.number * WARP < THREADS // 4
    return BLOCK if few or (contiguous and found.length > 2**14) else WARP


def scanning(found: Lines) -> int:
    """Return how many threads scan a segment together."""
    return 1 if found.length <= SHORT or found.across else BLOCK


def grid(lines: int, splits: int, group: int) -> int:
    """Return how many blocks hold the groups of threads for segments of lines."""
    if group == WARPS:
        return -(-lines // WARP) * splits
    return -(-lines * splits * group // BLOCK)
