"""``Pool``: blocks of one source's memory, kept and handed out again."""

from __future__ import annotations

from functools import partial
from operator import index
from typing import TYPE_CHECKING, NoReturn, final

from xdev.errors import ConfigurationError, UseAfterFreeError
from xdev.memory import hooks, policies
from xdev.memory.budgets import Budget
from xdev.memory.ladder import climb
from xdev.memory.stock import Stock

if TYPE_CHECKING:
    from collections import deque

    from xdev.memory.blocks import Chunk
    from xdev.memory.heap import Heap
    from xdev.memory.ledger import Ledger, PoolStats, Scope
    from xdev.memory.sources import Source

ADDRESSES = 1 << 63  # no request is as large as this [B]


@final
class Block:
    """Memory in use; dropping the last reference gives it back.

    Attributes
    ----------
    address : int
        Where it starts.
    nbytes : int
        The granted size: at least what was asked for [B].
    """

    __slots__ = ("address", "chunk", "nbytes")

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk  # deleted by a release
        self.address, self.nbytes = chunk.address, chunk.nbytes

    def __del__(self) -> None:
        chunk = getattr(self, "chunk", None)
        if chunk is not None:
            chunk.give(chunk)

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
    policy : str
        ``"split"`` (best fit, split, merge), ``"binned"`` (eight classes per
        doubling), ``"simple"`` (first fit) or ``"none"`` (nothing is kept).
    limit : int, str or None
        The most to hold from the source: bytes, ``"4GiB"``, ``"80%"`` of its
        ``total()``.
    name : str, optional
        Whose memory it is, for messages.
    budget : Budget, optional
        A limit shared with other pools, in place of ``limit``.

    Raises
    ------
    ConfigurationError
        No such policy, or no such limit; the text lists the valid ones.

    Examples
    --------
    >>> from xdev.memory.sources.fake import FakeSource
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
        policy: str = "split",
        limit: int | str | None = None,
        *,
        name: str | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.name = name or str(getattr(source, "name", type(source).__name__))
        if budget is None:
            budget = Budget(getattr(source, "total", partial(_no_total, self.name)))
            budget.set(limit)
        self._stock = Stock(source, policies.named(policy), budget, self.name)
        self._give = self._stock.give
        self._quiet = False  # set by watch
        self._recent: deque[Chunk] | tuple[()] = ()
        hooks.join(self)
        budget.pools.add(self)

    def acquire(self, nbytes: int, stream: int = 0) -> Block:
        """Return a block of at least ``nbytes``.

        Parameters
        ----------
        nbytes : int
            The size wanted [B].
        stream : int
            The stream whose queued work will use it; 0 is the default stream.

        Raises
        ------
        OutOfMemoryError
            No step of the ladder could serve it.
        TypeError
            ``nbytes`` or ``stream`` is no int.
        ValueError
            ``nbytes`` is negative, or larger than an address; ``stream`` is negative.
        """
        return Block(self.take(nbytes, stream))

    def take(self, nbytes: int, stream: int = 0) -> Chunk:
        """Return a chunk in use; whoever takes it calls ``chunk.give(chunk)`` once."""
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
                return chunk
            recent.append(chunk)
        return self._serve(nbytes, stream)

    def _serve(self, nbytes: int, stream: int) -> Chunk:
        nbytes = index(nbytes)
        if not 0 <= nbytes < ADDRESSES:
            message = f"a block of {nbytes} B is not possible: ask for 0 to 2**63 - 1"
            raise ValueError(message)
        stock = self._stock
        found = stock.hit(nbytes, stream)
        if found is True:
            chunk = climb(stock, max(1, nbytes), _handle(stream))
        elif found is False:
            stray = stock.stray(max(1, nbytes), _handle(stream))
            if stray is None:
                raise stock.refuse(nbytes)
            chunk = stray
        else:
            chunk = found
        for listener in stock.listeners:
            listener.acquired(stock, chunk)
        return chunk

    def release(self, block: Block) -> None:
        """Give a block back at once.

        Raises
        ------
        UseAfterFreeError
            It was released before.
        ValueError
            It is no block of this pool.
        """
        try:
            chunk = block.chunk
            if chunk.give is not self._give:
                raise self._foreign(block)
            del block.chunk  # one step: of two threads, one gets past it
        except AttributeError:
            if not isinstance(block, Block):
                raise self._foreign(block) from None
            message = f"{self.name}: {block!r} was released before"
            raise UseAfterFreeError(message) from None
        chunk.give(chunk)
        if not self._quiet:
            self._stock.tend()

    def _foreign(self, block: object) -> ValueError:
        return ValueError(f"{self.name}: {block!r} is no block of this pool")

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
        """
        nbytes = enough_bytes(nbytes)
        stock = self._stock
        stock.tend()
        _, freed = stock.give_back(nbytes)
        enough = nbytes is not None and freed >= nbytes
        if not enough and stock.ledger.reserved > stock.ledger.allocated:
            stock.synchronize()  # what waits for queued work is free after it
            rest = None if nbytes is None else nbytes - freed
            freed += stock.give_back(rest)[1]
        return freed

    def stats(self) -> PoolStats:
        """Return the ledger's totals."""

        def view(heap: Heap, ledger: Ledger) -> PoolStats:
            reuses = reused_bytes = 0
            for segment in heap:
                for chunk in segment:
                    reuses += chunk.reuses
                    reused_bytes += chunk.reuses * chunk.nbytes
            return ledger.look(reuses=reuses, reused_bytes=reused_bytes)

        return self._stock.look(view)

    @property
    def stock(self) -> Stock:
        """What the pool holds, for reports."""
        return self._stock

    def holds(self, stock: Stock) -> bool:
        """Say whether this is the pool's stock."""
        return stock is self._stock

    @property
    def budget(self) -> Budget:
        """The limit, and how much of it is used."""
        return self._stock.budget

    @property
    def allocated(self) -> int:
        """Bytes in use [B]."""
        return self._stock.look(lambda _, ledger: ledger.allocated)

    @property
    def reserved(self) -> int:
        """Bytes held from the source [B]."""
        return self._stock.look(lambda _, ledger: ledger.reserved)

    def open_scope(self) -> Scope:
        """Return the peaks from now on; they are final after :meth:`close_scope`."""
        return self._stock.look(lambda _, ledger: ledger.open())

    def close_scope(self, scope: Scope) -> None:
        """Stop following the peaks."""
        self._stock.look(lambda _, ledger: ledger.close(scope))

    def reset_peak(self) -> None:
        """Start the peaks afresh."""
        self._stock.look(lambda _, ledger: ledger.reset_peak())

    def find(self, address: int) -> Chunk | None:
        """Return the chunk that an address lies in, or None."""
        return self._stock.look(lambda heap, _: heap.find(address))

    def watch(self, listeners: tuple[hooks.Listener, ...]) -> None:
        """Tell these of every block; while there are any, no block passes unseen."""
        stock = self._stock
        stock.listeners = listeners
        self._quiet = stock.policy.keeps and not listeners
        self._recent = stock.pending if self._quiet else ()

    def after_fork(self) -> None:
        """Start empty in a forked child; what the parent made stays where it is."""
        old = self._stock
        old.inherited = True
        old.budget.after_fork()
        self._stock = Stock(old.source, old.policy, old.budget, old.name)
        self._give = self._stock.give
        self.watch(old.listeners)

    def __repr__(self) -> str:
        return f"Pool({self.name!r}, policy={self._stock.policy.name!r})"


def enough_bytes(nbytes: int | None) -> int | None:
    """Return how much a reclaim shall give back, or raise TypeError or ValueError."""
    if nbytes is None:
        return None
    try:
        enough = index(nbytes)
    except TypeError:
        message = f"{nbytes!r} cannot be reclaimed: give bytes as an int, such as 2**30"
        raise TypeError(f"{message}, or None for all") from None
    if enough < 0:
        message = f"{nbytes} B cannot be reclaimed: ask for 0 or more, or None"
        raise ValueError(message)
    return enough


def _handle(stream: int) -> int:
    """Return a stream's handle, or raise TypeError or ValueError."""
    way = "use an int such as stream.ptr, or 0 for the default stream"
    try:
        handle = index(stream)
    except TypeError:
        message = f"stream={stream!r} is not the handle of a stream: {way}"
        raise TypeError(message) from None
    if handle < 0:
        raise ValueError(f"stream={handle} is negative, no handle is: {way}")
    return handle


def _no_total(name: str) -> int:
    """Stand in for the total of a source that names none."""
    message = f"{name} has no total() that a share could be of: give the limit in bytes"
    raise ConfigurationError(f'{message} (4294967296), or as a size ("4GiB")')
