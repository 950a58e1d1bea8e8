"""What several tests of the memory room share."""

import gc
import sys
from pathlib import Path

import pytest

from xdev import _optional
from xdev.device.streams import live_streams
from xdev.memory import hooks, policies, reclamation, registry, tracking
from xdev.memory.sources import host

sys.path.append(str(Path(__file__).parent))  # for the modules that several files use
from memory_laws import MACHINE, POLICIES, QUANTUM, registered


@pytest.fixture(params=POLICIES)
def policy(request):
    return request.param


@pytest.fixture
def tiny_policy(monkeypatch):
    """Let "tiny" be ``split`` as it is for large memory, in quanta.

    Small requests share segments of their own, larger ones grow in pairs.
    """

    def grown(granted, _):
        return max(granted, 2 * QUANTUM)

    split = policies.POLICIES["split"]
    tiny = split._replace(name="tiny", small=QUANTUM, grown=grown)
    monkeypatch.setitem(policies.POLICIES, "tiny", tiny)
    monkeypatch.setattr(reclamation, "TRIMMED", 2 * QUANTUM)


@pytest.fixture
def no_pools():
    """Start as a fresh process does."""
    with registered({}):
        yield


@pytest.fixture
def no_fake_pools():
    """Start as a process does that used no fake device yet."""
    with registered({k: p for k, p in registry._pools.items() if k[0].type != "fake"}):
        yield


@pytest.fixture
def untold(monkeypatch):
    """Start as if the environment had not said yet whether to track."""
    monkeypatch.setattr(tracking, "_begun", False)


@pytest.fixture
def spillers(monkeypatch):
    """Return the list of what is asked for memory last of all; it is empty."""
    monkeypatch.setattr(hooks, "spillers", [])
    return hooks.spillers


@pytest.fixture(scope="session")
def numba_cuda():
    pytest.importorskip("numba_cuda")
    return _optional.numba_cuda()


@pytest.fixture
def manager_on():
    """Return a function that makes Numba's memory manager on pools, by their kind."""
    pytest.importorskip("numba_cuda")
    from xdev.memory.bridges.numba import manager_type

    def make(context, **pools):
        return manager_type.__wrapped__(lambda _, kind: pools[kind])(context=context)

    return make


@pytest.fixture
def core_resource():
    pytest.importorskip("numba_cuda")
    from xdev.memory.bridges.numba import resource_type

    return resource_type()


@pytest.fixture
def pinned_bridge(pool):
    """Return the bridge into CuPy whose pinned allocator is in, as with a driver."""
    cupy = pytest.importorskip("cupy")
    from xdev.memory.bridges.cupy import CupyBridge, pinned_allocator

    bridge = CupyBridge()
    bridge._pinned = True
    cupy.cuda.set_pinned_memory_allocator(pinned_allocator(lambda: pool))
    yield bridge
    default = cupy.get_default_pinned_memory_pool().malloc
    cupy.cuda.set_pinned_memory_allocator(default)


@pytest.fixture
def cgroups(tmp_path, monkeypatch):
    """Return a function that makes a system's memberships and limits by file.

    It has ``MACHINE`` bytes, of which a process may use what the function returns.
    """

    def make(membership, limits, file="membership"):
        (tmp_path / file).write_text(membership)
        for name, text in limits.items():
            path = tmp_path / "cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
        return host.host_total()

    monkeypatch.setattr(host, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(host, "CGROUPS", tmp_path / "cgroup")
    pages = {"SC_PHYS_PAGES": MACHINE, "SC_PAGE_SIZE": 1}
    monkeypatch.setattr(host.os, "sysconf", pages.__getitem__)
    return make


@pytest.fixture
def capturing(monkeypatch):
    """Return a function that says which streams are captured, to each pool."""
    return lambda *streams: monkeypatch.setattr(live_streams, "captured", set(streams))


@pytest.fixture
def on_fake_memory():
    """Return a function: with it CuPy's arrays are of a pool, no driver is needed."""
    cupy = pytest.importorskip("cupy")
    from xdev.memory.bridges.cupy import device_allocator

    class NullStream:
        ptr = 0

    def using(pool, current=NullStream):
        return cupy.cuda.using_allocator(device_allocator(pool.take, current))

    return using


@pytest.fixture
def few_objects():
    """Let collections, the ladder's too, look only at what the test makes."""
    gc.collect()
    gc.freeze()  # for good: thawed, all that other files made slows the next tests


@pytest.fixture(autouse=True)
def streams_as_they_were():
    """Forget the pretended streams that a test showed the library."""
    before = live_streams.several, live_streams._announced
    held = dict(live_streams._held)
    yield
    (live_streams.several, live_streams._announced), live_streams._held = before, held
