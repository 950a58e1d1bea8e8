"""NumPy's buffers from the pool: counted, limited, in every thread, and given back."""

import ctypes
import io
import os

import numpy as np
import pytest
from memory_laws import output, process, within

from xdev import memory
from xdev.memory import bridges

N = 100_000  # float64: well over the 64 KiB from which the pool serves


@pytest.fixture(autouse=True)
def bridge(tier):  # noqa: ARG001 - below: what is said without
    was_in = "numpy" in bridges.installed()
    bridges.install("numpy")
    yield
    memory.set_limit(None, "cpu")
    if not was_in:
        bridges.uninstall("numpy")


def in_use():
    return memory.allocated("cpu", "host")


def test_arrays_are_blocks_of_the_pool():
    before = in_use()
    x = np.empty(N)
    assert in_use() == before + x.nbytes
    block = memory.pool("cpu").find(x.ctypes.data)
    assert (block.address, block.nbytes) == (x.ctypes.data, x.nbytes)
    x.fill(0)
    y = x + 1
    view = y[::2]
    del x, y
    assert in_use() == before + 8 * N
    del view
    assert in_use() == before


@pytest.mark.parametrize("dtype", ["f8", "u1", "c16", "U5", "O", "M8[s]", "i4,f8"])
def test_any_data_type(dtype):
    before = in_use()
    x = np.zeros(N, dtype)
    y = np.concatenate([x, x]).repeat(2)
    assert (y == np.zeros(1, dtype)).all()
    assert in_use() >= before + 5 * x.nbytes
    del x, y
    assert in_use() == before


