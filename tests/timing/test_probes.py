"""What is asked of devices: caches, held streams, clocks."""

from types import SimpleNamespace

import pytest

import xdev
from xdev import _optional
from xdev.timing import environment


def test_the_host_s_largest_cache_is_overwritten_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "CACHES", tmp_path)
    assert environment.host_cache() == environment.USUAL_CACHE  # no size is told
    for index, text in enumerate(("32K", "1024K\n", "2M", "odd", "")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(text)
    probe = environment.probe(xdev.Device("cpu"))
    probe.flush()
    assert probe._buffer.nbytes == 4 << 20
    assert probe._buffer.all()  # each byte was written


@pytest.fixture
def reasons(monkeypatch):
    """Return what a probe tells of a device for which NVML is asked by a call."""

    def told(ask):
        device = SimpleNamespace(to_system_device=ask)
        core = SimpleNamespace(Device=lambda _: device)
        monkeypatch.setattr(_optional, "cuda_core", lambda: core)
        probe = environment.CudaProbe.__new__(environment.CudaProbe)
        probe.device = xdev.Device("cuda:0")
        return probe.slowed_by()

    return told


@pytest.mark.parametrize("given", ["text", "members"])
def test_reasons_are_those_that_slow_a_busy_device(reasons, given):
    names = ("gpu_idle", "sw_power_cap", "applications_clocks_setting")
    events = [
        SimpleNamespace(value=name) if given == "members" else name for name in names
    ]
    system = SimpleNamespace(current_clock_event_reasons=events)
    assert reasons(lambda: system) == ("sw_power_cap",)


def test_a_driver_that_tells_nothing_is_no_error(reasons):
    def refuse():
        raise OSError

    assert reasons(refuse) == ()


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_100"])
def test_the_kernel_compiles_and_reads_both_clocks(arch):
    core = _optional.cuda_core()
    options = core.ProgramOptions(arch=arch)
    code = core.Program(environment.HOLD, "c++", options).compile("cubin").code
    assert b"xdev_hold" in code
