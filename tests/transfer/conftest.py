"""What several tests of the transfers share."""

import ctypes
import gc
import threading
import time
import weakref
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import xdev
from xdev import _optional, memory
from xdev.transfer import batching, cuda, pinned

UP, DOWN = 1, 2  # cudaMemcpyKind
HOST, LOCKED = 0, 1  # kinds of memory


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


@pytest.fixture
def small_arrays():
    """Small arrays of every dtype, of shapes and strides of all kinds."""
    draw = np.random.default_rng(0)
    dtypes = ("?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16", ">f4")
    shapes = [(), (0,), (1,), (7,), (3, 5), (4, 0, 2), (2, 3, 4), (1000,), (60, 64)]
    views = [np.asarray, np.transpose, np.flip, lambda x: x[..., ::2] if x.ndim else x]
    arrays = (np.asarray(draw.standard_normal(shapes[n % 9])) for n in range(700))
    views_of = ((views[n % 4], dtypes[n % 11], x) for n, x in enumerate(arrays))
    return [np.asarray(view((x * 100).astype(dtype))) for view, dtype, x in views_of]


@pytest.fixture
def lifetimes():
    """Say what is held until copies' events (``_under_way``), and let go of it."""
    return pinned


class Bar:
    """As ``Progress``, without a terminal."""

    made: "list[Bar]"

    def __init__(self, _, total=None, *, shown):
        self.total, self.count, self.closed = total, 0, False
        if shown:
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
    monkeypatch.setattr(batching, "Progress", Bar)
    return Bar.made


class LateStream:
    def __init__(self, driver, ptr):
        self.driver, self.ptr, self.queue, self.ran = driver, ptr, [], 0

    def enqueue(self, act):
        self.queue.append(act)

    def run_to(self, position):
        with self.driver.lock:
            while self.ran < position:
                self.queue[self.ran]()
                self.ran += 1

    def synchronize(self):
        self.driver.waits += 1
        self.run_to(len(self.queue))

    def record(self, event=None):
        event = event or LateEvent(self.driver)
        event.stream, event.position = self, len(self.queue)
        return event

    def wait_event(self, event):
        self.enqueue(lambda: event.stream.run_to(event.position))


class LateEvent:
    def __init__(self, driver, **_):
        self.driver, self.stream, self.position = driver, None, 0
        with driver.lock:
            self.ptr = driver.handles = driver.handles + 1
            driver.events[self.ptr] = self

    @property
    def done(self):
        return self.stream is None or self.stream.ran >= self.position

    def record(self, stream):
        self.driver.note("record", self.ptr, stream.ptr)
        stream.record(self)

    def synchronize(self):
        self.driver.note("wait", self.ptr)
        self.stream.run_to(self.position)


class LatePointer:
    device_id = 0

    def __init__(self, array, at=0):
        self.ptr, self.mem = array.ctypes.data + at, SimpleNamespace(xdev_chunk=None)
        self.array = array

    def __add__(self, offset):
        return LatePointer(self.array, self.ptr - self.array.ctypes.data + offset)

    def copy_from_device_async(self, origin, nbytes, stream):
        stream.enqueue(lambda: ctypes.memmove(self.ptr, origin.ptr, nbytes))


class LateArray(np.ndarray):
    """Device memory; looking at its values is the tests' business alone."""

    @property
    def data(self):
        return LatePointer(self)


