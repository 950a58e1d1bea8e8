"""Other libraries' memory pools as plain models: their published rules, no driver.

CuPy's and PyTorch's pools both keep what comes back, hand out the smallest free piece
that fits, cut off the rest and merge free neighbours; a :class:`Rules` value says where
they differ. Sources: CuPy's user guide (memory management) and ``cupy/cuda/memory.pyx``
of 14.0; PyTorch's CUDA notes and ``c10/cuda/CUDACachingAllocator.cpp`` of 2.9, with its
settings as they come. One stream.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable

KIB, MIB = 1 << 10, 1 << 20


def _multiple(nbytes: int, of: int) -> int:
    return max(1, -(-nbytes // of)) * of


@final
@dataclass(frozen=True, slots=True)
class Rules:
    """Where two pools differ.

    Parameters
    ----------
    name : str
        Whose rules they are.
    grown : callable
        The segment to ask the driver for, of a rounded request [B].
    arena : callable
        Which requests share segments, of a rounded request.
    least : callable
        The smallest rest to cut off, of an arena [B].
    """

    name: str
    grown: Callable[[int], int]
    arena: Callable[[int], str]
    least: Callable[[str], int]


def _torch_segment(size: int) -> int:
    if size <= MIB:
        return 2 * MIB
    return 20 * MIB if size < 10 * MIB else _multiple(size, 2 * MIB)


CUPY = Rules(
    "cupy",
    grown=lambda size: size,  # exactly what is asked for
    arena=lambda _: "all",
    least=lambda _: 512,
)
PYTORCH = Rules(
    "pytorch",
    grown=_torch_segment,
    arena=lambda size: "small" if size <= MIB else "large",
    least=lambda arena: 512 if arena == "small" else MIB + 512,  # more than 1 MiB
)


@final
class Piece:
    """A part of a segment, in use or free, between two others."""

    __slots__ = ("address", "after", "arena", "before", "free", "nbytes")

    def __init__(self, address: int, nbytes: int, arena: str) -> None:
        self.address, self.nbytes, self.arena = address, nbytes, arena
        self.before: Piece | None = None
        self.after: Piece | None = None
        self.free = False


@final
class Model:
    """A pool by some rules over a driver with a capacity.

    Attributes
    ----------
    reserved, peak : int
        Bytes held from the driver, now and at most [B].
    allocations, frees : int
        Calls of the driver so far.
    """

    def __init__(self, rules: Rules, capacity: int) -> None:
        self.rules, self.capacity = rules, capacity
        self.reserved = self.peak = self.allocations = self.frees = 0
        self._free: dict[str, list[tuple[int, int]]] = {}  # size, address: in order
        self._pieces: dict[int, Piece] = {}  # the free ones, by address
        self._next = 0

    def acquire(self, nbytes: int) -> Piece:
        """Hand out a piece.

        Raises
        ------
        MemoryError
            It does not fit even after everything free went back.
        """
        size = _multiple(nbytes, 512)
        arena = self.rules.arena(size)
        free = self._free.setdefault(arena, [])
        at = bisect_left(free, (size, 0))
        piece = self._grow(size) if at == len(free) else self._pieces[free[at][1]]
        if piece.free:
            self._take(piece)
        if piece.nbytes - size >= self.rules.least(arena):
            rest = Piece(piece.address + size, piece.nbytes - size, arena)
            rest.before, rest.after = piece, piece.after
            if rest.after is not None:
                rest.after.before = rest
            piece.after, piece.nbytes = rest, size
            self._put(rest)
        return piece

    def release(self, piece: Piece) -> None:
        """Take a piece back, merged with its free neighbours."""
        after = piece.after
        if after is not None and after.free:
            self._take(after)
            self._merge(piece, after)
        before = piece.before
        if before is not None and before.free:
            self._take(before)
            self._merge(before, piece)
            piece = before
        self._put(piece)

    def give_back(self) -> None:
        """Return every segment that is wholly free to the driver."""
        for piece in list(self._pieces.values()):
            if piece.before is None and piece.after is None:
                self._take(piece)
                self.reserved -= piece.nbytes
                self.frees += 1

    def _grow(self, size: int) -> Piece:
        segment = self.rules.grown(size)
        if self.reserved + segment > self.capacity:
            self.give_back()
        if self.reserved + segment > self.capacity:
            raise MemoryError(f"{segment} B over {self.reserved} of {self.capacity} B")
        piece = Piece(self._next, segment, self.rules.arena(size))
        self._next += segment
        self.allocations += 1
        self.reserved += segment
        self.peak = max(self.peak, self.reserved)
        return piece

    def _put(self, piece: Piece) -> None:
        insort(self._free.setdefault(piece.arena, []), (piece.nbytes, piece.address))
        self._pieces[piece.address], piece.free = piece, True

    def _take(self, piece: Piece) -> None:
        free = self._free[piece.arena]
        del free[bisect_left(free, (piece.nbytes, piece.address))]
        del self._pieces[piece.address]
        piece.free = False

    @staticmethod
    def _merge(piece: Piece, after: Piece) -> None:
        piece.nbytes += after.nbytes
        piece.after = after.after
        if piece.after is not None:
            piece.after.before = piece
