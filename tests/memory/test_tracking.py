"""Who made what: the lines of live blocks, and of leaks among what does not leak."""

import re
import runpy
import tracemalloc
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from memory_laws import here, process

import xdev
from xdev import memory
from xdev.memory import Pool
from xdev.testing import FakeSource

HEAD = """\
import contextvars, threading
import numpy as np
import xdev
from xdev import memory

KEPT = []

@xdev.vectorize
def add(a, b):
    return a + b

def deep(levels, make):
    return deep(levels - 1, make) if levels else make()

def in_thread(work):
    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    thread.start()
    thread.join()
"""
#: A line that is marked keeps blocks; N is another number each time.
SNIPPETS = (
    "KEPT.append(xdev.empty(N))  # leak",
    "for k in range(3): KEPT.append(xdev.full(N, k))  # leak",
    "KEPT.append(xdev.zeros((N, 4)).T[::2])  # leak",
    "KEPT.append(add(np.ones(N), 2.0))  # leak",
    "KEPT.append(xdev.asarray(np.ones(N), copy=True))  # leak",
    "KEPT.append(memory.pool('cpu').acquire(N))  # leak",
    "KEPT.append(deep(30, lambda: xdev.empty(100_000 + N)))  # leak",
    "in_thread(lambda: KEPT.append(xdev.ones(N)))  # leak",
    """
class HolderN:
    def make(self):
        xdev.empty(N)
        return xdev.zeros(N)  # leak
KEPT.append(HolderN().make())
""",
    """
def generateN():
    held = xdev.ones(N)  # leak
    yield xdev.ones(N)
    yield held
KEPT.append(generateN())
next(KEPT[-1])
""",
    """
try:
    lost = xdev.empty(N)
    partial = xdev.empty(N + 1)  # leak
    raise ValueError(partial)
except ValueError as error:
    KEPT.append(error.args)
del lost, partial
""",
    # None of these keeps anything.
    "xdev.empty(N); xdev.zeros(100_000 + N); [xdev.ones(k + 1) for k in range(9)]",
    "dropped = xdev.empty(N); dropped = None",
    "freed = xdev.empty(N); memory.free(freed); KEPT.append(freed)",
    "in_thread(lambda: [add(xdev.ones(N), 1.0) for _ in range(5)])",
)


def test_planted_leaks_are_all_named_and_none_is_invented(tmp_path):
    texts = [re.sub(r"N\b", str(n), text) for n, text in enumerate(SNIPPETS, 10)]
    file = tmp_path / "planted.py"
    file.write_text("\n".join([HEAD, *texts, *texts]))
    lines = enumerate(file.read_text().splitlines(), 1)
    marked = {f"{file}:{number}" for number, line in lines if "# leak" in line}

    with memory.track(), xdev.use_device("cpu"):
        kept = runpy.run_path(str(file))["KEPT"]
        lines = memory.outstanding_by_line("cpu")
        blocks = memory.outstanding("cpu")
        kept.clear()
        left = memory.outstanding("cpu")

    assert {line.where for line in lines} == marked
    assert len(lines) == len(marked) >= 2 * 11
    together = [where for where, _ in groupby(blocks, attrgetter("where"))]
    assert together == [line.where for line in lines]
    assert sum(b.nbytes for b in blocks) == sum(line.nbytes for line in lines)
    assert left == []


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


NOTHING = "xdev: no live block"
ENDS = {
    "normally": ("exit", LIVE, 0, REPORT),
    "with a status": ("exit", LIVE + "sys.exit(3)", 3, REPORT),
    "with an error": ("exit", LIVE + "raise ValueError(kept)", 1, REPORT),
    "with nothing alive": ("exit", "import xdev; xdev.empty(50)", 0, NOTHING),
    "without errors' file": ("exit", LIVE + "sys.stderr = None", 0, ""),
    "with that closed": ("exit", LIVE + "sys.stderr.close()", 0, ""),
    "unasked": ("1", LIVE, 0, ""),
}


@pytest.mark.parametrize("how", ENDS)
def test_live_blocks_are_reported_at_exit_if_asked(how):
    asked, program, status, report = ENDS[how]
    done = process(program, XDEV_MEMORY_TRACK=asked)
    assert (done.returncode, done.stdout) == (status, "")
    assert report in done.stderr
    assert report or not done.stderr


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


@pytest.mark.parametrize("levels", [0, 8, 30])
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
