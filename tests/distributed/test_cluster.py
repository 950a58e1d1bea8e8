"""Two worker processes: NumPy's bits, what is moved, a worker that dies, memory."""

import importlib
import os
import signal
import socket
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import xdev
from xdev import distributed

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")

HERE = Path(__file__).parent
WORKERS = 2
LIMIT = 700_000_000  # of a worker [B]: its libraries take a third


@pytest.fixture(scope="module")
def functions():
    sys.path.insert(0, str(HERE))
    yield importlib.import_module("cluster_functions")
    sys.path.remove(str(HERE))


@contextmanager
def dashboards_port_taken():
    """Hold the port that Dask's dashboard has unless told, unless somebody has it."""
    with socket.socket() as listener:
        with suppress(OSError):
            listener.bind(("", 8787))
            listener.listen()
        yield


@pytest.fixture(scope="module")
def client(functions):
    from distributed import Client

    assert functions
    with (
        dashboards_port_taken(),
        # Or a busy machine decides which chunks are moved.
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        distributed.local_cluster(
            WORKERS, device="cpu", memory_limit=LIMIT, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as connected,
    ):
        yield connected


def test_a_users_functions_run_in_the_workers(client, functions):
    plain = np.random.default_rng(7).random((24, 16))
    x = xdev.asarray(plain, chunks=(6, -1))
    vector = xdev.arange(1000.0, chunks=100)

    made = functions.wave(x, 3.0), functions.length(x)
    stencil = distributed.map(functions.mapped, vector, depth=1)
    values = [each.result() for each in client.compute([*made, stencil])]

    expected = functions.wave(plain, 3.0), functions.length(plain)
    for one, other in zip(values, expected, strict=False):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(values[2], functions.mapped(np.arange(1000.0)))


def test_each_worker_has_its_device_threads_and_process(client, functions):
    found = client.run(functions.settings)

    assert len(found) == WORKERS
    assert {each[:3] for each in found.values()} == {("cpu", None, "1")}
    assert len({os.getpid(), *(each[3] for each in found.values())}) == WORKERS + 1


def test_received_chunks_are_in_the_ledger(client, functions):
    from distributed import wait

    here, there = client.run(functions.settings)
    nbytes = 2**23
    x = client.submit(np.ones, nbytes // 8, workers=[here])
    wait(x)
    before = distributed.memory_status(client)[there]["cpu"]["allocated"]

    during = client.submit(functions.held, x, workers=[there], pure=False).result()

    assert during - before >= nbytes
    status = distributed.memory_status(client)
    assert set(status) == {here, there}
    # Dask may have dropped the first of the two copies by now.
    assert sum(each["cpu"]["allocated"] for each in status.values()) >= nbytes
    assert set(status[here]["cpu"]) == {
        "allocated",
        "max_allocated",
        "reserved",
        "limit",
    }


def test_a_worker_that_is_killed_changes_no_bit(client, functions):
    x = xdev.arange(80.0, chunks=1)
    y = distributed.map(functions.slowly, x)
    z = xdev.add(y, xdev.sqrt(x))
    future = client.compute(z)
    victim = next(iter(client.run(os.getpid).values()))
    time.sleep(0.5)
    assert not future.done()

    os.kill(victim, signal.SIGKILL)

    plain = np.arange(80.0)
    np.testing.assert_array_equal(future.result(), np.exp(-plain) + np.sqrt(plain))
    client.wait_for_workers(WORKERS)
    pids = client.run(os.getpid).values()
    assert len(pids) == WORKERS
    assert victim not in pids
    assert {each[0] for each in client.run(functions.settings).values()} == {"cpu"}


def sum_of_roots(n):
    """Return the sum of the square roots of 1 to n, by Euler and Maclaurin."""
    zeta = -0.2078862249773545  # Riemann's, of -1/2
    return n**1.5 * 2 / 3 + n**0.5 / 2 + zeta + n**-0.5 / 24


@pytest.mark.soak
def test_an_array_larger_than_the_workers_memory_completes(client):
    from distributed import wait

    x = xdev.sqrt(xdev.arange(1.0, 180e6, chunks=5_000_000))
    assert x.nbytes > WORKERS * LIMIT

    x = x.persist()
    wait(x)
    on_disk = client.run(lambda dask_worker: len(dask_worker.data.slow))
    total = float(xdev.sum(x))

    assert sum(on_disk.values()) > 0
    assert total == pytest.approx(sum_of_roots(180_000_000 - 1), rel=1e-13)
    reserved = sum(
        each["cpu"]["reserved"] for each in distributed.memory_status(client).values()
    )
    assert reserved < WORKERS * LIMIT


def test_a_workers_error_is_the_users(client, functions):
    with pytest.raises(xdev.OutOfMemoryError, match="cannot allocate"):
        client.submit(functions.refused).result()


@pytest.mark.usefixtures("tier")
def test_what_is_over_a_pools_limit_is_written_to_disk(client):
    from distributed import wait

    most = 50_000_000
    client.register_plugin(distributed.WorkerPlugin("cpu", limit=most, threads=2))
    x = xdev.sqrt(xdev.arange(1.0, 20e6, chunks=500_000)).persist()
    wait(x)

    assert x.nbytes > WORKERS * most
    total = float(xdev.sum(x))
    assert total == pytest.approx(np.sqrt(np.arange(1.0, 20e6)).sum(), rel=1e-13)
    for ledger in distributed.memory_status(client).values():
        assert ledger["cpu"]["limit"] == most
        assert most / 2 < ledger["cpu"]["max_allocated"]
        assert ledger["cpu"]["reserved"] <= most


def test_arrays_that_functions_hold_are_received_over_a_pools_limit(client):
    most, held = 40_000_000, np.ones(500_000)
    client.register_plugin(distributed.WorkerPlugin("cpu", limit=most))
    pids = set(client.run(os.getpid).values())
    x = xdev.ones(20_000_000, chunks=500_000).persist()
    assert held.nbytes * x.npartitions > WORKERS * most

    y = distributed.map(lambda block: block + held[0], x)

    assert float(client.compute(xdev.sum(y)).result(timeout=120)) == 40e6
    assert set(client.run(os.getpid).values()) == pids
    for ledger in distributed.memory_status(client).values():
        assert ledger["cpu"]["reserved"] <= most


def test_more_workers_than_gpus_are_refused():
    with pytest.raises((xdev.ConfigurationError, xdev.DeviceUnavailableError)):
        distributed.local_cluster(99, device="cuda")
