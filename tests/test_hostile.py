"""What is not what it says it is: refused in words, with nothing leaked and no crash.

Settings, cache files, snapshots and lines at which the pool is interrupted have their
own tests: ``test_config``, ``compile/test_disk_cache``, ``cli/test_memory`` and
``memory/test_interrupts``.
"""

import ctypes
import gc
import inspect
import time
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

import xdev
from xdev import errors, memory, random
from xdev.memory import Pool
from xdev.testing import FakeSource

#: `here` looks for leaks after all examples of a test.
FEW = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
MANY = settings(FEW, max_examples=12 * FEW.max_examples)
BIG = 1 << 63


class LieError(Exception):
    """What hostile objects raise."""


#: Bytes of some examples of hundreds, which their errors may still hold; so does NumPy
#: for good, where the ``__array_ufunc__`` of a reduction's array raises.
SLACK = 1 << 14
#: What a refusal may be: what the pages of functions list, or the object's own.
REFUSALS = (
    *(errors.XdevError, TypeError, ValueError, IndexError, OverflowError),
    *(BufferError, MemoryError, LieError),
)


def lie(*_, **__):
    """Raise, as a method."""
    raise LieError("of a test")


def an(**attributes):
    """Return an object of a class of its own with these attributes and methods."""
    return type("Hostile", (), attributes)()


def answers(x):
    """Return a method that answers so, or raises."""
    return lie if x is lie else lambda *_, **__: x


@pytest.fixture(params=["cpu", pytest.param("fake", marks=pytest.mark.fake)])
def here(request):
    """The default device, CPU and fake; what a test allocates is gone after it."""

    def allocated():
        gc.collect()
        return memory.allocated("cpu") + memory.allocated(request.param)

    before = allocated()
    with xdev.use_device(request.param):
        yield request.param
    end = time.monotonic() + 5  # s; a thread of ``batches`` may not have ended yet
    while allocated() > before + SLACK and time.monotonic() < end:
        time.sleep(0.01)
    assert allocated() <= before + SLACK


# -- objects whose protocols lie ------------------------------------------------------

ANYTHING = st.one_of(
    st.none(),
    st.integers(-5, 5),
    st.sampled_from((BIG, -BIG, BIG - 1, 2 * BIG, float("nan"), "<f8", "|O", b"", ())),
    st.tuples(st.integers(-3, 3) | st.sampled_from((BIG, "2", None, 1.5))),
)
FIELDS = {
    "typestr": ANYTHING | st.just("<f8"),
    "strides": ANYTHING,
    "version": ANYTHING | st.just(3),
}
SHAPE = ANYTHING | st.just((2,))
ADDRESS = ANYTHING | st.tuples(ANYTHING | st.just(1 << 16), st.booleans())
CUDAS = FIELDS | {"shape": SHAPE, "data": ADDRESS, "stream": ANYTHING, "mask": ANYTHING}
INTERFACE = ANYTHING | st.fixed_dictionaries({}, optional=CUDAS)
# NumPy believes an address, and reads there: here is none, but a buffer of no bytes.
HOST_INTERFACE = ANYTHING | st.fixed_dictionaries(
    {"data": ANYTHING, "shape": SHAPE},
    optional=FIELDS | {"descr": ANYTHING, "offset": ANYTHING},
)
METHODS = ("__array__", "__len__", "__index__", "__iter__", "__float__", "__bool__")
METHODS += ("__dlpack__", "__dlpack_device__", "__array_namespace__")
NOUNS = ("shape", "dtype", "ndim", "size", "device", "strides")
ANSWER = ANYTHING | st.just(lie) | st.sampled_from(([1, 2], {}, "cuda:99", (2, 0)))


