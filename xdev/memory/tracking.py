"""Who made the live blocks: frames kept raw, made into text when somebody asks.

Beside them stand NumPy's own live buffers, by line: what ``tracemalloc`` knows while it
traces. NumPy tells it of every buffer, its own and those that the pool serves through
the bridge; the latter are the pool's, and are left out there.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections import Counter, defaultdict
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import attrgetter
from time import monotonic
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _config
from xdev._config import TRACKING
from xdev._forks import module_lock
from xdev.device import as_device
from xdev.memory import bridges, hooks, registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import CodeType

    from xdev.memory.blocks import Chunk

    #: Code and instruction in turn, a pair a frame, innermost first: flat, since
    #: pairs of their own would cost a third of the time.
    Frames = list[Any]
    Place = tuple[str, int, str]

    #: The innermost line outside the pool, and the size that was asked for [B].
    Asked = tuple[str, int, int | None]

DEPTH = 8  # frames kept of each block, and more up to the first outside the libraries
#: Frames of these are not where a user's array was made.
LIBRARIES = (
    *("xdev", "numpy", "cupy", "cupyx", "numba", "numba_cuda", "cuda", "dask"),
    *("array_api_compat", "array_api_strict", "scipy", "torch"),
)


def stack(skip: int) -> Frames:
    """Return the calling frames but the innermost ``skip``."""
    frame: Any = sys._getframe(skip)  # noqa: SLF001 - the one way that costs under 1 us
    frames: Frames = []
    for _ in range(DEPTH):
        frames.append(frame.f_code)
        frames.append(frame.f_lasti)
        frame = frame.f_back
        if frame is None:
            return frames
    while frame is not None and is_library(frames[-2].co_filename):
        frames += frame.f_code, frame.f_lasti
        frame = frame.f_back
    return frames


@cache
def is_library(filename: str) -> bool:
    """Say whether a file belongs to xdev or an array library."""
    modules = map(sys.modules.get, LIBRARIES)
    folders = (folder for m in modules for folder in getattr(m, "__path__", ()))
    return filename.startswith(tuple(f"{folder}{os.sep}" for folder in folders))


@lru_cache(4096)
def line_of(code: CodeType, instruction: int) -> int:
    """Return the source line of an instruction."""
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


def places_of(frames: Frames) -> list[Place]:
    """Return file, line and function of frames."""
    pairs = zip(frames[::2], frames[1::2], strict=True)
    return [(code.co_filename, line_of(code, at), code.co_name) for code, at in pairs]


def maker(places: Iterable[Place]) -> str:
    """Return ``file:line`` of the first place outside the libraries, innermost first.

    Where all are inside, the innermost is it.
    """
    every = list(places)
    outside = (place for place in every if not is_library(place[0]))
    file, line, _ = next(outside, every[0])
    return f"{file}:{line}"


def origin(frames: Frames) -> str:
    """Return ``file:line`` of the first frame outside the libraries."""
    return maker(places_of(frames))


@final
@dataclass(frozen=True, slots=True)
class Outstanding:
    """One live block.

    Parameters
    ----------
    where : str
        ``"file:line"`` of the first frame outside xdev and the array libraries.
    nbytes : int
        Its granted size; of NumPy's own memory, the size that was asked for [B].
    age : float or None
        Time since it was handed out [s]; None where it is not known.
    pool : str
        Whose memory it is.
    address : int or None
        Where it starts; None where it is not known.
    frames : tuple of str
        ``"file:line in function"``, innermost first.

    Examples
    --------
    >>> print(Outstanding("mine.py:7", 4096, 0.52, "cpu", 0x1000, ()))
    mine.py:7: 4,096 B of cpu, 0.5 s old
    """

    where: str
    nbytes: int
    age: float | None
    pool: str
    address: int | None
    frames: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.where}: {self.nbytes:,} B of {self.pool}{_aged([self])}"


@final
@dataclass(frozen=True, slots=True)
class OutstandingLine:
    """The live blocks of one pool that one line made.

    Parameters
    ----------
    where : str
        ``"file:line"``.
    pool : str
        Whose memory it is.
    blocks : tuple of Outstanding
        The largest first.

    Examples
    --------
    >>> old = Outstanding("mine.py:7", 4096, 3.0, "cpu", 0x1000, ())
    >>> new = Outstanding("mine.py:7", 1024, 0.5, "cpu", 0x3000, ())
    >>> print(OutstandingLine("mine.py:7", "cpu", (old, new)))
    mine.py:7: 2 blocks, 5,120 B of cpu, 0.5 to 3.0 s old
    """

    where: str
    pool: str
    blocks: tuple[Outstanding, ...]

    @property
    def count(self) -> int:
        """How many blocks."""
        return len(self.blocks)

    @property
    def nbytes(self) -> int:
        """What they have in all [B]."""
        return sum(block.nbytes for block in self.blocks)

    def __str__(self) -> str:
        if self.count == 1:
            return str(self.blocks[0])
        size = f"{self.count:,} blocks, {self.nbytes:,} B of {self.pool}"
        return f"{self.where}: {size}{_aged(self.blocks)}"


def _aged(blocks: Iterable[Outstanding]) -> str:
    ages = [block.age for block in blocks if block.age is not None]
    if not ages:
        return ""
    youngest, oldest = f"{min(ages):.1f}", f"{max(ages):.1f}"
    span = oldest if youngest == oldest else f"{youngest} to {oldest}"
    return f", {span} s old"


def by_line(blocks: Iterable[Outstanding]) -> list[OutstandingLine]:
    """Return the lines that made blocks, the one that holds the most first."""
    blocks_of: dict[tuple[str, str], list[Outstanding]] = {}
    for block in sorted(blocks, key=attrgetter("nbytes"), reverse=True):
        blocks_of.setdefault((block.where, block.pool), []).append(block)
    lines = [OutstandingLine(*key, tuple(mine)) for key, mine in blocks_of.items()]
    return sorted(lines, key=attrgetter("nbytes"), reverse=True)


OWN = "NumPy's own"  # in place of a pool's name
MISS = bridges.miss.__code__  # by which NumPy's bridge asks


def buffers(pooled: Iterable[Asked]) -> list[Outstanding]:
    """Return NumPy's live buffers that were made since ``tracemalloc`` was started.

    Without the ``pooled`` ones, which are a pool's.
    """
    import tracemalloc  # takes 1 ms to load

    if not tracemalloc.is_tracing():
        return []
    pooled_counts = Counter(pooled)
    blocks = []
    for trace in tracemalloc.take_snapshot().traces:
        if trace.domain != np.lib.tracemalloc_domain:
            continue
        lines = [(frame.filename, frame.lineno) for frame in reversed(trace.traceback)]
        asked = (*lines[0], trace.size)
        if pooled_counts[asked]:
            pooled_counts[asked] -= 1
            continue
        where = maker((file, line, "") for file, line in lines)
        text = tuple(f"{file}:{line}" for file, line in lines)
        blocks.append(Outstanding(where, trace.size, None, OWN, None, text))
    return blocks


@final
class Tracker(hooks.Listener):
    """Remembers every block that is handed out while it listens."""

    def __init__(self) -> None:
        #: By state and address: granted and asked size [B], when [s], and by whom.
        self.live: defaultdict[Any, dict[int, Any]] = defaultdict(dict)

    def acquired(self, state: Any, chunk: Chunk) -> None:
        """Remember the frames of a block."""
        record = chunk.nbytes, chunk.request, monotonic(), stack(3)
        self.live[state][chunk.address] = record

    def released(self, state: Any, chunk: Chunk) -> None:
        """Forget a block."""
        self.live[state].pop(chunk.address, None)

    def largest(self, state: Any, count: int) -> tuple[str, ...]:
        """Return the lines that hold the most of a pool."""
        lines = tuple(map(str, by_line(self.items({state}))[:count]))
        before = f"{state.ledger.allocated:,} B taken before tracking began"
        return lines or (before,)

    def frames_of(self, state: Any) -> dict[int, Frames]:
        """Return who made each live block of a pool, by address."""
        return {at: record[-1] for at, record in list(self.live[state].items())}

    def items(self, states: Iterable[Any] | None = None) -> list[Outstanding]:
        """Return the live blocks of these states, or of all, in no order."""
        now, blocks = monotonic(), []
        for state in list(self.live) if states is None else states:
            for address, (nbytes, _, born, frames) in list(self.live[state].items()):
                lines = places_of(frames)
                texts = tuple(f"{file}:{line} in {name}" for file, line, name in lines)
                known = nbytes, now - born, state.name, address
                blocks.append(Outstanding(maker(lines), *known, texts))
        return blocks

    def of_numpy(self) -> Iterator[Asked]:
        """Return what NumPy's bridge asked the pools for, and they told us of."""
        for live in list(self.live.values()):
            for _, request, _, frames in list(live.values()):
                codes = frames[::2]
                if MISS in codes[:-1]:
                    asker = 2 * codes.index(MISS) + 2
                    [(file, line, _)] = places_of(frames[asker : asker + 2])
                    yield file, line, request


