"""How many small arrays are laid out in few packs: pure, no memory, no device."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from xdev.memory.blocks import round_up

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The most that a pack holds, and so the most that one survivor of it keeps [B].
LARGEST = 1 << 20
ALIGNMENT = 256  # of an array in a pack: what any kernel wants [B]


class Pack(NamedTuple):
    """Consecutive arrays that cross together.

    Attributes
    ----------
    members : slice
        Which arrays.
    offsets : list of int
        Where each begins [B].
    nbytes : int
        The size of the pack, at least one alignment [B].
    """

    members: slice
    offsets: list[int]
    nbytes: int


def packs(sizes: Sequence[int]) -> list[Pack]:
    """Lay out arrays in order; one that is too large for a pack has one of its own.

    Parameters
    ----------
    sizes : sequence of int
        Of each array [B].

    Examples
    --------
    >>> packs([100, 300, 8])
    [Pack(members=slice(0, 3, None), offsets=[0, 256, 768], nbytes=1024)]
    """
    made: list[Pack] = []
    first, offsets, end = 0, list[int](), 0
    for number, nbytes in enumerate(sizes):
        room = max(ALIGNMENT, round_up(nbytes, ALIGNMENT))
        if offsets and end + room > LARGEST:
            made.append(Pack(slice(first, number), offsets, end))
            first, offsets, end = number, [], 0
        offsets.append(end)
        end += room
    if offsets:
        made.append(Pack(slice(first, len(sizes)), offsets, end))
    return made
