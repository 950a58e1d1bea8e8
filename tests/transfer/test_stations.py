"""The threads that help with copies: woken, not waited for in vain, made anew."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from xdev.transfer import lanes, machine


def words(count):
    made = np.zeros(count, np.int64)
    return made, made.ctypes.data


def test_a_station_that_did_not_begin_is_not_waited_for():
    station, address = words(lanes.STATION_WORDS)
    station[lanes.CLAIMED], station[lanes.JOB] = 1, 4096
    station[lanes.ERROR] = 700  # of an earlier job

    assert lanes.dismiss(0, address) == 0
    assert station[lanes.JOB] == station[lanes.CLAIMED] == 0


@pytest.mark.parametrize(
    ("lane", "taken", "claimed", "found"),
    [(1, 0, 0, 1), (1, 0, 1, 2), (1, 0, 2, 0), (3, 0, 0, 0), (2, 5, 0, 0)],
)
def test_a_lane_wakes_a_free_station_for_work_that_is_left(
    late_driver, lane, taken, claimed, found
):
    stations = np.zeros((2, lanes.STATION_WORDS), np.int64)
    stations[:claimed, lanes.CLAIMED] = 1
    job, address = words(lanes.JOB_WORDS)
    job[[lanes.LANES, lanes.COUNT, lanes.NEXT]] = 3, 5, taken
    job[[lanes.STATIONS, lanes.STATION_COUNT]] = stations.ctypes.data, 2
    posted = []
    job[lanes.POST] = late_driver.function("post", posted.append, 1)

    station = lanes.wake(address, lane)

    size = lanes.WORD * lanes.STATION_WORDS
    assert station == (found and stations.ctypes.data + (found - 1) * size)
    assert posted == ([station + lanes.WORD * lanes.WORK] if found else [])
    if found:
        claimed_words = [lanes.CLAIMED, lanes.JOB, lanes.LANE]
        assert stations[found - 1, claimed_words].tolist() == [1, address, lane]


FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, os.environ["TESTS"])
import numpy as np
from conftest import LateDriver
from test_lanes import CHUNK, Line, copied, express, schedule, draw
schedule.PACKED = schedule.Sizes(CHUNK, CHUNK, turns=1)
express._config.num_threads = lambda: 4

def works():
    values = draw(50 * CHUNK)
    return np.array_equal(copied("up", Line(LateDriver(), 50 * CHUNK), values), values)

assert works() and express.stations().count == 3
child = os.fork()
if not child:
    fresh = express.stations().count == 0
    os._exit(0 if fresh and works() and express.stations().count == 3 else 1)
assert os.waitpid(child, 0)[1] == 0
assert works()
"""


def test_a_forked_child_has_stations_of_its_own(request):
    folder = str(request.path.parent)
    command = [sys.executable, "-c", FORKED]
    subprocess.run(command, check=True, timeout=60, env={**os.environ, "TESTS": folder})


def test_a_thread_quits_when_told_to():
    _station, address = words(lanes.STATION_WORDS)
    library = machine.c_library()
    library.sem_init(ctypes.c_void_p(address + lanes.WORD * lanes.WORK), 0, 0)
    functions = machine.c_address("sem_wait"), machine.c_address("sem_post")
    serve = machine.machine().serve
    thread = threading.Thread(target=serve, args=(address, *functions), daemon=True)
    thread.start()

    lanes.exchange(address + lanes.WORD * lanes.JOB, lanes.QUIT)
    library.sem_post(ctypes.c_void_p(address + lanes.WORD * lanes.WORK))
    thread.join(20)

    assert not thread.is_alive()