@st.composite
def liars(draw):
    """Return an object that has some protocols, none of which is kept."""
    attributes = {}
    for name in draw(st.sets(st.sampled_from(METHODS), max_size=4)):
        attributes[name] = answers(draw(ANSWER))
    for name in draw(st.sets(st.sampled_from(NOUNS), max_size=3)):
        answer = draw(ANSWER)
        attributes[name] = property(lie) if answer is lie else answer
    if draw(st.booleans()):
        attributes["__cuda_array_interface__"] = draw(INTERFACE)
    if draw(st.booleans()):
        attributes["__array_interface__"] = draw(HOST_INTERFACE)
    if draw(st.booleans()):
        attributes["__array_struct__"] = draw(ANYTHING)
    return an(**attributes)


FUNCTIONS = sorted(
    f"{room}{name}"
    for room, module in (("", xdev), ("linalg.", xdev.linalg), ("fft.", xdev.fft))
    for name in module.__all__
    if callable(thing := getattr(module, name))
    and not isinstance(thing, type)
    and (isinstance(thing, xdev.ufunc.Ufunc) or inspect.isfunction(thing))
    and "memory" not in name
    and name not in {"set_default_device", "kernel", "vectorize", "guvectorize"}
)
PLACES = st.sampled_from(
    ("x", "xx", "ax", "xa", "(x,)", "[x]", "(2, x)", "out", "axis")
)
PLACES |= st.sampled_from(("dtype", "device", "where", "copy"))


def public(name):
    """Return a function of xdev by its dotted name."""
    room, _, last = name.rpartition(".")
    return getattr(getattr(xdev, room) if room else xdev, last)


NOWHERE = {"shape": (2,), "typestr": "<f8", "data": (1 << 16, False), "version": 3}


@xdev.vectorize
def scaled(x, y):
    """Return a scaled number."""
    return 2 * x + y


@xdev.kernel
def copied(i, x, out):
    """Copy an element."""
    out[i] = x[i]


POOL = Pool(FakeSource(1 << 20))
ENTRIES = {name: public(name) for name in FUNCTIONS} | {
    "a ufunc of a function": scaled,
    "its reduce": scaled.reduce,
    "its outer": scaled.outer,
    "a kernel": lambda x, *others: copied[2](x, *(others or (xdev.ones(2),))),
    "adapt": lambda x, *_: xdev.adapt("cpu", [x, {"a": x}]),
    "batches": lambda x, *_: [*xdev.batches([x], "cpu")],
    "free": lambda x, *_: memory.free(x),
    "record_stream": lambda x, *_: memory.record_stream(x, 0),
    "is_pinned": lambda x, *_: xdev.is_pinned(x),
    "acquire": lambda x, *_: POOL.acquire(x),
    "reclaim": lambda x, *_: POOL.reclaim(x),
    "release": lambda x, *_: POOL.release(x),
    "a seed": lambda x, *_: random.default_rng(x),
    "draws": lambda x, *_: random.default_rng(1).random(x),
    "draws' out": lambda x, *_: random.default_rng(1).random(out=x),
    "normal": lambda x, *_: random.default_rng(1).normal(x, x),
}
#: The names of the standard's functions, and of all others as often.
NAMES = st.sampled_from(FUNCTIONS) | st.sampled_from(sorted({*ENTRIES} - {*FUNCTIONS}))


@pytest.mark.usefixtures("here")
@settings(MANY, max_examples=2 * MANY.max_examples)
@given(name=NAMES, place=PLACES, x=liars())
@example("add", "x", an(__array_namespace__=answers(None)))
@example("sum", "x", an(__array_namespace__=answers(an()), shape=(2,)))
@example("asarray", "x", an(__cuda_array_interface__={}))
@example("to_numpy", "x", an(__cuda_array_interface__={}))
@example("asarray", "x", an(__cuda_array_interface__=NOWHERE | {"shape": (-2,)}))
@example("a ufunc of a function", "xa", an(__cuda_array_interface__=None))
@example("a kernel", "x", an(__cuda_array_interface__="text"))
@example("record_stream", "x", an(__cuda_array_interface__={}))
@example("adapt", "x", an(__dlpack__=lie, __dlpack_device__=answers((2, 0))))
def test_objects_that_lie_are_refused_everywhere(name, place, x):
    array = xdev.ones(6)
    ways = {"x": (x,), "xx": (x, x), "ax": (array, x), "xa": (x, array)}
    ways |= {"(x,)": ((x,),), "[x]": ([x],), "(2, x)": ((2, x),)}
    keywords = {} if place in ways else {place: x}
    with suppress(*REFUSALS):
        ENTRIES[name](*ways.get(place, (array,)), **keywords)
    assert POOL.stats().allocated == 0


