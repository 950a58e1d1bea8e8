"""Threads that help: woken, not waited for in vain, at nobody's cost when unneeded."""

import ctypes
import subprocess
import sys
import threading

import numpy as np
import pytest

from xdev.compile.team import stations, threads

WORD = stations.WORD


def words(count):
    made = np.zeros(count, np.int64)
    return made, made.ctypes.data


@pytest.fixture
def posted():
    """The semaphores that were posted, and the address of what posts."""
    found = []

    def post(semaphore):
        found.append(semaphore)
        return 0

    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(post)
    yield found, threads.address_of(function)
    del function


def job_of(lanes, helpers, post):
    job, address = words(stations.HEAD + stations.LINE * lanes)
    job[stations.LANES], job[stations.POST] = lanes, post
    job[stations.LINES] = address + WORD * stations.HEAD
    job[stations.STATIONS] = helpers.ctypes.data
    job[stations.STATION_COUNT] = len(helpers)
    return job, address


def test_a_station_that_did_not_begin_is_not_waited_for(posted):
    helpers = np.zeros((1, stations.STATION_WORDS), np.int64)
    _job, address = job_of(2, helpers, posted[1])
    assert stations.wake(address, 1) == helpers.ctypes.data
    assert helpers[0, [stations.CLAIMED, stations.WORK]].tolist() == [1, address]

    assert stations.dismiss(address, 1) == 0
    assert not helpers[0, [stations.CLAIMED, stations.WORK]].any()


def test_what_a_station_ended_with_is_its_claimants(posted):
    helpers = np.zeros((1, stations.STATION_WORDS), np.int64)
    _job, address = job_of(2, helpers, posted[1])
    stations.wake(address, 1)
    helpers[0, stations.WORK] = 0  # it took the job
    stations.hand(helpers[0, stations.DONE :].ctypes.data, 1 + 700, posted[1])

    assert stations.dismiss(address, 1) == 700
    assert not helpers[0, [stations.CLAIMED, stations.DONE]].any()


@pytest.mark.parametrize("asleep", [False, True])
@pytest.mark.parametrize(
    ("lane", "ended", "claimed", "found"),
    [
        (1, 0, [], 0),
        (1, 0, [0], 1),
        (2, 0, [], 1),
        (2, 0, [1], 2),
        (3, 0, [2], 0),
        (1, 0, [0, 1, 2], None),
        (4, 0, [], None),
        (1, 1, [], None),
    ],
)
def test_a_lane_wakes_a_free_station_for_work_that_is_left(
    posted, lane, ended, claimed, found, asleep
):
    helpers = np.zeros((3, stations.STATION_WORDS), np.int64)
    helpers[claimed, stations.CLAIMED] = 1
    helpers[:, stations.WORK + stations.ASLEEP] = asleep
    job, address = job_of(4, helpers, posted[1])
    job[stations.ENDED] = ended

    station = stations.wake(address, lane)

    if found is None:
        assert (station, posted[0]) == (0, [])
        return
    assert station == helpers[found].ctypes.data
    semaphore = station + WORD * (stations.WORK + stations.SEMAPHORE)
    assert posted[0] == [semaphore] * asleep
    claim = [stations.CLAIMED, stations.LANE, stations.WORK]
    assert helpers[found, claim].tolist() == [1, lane, address]


@pytest.mark.parametrize("turns", [0, 1000])
def test_every_value_handed_to_a_thread_is_taken_and_answered(turns):
    station, address = words(stations.STATION_WORDS)
    for gate in (stations.WORK, stations.DONE):
        semaphore = ctypes.c_void_p(address + WORD * (gate + stations.SEMAPHORE))
        threads.c_library().sem_init(semaphore, 0, 0)
    functions = threads.c_address("sem_post"), threads.c_address("sem_wait")
    serve = threads.CODE.function(stations.serve)
    arguments = address, turns, *functions
    thread = threading.Thread(target=serve, args=arguments, daemon=True)
    thread.start()
    taken = []
    body = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 3)(
        lambda job, lane: taken.append((job, lane)) or 7
    )
    job, there = words(stations.HEAD)
    job[stations.BODY], job[stations.LANES] = threads.address_of(body), 1
    work, done = address + WORD * stations.WORK, address + WORD * stations.DONE

    for number in range(300):
        station[stations.LANE] = number
        stations.hand(work, there, functions[0])
        assert stations.take(done, 0, functions[1]) == 1 + 7
    stations.hand(work, stations.QUIT, functions[0])
    thread.join(20)

    assert not thread.is_alive()
    assert taken == [(there, number) for number in range(300)]


FORKED = """
import os, warnings
warnings.simplefilter("ignore")
os.environ["XDEV_NUM_THREADS"] = "4"
import numpy as np
from xdev.compile import threads
from xdev.compile.team.threads import stations

def works():
    seen = np.zeros(10_000, int)
    def task(start, stop):
        seen[start:stop] += 1
    threads.run(task, 10_000)
    return (seen == 1).all()

assert works() and stations().count == 3
child = os.fork()
if not child:
    fresh = stations().count == 0
    os._exit(0 if fresh and works() and stations().count == 3 else 1)
assert os.waitpid(child, 0)[1] == 0
assert works()
"""


def test_a_forked_child_has_stations_of_its_own():
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=60)


ENDED = """
import os, threading
os.environ["XDEV_NUM_THREADS"] = "4"
from xdev.compile import threads

def for_ever():
    while True:
        threads.run(lambda start, stop: None, 10_000)

for _ in range(2):
    threading.Thread(target=for_ever, daemon=True).start()
for _ in range(100):
    threads.run(lambda start, stop: None, 10_000)
print("ended")
"""


def test_a_program_ends_while_threads_are_in_machine_code_and_in_tasks():
    for _ in range(5):
        command = [sys.executable, "-X", "dev", "-c", ENDED]
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "ended\n", "")


def test_idle_threads_take_no_time_of_the_processors():
    program = """
import os, time
os.environ["XDEV_NUM_THREADS"] = "8"
from xdev.compile import threads
threads.run(lambda start, stop: None, 10_000)
time.sleep(0.2)
before = time.process_time()
time.sleep(1)
print(time.process_time() - before)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert float(ran.stdout) < 0.2, "a thread that spins takes a second"
