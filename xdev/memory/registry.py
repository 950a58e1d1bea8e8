"""The pools of this process, one a device and kind, made at their first use.

And their ledgers as people read them: bytes now and at most, limits.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self, final

from xdev import _config
from xdev._forks import module_lock
from xdev.device import Device, as_device
from xdev.errors import ConfigurationError, quoted
from xdev.memory import policies
from xdev.memory.accounting import keys_of
from xdev.memory.pools import Pool
from xdev.memory.reclamation import enough_bytes
from xdev.memory.sources.host import HostSource
from xdev.memory.upstream import Budget

if TYPE_CHECKING:
    from xdev.memory.accounting import Scope
    from xdev.memory.sources import Source

FAKE_CAPACITY = 1 << 34  # what a fake device pretends to have [B]


def _source(where: Device, kind: str) -> Source:
    """Return a new source of a device's memory."""
    if kind == "host":
        return HostSource()
    if where.type == "fake":
        from xdev.memory.sources.fake import FakeSource

        return FakeSource(FAKE_CAPACITY)
    from xdev.memory.sources.cuda import CudaSource, PinnedSource

    return PinnedSource() if kind == "pinned" else CudaSource(where.index)


#: The kinds of memory of a device type, the usual one first.
KINDS = {"cpu": ("host", "pinned"), "cuda": ("device",), "fake": ("device",)}
ALL_KINDS = ("host", "pinned", "device")

_lock = module_lock()  # guards the two below
_pools: dict[tuple[Device, str], Pool] = {}
_budgets: dict[Device, Budget] = {}


def pool(device: object = None, kind: str | None = None) -> Pool:
    """Return the pool of a device and kind; the same one every time.

    Its policy is ``XDEV_MEMORY_POOL`` (where that is ``async``: ``split`` for host
    memory), its limit ``XDEV_MEMORY_LIMIT``, both read at the first use.

    Parameters
    ----------
    device : Device or str, optional
        Whose memory; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        ``"host"`` and ``"pinned"`` are the CPU's, ``"device"`` the others'. Without
        one: ``"host"`` or ``"device"``.

    Returns
    -------
    Pool
        The one that xdev's arrays and the bridged libraries take memory from.

    Raises
    ------
    ConfigurationError
        The device has no memory of that kind.
    DeviceUnavailableError
        The device cannot be used; the text says why.

    Examples
    --------
    >>> pool("cpu") is pool("cpu", "host")
    True
    """
    where = owner(device, kind)
    kind = kind or KINDS[where.type][0]
    pool = _pools.get((where, kind))
    return _make(where, kind) if pool is None else pool


def _make(where: Device, kind: str) -> Pool:
    if kind != "host":
        (where if kind == "device" else Device("cuda")).require()
    with _lock:
        pool = _pools.get((where, kind))
        if pool is None:
            source = _source(where, kind)
            name = str(where) if kind != "pinned" else f"{where} (pinned)"
            policy = policies.named(_config.memory_pool())
            if policy.asynchronous and kind != "device":  # no streams order it
                policy = policies.named("split")
            if _config.debug():
                from xdev.memory.debugging import guarded

                source, policy = guarded(source, policy, where, kind)
            fresh = Pool(source, policy, name=name, budget=budget(where))
            pool = _pools.setdefault((where, kind), fresh)  # a finalizer's, if any
        return pool


def owner(device: object, kind: str | None) -> Device:
    """Return a device, ready for use; refuse one that has no memory of a kind."""
    where = as_device(device)
    kinds = KINDS.get(where.type, ())  # a backend of others may have no pools
    if kind is not None and kind not in kinds:
        raise _unknown(kind, kinds, f"{where} has")
    return where


def _unknown(kind: str, kinds: tuple[str, ...], text: str) -> ConfigurationError:
    names = ", ".join(map(repr, kinds))
    message = f"{text} no memory of kind {quoted(kind)}: use {names} or None"
    return ConfigurationError(message)


def existing(device: object = None, kind: str | None = None) -> list[Pool]:
    """Return a device's pools that are in use, of one kind or all; it makes none."""
    return selected(as_device(device), kind)


