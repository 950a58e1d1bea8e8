"""Clusters on this machine, and the ledgers of workers' pools."""

from __future__ import annotations

import os
from typing import Any

from xdev import _config, _optional
from xdev.device import Device, default_device, devices
from xdev.device.registry import backend
from xdev.distributed.workers import VISIBLE, WorkerPlugin
from xdev.errors import ConfigurationError
from xdev.memory import reports
from xdev.timing.environment import cuda_name, processor_name


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
    """
    distributed = _optional.distributed()
    gpus = 0 if device == "cpu" else backend("cuda").count()
    if device == "cuda" or gpus:
        Device("cuda").require()
        if n_workers is not None and n_workers > gpus:
            message = (
                f"local_cluster: {n_workers} workers, and {gpus} GPUs, of which each "
                f"has one: start {gpus}, or device='cpu'"
            )
            raise ConfigurationError(message)
        numbers = os.environ.get(VISIBLE) or ",".join(map(str, range(gpus)))
        options["env"] = {**options.get("env", {}), VISIBLE: numbers}
    if n_workers is None:
        n_workers = gpus or _config.processors()
    plugin = WorkerPlugin("cuda" if gpus else "cpu", limit=limit)
    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=threads_per_worker,
        plugins=(plugin,),
        **options,
    )


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
    """
    found: dict[str, dict[str, dict[str, int | None]]] = client.run(_ledgers)
    return found


def _ledgers() -> dict[str, dict[str, int | None]]:
    return {
        str(device): {
            "allocated": reports.allocated(device),
            "max_allocated": reports.max_allocated(device),
            "reserved": reports.reserved(device),
            "limit": reports.get_limit(device),
        }
        for device in devices()
    }


def devices_of_workers() -> dict[str, str]:
    """Return what each worker computes on, by its address.

    Of the client that this process has, or of the scheduler that
    ``DASK_SCHEDULER_ADDRESS`` names; empty where there is neither.

    Raises
    ------
    OSError
        The scheduler does not answer.
    """
    distributed = _optional.distributed()
    found: dict[str, str] = {}
    try:
        found = distributed.default_client().run(_described)
    except ValueError:  # there is none
        if os.environ.get("DASK_SCHEDULER_ADDRESS"):
            with distributed.Client(set_as_default=False, timeout="5s") as client:
                found = client.run(_described)
    return found


def _described() -> str:
    device, limit = default_device(), reports.get_limit()
    name = processor_name() if device.type == "cpu" else cuda_name(device.index)
    pool = "" if limit is None else f", pool limited to {reports.text_of(limit)}"
    return f"{device!s:<8} {name or ''}{pool}"
