"""What is not what it says it is: refused in words, with nothing leaked and no crash.

``entries`` finds what is public. Settings, cache files, snapshots and lines at which
the pool is interrupted have their own tests: ``test_config``,
``compile/test_disk_cache``, ``cli/test_memory`` and ``memory/test_interrupts``.
"""

import ctypes
import gc
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from unittest.mock import MagicMock, Mock

import entries
import numpy as np
import pytest
from entries import ENTRIES, PARAMETERS, POOL, Parameter, scaled, summed
from hypothesis import HealthCheck, example, given, settings, strategies as st
from running import until

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
    *(BufferError, MemoryError, OSError, LieError),
)


def lie(*_, **__):
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

    before, default = allocated(), xdev.default_device()
    with xdev.use_device(request.param):
        yield request.param
    until(lambda: allocated() <= before + SLACK)  # threads of ``batches`` may go on
    assert xdev.default_device() == default


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


NOWHERE = {"shape": (2,), "typestr": "<f8", "data": (1 << 16, False), "version": 3}


def freed():
    array = xdev.ones(1 << 14)
    memory.free(array)
    return array


#: What is an object of the wrong kind, made anew each time.
OTHERS = {
    **{kind.__name__: kind for kind in (dict, list, object, set, Mock, MagicMock)},
    "a function": lambda: lambda *_: None,
    "a function that raises": lambda: lie,
    "a class": lambda: int,
    "a module": lambda: np,
    "an iterator": lambda: iter([1, "2", None]),
    "a long text": lambda: "x" * 10_000,
    "a text of no encoding": lambda: "\ud800\0",
    "an array that was freed": freed,
    "an array of texts": lambda: np.asarray(["a", "b"]),
    "an array of records": lambda: np.zeros(2, "i4,f4"),
    "an array of dates": lambda: np.zeros(2, "M8[D]"),
    "a matrix": lambda: np.asmatrix(np.ones((2, 2))),
    "a masked array": lambda: np.ma.ones(3),
    "a read-only array": lambda: np.broadcast_to(1.0, (3, 3)),
    "an array elsewhere": lambda: xdev.ones(6, device="fake:1"),
    "a kernel": lambda: summed,
    "a ufunc": lambda: scaled,
    "a stream": lambda: xdev.Stream("fake"),
    "a generator of numbers": lambda: random.default_rng(1),
    "a pool": lambda: Pool(FakeSource(1024)),
    "whatever is asked for": lambda: an(__getattr__=lambda self, _: self),
    "a text that is equal to none": lambda: type("Text", (str,), {"__eq__": lie})(
        "cpu"
    ),
}
THINGS = liars() | ANYTHING | st.sampled_from(sorted(OTHERS)).map(lambda x: OTHERS[x]())
WAYS = {
    "x": lambda x: x,
    "(x,)": lambda x: (x,),
    "[x]": lambda x: [x],
    "(2, x)": lambda x: (2, x),
    "{0: x}": lambda x: {0: x},
}
# Elements of objects are asked for a method, as by NumPy: an AttributeError is theirs.
THINGS = THINGS.filter(lambda x: type(x) is not str or x != "|O")
#: Keywords that are tried where any is taken.
KEYWORDS = ("out", "dtype", "axis", "where", "casting", "order", "signature", "other")
#: What may change the state that all calls share.
SETTERS = (
    *("memory.bridges.", "memory.record_history", "memory.set_limit"),
    "set_default_device",
)
LONGEST, TEXT = 5, 2000  # s, of a call; characters of an error


def call(name, place, x, named):
    """Call an entry with an object in the place of one ordinary argument."""
    args, keywords = entries.ordinary(name)
    parameters = PARAMETERS[name]
    if not parameters:
        return ENTRIES[name](x)
    names, i = [p.name for p in parameters], place % len(parameters)
    if names[i] in entries.LEFT_PARAMETERS.get(name, ()):
        return None
    kind = parameters[i].kind
    if kind is Parameter.VAR_POSITIONAL:
        args.append(x)
    elif kind is Parameter.VAR_KEYWORD:
        keywords[KEYWORDS[place % len(KEYWORDS)]] = x
    elif kind is Parameter.POSITIONAL_ONLY or (i < len(args) and not named):
        args[i : i + 1] = [x]
    else:
        keywords |= dict(zip(names[i + 1 :], args[i + 1 :], strict=False))
        keywords[names[i]] = x
        args = args[:i]
    return ENTRIES[name](*args, **keywords)


def use(result):
    """Use what does its work later."""
    if isinstance(result, Iterator):
        list(islice(result, 9))
    elif hasattr(type(result), "__exit__") and not isinstance(result, xdev.Device):
        with result:
            pass


def is_refusal(error, name):
    """Say whether an error is one of the page's, or of the function's own page."""
    page = str(entries.ALL[name][1].__doc__)
    own = any(kind.__name__ in page for kind in type(error).__mro__[:-3])
    return isinstance(error, REFUSALS) or own


def state():
    """Return what all calls share, and a call that is refused must not change."""
    limits = [memory.get_limit(device) for device in ("cpu", "fake", "fake:1")]
    return xdev.default_device(), limits, memory.bridges.installed(), np.geterr()


