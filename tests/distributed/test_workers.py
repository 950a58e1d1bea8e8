"""What the plug-in makes of a worker, in a process of its own, without a cluster.

Clusters are in ``test_cluster.py``, commands that start workers in
``test_start_commands.py``.
"""

import pytest

pytest.importorskip("distributed")

WORKER = """
import asyncio, os, sys
from types import SimpleNamespace
import xdev
from xdev.distributed import WorkerPlugin

asyncio.set_event_loop(asyncio.new_event_loop())
used = [50]
worker = SimpleNamespace(
    name=sys.argv[1],
    data={},
    periodic_callbacks={},
    memory_manager=SimpleNamespace(
        memory_limit=100, memory_target_fraction=0.6, memory_spill_fraction=0.7
    ),
    monitor=SimpleNamespace(get_process_memory=lambda: used[0]),
)
"""
NAMED = """
plugin = WorkerPlugin("cpu" if sys.argv[1] == "cpu" else None)
plugin.setup(worker)
print(os.environ["CUDA_VISIBLE_DEVICES"])
plugin.teardown(worker)
"""
ON_CPU = """
plugin = WorkerPlugin("cpu", limit="1GiB", threads=3)
plugin.setup(worker)
assert xdev.default_device() == "cpu"
assert xdev.memory.get_limit("cpu") == 2**30
assert os.environ["XDEV_NUM_THREADS"] == "3"

look = worker.periodic_callbacks["xdev"].callback
x = xdev.zeros(2**20)
del x
cached = xdev.memory.reserved("cpu")
look()
assert xdev.memory.reserved("cpu") == cached > 0
used[0] = 61  # Dask is about to spill
look()
assert xdev.memory.reserved("cpu") < cached
plugin.teardown(worker)
assert not worker.periodic_callbacks
"""


@pytest.mark.parametrize(
    ("listed", "name", "expected"),
    [
        *(
            ("98,99", "gpu-1", "99"),
            ("98,99", "worker", "98,99"),
        ),  # that no machine has
        *(("97", "gpu-1", "97"), ("98,99", "cpu", "98,99")),
    ],
)
def test_of_several_gpus_a_worker_takes_the_one_of_its_name(
    python, listed, name, expected
):
    done = python("-c", WORKER + NAMED, name, CUDA_VISIBLE_DEVICES=listed)
    assert done.stdout.split() == [expected], done.stderr


def test_a_worker_on_the_cpu_has_its_limit_and_threads_and_reclaims_first(printed):
    options = "-W", "ignore"
    printed(WORKER + ON_CPU, "worker", options=options, XDEV_NUM_THREADS="")
