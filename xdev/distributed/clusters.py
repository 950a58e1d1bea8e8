"""Workers of Dask's: devices, pools, received chunks; clusters on this machine."""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import threading
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _config, _optional, native
from xdev.device import Device, choice, devices
from xdev.device.registry import backend
from xdev.errors import ConfigurationError, quoted
from xdev.memory import bridges, hooks, host_array, registry

if TYPE_CHECKING:
    from collections.abc import Callable

_Base: Any = _optional.distributed().WorkerPlugin
EVERY = 100  # milliseconds between looks at the memory of a worker
VISIBLE = "CUDA_VISIBLE_DEVICES"


class WorkerPlugin(_Base):  # type: ignore[misc]
    """Give each worker its device, its pool's limit, and its threads.

    Register it, ``client.register_plugin(WorkerPlugin())``, before the first task: each
    worker, later ones too, sets itself up. NumPy's memory in it is the pool's then
    (where xdev's compiled part is), that of received chunks too, on CUDA as well; and
    free memory of the pool goes back before Dask spills, pauses or ends the worker.

    Parameters
    ----------
    device : "cpu", "cuda" or None
        Where creation functions make arrays unless told; None: on CUDA where a worker
        has a GPU. A worker has one: the only visible one, or of those that
        ``CUDA_VISIBLE_DEVICES`` lists the one with the number that ends its name.
    limit : int, float, str or None
        What the device's pool may hold in each worker, as
        :func:`xdev.memory.set_limit` takes it: a share is of the GPU's memory, or, for
        each worker on the CPU, of all the machine's.
    threads : int, optional
        How many threads one call of a ufunc or kernel has on the CPU, beside as many
        tasks as the worker has threads. ``XDEV_NUM_THREADS``, or 1, unless given.

    Raises
    ------
    ConfigurationError
        The limit is not a size or share.

    Examples
    --------
    >>> from xdev.distributed import WorkerPlugin
    >>> plugin = WorkerPlugin("cpu", limit="6GiB")
    >>> plugin.device, plugin.limit
    ('cpu', '6GiB')
    >>> WorkerPlugin(limit="much")
    Traceback (most recent call last):
    xdev.errors.ConfigurationError: ...'much'...
    """

    name = "xdev"

    def __init__(
        self,
        device: str | None = None,
        *,
        limit: float | str | None = None,
        threads: int | None = None,
    ) -> None:
        if limit is not None:
            _config.parse_limit(limit)
        self.device, self.limit, self.threads = device, limit, threads

    def setup(self, worker: Any) -> None:
        """Set up a worker's process; Dask calls it there.

        Parameters
        ----------
        worker : distributed.Worker
            The one of this process.

        Raises
        ------
        ConfigurationError
            It sees several GPUs: the text says how to start it.
        DeviceUnavailableError
            It was to have a GPU, and none can be used.
        """
        threads = self.threads or os.environ.get("XDEV_NUM_THREADS") or 1
        os.environ["XDEV_NUM_THREADS"] = str(threads)
        _config.num_threads.cache_clear()
        device = _device_of_worker(self.device, str(worker.name))
        choice.set_process_default(device)
        if self.limit is not None:
            registry.set_limit(self.limit, device)
        if native.module("pool") is not None:
            bridges.install("numpy")
        for module in ("comm.tcp", "protocol.utils"):
            protocol = importlib.import_module(f"distributed.{module}")
            vars(protocol)["host_array"] = room_for_received
        if device.type == "cuda":
            _receive_in_the_pool()
        self._watch(worker)
        self._spiller = spiller_of(worker.data)
        hooks.spillers.append(self._spiller)

    def teardown(self, worker: Any) -> None:
        """Watch a worker's memory no more; the rest stays.

        Parameters
        ----------
        worker : distributed.Worker
            The one that :meth:`setup` was given.
        """
        worker.periodic_callbacks.pop("xdev").stop()
        hooks.spillers.remove(self._spiller)

    def _watch(self, worker: Any) -> None:
        """Give cached memory back where Dask is about to spill for it."""
        manager = worker.memory_manager
        share = manager.memory_target_fraction or manager.memory_spill_fraction
        most = (manager.memory_limit or 0) * (share or 0)

        def look() -> None:
            if most and worker.monitor.get_process_memory() > most:
                registry.reclaim(device="cpu")

        callback = importlib.import_module("tornado.ioloop").PeriodicCallback
        worker.periodic_callbacks["xdev"] = callback(look, EVERY)
        worker.periodic_callbacks["xdev"].start()


