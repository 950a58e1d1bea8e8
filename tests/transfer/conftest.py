"""What several tests of the transfers share."""

import ctypes
import gc
import sys
import threading
import time
import weakref
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from running import until

import xdev
from xdev import _optional, memory
from xdev.compile import threads
from xdev.device import choice, cuda as devices, registry
from xdev.device.streams import live_streams
from xdev.memory import registry as pools
from xdev.testing import SimulatedDevice, SimulatedSource
from xdev.transfer import batching, copies, cuda, pinned

UP, DOWN = 1, 2  # cudaMemcpyKind
HOST, LOCKED = 0, 1  # kinds of memory


@pytest.fixture
def feeds():
    return lambda: [
        one for one in threading.enumerate() if one.name.startswith("xdev-batches")
    ]


@pytest.fixture(params=["fake", pytest.param("cuda", marks=pytest.mark.cuda)])
def far(request):
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


class LateStream:
    """A stream whose work runs when it is waited for; it destroys itself, as CuPy's."""

    def __init__(self, driver, ptr, index=0):
        self.driver, self.ptr, self.queue, self.ran = driver, ptr, [], 0
        self.index = index

    def __del__(self):
        pass

    def enqueue(self, act):
        self.queue.append(act)

    def run_to(self, position):
        with self.driver.lock:
            while self.ran < position:
                self.queue[self.ran]()
                self.ran += 1

    @property
    def done(self):
        return self.ran == len(self.queue)

    def synchronize(self):
        self.driver.waits += 1
        self.run_to(len(self.queue))

    def record(self, event=None):
        event = event or LateEvent(self.driver)
        event.stream, event.position = self, len(self.queue)
        return event

    def wait_event(self, event):
        self.enqueue(lambda: event.stream.run_to(event.position))

    def is_capturing(self):
        return self.ptr in live_streams.captured

    def __enter__(self):
        self.driver.current = self

    def __exit__(self, *_):
        self.driver.current = self.driver.streams[0]


class LateEvent:
    def __init__(self, driver, **_):
        self.driver, self.stream, self.position = driver, None, 0
        self.index = driver.index
        with driver.lock:
            self.ptr = driver.handles = driver.handles + 1
            driver.events[self.ptr] = self

    @property
    def done(self):
        return self.stream is None or self.stream.ran >= self.position

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

    device = xdev.Device("cuda:0")

    @property
    def data(self):
        return LatePointer(self)