def restore(before):
    """Put back what a call was told to change."""
    device, limits, installed, _ = before
    xdev.set_default_device(device)
    memory.record_history(enabled=False)
    for name, limit in zip(("cpu", "fake", "fake:1"), limits, strict=True):
        memory.set_limit(limit, name)
    now = memory.bridges.installed()
    for change, names in (
        (memory.bridges.uninstall, now - installed),
        (memory.bridges.install, installed - now),
    ):
        if names:  # without any it would be all
            change(*names)


def test_every_public_callable_is_here_or_its_reason_is():
    assert entries.LEFT_OUT.keys() <= entries.ALL.keys()
    assert ENTRIES.keys() == entries.ALL.keys() - entries.LEFT_OUT.keys()
    classes = {
        name
        for name, (_, thing) in entries.ALL.items()
        if isinstance(thing, type) and thing not in entries.MAKERS
    }
    of_numpys = {name for name in classes if name.startswith("numpy.")}
    assert classes - of_numpys <= entries.LEFT_OUT.keys()


@pytest.mark.filterwarnings("ignore")
def test_ordinary_arguments_are_taken(tmp_path, monkeypatch):
    """Else the object in another place would never be looked at."""
    monkeypatch.chdir(tmp_path)
    before, taken = state(), set()
    for name, function in ENTRIES.items():
        args, keywords = entries.ordinary(name)
        with suppress(Exception):
            function(*args, **keywords)
            taken.add(name)
    restore(before)
    assert ENTRIES.keys() - taken == entries.REFUSING.keys()


#: Names of the standard's functions, and of all others as often.
NAMES = st.sampled_from(sorted({*ENTRIES} & {*xdev.__all__})) | st.sampled_from(
    sorted({*ENTRIES} - {*xdev.__all__})
)


@pytest.mark.usefixtures("here")
@pytest.mark.filterwarnings("ignore")
@settings(MANY, max_examples=8 * MANY.max_examples)
@given(NAMES, st.integers(0, 23), THINGS, st.sampled_from(sorted(WAYS)), st.booleans())
@example("add", 0, an(__array_namespace__=answers(None)), "x", False)
@example("sum", 0, an(__array_namespace__=answers(an()), shape=(2,)), "x", False)
@example("asarray", 0, an(__cuda_array_interface__={}), "x", False)
@example("to_numpy", 0, an(__cuda_array_interface__={}), "x", False)
@example(
    "asarray", 0, an(__cuda_array_interface__=NOWHERE | {"shape": (-2,)}), "x", False
)
@example("Ufunc.__call__", 1, an(__cuda_array_interface__=None), "x", False)
@example("Bound.__call__", 0, an(__cuda_array_interface__="text"), "x", False)
@example("memory.record_stream", 0, an(__cuda_array_interface__={}), "x", False)
@example(
    "adapt", 1, an(__dlpack__=lie, __dlpack_device__=answers((2, 0))), "[x]", False
)
@example("device_of", 0, an(__dlpack_device__=answers(None)), "x", False)
@example("random.Philox", 0, np.asmatrix([[1, 2]]), "x", False)
@example("broadcast_to", 1, summed, "x", False)
@example("device_of", 0, Mock(), "x", False)
@example("distributed.memory_status", 0, None, "x", False)
@example("testing.FakeArray", 0, None, "x", False)
@example("testing.FakeArray", 0, np.ones(3), "x", False)
@example("Sweep.plot", 0, None, "x", False)
@example("memory.Pool", 4, 0, "x", True)
@example("FakeSource.free", 1, None, "x", False)
@example("Generator.integers", 4, -BIG, "x", True)
@example("numpy.arange", 4, 3, "x", True)
def test_what_lies_is_refused_everywhere(tmp_path_factory, name, place, x, way, named):
    before, start, caught = state(), time.monotonic(), None
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.getbasetemp())
        try:
            use(call(name, place, WAYS[way](x), named))
        except Exception as error:
            if not is_refusal(error, name):
                raise
            caught = error
    assert time.monotonic() - start < LONGEST
    assert not isinstance(caught, errors.XdevError) or len(str(caught)) < TEXT
    changes = state() != before
    if name.startswith(SETTERS):
        restore(before)
    assert not changes or (caught is None and name.startswith(SETTERS))
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


def test_a_list_in_itself_is_no_seed(printed):
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
    assert printed(program, XDEV_DEVICE="cpu") == "the seed\n" * 3


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
    "a kernel": lambda n: summed[n](xdev.ones(2), xdev.ones(2)),
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
    if frame.f_code.co_filename == threading.__file__ and sys.exc_info()[0]:
        return  # a second interrupt there leaves Python's own locks half done
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


@pytest.mark.parametrize(("where", "native"), [("cpu", "1"), ("fake", "0")])
def test_after_interrupts_anywhere_nothing_is_lost(printed, tmp_path, where, native):
    """Some five hundred a process, in allocations, copies, launches, sorts, draws."""
    program = tmp_path / "interrupted.py"
    program.write_text(INTERRUPTED)
    printed(program, 1, XDEV_DEVICE=where, XDEV_NATIVE=native)


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
