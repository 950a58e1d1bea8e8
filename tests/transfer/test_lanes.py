"""The staged copy in machine code, on a driver that is as late as it may be."""

import ctypes
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from xdev.compile.team import stations, threads
from xdev.errors import OutOfMemoryError, XdevError
from xdev.transfer import express, lanes, schedule
from xdev.transfer.schedule import Act

STEPS = {"up": schedule.upload, "down": schedule.download}
CHUNK = 64
NAMES = {  # how the acts show in the driver's log
    "up": {Act.WAIT: "wait", Act.FILL: "move", Act.SEND: "up"},
    "down": {Act.WAIT: "wait", Act.FETCH: "down", Act.DRAIN: "move"},
}


class Line:
    """A device's array behind a late driver."""

    name, context, stream = "late:0", 77, 5

    def __init__(self, driver, nbytes, threads=4):
        self.driver, self.threads = driver, threads
        self.array = np.zeros(nbytes, np.uint8)
        self.address = self.array.ctypes.data
        self.enter, self.up, self.down = driver.enter, driver.up, driver.down
        self.record, self.wait = driver.record, driver.wait
        self.synchronize = driver.synchronize
        self.rings, self.most = [], None
        self.events = list(range(1000, 1100))

    def slots(self, count, nbytes):
        if self.most is not None and count * nbytes > self.most:
            raise OutOfMemoryError("cpu (pinned)", nbytes, 0, 0, None, ())
        self.rings.append(np.full((count, nbytes), 0xAB, np.uint8))
        return self.rings[-1]

    def take_events(self, count):
        return [self.events.pop() for _ in range(count)]

    def give_events(self, events):
        self.events.extend(events)

    def explain(self, status):
        return f"error {status}"


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    sizes = schedule.Sizes(CHUNK, CHUNK, turns=1)
    monkeypatch.setattr(schedule, "PACKED", sizes)
    monkeypatch.setattr(express._config, "num_threads", lambda: 4)


@pytest.fixture
def watched(late_driver, monkeypatch):
    """Have the lanes' memcpy noted as well."""
    c_address = express.c_address

    def address(name):
        return late_driver.move if name == "memcpy" else c_address(name)

    monkeypatch.setattr(express, "c_address", address)
    return late_driver


@pytest.fixture(params=["plain", "compiled"])
def code(request, monkeypatch):
    """The lanes as Python, which is the reference, and as machine code."""
    if request.param == "plain":
        body = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 3)(lanes.run)
        plain = SimpleNamespace(address=lambda _: threads.address_of(body))
        monkeypatch.setattr(express, "CODE", plain)
        monkeypatch.setattr(threads, "lead", lambda: stations.lead)
    return request.param


def draw(nbytes, seed=0):
    return np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)


def copied(direction, line, values):
    """Copy values there, or from there; return what came."""
    if direction == "up":
        host = values.copy()
        slots = express.send(host, line)
        host[:] = 0  # the slots alone hold the values until the device is done
        line.synchronize()
        assert slots is line.rings[-1]
        return line.array
    line.array[:] = values
    host = np.zeros_like(values)
    express.fetch(host, line)
    return host


def expected_calls(direction, line, host, taken, lane, slots):
    """Return what the schedule says that a lane calls, for the pieces that it took."""
    pieces = [*schedule.pieces((line.array.size,), 1, CHUNK)]
    ring = line.rings[-1].ctypes.data
    events = [*range(1099, 0, -1)]
    for step in STEPS[direction]([pieces[n] for n in taken], slots):
        slot = lane * slots + step.slot
        here, there = host + step.piece.start, line.address + step.piece.start
        place, nbytes = ring + slot * CHUNK, step.piece.nbytes
        words = {
            Act.WAIT: (events[slot],),
            Act.FILL: (place, here, nbytes),
            Act.SEND: (there, place, nbytes, line.stream),
            Act.FETCH: (place, there, nbytes, line.stream),
            Act.DRAIN: (here, place, nbytes),
        }[step.act]
        yield NAMES[direction][step.act], words
        if step.act in (Act.SEND, Act.FETCH):
            yield "record", (events[slot], line.stream)


def calls_by_thread(driver):
    calls = {}
    for thread, name, words in driver.log:
        calls.setdefault(thread, []).append((name, words))
    return calls


def moved(calls, line, direction):
    """Return the pieces that went over the bus, in order."""
    at = 0 if direction == "up" else 1
    return [
        (words[at] - line.address) // CHUNK
        for name, words in calls
        if name == direction
    ]


