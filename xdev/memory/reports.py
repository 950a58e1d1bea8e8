"""The report of a device's memory: as text, printed, and as a notebook shows it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, final

from xdev import _html
from xdev.memory import registry
from xdev.memory.registry import text_of

if TYPE_CHECKING:
    from xdev.device import Device
    from xdev.memory.accounting import PoolStats
    from xdev.memory.pools import Pool


@final
class Report(str):
    """The text of :func:`summary`; a notebook shows its bars too."""

    __slots__ = ("bars",)
    bars: str

    def _repr_html_(self) -> str:
        return self.bars + _html.preformatted(self)


def summary(device: object = None, kind: str | None = None) -> str:
    """Return the report of a device's memory, as CUDA.jl prints it.

    Its first line is what all of the device's pools hold, as a share of its memory, and
    the limit. Then for each pool: bytes in use, reserved and cached; the most in use
    and reserved since the start or :func:`~xdev.memory.reset_peak`; how many blocks are
    live and were acquired; the policy; how many segments are held, were taken from the
    source and went back; how often a request needed a retry, was refused, or was served
    from another stream's memory (steals); how often the pool trimmed its cache to grow,
    waited for all queued work, and called the source; and for each size class that has
    any, the blocks that are live and cached.

    Parameters
    ----------
    device : Device or str, optional
        Whose memory; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; None takes all of the device's kinds.

    Returns
    -------
    str
        Several lines; a notebook also shows them as bars.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        There is no such device or kind, or it cannot be used.

    Examples
    --------
    >>> import xdev
    >>> x = xdev.empty(1 << 20, dtype=xdev.uint8, device="cpu")
    >>> print(summary("cpu", "host"))
    cpu: memory held by xdev's pools: ...
    cpu pool usage: ... (... reserved, ... cached)
      most in use ..., most reserved ...
      blocks: ... live, ... acquired
      policy: ...
      segments: ... held, ... taken, ... back
      retries: ...; refusals: ...; steals: ...
      trims: ...; waits: ...; source calls: ...
      up to 1.000 MiB: ... live (...), ... cached (...)...
    """
    where = registry.owner(device, kind)
    lines, bars = [_usage_of_device(where)], []
    for pool in registry.existing(where, kind):
        look = pool.stats()
        lines += _usage_of_pool(pool, look)
        parts = look.allocated, look.cached
        text = "{} in use, {} cached".format(*map(text_of, parts))
        bars.append((pool.name, parts, (look.peak_reserved,), text))
    report = Report("\n".join(lines))
    report.bars = _html.bars("bytes in use, cached, and held at most", bars)
    return report


def _usage_of_device(device: Device) -> str:
    used, size = registry.reserved(device), registry.total(device)
    share = 100 * used / size if size else 0.0
    limit = registry.get_limit(device)
    cap = "no limit" if limit is None else f"limit {text_of(limit)}"
    usage = f"{share:.2f}% ({text_of(used)}/{text_of(size)})"
    return f"{device}: memory held by xdev's pools: {usage}, {cap}"


def _usage_of_pool(pool: Pool, look: PoolStats) -> list[str]:
    used, held, cached = map(text_of, (look.allocated, look.reserved, look.cached))
    most_used, most_held = text_of(look.peak_allocated), text_of(look.peak_reserved)
    calls = look.driver_calls
    return [
        f"{pool.name} pool usage: {used} ({held} reserved, {cached} cached)",
        f"  most in use {most_used}, most reserved {most_held}",
        f"  blocks: {look.live} live, {look.acquired} acquired",
        f"  policy: {pool.state.policy.name}",
        f"  segments: {look.segments} held, {look.grown} taken, {look.returned} back",
        f"  retries: {look.retries}; refusals: {look.refusals}; steals: {look.steals}",
        f"  trims: {look.trims}; waits: {look.syncs}; source calls: {calls}",
        *(
            f"  up to {text_of(each.upto)}: "
            f"{each.live} live ({text_of(each.live_bytes)}), "
            f"{each.cached + each.waiting} cached "
            f"({text_of(each.cached_bytes + each.waiting_bytes)})"
            for each in look.classes
            if each.live or each.cached or each.waiting
        ),
    ]


def status(device: object = None, kind: str | None = None) -> None:
    """Print what the pools of a device hold: the text of :func:`summary`.

    It shows the share of the device's memory that they hold and the limit, and for each
    pool its bytes (in use, reserved, cached, peaks), blocks, policy, segments, retries,
    refusals, steals, trims, waits, calls of the source, and its blocks by size.

    Parameters
    ----------
    device : Device or str, optional
        Whose memory; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; None prints all of the device's kinds that are in use.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        There is no such device or kind, or it cannot be used.

    Examples
    --------
    >>> from xdev import memory
    >>> memory.status("cpu")
    cpu: memory held by xdev's pools: ...
    """
    report = summary(device, kind)
    if "ipykernel" in sys.modules:
        from IPython.display import display

        display(report)  # type: ignore[no-untyped-call]
    else:
        print(report)  # noqa: T201 - what it is for
