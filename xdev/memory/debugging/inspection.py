"""The debug mode, ``XDEV_DEBUG=1``: guarded pools, and where damage is raised.

What is found in the middle of other work, a finalizer's too, is raised by the next
request for memory of any guarded pool, by :func:`check`, or printed at exit.
"""

from __future__ import annotations

import atexit
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, final

from xdev.errors import MemoryCorruptionError
from xdev.memory import hooks, registry
from xdev.memory.debugging.cells.cuda import CudaCells
from xdev.memory.debugging.cells.fake import FakeCells
from xdev.memory.debugging.cells.host import HostCells
from xdev.memory.debugging.guards import FINDINGS, GuardedSource, with_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xdev.device import Device
    from xdev.memory.blocks import Chunk
    from xdev.memory.debugging.cells import Cells
    from xdev.memory.policies import Policy
    from xdev.memory.pools import Pool
    from xdev.memory.sources import Source

#: (device type, kind) -> the cells of device number ``index``.
CELLS: dict[tuple[str, str], Callable[[int], Cells]] = {
    ("cpu", "host"): lambda _: HostCells(),
    ("cpu", "pinned"): lambda _: HostCells(),
    ("cuda", "device"): CudaCells,
    ("fake", "device"): lambda _: FakeCells(),
}


@final
class Inspector:
    """Tells guarded sources of their blocks."""

    def acquired(self, stock: Any, chunk: Chunk) -> None:
        """Have a block filled; raise what was found until now."""
        if isinstance(stock.source, GuardedSource):
            stock.source.hand_out(chunk)
            if FINDINGS:
                chunk.give(chunk)
                raise_findings()

    def released(self, stock: Any, chunk: Chunk) -> None:
        """Have a block pass the quarantine."""
        if isinstance(stock.source, GuardedSource):
            stock.source.take_back(chunk)

    def refused(self, stock: Any, nbytes: int) -> None:
        """Ignore refusals."""

    def grown(self, stock: Any, address: int, nbytes: int) -> None:
        """Ignore segments."""

    def returned(self, stock: Any, address: int, nbytes: int) -> None:
        """Ignore segments."""

    def largest(self, stock: Any, count: int) -> tuple[str, ...]:  # noqa: ARG002
        """Leave it to the tracker."""
        return ()


INSPECTOR = Inspector()


def raise_findings() -> None:
    """Raise MemoryCorruptionError if there is anything to tell."""
    found = []
    while FINDINGS:
        found.append(FINDINGS.popleft())
    if found:
        raise MemoryCorruptionError("\n".join(found))


def guarded(
    source: Source, policy: Policy, device: Device, kind: str
) -> tuple[Source, Policy]:
    """Return a source and policy with guards; the driver's own pool has none."""
    if policy.asynchronous:
        return source, policy
    _begin()
    return GuardedSource(source, CELLS[device.type, kind](device.index)), with_zone(
        policy
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
    if device is not None:
        return check_pools(registry.existing(device, kind))
    registry.check_kind(None, kind)
    pools = registry.everything()
    return check_pools(p for (_, name), p in pools.items() if kind in (None, name))


def check_pools(pools: Iterable[Pool]) -> int:
    """Do as :func:`check` with these pools."""
    seen = 0
    for pool in pools:
        stock = pool.stock
        source = stock.source
        if isinstance(source, GuardedSource):
            stock.tend()
            source.inner.synchronize()
            seen += stock.decide(source.inspect) or 0
    raise_findings()
    return seen


def _tell_at_exit() -> None:
    try:
        check()
    except MemoryCorruptionError as error:
        print(f"xdev: {error}", file=sys.stderr)  # noqa: T201 - nobody can catch it
