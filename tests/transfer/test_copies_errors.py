"""Errors of a real device in the middle of a staged copy, and what is used again."""

import ctypes
import gc
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import xdev
from xdev.errors import XdevError
from xdev.transfer import staging

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("cuda")]

MIB = 1 << 20


def values(n):
    return np.random.default_rng(5).standard_normal(n).astype("float32")


def pinned_in_use():
    gc.collect()
    return xdev.memory.allocated("cpu", "pinned")


def failing_cast(monkeypatch):
    """Let the fifth piece fail that NumPy copies: those of a strided array."""
    calls = []

    def failing(*args):
        calls.append(len(args))
        if len(calls) == 5:
            raise XdevError("the device fell off the bus")
        np.copyto(*args)

    numpy = SimpleNamespace(**vars(np) | {"copyto": failing})
    monkeypatch.setattr(staging, "np", numpy)


def failing_driver(monkeypatch):
    """Let the fifth piece fail that the driver copies, or CuPy's runtime."""
    import cupy

    runtime = cupy.cuda.runtime
    calls, kept, real = [], [], runtime.memcpyAsync
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_size_t] * 4)

    def failing(copy, *words):
        calls.append(len(words))
        return 700 if len(calls) == 5 else copy(*words)

    *others, down, up = staging.addresses()
    for address in (down, up):
        kept.append(kind(partial(failing, kind(address))))
        others.append(ctypes.cast(kept[-1], ctypes.c_void_p).value)
    monkeypatch.setattr(staging, "addresses", lambda: others)

    def failing_runtime(*words):
        calls.append(len(words))
        if len(calls) == 5:
            raise runtime.CUDARuntimeError(700)
        real(*words)

    monkeypatch.setattr(runtime, "memcpyAsync", failing_runtime)
    return kept


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize(
    ("fail", "step", "message"),
    [(failing_cast, 2, "fell off the bus"), (failing_driver, 1, "(?i)error_?illegal")],
)
def test_an_error_in_the_middle_leaks_nothing(
    cuda, monkeypatch, direction, fail, step, message
):
    x = values(step * 16 * MIB)[::step]
    there, out = xdev.to_device(x, cuda), np.empty_like(values(step * 16 * MIB))[::step]
    xdev.synchronize(cuda)
    pinned, device = pinned_in_use(), xdev.memory.allocated(cuda, "device")

    with monkeypatch.context() as patch:
        kept = fail(patch)
        moved = (x, cuda) if direction == "up" else (there, "cpu")
        landing = None if direction == "up" else out
        with pytest.raises(XdevError, match=message):
            xdev.to_device(*moved, out=landing)
        del kept

    for _ in range(100):  # a helper that has ended lets go of its frames a bit later
        if pinned_in_use() == pinned:
            break
        time.sleep(0.01)
    assert pinned_in_use() == pinned
    assert xdev.memory.allocated(cuda, "device") == device
    np.testing.assert_array_equal(xdev.to_numpy(xdev.to_device(x, cuda)), x)