def spiller_of(data: Any) -> Callable[[], bool]:
    """Return what has Dask write a worker's oldest result to disk, and says if it did.

    Where a pool's limit would refuse a request. Writing takes memory itself, which then
    is not made so.
    """
    inside = threading.local()

    def spill() -> bool:
        if getattr(inside, "busy", False) or not getattr(data, "fast", None):
            return False
        inside.busy = True
        try:
            return bool(data.evict() >= 0)
        finally:
            inside.busy = False

    return spill


#: Whether the message that is read comes from the scheduler; the threads that unpack it
#: have its reader's context.
_from_scheduler = ContextVar("_from_scheduler", default=False)


def room_for_received(nbytes: int) -> memoryview:
    """Return memory for what a worker receives, which no limit may refuse.

    For Dask ends the worker then. Chunks from others are in the pool as long as its
    limit has room for them, which spilling makes. What the scheduler sends is tasks,
    with what their functions hold: it cannot be spilled, and would leave the tasks no
    room, so it lies beside the pool, as does what Dask reads from disk.
    """
    with suppress(RuntimeError):  # in a thread no coroutine runs
        task: Any = asyncio.current_task()
        _from_scheduler.set(task.get_coro().__name__ == "handle_scheduler")
    if not _from_scheduler.get():
        with suppress(MemoryError):
            return host_array((nbytes,), np.dtype("u1")).data
    return memoryview(bytearray(nbytes))


def _device_of_worker(wanted: str | None, name: str) -> Device:
    """Return a worker's one device; of several GPUs that the environment lists, one."""
    listed = os.environ.get(VISIBLE, "").split(",")
    number = re.search(r"\d+$", name)
    if wanted != "cpu" and len(listed) > 1 and number:
        os.environ[VISIBLE] = listed[int(number[0]) % len(listed)]
    if wanted == "cpu" or (wanted is None and not backend("cuda").count()):
        return Device("cpu")
    device = Device(wanted or "cuda").require()
    count = backend(device.type).count()
    if device.type == "cuda" and count > 1:
        raise ConfigurationError(
            f"the worker {name} sees {count} GPUs, and a worker has one: start one for "
            f"each, {VISIBLE}=0 dask worker tcp://…, or register xdev's plug-in before "
            f"anything uses CUDA there, with all of them in {VISIBLE}"
        )
    return device


def _receive_in_the_pool() -> None:
    """Let arrays of CuPy's that come by TCP lie in CuPy's memory, which is the pool's.

    Dask has them in RMM's or Numba's.
    """
    cupy, protocol = _optional.cupy(), importlib.import_module("distributed.protocol")
    importlib.import_module("distributed.protocol.cupy")  # or it would come later

    def received(header: dict[str, Any], frames: list[Any]) -> Any:
        (frame,) = frames
        memory = cupy.empty(memoryview(frame).nbytes, "u1")
        memory.set(np.frombuffer(frame, "u1"))
        shape, typestr, strides = map(header.get, ("shape", "typestr", "strides"))
        return cupy.ndarray(shape, typestr, memory.data, strides)

    protocol.dask_deserialize.register(cupy.ndarray)(received)