def selected(device: object = None, kind: str | None = None) -> list[Pool]:
    """Do as :func:`existing`; without a device, of all devices."""
    where = None if device is None else owner(device, kind)
    if where is None and kind not in (None, *ALL_KINDS):
        raise _unknown(kind, ALL_KINDS, "there is")
    pools = everything().items()
    return [p for (d, k), p in pools if where in (None, d) and kind in (None, k)]


def everything() -> dict[tuple[Device, str], Pool]:
    """Return all pools in use, by device and kind."""
    with _lock:
        return dict(_pools)


def budget(where: Device) -> Budget:
    """Return the limit that the pools of a device share."""
    with _lock:
        budget = _budgets.get(where)
        if budget is None:
            fresh = Budget(partial(total, where))
            fresh.set(_config.memory_limit())
            budget = _budgets.setdefault(where, fresh)  # likewise
        return budget


def total(where: Device) -> int:
    """Return the memory of a device, or of the machine or cgroup [B]."""
    source = _source(where.require(), KINDS[where.type][0])
    return int(source.total())  # type: ignore[attr-defined]


UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def _peaks(device: object, kind: str | None) -> list[Scope]:
    pools = existing(device, kind)
    return [each.state.look(lambda _, ledger: ledger.peaks()) for each in pools]


def allocated(device: object = None, kind: str | None = None) -> int:
    """Return the bytes in use: granted sizes of live blocks [B].

    Parameters
    ----------
    device : Device or str, optional
        Whose memory; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; None sums the device's kinds.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    ConfigurationError
        There is no such device, or it has no such kind: the text lists what there is.
    DeviceUnavailableError
        The device cannot be used.

    Examples
    --------
    >>> import xdev
    >>> before = allocated("cpu")
    >>> x = xdev.empty(100_000, dtype=xdev.float32, device="cpu")
    >>> allocated("cpu") - before
    400000
    """
    return sum(pool.allocated for pool in existing(device, kind))


def max_allocated(device: object = None, kind: str | None = None) -> int:
    """Return the most bytes in use since the start or :func:`reset_peak` [B].

    Kinds have peaks of their own; without ``kind`` it is their sum.

    Parameters
    ----------
    device : Device or str, optional
        Whose memory; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; None sums the device's kinds.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        There is no such device or kind, or it cannot be used.

    Examples
    --------
    >>> from xdev import memory
    >>> memory.max_allocated("cpu") >= memory.allocated("cpu")
    True
    """
    return sum(most.allocated for most in _peaks(device, kind))


def reserved(device: object = None, kind: str | None = None) -> int:
    """Return the bytes held from the system or the driver, used and cached [B].

    Parameters
    ----------
    device : Device or str, optional
        Whose memory; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; None sums the device's kinds.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        There is no such device or kind, or it cannot be used.

    Examples
    --------
    >>> from xdev import memory
    >>> memory.reserved("cpu") >= memory.allocated("cpu")
    True
    """
    return sum(pool.reserved for pool in existing(device, kind))


def max_reserved(device: object = None, kind: str | None = None) -> int:
    """Return the most bytes held since the start or :func:`reset_peak` [B].

    Parameters
    ----------
    device : Device or str, optional
        Whose memory; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; None sums the device's kinds.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        There is no such device or kind, or it cannot be used.

    Examples
    --------
    >>> from xdev import memory
    >>> memory.max_reserved("cpu") >= memory.reserved("cpu")
    True
    """
    return sum(most.reserved for most in _peaks(device, kind))


