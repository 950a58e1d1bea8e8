"""NumPy's buffers from the pool: counted, limited, in every thread, and given back."""

import numpy as np
import pytest
from memory_laws import output, process
from running import resident, within

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
    before = resident()
    for _ in range(3):  # fresh memory, then memory of the array before
        x = np.zeros(1 << 26)
        assert resident() - before < x.nbytes // 4
        assert x[12345] == x[-1] == x[0] == 0
        x[::4096] = 7
        del x


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


def test_uninstalling_leaves_live_arrays_alone():
    before = in_use()
    x = np.arange(N)
    bridges.uninstall("numpy")
    with bridges.using("numpy"):
        assert memory.pool("cpu").find(np.empty(N).ctypes.data)
    assert "numpy" not in bridges.installed()
    y = np.arange(N)
    assert memory.pool("cpu").find(y.ctypes.data) is None
    del y
    assert (x == np.arange(N)).all()
    assert in_use() == before + x.nbytes
    del x
    assert in_use() == before


def test_the_environment_installs_it():
    code = (
        "import xdev, numpy as np; x = np.empty(10**6);"
        "print(xdev.memory.allocated('cpu'), sorted(xdev.memory.bridges.installed()))"
    )
    assert output(code, XDEV_NUMPY_POOL="1") == "8000000 ['numpy']\n"
    assert output(code, XDEV_NUMPY_POOL="") == "0 []\n"


@pytest.mark.parametrize("policy", ["split", "binned"])
def test_sizes_that_cannot_be_are_refused_at_once(policy):
    code = """
    import faulthandler, xdev, numpy as np
    faulthandler.dump_traceback_later(30, exit=True)
    refused = 0
    for n in (2**50, 2**61 + 1, 2**62 + 1, 2**63 - 1):
        resize = lambda n, _: np.ones(10**5).resize(n, refcheck=False)
        for make in (np.empty, np.zeros, resize):
            try:
                make(n, "i1")
            except (MemoryError, ValueError):
                refused += 1
    print(refused)
    """
    settings = {"XDEV_NUMPY_POOL": "1", "XDEV_MEMORY_POOL": policy}
    assert output(code, **settings) == "12\n"


def test_a_handler_that_the_user_set_stays(monkeypatch):
    bridges.uninstall("numpy")
    mine = lambda: "mine"  # noqa: E731 - what NumPy would say
    monkeypatch.setattr(np._core.multiarray, "get_handler_name", mine)
    bridges.install("numpy")
    assert "numpy" not in bridges.installed()
    assert "'mine'" in bridges.left_alone()["numpy"]


PREAMBLE = """
import ctypes, io, operator, sys
import numpy as np
from functools import partial
from xdev import memory
memory.bridges.install("numpy")
source, told, left, kept = memory.pool("cpu").state.source, [], [], []
allocate = source.allocate
def raising(nbytes):
    if left:
        raise left.pop()
    return allocate(nbytes)
source.allocate = raising
sys.unraisablehook = lambda args: told.append(args.exc_type.__name__)
"""
PROGRAMS = {
    "what the pool raises is NumPy's MemoryError": """
for error in (RecursionError, SystemExit):
    for make in (np.empty, np.zeros):
        left.append(error())
        try:
            make(10_000_000)
            print("made")
        except MemoryError:
            pass
assert told == 2 * ["RecursionError"] + 2 * ["SystemExit"], told
""",
    "an interrupt in the pool comes after NumPy's MemoryError": """
for n in range(1, 20):
    left.append(KeyboardInterrupt())
    try:
        try:
            kept.append(np.empty(2_000_000 * n))  # more than is free
        except MemoryError:
            pass
        print("never")
    except KeyboardInterrupt:
        pass
assert not kept and not left and not told
""",
    "an interrupt that came while NumPy computed is not lost": """
interrupt = ctypes.pythonapi.PyErr_SetInterrupt
for n in range(100):
    try:  # in one step of the interpreter
        list(map(operator.call, (interrupt, partial(np.empty, 10_000 + 1000 * n))))
        print("never")
    except KeyboardInterrupt:
        kept.append(None)
assert kept == [None] * 100
""",
    "a buffer that grew stays with its allocator": """
x = np.ones(10); x.resize(100_000, refcheck=False)
y = np.loadtxt(io.StringIO("1\\n" * 20_000))
z = np.fromiter((1.0 for _ in range(20_000)), "f8")
assert x.sum() + y.sum() + z.sum() == 40_010
assert memory.allocated("cpu", "host") == 0
""",
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_as_a_program(what):
    for options in ([], ["-X", "dev"]):  # with Python's debugging allocator
        program = f"{PREAMBLE}{PROGRAMS[what]}print('alive')"
        assert output(program, *options) == "alive\n"


def test_without_the_compiled_part_the_way_to_it_is_told():
    code = """
    from xdev import memory
    from xdev.errors import ConfigurationError
    try:
        memory.bridges.install("numpy")
    except ConfigurationError as error:
        print(error)
    """
    done = process(code, XDEV_NATIVE="0", XDEV_NUMPY_POOL="0")
    assert done.stdout.startswith("the bridge into numpy needs xdev's compiled part")
    assert "not used: XDEV_NATIVE=0: install" in done.stdout
