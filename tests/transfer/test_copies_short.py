"""Small downloads in few calls: what all others give, or nothing where more is to do.

CUDA stands behind a driver whose copies run when they are waited for.
"""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import xdev
from xdev.device import registry
from xdev.transfer import copies, cuda, staging

LAYOUTS = {
    "C": lambda x: x,
    "F": np.asfortranarray,
    "step": lambda x: x[::2, ::3],
    "reversed": lambda x: x[::-1],
    "size 0": lambda x: x[:0],
    "row": lambda x: x[:1],
    "0-d": lambda x: x[0, 0],
}


def on_device(driver, expected, layout="C"):
    """Return an array there, laid out so, that is written as late as all else."""
    there = np.asarray(LAYOUTS[layout](np.full_like(expected, 7)))
    driver.current.enqueue(partial(np.copyto, there, LAYOUTS[layout](expected)))
    return there.view(driver.ndarray)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128"])
def test_small_arrays_are_copied(driver, layout, dtype):
    x = np.arange(117).reshape(9, 13).astype(dtype)

    back = cuda.fetch(on_device(driver, x, layout))

    assert (back is not None) == (layout in ("C", "row", "0-d"))
    if back is not None:
        assert type(back) is np.ndarray
        assert back.flags.writeable
        expected = np.asarray(LAYOUTS[layout](x))
        np.testing.assert_array_equal(back, expected, strict=True)


def test_large_arrays_are_left_to_others(driver, monkeypatch):
    x = np.arange(12.0)
    for most, small in ((96, True), (95, False)):
        monkeypatch.setattr(staging, "DIRECT", most)
        assert (cuda.fetch(on_device(driver, x)) is not None) == small


def test_what_others_are_to_see_is_left_to_them(driver, monkeypatch):
    there = on_device(driver, np.arange(3.0))
    assert cuda.fetch(there) is not None
    for mode in ("allow", "log", "disallow"):
        with xdev.transfer_guard(mode):
            assert cuda.fetch(there) is None
    monkeypatch.setattr(cuda.live_streams, "captured", {5})
    assert cuda.fetch(there) is None


def test_a_stream_besides_the_default_one_is_marked(driver, monkeypatch):
    marked = []
    monkeypatch.setattr(cuda, "mark_uses", lambda x, stream: marked.append((x, stream)))
    monkeypatch.setattr(cuda.live_streams, "several", False)
    there = on_device(driver, np.arange(3.0))
    assert cuda.fetch(there).tolist() == [0, 1, 2]
    assert not marked
    with driver.there():
        there = on_device(driver, np.arange(4.0))
        assert cuda.fetch(there).tolist() == [0, 1, 2, 3]
        assert len(marked) == 1
    monkeypatch.setattr(cuda.live_streams, "several", True)
    assert cuda.fetch(on_device(driver, np.arange(2.0))).tolist() == [0, 1]
    assert [stream for _, stream in marked] == driver.streams[::-1]


FAKE = """
import numpy, xdev
from xdev.device import cuda
xdev.to_numpy(xdev.to_device(numpy.ones(3), "fake"))
assert not cuda._probe.cache_info().currsize
"""


def test_programs_on_fake_devices_do_not_look_for_cudas():
    environment = os.environ | {"XDEV_DEVICE": "fake"}
    subprocess.run([sys.executable, "-c", FAKE], check=True, env=environment)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("late", [False, True])
def test_ways_are_chosen_by_the_devices(monkeypatch, driver, count, late):
    tables = {(cuda.HOST_PAGE_TABLES, count - 1)} if late else set()
    driver.deviceGetAttribute = lambda *asked: asked in tables
    monkeypatch.setattr(type(registry.backend("cuda")), "count", lambda _: count)
    monkeypatch.setattr(cuda, "short_ways", {})
    for name in ("SMALL", "DIRECT"):
        monkeypatch.setattr(staging, name, 1000)

    cuda._prepare()

    assert cuda.short_ways == {driver.ndarray: cuda.fetch}
    assert staging.SMALL == staging.DIRECT == (0 if late else 1000)
    there = on_device(driver, np.arange(3.0))
    assert (cuda.fetch(there) is None) == late


@pytest.mark.cuda
def test_on_cuda_each_download_is_seen(cuda):
    x = xdev.arange(5, device=cuda)
    assert xdev.to_numpy(x).tolist() == [0, 1, 2, 3, 4]
    assert type(x) in copies.short_ways
    with xdev.transfer_guard("allow") as counts:
        xdev.to_numpy(x)
        xdev.to_numpy(x[::2])
    assert (counts.copies, counts.nbytes) == (2, 64)
    with xdev.transfer_guard("disallow"), pytest.raises(xdev.XdevError, match="40 B"):
        xdev.to_numpy(x)
    with xdev.Stream(cuda) as stream:
        y = x * 2
        assert xdev.to_numpy(y).tolist() == [0, 2, 4, 6, 8]
    stream.synchronize()
    x[...] = 3
    assert xdev.to_numpy(x).tolist() == [3] * 5
    xdev.memory.free(y)
    with pytest.raises(xdev.UseAfterFreeError):
        xdev.to_numpy(y)
