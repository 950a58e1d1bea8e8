"""``Pool``: blocks of one source's memory, kept and handed out again; in arenas too."""

from __future__ import annotations

from collections import deque
from operator import index
from sys import is_finalizing
from typing import TYPE_CHECKING, NoReturn, final

from xdev.device.streams import handle_of
from xdev.errors import UseAfterFreeError, quoted
from xdev.memory import hooks, policies
from xdev.memory.accounting import ChunkStates
from xdev.memory.blocks import Heap
from xdev.memory.reclamation import allocate_with_retry, enough_bytes
from xdev.memory.state import PoolState
from xdev.memory.upstream import Budget, source_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.memory.accounting import PoolStats
    from xdev.memory.blocks import Chunk, Policy
    from xdev.memory.sources import Source

    Acquire = Callable[[int], "Block"]

ADDRESSES = 1 << 63  # no request is as large as this [B]


@final
class Block:
    """Memory in use, from :meth:`Pool.acquire`; its last reference gives it back.

    Attributes
    ----------
    address : int
        Where it starts.
    nbytes : int
        The granted size: at least what was asked for [B].

    Examples
    --------
    >>> from xdev import memory, testing
    >>> pool = memory.Pool(testing.FakeSource(capacity=1 << 20), "binned")
    >>> pool.acquire(1000).nbytes
    1024
    """

    __slots__ = ("_held", "address", "chunk", "nbytes")

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk  # None after a release,
        self._held = True  # which deletes this
        self.address, self.nbytes = chunk.address, chunk.nbytes

    def __del__(self) -> None:
        try:
            chunk = self.chunk
        except AttributeError:  # an exception came before it had any
            return
        if chunk is not None:
            chunk.release(chunk)

    def __repr__(self) -> str:
        return f"Block(address={self.address:#x}, nbytes={self.nbytes})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Block is memory of this process: it cannot be pickled")


