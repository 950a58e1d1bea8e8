"""Captures with a stand-in for the driver: what is recorded, freed, and refused."""

import pytest

import xdev
from xdev.errors import CaptureError

MIB = 1 << 20


def test_what_is_allocated_lies_in_blocks_that_go_with_the_last_user(recording):
    def f():
        for _ in range(10):
            x = recording.array(MIB, "u1")
        return x

    arena, graph, result = recording.run(f)

    assert graph == 7
    assert recording.pool.stats().allocated == 2 * MIB
    assert any(
        b.address <= result.data.ptr and result.data.ptr + MIB <= b.address + b.nbytes
        for b in arena.blocks
    )
    del arena
    assert recording.pool.stats().allocated == MIB


def raises(recording):
    recording.states.update(dict.fromkeys(recording.states, "invalidated"))
    raise RuntimeError("cudaErrorStreamCaptureUnsupported")


def acquires(recording):
    return recording.pool.acquire(4096)


@pytest.mark.parametrize(
    ("function", "line", "words"),
    [
        (raises, 2, "`raise RuntimeError.*cudaErrorStreamCaptureUnsupported"),
        (acquires, 1, r"`return recording\.pool\.acquire\(4096\)` allocates"),
    ],
)
def test_what_cannot_be_captured_is_named_by_line(recording, function, line, words):
    where = f"test_graph_capture.py:{function.__code__.co_firstlineno + line}, "

    with pytest.raises(CaptureError, match=f"cannot be captured: .*{where}{words}"):
        recording.run(lambda: function(recording))


def test_a_call_that_ends_the_recording_without_a_word_is_told_of(recording):
    def breaks():
        recording.states.update(dict.fromkeys(recording.states, "invalidated"))
        return recording.array(10, "u1")

    with pytest.raises(CaptureError, match="captured: by a call before: Runt"):
        recording.run(breaks)


def test_refusals_destroy_the_graph_and_other_errors_pass(recording):
    def raising(error):
        def f():
            raise error

        return f

    with pytest.raises(CaptureError, match="RuntimeError: the current stream is capt"):
        recording.run(raising(RuntimeError("the current stream is capturing")))
    with pytest.raises(KeyboardInterrupt):
        recording.run(raising(KeyboardInterrupt()))
    assert recording.destroyed == [7, 7]
    with pytest.raises(xdev.OutOfMemoryError):  # no fault of the function
        recording.run(lambda: recording.array(1 << 27, "u1"))