TRACKER = Tracker()
_lock = module_lock()  # guards the two below, TRACKING and the subscription
_wanted: set[object] = set()  # by each track() that is open, and by the environment
_begun = False  # whether the environment was asked


def begin() -> None:
    """Track from the first use on, if ``XDEV_MEMORY_TRACK`` or ``XDEV_DEBUG`` says
    so.
    """
    global _begun  # noqa: PLW0603 - once a process
    if _begun:
        return
    with _lock:
        if not _begun:
            asked = _config.memory_track()
            if asked or _config.debug():
                want(begin, wanted=True)
            if asked == _config.AT_EXIT:
                atexit.register(_report_at_exit)
            _begun = True
            _apply()


def active() -> bool:
    """Say whether blocks are being tracked."""
    if not _begun:
        begin()
    return bool(_wanted)


def want(who: object, *, wanted: bool) -> None:
    """Track from now on, or no longer for whom; for nobody, what is known goes."""
    with _lock:
        (_wanted.add if wanted else _wanted.discard)(who)
        _apply()


def _apply() -> None:
    """Do what is wanted, whatever an interrupt left; called with the lock held."""
    hooks.subscribe(TRACKER, on=bool(_wanted))
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

    Returns
    -------
    context manager
        Tracking is on inside its ``with`` block.

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
            want(who, wanted=True)
            yield
        finally:
            want(who, wanted=False)
    except BaseException:
        want(who, wanted=False)  # again: an interrupt may have come in the midst of it
        raise


