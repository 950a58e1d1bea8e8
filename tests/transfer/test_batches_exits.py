"""``batches``: how much is on the device, how a loop ends, and nothing left behind."""

import gc
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import xdev
from xdev import _optional, memory

NBYTES = 1 << 20  # of a batch: no pack, no cache of small blocks


def large(number):
    return np.full(NBYTES // 4, number, "float32")


def numbers(moved):
    return [int(x[0]) for x in moved]


# -- memory ---------------------------------------------------------------------------


def test_a_batch_that_nobody_holds_is_given_back(far):
    before = memory.allocated(far)
    prefetch = 3
    with memory.peak(far) as peak:
        for batch in xdev.batches(map(large, range(40)), far, prefetch=prefetch):
            del batch
            xdev.synchronize(far)
    assert peak.nbytes - before <= (prefetch + 2) * NBYTES
    assert peak.nbytes - before >= NBYTES


@pytest.mark.parametrize("progress", [False, True])
def test_the_iterator_itself_holds_no_batch(device, progress, bars, until):
    moved = xdev.batches(map(large, range(9)), device, progress=progress)
    alone = large(0)
    count = sys.getrefcount
    for batch in moved:
        until(lambda: count(batch) == count(alone))  # noqa: B023 - it is called at once
    assert len(bars) == progress


def test_no_more_is_read_ahead_than_asked_for(far, until):
    read = []

    def source():
        for number in range(30):
            read.append(number)
            yield large(number)

    moved = xdev.batches(source(), far, prefetch=4)
    assert not read
    assert numbers([next(moved)]) == [0]
    until(lambda: len(read) == 5)
    assert numbers([next(moved)]) == [1]
    until(lambda: len(read) == 6)
    time.sleep(0.02)
    assert len(read) == 6
    moved.close()


# -- how it ends ----------------------------------------------------------------------


def failing(at, error):
    for number in range(at):
        yield large(number)
    raise error


@pytest.mark.parametrize("at", [0, 1, 5])
@pytest.mark.parametrize(
    "error", [KeyError("lost"), KeyboardInterrupt(), SystemExit(3)]
)
def test_an_error_of_the_iterable_comes_at_its_batch(device, at, error):
    moved = xdev.batches(failing(at, error), device)

    found = [next(moved) for _ in range(at)]
    with pytest.raises(type(error)) as caught:
        next(moved)

    assert numbers(found) == list(range(at))
    assert caught.value is error
    assert next(moved, None) is None
    error.__traceback__ = None


def test_an_error_of_an_upload_comes_at_its_batch(far):
    source = [large(0), np.array(["text"]), large(2)]
    moved = xdev.batches(source, far)

    assert numbers([next(moved)]) == [0]
    with pytest.raises(TypeError, match="no arrays of dtype"):
        next(moved)
    assert list(moved) == []


def test_what_cannot_be_iterated_is_refused_at_once(device):
    with pytest.raises(TypeError, match="not iterable"):
        xdev.batches(3, device)


@pytest.mark.parametrize("prefetch", [0, -1])
def test_a_prefetch_below_one_is_refused_at_once(device, prefetch):
    with pytest.raises(xdev.ConfigurationError, match="at least 1"):
        xdev.batches([], device, prefetch=prefetch)


@pytest.mark.parametrize("prefetch", [1.5, "2", None, [2]])
def test_a_prefetch_that_is_no_whole_number_is_refused_in_plain_words(device, prefetch):
    with pytest.raises(TypeError, match=r"prefetch=.*give a whole number"):
        xdev.batches([], device, prefetch=prefetch)


@pytest.mark.parametrize(
    "given",
    [{"prefetch": 0}, {"prefetch": 1.5}, {"device": "gpu"}, {"progress": True}],
    ids=str,
)
def test_what_is_refused_has_started_no_iterable(monkeypatch, device, given):
    class Loader:
        def __iter__(self):
            pytest.fail("it would have started its workers")

    monkeypatch.setattr(_optional, "installed", lambda _: False)
    with pytest.raises((TypeError, xdev.ConfigurationError)):
        xdev.batches(Loader(), **{"device": device, **given})


def test_an_iterable_begins_when_it_is_given(device):
    begun = []

    class Loader:
        def __iter__(self):
            begun.append(1)
            return iter([])

    moved = xdev.batches(Loader(), device)
    assert begun == [1]
    assert list(moved) == []


def test_an_error_of_the_iterables_own_comes_as_it_is(device):
    class Loader:
        def __iter__(self):
            raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine$"):
        xdev.batches(Loader(), device)


def test_what_has_only_items_is_an_iterable(device):
    class Items:
        def __getitem__(self, index):
            return [np.ones(2), np.zeros(3)][index]

    assert [x.shape for x in xdev.batches(Items(), device)] == [(2,), (3,)]


def left_by_break(moved):
    for _ in moved:
        break


def left_by_close(moved):
    next(moved)
    moved.close()
    assert next(moved, None) is None


def left_by_an_exception(moved):
    def loop():
        for batch in moved:
            raise RuntimeError("in the loop", batch.shape)

    with pytest.raises(RuntimeError, match="in the loop"):
        loop()


def left_to_the_collector(moved):
    next(moved)
    cycle = [moved]
    cycle.append(cycle)
    del moved, cycle
    gc.collect()


def never_begun(moved):
    del moved


LEFT = [left_by_break, left_by_close, left_by_an_exception]
LEFT += [left_to_the_collector, never_begun]


@pytest.mark.parametrize("leave", LEFT)
def test_an_early_exit_frees_everything(far, leave, until, feeds):
    gc.collect()
    before, closed = memory.allocated(far), []

    def source():
        try:
            yield from map(large, range(100))
        finally:
            closed.append(True)

    moved = source()
    next(moved)
    leave(xdev.batches(moved, far, prefetch=3))
    del moved

    until(lambda: memory.allocated(far) == before)
    until(lambda: closed and not feeds())


def test_an_iterable_that_hangs_does_not_hold_up_who_leaves(far, until, feeds):
    go = threading.Event()

    def source():
        yield large(0)
        go.wait()
        yield large(1)

    before = memory.allocated(far)
    for _ in xdev.batches(source(), far):
        break
    assert memory.allocated(far) - before <= NBYTES
    assert feeds()
    go.set()
    until(lambda: not feeds())


@pytest.mark.parametrize(
    "rest", ["", "time.sleep(0.05)", "raise SystemExit(0)", "next(moved)"]
)
def test_python_ends_with_an_iterator_in_the_middle(far, rest):
    code = f"""if 1:
        import threading, time
        import numpy as np, xdev
        def source():
            number = 0
            while True:
                yield np.full(100_000, number)
                number += 1
        moved = xdev.batches(source(), "{far}")
        assert int(next(moved)[0]) == 0
        {rest}
    """
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_says_that_it_cannot_go_on():
    code = """if 1:
        import os, numpy as np, xdev
        moved = xdev.batches([np.full(9, n) for n in range(9)], "fake")
        next(moved)
        child = os.fork()
        if not child:
            try:
                next(moved)
            except xdev.XdevError as error:
                os._exit(7 if "after the fork" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert int(next(moved)[0]) == 1
    """
    command = [sys.executable, "-W", "ignore", "-c", code]
    subprocess.run(command, check=True, timeout=60)
