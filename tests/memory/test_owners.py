"""``free`` and ``record_stream`` on arrays."""

import threading
import types

import numpy as np
import pytest

import xdev
from xdev import memory
from xdev.errors import InUseError, UseAfterFreeError

FLOAT = np.dtype("f4")


def array():
    return memory.host_array((100_000,), FLOAT)


def test_free_gives_the_memory_back_at_once_and_once():
    before = memory.allocated("cpu")
    x = array()
    assert memory.free(x) == 400_000 + -400_000 % 64
    assert memory.allocated("cpu") == before
    with pytest.raises(UseAfterFreeError, match="freed before"):
        memory.free(x)
    other = array()
    del x  # gives nothing back a second time
    assert memory.allocated("cpu") == before + 400_000 + -400_000 % 64
    del other


@pytest.mark.parametrize("x", ["text", 4096, None, [], [np.ones(3)]])
def test_what_is_no_array_cannot_be_freed(x):
    with pytest.raises(TypeError, match=f"x is not an array but {type(x).__name__}"):
        memory.free(x)


def test_a_class_is_no_array():
    text = "^x is not an array but the class ndarray: pass an object of it$"
    with pytest.raises(TypeError, match=text):
        memory.free(np.ndarray)
    with pytest.raises(ValueError, match=text):
        memory.record_stream(np.ndarray, 7)


def test_of_several_threads_one_frees():
    outcomes = []
    for _ in range(50):
        x, start = array(), threading.Barrier(3)

        def release(x=x, start=start):
            start.wait()
            try:
                memory.free(x)
                outcomes.append("freed")
            except UseAfterFreeError:
                outcomes.append("refused")

        threads = [threading.Thread(target=release) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert outcomes.count("freed") == 50
    assert outcomes.count("refused") == 100


def test_record_stream_keeps_a_block_until_it_is_polled():
    x = array()
    before = memory.allocated("cpu")
    memory.record_stream(x[10:], 7)
    del x
    assert memory.allocated("cpu") < before


def test_record_stream_of_foreign_memory_is_refused():
    for x in (np.empty(100_000), "text"):
        with pytest.raises(ValueError, match=r"pools|not an array"):
            memory.record_stream(x, 7)


@pytest.mark.parametrize("x", [array, lambda: xdev.ones(100_000, device="fake")])
@pytest.mark.parametrize(
    ("stream", "error"),
    [
        *[(other, TypeError) for other in ("x", None, 1.5, [], types.SimpleNamespace)],
        *[(other, ValueError) for other in (-1, 1 << 70)],
    ],
)
def test_record_stream_of_what_is_no_stream_is_refused(x, stream, error):
    with pytest.raises(error, match=r"stream.*use an int such as stream\.ptr"):
        memory.record_stream(x(), stream)


def test_record_stream_takes_streams_and_their_handles():
    x = array()
    for stream in (0, np.int64(7), xdev.Stream("cpu")):
        memory.record_stream(x, stream)


@pytest.mark.cuda
def test_cupy_arrays_are_freed_by_the_same_rules(cuda):  # noqa: ARG001
    import cupy

    assert "cupy" in memory.bridges.installed()
    before = memory.allocated("cuda")
    x = cupy.empty(100_000, "f4")
    y = x[1:]
    for in_use in (x, y):
        with pytest.raises(InUseError):
            memory.free(in_use)
    del y, in_use
    memory.record_stream(x, cupy.cuda.Stream())
    memory.free(x)
    assert memory.allocated("cuda") == before
    with pytest.raises(UseAfterFreeError):
        memory.free(x)
    del x
    assert memory.allocated("cuda") == before