def test_zeros_are_zero_whoever_had_the_memory():
    for _ in range(3):
        x = np.zeros(N)
        assert not x.any()
        x[:] = 7
        del x
    for n in (3 * N, 2 * N, N // 2):
        assert not np.zeros(n).any()
        np.full(n, 7.0)


def test_large_zeros_are_not_touched():
    """So a sparse array of more memory than there is still can be made."""
    memory.reclaim(device="cpu")
    resident = _resident()
    for _ in range(3):  # fresh memory, then memory of the array before
        x = np.zeros(1 << 26)
        assert _resident() - resident < x.nbytes // 4
        assert x[12345] == x[-1] == x[0] == 0
        x[::4096] = 7
        del x


def _resident():
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * 4096


@pytest.mark.parametrize("first", [10, N, 5 * N])
@pytest.mark.parametrize("second", [10, N - 5, N, 3 * N])
def test_resizing_keeps_what_fits(first, second):
    before = in_use()
    x = np.arange(first, dtype="f8")
    x.resize(second, refcheck=False)
    common = min(first, second)
    assert (x[:common] == np.arange(common)).all()
    assert not x[common:].any()
    del x
    assert in_use() == before


GROWING = {
    "fromiter": lambda n: np.fromiter((1.0 for _ in range(n)), "f8"),
    "loadtxt": lambda n: np.loadtxt(io.StringIO("1\n" * n)),
}


@pytest.mark.parametrize("way", GROWING)
def test_what_grows_large_stays_with_its_allocator(way):
    """Nobody else knows how large the buffers of a foreign allocator are."""
    before = in_use()
    x = GROWING[way](N)
    assert (x == 1).all()
    assert memory.pool("cpu").find(x.ctypes.data) is None
    assert in_use() == before


@pytest.mark.parametrize("n", [10, 8000, 9000])
def test_a_foreign_buffer_is_never_taken_for_one_of_malloc(n, tier):
    """An allocator may hand out what lies inside a buffer of malloc's.

    As Python's debugging allocator does, which NumPy 2.5 can stand on.
    """
    inner, lead = ctypes.create_string_buffer(bytes(range(256)) * 500), 16
    asked, kind = [], ctypes.CFUNCTYPE(*[ctypes.c_int64] * 4)

    @kind
    def realloc(context, address, nbytes):
        asked.append((context, address, nbytes))
        return address

    lists = memory.pool("cpu").state.share()
    at = ctypes.cast(realloc, ctypes.c_void_p).value
    handler = tier.NumpyHandler(1 << 16, (77, 0, 0, at, 0))
    handler.serve(lists)
    context, *_, ours, _ = handler.functions
    address = ctypes.addressof(inner) + lead
    assert kind(ours)(context, address, 8 * n) == address
    assert asked == [(77, address, 8 * n)]


def test_threads_that_never_call_xdev_are_served():
    before = in_use()

    def work():
        x = np.empty(N)
        assert x.size
        return in_use() - before

    assert within(60, [work]) == [8 * N]
    assert in_use() == before


def test_the_limit_holds_and_a_refusal_is_a_memory_error():
    memory.reclaim(device="cpu")
    memory.set_limit(memory.reserved("cpu") + (64 << 20), "cpu")
    refusals = memory.stats("cpu")["num_ooms"]
    with pytest.raises(MemoryError):
        np.empty(100 << 20, "u1")
    assert memory.stats("cpu")["num_ooms"] == refusals + 1
    x = np.empty(10 << 20, "u1")
    assert memory.pool("cpu").find(x.ctypes.data)


def test_reclaim_gives_back_what_numpy_dropped():
    x = np.empty(8 * N)
    del x
    memory.reclaim(device="cpu", kind="host")
    pool = memory.pool("cpu")
    free = pool.reserved - pool.allocated
    y = np.empty(40 << 20, "u1")
    del y
    assert memory.reclaim(device="cpu", kind="host") >= 40 << 20
    assert pool.reserved - pool.allocated <= free


def test_tracking_names_the_line():
    with memory.track():
        x = np.empty(N)
        [item] = memory.outstanding("cpu")
        assert __file__ in str(item)
        del x
        assert not list(memory.outstanding("cpu"))


def test_uninstalling_leaves_live_arrays_alone():
    before = in_use()
    x = np.arange(N)
    bridges.uninstall("numpy")
    assert "numpy" not in bridges.installed()
    y = np.arange(N)
    assert memory.pool("cpu").find(y.ctypes.data) is None
    del y
    assert (x == np.arange(N)).all()
    assert in_use() == before + x.nbytes
    del x
    assert in_use() == before


def python(code, **settings):
    """Run a program of these settings alone; return its output."""
    ours = dict.fromkeys((k for k in os.environ if k.startswith("XDEV_")), "")
    return output(code, **{**ours, **settings})


def test_the_environment_installs_it():
    code = (
        "import xdev, numpy as np; x = np.empty(10**6);"
        "print(xdev.memory.allocated('cpu'), sorted(xdev.memory.bridges.installed()))"
    )
    assert python(code, XDEV_NUMPY_POOL="1") == "8000000 ['numpy']\n"
    assert python(code) == "0 []\n"


@pytest.mark.parametrize("policy", ["split", "binned"])
def test_sizes_that_cannot_be_are_refused_at_once(policy):
    code = (
        "import faulthandler; faulthandler.dump_traceback_later(30, exit=True)\n"
        "import xdev, numpy as np\n"
        "np.ones(10**5)\n"
        "for n in (2**50, 2**61 + 1, 2**62 + 1, 2**63 - 1):\n"
        "    for make in (np.empty, np.zeros):\n"
        "        try: make(n, 'i1')\n"
        "        except MemoryError: print('refused', end=' ')\n"
        "    try: np.ones(10**5).resize(n, refcheck=False)\n"
        "    except (MemoryError, ValueError): print('refused', end=' ')\n"
    )
    settings = {"XDEV_NUMPY_POOL": "1", "XDEV_MEMORY_POOL": policy}
    assert python(code, **settings) == "refused " * 12


def test_a_handler_that_the_user_set_stays(monkeypatch):
    bridges.uninstall("numpy")
    mine = lambda: "mine"  # noqa: E731 - what NumPy would say
    monkeypatch.setattr(np._core.multiarray, "get_handler_name", mine)
    bridges.install("numpy")
    assert "numpy" not in bridges.installed()
    assert "'mine'" in bridges.left_alone()["numpy"]


PREAMBLE = """
import ctypes, operator, sys
import numpy as np
from functools import partial
from xdev import memory
from xdev.errors import OutOfMemoryError
from xdev.memory import Pool
memory.bridges.install("numpy")
"""

RAISING = """
take, left = Pool.take, []
def raising(*args):
    if left:
        raise left.pop()
    return take(*args)
Pool.take = raising
told = []
sys.unraisablehook = lambda args: told.append(args.exc_type.__name__)
kept = []
"""


def run(code, *options):
    done = process(PREAMBLE + code, *options)
    return done.returncode, done.stdout.split(), done.stderr


@pytest.mark.parametrize("error", ["RecursionError", "MemoryError", "SystemExit"])
@pytest.mark.parametrize("make", ["empty", "zeros"])
def test_what_the_pool_raises_is_a_memory_error_of_numpys(error, make):
    code = f"""
for n in range(100):
    left.append({error}())
    try:
        kept.append(np.{make}(10_000 + 1000 * n))
    except MemoryError:
        pass
assert not kept and told == ["{error}"] * 100, (len(kept), told[:3])
kept.append(np.ones(10_000)); print("alive")
"""
    assert run(RAISING + code) == (0, ["alive"], "")


def test_an_interrupt_in_the_pool_comes_after_numpys_memory_error():
    code = """
for n in range(100):
    left.append(KeyboardInterrupt())
    try:
        try:
            kept.append(np.empty(10_000 + 1000 * n))
        except MemoryError:
            pass
        print("never")
    except KeyboardInterrupt:
        kept.append(None)
assert kept == [None] * 100 and not told
print("alive")
"""
    assert run(RAISING + code) == (0, ["alive"], "")


def test_an_interrupt_before_the_pool_is_asked_is_not_lost():
    """One that came while NumPy computed is raised at Python's first step."""
    code = """
interrupt = ctypes.pythonapi.PyErr_SetInterrupt
for n in range(100):
    try:  # in one step of the interpreter
        list(map(operator.call, (interrupt, partial(np.empty, 10_000 + 1000 * n))))
        print("never")
    except KeyboardInterrupt:
        kept.append(None)
assert kept == [None] * 100
print("alive")
"""
    assert run(RAISING + code) == (0, ["alive"], "")


@pytest.mark.parametrize("options", [["-X", "dev"], []])
def test_python_may_debug_its_own_allocator(options):
    code = """
import io
x = np.ones(10); x.resize(100_000, refcheck=False)
y = np.loadtxt(io.StringIO("1\\n" * 20_000))
print(int(x.sum() + y.sum()))
"""
    assert run(code, *options) == (0, ["20010"], "")


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_without_the_compiled_part_the_way_to_it_is_told(library):
    code = f"""
from xdev import memory
from xdev.errors import ConfigurationError
from xdev.memory.bridges import native_functions
try:
    native_functions("{library}")
except ConfigurationError as error:
    print(error)
if "{library}" == "numpy":
    try:
        memory.bridges.install("numpy")
    except ConfigurationError as error:
        print(error)
"""
    done = process(code, XDEV_NATIVE="0", XDEV_NUMPY_POOL="0")
    for line in done.stdout.splitlines():
        assert line.startswith(f"the bridge into {library} needs xdev's compiled part")
        assert "pip install ." in line
        assert "not used: XDEV_NATIVE=0" in line
    assert done.stdout.count("\n") == 1 + (library == "numpy")


def test_small_arrays_are_numpys_own():
    before = in_use()
    x = [np.empty(n) for n in range(1000)]
    assert in_use() == before
    del x


def test_as_a_context():
    bridges.uninstall("numpy")
    with bridges.using("numpy"):
        x = np.empty(N)
        assert memory.pool("cpu").find(x.ctypes.data)
    assert "numpy" not in bridges.installed()
    assert memory.pool("cpu").find(np.empty(N).ctypes.data) is None
