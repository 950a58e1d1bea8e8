"""``__array_namespace_info__``: true of each device, which is not started for it."""

import numpy as np
import pytest

import xdev
from xdev.device import registry

KINDS = {
    "bool": {"bool"},
    "signed integer": {"int8", "int16", "int32", "int64"},
    "unsigned integer": {"uint8", "uint16", "uint32", "uint64"},
    "real floating": {"float32", "float64"},
    "complex floating": {"complex64", "complex128"},
}


def test_every_data_type_it_names_makes_arrays_of_it(device):
    info = xdev.__array_namespace_info__()
    for kind, names in KINDS.items():
        found = info.dtypes(device=device, kind=kind)
        assert set(found) == names
        for dtype in found.values():
            assert xdev.zeros(1, dtype=dtype, device=device).dtype == dtype
    assert set(info.dtypes(device=device)) == set().union(*KINDS.values())


def test_its_defaults_are_what_arrays_have_where_none_is_given(device):
    found = xdev.__array_namespace_info__().default_dtypes(device=device)

    x = xdev.asarray([3, 1, 2], device=device)
    assert found["integral"] == x.dtype
    assert found["indexing"] == xdev.argsort(x).dtype
    assert found["real floating"] == xdev.zeros(1, device=device).dtype
    assert found["complex floating"] == xdev.asarray([1j], device=device).dtype


def test_its_capabilities_are_true(device):
    with xdev.use_device(device):
        found = xdev.__array_namespace_info__().capabilities()

    x = xdev.asarray([0, 3, 0, 4], device=device)
    assert found["boolean indexing"]
    assert xdev.to_numpy(x[x > 0]).tolist() == [3, 4]
    assert found["data-dependent shapes"]
    assert xdev.nonzero(x)[0].shape == (2,)
    most = found["max dimensions"]
    assert xdev.zeros((1,) * most, device=device).ndim == most
    with pytest.raises((ValueError, TypeError)):
        xdev.zeros((1,) * (most + 1), device=device)


def test_its_devices_are_as_the_arrays_name_theirs(device):
    info = xdev.__array_namespace_info__()
    x = xdev.zeros(1, device=device)

    with xdev.use_device(device):
        assert x.device == info.default_device()
        assert xdev.zeros(1).device == x.device
    listed = [each for each in info.devices() if each == x.device]
    assert len(listed) == (device in xdev.devices())
    for each in listed:
        assert xdev.device_of(xdev.zeros(1, device=each)) == device
        assert info.dtypes(device=each) == info.dtypes(device=device)


@pytest.fixture
def two_gpus(monkeypatch):
    """CUDA as a machine with two GPUs has it, not started."""
    pytest.importorskip("cupy")
    cuda = registry.backend("cuda")
    monkeypatch.setattr(cuda, "count", lambda: 2)
    monkeypatch.setattr(cuda, "current", lambda: 0)
    missing = "this process sees 2 CUDA device(s)"
    monkeypatch.setattr(cuda, "reason", lambda index: missing if index > 1 else None)
    monkeypatch.setattr(registry, "_started", {"cpu"})
    return cuda


def test_cuda_is_described_and_not_started(two_gpus):
    info = xdev.__array_namespace_info__()

    assert info.devices()[:3] == ("cpu", two_gpus.native(0), two_gpus.native(1))
    for name in ("cuda", "cuda:1", two_gpus.native(1)):
        assert info.dtypes(device=name, kind="bool") == {"bool": np.dtype(bool)}
        assert info.default_dtypes(device=name)["integral"] == xdev.int64
    with pytest.raises(xdev.DeviceUnavailableError, match="sees 2"):
        info.dtypes(device="cuda:2")
    assert "cuda" not in registry._started


def test_a_default_of_cuda_is_told_and_not_started(two_gpus, monkeypatch):
    from xdev.device import choice

    monkeypatch.setattr(choice, "from_environment", [])
    monkeypatch.setattr(choice._config, "device", lambda: "auto")
    info = xdev.__array_namespace_info__()

    assert info.default_device() == two_gpus.native(0)
    assert info.capabilities()["max dimensions"] == 64
    assert info.dtypes(kind="bool") == {"bool": np.dtype(bool)}
    assert "cuda" not in registry._started


UNSTARTED = """
import ctypes
import xdev
from xdev.device import registry
info = xdev.__array_namespace_info__()
info.default_device(), info.capabilities(), info.devices(), info.default_dtypes()
info.dtypes(device="cuda", kind="bool")
flags, active = ctypes.c_uint(), ctypes.c_int()
driver = ctypes.CDLL("libcuda.so.1")
assert not driver.cuDevicePrimaryCtxGetState(
    0, ctypes.byref(flags), ctypes.byref(active)
)
assert not active.value, "a context was made"
assert "cuda" not in registry._started
"""


@pytest.mark.cuda
def test_no_context_is_made_on_a_gpu(cuda, python):
    assert cuda.type == "cuda"
    assert not python("-c", UNSTARTED).returncode