class LateCupy:
    """What xdev uses of CuPy for copies, and what it may ask about memory.

    What the driver promises holds, and no more: a copy from pageable memory has read it
    when the call returns, one to pageable memory is done, all others are late.
    """

    ndarray = LateArray
    memcpyHostToDevice, memcpyDeviceToHost = UP, DOWN  # noqa: N815 - CuPy's
    hostAllocPortable = 1  # noqa: N815 - CuPy's

    class CUDARuntimeError(RuntimeError):
        status = 2  # cudaErrorMemoryAllocation

    def __init__(self):
        self.lock = threading.RLock()
        self.waits = self.handles = 0
        self.most = 1 << 40  # of page-locked memory at once [B]
        self.locked = []  # others' pinned memory: address, size
        self.lent = []  # all memory there: a copy may come when nobody else has it
        self.buffers, self.events = {}, weakref.WeakValueDictionary()
        self.log = []  # what threads called: thread, name, arguments
        self.fails = {}  # by name: how many calls are good
        self.streams = [LateStream(self, 0), LateStream(self, 1 << 20)]
        self.streams += [LateStream(self, 1 << 21, index=1)]
        self.current, self.index = self.streams[0], 0
        self.deviceGetAttribute = lambda *_: False
        self.cuda = SimpleNamespace(
            runtime=self,
            driver=SimpleNamespace(
                ctxGetCurrent=lambda: 700, CUDADriverError="error {}".format
            ),
            alloc=self.alloc,
            Event=partial(LateEvent, self),
            Device=self.use,
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
        return [(name, *words) for _, name, words in self.log if name in names]

    def array(self, values):
        """Return an array there that is written as late as all else."""
        there = np.full_like(values, 7, subok=False).view(LateArray)
        self.current.enqueue(partial(np.copyto, there.view(np.ndarray), values))
        return there

    def lock_memory(self, x):
        """Let an array's memory be another library's pinned memory."""
        self.locked.append((x.ctypes.data, max(1, x.nbytes)))

    def empty(self, shape, dtype=float, order="C", pointer=None):
        """Return an array, at a pointer that a copy is on its way to, if given one."""
        if pointer is not None:
            at = pointer.ptr - pointer.array.ctypes.data
            return LateArray(shape, dtype, pointer.array, at, order=order)
        made = np.empty(shape, dtype, order).view(LateArray)
        made.view(np.ndarray).fill(99)
        self.lent.append(made)
        return made

    def alloc(self, nbytes):
        """Return a pointer whose copies are of the current stream."""
        made = LatePointer(np.full(nbytes, 99, np.uint8))
        self.lent.append(made)

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

    # -- the runtime, by CuPy's names -------------------------------------------------

    def memcpyAsync(self, to, origin, nbytes, kind, stream):  # noqa: N802
        self.note("up" if kind == UP else "down", to, origin, nbytes)
        queue = self.stream_of(stream)
        if self.is_locked(origin if kind == UP else to):
            queue.enqueue(lambda: ctypes.memmove(to, origin, nbytes))
        elif kind == UP:
            taken = ctypes.string_at(origin, nbytes)
            queue.enqueue(lambda: ctypes.memmove(to, taken, nbytes))
        else:
            queue.run_to(len(queue.queue))
            ctypes.memmove(to, origin, nbytes)

    def hostAlloc(self, nbytes, _):  # noqa: N802
        if nbytes + sum(x.nbytes - 512 for x in self.buffers.values()) > self.most:
            raise self.CUDARuntimeError
        made = np.empty(nbytes + 512, np.uint8)
        address = -(-made.ctypes.data // 512) * 512
        self.buffers[address] = made
        return address

    def freeHost(self, address):  # noqa: N802
        del self.buffers[address]

    def eventRecord(self, event, stream):  # noqa: N802
        self.note("record", event)
        assert self.stream_of(stream).index == self.events[event].index
        self.stream_of(stream).record(self.events[event])

    def deviceSynchronize(self):  # noqa: N802
        for stream in self.streams:
            stream.synchronize()

    def getDeviceCount(self):  # noqa: N802
        return 1

    def getDevice(self):  # noqa: N802
        return self.index

    @contextmanager
    def use(self, index):
        before, self.index = self.index, index
        yield
        self.index = before

    def stream_of(self, handle):
        return next(known for known in self.streams if known.ptr == handle)

    def is_locked(self, address):
        own = [(at, x.nbytes - 512) for at, x in self.buffers.items()]
        return any(0 <= address - at < nbytes for at, nbytes in own + self.locked)

    def pointerGetAttributes(self, address):  # noqa: N802
        return SimpleNamespace(type=LOCKED if self.is_locked(address) else HOST)


class Below:
    """The same driver as C functions."""

    def __init__(self, driver):
        self.driver, self._kept = driver, []
        self.addresses = [
            self.address(1, lambda context: driver.note("enter", context)),
            self.address(1, lambda event: driver.events[event].synchronize()),
            self.address(2, driver.eventRecord),
            self.address(4, self.copy(DOWN)),
            self.address(4, self.copy(UP)),
        ]

    def copy(self, kind):
        return lambda *words: self.driver.memcpyAsync(*words[:3], kind, words[3])

    def address(self, count, act):
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
    """CUDA by a CuPy whose copies run when they are waited for; KiB go as MiB do."""
    driver = LateCupy()
    below, ways = Below(driver), {}
    there = {key: pool for key, pool in pools._pools.items() if key[1] == "host"}
    for owner, name, value in (
        (_optional, "cupy", lambda: driver),
        (devices, "_probe", lambda: (2, None)),
        (registry, "_started", registry._started | {"cuda"}),
        (choice, "own_kinds", choice.own_kinds | {LateArray}),
        (copies, "own_kinds", choice.own_kinds | {LateArray}),
        (copies, "short_ways", ways),
        (cuda, "array_maker", lambda: driver.empty),
        (pools, "_pools", there),
        (pools, "_budgets", {}),
        (live_streams, "_announced", True),
        (live_streams, "several", True),
        (live_streams, "_held", {}),
        (pinned, "_under_way", type(pinned._under_way)()),
        (pinned, "addresses", lambda: below.addresses),
        *((pinned, "DIRECT", 256 << 10), (pinned, "SMALL", pinned.SMALL)),
        *((pinned, "SMALLEST", 16 << 10), (pinned, "LARGEST", 32 << 10)),
        *((pinned, "ROUNDS", 1), (pinned._config, "num_threads", lambda: 3)),
    ):
        monkeypatch.setattr(owner, name, value)
    monkeypatch.setitem(sys.modules, "cupy", driver)
    cuda._prepare()
    driver.prepare = cuda._prepare
    yield driver
    driver.deviceSynchronize()
    gc.collect()


@pytest.fixture
def captured(driver, monkeypatch):
    """The current stream, which a graph is captured on."""
    monkeypatch.setattr(live_streams, "captured", {driver.current.ptr})
    return driver.current


@pytest.fixture
def interrupted(monkeypatch, tier):  # noqa: ARG001 - it is there
    team = threads.team()

    def share(*words):
        team.share(*words)
        raise KeyboardInterrupt

    late = SimpleNamespace(share=share, COPY_PIECE=team.COPY_PIECE)
    monkeypatch.setattr(threads, "team", lambda: late)
    monkeypatch.setattr(pinned.native, "module", lambda _: late)


class Batch:
    """A block in use, which passes for an array; dropped, it is the pool's again."""

    __cuda_array_interface__ = None

    def __init__(self, number, block):
        self.number, self.block = number, block


class Backend(registry.Backend):
    """One simulated device; batches are blocks of a pool, uploads simulated work."""

    libraries, nbytes = (), 1 << 20
    buffer, table = 1 << 50, 1 << 51  # the host's buffer, an array the iterable reads

    def __init__(self):
        self.device = SimulatedDevice()
        self.pool = memory.Pool(SimulatedSource(self.device, 1 << 40))
        self.began = []  # when the upload of each batch was queued [s]

    def stream(self, index):
        assert index == 0
        return self.device.stream()

    def current_stream(self, index):
        assert index == 0
        return self.device.current_stream()

    def source(self, count):
        """Fill the one buffer for each batch, by what lies on the device."""
        for number in range(count):
            self.tenant(self.buffer).touch(write=True)
            self.tenant(self.table).use(self.device.current_stream(), write=False)
            yield number

    def move(self, device, number, *, non_blocking, copy):  # noqa: ARG002
        """Queue an upload from the buffer, as pinned memory is uploaded."""
        assert device == "simulated"
        assert non_blocking
        self.began.append(self.device.now)
        stream = self.device.current_stream()
        block = self.pool.acquire(self.nbytes, stream.ptr)
        self.tenant(self.buffer).use(stream, write=False)
        self.tenant(block.address).use(stream, write=True)
        return Batch(number, block)

    def tenant(self, address):
        """Return one more user of some bytes: each must be ordered after the last."""
        return self.device.tenant(address, self.nbytes)

    def lend(self, batches, device):
        """Mark blocks as the facade marks arrays of another stream."""
        assert device.index == 0
        handle = self.pool.state.source.streams.see(self.device.current_stream())
        for batch in batches:
            if batch.block.chunk.stream != handle:
                self.pool.state.mark(batch.block.chunk, (handle,))


@pytest.fixture
def simulated(monkeypatch):
    backend = Backend()
    monkeypatch.setitem(registry._backends, "simulated", backend)
    monkeypatch.setattr(batching, "move", backend.move)
    monkeypatch.setattr(batching, "_lend", backend.lend)
    synchronize = xdev.Event.synchronize

    def late(event):
        time.sleep(1e-4)  # so that the consumer may be quicker than the upload
        synchronize(event)

    monkeypatch.setattr(xdev.Event, "synchronize", late)
    return backend
