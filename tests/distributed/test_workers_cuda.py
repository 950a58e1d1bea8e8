"""Workers on GPUs: chunks of CuPy's, made and received in the pool of their device."""

import os
from types import SimpleNamespace

import numpy as np
import pytest

import xdev
from xdev import distributed

pytest.importorskip("distributed")
pytestmark = pytest.mark.cuda
NBYTES = 2**24


@pytest.fixture(scope="module")
def client():
    from distributed import Client

    if "cuda" not in os.environ.get("XDEV_TEST_DEVICES", ""):
        pytest.skip("XDEV_TEST_DEVICES promises no GPU")
    with (
        distributed.local_cluster(
            limit="50%", memory_limit="8GB", dashboard_address=":0"
        ) as cluster,
        Client(cluster) as connected,
    ):
        yield connected


def ledgers(client):
    return {
        worker: each["cuda:0"]
        for worker, each in distributed.memory_status(client).items()
    }


def test_each_worker_has_one_gpu_and_its_limit(cuda, client):
    found = client.run(lambda: (str(xdev.default_device()), len(xdev.devices())))

    gpus = [each for each in xdev.devices() if each.type == cuda.type]
    assert list(found.values()) == [("cuda:0", 2)] * len(gpus)
    assert all(each["limit"] > 0 for each in ledgers(client).values())


def test_chunks_are_made_on_the_gpu_in_the_pool(cuda, client):
    from distributed import wait

    before = sum(each["allocated"] for each in ledgers(client).values())
    x = xdev.ones(NBYTES // 8, device=cuda, chunks=NBYTES // 64).persist()
    wait(x)

    after = sum(each["allocated"] for each in ledgers(client).values())
    assert after - before >= NBYTES
    total = xdev.sum(xdev.sqrt(x) + x)
    assert float(total) == 2 * NBYTES // 8


def test_received_chunks_are_in_the_pool(cuda, client):
    from distributed import wait

    x = xdev.asarray(np.arange(NBYTES // 8), device=cuda)
    worker = next(iter(ledgers(client)))
    before = ledgers(client)[worker]["allocated"]

    (future,) = client.scatter([x], workers=[worker])
    wait(future)

    assert ledgers(client)[worker]["allocated"] - before >= NBYTES
    back = client.submit(xdev.sum, future).result()
    assert int(back) == int(np.arange(NBYTES // 8).sum())


def test_what_is_over_the_pools_limit_is_written_to_disk(cuda, client):
    from distributed import wait

    most = 8 * NBYTES
    client.register_plugin(distributed.WorkerPlugin("cuda", limit=most))
    count = 3 * len(ledgers(client)) * most // 8

    x = xdev.sqrt(xdev.ones(count, device=cuda, chunks=NBYTES // 8)).persist()
    wait(x)

    assert float(xdev.sum(x)) == count
    assert all(each["reserved"] <= most for each in ledgers(client).values())


@pytest.mark.two_gpus
@pytest.mark.usefixtures("cuda")
def test_a_worker_that_sees_several_gpus_is_told_how_to_start(monkeypatch):
    if sum(each.type == "cuda" for each in xdev.devices()) < 2:
        pytest.skip("this machine has one GPU")
    monkeypatch.setenv("XDEV_NUM_THREADS", "1")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    with pytest.raises(xdev.ConfigurationError, match=r"sees \d GPUs.*CUDA_VIS"):
        distributed.WorkerPlugin().setup(SimpleNamespace(name="worker"))