def reset_peak(device: object = None, kind: str | None = None) -> None:
    """Start the peaks afresh from what is in use now.

    Parameters
    ----------
    device : Device or str, optional
        Whose memory; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; None takes all of the device's kinds.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        There is no such device or kind, or it cannot be used.

    Examples
    --------
    >>> from xdev import memory
    >>> memory.reset_peak("cpu")
    >>> memory.max_reserved("cpu") == memory.reserved("cpu")
    True
    """
    for pool in existing(device, kind):
        pool.state.look(lambda _, ledger: ledger.reset_peak())


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
    for pool in selected(device, kind):
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
        The limit is not a size or share, or the device has no such kind.

    Examples
    --------
    >>> set_limit("4 GiB", "cpu")
    >>> get_limit("cpu")
    4294967296
    >>> set_limit(None, "cpu")
    """
    budget(owner(device, kind)).set(limit)


def get_limit(device: object = None, kind: str | None = None) -> int | None:
    """Return the limit of a device [B], None without one.

    Parameters
    ----------
    device : Device or str, optional
        Whose limit; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Accepted as everywhere; the limit holds over the device's kinds.

    Returns
    -------
    int or None
        Bytes, also of a limit that was set as a share.

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        There is no such device or kind, or it cannot be used.

    Examples
    --------
    >>> from xdev import memory
    >>> memory.set_limit("1 GiB", "fake:1")
    >>> memory.get_limit("fake:1")
    1073741824
    >>> memory.set_limit(None, "fake:1")
    """
    return budget(owner(device, kind)).limit


def stats(device: object = None, kind: str | None = None) -> dict[str, int]:
    """Return the ledger under PyTorch's names.

    Parameters
    ----------
    device : Device or str, optional
        Whose memory; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; None sums the device's kinds.

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

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        There is no such device or kind, or it cannot be used.

    Examples
    --------
    >>> keys = stats("cpu")
    >>> parts = (keys[f"allocation.{pool}_pool.current"] for pool in ("small", "large"))
    >>> sum(parts) == keys["allocation.all.current"]
    True
    """
    return keys_of([pool.stats() for pool in existing(device, kind)])


def text_of(nbytes: int) -> str:
    """Return a size with a unit.

    Examples
    --------
    >>> text_of(512), text_of(3 << 29)
    ('512 B', '1.500 GiB')
    """
    power = min(max(nbytes.bit_length() - 1, 0) // 10, len(UNITS) - 1)
    return f"{nbytes / 1024**power:.{3 if power else 0}f} {UNITS[power]}"


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

    def __enter__(self) -> Self:
        """Follow the pools that there are; one that is made later is followed whole."""
        for pool in existing(self._where, self._kind):
            self._open[pool] = pool.state.look(lambda _, ledger: ledger.open())
        return self

    def __exit__(self, *_: object) -> None:
        """Keep the peaks so far."""
        self._final = self._most()
        self._open.clear()

    def _most(self) -> tuple[int, int]:
        if self._final is not None:
            return self._final
        allocated = reserved = 0
        for pool in existing(self._where, self._kind):
            ever = pool.state.look(lambda _, ledger: ledger.peaks(ever=True))
            scope = self._open.get(pool, ever)
            allocated += scope.allocated
            reserved += scope.reserved
        return allocated, reserved


def peak(device: object = None, kind: str | None = None) -> Peak:
    """Follow the most memory in use inside a ``with`` block.

    It counts what all threads take from the pools. On the CPU that is not all there is:
    NumPy's own arrays, which are also xdev's of less than 64 KiB and results of NumPy's
    functions, are not seen (:func:`tracemalloc.get_traced_memory` sees them; those of
    64 KiB and more are the pool's while the NumPy bridge is installed). Blocks may nest
    and overlap in any order, on one device or several. Kinds have peaks of their own;
    without ``kind`` it is their sum.

    Parameters
    ----------
    device : Device or str, optional
        Whose memory; the default device without one.
    kind : {"host", "pinned", "device"}, optional
        Which memory; None sums the device's kinds.

    Returns
    -------
    Peak
        A context manager that enters as itself: ``nbytes`` and ``reserved`` are the
        most in use and the most held, so far or until the block's end [B].

    Raises
    ------
    ConfigurationError, DeviceUnavailableError
        There is no such device or kind, or it cannot be used.

    Examples
    --------
    >>> import xdev
    >>> with peak("cpu") as most:
    ...     x = xdev.empty(1_000_000, device="cpu")
    ...     del x
    >>> most.nbytes >= 8_000_000
    True
    """
    return Peak(owner(device, kind), kind)