def test_cuda_memory_needs_a_device(monkeypatch):
    """An address is believed where a device is, and looked at nowhere else."""
    backend = xdev.device.registry.backend("cuda")
    monkeypatch.setattr(type(backend), "reason", lambda *_: "there is no device")
    x = an(__cuda_array_interface__=NOWHERE)
    for take in xdev.asarray, xdev.to_numpy, xdev.device_of, xdev.cu:
        with pytest.raises(errors.DeviceUnavailableError, match="there is no device"):
            take(x)


SPOILT = {"shape": [(-2,), (BIG,), 5, None, ("2",), (2.5,)]}
SPOILT |= {"typestr": [3, None, "|O", "what"], "strides": [(1, 2, 3), 8]}
SPOILT |= {"data": [None, ("p", False), (-1, False), (2 * BIG, False), (1,)]}


@pytest.mark.parametrize("key", [*SPOILT, "all"])
def test_what_is_wrong_in_an_interface_is_shown(key):
    for value in SPOILT.get(key, [None]):
        forged = "text" if key == "all" else NOWHERE | {key: value}
        x = an(__cuda_array_interface__=forged)
        for take in xdev.asarray, xdev.to_numpy, lambda x: scaled(x, xdev.ones(2)):
            with pytest.raises(TypeError, match="__cuda_array_interface__"):
                take(x)


# -- DLPack ---------------------------------------------------------------------------

_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", _api))
MEMORY = ctypes.create_string_buffer(256)


@pytest.mark.parametrize("name", [b"used_dltensor", b"dltensor_versions", b""])
@pytest.mark.parametrize("take", [xdev.asarray, xdev.from_dlpack, xdev.to_numpy])
def test_capsules_under_another_name_are_refused(take, name):
    capsule = _new(ctypes.addressof(MEMORY), name, None)
    x = an(__dlpack__=answers(capsule), __dlpack_device__=answers((1, 0)))
    with pytest.raises((BufferError, TypeError, ValueError)):
        take(x)


def test_a_capsule_of_a_later_version_is_refused():
    """Nothing but its version, its first field, may be read."""
    tensor = ctypes.create_string_buffer(256)
    ctypes.memmove(tensor, (ctypes.c_uint32 * 2)(99, 0), 8)
    capsule = _new(ctypes.addressof(tensor), b"dltensor_versioned", None)
    x = an(__dlpack__=answers(capsule), __dlpack_device__=answers((1, 0)))
    with pytest.raises(BufferError, match="version"):
        xdev.from_dlpack(x)


@pytest.mark.parametrize("take", [xdev.asarray, xdev.from_dlpack, xdev.to_numpy])
def test_a_capsule_is_used_once_and_its_memory_goes_once(take):
    gc.collect()
    before = memory.allocated("cpu")
    array = xdev.ones(1 << 20, device="cpu")
    capsule = array.__dlpack__()
    x = an(__dlpack__=answers(capsule), __dlpack_device__=answers((1, 0)))
    taken = take(x)
    with pytest.raises((BufferError, TypeError, ValueError)):
        take(x)
    assert float(xdev.sum(taken)) == 1 << 20
    del array, taken
    gc.collect()
    assert memory.allocated("cpu") == before
    del x, capsule  # its deleter finds nothing left to do
    gc.collect()
    assert memory.allocated("cpu") == before


