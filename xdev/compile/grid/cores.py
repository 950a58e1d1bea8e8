"""Functions of core arrays, for generalized ufuncs: one call for each loop index."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from xdev.compile.grid import HEADER, WORD, Argument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.compile.grid.emission import Memory


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
