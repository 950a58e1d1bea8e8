"""A program that ends with memory alive: ``python exits.py SEED DEVICE ENDING``.

The seed chooses which kinds of memory are alive, and in which order they were made. The
last exit function prints ``alive``.
"""

import atexit
import builtins
import contextlib
import gc
import os
import random
import signal
import sys
import threading
import weakref

import numpy as np

import xdev
from xdev import memory
from xdev.memory import Pool
from xdev.testing import FakeSource

LARGE, SMALL = 200_000, 10
DEVICE = sys.argv[2] if __name__ == "__main__" else "cpu"


def zeros(count=LARGE):
    return xdev.zeros(count, device=DEVICE)


class Late:
    """Makes and drops memory when it goes, which may be at the very end."""

    def __init__(self):
        self.array, self.zeros = zeros(), zeros

    def __del__(self):
        again = self.zeros()
        self.array[:10] = again[:10]


def cycle():
    late = Late()
    late.me = late
    return late


def freed():
    array = zeros()
    memory.free(array)
    return array


def entered(scope):
    scope.__enter__()
    return scope, zeros(), zeros(SMALL)


def with_history():
    memory.record_history()
    return zeros()


def with_numpy_bridge():
    with contextlib.suppress(xdev.ConfigurationError):  # without the compiled part
        memory.bridges.install("numpy")
    return np.zeros(LARGE), np.ones(SMALL), np.arange(LARGE)[::2]


def own_pool():
    pool = Pool(FakeSource(1 << 30))
    return pool, [pool.acquire(nbytes) for nbytes in (1, 5000, 3 << 20)]


def in_builtins():
    builtins.kept_to_the_end = [zeros(), Late()]


def in_a_thread_that_goes_on():
    def loop():
        held = []
        while True:
            held.append(zeros())
            del held[:-4]

    threading.Thread(target=loop, daemon=True).start()


def in_a_thread_that_ends_after_main():
    main, mine = threading.main_thread(), threading.local()

    def wait():
        mine.array = zeros()
        main.join()
        mine.array = zeros()

    threading.Thread(target=wait).start()
    return mine


def at_exit():
    array = zeros()
    atexit.register(lambda: zeros() + array)


def with_finalizer():
    owner = Late()
    weakref.finalize(owner, zeros)
    return owner


def in_a_traceback():
    def fail(array):
        raise ValueError(array.size)

    try:
        fail(zeros())
    except ValueError as error:
        return error


CPU = {
    "small": lambda: zeros(SMALL),
    "view": lambda: zeros()[5:-5:3],
    "transposed": lambda: xdev.reshape(zeros(), (100, -1)).T,
    "result": lambda: zeros() + 1,
    "block": lambda: memory.pool(DEVICE).acquire(5000),
    "memoryview": lambda: memoryview(xdev.zeros(LARGE, device="cpu")),
    "tracked": lambda: entered(memory.track()),
    "with peak": lambda: entered(memory.peak()),
}
OTHERS = (
    *(Late, cycle, freed, with_history, with_numpy_bridge, own_pool, in_builtins),
    *(in_a_thread_that_goes_on, in_a_thread_that_ends_after_main, at_exit),
    *(with_finalizer, in_a_traceback),
)
CPU |= {function.__name__: function for function in OTHERS}


def numba_array():
    from numba import cuda

    arrays = cuda.device_array(LARGE), cuda.to_device(np.zeros(LARGE))
    return *arrays, cuda.as_cuda_array(zeros())


def cupy_array():
    import cupy

    return cupy.zeros(LARGE), cupy.zeros((100, 100)).T[::2], cupy.fft.fft(zeros())


def on_a_stream():
    stream = xdev.Stream("cuda")
    with stream:
        array = zeros() + 1
    memory.record_stream(array, stream)
    return stream, stream.record(), array


def copy_under_way():
    pinned = xdev.empty_pinned((LARGE,), xdev.float32)
    return pinned[3:], xdev.to_device(pinned, "cuda", non_blocking=True)


CUDA = {f.__name__: f for f in (numba_array, cupy_array, on_a_stream, copy_under_way)}


def leave(how):
    if how == "sys.exit":
        sys.exit(3)
    if how == "exception":
        raise RuntimeError("the end", zeros())
    if how == "signal":  # ignored, where the tests run in a shell's background
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.kill(os.getpid(), signal.SIGINT)
    if how == "collecting":
        gc.set_threshold(1, 1, 1)


if __name__ == "__main__":
    choose = random.Random(int(sys.argv[1]))  # noqa: S311 - no secret
    kinds = CPU | (CUDA if DEVICE == "cuda" else {})
    chosen = choose.sample(sorted(kinds), choose.randint(1, len(kinds)))
    if sys.version_info[:2] == (3, 12):
        # The last collection of Python 3.12 can be entered once more by an automatic
        # one, which corrupts its lists: a program without any package hangs or dies.
        atexit.register(gc.disable)
    atexit.register(print, "alive", flush=True)
    kept = {name: kinds[name]() for name in chosen}
    with contextlib.ExitStack() as stack:
        stack.callback(zeros)
        leave(sys.argv[3])