# -- lists in themselves --------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_a_list_in_itself_is_no_array():
    nested = [1]
    nested.append(nested)
    with pytest.raises((TypeError, ValueError)):
        xdev.asarray(nested)


def test_a_list_in_itself_is_no_seed(python):
    """NumPy's ``SeedSequence`` ends the process."""
    program = """
from xdev import random
own, deep = [1], [1]
own.append(own)
for _ in range(100_000):
    deep = [deep]
for seed in own, [[own]], deep:
    try:
        random.default_rng(seed)
    except ValueError as error:
        print(str(error)[:8])
"""
    run = python("-c", program, XDEV_DEVICE="cpu")
    assert run.stdout == "the seed\n" * 3, run.stderr


# -- sizes ----------------------------------------------------------------------------

SIZES = st.one_of(
    st.integers(-(2**70), -1),
    st.integers(2**60, 2**70),
    st.builds(
        lambda base, more: base + more,
        st.sampled_from((2**60, 2**61, 2**62, 2**63, 2**64, -(2**63))),
        st.integers(-2, 2),
    ),
)
MAKERS = {
    "empty": xdev.empty,
    "zeros": xdev.zeros,
    "ones": xdev.ones,
    "of two axes": lambda n: xdev.empty((n, n)),
    "eye, wide": lambda n: xdev.eye(2, n),
    "arange": lambda n: xdev.arange(abs(n) << 60),
    "linspace": lambda n: xdev.linspace(0, 1, n),
    "tile": lambda n: xdev.tile(xdev.ones(2), (abs(n) << 60,)),
    "repeat": lambda n: xdev.repeat(xdev.ones(2), n),
    "fft": lambda n: xdev.fft.fft(xdev.ones(2), n=n),
    "random": lambda n: random.default_rng(1).random(n),
    "spawn": lambda n: random.default_rng(1).spawn(n),
    "host_array": lambda n: memory.host_array((n,), np.dtype("f8")),
    "empty_pinned": lambda n: xdev.empty_pinned(n, "uint8"),
    "a kernel": lambda n: copied[n](xdev.ones(2), xdev.ones(2)),
    "acquire": POOL.acquire,
    "a pool": lambda n: Pool(FakeSource(1 << 20), "split", n).acquire(1 << 30),
}


@pytest.mark.usefixtures("here")
@MANY
@given(name=st.sampled_from(sorted(MAKERS)), n=SIZES)
@example(name="arange", n=8)
def test_sizes_that_cannot_be_are_refused(name, n):
    if name == "a kernel" and 0 < n < BIG:
        return  # a CPU would count that far
    with pytest.raises(REFUSALS):
        MAKERS[name](n)
    assert POOL.stats().allocated == 0


@pytest.mark.parametrize("count", [2**62, 2**63 - 1, -(2**63), 4 - 2**63])
def test_counts_whose_sum_overflows_are_refused(here, count):
    """NumPy makes too little of them and writes past its end."""
    x = xdev.ones((4, 2))
    counts = xdev.asarray([count] * 4) if here == "cpu" else count
    for repeats, axis in (count, None), (count, 0), (counts, 0):
        with pytest.raises((ValueError, MemoryError)):
            xdev.repeat(x, repeats, axis=axis)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("n", [5, 6, 7, 2**80, np.uint64(2**64 - 1)])
def test_differences_past_the_end_are_none_at_once(n):
    x = np.arange(12.0).reshape(2, 6)
    result = xdev.to_numpy(xdev.diff(xdev.asarray(x), n=n))
    np.testing.assert_array_equal(result, np.diff(x, n=min(int(n), 6)), strict=True)


# -- interrupts -----------------------------------------------------------------------

