import numpy as np
import pytest

import xdev


def test_empty_pinned_takes_what_numpy_takes():
    for shape in (3, (3,), (2, 0), [2, 3], (), np.int64(4)):
        made = xdev.empty_pinned(shape, "int16")
        expected = np.empty(shape, "int16")
        assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
    assert xdev.empty_pinned(2).dtype == np.float64


@pytest.mark.parametrize(
    ("shape", "dtype", "error", "text"),
    [
        (-1, float, ValueError, "negative extent"),
        ((1 << 40, 1 << 40), float, ValueError, "larger than memory"),
        (3, object, TypeError, "cannot hold Python objects"),
        (3, [("a", "O")], TypeError, "cannot hold Python objects"),
    ],
)
def test_what_cannot_be_is_refused(shape, dtype, error, text):
    with pytest.raises(error, match=text):
        xdev.empty_pinned(shape, dtype)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        np.asfortranarray,
        lambda x: x[::2, ::-1],
        lambda x: x[:0],
        lambda x: x[1, 1],
        lambda x: x.astype(">f4"),
        lambda x: np.broadcast_to(x[0], x.shape),
        lambda x: x.astype("i4,f4"),
    ],
    ids=["C", "F", "strided", "empty", "0-d", "swapped", "broadcast", "structured"],
)
def test_pin_keeps_values_dtype_and_order(view):
    draw = np.random.default_rng(0)
    x = np.asarray(view(draw.standard_normal((5, 6)).astype("float32")))

    pinned = xdev.pin(x)

    assert pinned is not x
    assert pinned.flags.writeable
    assert pinned.dtype == x.dtype
    assert pinned.flags.fnc == x.flags.fnc
    np.testing.assert_array_equal(pinned, x)


def test_only_host_arrays_are_pinned():
    with pytest.raises(TypeError, match=r"not list: .*xdev.pin\(xdev.to_numpy\(x\)\)"):
        xdev.pin([1, 2])
    with pytest.raises(TypeError, match="mask of a MaskedArray would be lost"):
        xdev.pin(np.ma.masked_less(np.arange(4), 2))
    with pytest.raises(TypeError, match="not FakeArray"):
        xdev.pin(xdev.zeros(3, device="fake"))
    assert not xdev.is_pinned(np.zeros(3))
    assert not xdev.is_pinned([1, 2])


@pytest.mark.cuda
def test_what_is_pinned_stays_itself_and_its_views_are(cuda):
    x = xdev.empty_pinned((40, 50), "float32")

    assert xdev.is_pinned(x)
    assert xdev.is_pinned(x[3:, ::2])
    assert xdev.is_pinned(x.T)
    assert xdev.pin(x) is x
    assert not xdev.is_pinned(xdev.zeros(3, device=cuda))
    assert xdev.is_pinned(xdev.pin(np.zeros(1 << 20)))
    assert not xdev.is_pinned(np.zeros(1 << 20))
