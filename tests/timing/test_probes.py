"""What is asked of devices: caches, held streams, clocks."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import xdev
from xdev import _optional
from xdev.timing import environment


def test_the_host_s_largest_cache_is_the_one_to_overwrite(tmp_path, monkeypatch):
    for index, text in enumerate(("32K", "1024K\n", "48M", "odd", "")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(text)
    monkeypatch.setattr(environment, "CACHES", tmp_path)
    assert environment.host_cache() == 48 << 20


def test_a_system_that_tells_no_size_has_a_usual_one(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "CACHES", tmp_path)
    assert environment.host_cache() == environment.USUAL_CACHE


def test_the_host_is_overwritten_by_twice_that(tmp_path, monkeypatch):
    (tmp_path / "index0").mkdir()
    (tmp_path / "index0" / "size").write_text("1M")
    monkeypatch.setattr(environment, "CACHES", tmp_path)
    probe = environment.probe(xdev.Device("cpu"))
    probe.flush()
    assert probe._buffer.nbytes == 2 << 20
    assert probe._buffer.all()  # each byte was written


def test_of_the_host_no_more_is_known():
    probe = environment.probe(xdev.Device("cpu"))
    assert probe.hold(1.0) is None
    assert probe.clock_rate() is None
    assert probe.slowed_by() == ()


class FakeCupy:
    """As much of CuPy as the probe uses: one device, whose kernels take their time."""

    def __init__(self):
        self.calls = []
        self.ghz = 1.5
        self.cuda = SimpleNamespace(
            Device=nullcontext,
            runtime=SimpleNamespace(
                getDeviceProperties=lambda _: {"l2CacheSize": 50 << 20}
            ),
        )

    def zeros(self, shape, dtype):
        return np.zeros(shape, dtype)

    def empty(self, size, dtype):
        def memset_async(value, nbytes):
            self.calls.append(("memset", value, nbytes))

        data = SimpleNamespace(memset_async=memset_async)
        return SimpleNamespace(data=data, nbytes=size * np.dtype(dtype).itemsize)

    def launch(self, grid, block, arguments):
        nanoseconds, spent = arguments
        assert (grid, block) == ((1,), (1,))
        assert nanoseconds.dtype == np.uint64  # as the kernel's parameter is
        spent[:] = nanoseconds, int(float(nanoseconds) * self.ghz)
        self.calls.append(("hold", int(nanoseconds)))


@pytest.fixture
def fake(monkeypatch):
    """A probe of a CUDA device that is not there."""
    cupy = FakeCupy()
    monkeypatch.setattr(_optional, "cupy", lambda: cupy)
    cupy.RawKernel = lambda *_: cupy.launch
    monkeypatch.setattr(environment, "record", lambda device: f"event of {device}")
    return environment.CudaProbe(xdev.Device("cuda:0")), cupy


def test_a_stream_is_held_by_nanoseconds(fake):
    probe, cupy = fake
    assert probe.hold(2.5e-3) == "event of cuda:0"
    assert cupy.calls[-1] == ("hold", 2_500_000)


def test_the_rate_is_cycles_by_time(fake):
    probe, cupy = fake
    cupy.ghz = 1.98
    assert probe.clock_rate() == pytest.approx(1.98e9, rel=1e-4)


def test_twice_the_l2_cache_is_overwritten(fake):
    probe, cupy = fake
    probe.flush()
    probe.flush()
    assert cupy.calls[-2:] == [("memset", 1, 100 << 20)] * 2


@pytest.mark.parametrize("given", ["text", "members"])
def test_reasons_are_those_that_slow_a_busy_device(fake, monkeypatch, given):
    names = ("gpu_idle", "sw_power_cap", "applications_clocks_setting")
    reasons = [
        SimpleNamespace(value=name) if given == "members" else name for name in names
    ]
    system = SimpleNamespace(current_clock_event_reasons=reasons)
    device = SimpleNamespace(to_system_device=lambda: system)
    core = SimpleNamespace(Device=lambda _: device)
    monkeypatch.setattr(_optional, "cuda_core", lambda: core)
    assert fake[0].slowed_by() == ("sw_power_cap",)


def test_a_driver_that_tells_nothing_is_no_error(fake, monkeypatch):
    def refuse():
        raise OSError

    monkeypatch.setattr(_optional, "cuda_core", refuse)
    assert fake[0].slowed_by() == ()


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_100"])
def test_the_kernel_compiles_and_reads_both_clocks(arch):
    core = _optional.cuda_core()
    options = core.ProgramOptions(arch=arch)
    code = core.Program(environment.HOLD, "c++", options).compile("cubin").code
    assert b"xdev_hold" in code