def local_cluster(
    n_workers: int | None = None,
    *,
    device: str | None = None,
    limit: float | str | None = None,
    threads_per_worker: int = 1,
    **options: Any,
) -> Any:
    """Start workers on this machine: one for each GPU, or on the CPU where none is.

    Parameters
    ----------
    n_workers : int, optional
        As many as there are GPUs, on the CPU as processors, unless given.
    device : "cpu" or "cuda", optional
        CUDA where it can be used, unless given.
    limit : int, float, str or None
        What the device's pool may hold in each worker, as
        :func:`xdev.memory.set_limit` takes it: a share is of the GPU's memory, or, for
        each worker on the CPU, of all the machine's.
    threads_per_worker : int
        How many tasks a worker runs at a time.
    **options
        Those of :class:`distributed.LocalCluster`: ``memory_limit``,
        ``dashboard_address``, ``host``, …

    Returns
    -------
    distributed.LocalCluster
        A context manager; ``distributed.Client(cluster)`` connects to it. Programs that
        start one do so below ``if __name__ == "__main__":``, since its processes import
        them.

    Raises
    ------
    ConfigurationError
        There are fewer GPUs than workers.
    DeviceUnavailableError
        ``device`` is ``"cuda"``, and CUDA cannot be used.

    Examples
    --------
    >>> import xdev
    >>> from distributed import Client
    >>> how = {"device": "cpu", "dashboard_address": None}
    >>> with xdev.distributed.local_cluster(1, **how) as cluster, Client(cluster):
    ...     x = xdev.ones(1_000_000, chunks=250_000, device="cpu")
    ...     float(xdev.sum(x))
    1000000.0
    """
    distributed = _optional.distributed()
    gpus = 0 if device == "cpu" else backend("cuda").count()
    if device == "cuda" or gpus:
        Device("cuda").require()
        if n_workers is not None and n_workers > gpus:
            have = f"{n_workers} workers, and {gpus} GPUs, of which each has one"
            way = f"start {gpus}, or device='cpu'"
            raise ConfigurationError(f"local_cluster: {have}: {way}")
        numbers = os.environ.get(VISIBLE) or ",".join(map(str, range(gpus)))
        options["env"] = {**options.get("env", {}), VISIBLE: numbers}
    if n_workers is None:
        n_workers = gpus or _config.processors()
    plugin = WorkerPlugin("cuda" if gpus else "cpu", limit=limit)
    options |= {"threads_per_worker": threads_per_worker, "plugins": (plugin,)}
    return distributed.LocalCluster(n_workers=n_workers, **options)


def memory_status(client: Any) -> dict[str, dict[str, dict[str, int | None]]]:
    """Return what the pools of each worker hold [B].

    Parameters
    ----------
    client : distributed.Client
        It is connected to the workers.

    Returns
    -------
    dict
        By the worker's address and the device: ``allocated``, ``max_allocated``,
        ``reserved`` and ``limit``, as :mod:`xdev.memory` has them.

    Raises
    ------
    TypeError
        ``client`` is not a client of Dask's.

    Examples
    --------
    >>> import xdev
    >>> from distributed import Client
    >>> how = {"device": "cpu", "limit": "1GiB", "dashboard_address": None}
    >>> with xdev.distributed.local_cluster(1, **how) as cluster:
    ...     with Client(cluster) as client:
    ...         [worker] = xdev.distributed.memory_status(client).values()
    >>> worker["cpu"]
    {'allocated': ..., 'max_allocated': ..., 'reserved': ..., 'limit': 1073741824}
    """
    if not isinstance(client, _optional.distributed().Client):
        way = "give a distributed.Client that is connected, distributed.Client(cluster)"
        raise TypeError(f"client is {quoted(client)}: {way}")
    return client.run(_ledgers)  # type: ignore[no-any-return]


def _ledgers() -> dict[str, dict[str, int | None]]:
    known = registry.allocated, registry.max_allocated, registry.reserved
    figures: Any = {f.__name__: f for f in known} | {"limit": registry.get_limit}
    return {str(d): {key: of(d) for key, of in figures.items()} for d in devices()}
