"""The pools of this process: one a device and kind, made at their first use."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from xdev import _config
from xdev._forks import module_lock
from xdev.device import Device, as_device
from xdev.errors import ConfigurationError
from xdev.memory import policies
from xdev.memory.pools import Pool
from xdev.memory.sources.host import HostSource
from xdev.memory.upstream import Budget

if TYPE_CHECKING:
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
    where = as_device(device)
    kind = check_kind(where, kind) or next(iter(kinds(where)))
    found = _pools.get((where, kind))
    return _make(where, kind) if found is None else found


def _make(where: Device, kind: str) -> Pool:
    if kind != "host":
        (where if kind == "device" else Device("cuda")).require()
    with _lock:
        found = _pools.get((where, kind))
        if found is None:
            source = _source(where, kind)
            name = str(where) if kind != "pinned" else f"{where} (pinned)"
            policy = policies.named(_config.memory_pool())
            if policy.asynchronous and kind != "device":  # no streams order it
                policy = policies.named("split")
            if _config.debug():
                from xdev.memory.debugging import guarded

                source, policy = guarded(source, policy, where, kind)
            made = Pool(source, policy, name=name, budget=budget(where))
            found = _pools.setdefault((where, kind), made)  # a finalizer's, if any
        return found


def kinds(where: Device | None) -> tuple[str, ...]:
    """Return the kinds of memory of a device, the usual one first; None: of all."""
    if where is None:
        return tuple(dict.fromkeys(chain(*KINDS.values())))
    return KINDS[where.type]


def check_kind(where: Device | None, kind: str | None) -> str | None:
    """Return the kind, or raise ConfigurationError where the device has none such.

    Without a device: where none has.
    """
    if kind is None or kind in kinds(where):
        return kind
    known = ", ".join(repr(name) for name in kinds(where))
    owner = "there is" if where is None else f"{where} has"
    raise ConfigurationError(f"{owner} no memory of kind {kind!r}: use {known} or None")


def existing(device: object = None, kind: str | None = None) -> list[Pool]:
    """Return a device's pools that are in use, of one kind or all; it makes none."""
    return selected(as_device(device), kind)


def selected(device: object = None, kind: str | None = None) -> list[Pool]:
    """Do as :func:`existing`; without a device, of all devices."""
    where = None if device is None else as_device(device)
    check_kind(where, kind)
    return [
        found
        for (owner, name), found in everything().items()
        if (where is None or where == owner) and kind in (None, name)
    ]


def everything() -> dict[tuple[Device, str], Pool]:
    """Return all pools in use, by device and kind."""
    with _lock:
        return dict(_pools)


def budget(where: Device) -> Budget:
    """Return the limit that the pools of a device share."""
    with _lock:
        found = _budgets.get(where)
        if found is None:
            made = Budget(partial(total, where))
            made.set(_config.memory_limit())
            found = _budgets.setdefault(where, made)  # likewise
        return found


def total(where: Device) -> int:
    """Return the memory of a device, or of the machine or cgroup [B]."""
    source = _source(where.require(), kinds(where)[0])
    return int(source.total())  # type: ignore[attr-defined]
