import numpy as np
import pytest
from running import pickled

import xdev
from xdev import ConfigurationError, Device, DeviceUnavailableError


@pytest.mark.parametrize("name", ["cpu", "cuda:0", "cuda:1", "fake:0", "fake:1"])
def test_a_device_is_its_name(name):
    device = Device(name)

    assert str(device) == name
    assert Device(str(device)) == device == name
    assert hash(device) == hash(Device(name)) == hash(name)
    assert pickled(device) == device
    assert {device: 1}[Device(name)] == 1


def test_a_bare_type_means_one_index():
    assert Device("fake") == "fake:0"
    assert Device("cpu") == Device("cpu:0") == "cpu"
    assert Device("cuda").type == "cuda"
    names = ["cpu", "cuda:0", "cuda:1", "fake:0", "fake:1"]
    assert len({Device(name) for name in names}) == len(names)
    assert Device("cpu") not in ("gpu", 3)


def test_a_device_is_compared_at_the_very_end_of_a_process(printed):
    program = """
import builtins, xdev

class Late:
    def __init__(self):
        self.device = xdev.Device("cpu")
    def __del__(self):
        print(self.device == None, self.device == "cpu")

builtins.kept_to_the_end = Late()
"""
    assert printed(program) == "False True\n"


def test_a_device_cannot_be_changed():
    with pytest.raises(AttributeError, match="make another"):
        Device("cpu").index = 1


@pytest.mark.parametrize(
    "name",
    [
        *("gpu", "", "cuda:", "cuda:-1", "cuda:x", "cpu:1", "CPU", "cuda 0"),
        *("cuda:1:2", ":1", "1", "cuda:+1", "cuda:1 ", "cuda:1_0", "cuda:\u00b2"),
        "cuda:1234567890",
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(name):
    with pytest.raises(ConfigurationError, match=r'"cpu", .*"cuda", "cuda:N"'):
        Device(name)


@pytest.mark.parametrize(
    "thing",
    [
        *(None, 3, 1.5, object(), ["cpu"], np.ones(2)),
        *(np.arange(10**6), [np.arange(10**6)], {"a": np.ones(9)}),
    ],
)
def test_what_is_no_device_is_refused_in_short(thing):
    with pytest.raises(ConfigurationError, match="is not a device") as caught:
        Device(thing)

    assert len(str(caught.value)) < 250
    told = repr(thing) if thing is None or isinstance(thing, float | int) else ""
    assert (told or type(thing).__name__) in str(caught.value)


def test_an_unavailable_device_says_why_and_an_available_one_nothing():
    for name in ("cpu", "cuda"):
        device = Device(name)
        assert device.available == (device.reason is None)
    assert Device("cpu").require() is not None
    there = r"fake:7 cannot be used: .*'fake:1'"
    with pytest.raises(DeviceUnavailableError, match=there):
        Device("fake:7").require()


@pytest.mark.cuda
def test_cuda_is_cupys_current_device(cuda):
    import cupy

    assert Device("cuda") == cuda
    assert cuda == cupy.cuda.Device()
    assert xdev.device_of(cupy.zeros(3)) == cuda
    assert Device("cuda:99").reason is not None