INTERRUPTED = """
import gc, os, random, signal, sys, threading, time
import numpy as np
import xdev
from xdev import memory

@xdev.vectorize
def scaled(x, y):
    return 2 * x + y

@xdev.kernel
def copied(i, x, out):
    out[i] = x[i]

random.seed(int(sys.argv[1]))
host = np.ones(1 << 18)
x = xdev.ones(1 << 18)
rng = xdev.random.default_rng(1)
steps = [
    lambda: xdev.empty(1 << 20), lambda: xdev.zeros((1 << 10, 1 << 10)), lambda: x + x,
    lambda: xdev.add(x, x, out=xdev.empty_like(x)), lambda: xdev.sum(xdev.exp(x)),
    lambda: xdev.sort(rng.random(1 << 16)), lambda: memory.reclaim(),
    lambda: xdev.to_numpy(xdev.to_device(host, "fake")),
    lambda: [xdev.sum(y) for y in xdev.batches([host] * 3, xdev.default_device())],
    lambda: scaled(x, x, out=xdev.empty_like(x)), lambda: xdev.sum(scaled(x, 1.0)),
    lambda: copied[x.shape[0]](x, xdev.empty_like(x)),
]
for step in steps:
    step()
gc.collect()
before = memory.allocated()
pid, over = os.getpid(), threading.Event()

def interrupt():
    while not over.is_set():
        time.sleep(random.uniform(0, 0.004))
        os.kill(pid, signal.SIGINT)

def work():
    global interrupts
    try:
        while time.monotonic() < end:
            random.choice(steps)()
    except KeyboardInterrupt:
        interrupts += 1

def raise_in_work(_, frame):
    while frame:
        if frame.f_code is work.__code__:
            raise KeyboardInterrupt
        frame = frame.f_back

interrupts = 0
signal.signal(signal.SIGINT, raise_in_work)
sender = threading.Thread(target=interrupt, daemon=True)
sender.start()
end = time.monotonic() + 1.5
while time.monotonic() < end:
    try:
        work()
    except KeyboardInterrupt:  # a second one, just after the first
        interrupts += 1
over.set()
sender.join()
signal.signal(signal.SIGINT, signal.SIG_IGN)
for _ in range(50):  # threads of batches end on their own
    gc.collect()
    if memory.allocated() == before:
        break
    time.sleep(0.1)
assert interrupts > 20, interrupts
assert memory.allocated() == before, (memory.allocated(), before)
assert float(xdev.sum(xdev.add(x, x))) == 1 << 19
assert float(xdev.sum(scaled(x, x))) == 3 << 18
assert np.array_equal(xdev.to_numpy(xdev.sort(-x)), -host)
"""


@pytest.mark.parametrize("where", ["cpu", "fake"])
@pytest.mark.parametrize("native", ["0", "1"])
def test_after_interrupts_anywhere_nothing_is_lost(python, tmp_path, where, native):
    """Some five hundred a process, in allocations, copies, launches, sorts, draws."""
    program = tmp_path / "interrupted.py"
    program.write_text(INTERRUPTED)
    run = python(program, 1, XDEV_DEVICE=where, XDEV_NATIVE=native)
    assert run.returncode == 0, run.stderr


def test_what_is_no_argument_is_named():
    with pytest.raises(TypeError, match=r"empty_like: x is not an array but bytes"):
        xdev.empty_like(b"", device="cpu", chunks=2)
    with pytest.raises(TypeError, match="timer is 0"):
        xdev.timeit(len, "", timer=0)
    with pytest.raises(TypeError, match=r"shape is 3 .*give a tuple"):
        memory.host_array(3, np.dtype("f8"))
    np.testing.assert_array_equal(xdev.repeat(True, np.array([3])), [True] * 3)
    out = np.zeros(3)
    xdev.tanh(0.5, where=np.ones(3, bool), out=out)
    np.testing.assert_array_equal(out, np.tanh([0.5] * 3))
