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

RNG = np.random.default_rng(7)
A, B = RNG.uniform(0.1, 0.9, (2, 24, 16))
I, J = RNG.integers(1, 5, (2, 24, 16))
C = A + 1j * B
S = RNG.standard_normal((8, 3, 3)) + 3 * np.eye(3)
CHUNKS = (6, -1)

#: Functions of which nothing crosses the chunks, which cut the first axis, by what they
#: are given: to NumPy's bits. All others are in tests/facade, without a cluster.
ARGUMENTS = {
    "abs exp expm1 floor isnan log sin sqrt tanh": (A,),
    "add divide equal hypot maximum pow remainder": (A, B),
    "bitwise_xor bitwise_left_shift": (I, J),
    "conj real imag": (C,),
    "linalg.det linalg.inv linalg.eigvals": (S,),
    "linalg.eigvalsh linalg.cholesky": (S @ S.mT,),
}
ALONG = "sum prod max all sort argsort argmax mean std"
CALLS = [
    (name, args, {}) for names, args in ARGUMENTS.items() for name in names.split()
] + [(name, (A,), {"axis": 1}) for name in ALONG.split()]
CALLS += [
    ("where", (A > B, A, B), {}),
    ("concat", ([A, B],), {}),
    ("take_along_axis", (A, I), {"axis": 1}),
    ("flip", (A,), {"axis": 1}),
    ("fft.fft", (A,), {"axis": 1}),
]


def by_name(module, path):
    found = module
    for name in path.split("."):
        found = getattr(found, name)
    return found


def cut(x):
    if isinstance(x, list):
        return [cut(each) for each in x]
    return xdev.asarray(x, chunks=(CHUNKS[0], *(-1,) * (x.ndim - 1)))


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


def test_functions_have_numpys_bits(client):
    collections, expected = [], []
    for path, args, options in CALLS:
        collections.append(by_name(xdev, path)(*map(cut, args), **options))
        expected.append(by_name(np, path)(*args, **options))

    values = client.gather(client.compute(collections))

    for (path, *_), made, right in zip(CALLS, values, expected, strict=True):
        np.testing.assert_array_equal(made, right, err_msg=path)


def test_a_users_functions_run_in_the_workers(client, functions):
    x = cut(A)
    vector = xdev.arange(1000.0, chunks=100)

    made = functions.wave(x, 3.0), functions.length(x)
    stencil = distributed.map(functions.mapped, vector, depth=1)
    values = [each.result() for each in client.compute([*made, stencil])]

    expected = functions.wave(A, 3.0), functions.length(A)
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
