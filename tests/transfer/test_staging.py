"""The staged copy, decided and done, by a driver that is as late as it may be."""

import ctypes
import threading
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from xdev.errors import OutOfMemoryError, XdevError
from xdev.transfer import staging

CHUNK = 64
both_ways = pytest.mark.parametrize("up", [True, False], ids=["up", "down"])


# -- the plan and the pieces ----------------------------------------------------------


@given(
    nbytes=st.integers(1, 1 << 36),
    threads=st.integers(1, 200),
    sizes=st.sampled_from([staging.GENERAL, staging.PACKED]),
)
def test_a_plan_uses_its_slots_and_little_memory(nbytes, threads, sizes):
    plan = staging.plan(nbytes, threads, sizes)

    count = -(-nbytes // plan.chunk)
    assert 1 <= plan.workers <= min(threads, staging.WORKERS, count)
    assert 1 <= plan.slots <= staging.SLOTS
    assert plan.workers * plan.slots <= count + plan.workers - 1
    assert plan.chunk <= min(nbytes, sizes.largest)
    assert plan.chunk >= min(nbytes, sizes.smallest)


@given(
    shape=st.lists(st.integers(0, 9), max_size=4).map(tuple),
    itemsize=st.sampled_from([1, 2, 4, 8]),
    chunk=st.integers(8, 200),
    axes=st.randoms(use_true_random=False),
)
def test_pieces_tile_the_packed_array(shape, itemsize, chunk, axes):
    count = int(np.prod(shape, dtype=int))
    order = list(range(len(shape)))
    axes.shuffle(order)
    x = np.arange(count, dtype=f"u{itemsize}").reshape(shape).transpose(order)

    found = list(staging.pieces(x.shape, itemsize, chunk)) if count else []

    parts = [np.ascontiguousarray(x[piece.where]).tobytes() for piece in found]
    assert b"".join(parts) == x.tobytes()
    assert [len(part) for part in parts] == [piece.nbytes for piece in found]
    assert [piece.start for piece in found] == [
        sum(map(len, parts[:number])) for number in range(len(parts))
    ]
    assert all(piece.nbytes <= chunk for piece in found)


# -- the doing ------------------------------------------------------------------------


class Device:
    """A packed array behind a late driver, and the slots of its copies."""

    def __init__(self, driver, monkeypatch, nbytes):
        self.driver, self.array = driver, np.zeros(nbytes, np.uint8)
        self.rings, self.most = [], None
        self.queue = driver.current
        monkeypatch.setattr(staging, "pinned_array", self.slots)

    def slots(self, shape, dtype):
        if self.most is not None and np.prod(shape) > self.most:
            raise OutOfMemoryError("cpu (pinned)", int(np.prod(shape)), 0, 0, None, ())
        ring = self.driver.pinned_array(shape, dtype)
        ring[:] = 0xAB
        self.rings.append(ring)
        return ring

    def packed(self, dtype):
        data = SimpleNamespace(ptr=self.array.ctypes.data)
        return SimpleNamespace(nbytes=self.array.nbytes, dtype=dtype, data=data)

    def copy(self, host, dtype, *, up):
        return staging.copy(host, self.packed(dtype), self.queue, 0, up=up)

    def copied(self, values, *, up):
        """Copy bytes there, or from there; return what came."""
        if up:
            host = values.copy()
            slots = self.copy(host, values.dtype, up=True)
            host[:] = 0  # the slots alone hold the values until the device is done
            self.queue.synchronize()
            assert slots is self.rings[-1]
            return self.array.view(values.dtype)
        self.array[:] = values.view(np.uint8)
        host = np.zeros_like(values)
        self.copy(host, values.dtype, up=False)
        return host


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch, driver, team):  # noqa: ARG001 - after the driver's
    """Cut arrays of some KiB as finely as ones of many MiB are; by either team."""
    small = staging.Sizes(CHUNK, CHUNK, rounds=1)
    monkeypatch.setattr(staging, "GENERAL", small)
    monkeypatch.setattr(staging, "PACKED", small)
    monkeypatch.setattr(staging._config, "num_threads", lambda: 4)
    return team


@pytest.fixture
def far(driver, monkeypatch):
    """A function that makes a device of so many bytes."""
    return lambda nbytes: Device(driver, monkeypatch, nbytes)


def draw(nbytes, seed=0):
    return np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)


@both_ways
@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("pieces", [1, 2, 7, 60])
@pytest.mark.parametrize("workers", [1, 4])
def test_a_slot_is_waited_for_before_it_is_used_again(
    far, monkeypatch, up, strided, pieces, workers
):
    monkeypatch.setattr(staging._config, "num_threads", lambda: workers)
    device = far(pieces * CHUNK)
    host = draw(pieces * CHUNK * 2)[::2] if strided else draw(pieces * CHUNK)

    slots = device.copy(host, host.dtype, up=up)

    assert len(slots) <= workers * staging.SLOTS
    under_way, used, most = set(), 0, 0
    for name, event, *_ in device.driver.calls("record", "wait"):
        assert (event in under_way) == (name == "wait")
        (under_way.add if name == "record" else under_way.remove)(event)
        used, most = used + (name == "record"), max(most, len(under_way))
    assert used == pieces
    assert most <= len(slots)
    assert not under_way or up, "a download is there when the call returns"
    if workers == 1:
        assert most == min(pieces, staging.SLOTS), "one on the bus, one in its hands"


