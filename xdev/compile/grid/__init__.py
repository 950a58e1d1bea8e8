"""Kernels over a grid: a function of indices and arrays, run for every index.

Every device compiles the same: a function that finds its arguments in one block of
memory, 8-byte words. First come the extents, then where out-of-bounds accesses are
reported (0: not at all), then a slot for each argument, an array's address or a
number's bytes, then for each array its shape and its strides [B].
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from xdev import _optional
from xdev.compile.errors import compile_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

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
    def words(self) -> int:
        """How many words a number takes."""
        return -(-self.dtype.itemsize // WORD)

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
    """

    function: Callable[..., Any]
    indices: int
    arguments: tuple[Argument, ...]
    fastmath: bool = False
    checked: bool = False

    @property
    def parts(self) -> tuple[object, ...]:
        """All that decides the machine code but the function; its ``repr`` tells it."""
        return "grid", self.indices, self.arguments, self.fastmath, self.checked

    @property
    def words(self) -> int:
        """How many words its memory has."""
        layouts = (2 * (argument.ndim or 0) for argument in self.arguments)
        return HEADER + SLOT * len(self.arguments) + sum(layouts)

    def types(self) -> tuple[Any, ...]:
        """Return what the function takes, in Numba's types."""
        types = _optional.numba().core.types
        report = [types.UniTuple(types.int64, HEADER)] if self.checked else []
        own = (argument.type for argument in self.arguments)
        return (*[types.intp] * self.indices, *own, *report)

    def load(self, memory: Memory) -> list[Any]:
        """Emit the loading of all that is the same for every index."""
        return memory.arguments(self.arguments)

    def operands(
        self, memory: Memory, indices: Sequence[Any], loaded: Sequence[Any]
    ) -> list[Any]:
        """Emit what one call of the function takes, from the grid's three indices."""
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


# Functions of core arrays, for generalized ufuncs: one call for each loop index.


@final
@dataclass(frozen=True, slots=True, eq=False)  # a key of dicts: hashed as an object
class Cores:
    """A function of arrays and numbers, called along loop dimensions.

    It is a kernel of one index, the number of the loop index. After the header of its
    memory come the loop dimensions' extents; then for each operand its address and its
    strides along them, and for an array its shape and strides [B].

    Parameters
    ----------
    function : callable
        ``function(*arguments)``, plain Python.
    arguments : tuple of Argument
        The core arrays' types; numbers where there are no core dimensions.
    dimensions : int
        The loop dimensions, at least one.
    constants : frozenset of int
        Which operands are one number for all, and lie in the memory themselves.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.
    """

    function: Callable[..., Any]
    arguments: tuple[Argument, ...]
    dimensions: int
    constants: frozenset[int] = frozenset()
    fastmath: bool = False
    indices: ClassVar[int] = 1  # of the kernel's grid

    @property
    def parts(self) -> tuple[object, ...]:
        """All that decides the machine code but the function; its ``repr`` tells it."""
        return (
            "cores",
            self.arguments,
            self.dimensions,
            sorted(self.constants),
            self.fastmath,
        )

    @property
    def words(self) -> int:
        """How many words its memory has."""
        words = HEADER + self.dimensions
        for k, argument in enumerate(self.arguments):
            if k in self.constants:
                words += argument.words
            else:
                words += 1 + self.dimensions + 2 * (argument.ndim or 0)
        return words

    def types(self) -> tuple[Any, ...]:
        """Return what the function takes, in Numba's types."""
        return tuple(argument.type for argument in self.arguments)

    def load(self, _memory: Memory) -> list[Any]:
        """Emit nothing: an index has one call, and finds all in the memory."""
        return []

    def operands(
        self, memory: Memory, indices: Sequence[Any], _loaded: Sequence[Any]
    ) -> list[Any]:
        """Emit what one call of the function takes, from the grid's three indices."""
        builder, place = memory.builder, HEADER
        left, index = indices[-1], []
        for extent in reversed(memory.words(place, self.dimensions)[1:]):
            index.append(builder.urem(left, extent))
            left = builder.udiv(left, extent)
        index = [left, *reversed(index)]
        place += self.dimensions
        values = []
        for k, argument in enumerate(self.arguments):
            if k in self.constants:
                values.append(memory.constant(argument, place))
                place += argument.words
                continue
            data = memory.pointer(memory.word(place))
            steps = memory.words(place + 1, self.dimensions)
            for i, step in zip(index, steps, strict=True):
                data = memory.moved(data, builder.mul(i, step))
            place += 1 + self.dimensions
            if argument.ndim is None:
                values.append(memory.loaded(argument, data))
                continue
            words = memory.words(place, 2 * argument.ndim)
            shape, strides = words[: argument.ndim], words[argument.ndim :]
            values.append(memory.array(argument, data, shape, strides))
            place += len(words)
        return values

    def pack(self, size: int, words: Sequence[int | bytes]) -> bytes:
        """Return the memory: the number of loop indices, then words and numbers."""
        header = struct.pack(f"={HEADER}q", 1, 1, size, 0)
        return header + b"".join(
            word.ljust(-(-len(word) // WORD) * WORD, b"\0")
            if isinstance(word, bytes)
            else struct.pack("=q", word)
            for word in words
        )
