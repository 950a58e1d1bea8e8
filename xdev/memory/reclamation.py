"""Making room: what a pool does, in order, to serve a request, and what goes back.

Each step of the ladder makes room (or not), then tries. The first steps are the
ordinary way; from :data:`FIRST_RETRY` on, the source or the limit has refused once.

Library calls take device memory past the pool: cuFFT's plans, cuBLAS's and cuSOLVER's
handles come straight from the driver. Where it has no memory left the pool may still
hold some that nobody uses: :func:`retrying` gives that back and calls once more.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import partial, wraps
from math import inf
from operator import index, methodcaller
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, final

from xdev.device.choice import names_device
from xdev.device.streams import live_streams
from xdev.errors import OutOfMemoryError, quoted
from xdev.memory import hooks
from xdev.memory.blocks import Heap, lost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xdev.memory.blocks import Chunk
    from xdev.memory.pools import Pool
    from xdev.memory.state import PoolState

    #: What comes of a try: a chunk in use, None, or the source's error.
    Tries = Iterator[Chunk | MemoryError | None]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
TRIMMED = 32 << 20  # wholly free segments from here go back before the pool grows [B]
HOLDERS = 5  # how many lines a refusal names as the largest holders


def ladder(state: PoolState, nbytes: int, stream: int) -> Tries:
    """Make room and try to serve a request, step by step."""
    policy, granted = state.policy, state.heap.granted(nbytes)

    def exact() -> Tries:
        """Try a new segment of the granted size, or of the very size where it is less.

        Before that all of this stream's free memory, in segments of any size.
        """
        yield state.cached(nbytes, stream, anywhere=True)
        yield state.grow(nbytes, stream, granted)
        if nbytes < granted:
            yield state.grow(nbytes, stream, nbytes)

    yield state.cached(nbytes, stream, anywhere=False)
    # Other streams' large free segments of like size, before they are trimmed: then one
    # stream waits for another, where for a return to the driver all wait, and the host.
    # While a graph is captured, no stream may wait for one outside it.
    if not live_streams.captured:
        yield state.steal(nbytes, stream, TRIMMED)
    if nbytes > policy.small:  # small requests need no room
        state.return_segments(least=TRIMMED)
    yield state.grow(nbytes, stream, policy.grown(granted, state.quantum))
    state.count("retries")
    yield from exact()
    give_back_all(state)
    yield from exact()
    yield state.steal(nbytes, stream)
    state.collect()
    yield from exact()
    yield state.steal(nbytes, stream)
    state.synchronize(stream)
    yield state.cached(nbytes, stream, anywhere=True)
    yield state.steal(nbytes, stream)
    give_back_all(state)
    yield from exact()
    if hooks.spillers:
        spill(state, nbytes)
        yield from exact()


def give_back_all(state: PoolState) -> None:
    """Give back everything that is wholly free, other pools of the device too: its
    memory is one.
    """
    state.give_back()
    for pool in state.budget.pools():
        if pool.state is not state:
            pool.reclaim()


def spill(state: PoolState, nbytes: int) -> None:
    """Have live objects written elsewhere until the request would fit."""
    goal = state.ledger.allocated - nbytes
    for spiller in tuple(hooks.spillers):
        while state.ledger.allocated > goal and spiller():
            give_back_all(state)


def allocate_with_retry(state: PoolState, nbytes: int, stream: int) -> Chunk:
    """Return a chunk for a request, or raise OutOfMemoryError."""
    reason: MemoryError | None = None
    if state.process_pending() is None:  # for a finalizer in the middle of a decision
        tries: Tries = iter([state.serve_apart(nbytes, stream)])
    else:
        tries = ladder(state, nbytes, stream)
        state.deferred.see_stream(stream)
        if state.budget.excess:
            state.budget.shrink()
    for result in tries:
        if isinstance(result, MemoryError):
            reason = result
        elif result is not None:
            return result
    raise refusal(state, nbytes) from reason


def refusal(state: PoolState, nbytes: int, library: str = "") -> OutOfMemoryError:
    """Return the error of a request that could not be served, and count it.

    ``library`` is what a library said that allocates for itself.
    """
    state.count("refusals")
    holders: tuple[str, ...] = ()
    for listener in state.listeners:
        listener.refused(state, nbytes)
        holders = holders or listener.largest(state, HOLDERS)
    held = state.ledger.allocated, state.ledger.reserved, state.budget.limit
    return OutOfMemoryError(state.name, nbytes, *held, holders, library)


def taken(queue: deque[T]) -> Iterator[T]:
    """Take out what is in a queue now."""
    for _ in range(len(queue)):
        with suppress(IndexError):  # another thread was faster, or a finalizer
            yield queue.popleft()


@final
class DeferredFrees:
    """What a state may not hand out yet.

    A chunk that was marked is *dropped* here without a driver call, since that may be
    in a finalizer; later an event is recorded on each stream that uses it, and when all
    are done the chunk is free. Until then its ``uses`` say so: where an exception comes
    between, :meth:`PoolState.mend` drops it here again. All methods but :meth:`drop`
    and :meth:`chunks` are parts of moves; a finalizer in the same thread may still get
    between.
    """

    def __init__(self, state: PoolState) -> None:
        self._state = state
        self._dropped: deque[Chunk] = deque()
        self._recorded: deque[tuple[list[Any], Chunk]] = deque()
        self._first: int | None = None  # the first stream that asked
        self._several = False  # whether another has

    def drop(self, chunk: Chunk) -> None:
        """Take a marked chunk that came back."""
        chunk.release = lost  # nobody has it, whatever refers to it
        self._dropped.append(chunk)

    def chunks(self) -> list[Chunk]:
        """Return all that waits."""
        return [*self._dropped, *(chunk for _, chunk in list(self._recorded))]

    def process_events(self) -> None:
        """Record what was dropped, and free whose events are done."""
        if not (self._dropped or self._recorded):
            return
        source = self._state.source
        # An event of a stream that joined a capture would be part of the graph, and to
        # ask whether it is done ends the capture.
        for chunk in () if live_streams.captured else taken(self._dropped):
            events = [source.record(use) for use in chunk.uses or ()]
            self._state.count("events", len(events))
            self._recorded.append((events, chunk))
        for events, chunk in taken(self._recorded):
            if all(map(source.done, events)):
                self._state.decide(partial(self._put, chunk))
            else:
                self._recorded.append((events, chunk))

    def _put(self, chunk: Chunk, heap: Heap) -> None:
        chunk.uses, chunk.release = None, self._state.release
        heap.put(chunk)

    def synchronize(self) -> list[Chunk]:
        """Wait for all queued work; return the chunks that are free after it."""
        recorded, self._recorded = self._recorded, deque()
        self._state.source.synchronize()
        chunks = [chunk for _, chunk in recorded]
        for chunk in chunks:
            chunk.uses = None
        return chunks

    def see_stream(self, stream: int) -> None:
        """Note who asks, and let it have the memory of streams that ended.

        What of it is in use as well: the next stream may have the handle, and is seen
        when it asks for more, or is marked.

        Before the second stream nobody looks where blocks are used: what is live then
        may be in use by the very call that asks.
        """
        state = self._state
        if self._first is None:
            self._first = stream
        elif stream != self._first and not self._several:
            for chunk in state.decide(Heap.unlisted) or ():
                state.mark(chunk, (stream,))
            self._several = True  # not before: an exception may come between
        for handle in getattr(state.source, "retired", tuple)():
            for chunk in state.decide(methodcaller("inherit", handle, stream)) or ():
                state.mark(chunk, (stream,))


def enough_bytes(nbytes: int | None) -> float:
    """Return how much a reclaim shall give back, or raise TypeError or ValueError."""
    if nbytes is None:
        return inf
    try:
        enough = index(nbytes)
    except TypeError:
        device = nbytes if names_device(nbytes) else "cpu"
        way = f"2**30, or None for all; and a device by name, device='{device}'"
        text = f"{quoted(nbytes)} cannot be reclaimed: give bytes as an int, such as"
        raise TypeError(f"{text} {way}") from None
    if enough < 0:
        raise ValueError(f"{nbytes} B cannot be reclaimed: ask for 0 or more, or None")
    return enough


SCANT = 256 << 20  # a library that only failed had too little if less is left [B]
#: By the name of an error, whose library need not be loaded to be known: where it keeps
#: its code; which codes say that there was no memory; in which ones a failed allocation
#: may end as well, above all the making of a handle.
CODES: dict[str, tuple[str, set[int], set[int]]] = {
    "CUDARuntimeError": ("status", {2}, set()),  # memory allocation
    "CUDADriverError": ("status", {2}, set()),  # out of memory
    "CuFFTError": ("result", {2}, {5}),  # allocation failed; internal error
    # allocation failed; not initialised (in this order from here on)
    "CUBLASError": ("status", {3}, {1}),
    "CUSOLVERError": ("status", {2}, {1}),
    "CuSparseError": ("status", {2}, {1}),
    "CURANDError": ("status", {102}, {203}),
}


def retrying(call: Callable[P, R], pool: Callable[[], Pool]) -> Callable[P, R]:
    """Return a function that makes room in the device's memory and calls once more.

    As long as the call goes well, nothing is added to it but one frame.

    Parameters
    ----------
    call : callable
        Leaves everything as it was when it fails for want of memory.
    pool : callable
        Returns the pool of the device that it works on.

    Returns
    -------
    callable
        It raises what ``call`` raises, and OutOfMemoryError where the second try fails
        for want of memory too.

    Examples
    --------
    >>> from xdev.memory.pools import Pool
    >>> from xdev.memory.sources.fake import FakeSource
    >>> class CuFFTError(RuntimeError):
    ...     result = 2
    >>> source = FakeSource(capacity=4096)
    >>> pool = Pool(source, "simple")
    >>> pool.release(pool.acquire(4096))  # the pool keeps it
    >>> def plan():
    ...     if source.lent:
    ...         raise CuFFTError("CUFFT_ALLOC_FAILED")
    ...     return "planned"
    >>> retrying(plan, lambda: pool)(), pool.stats().retries
    ('planned', 1)
    """

    @wraps(call)
    def attempt(*args: P.args, **options: P.kwargs) -> R:
        try:
            return call(*args, **options)
        except RuntimeError as error:
            if not lacks_memory(error):
                raise
        # Past the handler: what the failed call's frames held is free.
        owner = pool()
        owner.state.count("retries")
        owner.state.collect()
        owner.reclaim()
        try:
            return call(*args, **options)
        except RuntimeError as error:
            room, _ = owner.state.source.room()  # type: ignore[union-attr]
            if not lacks_memory(error, likely=room < SCANT):
                raise
            raise refusal(owner.state, 0, str(error)) from error

    return attempt


def lacks_memory(error: RuntimeError, *, likely: bool = True) -> bool:
    """Say whether a library's error is for want of memory; ``likely``, or surely."""
    attribute, sure, probable = CODES.get(type(error).__name__, ("", set(), set()))
    code = getattr(error, attribute, None)
    return code in sure or (likely and code in probable)
