"""What several tests of the memory room share."""

import gc
import sys
from pathlib import Path

import pytest

from xdev import native
from xdev.memory import registry
from xdev.memory.streams import live_streams

sys.path.append(str(Path(__file__).parent))  # for the modules that several files use
from memory_laws import POLICIES


@pytest.fixture(params=POLICIES)
def policy(request):
    """Each policy in turn."""
    return request.param


@pytest.fixture
def no_pools(monkeypatch):
    """Start as a fresh process does."""
    monkeypatch.setattr(registry, "_pools", {})
    monkeypatch.setattr(registry, "_budgets", {})


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


@pytest.fixture(scope="session")
def tier():
    """The native tier's free lists and C functions."""
    found = native.module("pool")
    if found is None:
        pytest.skip(native.STATE)  # tests/native says where it must be
    return found


@pytest.fixture
def few_objects():
    """Let collections, the ladder's too, look only at what the test makes."""
    gc.collect()
    gc.freeze()  # for good: thawed, all that other files made slows the next tests


@pytest.fixture(autouse=True)
def streams_as_they_were():
    """Forget the pretended streams that a test showed the library."""
    told = live_streams.several, live_streams._told
    held = dict(live_streams._held)
    yield
    (live_streams.several, live_streams._told), live_streams._held = told, held