class LateCupy:
    """What ``xdev.transfer.cuda`` uses of CuPy, and what it may ask about memory."""

    ndarray = LateArray
    memcpyHostToDevice, memcpyDeviceToHost = UP, DOWN  # noqa: N815 - CuPy's

    class CUDARuntimeError(RuntimeError):
        pass

    def __init__(self):
        self.lock = threading.RLock()
        self.waits = self.handles = 0
        self.pinned, self.events = [], weakref.WeakValueDictionary()
        self.log = []  # what threads called: thread, name, arguments
        self.fails = {}  # by name: how many calls are good
        self.streams = [LateStream(self, 0), LateStream(self, 1 << 20)]
        self.current = self.streams[0]
        self.cuda = SimpleNamespace(
            runtime=self,
            driver=SimpleNamespace(
                ctxGetCurrent=lambda: 700, CUDADriverError="error {}".format
            ),
            alloc=self.alloc,
            Event=partial(LateEvent, self),
            Device=lambda _: nullcontext(),
            get_current_stream=lambda *_: self.current,
        )

    def note(self, name, *arguments):
        """Note a call, or let it fail."""
        with self.lock:
            self.log.append((threading.get_ident(), name, arguments))
            if name in self.fails:
                self.fails[name] -= 1
                if self.fails[name] < 0:
                    message = "error 700"
                    raise self.CUDARuntimeError(message)

    def calls(self, *names):
        """Return the calls of these names, in order."""
        return [(name, *words) for _, name, words in self.log if name in names]

    def empty(self, shape, dtype=float, order="C", pointer=None):
        """Return an array, at a pointer that a copy is on its way to, if given one."""
        if pointer is not None:
            at = pointer.ptr - pointer.array.ctypes.data
            return LateArray(shape, dtype, pointer.array, at, order=order)
        made = np.empty(shape, dtype, order).view(LateArray)
        made.view(np.ndarray).fill(99)
        return made

    def alloc(self, nbytes):
        """Return a pointer whose copies are of the current stream."""
        made = LatePointer(np.full(nbytes, 99, np.uint8))

        def move(address, nbytes):
            self.memcpyAsync(made.ptr, address, nbytes, UP, self.current.ptr)

        made.copy_from_host_async = move
        return made

    def eagerly(self, act):
        self.current.run_to(len(self.current.queue))
        return act()

    def ascontiguousarray(self, x):
        return self.eagerly(lambda: np.ascontiguousarray(x).view(LateArray))

    def copyto(self, to, origin):
        self.eagerly(lambda: np.copyto(to, origin, "same_kind"))

    def may_share_memory(self, a, b):
        return np.may_share_memory(a, b)

    def memcpyAsync(self, to, origin, nbytes, kind, stream):  # noqa: N802 - CuPy's
        self.note("up" if kind == UP else "down", to, origin, nbytes)
        queue = self.stream_of(stream)
        host = origin if kind == UP else to
        if self.is_pinned_address(host):
            queue.enqueue(lambda: ctypes.memmove(to, origin, nbytes))
        elif kind == UP:
            taken = ctypes.string_at(origin, nbytes)
            queue.enqueue(lambda: ctypes.memmove(to, taken, nbytes))
        else:
            queue.run_to(len(queue.queue))
            ctypes.memmove(to, origin, nbytes)

    def pinned_array(self, shape, dtype, order="C"):
        made = np.empty(shape, dtype, order)
        self.pinned.append(made)
        return made

    def there(self):
        """Return what, passed as ``stream=``, makes another stream the current one."""
        return There(self)

    def getDevice(self):  # noqa: N802 - CuPy's
        return 0

    def setDevice(self, index):  # noqa: N802 - CuPy's
        self.note("enter", index)

    def stream_of(self, handle):
        return next(known for known in self.streams if known.ptr == handle)

    def is_pinned_address(self, address):
        return any(0 <= address - x.ctypes.data < max(1, x.nbytes) for x in self.pinned)

    def pointerGetAttributes(self, address):  # noqa: N802 - CuPy's
        kind = LOCKED if self.is_pinned_address(address) else HOST
        return SimpleNamespace(type=kind)


class There:
    def __init__(self, driver):
        self.driver = driver

    def __enter__(self):
        self.driver.current = self.driver.streams[1]

    def __exit__(self, *_):
        self.driver.current = self.driver.streams[0]


class Below:
    """The same driver as C functions; a context is 700 more than its device."""

    def __init__(self, driver):
        self.driver, self._kept = driver, []
        self.addresses = [
            self.address(1, lambda context: driver.setDevice(context - 700)),
            self.address(1, lambda event: driver.events[event].synchronize()),
            self.address(2, self.record),
            self.address(4, self.copy(DOWN)),
            self.address(4, self.copy(UP)),
        ]

    def record(self, event, stream):
        self.driver.events[event].record(self.driver.stream_of(stream))

    def copy(self, kind):
        return lambda *words: self.driver.memcpyAsync(*words[:3], kind, words[3])

    def address(self, count, act):
        """Return the address of a C function."""

        def called(*words):
            try:
                act(*words)
            except self.driver.CUDARuntimeError:
                return 700
            return 0

        made = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_size_t] * count)(called)
        self._kept.append(made)
        return ctypes.cast(made, ctypes.c_void_p).value


@pytest.fixture
def driver(monkeypatch):
    """CuPy, whose copies run when they are waited for; small arrays are staged."""
    driver = LateCupy()
    below = Below(driver)
    monkeypatch.setattr(pinned, "addresses", lambda: below.addresses)
    monkeypatch.setattr(_optional, "cupy", lambda: driver)
    monkeypatch.setattr(cuda, "array_maker", lambda: driver.empty)
    for module in cuda, pinned:
        monkeypatch.setattr(module, "pinned_array", driver.pinned_array)
    monkeypatch.setattr(cuda, "mark_uses", lambda *_, **__: None)
    monkeypatch.setattr(pinned, "find", lambda *_: None)
    sizes = {"DIRECT": 256 << 10, "SMALLEST": 16 << 10, "LARGEST": 32 << 10}
    for name, nbytes in sizes.items():
        monkeypatch.setattr(pinned, name, nbytes)
    monkeypatch.setattr(pinned, "ROUNDS", 1)
    monkeypatch.setattr(pinned._config, "num_threads", lambda: 3)
    pinned._under_way.clear()
    yield driver
    pinned._under_way.clear()