def outstanding(device: object = None, kind: str | None = None) -> list[Outstanding]:
    """Return the live blocks that were made under :func:`track`.

    Call it while that is open, or in a program that runs under ``XDEV_MEMORY_TRACK=1``:
    where nothing is tracked the list is empty, whatever is in use.

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

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        There is no such device or kind, or it cannot be used.

    Examples
    --------
    >>> import xdev
    >>> from xdev import memory
    >>> with memory.track():
    ...     x = xdev.zeros(1000, device="cpu")
    ...     [block] = [b for b in memory.outstanding("cpu") if b.nbytes >= x.nbytes]
    >>> block.nbytes >= 8000
    True
    """
    lines = outstanding_by_line(device, kind)
    return [block for line in lines for block in line.blocks]


def outstanding_by_line(
    device: object = None, kind: str | None = None
) -> list[OutstandingLine]:
    """Return the lines whose blocks, made under :func:`track`, are live.

    Parameters
    ----------
    device : Device or str, optional
        Whose; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; without one, all.

    Returns
    -------
    list of OutstandingLine
        The one that holds the most first. Each has ``where`` (``"file:line"``),
        ``count``, ``nbytes`` [B] and its ``blocks`` with their sizes and ages, and
        ``str(line)`` says it all.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        There is no such device or kind, or it cannot be used.

    Examples
    --------
    >>> import xdev
    >>> with track():
    ...     kept = [xdev.empty(n, device="cpu", dtype=xdev.int8) for n in (64, 128)]
    ...     print(*outstanding_by_line("cpu"))
    <doctest ...>:2: 2 blocks, 192 B of cpu, 0.0 s old
    """
    states = {pool.state for pool in registry.existing(device, kind)}
    for state in states:
        state.drained()  # what was dropped is drained
    blocks = TRACKER.items(states)
    numpys = kind != "pinned" and as_device(device).type == "cpu"
    if numpys and active():
        blocks += buffers(TRACKER.of_numpy())
    return by_line(blocks)


def report() -> str:
    """Return the live blocks of all pools, by line, under a line of their sum."""
    for state in list(TRACKER.live):
        state.drained()
    lines = by_line(TRACKER.items() + buffers(TRACKER.of_numpy()))
    count = sum(line.count for line in lines)
    if not count:
        return "xdev: no live block"
    total = sum(line.nbytes for line in lines)
    head = f"xdev: {count:,} live block{'s' * (count > 1)}, {total:,} B"
    return "\n  ".join((head, *map(str, lines)))


def _report_at_exit() -> None:
    """Write the report; a program must not end otherwise because it was asked for."""
    with suppress(Exception):
        sys.stderr.write(f"{report()}\n")


os.register_at_fork(after_in_child=TRACKER.live.clear)
