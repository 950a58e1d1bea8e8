"""``batches``: the same on every device, in order, and nothing left behind."""

import contextvars
import gc
import re
import sys
import threading
import time
from collections import namedtuple
from contextlib import closing

import numpy as np
import pytest
from running import until

import xdev
from xdev import memory

Pair = namedtuple("Pair", "x y")  # noqa: PYI024
NBYTES = 1 << 20  # of a batch: no pack, no cache of small blocks


def large(number):
    return np.full(NBYTES // 4, number, "float32")


def numbers(moved):
    return [int(x[0]) for x in moved]


# -- what comes out -------------------------------------------------------------------


@pytest.mark.parametrize("prefetch", [1, 2, 10**9])
@pytest.mark.parametrize("count", [0, 1, 3, 20])
def test_the_batches_come_in_order(device, prefetch, count):
    source = [
        Pair(large(number), {"y": [np.int8(1), "text"]}) for number in range(count)
    ]

    moved = list(xdev.batches(source, device, prefetch=prefetch))

    assert numbers(batch.x for batch in moved) == list(range(count))
    for batch, old in zip(moved, source, strict=True):
        assert type(batch) is Pair
        assert xdev.device_of(batch.x) == device
        assert batch.y == old.y
        np.testing.assert_array_equal(xdev.to_numpy(batch.x), old.x)


def test_on_the_cpu_nothing_is_read_ahead(feeds):
    read = []

    def source():
        for number in range(9):
            read.append(number)
            yield number

    with closing(xdev.batches(source(), "cpu", prefetch=4)) as moved:
        for number in range(3):
            assert next(moved) == number
            assert read[-1] == number
    assert not feeds()


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex128"])
def test_a_vector_is_the_iterable_of_its_items(device, dtype):
    x = np.arange(5).astype(dtype)

    moved = list(xdev.batches(x, device))

    own = type(xdev.empty((), device=device)) if device.type != "cpu" else np.generic
    for item, old in zip(moved, x, strict=True):
        assert isinstance(item, own)
        assert xdev.device_of(item) == device
        assert (item.shape, item.dtype) == ((), x.dtype)
        assert xdev.to_numpy(item) == old


@pytest.mark.cuda
@pytest.mark.parametrize("own_stream", [False, True])
@pytest.mark.parametrize("prefetch", [1, 3])
def test_work_of_a_library_that_queues_and_drops_is_in_order(
    cuda, own_stream, prefetch
):
    import cupy

    draw = np.random.default_rng(0)
    source = [draw.random(1 << 18, np.float32) for _ in range(60)]
    small = [[x[:9], x[9:99], x[99:999].astype("float64")] for x in source]
    stream = xdev.Stream(cuda) if own_stream else xdev.current_stream(cuda)

    sums = []
    with stream:
        pairs = zip(source, small, strict=True)
        for x, parts in xdev.batches(pairs, cuda, prefetch=prefetch):
            total = x * 0
            for _ in range(30):  # longer than the next upload takes
                cupy.add(total, x, out=total)
            sums.append((total, [part + 1 for part in parts]))
            del x, parts, total
    for (total, parts), x, old in zip(sums, source, small, strict=True):
        np.testing.assert_allclose(total.get(), x * 30, rtol=1e-5)
        for part, was in zip(parts, old, strict=True):
            np.testing.assert_array_equal(part.get(), was + 1)


# -- where the iterable runs ----------------------------------------------------------


def test_the_iterable_runs_in_the_context_of_the_call(device):
    variable = contextvars.ContextVar("variable", default="unset")

    def source():
        yield [variable.get(), str(xdev.default_device())]

    def inside():
        variable.set("set")
        with xdev.use_device("fake:1"):
            return xdev.batches(source(), device)

    moved = contextvars.copy_context().run(inside)
    assert list(moved) == [["set", "fake:1"]]
    with xdev.use_device(device):
        (batch,) = xdev.batches([large(3)])
    assert xdev.device_of(batch) == device


# -- loaders of PyTorch, progress ------------------------------------------------


def check_a_pytorch_loader(device, **options):
    torch = pytest.importorskip("torch")
    x = torch.arange(1000 * 33, dtype=torch.float32).reshape(1000, 33)
    dataset = torch.utils.data.TensorDataset(x, torch.arange(1000))
    loader = torch.utils.data.DataLoader(dataset, batch_size=64, **options)

    moved = list(xdev.batches(loader, device))

    assert len(moved) == len(loader)
    usual = type(xdev.empty(1, device=device))
    assert {type(part) for batch in moved for part in batch} == {usual}
    values = np.concatenate([xdev.to_numpy(batch[0]) for batch in moved])
    np.testing.assert_array_equal(values, x.numpy())
    labels = np.concatenate([xdev.to_numpy(batch[1]) for batch in moved])
    np.testing.assert_array_equal(labels, np.arange(1000))


def test_a_pytorch_loader_is_a_source(device):
    check_a_pytorch_loader(device)


def test_so_is_one_with_processes_of_its_own(far):
    check_a_pytorch_loader(far, num_workers=1, multiprocessing_context="spawn")


def test_progress_ends_with_the_loop(device, monkeypatch, capsys):
    """To the end of it: tests/test_progress.py."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    moved = xdev.batches(map(large, range(9)), device, progress=True)
    next(moved)
    moved.close()
    shown = capsys.readouterr().err.split("\r")
    assert any(re.match(r"batches \d, 0 s", line) for line in shown)
    assert not shown[-2].strip()


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
def test_the_iterator_itself_holds_no_batch(device, progress):
    moved = xdev.batches(map(large, range(9)), device, progress=progress)
    alone = large(0)
    count = sys.getrefcount
    for batch in moved:
        until(lambda: count(batch) == count(alone))  # noqa: B023 - it is called at once


def test_no_more_is_read_ahead_than_asked_for(far):
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


class Loader:
    def __iter__(self):
        pytest.fail("it would have started its workers")


@pytest.mark.parametrize(
    ("iterable", "options", "error", "text"),
    [
        (Loader(), {"prefetch": 0}, xdev.ConfigurationError, "at least 1"),
        (Loader(), {"prefetch": 1.5}, TypeError, "integer"),
        (Loader(), {"device": "gpu"}, xdev.ConfigurationError, "called 'gpu'"),
        ("cpu", {"device": [large(0)]}, xdev.ConfigurationError, "is not a device"),
        (2, {}, TypeError, "not iterable"),
        (np.array(3.0), {}, TypeError, "0-d array"),
    ],
    ids=range(6),
)
def test_what_is_refused_has_started_no_iterable(
    device, iterable, options, error, text
):
    with pytest.raises(error, match=text):
        xdev.batches(iterable, **{"device": device, **options})


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


LEFT = [left_by_close, left_by_an_exception, left_to_the_collector, never_begun]


@pytest.mark.parametrize("leave", LEFT)
def test_an_early_exit_frees_everything(far, leave, feeds):
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


def test_an_iterable_that_hangs_does_not_hold_up_who_leaves(far, feeds):
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
def test_python_ends_with_an_iterator_in_the_middle(far, rest, printed):
    code = f"""
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
    assert printed(code, options=("-W", "ignore")) == ""


def test_a_forked_child_says_that_it_cannot_go_on(printed):
    code = """
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
    printed(code, options=("-W", "ignore"))


# -- a real device's memory ------------------------------------------------------------


COUNT, SEGMENT = 12, 64 << 20  # free segments of this size go back before a pool grows


@pytest.fixture(params=["pageable", "pinned"])
def source(request):
    arrays = [np.full(SEGMENT // 4, n, np.float32) for n in range(3)]
    if request.param == "pinned":
        arrays = [*map(xdev.pin, arrays)]
    return [arrays[n % 3] for n in range(COUNT)]


@pytest.mark.cuda
def test_loops_ask_the_driver_for_no_memory(cuda, source):
    sums = []

    def ahead():
        for x in xdev.batches(source, cuda):
            for _ in range(20):
                xdev.multiply(x, 1.0, out=x)
            sums.append(xdev.max(x))

    def one_after_the_other():
        for x in source:
            there = xdev.to_device(x, cuda)
            xdev.multiply(there, 1.0, out=there)

    def both():
        ahead()
        xdev.synchronize(cuda)
        one_after_the_other()
        xdev.synchronize(cuda)
        gc.collect()

    for _ in range(4):
        both()
    pools = [memory.pool(cuda, "device"), memory.pool("cpu", "pinned")]
    before = [pool.stats() for pool in pools]
    for _ in range(3):
        both()
    after = [pool.stats() for pool in pools]

    for old, new in zip(before, after, strict=True):
        assert new.returned == old.returned
        assert new.grown - old.grown <= 2, "no more than an unusual order asks for"
    assert [float(x) for x in sums] == [n % 3 for n in range(COUNT)] * 7
