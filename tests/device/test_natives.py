"""Devices in other libraries' terms."""

import pytest
from running import pickled

import xdev

LIBRARIES = ["array_api_strict", "dask", "jax", "torch"]


def test_a_library_is_kept_and_hardware_compared():
    plain, strict = xdev.Device("cpu"), xdev.Device("cpu", "array_api_strict")

    assert plain == strict == "cpu"
    assert hash(plain) == hash(strict)
    assert str(strict) == "cpu"
    assert repr(strict) == "Device('cpu', 'array_api_strict')"
    assert (plain.library, strict.library) == (None, "array_api_strict")
    assert pickled(strict).library == strict.library
    assert xdev.Device(strict).library == strict.library
    assert xdev.Device(str(strict)).library is None


def test_every_device_of_a_library_is_its_objects_and_back():
    for name in ("array_api_strict", "torch", "jax"):
        pytest.importorskip(name)
        devices = [xdev.Device(each, name) for each in ("cpu", "fake", "fake:1")]
        for device in [each for each in devices if each.available]:
            assert xdev.Device(device.native) == device
            assert xdev.Device(device.native).library == name
            assert xdev.Device(device.native).native == device.native


def test_unknown_libraries_are_refused_with_the_known_ones():
    with pytest.raises(xdev.ConfigurationError, match=r"'sparse'.*'dask'.*'torch'"):
        xdev.Device("cpu", "sparse")
    with pytest.raises(xdev.ConfigurationError, match="no device is called 'cpu:1'"):
        xdev.Device("cpu:1")


WITHOUT_LIBRARIES = """
import sys
import numpy as np, xdev
LIBRARIES = ["array_api_strict", "dask", "jax", "torch"]
sys.modules |= dict.fromkeys([*LIBRARIES, "dask.array"])  # none can be imported
for name in LIBRARIES:
    device = xdev.Device("cpu", name)
    assert not device.available
    for use in (
        device.require,
        lambda: xdev.zeros(3, device=device),
        lambda: xdev.asarray([1], device=device),
        lambda: xdev.to_device(np.ones(3), device),
        lambda: xdev.namespace(device),
        lambda: xdev.set_default_device(device),
    ):
        try:
            use()
        except xdev.DeviceUnavailableError as error:
            text = str(error)
            assert "cpu cannot be used: " + name in text, text
            assert "cannot be imported" in text, text
            assert text.count("install") == 1, text
        else:
            raise AssertionError(name)
"""


def test_a_library_that_is_not_installed_is_named_with_what_installs_it(printed):
    assert printed(WITHOUT_LIBRARIES) == ""


def test_torch_devices_without_a_number_are_its_current_one():
    torch = pytest.importorskip("torch")

    assert xdev.Device(torch.device("cuda")).index == 0
    assert xdev.Device(torch.device("cuda:3")).index == 3