@pytest.mark.parametrize("direction", STEPS)
@pytest.mark.parametrize("nbytes", [1, CHUNK, CHUNK + 1, 5 * CHUNK, 5 * CHUNK + 7])
@pytest.mark.usefixtures("code")
def test_a_lane_takes_the_steps_of_the_schedule(watched, direction, nbytes):
    line = Line(watched, nbytes, threads=1)
    values = draw(nbytes)

    np.testing.assert_array_equal(copied(direction, line, values), values)

    (first, *calls), *others = calls_by_thread(watched).values()
    assert first == ("enter", (line.context,))
    assert not others
    taken = moved(calls, line, direction)
    assert taken == list(range(-(-nbytes // CHUNK)))
    slots = min(schedule.SLOTS, len(taken))
    name = next(words for name, words in calls if name == "move")
    host = name[1] if direction == "up" else name[0]
    assert calls == [*expected_calls(direction, line, host, taken, 0, slots)]


@pytest.mark.parametrize("direction", STEPS)
def test_each_of_several_lanes_takes_the_steps_of_the_schedule(watched, direction):
    nbytes, several = 60 * CHUNK + 5, 0
    values = draw(nbytes)
    for _ in range(20):
        line = Line(watched, nbytes)
        watched.log.clear()

        np.testing.assert_array_equal(copied(direction, line, values), values)

        by_thread, everything = calls_by_thread(watched), []
        several += len(by_thread) > 1
        ring = line.rings[-1].ctypes.data
        firsts = {}
        for thread, (_, *calls) in by_thread.items():
            taken = moved(calls, line, direction)
            everything += taken
            if taken:
                at = 1 if direction == "up" else 0
                place = next(w[at] for name, w in calls if name == direction)
                firsts[thread] = (place - ring) // CHUNK // schedule.SLOTS
                to, origin, _ = next(w for name, w in calls if name == "move")
                here = origin if direction == "up" else to
                host = here - taken[0] * CHUNK
                lane = firsts[thread]
                assert calls == [
                    *expected_calls(direction, line, host, taken, lane, schedule.SLOTS)
                ]
        assert sorted(everything) == list(range(61))
        assert len(set(firsts.values())) == len(firsts), "two threads in one lane"
    assert several, "no helper ever came"


@pytest.mark.parametrize("direction", STEPS)
@pytest.mark.parametrize("name", ["enter", "copy", "record", "wait"])
@pytest.mark.parametrize("good", [0, 1, 7])
def test_an_error_of_the_driver_is_told(late_driver, direction, name, good):
    name = direction if name == "copy" else name
    values = draw(50 * CHUNK)
    line = Line(late_driver, values.nbytes, threads=1 if name == "enter" else 4)
    late_driver.fails = {name: 0 if name == "enter" else good}

    with pytest.raises(XdevError, match=r"late:0: .* failed at byte .*: error 700"):
        copied(direction, line, values)

    assert late_driver.done == len(late_driver.queue), "a copy was still to come"
    assert len(line.events) == 100
    queued = [entry for entry in late_driver.log if entry[1] == direction]
    assert len(queued) < 50, "the others went on"
    late_driver.fails = {}
    np.testing.assert_array_equal(copied(direction, line, values), values)


def test_the_failing_piece_is_named(late_driver):
    line = Line(late_driver, 9 * CHUNK, threads=1)
    late_driver.fails = {"up": 3}

    with pytest.raises(XdevError, match=f"a copy of 576 B failed at byte {3 * CHUNK}:"):
        express.send(draw(9 * CHUNK), line)


@pytest.mark.parametrize("direction", STEPS)
def test_under_a_tight_limit_there_are_fewer_lanes(late_driver, direction):
    values = draw(50 * CHUNK)
    line = Line(late_driver, values.nbytes)
    line.most = 5 * CHUNK  # of 4 lanes with 2 slots each: 2

    np.testing.assert_array_equal(copied(direction, line, values), values)

    assert line.rings[-1].shape == (4, CHUNK)
    line.most = CHUNK
    with pytest.raises(OutOfMemoryError):
        copied(direction, line, values)


def test_copies_of_many_threads_do_not_meet(late_driver):
    arrays = [draw(40 * CHUNK + n, seed=n) for n in range(6)]
    right = []

    def there_and_back(n):
        for _ in range(5):
            line = Line(late_driver, arrays[n].nbytes)
            up = copied("up", line, arrays[n])
            right.append(np.array_equal(up, arrays[n]))
            right.append(np.array_equal(copied("down", line, arrays[n]), arrays[n]))

    threads = [threading.Thread(target=there_and_back, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert right == [True] * 60


def test_python_goes_on_while_a_copy_waits(late_driver, until):
    semaphore = ctypes.create_string_buffer(32)
    library = threads.c_library()
    library.sem_init(semaphore, 0, 0)
    line = Line(late_driver, 3 * CHUNK, threads=1)
    line.wait = threads.c_address("sem_wait")  # in C: it lets go of nothing by itself
    line.take_events = lambda count: [ctypes.addressof(semaphore)] * count
    line.give_events = lambda _: None
    values = draw(3 * CHUNK)

    thread = threading.Thread(target=express.send, args=(values, line), daemon=True)
    thread.start()
    until(lambda: len(late_driver.queue) == schedule.SLOTS)
    for _ in range(20):  # the third piece waits for the first, and we do not
        time.sleep(0.001)
    assert thread.is_alive()
    library.sem_post(semaphore)
    thread.join(20)

    assert len(late_driver.queue) == 3
