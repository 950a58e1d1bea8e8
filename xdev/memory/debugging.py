"""The debug mode, ``XDEV_DEBUG=1``: memory under guard, damage told where it is found.

A guarded source stands before an ordinary one and is used by an ordinary pool: poison,
red zones and a quarantine. What is found in the middle of other work, a finalizer's
too, is raised by the next request for memory of any guarded pool, by :func:`check`, or
printed at exit. What a guarded source knows:

- All free memory is full of :data:`FREED`; it is looked at when it is handed out, when
  it leaves the quarantine and when it goes back to the source.
- A block handed out is full of :data:`FRESH`. From the end of what was asked for to the
  end of the block there is :data:`ZONE`, and so there is before each segment; behind
  one block is before the next. It is looked at when the block comes back.
- A block that comes back waits until the blocks behind it in line are more than the
  quarantine's budget. To the pool that is one more stream whose work is not done: the
  block is *used* by :class:`QuarantineUse`, and the quarantine answers for that event.

Damage is written down (:data:`FINDINGS`), since a pool that takes blocks back cannot
stop half-way; :mod:`xdev.memory.debugging` raises it.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev.errors import MemoryCorruptionError
from xdev.memory import hooks, registry, tracking
from xdev.memory.blocks import round_up
from xdev.memory.reclamation import taken

if TYPE_CHECKING:
    from xdev.device import Device
    from xdev.memory.blocks import Chunk, Heap, Policy
    from xdev.memory.sources import Source

FRESH = 0xFF  # NaN in every floating-point type, -1 in the signed integers
FREED = 0xDD  # as other debug heaps have it: -1.5e144 in float64, -2e18 in float32
ZONE = 0xFD
ROOM = 64  # the least that a red zone has [B]
QUARANTINE = 64 << 20  # how much waits in line at most [B]
BLOCKS = 1000  # and how many blocks: each pool call goes through them

#: What was found and not yet raised, a text each.
FINDINGS: deque[str] = deque()


@final
class QuarantineUse(int):
    """What stands among the streams that use a block, for the quarantine: never one."""

    #: Where it is, and its size. Not the chunk: who is referred to is in use.
    block: tuple[int, int]


@final
@dataclass(slots=True)
class Holder:
    """Whose a block is, or was; ``frames`` as :func:`tracking.stack` has them."""

    address: int
    request: int
    nbytes: int
    frames: tracking.Frames
    freed: str = ""  # the line that freed it by hand
    out: bool = False  # whether it has left the quarantine

    def __str__(self) -> str:
        freed = f" and freed at {self.freed}" if self.freed else ""
        place = f" made at {tracking.origin(self.frames)}" if self.frames else ""
        return f"the {self.request:,} B block at {self.address:#x}{place}{freed}"


@final
class GuardedSource:
    """What it does not guard is the inner source's own; that names its alignment."""

    def __init__(self, inner: Source, cells: Cells) -> None:
        self.inner, (self._fill, self._read) = inner, cells
        self.name: str = getattr(inner, "name", type(inner).__name__)
        self._lead = round_up(ROOM, self.alignment)
        self.after_fork()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    # -- as a source ------------------------------------------------------------------

    def after_fork(self) -> None:
        """Start with nothing in a forked child: its pools are empty."""
        #: Guards what is below, and what is in the cells. A leaf: no other is taken.
        self._turn = threading.RLock()
        self._live: dict[int, Holder] = {}
        self._line: deque[Holder] = deque()

    def allocate(self, nbytes: int) -> int:
        """Allocate with a red zone before it; full of poison."""
        address: int = self.inner.allocate(nbytes + self._lead)
        if not address:
            return address
        self._fill(address, ZONE, self._lead)
        self._fill(address + self._lead, FREED, nbytes)
        return address + self._lead

    def free(self, address: int, nbytes: int) -> None:
        """Look at it once more, and free."""
        with self._turn:
            self._check_free(address, nbytes)
            self._check_lead(address)
        self.inner.free(address - self._lead, nbytes + self._lead)

    def record(self, stream: int) -> Any:
        """Record an event; of a quarantine use, the block's entry there."""
        if isinstance(stream, QuarantineUse):
            self.inner.synchronize()
            return self._admit(*stream.block)
        return self.inner.record(stream)

    def done(self, event: Any) -> bool:
        """Say whether the work is done, or the block has left the quarantine."""
        return event.out if isinstance(event, Holder) else bool(self.inner.done(event))

    def synchronize(self) -> None:
        """Wait for all work, and empty the quarantine."""
        self.inner.synchronize()
        with self._turn:
            self._let_out(0, 0)

    # -- what the listener tells ------------------------------------------------------

    def hand_out(self, chunk: Chunk) -> None:
        """Fill a block for its holder."""
        request = max(1, chunk.request or 0)
        with self._turn:
            self._check_free(chunk.address, chunk.nbytes)
            address, nbytes = chunk.address, chunk.nbytes
            self._fill(address, FRESH, request)
            self._fill(address + request, ZONE, nbytes - request)
            self._live[address] = Holder(address, request, nbytes, tracking.stack(4))
        chunk.request = None  # not to be handed out again but by way of the quarantine

    def take_back(self, chunk: Chunk) -> None:
        """Send a block by way of the quarantine; called with the state's lock held."""
        use = QuarantineUse(-1)  # no stream's handle is negative
        use.block = chunk.address, chunk.nbytes
        chunk.uses = {*(chunk.uses or ()), use}

    def poison(self, chunk: Chunk, line: str) -> None:
        """Poison a block that a line frees by hand: its last use was before."""
        self.inner.synchronize()
        with self._turn:
            holder = self._live.get(chunk.address)
            if holder is not None:
                holder.freed = line
                self._fill(holder.address, FREED, holder.request)

    def inspect(self, heap: Heap) -> int:
        """Look at all of it; called with the state's lock held. Return how much [B]."""
        free = {id(chunk) for chunk in heap.binned()}
        seen = 0
        with self._turn:
            for segment in heap:
                self._check_lead(segment.address)
                seen += segment.nbytes
                for chunk in segment:
                    if chunk.listed or id(chunk) in free:
                        self._check_free(chunk.address, chunk.nbytes)
            for holder in self._live.values():
                self._check_holder(holder)
            for holder in self._line:
                self._check_free(holder.address, holder.nbytes, holder)
        return seen

    # -- the quarantine ---------------------------------------------------------------

    def _admit(self, address: int, nbytes: int) -> Holder:
        with self._turn:
            holder = self._live.pop(address, None)
            if holder is None:  # no listener was there, or an exception came between
                holder = Holder(address, nbytes, nbytes, [])
            self._check_holder(holder)
            self._fill(address, FREED, nbytes)
            self._line.append(holder)
            self._let_out(QUARANTINE, BLOCKS)
        return holder

    def _let_out(self, nbytes: int, blocks: int) -> None:
        """Let out what came first, until no more than so much waits."""
        line = self._line
        held = sum(holder.nbytes for holder in line)
        while held > nbytes or len(line) > blocks:
            holder = line[0]
            held -= holder.nbytes
            if not holder.out:  # else an exception came between
                self._check_free(holder.address, holder.nbytes, holder)
                holder.out = True
            line.popleft()

    # -- looking ----------------------------------------------------------------------

    def _check_free(self, address: int, nbytes: int, holder: object = None) -> None:
        whose = "" if holder is None else ", {at} B into {holder}"
        text = "free memory was written at {place:#x}" + whose
        self._look(address, nbytes, FREED, text, holder)

    def _check_holder(self, holder: Holder) -> None:
        if holder.freed:
            self._check_free(holder.address, holder.request, holder)
        end, room = holder.address + holder.request, holder.nbytes - holder.request
        text = "memory was written {at} B past the end of {holder}"
        self._look(end, room, ZONE, text, holder)

    def _check_lead(self, address: int) -> None:
        holder = self._live.get(address, f"the segment at {address:#x}")
        text = "memory was written {left} B before {holder}"
        self._look(address - self._lead, self._lead, ZONE, text, holder)

    def _look(self, base: int, nbytes: int, byte: int, text: str, whose: Any) -> None:
        """Tell of damaged memory, and mend it, so that it is told once."""
        for start in range(0, nbytes, PIECE):
            piece = self._read(base + start, min(PIECE, nbytes - start))
            if piece != bytes((byte,)) * len(piece):  # quick; the place is not
                at = start + len(piece) - len(piece.lstrip(bytes((byte,))))
                self._fill(base + at, byte, nbytes - at)
                place, left = base + at, nbytes - at
                found = text.format(at=at, place=place, left=left, holder=whose)
                FINDINGS.append(f"{self.name}: {found}")
                return


