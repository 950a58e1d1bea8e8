"""The staged copy, decided and done, on devices that are as late as they may be."""

import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, strategies as st

from xdev.errors import OutOfMemoryError
from xdev.testing import SimulatedDevice
from xdev.transfer import schedule, staging
from xdev.transfer.schedule import Act

DIRECTIONS = {"up": schedule.upload, "down": schedule.download}
MIB = 1 << 20


def random_array(shape, dtype="float32", seed=0):
    draw = np.random.default_rng(seed)
    return (draw.standard_normal(shape) * 100).astype(dtype)


# -- the plan and the pieces ----------------------------------------------------------


@given(
    nbytes=st.integers(1, 1 << 36),
    threads=st.integers(1, 200),
    sizes=st.sampled_from([schedule.GENERAL, schedule.PACKED]),
)
def test_a_plan_uses_its_slots_and_little_memory(nbytes, threads, sizes):
    plan = schedule.plan(nbytes, threads, sizes)

    count = -(-nbytes // plan.chunk)
    assert 1 <= plan.lanes <= min(threads, schedule.LANES, count)
    assert 1 <= plan.slots <= schedule.SLOTS
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

    found = list(schedule.pieces(x.shape, itemsize, chunk)) if count else []

    parts = [np.ascontiguousarray(x[piece.where]).tobytes() for piece in found]
    assert b"".join(parts) == x.tobytes()
    assert [len(part) for part in parts] == [piece.nbytes for piece in found]
    assert [piece.start for piece in found] == [
        sum(map(len, parts[:number])) for number in range(len(parts))
    ]
    assert all(piece.nbytes <= chunk for piece in found)


# -- the schedule, on a device that is only order -------------------------------------


def replay(steps, count, lanes, slots, interleave, left_out=()):
    """Run lanes in some order on a simulated device; return the hazards."""
    device = SimulatedDevice()
    stream = device.stream()
    work = deque(schedule.pieces((count,), 512, 512))
    running = [(n, steps(staging._taken(work), slots)) for n in range(lanes)]
    events = {}
    while running:
        lane, acts = running[interleave(len(running))]
        step = next(acts, None)
        if step is None:
            running.remove((lane, acts))
            continue
        if step.act in left_out:
            continue
        place = 1 << 20 | (lane * slots + step.slot) * 512
        if step.act is Act.WAIT:
            events[place].synchronize()
            continue
        tenant = device.tenant(place, 512)
        if step.act in (Act.FILL, Act.DRAIN):
            tenant.touch(write=step.act is Act.FILL)
        else:
            tenant.use(stream, write=step.act is Act.FETCH)
            events[place] = stream.record()
    return device.hazards


@pytest.mark.parametrize("direction", DIRECTIONS)
@given(
    count=st.integers(1, 40),
    lanes=st.integers(1, 4),
    slots=st.integers(1, 3),
    order=st.randoms(use_true_random=False),
)
def test_no_slot_is_used_before_its_copy_is_done(direction, count, lanes, slots, order):
    steps = DIRECTIONS[direction]

    assert replay(steps, count, lanes, slots, order.randrange) == []


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_wait_left_out_is_found(direction):
    steps = DIRECTIONS[direction]

    hazards = replay(steps, 9, 2, 2, lambda _: 0, left_out=(Act.WAIT,))

    by_host = [hazard for hazard in hazards if hazard.stream == -1]
    assert by_host, "the host used a slot that was on the bus"


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_lane_works_while_its_other_slot_is_on_the_bus(direction):
    steps = list(DIRECTIONS[direction](schedule.pieces((6,), 8, 8), slots=2))

    waits = [n for n, step in enumerate(steps) if step.act is Act.WAIT]
    busy = steps[: waits[0]]
    assert {step.slot for step in busy} == {0, 1}, "both slots are in use"
    last = [step.act for step in steps].count(Act.WAIT)
    assert last == (4 if direction == "up" else 6)


# -- the doing, on a bus that copies as late as it may --------------------------------


class LateBus:
    """A device array, and copies to and from it that run when they are waited for."""

    threads = 4

    def __init__(self, nbytes):
        self.array = np.zeros(nbytes, np.uint8)
        self.queue, self.done = [], 0
        self.lock = threading.Lock()
        self.lent = []  # weak references to all slots
        self.fails_at = self.rings = None

    def slots(self, count, nbytes):
        if self.rings is not None and len(self.lent) == self.rings:
            raise OutOfMemoryError("cpu (pinned)", nbytes, 0, 0, None)
        made = np.full((count, nbytes), 0xAB, np.uint8)
        self.lent.append(weakref.ref(made))
        return made

    def entered(self):
        return nullcontext()

    def send(self, slot, start):
        target = self.array[start : start + slot.nbytes]
        return self._enqueue(lambda: np.copyto(target, slot))

    def fetch(self, start, slot):
        origin = self.array[start : start + slot.nbytes]
        return self._enqueue(lambda: np.copyto(slot, origin))

    def _enqueue(self, copy):
        with self.lock:
            if len(self.queue) == self.fails_at:
                raise RuntimeError("the device fell off the bus")
            self.queue.append(copy)
            return Arrival(self, len(self.queue))

    def run_to(self, position):
        with self.lock:
            while self.done < position:
                self.queue[self.done]()
                self.queue[self.done] = None  # as a driver, it holds slots no longer
                self.done += 1

    def synchronize(self):
        self.run_to(len(self.queue))


class Arrival:
    def __init__(self, bus, position):
        self.bus, self.position = bus, position

    def synchronize(self):
        self.bus.run_to(self.position)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Cut arrays of some KiB as finely as ones of many MiB are."""
    monkeypatch.setattr(schedule, "GENERAL", schedule.Sizes(512, 4096, turns=1))
    monkeypatch.setattr(staging._config, "num_threads", lambda: 4)


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
def test_uploads_of_any_layout_arrive(layout, dtype):
    x = np.asarray(LAYOUTS[layout](random_array((60, 101), dtype)))
    native = x.dtype.newbyteorder("=")
    bus = LateBus(x.nbytes)

    kept = staging.send(x, native, bus)
    x = x.copy()  # the slots alone hold the values until the device is done
    bus.synchronize()

    assert len(kept) <= 4
    np.testing.assert_array_equal(bus.array.view(native).reshape(x.shape), x)


@pytest.mark.parametrize("layout", [key for key in LAYOUTS if key != "broadcast"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex128"])
def test_downloads_into_any_layout_arrive(layout, dtype):
    base = np.zeros((60, 101), dtype)
    out = np.asarray(LAYOUTS[layout](base)) if layout != "0-d" else base[0, :1]
    values = random_array(out.shape, dtype, seed=1)
    bus = LateBus(values.nbytes)
    bus.array[:] = values.reshape(-1).view(np.uint8)

    staging.fetch(out, values.dtype, bus)

    np.testing.assert_array_equal(out, values)


def test_values_are_cast_on_the_way():
    x = random_array((70, 33), "float64")
    bus = LateBus(x.nbytes // 2)
    back = np.zeros_like(x)

    staging.send(x, np.dtype("float32"), bus)
    staging.fetch(back, np.dtype("float32"), bus)

    np.testing.assert_array_equal(back, x.astype("float32"))


@pytest.mark.parametrize("fails_at", [0, 1, 5, 20])
def test_an_error_on_the_bus_leaves_nothing_behind(fails_at):
    x = random_array(100_000)
    bus = LateBus(x.nbytes)
    bus.fails_at = fails_at

    with pytest.raises(RuntimeError, match="fell off the bus") as caught:
        staging.send(x, x.dtype, bus)

    assert bus.done == len(bus.queue), "a copy from a slot was still to come"
    caught.value.__traceback__ = None  # it holds the frames that hold the slots
    del caught
    for _ in range(1000):  # a helper that has ended lets go of its frames a bit later
        if not [slots for slots in bus.lent if slots() is not None]:
            break
        time.sleep(0.01)
    assert not [slots for slots in bus.lent if slots() is not None]


def test_a_failing_thread_stops_the_others():
    x = random_array(100_000)
    bus = LateBus(x.nbytes)
    main = threading.current_thread()
    send = bus.send

    def only_here(slot, start):
        if threading.current_thread() is not main:
            raise RuntimeError("in a helper")
        return send(slot, start)

    bus.send = only_here
    helped = False
    for _ in range(50):  # until a helper was quick enough to get a piece
        try:
            staging.send(x, x.dtype, bus)
        except RuntimeError as error:
            assert str(error) == "in a helper"  # noqa: PT017 - it may also pass
            helped = True
            break
    assert helped


def test_under_a_tight_limit_there_are_fewer_lanes():
    x = random_array(100_000)
    bus = LateBus(x.nbytes)
    bus.rings = 1

    assert len(staging.send(x, x.dtype, bus)) == 1

    bus.synchronize()
    np.testing.assert_array_equal(bus.array.view(x.dtype), x)
    bus.rings = len(bus.lent)
    with pytest.raises(OutOfMemoryError):
        staging.send(x, x.dtype, bus)


def test_copies_of_many_threads_do_not_meet():
    arrays = [random_array(50_000, seed=n) for n in range(6)]
    found = [None] * len(arrays)

    def there_and_back(n):
        bus = LateBus(arrays[n].nbytes)
        staging.send(arrays[n], arrays[n].dtype, bus)
        found[n] = np.zeros_like(arrays[n])
        staging.fetch(found[n], arrays[n].dtype, bus)

    threads = [threading.Thread(target=there_and_back, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for back, x in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(back, x)


FORKED = """
import os, warnings
warnings.simplefilter("ignore")
from xdev.transfer import staging
assert staging._threads().submit(int).result(10) == 0
child = os.fork()
if not child:
    os._exit(staging._threads().submit(int).result(10))
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(sys, "abiflags"), reason="no fork on Windows")
def test_a_forked_child_has_threads_of_its_own():
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=60)