@both_ways
def test_each_piece_goes_where_it_belongs(far, up):
    values = draw(60 * CHUNK)
    device = far(values.nbytes)

    np.testing.assert_array_equal(device.copied(values, up=up), values)

    there = [words[0 if up else 1] for _, *words in device.driver.calls("up", "down")]
    start = device.array.ctypes.data
    assert sorted(there) == [*range(start, start + values.nbytes, CHUNK)]


@both_ways
@pytest.mark.parametrize("good", [0, 1, 3, 20])
@pytest.mark.parametrize("call", ["enter", "copy", "record", "wait"])
def test_an_error_of_the_driver_leaves_nothing_behind(far, up, good, call):
    values = draw(200 * CHUNK)
    device = far(values.nbytes)
    name = {"copy": "up" if up else "down"}.get(call, call)
    device.driver.fails = {name: 0 if call == "enter" else good}

    with pytest.raises(XdevError, match=r"cuda:0: .* failed at byte .*: error 700"):
        device.copied(values, up=up)

    assert device.queue.ran == len(device.queue.queue), "a copy was still to come"
    assert len(device.queue.queue) < 60, "the others went on"
    device.driver.fails = {}
    np.testing.assert_array_equal(device.copied(values, up=up), values)


def test_the_failing_piece_is_named(far, monkeypatch):
    monkeypatch.setattr(staging._config, "num_threads", lambda: 1)
    device = far(9 * CHUNK)
    device.driver.fails = {"up": 3}

    with pytest.raises(XdevError, match=f"a copy of 576 B failed at byte {3 * CHUNK}:"):
        device.copied(draw(9 * CHUNK), up=True)


@both_ways
def test_an_error_of_pythons_leaves_nothing_behind(far, monkeypatch, up):
    values = np.ones((100, 64), np.float32)[:, ::2]
    device, done, copyto = far(values.nbytes), [], np.copyto

    def failing(*args):
        done.append(args)
        if len(done) > 5:
            raise KeyError("a signal")
        copyto(*args)

    patched = SimpleNamespace(**vars(np) | {"copyto": failing})
    with monkeypatch.context() as patch:
        patch.setattr(staging, "np", patched)
        with pytest.raises(KeyError, match="a signal"):
            device.copy(values, values.dtype, up=up)

    assert device.queue.ran == len(device.queue.queue)
    assert len(done) < 20, "the others went on"


@both_ways
def test_under_a_tight_limit_there_are_fewer_workers(far, up):
    values = draw(50 * CHUNK)
    device = far(values.nbytes)
    device.most = 5 * CHUNK  # of 4 workers with 2 slots each: 2

    np.testing.assert_array_equal(device.copied(values, up=up), values)

    assert device.rings[-1].shape == (4, CHUNK)
    device.most = CHUNK
    with pytest.raises(OutOfMemoryError):
        device.copied(values, up=up)


def test_a_stream_of_each_thread_is_used_by_one(far):
    values = draw(50 * CHUNK)
    device = far(values.nbytes)
    device.queue.ptr = staging.PER_THREAD

    np.testing.assert_array_equal(device.copied(values, up=True), values)

    assert {thread for thread, *_ in device.driver.log} == {threading.get_ident()}


def test_copies_of_many_threads_do_not_meet(far):
    device = far(50 * CHUNK)
    arrays = [draw(40 * CHUNK, seed=n) for n in range(6)]
    right = []

    def there_and_back(x):
        array = np.zeros_like(x)
        packed = device.packed(x.dtype)
        packed.data.ptr, packed.nbytes = array.ctypes.data, x.nbytes
        for _ in range(5):
            staging.copy(x, packed, device.queue, 0, up=True)
            device.queue.synchronize()
            back = np.zeros_like(x)
            staging.copy(back, packed, device.queue, 0, up=False)
            right.append(np.array_equal(back, x))

    threads = [threading.Thread(target=there_and_back, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert right == [True] * 30


def test_python_goes_on_while_a_copy_waits(far, until, monkeypatch):
    monkeypatch.setattr(staging._config, "num_threads", lambda: 1)
    semaphore, library = ctypes.create_string_buffer(32), ctypes.CDLL(None)
    library.sem_init(semaphore, 0, 0)
    device = far(3 * CHUNK)
    # In C: it lets go of nothing by itself.
    wait = ctypes.cast(library.sem_wait, ctypes.c_void_p).value
    enter, _, _, *copies = staging.addresses()
    record = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_size_t] * 2)(lambda *_: 0)
    address = ctypes.cast(record, ctypes.c_void_p).value
    there = [enter, wait, address, *copies]
    monkeypatch.setattr(staging, "addresses", lambda: there)
    event = SimpleNamespace(
        ptr=ctypes.addressof(semaphore),
        record=lambda _: None,
        synchronize=partial(library.sem_wait, semaphore),
    )
    monkeypatch.setattr(device.driver.cuda, "Event", lambda **_: event)
    values = draw(3 * CHUNK)

    arguments = values, values.dtype
    thread = threading.Thread(
        target=device.copy, args=arguments, kwargs={"up": True}, daemon=True
    )
    thread.start()
    until(lambda: len(device.queue.queue) == staging.SLOTS)
    for _ in range(20):  # the third piece waits for the first, and we do not
        time.sleep(0.001)
    assert thread.is_alive()
    library.sem_post(semaphore)
    thread.join(20)

    assert len(device.queue.queue) == 3
