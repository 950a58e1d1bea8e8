"""What several tests of the transfers share."""

import gc
import threading
import time
import types

import pytest

import xdev
from xdev import memory
from xdev.transfer import batching


@pytest.fixture
def until():
    """A function that waits for what another thread is about to do."""

    def wait(holds):
        deadline = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.001)

    return wait


@pytest.fixture
def feeds():
    """A function that returns the threads of ``batches``."""
    return lambda: [
        one for one in threading.enumerate() if one.name.startswith("xdev-batches")
    ]


@pytest.fixture(params=["fake", pytest.param("cuda", marks=pytest.mark.cuda)])
def far(request, until):
    """A device that is not the CPU; its memory is as it was, in the end."""
    device = xdev.Device(request.param)
    if request.param == "cuda":
        request.getfixturevalue("cuda")
    gc.collect()
    before = memory.allocated(device)
    yield device
    gc.collect()
    until(lambda: memory.allocated(device) <= before)


class Bar:
    """As ``tqdm.tqdm``, as far as it is used here."""

    made: "list[Bar]"

    def __init__(self, total=None, unit=None):
        self.total, self.unit, self.count, self.closed = total, unit, 0, False
        self.made.append(self)

    def update(self):
        self.count += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True


@pytest.fixture
def bars(monkeypatch):
    Bar.made = []
    monkeypatch.setattr(batching._optional, "installed", lambda _: True)
    module = types.SimpleNamespace(tqdm=Bar)
    monkeypatch.setattr(batching._optional, "tqdm", lambda: module)
    return Bar.made
