"""Who made what: the lines of live blocks."""

import inspect
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from memory_laws import process

import xdev
from xdev import memory
from xdev.memory import Pool
from xdev.testing import FakeSource


def here():
    return inspect.currentframe().f_back.f_lineno


def test_live_blocks_are_named_by_the_line_that_made_them():
    with memory.track():
        kept = xdev.empty(10, device="cpu")
        line = here() - 1
        gone = xdev.empty(20, device="cpu")
        del gone
        pooled = xdev.zeros(200_000, device="cpu")
        other = here() - 1
        items = memory.outstanding("cpu")
        assert [item.nbytes for item in items] == [1_600_000, 128]
        assert str(items[0]).startswith(f"{__file__}:{other}: ")
        assert str(items[1]).startswith(f"{__file__}:{line}: ")
        assert items[1].frames[0] != items[1].where
        assert all(item.age >= 0 for item in items)
        del kept, pooled
        assert memory.outstanding("cpu") == []


def test_a_block_that_goes_round_is_named_by_its_last_maker():
    xdev.empty(100_000, device="cpu")
    with memory.track():
        first = xdev.empty(100_000, device="cpu")
        del first
        second = xdev.empty(100_000, device="cpu")
        line = here() - 1
        (item,) = memory.outstanding("cpu")
        assert item.where == f"{__file__}:{line}"
        memory.free(second)
        assert memory.outstanding("cpu") == []


def test_a_line_that_made_several_blocks_is_one_line():
    with memory.track():
        kept = [xdev.empty(n, dtype=xdev.uint8, device="cpu") for n in (64, 640, 128)]
        line = here() - 1
        (found,) = memory.outstanding_by_line("cpu")
        assert found.where == f"{__file__}:{line}"
        assert (found.count, found.nbytes) == (3, 832)
        assert [block.nbytes for block in found.blocks] == [640, 128, 64]
        listed = memory.outstanding("cpu")
        assert [item.address for item in listed] == [b.address for b in found.blocks]
        assert "3 blocks, 832 B of cpu" in str(found)
        del kept[1]
        (found,) = memory.outstanding_by_line("cpu")
        assert found.nbytes == 192


def test_blocks_are_of_the_device_and_kind_that_is_asked_for():
    with memory.track():
        here, there = memory.pool("cpu").acquire(64), memory.pool("fake").acquire(64)
        assert [item.address for item in memory.outstanding("cpu")] == [here.address]
        assert [item.address for item in memory.outstanding("fake")] == [there.address]
        assert memory.outstanding("cpu", "pinned") == []
        own = Pool(FakeSource(1 << 20), name="cpu")  # of the same name as another
        block = own.acquire(64)
        assert len(memory.outstanding("cpu")) == 1
        assert block.address


# -- NumPy's own buffers, by tracemalloc -----------------------------------------------


@pytest.fixture
def traced():
    """Have tracemalloc trace, with enough frames to see past NumPy's."""
    assert not tracemalloc.is_tracing()
    tracemalloc.start(8)
    yield
    tracemalloc.stop()


def mine(items):
    return [item for item in items if item.where.startswith(__file__)]


@pytest.mark.usefixtures("traced")
def test_numpys_own_buffers_are_named_by_line_while_tracemalloc_traces():
    with memory.track():
        own = [np.empty(100), np.linspace(0, 1, 50)]
        pooled = xdev.empty(30, device="cpu")
        line = here() - 2
        np.empty(3000)
        found = mine(memory.outstanding("cpu", "host"))
        assert [(item.where, item.nbytes, item.pool) for item in found] == [
            (f"{__file__}:{line}", 800, "NumPy's own"),
            (f"{__file__}:{line}", 400, "NumPy's own"),
            (f"{__file__}:{line + 1}", 256, "cpu"),
        ]
        assert found[0].age is None
        assert str(found[0]) == f"{__file__}:{line}: 800 B of NumPy's own"
        assert mine(memory.outstanding("cpu", "pinned")) == []
        assert mine(memory.outstanding("fake")) == []
        del own
        (left,) = mine(memory.outstanding("cpu"))
        assert left.pool == "cpu"
    assert mine(memory.outstanding("cpu")) == []
    del pooled


@pytest.fixture
def bridged(tier):  # noqa: ARG001 - it is needed
    """Have NumPy's large buffers come from the pool."""
    memory.bridges.install("numpy")
    yield
    memory.bridges.uninstall("numpy")