# -- a source's bytes, which no method takes from a pool -------------------------------

PIECE = 1 << 20  # looked at in one go: Python's own memory holds a copy [B]

TO_HOST = 2  # cudaMemcpyDeviceToHost

#: Memory by address: sets bytes, as ``memset`` does; and copies them.
Cells = tuple[Callable[[int, int, int], Any], Callable[[int, int], bytes]]
#: Not by NumPy, whose own memory may be what is looked at.
HOST_CELLS: Cells = (ctypes.memset, ctypes.string_at)


def cuda_cells(index: int) -> Cells:
    """Return a device's. The calls wait, so that no stream is left out."""
    cuda = _optional.cupy().cuda

    def fill(address: int, byte: int, nbytes: int) -> None:
        with cuda.Device(index):
            cuda.runtime.memset(address, byte, nbytes)
            cuda.runtime.deviceSynchronize()  # for streams that are not ordered by it

    def read(address: int, nbytes: int) -> bytes:
        landing = ctypes.create_string_buffer(nbytes)
        with cuda.Device(index):
            cuda.runtime.memcpy(ctypes.addressof(landing), address, nbytes, TO_HOST)
        return landing.raw

    return fill, read


@final
class Inspector(hooks.Listener):
    """Tells guarded sources of their blocks."""

    def acquired(self, state: Any, chunk: Chunk) -> None:
        """Have a block filled; raise what was found until now."""
        if isinstance(state.source, GuardedSource):
            state.source.hand_out(chunk)
            if FINDINGS:
                chunk.release(chunk)
                raise_findings()

    def released(self, state: Any, chunk: Chunk) -> None:
        """Have a block pass the quarantine."""
        if isinstance(state.source, GuardedSource):
            state.source.take_back(chunk)


