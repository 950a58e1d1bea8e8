"""CUDA kernels of reductions, scans and scatters: templates beside the elementwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from xdev.compile.cubins import BLOCK, FUNCTION, Macros, computed, cpp_name, defined

if TYPE_CHECKING:
    import numpy as np

WARP = 32
WARPS = BLOCK // WARP
REDUCED = 32  # bytes that a thread folds of each chunk
STATISTICS = ("fold", "count", "norm", "mean", "var", "std", "argmax", "argmin")
MARK = 8  # bytes
PLACED = 16  # bytes of a value and where it is
SCANNED = 8  # elements that a thread scans of each tile, at most
SCANNED_BYTES = 64


class Reduce(NamedTuple):
    """A reduction along lines.

    Parameters
    ----------
    source, loop, target : numpy.dtype
        In memory, of the function, and of the results in memory.
    group : int
        How many threads fold a segment: 1, 32, 256, or 8, one of each warp of a block.
    dimensions : int
        How many dimensions count lines.
    masked : bool
        Whether a mask says which elements take part.
    segmented : bool
        Whether an array says where segments begin.
    joining : int
        How many threads join the segments of a line: 32 or 256. 0: nobody, each has a
        place in the target.
    statistic : str
        What becomes of a sum, one of :data:`STATISTICS`.
    wide : int
        Of how many neighbour lines a thread folds a segment, where ``group`` is 1 or 8.
    """

    source: np.dtype[Any]
    loop: np.dtype[Any]
    target: np.dtype[Any]
    group: int
    dimensions: int = 1
    masked: bool = False
    segmented: bool = False
    joining: int = 0
    statistic: str = "fold"
    wide: int = 1
    template: str = "reduce"

    @property
    def entry(self) -> str:
        """Return the kernel's C++ name, template arguments included."""
        types = map(cpp_name, (self.source, self.loop, self.target))
        return f"xdev::reduce<{','.join(types)}>"

    @property
    def span(self) -> int:
        """Return how many elements a group folds at once."""
        return 1 if self.group <= WARPS else self.group * self.lanes

    @property
    def lanes(self) -> int:
        """Return how many neighbours a thread folds at once."""
        return REDUCED // self.source.itemsize

    @property
    def partial(self) -> int:
        """Return the bytes of a segment's fold, with the mark that it is there."""
        if self.statistic.startswith("arg"):
            return MARK + PLACED
        parts = 3 if self.statistic in ("var", "std") else 1
        return MARK + parts * self.loop.itemsize

    def macros(self) -> Macros:
        """Return the template's macros."""
        numbers = {
            "GROUP": self.group,
            "LANES": self.lanes,
            "DIMENSIONS": self.dimensions,
            "MASKED": int(self.masked),
            "SEGMENTED": int(self.segmented),
            "JOINING": self.joining,
            "WIDE": self.wide,
            "STATISTIC": STATISTICS.index(self.statistic),
        }
        return _macros(numbers, (self.loop, self.loop), self.loop)


class Scan(NamedTuple):
    """A running fold along lines; parameters as of :class:`Reduce`."""

    source: np.dtype[Any]
    loop: np.dtype[Any]
    target: np.dtype[Any]
    group: int
    dimensions: int = 1
    template: str = "scan"

    @property
    def entry(self) -> str:
        """Return the kernel's C++ name, template arguments included."""
        types = map(cpp_name, (self.source, self.loop, self.target))
        return f"xdev::scan<{','.join(types)}>"

    @property
    def span(self) -> int:
        """Return how many elements a group scans at once."""
        return self.group * self.lanes

    @property
    def lanes(self) -> int:
        """Return how many neighbours a thread scans at once."""
        return min(SCANNED, SCANNED_BYTES // self.source.itemsize)

    def macros(self) -> Macros:
        """Return the template's macros."""
        numbers = {
            "GROUP": self.group,
            "LANES": self.lanes,
            "DIMENSIONS": self.dimensions,
        }
        return _macros(numbers, (self.loop, self.loop), self.loop)


class Scatter(NamedTuple):
    """A function in place at sorted positions.

    Parameters
    ----------
    target : numpy.dtype
        Of the array that is worked on.
    value : numpy.dtype or None
        Of the second operand in memory; None for a function of one.
    inputs : tuple of numpy.dtype
        What the function takes.
    output : numpy.dtype
        What it gives.
    """

    target: np.dtype[Any]
    value: np.dtype[Any] | None
    inputs: tuple[np.dtype[Any], ...]
    output: np.dtype[Any]
    template: str = "scatter"

    @property
    def entry(self) -> str:
        """Return the kernel's C++ name, template arguments included."""
        value = self.value or self.target
        types = self.target, self.inputs[0], value, self.inputs[-1], self.output
        return f"xdev::scatter<{','.join(map(cpp_name, types))}>"

    def macros(self) -> Macros:
        """Return the template's macros."""
        numbers = {"BINARY": int(self.value is not None)}
        return _macros(numbers, self.inputs, self.output)


def _macros(
    numbers: dict[str, int], inputs: tuple[np.dtype[Any], ...], output: np.dtype[Any]
) -> Macros:
    reads = [f"const {cpp_name(computed(dtype))}*" for dtype in inputs]
    words = {
        "FUNCTION": FUNCTION,
        "SIGNATURE": ",".join([*reads, f"{cpp_name(computed(output))}*"]),
        "BLOCK": BLOCK,
    }
    return defined(words | numbers)