@final
class Pool:
    """A cache in front of a source: blocks that come back are handed out again.

    Every method may be called from any thread, and takes in first what was dropped
    since the last call. A pool lives as long as blocks of it do.

    Parameters
    ----------
    source : Source
        Where memory comes from.
    policy : str or Policy
        ``"split"`` (best fit, split, merge), ``"binned"`` (eight classes per
        doubling), ``"simple"`` (first fit), ``"none"`` (nothing is kept) or
        ``"async"`` (the driver's own pool keeps it, in the order of streams).
    limit : int, float, str or None
        The most to hold from the source: bytes, ``"4GiB"``, ``"80%"`` or 0.8 of its
        ``total()``.
    name : str, optional
        Whose memory it is, for messages.
    budget : Budget, optional
        A limit shared with other pools, in place of ``limit``.

    Raises
    ------
    TypeError
        ``source`` is not a source.
    ConfigurationError
        No such policy, or no such limit: the text lists the valid ones. Or the policy
        is ``"async"``, and the source has no memory in stream order.

    Examples
    --------
    >>> from xdev.testing import FakeSource
    >>> pool = Pool(FakeSource(capacity=1 << 30), limit="1 GiB")
    >>> block = pool.acquire(1000)
    >>> block.nbytes, pool.stats().allocated
    (1024, 1024)
    >>> del block
    >>> pool.stats().allocated, pool.reclaim(), pool.stats().reserved
    (0, 2097152, 0)
    """

    def __init__(
        self,
        source: Source,
        policy: str | Policy = "split",
        limit: float | str | None = None,
        *,
        name: str | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.name = name or str(getattr(source, "name", type(source).__name__))
        if budget is None:
            budget = Budget(getattr(source, "total", int))
            budget.set(limit)
        elif not isinstance(budget, Budget):
            raise TypeError(f"{quoted(budget)} is not a budget: give limit=nbytes")
        rules = policies.named(policy)
        #: What the pool holds.
        self.state = PoolState(source_for(source, rules), rules, budget, self.name)
        self._release, self._quiet = self.state.release, rules.keeps
        self._zone = rules.zone
        self._recent: deque[Chunk] | tuple[()] = ()  # set by heed_limit
        budget.join(self)
        self.heed_limit()
        hooks.join(self)

    def acquire(self, nbytes: int, stream: int = 0) -> Block:
        """Return a block of at least ``nbytes``.

        Parameters
        ----------
        nbytes : int
            The size wanted [B].
        stream : int
            The stream whose queued work will use it; 0 is the default stream.

        Returns
        -------
        Block
            Its ``address``, and its granted size ``nbytes`` [B].

        Raises
        ------
        OutOfMemoryError
            No step of the ladder could serve it.
        TypeError
            ``nbytes`` or ``stream`` is not an int.
        ValueError
            ``nbytes`` is negative, or larger than an address; ``stream`` is negative.

        Examples
        --------
        >>> from xdev.testing import FakeSource
        >>> pool = Pool(FakeSource(capacity=1 << 30))
        >>> block = pool.acquire(1000)
        >>> block.nbytes, pool.allocated
        (1024, 1024)
        """
        if not (isinstance(nbytes, int) and isinstance(stream, int)):
            nbytes, stream = index(nbytes), handle_of(stream)
        block = Block(self.take(nbytes, stream))
        if self._zone:  # the rest is a red zone
            block.nbytes = max(1, nbytes)
        return block

    def take(self, nbytes: int, stream: int = 0) -> Chunk:
        """Return a chunk in use; who takes it calls ``chunk.release(chunk)`` once."""
        recent = self._recent
        if recent:
            # The last chunk dropped is the next one wanted, in a steady loop: in use
            # before and after, so nothing is to be counted and no lock is needed.
            try:
                chunk = recent.pop()
            except IndexError:  # another thread was faster
                return self._serve(nbytes, stream)
            if chunk.request == nbytes and chunk.stream == stream:
                chunk.reuses += 1
                if self.state.listeners and not is_finalizing():
                    for listener in self.state.listeners:
                        listener.released(self.state, chunk)
                        listener.acquired(self.state, chunk)
                return chunk
            recent.append(chunk)
        return self._serve(nbytes, stream)

    def take_for_c(self, nbytes: int, stream: int) -> tuple[Chunk, int]:
        """Take a chunk for the native free lists, and its class; 0 for none [B].

        Raises
        ------
        OutOfMemoryError
            No step of the ladder could serve it.
        """
        chunk = self.take(nbytes, stream)
        request = chunk.request
        size = 0 if request is None else self.state.heap.granted(request)
        chunk.request = None  # it may serve any of its class
        return chunk, size

    def refill(self, nbytes: int, stream: int) -> bool:
        """Put a free block of the very class into the native free lists.

        Say whether it is there.

        Raises
        ------
        OutOfMemoryError
            No step of the ladder could serve it.
        """
        state = self.state
        if state.free_lists is None or state.listeners or state.over_limit:
            return False
        chunk, size = self.take_for_c(nbytes, stream)
        if state.free_lists.adopt(chunk, size, free=True):
            return True
        chunk.release(chunk)
        return False

    def _serve(self, nbytes: int, stream: int) -> Chunk:
        nbytes, stream = index(nbytes), handle_of(stream)
        if not 0 <= nbytes < ADDRESSES:
            message = f"a block of {nbytes} B is not possible: ask for 0 to 2**63 - 1"
            raise ValueError(message)
        state = self.state
        if state.over_limit:  # there may be room again
            self.heed_limit()
        chunk = None
        if self._quiet and not state.over_limit:
            chunk = state.hit(nbytes, stream)
        if chunk is None:
            chunk = allocate_with_retry(state, max(1, nbytes), stream)
        if state.listeners and not is_finalizing():
            for listener in state.listeners:
                listener.acquired(state, chunk)
        return chunk

    def release(self, block: Block) -> None:
        """Give a block back at once.

        Parameters
        ----------
        block : Block
            From :meth:`acquire` of this pool.

        Raises
        ------
        UseAfterFreeError
            It was released before.
        ValueError
            It is not a block of this pool.

        Examples
        --------
        >>> from xdev.testing import FakeSource
        >>> pool = Pool(FakeSource(capacity=1 << 30))
        >>> block = pool.acquire(1000)
        >>> pool.release(block)
        >>> pool.allocated, pool.reserved
        (0, 2097152)
        """
        try:
            chunk = block.chunk
            if chunk.release is not self._release:
                raise self._foreign(block)
            del block._held  # noqa: SLF001 - one step: of two threads, one gets past it
            block.chunk = None  # type: ignore[assignment]
        except AttributeError:
            if not isinstance(block, Block):
                raise self._foreign(block) from None
            message = f"{self.name}: {block!r} was released before"
            raise UseAfterFreeError(message) from None
        chunk.release(chunk)
        if not self._quiet:
            self.state.process_pending()

    def _foreign(self, block: object) -> ValueError:
        return ValueError(f"{self.name}: {quoted(block)} is not a block of this pool")

    def reclaim(self, nbytes: int | None = None) -> int:
        """Give cached memory back to the source.

        Parameters
        ----------
        nbytes : int, optional
            How much is enough [B]; None gives back all that can be.

        Returns
        -------
        int
            How much went back: at least ``nbytes``, or all that could [B].

        Raises
        ------
        TypeError
            ``nbytes`` is neither an int nor None.
        ValueError
            ``nbytes`` is negative.

        Examples
        --------
        >>> from xdev.testing import FakeSource
        >>> pool = Pool(FakeSource(capacity=1 << 30))
        >>> pool.release(pool.acquire(1000))
        >>> pool.reclaim(), pool.reserved
        (2097152, 0)
        """
        return self.state.reclaim(enough_bytes(nbytes))

    def stats(self) -> PoolStats:
        """Return the ledger's totals, and what the blocks are by size.

        Returns
        -------
        PoolStats
            ``allocated``, ``reserved``, ``cached``, their peaks, and more.

        Examples
        --------
        >>> from xdev.testing import FakeSource
        >>> pool = Pool(FakeSource(capacity=1 << 30))
        >>> block = pool.acquire(1000)
        >>> stats = pool.stats()
        >>> stats.allocated, stats.cached, stats.live
        (1024, 2096128, 1)
        """
        state = self.state
        state.sweep()
        return state.look(lambda h, ledger: ledger.look(*ChunkStates(state, h).count()))

    @property
    def budget(self) -> Budget:
        """The limit, and how much of it is used."""
        return self.state.budget

    @property
    def allocated(self) -> int:
        """Bytes in use [B]."""
        self.state.sweep()
        return self.state.look(lambda _, ledger: ledger.allocated)

    @property
    def reserved(self) -> int:
        """Bytes held from the source [B]."""
        return self.state.look(lambda _, ledger: ledger.reserved)

    def find(self, address: int) -> Chunk | None:
        """Return the chunk that an address lies in, or None."""
        return self.state.decide(lambda heap: heap.find(address))

    def watch(self, listeners: tuple[hooks.Listener, ...]) -> None:
        """Tell these of every block; while there are any, no block passes unseen."""
        self.state.listeners = listeners
        self.heed_limit()

    def heed_limit(self) -> None:
        """Close the quick ways to free memory while more is held than the limit allows:
        what is free then passes by the budget, block by block.

        That of C clients also while somebody listens.
        """
        state = self.state
        over_limit = None
        while over_limit != (state.budget.excess > 0):  # it may change meanwhile
            over_limit = state.over_limit = state.budget.excess > 0
            self._recent = state.pending if self._quiet and not over_limit else ()
            if state.free_lists is not None:
                state.free_lists.bar(over_limit or bool(state.listeners))

    def after_fork(self) -> None:
        """Start empty in a forked child; what the parent made stays where it is."""
        old = self.state
        old.inherited = True
        old.budget.after_fork()
        getattr(old.source, "after_fork", tuple)()
        self.state = PoolState(old.source, old.policy, old.budget, old.name)
        self._release = self.state.release
        if old.free_lists is not None:
            old.free_lists.inherit()
            self.state.put_lists(old.free_lists)
        self.watch(old.listeners)

    def __dir__(self) -> list[str]:
        """Return what is for users: Tab offers it."""
        verbs = "acquire", "reclaim", "release", "stats"
        return ["allocated", "name", "reserved", *verbs]

    def __repr__(self) -> str:
        return f"Pool({self.name!r}, policy={self.state.policy.name!r})"


@final
class Part:
    """A piece of an arena in use; it keeps its block of a pool, and no other."""

    __slots__ = ("_chunk", "_returned", "address", "block", "nbytes")

    def __init__(self, chunk: Chunk, block: Block, returned: deque[Chunk]) -> None:
        self._chunk, self.block, self._returned = chunk, block, returned
        self.address, self.nbytes = chunk.address, chunk.nbytes

    @staticmethod
    def release(part: Part) -> None:
        """Take a part back, as ``Chunk.release`` does: without a lock."""
        part._returned.append(part._chunk)


@final
class Arena:
    """Blocks of a pool, divided among the allocations of one captured graph.

    What a graph's work allocates has to stay where it is for every replay: a part that
    comes back serves the arena's next request, and no one else. Dropping the arena
    drops its blocks, but those of parts that are still in use, which stay until these
    go. One thread at a time takes from it, and any may give back. Parts start at
    multiples of ``quantum`` from their block's start [B].
    """

    def __init__(self, quantum: int = 512) -> None:
        self._heap = Heap(policies.named("split"), quantum)
        self._returned: deque[Chunk] = deque()
        # By address. Not the segments' owners: those are in cycles, and blocks must go
        # with their last reference.
        self._blocks: dict[int, Block] = {}

    def take(self, acquire: Acquire, nbytes: int, stream: int = 0) -> Part:
        """Return a part for work on a stream; where none is free, of a block acquired.

        What another stream of the capture gave back is not handed out: nothing orders
        the two.
        """
        heap, nbytes = self._heap, max(1, nbytes)
        while self._returned:
            heap.restore((self._returned.popleft(),))
        chunk = heap.take(nbytes, stream, anywhere=True)
        if chunk is None:
            block = acquire(heap.granted(nbytes))
            self._blocks[block.address] = block
            chunk = heap.adopt(block.address, block.nbytes, None, nbytes, stream)
        return Part(chunk, self._blocks[chunk.segment.address], self._returned)

    @property
    def blocks(self) -> list[Block]:
        """The pool's blocks that it holds."""
        return list(self._blocks.values())
