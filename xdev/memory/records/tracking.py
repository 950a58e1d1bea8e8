"""Who made the live blocks: frames kept raw, made into text when somebody asks."""

from __future__ import annotations

import atexit
import os
import sys
from collections import defaultdict
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, final

from xdev import _config
from xdev._forks import module_lock
from xdev._tracking import TRACKING
from xdev.device import as_device
from xdev.memory import hooks, registry
from xdev.memory.records import frames, leaks, traces
from xdev.memory.records.leaks import Outstanding, OutstandingLine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xdev.memory.blocks import Chunk
    from xdev.memory.records.traces import Asked

    #: Granted and asked size [B], when it was handed out [s], by whom.
    Record = tuple[int, int | None, float, frames.Frames]


@final
class Tracker:
    """Remembers every block that is handed out while it listens."""

    def __init__(self) -> None:
        self.live: defaultdict[Any, dict[int, Record]] = defaultdict(dict)

    def acquired(self, stock: Any, chunk: Chunk) -> None:
        """Remember the frames of a block."""
        record = chunk.nbytes, chunk.request, monotonic(), frames.stack(3)
        self.live[stock][chunk.address] = record

    def released(self, stock: Any, chunk: Chunk) -> None:
        """Forget a block."""
        self.live[stock].pop(chunk.address, None)

    def refused(self, stock: Any, nbytes: int) -> None:
        """Ignore refusals."""

    def grown(self, stock: Any, address: int, nbytes: int) -> None:
        """Ignore segments."""

    def returned(self, stock: Any, address: int, nbytes: int) -> None:
        """Ignore segments."""

    def largest(self, stock: Any, count: int) -> tuple[str, ...]:
        """Return the lines that hold the most of a pool."""
        lines = tuple(map(str, leaks.by_line(self.items({stock}))[:count]))
        before = f"{stock.ledger.allocated:,} B taken before tracking began"
        return lines or (before,)

    def frames_of(self, stock: Any) -> dict[int, frames.Frames]:
        """Return who made each live block of a pool, by address."""
        return {at: record[-1] for at, record in list(self.live[stock].items())}

    def items(self, stocks: Iterable[Any] | None = None) -> list[Outstanding]:
        """Return the live blocks of these stocks, or of all, in no order."""
        now, places, found = monotonic(), frames.Places(), []
        for stock in list(self.live) if stocks is None else stocks:
            for address, (nbytes, _, born, made) in list(self.live[stock].items()):
                lines = places.of(made)
                where = frames.maker(lines)
                texts = tuple(f"{file}:{line} in {name}" for file, line, name in lines)
                age, pool = now - born, stock.name
                block = Outstanding(where, nbytes, age, pool, address, texts)
                found.append(block)
        return found

    def of_numpy(self) -> Iterator[Asked]:
        """Return what NumPy asked the pools for, and they told us of."""
        places = frames.Places()
        for live in list(self.live.values()):
            for _, request, _, made in list(live.values()):
                asked = traces.asked_by_numpy(places.of(made), request)
                if asked is not None:
                    yield asked


TRACKER = Tracker()
_lock = module_lock()  # guards the two below, TRACKING and the subscription
_wanted: set[object] = set()  # by each track() that is open, and by the environment
_begun = False  # whether the environment was asked


def begin() -> None:
    """Track from the first use on, if ``XDEV_MEMORY_TRACK`` or ``XDEV_DEBUG`` says so.

    Raises
    ------
    ConfigurationError
        A variable's value is invalid; the text lists the valid ones.
    """
    global _begun  # noqa: PLW0603 - once a process
    if _begun:
        return
    with _lock:
        if not _begun:
            asked = _config.memory_track()
            if asked or _config.debug():
                start(begin)
            if asked == _config.AT_EXIT:
                atexit.register(_report_at_exit)
            _begun = True
            _settle()


def active() -> bool:
    """Say whether blocks are being tracked."""
    if not _begun:
        begin()
    return bool(_wanted)


def start(who: object) -> None:
    """Track from now on, until :func:`stop` of all who started."""
    with _lock:
        _wanted.add(who)
        _settle()


def stop(who: object) -> None:
    """Undo :func:`start`; after the last, what is known is forgotten."""
    with _lock:
        _wanted.discard(who)
        _settle()


def _settle() -> None:
    """Do what is wanted, whatever an interrupt left; called with the lock held."""
    hooks.replace(Tracker, TRACKER if _wanted else None)
    if not _wanted:
        TRACKER.live.clear()
    TRACKING.off = _begun and not _wanted


@contextmanager
def track() -> Iterator[None]:
    """Remember, while it is open, which line made each block.

    Host arrays of any size that xdev makes come from the pool meanwhile, so all are
    seen. The environment variable ``XDEV_MEMORY_TRACK=1`` tracks from the start on, and
    ``XDEV_MEMORY_TRACK=exit`` also prints the live blocks by line, on standard error,
    when the program ends.

    Examples
    --------
    >>> import xdev
    >>> with track():
    ...     x = xdev.empty(10, device="cpu")
    ...     len(outstanding("cpu"))
    1
    """
    who = object()
    try:
        try:
            start(who)
            yield
        finally:
            stop(who)
    except BaseException:
        stop(who)  # again: an interrupt may have come in the midst of it
        raise


def outstanding(device: object = None, kind: str | None = None) -> list[Outstanding]:
    """Return the live blocks that were made under :func:`track`.

    While Python's ``tracemalloc`` traces too, the CPU's host memory includes NumPy's
    own live buffers that were made since it was started; their age is not known, and
    it must keep several frames (``tracemalloc.start(8)``) to see past NumPy's lines.

    Parameters
    ----------
    device : Device or str, optional
        Whose; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; without one, all.

    Returns
    -------
    list of Outstanding
        ``str(item)`` starts with ``file:line``. The blocks of a line are together, the
        largest first; the line that holds the most comes first.
    """
    lines = outstanding_by_line(device, kind)
    return [block for line in lines for block in line.blocks]


def outstanding_by_line(
    device: object = None, kind: str | None = None
) -> list[OutstandingLine]:
    """Return the lines whose blocks, made under :func:`track`, are live.

    Parameters are :func:`outstanding`'s.

    Returns
    -------
    list of OutstandingLine
        The one that holds the most first. Each has ``where`` (``"file:line"``),
        ``count``, ``nbytes`` [B] and its ``blocks`` with their sizes and ages, and
        ``str(line)`` says it all.

    Examples
    --------
    >>> import xdev
    >>> with track():
    ...     kept = [xdev.empty(n, device="cpu", dtype=xdev.int8) for n in (64, 128)]
    ...     print(*outstanding_by_line("cpu"))
    <doctest ...>:2: 2 blocks, 192 B of cpu, 0.0 s old
    """
    pools = registry.existing(device, kind)
    stocks = {pool.stock for pool in pools}
    for stock in stocks:
        stock.decide(_nothing)  # what was dropped is drained
    found = TRACKER.items(stocks)
    numpys = kind != "pinned" and as_device(device).type == "cpu"
    if numpys and active():
        found += traces.buffers(TRACKER.of_numpy())
    return leaks.by_line(found)


def _nothing(_: object) -> None:
    """Decide nothing."""


def report() -> str:
    """Return the live blocks of all pools, by line."""
    for stock in list(TRACKER.live):
        stock.decide(_nothing)
    return leaks.report(TRACKER.items() + traces.buffers(TRACKER.of_numpy()))


def _report_at_exit() -> None:
    """Write the report; a program must not end otherwise because it was asked for."""
    with suppress(Exception):
        sys.stderr.write(f"{report()}\n")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TRACKER.live.clear)