INSPECTOR = Inspector()


def raise_findings() -> None:
    """Raise MemoryCorruptionError if there is anything to tell."""
    if texts := list(taken(FINDINGS)):
        raise MemoryCorruptionError("\n".join(texts))


def guarded(
    source: Source, policy: Policy, device: Device, kind: str
) -> tuple[Source, Policy]:
    """Return a source and policy with guards, where it has bytes of ours."""
    if device.type == "fake" or policy.asynchronous:  # no bytes; the driver's pool
        return source, policy
    _begin()
    cells = cuda_cells(device.index) if kind == "device" else HOST_CELLS
    return GuardedSource(source, cells), policy._replace(  # room for a red zone
        zone=ROOM,
        granted=lambda nbytes, quantum: policy.granted(nbytes + ROOM, quantum),
        fit=lambda free_list, nbytes: policy.fit(free_list, nbytes + ROOM),
    )


@cache
def _begin() -> None:
    """Listen to the pools."""
    hooks.subscribe(INSPECTOR)
    atexit.register(_tell_at_exit)


def check(device: object = None, kind: str | None = None) -> int:
    """Look for damage in the pools' memory, under ``XDEV_DEBUG=1``.

    Parameters
    ----------
    device : Device or str, optional
        Whose memory; all devices' without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; without one, all.

    Returns
    -------
    int
        How much was looked at; 0 in a process without ``XDEV_DEBUG=1`` [B].

    Raises
    ------
    MemoryCorruptionError
        Bytes around a block or of free memory were written, now or since the last
        request for memory; each is told once.

    Examples
    --------
    >>> check()
    0
    """
    seen = 0
    for pool in registry.selected(device, kind):
        state = pool.state
        source = state.source
        if isinstance(source, GuardedSource):
            state.process_pending()
            source.inner.synchronize()
            seen += state.decide(source.inspect) or 0
    raise_findings()
    return seen


def _tell_at_exit() -> None:
    try:
        check()
    except MemoryCorruptionError as error:
        print(f"xdev: {error}", file=sys.stderr)  # noqa: T201 - nobody can catch it
