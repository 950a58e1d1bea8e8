"""Who made the live blocks: frames kept raw, made into text when somebody asks."""

from __future__ import annotations

import itertools
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, final

from xdev import _config
from xdev.memory import hooks, registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

    from xdev.memory.blocks import Chunk

DEPTH = 16  # frames kept of each block
#: Frames of these are not where a user's array was made.
LIBRARIES = ("xdev", "numpy", "cupy", "cupyx", "numba", "numba_cuda")


@final
@dataclass(frozen=True, slots=True)
class Outstanding:
    """One live block.

    Parameters
    ----------
    where : str
        ``"file:line"`` of the first frame outside xdev and the array libraries.
    nbytes : int
        Its granted size [B].
    age : float
        Time since it was handed out [s].
    pool : str
        Whose memory it is.
    address : int
        Where it starts.
    frames : tuple of str
        ``"file:line in function"``, innermost first.
    """

    where: str
    nbytes: int
    age: float
    pool: str
    address: int
    frames: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.where}: {self.nbytes:,} B of {self.pool}, {self.age:.1f} s old"


@final
@dataclass(frozen=True, slots=True)
class Record:
    """What is kept of a block when it is handed out."""

    nbytes: int
    born: float
    frames: tuple[tuple[CodeType, int], ...]


def stack(skip: int) -> tuple[tuple[Any, int], ...]:
    """Return code and instruction of the calling frames, innermost first."""
    frame = sys._getframe(skip)  # noqa: SLF001 - the one way that costs under 1 us
    frames: list[tuple[CodeType, int]] = []
    while frame is not None and len(frames) < DEPTH:
        frames.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(frames)


def line_of(code: CodeType, instruction: int) -> int:
    """Return the source line of an instruction."""
    positions = itertools.islice(code.co_positions(), instruction // 2, None)
    return next(positions, (None,))[0] or code.co_firstlineno


def is_library(filename: str) -> bool:
    """Say whether a file belongs to xdev or an array library."""
    for name in LIBRARIES:
        module = sys.modules.get(name)
        for folder in getattr(module, "__path__", ()):
            if Path(filename).is_relative_to(folder):
                return True
    return False


@final
class Tracker:
    """Remembers every block that is handed out while it listens."""

    def __init__(self) -> None:
        self.live: dict[tuple[Any, int], Record] = {}

    def acquired(self, stock: Any, chunk: Chunk) -> None:
        """Remember the frames of a block."""
        key = (stock, chunk.address)
        self.live[key] = Record(chunk.nbytes, monotonic(), stack(3))

    def released(self, stock: Any, chunk: Chunk) -> None:
        """Forget a block."""
        self.live.pop((stock, chunk.address), None)

    def grown(self, stock: Any, address: int, nbytes: int) -> None:
        """Ignore segments."""

    def returned(self, stock: Any, address: int, nbytes: int) -> None:
        """Ignore segments."""

    def largest(self, stock: Any, count: int) -> tuple[str, ...]:
        """Return the largest live blocks of a pool."""
        mine = [i for i in self.items() if i.pool == stock.name]
        mine.sort(key=attrgetter("nbytes"), reverse=True)
        return tuple(map(str, mine[:count]))

    def items(self) -> list[Outstanding]:
        """Return what is live, largest first."""
        now = monotonic()
        found = []
        for (stock, address), record in list(self.live.items()):
            places = [
                (code.co_filename, line_of(code, instruction), code.co_name)
                for code, instruction in record.frames
            ]
            outside = (p for p in places if not is_library(p[0]))
            file, line, _ = next(outside, places[0])
            found.append(
                Outstanding(
                    where=f"{file}:{line}",
                    nbytes=record.nbytes,
                    age=now - record.born,
                    pool=stock.name,
                    address=address,
                    frames=tuple(f"{f}:{n} in {name}" for f, n, name in places),
                )
            )
        return sorted(found, key=attrgetter("nbytes"), reverse=True)


TRACKER = Tracker()
_lock = threading.RLock()  # guards the two below and the subscription
_depth = 0
_begun = False  # whether the environment was asked


def begin() -> None:
    """Track from the first use on, if ``XDEV_MEMORY_TRACK`` says so.

    Raises
    ------
    ConfigurationError
        The variable's value is invalid; the text lists the valid ones.
    """
    global _begun  # noqa: PLW0603 - once a process
    if _begun:
        return
    with _lock:
        if not _begun:
            if _config.memory_track():
                start()
            _begun = True


def active() -> bool:
    """Say whether blocks are being tracked."""
    if not _begun:
        begin()
    return _depth > 0


def start() -> None:
    """Track from now on; each start needs its :func:`stop`."""
    global _depth  # noqa: PLW0603 - how many want it
    with _lock:
        _depth += 1
        if _depth == 1:
            hooks.subscribe(TRACKER)


def stop() -> None:
    """Undo one :func:`start`; after the last, what is known is forgotten."""
    global _depth  # noqa: PLW0603
    with _lock:
        _depth -= 1
        if _depth == 0:
            hooks.unsubscribe(TRACKER)
            TRACKER.live.clear()


@contextmanager
def track() -> Iterator[None]:
    """Remember, while it is open, which line made each block.

    Host arrays of any size come from the pool meanwhile, so all are seen.

    Examples
    --------
    >>> import xdev
    >>> with track():
    ...     x = xdev.empty(10, device="cpu")
    ...     len(outstanding("cpu"))
    1
    """
    start()
    try:
        yield
    finally:
        stop()


def outstanding(device: object = None, kind: str | None = None) -> list[Outstanding]:
    """Return the live blocks that were made under :func:`track`, largest first.

    Parameters
    ----------
    device : Device or str, optional
        Whose; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; without one, all.

    Returns
    -------
    list of Outstanding
        ``str(item)`` starts with ``file:line``.
    """
    chosen = registry.existing(device, kind)
    for pool in chosen:
        pool.stock.tend()
    names = {pool.name for pool in chosen}
    return [item for item in TRACKER.items() if item.pool in names]


hooks.before_emitters(begin)
