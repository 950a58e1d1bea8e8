"""An array made on one stream and used by xdev on another stays until that is done."""

import pytest

import xdev
from xdev import memory

cupy = pytest.importorskip("cupy")


@xdev.vectorize
def plus(a, b):
    return a + b


CALLS = {
    "facade": lambda x, _: xdev.add(x, x),
    "out": lambda x, out: xdev.add(x, x, out=out),
    "ufunc": lambda x, out: plus(x, 1.0, out=out),
    "fast ufunc": lambda x, out: plus(x, x, out=out),
    "copy": lambda x, out: xdev.to_device(x, "cuda", out=out, non_blocking=True),
}


@pytest.mark.cuda
@pytest.mark.parametrize("how", CALLS)
def test_blocks_used_on_another_stream_are_marked(cuda, how):
    pool, busy = memory.pool(cuda), cupy.cuda.Stream(non_blocking=True)

    def arrays():
        return [xdev.ones(100_000, dtype=xdev.float32, device=cuda) for _ in range(2)]

    for x, out in (arrays(), arrays()):  # the second time on the quickest way
        busy.wait_event(cupy.cuda.Stream.null.record())
        with busy:
            CALLS[how](x, out)
        used = (x,) if how == "facade" else (out,) if how == "copy" else (x, out)
        for array in used:
            assert busy.ptr in pool.find(array.data.ptr).uses
    xdev.synchronize(cuda)
