"""The streams whose handles a pool keeps: none is destroyed under it.

A pool keeps handles, and a handle outlives its stream: the driver destroys a stream
while its work goes on, and the next one may get the handle. Memory that was freed on
the old stream would then pass for memory in the new one's order. So a stream that was
seen is held until nobody else holds it and its work is done: a handle that comes back
has no work behind it. This costs nothing where blocks are handed out again.
"""

from __future__ import annotations

import threading
from operator import index
from typing import TYPE_CHECKING, Any, final

from xdev.memory.blocks import ALONE, references
from xdev.native import calls

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_STREAMS = (0, 1, 2)  # null, legacy, per-thread: these are never destroyed
ONE_STREAM = (0, 1)  # two names of the default stream
HANDLES = 1 << 64  # every stream's handle is below


@final
class LiveStreams:
    """Streams by handle, held.

    Only those that destroy themselves when they are dropped are held: CuPy's. Of a
    stream that is known by its handle alone nobody can say whether it lives; who
    destroys one must wait for its work first.

    Attributes
    ----------
    several : bool
        Whether a stream besides the default one was seen; until then, nobody has to
        look which stream a block is used on.
    """

    def __init__(self) -> None:
        self.several = False
        #: Called once there are several, for who did something quicker until then; more
        #: than once, where threads see their second streams at the same time.
        self.when_several: list[Callable[[], None]] = []
        #: Handles of the streams that graphs are being captured on. No work runs there,
        #: so no block is ever in use on one, and none of them counts.
        self.captured: set[int] = set()
        self._announced = False  # whether all of them were
        self._held: dict[int, Any] = {}
        self._retiring = threading.Lock()  # one thread at a time, and nobody waits

    def see(self, stream: Any) -> int:
        """Hold a stream from now on, if its life can be followed.

        Parameters
        ----------
        stream : int or Stream
            xdev's or CuPy's stream, or a handle.

        Returns
        -------
        int
            The handle.
        """
        native = getattr(stream, "_native", stream)  # of an xdev.Stream: CuPy's
        handle = int(native if isinstance(native, int) else native.ptr)
        if handle not in ONE_STREAM:
            if handle in self.captured:
                return handle
            if not self._announced:
                self._tell()
        if hasattr(type(native), "__del__") and handle not in DEFAULT_STREAMS:
            self._held[handle] = native
        return handle

    def _tell(self) -> None:
        """Tell of the second stream; no thread goes on to use one before all know it.

        Each thread that comes meanwhile tells them itself: nobody waits for another.
        """
        self.several = True
        for tell in self.when_several:
            tell()
        self._announced = True

    def get(self, handle: int) -> Any:
        """Return what to hold on to while the handle is used; None: it may be gone."""
        if handle in DEFAULT_STREAMS:
            return handle, "default"
        return self._held.get(handle)

    def retire(self) -> list[int]:
        """Let go of the streams that nobody else holds and whose work is done.

        Returns
        -------
        list of int
            Their handles: what was freed on them is free for all. None while a graph
            is captured: to ask a stream that joined it whether it is done ends that.
        """
        held = self._held
        if not held or self.captured or not self._retiring.acquire(blocking=False):
            return []
        try:
            handles = [handle for handle in list(held) if self._is_over(handle)]
            for handle in handles:
                calls.forget_stream(handle)  # before another may have it
                del held[handle]
        finally:
            self._retiring.release()
        return handles

    def _is_over(self, handle: int) -> bool:
        # Who alone holds a stream is the only one who could queue more work on it.
        [count] = references([self._held[handle]])
        alone = count == ALONE + 1  # the dict's
        return alone and bool(self._held[handle].done)


live_streams = LiveStreams()


def handle_of(stream: object) -> int:
    """Return a stream's handle, or raise TypeError or ValueError."""
    way = "use an int such as stream.ptr, or 0 for the default stream"
    try:
        handle = index(stream)  # type: ignore[arg-type]
    except TypeError:
        message = f"stream={stream!r} is not the handle of a stream: {way}"
        raise TypeError(message) from None
    if not 0 <= handle < HANDLES:
        raise ValueError(
            f"stream={handle} is not a handle, negative or too large: {way}"
        )
    return handle
