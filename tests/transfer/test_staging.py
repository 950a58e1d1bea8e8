"""The staged copy, decided and done, by a driver that is as late as it may be."""

import ctypes
import threading
import time
from collections import deque
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from xdev.compile.plain_threads import Copy, _taken, steps
from xdev.errors import OutOfMemoryError, XdevError
from xdev.testing import SimulatedDevice
from xdev.transfer import staging

CHUNK = 64
both_ways = pytest.mark.parametrize("up", [True, False], ids=["up", "down"])


def random_array(shape, dtype="float32", seed=0):
    draw = np.random.default_rng(seed)
    return (draw.standard_normal(shape) * 100).astype(dtype)


# -- the plan and the pieces ----------------------------------------------------------


@given(
    nbytes=st.integers(1, 1 << 36),
    threads=st.integers(1, 200),
    sizes=st.sampled_from([staging.GENERAL, staging.PACKED]),
)
def test_a_plan_uses_its_slots_and_little_memory(nbytes, threads, sizes):
    plan = staging.plan(nbytes, threads, sizes)

    count = -(-nbytes // plan.chunk)
    assert 1 <= plan.lanes <= min(threads, staging.LANES, count)
    assert 1 <= plan.slots <= staging.SLOTS
    assert plan.lanes * plan.slots <= count + plan.lanes - 1
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


# -- the steps of a lane, on a device that is only order ------------------------------


def replay(count, lanes, slots, interleave, *, up, left_out=()):
    """Run lanes in some order on a simulated device; return the hazards."""
    device = SimulatedDevice()
    stream = device.stream()
    todo = deque(range(count))
    running = [(n, steps(_taken(todo), slots, up=up)) for n in range(lanes)]
    events = {}
    while running:
        lane, acts = running[interleave(len(running))]
        step = next(acts, None)
        if step is None:
            running.remove((lane, acts))
            continue
        act, slot, _ = step
        if act in left_out:
            continue
        place = 1 << 20 | (lane * slots + slot) * 512
        if act == "wait":
            events[place].synchronize()
            continue
        tenant = device.tenant(place, 512)
        if act == "move":
            tenant.touch(write=up)
        else:
            tenant.use(stream, write=not up)
            events[place] = stream.record()
    return device.hazards


@both_ways
@given(
    count=st.integers(1, 40),
    lanes=st.integers(1, 4),
    slots=st.integers(1, 3),
    order=st.randoms(use_true_random=False),
)
def test_no_slot_is_used_before_its_copy_is_done(up, count, lanes, slots, order):
    assert replay(count, lanes, slots, order.randrange, up=up) == []


@both_ways
def test_a_wait_left_out_is_found(up):
    hazards = replay(9, 2, 2, lambda _: 0, up=up, left_out=("wait",))

    by_host = [hazard for hazard in hazards if hazard.stream == -1]
    assert by_host, "the host used a slot that was on the bus"


@both_ways
def test_a_lane_works_while_its_other_slot_is_on_the_bus(up):
    acts = list(steps(range(6), slots=2, up=up))

    first = next(n for n, (act, *_) in enumerate(acts) if act == "wait")
    assert {slot for _, slot, _ in acts[:first]} == {0, 1}, "both slots are in use"
    assert [act for act, *_ in acts].count("wait") == (4 if up else 6)


# -- the doing ------------------------------------------------------------------------


class Device:
    """A packed array of a device behind a late driver, and the driver's handles."""

    name, context_, stream = "cuda:0", 77, 5

    def __init__(self, driver, monkeypatch, nbytes):
        self.driver, self.array = driver, np.zeros(nbytes, np.uint8)
        self.enter, self.up, self.down = driver.enter, driver.up, driver.down
        self.record, self.wait = driver.record, driver.wait
        self.explain = "error {}".format
        self.rings, self.most = [], None
        self.events = list(range(1000, 1100))
        monkeypatch.setattr(staging, "driver", lambda: self)
        monkeypatch.setattr(staging, "pinned_array", self.slots)

    def slots(self, shape, dtype):
        if self.most is not None and np.prod(shape) > self.most:
            raise OutOfMemoryError("cpu (pinned)", int(np.prod(shape)), 0, 0, None, ())
        self.rings.append(np.full(shape, 0xAB, dtype))
        return self.rings[-1]

    def context(self, index):
        assert index == 0
        return self.context_

    def take_events(self, context, count):
        assert context == self.context_
        return [self.events.pop() for _ in range(count)]

    def give_events(self, context, events):
        assert context == self.context_
        self.events.extend(events)

    def queue(self):
        return SimpleNamespace(ptr=self.stream, synchronize=self.driver.synchronize)

    def packed(self, dtype):
        data = SimpleNamespace(ptr=self.array.ctypes.data)
        return SimpleNamespace(nbytes=self.array.nbytes, dtype=dtype, data=data)

    def copy(self, host, dtype, *, up):
        return staging.copy(host, self.packed(dtype), self.queue(), 0, up=up)

    def copied(self, values, *, up):
        """Copy bytes there, or from there; return what came."""
        if up:
            host = values.copy()
            slots = self.copy(host, values.dtype, up=True)
            host[:] = 0  # the slots alone hold the values until the device is done
            self.driver.synchronize()
            assert slots is self.rings[-1]
            return self.array.view(values.dtype)
        self.array[:] = values.view(np.uint8)
        host = np.zeros_like(values)
        self.copy(host, values.dtype, up=False)
        return host


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch, team):
    """Cut arrays of some KiB as finely as ones of many MiB are; by either team."""
    small = staging.Sizes(CHUNK, CHUNK, rounds=1)
    monkeypatch.setattr(staging, "GENERAL", small)
    monkeypatch.setattr(staging, "PACKED", small)
    monkeypatch.setattr(staging._config, "num_threads", lambda: 4)
    return team


