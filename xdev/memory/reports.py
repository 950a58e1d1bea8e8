"""The ledger as people read it: bytes now and at most, limits, a report, statistics."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, final

from xdev.device import Device, as_device
from xdev.device.choice import target_of
from xdev.memory import registry
from xdev.memory.accounting import keys_of
from xdev.memory.reclamation import enough_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdev.memory.accounting import PoolStats, Scope
    from xdev.memory.pools import Pool


UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
STEP = 1024


def _peaks(device: object, kind: str | None) -> list[Scope]:
    pools = registry.existing(device, kind)
    return [pool.state.look(lambda _, ledger: ledger.peaks()) for pool in pools]


def allocated(device: object = None, kind: str | None = None) -> int:
    """Return the bytes in use: granted sizes of live blocks [B].

    Parameters
    ----------
    device : Device or str, optional
        Whose memory; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; None sums the device's kinds.

    Examples
    --------
    >>> import xdev
    >>> before = allocated("cpu")
    >>> x = xdev.empty(100_000, dtype=xdev.float32, device="cpu")
    >>> allocated("cpu") - before
    400000
    """
    return sum(pool.allocated for pool in registry.existing(device, kind))


def max_allocated(device: object = None, kind: str | None = None) -> int:
    """Return the most bytes in use since the start or :func:`reset_peak` [B].

    Kinds have peaks of their own; without ``kind`` it is their sum. Parameters are
    :func:`allocated`'s.
    """
    return sum(most.allocated for most in _peaks(device, kind))


def reserved(device: object = None, kind: str | None = None) -> int:
    """Return the bytes held from the system or the driver, used and cached [B].

    Parameters are :func:`allocated`'s.
    """
    return sum(pool.reserved for pool in registry.existing(device, kind))


def max_reserved(device: object = None, kind: str | None = None) -> int:
    """Return the most bytes held since the start or :func:`reset_peak` [B].

    Parameters are :func:`allocated`'s.
    """
    return sum(most.reserved for most in _peaks(device, kind))


def reset_peak(device: object = None, kind: str | None = None) -> None:
    """Start the peaks afresh from what is in use now.

    Parameters are :func:`allocated`'s.
    """
    for pool in registry.existing(device, kind):
        pool.reset_peak()


def reclaim(
    nbytes: int | None = None, device: object = None, kind: str | None = None
) -> int:
    """Give cached memory back to the system or the driver.

    Parameters
    ----------
    nbytes : int, optional
        How much is enough [B]; None gives back all that can be.
    device : Device or str, optional
        Whose memory; all devices' without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; None takes all kinds.

    Returns
    -------
    int
        How much went back [B].

    Raises
    ------
    ConfigurationError
        There is no such device, or no such kind.
    TypeError
        ``nbytes`` is neither an int nor None.
    ValueError
        ``nbytes`` is negative.

    Examples
    --------
    >>> freed = reclaim()
    >>> reclaim()
    0
    """
    freed, wanted = 0, enough_bytes(nbytes)
    for pool in registry.selected(device, kind):
        if freed < wanted:
            freed += pool.state.reclaim(wanted - freed)
    return freed


def set_limit(
    limit: float | str | None, device: object = None, kind: str | None = None
) -> None:
    """Limit what the pools of a device hold, over all kinds together.

    What is free and over a new limit goes back. What is in use stays, and no block is
    added until it fits again.

    Parameters
    ----------
    limit : int, float, str or None
        Bytes as an int or as ``"4GiB"``; a share of the card, or of the memory of the
        cgroup or machine, as ``"80%"`` or a float such as 0.8; None for no limit.
    device : Device or str, optional
        Whose memory; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Accepted as everywhere; the limit holds over the device's kinds.

    Raises
    ------
    ConfigurationError
        The limit is no size or share, or the device has no such kind; the arguments are
        the wrong way round.

    Examples
    --------
    >>> set_limit("4 GiB", "cpu")
    >>> get_limit("cpu")
    4294967296
    >>> set_limit(None, "cpu")
    """
    where = target_of(device, limit, "memory.set_limit(limit, device)")
    registry.check_kind(where, kind)
    registry.budget(where).set(limit)


def get_limit(device: object = None, kind: str | None = None) -> int | None:
    """Return the limit of a device [B], None without one.

    Parameters are :func:`set_limit`'s.
    """
    where = as_device(device)
    registry.check_kind(where, kind)
    return registry.budget(where).limit


def stats(device: object = None, kind: str | None = None) -> dict[str, int]:
    """Return the ledger under PyTorch's names.

    Parameters are :func:`allocated`'s.

    Returns
    -------
    dict of str to int
        Of ``torch.cuda.memory_stats``'s keys those that the pools can tell truly:
        ``{allocation,allocated_bytes,active,active_bytes}.{all,small_pool,large_pool}.
        {current,allocated,freed}``, ``{inactive_split,inactive_split_bytes}.{...}.
        current``, ``{segment,reserved_bytes}.all.{current,allocated,freed}``,
        ``{allocated_bytes,reserved_bytes}.all.peak``, ``requested_bytes.all.current``,
        ``num_alloc_retries``, ``num_ooms``, ``num_sync_all_streams``,
        ``num_device_alloc``, ``num_device_free``. The small pool is what has up to
        1 MiB; active are blocks in use, and dropped ones that another stream still
        uses. Beside them: ``cached_bytes.all.current``, ``idle_bytes.all.current``
        (what the driver's own pool keeps, policy ``async``), ``num_driver_calls``,
        ``num_source_failures``, ``num_steals``, ``num_trims``.

    Examples
    --------
    >>> keys = stats("cpu")
    >>> parts = (keys[f"allocation.{pool}_pool.current"] for pool in ("small", "large"))
    >>> sum(parts) == keys["allocation.all.current"]
    True
    """
    return keys_of([pool.stats() for pool in registry.existing(device, kind)])


def text_of(nbytes: int) -> str:
    """Return a size with a unit.

    Examples
    --------
    >>> text_of(512), text_of(3 << 29)
    ('512 B', '1.500 GiB')
    """
    power = min(max(nbytes.bit_length() - 1, 0) // 10, len(UNITS) - 1)
    return f"{nbytes / STEP**power:.{3 if power else 0}f} {UNITS[power]}"


def summary(device: object = None, kind: str | None = None) -> str:
    """Return the report of a device's memory, as CUDA.jl prints it.

    Its first line is what all of the device's pools hold, as a share of its memory, and
    the limit. Then for each pool: bytes in use, reserved and cached; the most in use
    and reserved since the start or :func:`reset_peak`; how many blocks are live and
    were acquired; the policy; how many segments are held, were taken from the source
    and went back; how often a request needed a retry, was refused, or was served from
    another stream's memory (steals); how often the pool trimmed its cache to grow,
    waited for all queued work, and called the source; and for each size class that has
    any, the blocks that are live and cached.

    Parameters are :func:`allocated`'s.

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
    where = as_device(device)
    registry.check_kind(where, kind)
    lines = [_usage_of_device(where)]
    for pool in registry.existing(where, kind):
        lines += _usage_of_pool(pool, pool.stats())
    return "\n".join(lines)


def _usage_of_device(device: Device) -> str:
    total = registry.total(device)
    used = reserved(device)
    share = 100 * used / total if total else 0.0
    limit = get_limit(device)
    cap = "no limit" if limit is None else f"limit {text_of(limit)}"
    usage = f"{share:.2f}% ({text_of(used)}/{text_of(total)})"
    return f"{device}: memory held by xdev's pools: {usage}, {cap}"


def _usage_of_pool(pool: Pool, look: PoolStats) -> list[str]:
    used, held, cached = map(text_of, (look.allocated, look.reserved, look.cached))
    most_used, most_held = text_of(look.peak_allocated), text_of(look.peak_reserved)
    return [
        f"{pool.name} pool usage: {used} ({held} reserved, {cached} cached)",
        f"  most in use {most_used}, most reserved {most_held}",
        f"  blocks: {look.live} live, {look.acquired} acquired",
        f"  policy: {pool.state.policy.name}",
        f"  segments: {look.segments} held, {look.grown} taken, {look.returned} back",
        f"  retries: {look.retries}; refusals: {look.refusals}; steals: {look.steals}",
        (
            f"  trims: {look.trims}; waits: {look.syncs}; "
            f"source calls: {look.driver_calls}"
        ),
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
    """
    print(summary(device, kind))  # noqa: T201 - what it is for


@final
class Peak:
    """The most that was in use while a :func:`peak` was open.

    Attributes
    ----------
    nbytes : int
        Bytes in use at most, with those in use at the start [B].
    reserved : int
        Bytes held from the system or the driver at most [B].
    """

    def __init__(self, where: Device, kind: str | None) -> None:
        self._where, self._kind = where, kind
        self._open: dict[Pool, Scope] = {}
        self._final: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"Peak(nbytes={self.nbytes}, reserved={self.reserved})"

    @property
    def nbytes(self) -> int:
        """Bytes in use at most [B]."""
        return self._most()[0]

    @property
    def reserved(self) -> int:
        """Bytes held at most [B]."""
        return self._most()[1]

    def open(self) -> None:
        """Follow the pools that there are; one that is made later is followed whole."""
        for pool in registry.existing(self._where, self._kind):
            self._open[pool] = pool.open_scope()

    def close(self) -> None:
        """Keep the peaks so far."""
        self._final = self._most()
        for pool, scope in self._open.items():
            pool.close_scope(scope)
        self._open.clear()

    def _most(self) -> tuple[int, int]:
        if self._final is not None:
            return self._final
        allocated = reserved = 0
        for pool in registry.existing(self._where, self._kind):
            ever = pool.state.look(lambda _, ledger: ledger.peaks(ever=True))
            scope = self._open.get(pool, ever)
            allocated += scope.allocated
            reserved += scope.reserved
        return allocated, reserved


@contextmanager
def peak(device: object = None, kind: str | None = None) -> Iterator[Peak]:
    """Follow the most memory in use inside a ``with`` block.

    It counts what all threads take from the pools. On the CPU that is not all there is:
    NumPy's own arrays, which are also xdev's of less than 64 KiB and results of NumPy's
    functions, are not seen (:func:`tracemalloc.get_traced_memory` sees them; those of
    64 KiB and more are the pool's while the NumPy bridge is installed). Blocks may nest
    and overlap in any order, on one device or several. Kinds have peaks of their own;
    without ``kind`` it is their sum.

    Parameters are :func:`~xdev.memory.allocated`'s.

    Examples
    --------
    >>> import xdev
    >>> with peak("cpu") as most:
    ...     x = xdev.empty(1_000_000, device="cpu")
    ...     del x
    >>> most.nbytes >= 8_000_000
    True
    """
    where = as_device(device)
    registry.check_kind(where, kind)
    most = Peak(where, kind)
    try:
        most.open()
        yield most
    finally:
        most.close()
