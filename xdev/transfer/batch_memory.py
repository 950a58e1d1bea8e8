"""What a device's pool hears of batches, so that it can serve them without waits.

A batch's memory is of the uploads' stream and used on the consumer's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, final

from xdev.memory import registry
from xdev.memory.ladder import TRIMMED
from xdev.memory.owners import mark_uses
from xdev.memory.streams import live_streams

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xdev.device import Stream


class BatchMemory(Protocol):
    """The pool of one type of device."""

    def hand_over(self, giver: Stream, heir: Stream) -> None:
        """Let one stream have the large free memory of another, which it waits for.

        Called before the wait is queued.
        """

    def lend(self, arrays: Iterable[Any], index: int) -> None:
        """Note that a device's current stream uses arrays of another stream."""


@final
class PoolMemory:
    """CUDA's."""

    def hand_over(self, giver: Stream, heir: Stream) -> None:
        """Let the pool's segments change hands that would go back before it grows."""
        old, new = giver.ptr, live_streams.see(heir)
        stock = registry.pool(heir.device, "device").stock
        stock.decide(lambda heap: heap.bequeath(old, new, TRIMMED))

    def lend(self, arrays: Iterable[Any], index: int) -> None:
        """Mark the arrays' blocks."""
        mark_uses(arrays, index)


@final
class NoMemory:
    """Of devices whose work is done when a call returns."""

    def hand_over(self, giver: Stream, heir: Stream) -> None:
        """Do nothing."""

    def lend(self, arrays: Iterable[Any], index: int) -> None:
        """Do nothing."""


#: By type of device; those that are not here need none.
MEMORIES: dict[str, BatchMemory] = {"cuda": PoolMemory()}
