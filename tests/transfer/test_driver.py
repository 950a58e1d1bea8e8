"""The driver's functions and events, on a library of C functions that is no driver."""

import ctypes
from types import SimpleNamespace

import pytest

from xdev.errors import XdevError
from xdev.transfer.staging import UNTIMED, Driver


class Library:
    """Two devices; the handles of contexts and events are small numbers."""

    def __init__(self):
        self.calls, self.status = [], 0
        for name, count in (
            ("cuCtxSetCurrent", 1),
            ("cuMemcpyHtoDAsync_v2", 4),
            ("cuMemcpyDtoHAsync_v2", 4),
            ("cuEventRecord", 2),
            ("cuEventSynchronize", 1),
        ):
            kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * count)
            setattr(self, name, kind(self.noted(name)))

    def noted(self, name):
        def call(*words):
            self.calls.append((name, words))
            return self.status

        return call

    def cuDeviceGet(self, out, index):  # noqa: N802 - CUDA's
        out._obj.value = index
        return self.status

    def cuDevicePrimaryCtxRetain(self, out, device):  # noqa: N802
        self.calls.append(("retain", device.value))
        out._obj.value = 70 + device.value
        return self.status

    def cuEventCreate(self, out, flags):  # noqa: N802
        assert flags == UNTIMED
        self.calls.append(("create",))
        out._obj.value = len(self.calls)
        return self.status

    def cuGetErrorName(self, status, out):  # noqa: N802
        out._obj.value = {2: b"CUDA_ERROR_OUT_OF_MEMORY"}.get(status)

    def cuGetErrorString(self, status, out):  # noqa: N802
        out._obj.value = {2: b"out of memory"}.get(status)


@pytest.fixture
def library():
    return Library()


def test_functions_are_where_they_say(library):
    driver = Driver(library)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)

    for name, address in (
        ("cuMemcpyHtoDAsync_v2", driver.up),
        ("cuMemcpyDtoHAsync_v2", driver.down),
    ):
        kind(address)(1, 2, 3, 4)
        assert library.calls[-1] == (name, (1, 2, 3, 4))
    found = SimpleNamespace(enter=driver.enter, record=driver.record, wait=driver.wait)
    assert len({*vars(found).values(), driver.up, driver.down}) == 5


def test_a_context_is_retained_once(library):
    driver = Driver(library)

    assert [driver.context(1), driver.context(0), driver.context(1)] == [71, 70, 71]

    assert library.calls == [("retain", 1), ("retain", 0)]


def test_events_are_made_in_their_context_and_used_again(library):
    driver = Driver(library)

    first = driver.take_events(70, 2)
    other = driver.take_events(71, 1)
    assert library.calls[0] == ("cuCtxSetCurrent", (70,))
    assert library.calls[-2] == ("cuCtxSetCurrent", (71,))
    made = len(library.calls)
    driver.give_events(70, first)

    assert sorted(driver.take_events(70, 2)) == sorted(first)
    assert len(library.calls) == made
    assert len({*first, *other}) == 3


def test_errors_are_explained(library):
    driver = Driver(library)
    assert driver.explain(2) == "CUDA_ERROR_OUT_OF_MEMORY: out of memory"
    assert driver.explain(3) == "error 3 of CUDA's driver"
    library.status = 2
    with pytest.raises(XdevError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        driver.context(0)
    with pytest.raises(XdevError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        driver.take_events(70, 1)
