"""What several tests of the memory room share."""

import gc
import sys
from pathlib import Path

import pytest

from xdev import native
from xdev.memory.streams import live_streams

sys.path.append(str(Path(__file__).parent))  # for the modules that several files use


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
