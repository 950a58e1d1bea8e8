"""What a copy through staging memory does, in order: pure, no memory, no device.

Between pageable memory and a device lies a ring of pinned *slots*. The array is cut
into *pieces*. Several *lanes*, a thread each, take the next piece each until none is
left; a lane has slots of its own, so lanes wait for nothing of each other, and while
one of its slots is on the bus the lane fills or drains another.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import EllipsisType

LANES = 8  # more threads than saturate the bus only take turns at it
SMALL = 64 << 10  # CUDA's own copy takes so much of pageable memory at once [B]
DIRECT = 2 << 20  # up to here it is quicker than a staged one [B]
SLOTS = 2  # of a lane: one on the bus, one in the thread's hands


class Sizes(NamedTuple):
    """How large pieces are.

    Attributes
    ----------
    smallest : int
        Of more pieces than one: what costs a thread as long as its wake-up [B].
    largest : int
        What an event costs nothing beside [B].
    turns : int
        How often each slot is used, if that makes no piece too small: the bus waits
        until the first slots are full.
    """

    smallest: int
    largest: int
    turns: int


GENERAL = Sizes(1 << 20, 4 << 20, turns=1)  # a piece is some steps of Python
PACKED = Sizes(256 << 10, 1 << 20, turns=2)  # without Python: what caches hold


class Plan(NamedTuple):
    """How a copy is cut up.

    Attributes
    ----------
    lanes, slots : int
        Threads, and slots of each.
    chunk : int
        The size of a slot [B].
    """

    lanes: int
    slots: int
    chunk: int


class Piece(NamedTuple):
    """A part of an array whose elements are together in C order.

    Attributes
    ----------
    where : tuple
        The index of the part in the array.
    start, nbytes : int
        Where it lies in the packed array, and its size [B].
    """

    where: tuple[int | slice | EllipsisType, ...]
    start: int
    nbytes: int


class Act(Enum):
    """What a lane does with a slot; the values are the names of a link's methods."""

    WAIT = "wait"  # the host waits until the slot's last piece is over the bus
    FILL = "fill"  # the host writes a piece into the slot
    SEND = "send"  # a copy from the slot to the device is queued
    FETCH = "fetch"  # a copy from the device into the slot is queued
    DRAIN = "drain"  # the host reads the piece out of the slot


class Step(NamedTuple):
    """One act, on one slot, with one piece."""

    act: Act
    slot: int
    piece: Piece


def plan(nbytes: int, threads: int, sizes: Sizes) -> Plan:
    """Return how to cut up a copy.

    Parameters
    ----------
    nbytes : int
        Its size, above 0 [B].
    threads : int
        How many threads may work on it.
    sizes : Sizes
        Of the pieces: ``GENERAL`` or ``PACKED``.

    Examples
    --------
    >>> plan(1 << 30, 16, GENERAL)
    Plan(lanes=8, slots=2, chunk=4194304)
    >>> plan(100_000, 16, GENERAL)
    Plan(lanes=1, slots=1, chunk=100000)
    """
    threads = min(threads, LANES)
    share = -(-nbytes // (threads * SLOTS * sizes.turns))
    power = 1 << (share - 1).bit_length()  # so that a pool meets few sizes
    chunk = min(nbytes, max(sizes.smallest, min(sizes.largest, power)))
    count = -(-nbytes // chunk)
    lanes = min(threads, count)
    return Plan(lanes, min(SLOTS, -(-count // lanes)), chunk)


def pieces(shape: tuple[int, ...], itemsize: int, chunk: int) -> Iterator[Piece]:
    """Cut an array into pieces of at most ``chunk`` bytes, in C order.

    Examples
    --------
    >>> [(piece.start, piece.nbytes) for piece in pieces((5,), itemsize=8, chunk=16)]
    [(0, 16), (16, 16), (32, 8)]
    """
    axis, row = len(shape), itemsize  # a row: one index of the axes before
    while axis and row * shape[axis - 1] <= chunk:
        axis -= 1
        row *= shape[axis]
    if not axis:
        yield Piece((...,), 0, row)
        return
    *outer, extent = shape[:axis]
    rows = max(1, chunk // row)
    for number, at in enumerate(product(*map(range, outer))):
        for first in range(0, extent, rows):
            last = min(extent, first + rows)
            start = (number * extent + first) * row
            yield Piece((*at, slice(first, last), ...), start, (last - first) * row)


def upload(work: Iterable[Piece], slots: int) -> Iterator[Step]:
    """Return a lane's steps to the device; at the end, slots are still on the bus."""
    for number, piece in enumerate(work):
        slot = number % slots
        if number >= slots:
            yield Step(Act.WAIT, slot, piece)
        yield Step(Act.FILL, slot, piece)
        yield Step(Act.SEND, slot, piece)


def download(work: Iterable[Piece], slots: int) -> Iterator[Step]:
    """Return a lane's steps from the device."""
    coming: deque[tuple[int, Piece]] = deque()
    for number, piece in enumerate(work):
        if len(coming) == slots:
            yield from _landed(*coming.popleft())
        slot = number % slots
        yield Step(Act.FETCH, slot, piece)
        coming.append((slot, piece))
    while coming:
        yield from _landed(*coming.popleft())


def _landed(slot: int, piece: Piece) -> Iterator[Step]:
    yield Step(Act.WAIT, slot, piece)
    yield Step(Act.DRAIN, slot, piece)
