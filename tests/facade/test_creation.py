"""Creation: where arrays are made, of which type and values; what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp
from running import host, there

import xdev

SHAPES = [3, (), (0,), (2, 3), (2, 0, 3), [2, 2], (np.int64(2), 3)]
KINDS = ["bool", "int8", "uint64", "float32", "float64", "complex64", "complex128"]

#: Python's numbers, and NumPy's scalars and 0-d arrays, which fill arrays anywhere.
FILLS = [True, 3, 2.5, 1 + 2j, -0.0, complex(-0.0, 0.0)]
FILLS += [np.float32(1.5), np.asarray(1.5), np.True_]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_filled_arrays_agree_with_numpy(device, shape, kind):
    for name in ("zeros", "ones"):
        made = getattr(xdev, name)(shape, dtype=kind, device=device)
        wanted = getattr(np, name)(shape, dtype=kind)
        np.testing.assert_array_equal(host(made), wanted)
        assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype)
    made = xdev.full(shape, 1, dtype=kind, device=device)
    np.testing.assert_array_equal(host(made), np.full(shape, 1, dtype=kind))
    assert xdev.empty(shape, dtype=kind, device=device).shape == np.empty(shape).shape


REFUSED = [
    *(("empty", [x], {}, "not a shape") for x in (2.5, (2, 2.5), "3", None, [[1]])),
    *(("asarray", [x], {}, "numbers") for x in (None, 2**70, {}, [None])),
    ("asarray", [np.ones(3)], {"copy": False, "dtype": "int8"}, "[Uu]nable|copy=False"),
    ("asarray", [np.ones(3)], {"copy": False, "device": "fake"}, "copy=False"),
    ("from_dlpack", [np.ones(3)], {"copy": False, "device": "fake"}, "copy=False"),
    ("from_dlpack", [[1]], {}, "__dlpack__"),
]


@pytest.mark.parametrize(("name", "args", "kw", "text"), REFUSED)
def test_what_makes_no_array_is_refused(name, args, kw, text):
    error = TypeError
    if kw:
        error = BufferError if name == "from_dlpack" else ValueError
    with xdev.use_device("cpu"), pytest.raises(error, match=text):
        getattr(xdev, name)(*args, **kw)


@given(
    hnp.arrays(
        hnp.floating_dtypes(sizes=(32, 64)) | hnp.integer_dtypes(endianness="="),
        hnp.array_shapes(min_dims=0, min_side=0),
    )
)
def test_asarray_of_nested_lists_agrees_with_numpy(x):
    made = xdev.asarray(x.tolist(), dtype=x.dtype, device="cpu")

    np.testing.assert_array_equal(made, x.reshape(made.shape))


@pytest.mark.parametrize("order", ["C", "F"])
def test_asarray_keeps_what_needs_no_change_and_the_order(device, order):
    x = xdev.ones(3, device=device)
    for again in (xdev.asarray(x), xdev.asarray(x, copy=False)):
        assert again is x
    assert xdev.asarray(x, device=device, dtype=x.dtype) is x

    x = np.asarray(np.arange(6.0).reshape(2, 3), order=order)
    own = xdev.namespace(device).asarray  # of the library of arrays there
    for made in (xdev.asarray(x, device=device), own(x), own(x, dtype="float64")):
        assert made.strides == x.strides
        np.testing.assert_array_equal(xdev.to_numpy(made), x)
    made = xdev.asarray(x, device=device, dtype=xdev.float32)
    assert made.strides == x.astype("float32").strides


def test_large_host_arrays_are_counted_by_the_pool():
    shape, before = (64, 1024), xdev.memory.allocated("cpu", "host")
    x = np.ones(shape)
    for make in (
        lambda: xdev.empty(shape, device="cpu"),
        lambda: xdev.zeros(shape, device="cpu"),
        lambda: xdev.ones_like(x),
        lambda: xdev.eye(*shape, device="cpu"),
        lambda: xdev.arange(64 * 1024, device="cpu"),
        lambda: xdev.linspace(0, 1, 64 * 1024, device="cpu"),
        lambda: xdev.asarray(x, copy=True),
        lambda: xdev.asarray(x, dtype=xdev.complex64),
        lambda: xdev.asarray(x.tolist(), device="cpu"),
        lambda: xdev.from_dlpack(x, copy=True),
        lambda: xdev.tril(x),
        lambda: xdev.triu(x, k=1),
        lambda: xdev.meshgrid(x[0], x[:, 0])[0],
    ):
        made = make()
        assert xdev.memory.allocated("cpu", "host") >= before + made.nbytes
        del made
    assert xdev.memory.allocated("cpu", "host") == before


def test_likes_follow_their_array(device):
    (x,) = there(device, np.asfortranarray(np.ones((2, 3), dtype=np.float32)))

    for name in ("empty_like", "zeros_like", "ones_like"):
        like = getattr(xdev, name)(x)
        assert (like.shape, like.dtype) == (x.shape, x.dtype)
        assert xdev.device_of(like) == device
    assert xdev.zeros_like(x, dtype=xdev.int8).dtype == xdev.int8
    np.testing.assert_array_equal(host(xdev.full_like(x, 2)), np.full((2, 3), 2.0))


def test_default_device_is_where_arrays_are_made():
    host = np.ones(3)
    with xdev.use_device("fake:1"):
        made = [xdev.zeros(3), xdev.ones(3), xdev.empty(3), xdev.arange(3)]
        for x in (*made, xdev.asarray([1, 2])):
            assert xdev.device_of(x) == "fake:1"
        for x in (
            xdev.asarray(host),
            xdev.ones_like(host),
            xdev.zeros(3, device="cpu"),
        ):
            assert xdev.device_of(x) == "cpu"
        assert xdev.__array_namespace_info__().default_device() == "fake:1"


def test_from_dlpack_refuses_numbers_whatever_was_called_before():
    for scalar in (np.float64(1), np.int16(1), np.True_):
        xdev.zeros_like(scalar)
        for copy in (None, True):
            with pytest.raises(TypeError, match=r"no __dlpack__: use xdev\.asarray"):
                xdev.from_dlpack(scalar, copy=copy)


@pytest.mark.parametrize("nest", [list, tuple, lambda x: [[each] for each in x]])
def test_a_list_of_arrays_on_a_device_says_how_it_becomes_one(nest):
    parts = [xdev.asarray(value, device="fake:1") for value in (1.0, 2.0)]

    with (
        xdev.transfer_guard("disallow"),
        pytest.raises(TypeError, match=r"fake:1.*xdev\.stack.*device='fake:1'"),
    ):
        xdev.asarray(nest(parts), device="cpu")

    joined = xdev.stack(parts)
    made = xdev.asarray(nest(parts), device="fake:1")
    assert xdev.device_of(joined) == xdev.device_of(made) == "fake:1"
    assert xdev.to_numpy(joined).tolist() == [1, 2]
    assert xdev.to_numpy(made).ravel().tolist() == [1, 2]


@pytest.mark.parametrize("odd", [[1, {}], [object()], ["a", 1]])
def test_a_list_of_no_arrays_is_not_told_of_devices(odd):
    with pytest.raises((TypeError, ValueError)) as caught:
        xdev.asarray(odd, dtype="float64", device="cpu")

    assert "stack" not in str(caught.value)


@pytest.mark.parametrize("value", FILLS)
def test_full_takes_the_type_and_sign_of_its_value(device, value):
    wanted = np.full((2,), value)
    there = xdev.asarray(np.asarray(value), device=device)  # 0-d

    for made in (
        xdev.full((2,), there, device=device),
        xdev.full((2,), value, device=device),
        xdev.full_like(xdev.asarray(wanted, device=device), value),
        xdev.asarray([value, value], device=device),
    ):
        assert made.dtype == wanted.dtype
        assert host(made).tobytes() == wanted.tobytes()


def test_a_fill_value_of_another_device_does_not_come_unasked():
    value = xdev.asarray(7.0, device="fake:1")
    like, there = np.ones(2), xdev.ones(2, device="fake")
    way = r".*xdev\.to_device\(fill_value, '{0}'\)"
    other = rf"fill_value \(.*FakeArray\) is on fake:1, .* on {{0}}{way}"
    for make, target in (
        (lambda: xdev.full(2, value, device="cpu"), "cpu"),
        (lambda: xdev.full(2, value, dtype=xdev.float32, device="cpu"), "cpu"),
        (lambda: xdev.full(2, value, device="fake"), "fake:0"),
        (lambda: xdev.full_like(there, value, device="cpu"), "cpu"),
    ):
        with pytest.raises(xdev.DeviceMismatchError, match=other.format(target)):
            make()
    other = rf"x \(.*\) is on {{0}}, fill_value \(.*\) is on fake:1{way}"
    for x, target in ((like, "cpu"), (there, "fake:0")):
        with pytest.raises(xdev.DeviceMismatchError, match=other.format(target)):
            xdev.full_like(x, value)
    with xdev.use_device("fake:1"):
        assert host(xdev.full(2, value)).tolist() == [7, 7]
        assert host(xdev.full_like(like, value, device="fake:1")).tolist() == [7, 7]


def test_a_fill_value_that_does_not_fit_is_refused(device):
    with pytest.raises(OverflowError):
        xdev.full(3, 300, dtype=xdev.int8, device=device)
    with pytest.raises(OverflowError, match=r"integer of 71 bits.*give dtype="):
        xdev.full(3, 2**70, device=device)
    large = xdev.full(3, 2**70, dtype=xdev.float64, device=device)
    assert host(large).tolist() == [2.0**70] * 3