@pytest.mark.usefixtures("bridged", "traced")
def test_what_the_bridge_serves_numpy_is_the_pools_and_listed_once():
    early = np.empty(100_000)
    with memory.track():
        served = [np.empty(100_000), np.linspace(0, 1, 100_000)]
        line = here() - 1
        small = np.empty(100)
        found = mine(memory.outstanding("cpu"))
        assert [(item.where, item.pool) for item in found] == [
            (f"{__file__}:{line}", "cpu"),
            (f"{__file__}:{line}", "cpu"),
            (f"{__file__}:{line - 2}", "NumPy's own"),
            (f"{__file__}:{line + 2}", "NumPy's own"),
        ]
        del served
        assert len(mine(memory.outstanding("cpu"))) == 2
    del early, small


# -- the report at exit ----------------------------------------------------------------


LIVE = """
import sys, xdev
kept = [xdev.zeros(n) for n in (100, 200_000)]
xdev.empty(50)
"""
REPORT = "xdev: 2 live blocks, 1,600,832 B\n  <string>:3: 2 blocks, 1,600,832 B of cpu"


@pytest.mark.parametrize(
    ("end", "status"),
    [("", 0), ("sys.exit(3)", 3), ("raise ValueError(kept)", 1), ("del sys.argv", 0)],
)
def test_live_blocks_are_reported_at_exit_if_asked(end, status):
    done = process(LIVE + end, XDEV_MEMORY_TRACK="exit")
    assert done.returncode == status
    assert REPORT in done.stderr


def test_nothing_is_said_at_exit_if_nobody_asked():
    for value in ("1", "0"):
        assert process(LIVE, XDEV_MEMORY_TRACK=value).stderr == ""


def test_that_nothing_is_live_is_said_too():
    done = process("import xdev; xdev.empty(50)", XDEV_MEMORY_TRACK="exit")
    assert (done.returncode, done.stderr) == (0, "xdev: no live block\n")


@pytest.mark.parametrize("end", ["sys.stderr.close()", "sys.stderr = None"])
def test_a_report_that_cannot_be_written_changes_no_exit(end):
    done = process(LIVE + end, XDEV_MEMORY_TRACK="exit")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_refusal_where_nothing_is_live_tells_of_no_holders():
    done = process("import xdev; xdev.zeros(9**6)", XDEV_MEMORY_LIMIT="1MB")
    assert done.returncode == 1
    assert "OutOfMemoryError: cpu: cannot allocate" in done.stderr
    assert "track" not in done.stderr.partition("OutOfMemoryError: cpu")[2]


@pytest.fixture
def limited():
    before = memory.get_limit("fake")
    memory.set_limit(1_000_000, "fake")
    yield xdev.Device("fake")
    memory.set_limit(before, "fake")


def refused(device):
    with pytest.raises(xdev.OutOfMemoryError) as caught:
        xdev.zeros(1_000_000, device=device)
    return str(caught.value)


@pytest.mark.fake
def test_a_refusal_tells_who_holds_the_memory_or_how_to_see_it(limited):
    old = xdev.zeros(1000, device=limited)
    assert refused(limited).endswith("run under xdev.memory.track().")
    with memory.track():
        text = refused(limited)
        assert text.endswith(
            f"\n  {memory.allocated('fake'):,} B taken before tracking began"
        )
        assert "track()" not in text
        new = xdev.zeros(1000, device=limited)
        text = refused(limited)
        assert __file__ in text
        assert "track()" not in text
    del old, new


FILE = str(Path(np.__path__[0]) / "deep.py")  # as if it were NumPy's
SOURCE = """
import xdev
def inside(levels):
    return inside(levels - 1) if levels else xdev.empty(10, device="cpu")
"""


@pytest.mark.parametrize("levels", [0, 3, 7, 8, 30])
def test_the_maker_is_the_first_line_outside_the_libraries(levels):
    names = {}
    exec(compile(SOURCE, FILE, "exec"), names)  # noqa: S102 - lines we know

    with memory.track():
        kept = names["inside"](levels)
        line = here() - 1
        (item,) = memory.outstanding("cpu")

    assert item.where == f"{__file__}:{line}"
    assert sum(frame.startswith(FILE) for frame in item.frames) == levels + 1
    assert kept.size == 10


def test_tracking_nests_and_forgets_when_it_ends():
    with memory.track():
        with memory.track():
            x = xdev.empty(10, device="cpu")
        assert len(memory.outstanding("cpu")) == 1
    assert memory.outstanding("cpu") == []
    del x
