"""How reductions and scans go over an array: lines, segments, groups. Integers only."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import prod
from typing import final

from xdev.compile.elementwise import ACCESS, BLOCK
from xdev.compile.folds import WARP, WARPS
from xdev.ufunc import cuda_layout

Shape = tuple[int, ...]
SHORT = 64  # elements of a line that one thread folds
THREADS = 2**18  # about what a large GPU runs at once
SEGMENTS = 2048  # of a line, at most: few threads join their folds
SEGMENT = 2**15  # bytes of a segment, at least


@final
@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of arrays along one axis: what they are of, and where each begins.

    Parameters
    ----------
    extents : tuple of int
        Of the dimensions that count lines, merged; at least one.
    source, target, mask : tuple of int
        Each array's strides along them [B].
    length : int
        Elements of a line.
    steps : (int, int, int)
        Each array's stride along a line [B].
    """

    extents: Shape
    source: Shape
    target: Shape
    mask: Shape
    length: int
    steps: tuple[int, int, int]

    @property
    def count(self) -> int:
        """The number of lines."""
        return prod(self.extents)

    @property
    def across(self) -> bool:
        """Whether neighbours in memory are of different lines."""
        inner = abs(self.source[-1])
        return 0 < inner < abs(self.steps[0]) and self.extents[-1] >= WARP

    def wide(self, itemsize: int) -> int:
        """Return how many neighbour lines a thread reads at once."""
        lines = min(ACCESS // itemsize, 8)
        side_by_side = self.across and self.source[-1] == itemsize
        return lines if side_by_side and self.extents[-1] % lines == 0 else 1

    def split(
        self, group: int, span: int, itemsize: int, wide: int = 1
    ) -> tuple[int, int]:
        """Return how many segments a line has, and the elements of each.

        Parameters
        ----------
        group : int
            The threads that work on a segment.
        span : int
            Of how many elements a segment is a multiple.
        itemsize : int
            Bytes of an element.
        wide : int
            Of how many lines a thread works.
        """
        if not self.length:
            return 1, 0
        wanted = min(SEGMENTS, -(-2 * THREADS * wide // (self.count * group)))
        least = SHORT * group if group <= WARPS else -(-SEGMENT // itemsize)
        splits = max(1, min(wanted, self.length // least))
        each = -(-self.length // splits)
        each += -each % span
        return -(-self.length // each), each

    def parameter(self, splits: int, each: int) -> bytes:
        """Lay it out as ``Lines`` in fold.cuh is."""
        numbers = (
            *(self.count, self.length, splits, each),
            *self.extents,
            *self.source,
            *self.target,
            *self.mask,
            *self.steps,
        )
        return struct.pack(f"={len(numbers)}q", *numbers)


def lines(
    shape: Shape, axes: Shape, source: Shape, target: Shape, mask: Shape
) -> Lines | None:
    """Return the lines along axes that merge to one; None where they do not.

    Parameters
    ----------
    shape : tuple of int
        The array's.
    axes : tuple of int
        Those along which lines go.
    source, target, mask : tuple of int
        The strides of all arrays over this shape [B].

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
    return cuda_layout.collapse(
        tuple(shape[axis] for axis in axes),
        [tuple(each[axis] for axis in axes) for each in strides],
    )


def reducing(found: Lines, contiguous: bool) -> int:
    """Return how many threads fold a segment together."""
    if found.length <= SHORT:
        return 1
    if found.across:
        return WARPS
    few = found.count * WARP < THREADS // 4
    return BLOCK if few or (contiguous and found.length > 2**14) else WARP


def scanning(found: Lines) -> int:
    """Return how many threads scan a segment together."""
    return 1 if found.length <= SHORT or found.across else BLOCK


def grid(lines: int, splits: int, group: int) -> int:
    """Return how many blocks hold the groups of threads for segments of lines."""
    if group == WARPS:
        return -(-lines // WARP) * splits
    return -(-lines * splits * group // BLOCK)


def partial(found: Lines, splits: int, itemsize: int) -> Lines:
    """Return the same lines with results by line and segment, one after the other."""
    extents = found.extents
    target = tuple(
        prod(extents[d + 1 :]) * splits * itemsize for d in range(len(extents))
    )
    source_step, _, mask_step = found.steps
    steps = source_step, itemsize, mask_step
    return Lines(extents, found.source, target, found.mask, found.length, steps)
