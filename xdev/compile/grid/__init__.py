"""Kernels over a grid: a function of indices and arrays, run for every index.

Every device compiles the same: a function that finds its arguments in one block of
memory, 8-byte words. First come the extents, then where out-of-bounds accesses are
reported (0: not at all), then a slot for each argument, an array's address or a
number's bytes, then for each array its shape and its strides [B].
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev.compile.errors import compile_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.compile.grid.emission import Memory


DIMENSIONS = 3  # a grid has so many; those that it lacks are 1, in front
HEADER = DIMENSIONS + 1  # words before the slots
WORD = 8
SLOT = 2  # words: any number fits


@final
@dataclass(frozen=True, slots=True)
class Argument:
    """The type of an argument: an array's, or a number's.

    Parameters
    ----------
    dtype : numpy.dtype
        Of the elements, or of the number.
    ndim : int or None
        The number of axes; None for a number.
    contiguous : bool
        Whether the elements lie in C order without gaps.
    writable : bool
        Whether the kernel may write it.
    """

    dtype: np.dtype[Any]
    ndim: int | None = None
    contiguous: bool = False
    writable: bool = False

    @property
    def type(self) -> Any:
        """The type that Numba has for it."""
        numba = _optional.numba()
        item = numba.np.numpy_support.from_dtype(self.dtype)
        if self.ndim is None:
            return item
        layout = "C" if self.contiguous else "A"
        readonly = not self.writable
        return numba.core.types.Array(item, self.ndim, layout, readonly=readonly)

    def __str__(self) -> str:
        if self.ndim is None:
            return str(self.dtype)
        return f"{self.dtype}[{', '.join(':' * self.ndim)}]"


LENGTH = 5 + DIMENSIONS  # of a report of what is out of bounds
REPORT = Argument(np.dtype(np.int64), 1, contiguous=True, writable=True)


def report_type() -> Any:
    """Return Numba's type of a report, and of the point of the grid beside it."""
    types = _optional.numba().core.types
    return types.Tuple((REPORT.type, types.UniTuple(types.int64, DIMENSIONS)))


@final
@dataclass(frozen=True, slots=True, eq=False)  # a key of dicts: hashed as an object
class Grid:
    """A function of indices and arguments, and the types that it is compiled for.

    Parameters
    ----------
    function : callable
        ``function(i, …, *arguments)``, plain Python; where ``checked``, with one more
        argument, which :func:`xdev.compile.grid.emission.checked` takes.
    indices : int
        How many indices it takes: 1, 2 or 3.
    arguments : tuple of Argument
        The types of its arguments.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.
    checked : bool
        Whether it reports accesses out of bounds.
    cores : tuple of Argument, optional
        Of a function of core arrays, which takes no index: what it takes. The arrays
        among the arguments have as many loop dimensions in front, and the one index
        counts through them; the last argument's are the loop's extents.
    """

    function: Callable[..., Any]
    indices: int
    arguments: tuple[Argument, ...]
    fastmath: bool = False
    checked: bool = False
    cores: tuple[Argument, ...] | None = None

    @property
    def parts(self) -> tuple[object, ...]:
        """All that decides the machine code but the function; its ``repr`` tells it."""
        options = self.fastmath, self.checked
        return "grid", self.indices, self.arguments, *options, self.cores

    @property
    def words(self) -> int:
        """How many words its memory has."""
        layouts = (2 * (argument.ndim or 0) for argument in self.arguments)
        return HEADER + SLOT * len(self.arguments) + sum(layouts)

    @property
    def shown(self) -> tuple[Argument, ...]:
        """What errors show as the types that the function takes."""
        return self.arguments if self.cores is None else self.cores

    def types(self) -> tuple[Any, ...]:
        """Return what the function takes, in Numba's types."""
        types = _optional.numba().core.types
        if self.cores is not None:
            return tuple(core.type for core in self.cores)
        report = [report_type()] if self.checked else []
        own = (argument.type for argument in self.arguments)
        return (*[types.intp] * self.indices, *own, *report)

    def load(self, memory: Memory) -> list[Any]:
        """Emit the loading of all that is the same for every index."""
        return [] if self.cores is not None else memory.arguments(self.arguments)

    def operands(
        self, memory: Memory, indices: Sequence[Any], loaded: Sequence[Any]
    ) -> list[Any]:
        """Emit what one call of the function takes, from the grid's three indices."""
        if self.cores is not None:
            return memory.cores(self.arguments, self.cores, indices[-1])
        own = indices[DIMENSIONS - self.indices :]
        report = [memory.report(indices)] if self.checked else []
        return [*own, *loaded, *report]


def check_result(
    function: Callable[..., Any], shown: Sequence[object], returned: Any
) -> None:
    """Refuse a function that returns something.

    Parameters
    ----------
    function : callable
        The function.
    shown : sequence
        The types that it was compiled for.
    returned : Numba type
        What it returns.

    Raises
    ------
    TypeError
        That is something.
    """
    if returned is not _optional.numba().core.types.none:
        message = (
            f"it returns {returned}, but what it computes goes to its arrays: "
            "out[i] = …"
        )
        raise compile_error(function, shown, TypeError(message))


def packer(arguments: Sequence[Argument]) -> Callable[..., bytes]:
    """Return ``pack(*words)``: the memory of a kernel from integers and numbers' bytes.

    The words are the extents, the report's address, then addresses and numbers, then
    shapes and strides.
    """
    slots = (f"{SLOT * WORD}s" if a.ndim is None else "Q8x" for a in arguments)
    layouts = 2 * sum(a.ndim or 0 for a in arguments)
    return struct.Struct(f"={HEADER}q{''.join(slots)}{layouts}q").pack
