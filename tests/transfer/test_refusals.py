"""What cannot be moved is refused with the way out, and nothing is changed."""

import ml_dtypes
import numpy as np
import pytest

import xdev
from xdev import ConfigurationError

LARGE = np.arange(10**6)


@pytest.mark.parametrize("obj", [LARGE, [LARGE], {"a": LARGE}])
@pytest.mark.parametrize("name", ["cpu", xdev.Device("fake")])
def test_arguments_the_wrong_way_round_are_told_so(obj, name):
    with pytest.raises(
        ConfigurationError, match=r"wrong way round.*xdev\.adapt\(device, obj\)"
    ) as caught:
        xdev.adapt(obj, name)
    assert len(str(caught.value)) < 200
    with pytest.raises(ConfigurationError, match=r"xdev\.to_device\(x, device\)"):
        xdev.to_device(name, obj)


def test_an_unknown_device_is_not_taken_for_a_wrong_order():
    with pytest.raises(ConfigurationError, match="no device is called 'gpu'"):
        xdev.adapt("gpu", "cpu")
    with pytest.raises(ConfigurationError, match="is not a device"):
        xdev.adapt(LARGE, LARGE)
    with pytest.raises(ConfigurationError, match="no device is called 'gpu'"):
        xdev.memory.set_limit("cpu", "gpu")


DEFERRED = {
    "x.detach()": lambda torch: torch.ones(3, requires_grad=True),
    "x.resolve_conj()": lambda torch: torch.full((3,), 1 + 2j).conj(),
    "x.resolve_neg()": lambda torch: torch.full((3,), 1 + 2j).conj().imag,
}


@pytest.mark.parametrize("way", DEFERRED)
def test_tensors_that_are_more_than_their_memory_are_refused(device, way):
    torch = pytest.importorskip("torch")
    x = DEFERRED[way](torch)
    for move in (
        lambda: xdev.to_device(x, device),
        lambda: xdev.to_numpy(x, out=np.empty(3, complex)),
        lambda: xdev.adapt(device, [x, x]),
    ):
        with pytest.raises(ValueError, match="cannot be moved: pass") as caught:
            move()
        assert str(caught.value).endswith(way)

    found = xdev.to_numpy(xdev.to_device(eval(way), device))  # noqa: S307 - ours

    np.testing.assert_array_equal(found, np.array(x.tolist(), found.dtype))
    assert xdev.to_device(x, xdev.Device("cpu", "torch")) is x


def test_pinned_memory_of_other_libraries_dtypes():
    strict = pytest.importorskip("array_api_strict")

    assert xdev.empty_pinned(2, strict.float32).dtype == np.float32
    assert xdev.empty_pinned(2, xdev.int8).dtype == np.int8
    torch = pytest.importorskip("torch")
    assert xdev.empty_pinned((2, 3), torch.float32).dtype == np.float32
    assert xdev.empty_pinned(2, torch.bool).dtype == np.bool


@pytest.mark.parametrize("shape", ["a", None, 2.5, (2, "a"), [[1]]])
def test_what_is_no_shape_is_refused(shape):
    with pytest.raises(TypeError, match="not a shape: give a whole number"):
        xdev.empty_pinned(shape)


@pytest.mark.parametrize("dtype", ["nonsense", object(), 3])
def test_what_is_no_dtype_is_refused(dtype):
    with pytest.raises(TypeError, match=r"have no dtype .*: use one that it has"):
        xdev.empty_pinned(2, dtype)


@pytest.mark.parametrize(
    "view", [slice(None), slice(1, None, 3), slice(None, None, -1)]
)
@pytest.mark.parametrize("size", [3, 100_000, 2_000_000])
def test_bfloat16_goes_there_and_back(device, view, size):
    values = (np.arange(size) % 251).astype(ml_dtypes.bfloat16)[view]

    there = xdev.to_device(values, device, copy=True)
    parts = [values[:4], values[:5], np.ones(2)]
    some = xdev.adapt("cpu", xdev.adapt(device, parts))

    assert xdev.device_of(there) == device
    assert there.dtype == values.dtype
    back = xdev.to_numpy(there)
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back.view("u2"), values.view("u2"))
    for moved, given in zip(some, parts, strict=True):
        assert moved.dtype == given.dtype
        np.testing.assert_array_equal(moved, given)


def test_other_dtypes_of_ml_dtypes_are_refused():
    with pytest.raises(TypeError, match=r"no arrays of dtype float8.*: convert it"):
        xdev.to_device(np.ones(3, ml_dtypes.float8_e4m3fn), "fake")


class OnADevice:
    """Something that says where it is, and is no array."""

    def __init__(self, x):
        self.device = x.device


def test_what_is_on_a_device_may_still_be_no_array(device):
    x = xdev.ones(3, device=device)
    for thing in (x, OnADevice(x), x):
        assert xdev.device_of(thing) == xdev.device_of(x) == device
    with pytest.raises(TypeError, match="x is not an array but"):
        xdev.to_device(OnADevice(x), "cpu")
    assert xdev.to_numpy(x).tolist() == [1, 1, 1]