@pytest.fixture
def far(late_driver, monkeypatch):
    """A function that makes a device of so many bytes."""
    return lambda nbytes: Device(late_driver, monkeypatch, nbytes)


def draw(nbytes, seed=0):
    return np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)


@both_ways
@pytest.mark.parametrize("pieces", [1, 2, 7, 60])
@pytest.mark.parametrize("lanes", [1, 4])
def test_each_lane_takes_the_steps_of_its_pieces(team, late_driver, up, pieces, lanes):
    chunk, slots = 16, 2
    host, device = np.zeros((2, chunk * pieces), np.uint8)
    ring = np.zeros((lanes * slots, chunk), np.uint8)
    (host if up else device)[:] = draw(host.size)

    def move(slot, piece):
        late_driver.log.append((threading.get_ident(), "move", (slot, piece)))
        part = host[chunk * piece :][:chunk]
        (ring[slot] if up else part)[:] = part if up else ring[slot]

    staged = Copy(
        enter=late_driver.enter,
        wait=late_driver.wait,
        record=late_driver.record,
        queue=late_driver.up if up else late_driver.down,
        up=up,
        host=host.ctypes.data,
        device=device.ctypes.data,
        ring=ring.ctypes.data,
        chunk=chunk,
        slots=slots,
        stream=5,
        context=77,
        pieces=pieces,
        events=range(1000, 1000 + lanes * slots),
        starts=range(0, chunk * (pieces + 1), chunk),
    )
    assert team.copy(staged, move, lanes, 0) == (0, 0)
    late_driver.synchronize()

    np.testing.assert_array_equal(host, device)
    lanes_calls, taken = [], []
    for thread in {entry[0] for entry in late_driver.log}:
        calls = [entry[1:] for entry in late_driver.log if entry[0] == thread]
        starts = [n for n, call in enumerate(calls) if call == ("enter", (77,))]
        assert starts[0] == 0
        lanes_calls += [
            calls[i + 1 : j] for i, j in pairwise((*starts, len(calls)))
        ]  # a thread may serve several
    for calls in lanes_calls:
        found = []
        for name, words in calls:
            if name == "move":
                found.append((name, *words))
            elif name == "wait":
                found.append((name, words[0] - 1000, None))
            elif name == "record":
                assert (words[0] - 1000, words[1]) == (found[-1][1], 5)
            else:
                there, here = words[:2] if up else words[1::-1]
                slot, piece = here - ring.ctypes.data, there - device.ctypes.data
                found.append(("queue", slot // chunk, piece // chunk))
                taken.append(piece // chunk)
        own = [piece for act, _, piece in found if act == "queue"]
        first_slot = found[0][1] if found else 0
        assert first_slot % slots == 0
        expected = [
            (act, first_slot + slot, None if act == "wait" else piece)
            for act, slot, piece in steps(own, slots, up=up)
        ]
        assert found == expected
    assert sorted(taken) == list(range(pieces))


LAYOUTS = {
    "packed": lambda x: x,
    "step": lambda x: x[:, ::3],
    "reversed": lambda x: x[::-1, ::-1],
    "transposed": lambda x: x.T,
    "broadcast": lambda x: np.broadcast_to(x[0], (50, *x[0].shape)),
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "0-d": lambda x: x[0, 0],
    "one row": lambda x: x[:1],
    "3-d": lambda x: x.reshape(4, -1, x.shape[1])[:, 1:].swapaxes(0, 2),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex128"])
def test_uploads_of_any_layout_arrive(far, layout, dtype):
    x = np.asarray(LAYOUTS[layout](random_array((12, 21), dtype)))
    native = x.dtype.newbyteorder("=")
    device = far(x.nbytes)

    slots = device.copy(x, native, up=True)
    x = x.copy()  # the slots alone hold the values until the device is done
    device.driver.synchronize()

    assert len(slots) <= 4 * staging.SLOTS
    np.testing.assert_array_equal(device.array.view(native).reshape(x.shape), x)


@pytest.mark.parametrize("layout", [key for key in LAYOUTS if key != "broadcast"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex128"])
def test_downloads_into_any_layout_arrive(far, layout, dtype):
    base = np.zeros((12, 21), dtype)
    out = np.asarray(LAYOUTS[layout](base)) if layout != "0-d" else base[0, :1]
    values = random_array(out.shape, dtype, seed=1)
    device = far(values.nbytes)
    device.array[:] = values.reshape(-1).view(np.uint8)

    device.copy(out, values.dtype, up=False)

    np.testing.assert_array_equal(out, values)


def test_values_are_cast_on_the_way(far):
    x = random_array((70, 33), "float64")
    device = far(x.nbytes // 2)
    back = np.zeros_like(x)

    device.copy(x, np.dtype("float32"), up=True)
    device.copy(back, np.dtype("float32"), up=False)

    np.testing.assert_array_equal(back, x.astype("float32"))


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

    assert device.driver.done == len(device.driver.queue), "a copy was still to come"
    assert len(device.events) == 100
    assert len(device.driver.queue) < 60, "the others went on"
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
    values = random_array((100, 64))[:, ::2]
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

    assert device.driver.done == len(device.driver.queue)
    assert len(device.events) == 100
    assert len(done) < 20, "the others went on"


@both_ways
def test_under_a_tight_limit_there_are_fewer_lanes(far, up):
    values = draw(50 * CHUNK)
    device = far(values.nbytes)
    device.most = 5 * CHUNK  # of 4 lanes with 2 slots each: 2

    np.testing.assert_array_equal(device.copied(values, up=up), values)

    assert device.rings[-1].shape == (4, CHUNK)
    device.most = CHUNK
    with pytest.raises(OutOfMemoryError):
        device.copied(values, up=up)


def test_a_stream_of_each_thread_is_used_by_one(far):
    values = draw(50 * CHUNK)
    device = far(values.nbytes)
    device.stream = staging.PER_THREAD

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
            staging.copy(x, packed, device.queue(), 0, up=True)
            device.driver.synchronize()
            back = np.zeros_like(x)
            staging.copy(back, packed, device.queue(), 0, up=False)
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
    device.wait = ctypes.cast(library.sem_wait, ctypes.c_void_p).value
    device.take_events = lambda _, count: [ctypes.addressof(semaphore)] * count
    values = draw(3 * CHUNK)

    arguments = values, values.dtype
    thread = threading.Thread(
        target=device.copy, args=arguments, kwargs={"up": True}, daemon=True
    )
    thread.start()
    until(lambda: len(device.driver.queue) == staging.SLOTS)
    for _ in range(20):  # the third piece waits for the first, and we do not
        time.sleep(0.001)
    assert thread.is_alive()
    library.sem_post(semaphore)
    thread.join(20)

    assert len(device.driver.queue) == 3
