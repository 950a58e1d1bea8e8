"""What the plug-in makes of a worker, without a cluster."""

import asyncio
import os
from types import SimpleNamespace

import pytest

import xdev
from xdev import _config
from xdev.device import choice
from xdev.memory import hooks

pytest.importorskip("distributed")

from xdev.distributed import WorkerPlugin, clusters


@pytest.fixture
def worker(monkeypatch):
    """A worker at half of its memory; what the plug-in sets is set back."""
    monkeypatch.setenv("XDEV_NUM_THREADS", "")
    monkeypatch.setattr(choice, "from_environment", [])
    monkeypatch.setattr(clusters.bridges, "install", lambda *_: None)
    limit = xdev.memory.get_limit("cpu")
    manager = SimpleNamespace(
        memory_limit=100, memory_target_fraction=0.6, memory_spill_fraction=0.7
    )
    used = [50]
    loop = asyncio.new_event_loop()  # Python 3.12 warns where a call-back finds none
    asyncio.set_event_loop(loop)
    yield SimpleNamespace(
        name="gpu-1",
        data={},
        periodic_callbacks={},
        memory_manager=manager,
        used=used,
        monitor=SimpleNamespace(get_process_memory=lambda: used[0]),
    )
    asyncio.set_event_loop(None)
    loop.close()
    xdev.memory.set_limit(limit, "cpu")
    _config.num_threads.cache_clear()
    hooks.spillers.clear()


def sees(monkeypatch, gpus):
    monkeypatch.setattr(
        clusters, "backend", lambda _: SimpleNamespace(count=lambda: gpus)
    )


@pytest.mark.parametrize(
    ("listed", "name", "expected"),
    [("3,5", "gpu-1", "5"), ("3,5", "worker", "3,5"), ("7", "gpu-1", "7")],
)
def test_of_several_gpus_a_worker_takes_the_one_of_its_name(
    monkeypatch, worker, listed, name, expected
):
    monkeypatch.setenv(clusters.VISIBLE, listed)
    sees(monkeypatch, gpus=0)
    worker.name = name

    plugin = WorkerPlugin()
    plugin.setup(worker)

    assert os.environ[clusters.VISIBLE] == expected
    plugin.teardown(worker)


def test_a_worker_on_the_cpu_takes_none(monkeypatch, worker):
    monkeypatch.setenv(clusters.VISIBLE, "3,5")

    WorkerPlugin("cpu", limit="1GiB", threads=3).setup(worker)

    assert os.environ[clusters.VISIBLE] == "3,5"
    assert choice.from_environment == ["cpu"]
    assert xdev.memory.get_limit("cpu") == 2**30
    assert (_config.num_threads(), os.environ["XDEV_NUM_THREADS"]) == (3, "3")


def test_a_worker_that_sees_several_gpus_is_told_how_to_start(monkeypatch, worker):
    sees(monkeypatch, gpus=2)
    monkeypatch.setattr(
        clusters,
        "Device",
        lambda _: SimpleNamespace(require=lambda: SimpleNamespace(type="cuda")),
    )

    with pytest.raises(xdev.ConfigurationError, match=r"sees 2 GPUs.*CUDA_VISIBLE_DEV"):
        WorkerPlugin().setup(worker)


def test_cached_memory_goes_back_before_dask_spills(worker):
    plugin = WorkerPlugin("cpu")
    plugin.setup(worker)
    look = worker.periodic_callbacks["xdev"].callback
    x = xdev.zeros(2**20, device="cpu")
    del x
    cached = xdev.memory.reserved("cpu")

    look()
    assert xdev.memory.reserved("cpu") == cached > 0
    worker.used[0] = 61
    look()
    assert xdev.memory.reserved("cpu") < cached

    assert len(hooks.spillers) == 1
    plugin.teardown(worker)
    assert not worker.periodic_callbacks
    assert not hooks.spillers


def test_no_limit_refuses_what_is_received(monkeypatch):
    def refuse(*_):
        raise MemoryError

    monkeypatch.setattr(clusters, "host_array", refuse)
    room = clusters.room_for_received(11)
    assert (room.nbytes, room.readonly) == (11, False)
