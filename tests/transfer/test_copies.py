import ctypes
from contextlib import nullcontext

import ml_dtypes
import numpy as np
import pytest
from running import LAYOUTS, locked, normal

import xdev

DTYPES = ["bool", "int8", "uint16", "int64", "float16", "float32", "float64"]
DTYPES += ["complex64", "complex128"]
KIB = 1 << 10


def values(shape=(4, 6), dtype="float32"):
    return normal(shape, dtype)


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [(dtype, (4, 6)) for dtype in DTYPES]
    # Around what is copied at once, in packs, by the driver, in pieces.
    + [("int8", 64 * KIB + more) for more in (-1, 0, 1)]
    + [("float32", 256 * KIB + more) for more in (0, 1)]
    + [("float32", 2300 * KIB)],
)
def test_there_and_back(device, dtype, shape):
    x = values(shape, dtype)

    there = xdev.to_device(x, device)
    back = xdev.to_numpy(there)

    assert xdev.device_of(there) == device
    assert back.dtype == x.dtype
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize("view", LAYOUTS.values(), ids=LAYOUTS)
def test_any_layout_arrives_right(device, view):
    x = locked(np.asarray(view(values())))

    there = xdev.to_device(x, device)

    np.testing.assert_array_equal(xdev.to_numpy(there), x)


def test_what_is_there_comes_back_itself_and_a_copy_shares_nothing(device):
    there = xdev.to_device(values(), device, copy=True)

    assert xdev.to_device(there, device) is there
    assert xdev.to_device(there, device, copy=False) is there
    again = xdev.to_device(there, device, copy=True)
    np.testing.assert_array_equal(xdev.to_numpy(again), values())
    again[0] = 0
    np.testing.assert_array_equal(xdev.to_numpy(there), values())


def test_buffers_are_arrays():
    buffer = (ctypes.c_float * 3)(1, 2, 3)

    assert xdev.to_numpy(buffer).tolist() == [1, 2, 3]
    assert xdev.to_numpy(bytearray(b"ab")).tolist() == [97, 98]
    x = values()
    for exporter in memoryview(x), x.view(type("Subclass", (np.ndarray,), {})):
        np.testing.assert_array_equal(
            xdev.to_numpy(xdev.to_device(exporter, "fake")), x
        )


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_copy_is_laid_out_as_its_source(real_device, order):
    x = np.array(values((300, 200)), order=order)

    there = xdev.to_device(x, real_device, copy=True)
    again = xdev.to_device(there, real_device, copy=True)
    back = xdev.to_device(again, "cpu", copy=True)

    for made in (there, again, back):
        assert (made.flags.c_contiguous, made.flags.f_contiguous) == (
            order == "C",
            order == "F",
        )
    np.testing.assert_array_equal(back, x)


def test_overlapping_out_is_right(device):
    there = xdev.to_device(values((50, 60)), device, copy=True)

    xdev.to_device(there[::-1, :], device, out=there)

    np.testing.assert_array_equal(xdev.to_numpy(there), values((50, 60))[::-1])


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("kind", ["float32", "float64", "complex64"])
def test_out_is_written_cast_as_copyto_does_and_returned(device, kind, strided):
    x = values()
    base = xdev.zeros((4, 12), dtype=getattr(xdev, kind), device=device)
    out = base[:, ::2] if strided else xdev.asarray(base[:, :6], copy=True)
    host = np.zeros((4, 12), "complex128")[:, :: 2 if strided else 1][:, :6]

    assert xdev.to_device(x, device, out=out) is out
    assert xdev.to_numpy(out, out=host) is host

    np.testing.assert_array_equal(host, x)
    if strided:
        assert not xdev.to_numpy(base)[:, 1::2].any()


# -- what is refused, with the way out, before anything is changed --------------------


F4, MISMATCH = "float32", xdev.DeviceMismatchError
REFUSED = [
    (values(), {"copy": False}, ValueError, "copy=False, but only a copy"),
    (values(), {"out": np.zeros((4, 6), F4)}, MISMATCH, "out= is on cpu, but fake:0"),
    (values(), {"stream": xdev.Stream("cpu")}, MISMATCH, "stream= is of cpu, but the"),
    *(
        (values(), {"stream": wrong}, TypeError, r"xdev\.Stream\('fake(:0)?'\)")
        for wrong in (3, 0, "null", nullcontext())
    ),
    *(
        (thing, {}, TypeError, r"x is not an array but .*: make one with")
        for thing in ([1, 2], "text", 3, None)
    ),
    (np.ndarray, {}, TypeError, "not an array but the class ndarray: pass an object"),
    *(
        (np.zeros(3, dtype), {}, TypeError, r"^fake:0 has no arrays of dtype .*: conv")
        for dtype in ("longdouble", "O", ml_dtypes.float8_e4m3fn)
    ),
    (np.zeros(3, "U3"), {}, TypeError, "of dtype <U3: leave texts on the host"),
    (np.zeros(3, "M8[s]"), {}, TypeError, r'its numbers, x\.astype\("int64"\)'),
    (np.zeros(3, "i4,f4"), {}, TypeError, r'its fields one by one, as x\["f0"\]'),
    (np.ma.masked_less(np.arange(4), 2), {}, TypeError, r"x\.filled"),
]


@pytest.mark.parametrize(("x", "options", "error", "text"), REFUSED)
def test_what_cannot_be_moved_is_refused_uncounted(x, options, error, text):
    before = xdev.memory.allocated("fake")
    with xdev.transfer_guard("allow") as counts, pytest.raises(error, match=text):
        xdev.to_device(x, "fake", **options)
    assert counts.copies == 0
    assert xdev.memory.allocated("fake") == before


@pytest.mark.parametrize(
    ("out", "way"),
    [
        (np.zeros((4, 5), F4), "empty_like"),
        (np.zeros((4, 6), "int32"), "empty_like"),
        (np.broadcast_to(np.float32(1), (4, 6)), "read-only"),
    ],
    ids=["shape", "dtype", "read-only"],
)
def test_a_wrong_out_is_refused_untouched(device, out, way):
    before = out.copy()

    with pytest.raises(ValueError, match=way):
        xdev.to_numpy(xdev.asarray(values(), device=device), out=out)

    np.testing.assert_array_equal(out, before)


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


# -- pinned memory --------------------------------------------------------------------


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
        *((shape, float, TypeError, "integer") for shape in ("a", None, 2.5, (2, "a"))),
        *((2, dtype, TypeError, "have no dtype .*: use one") for dtype in ("no", 3)),
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
    [*LAYOUTS.values(), lambda x: x.astype("i4,f4")],
    ids=[*LAYOUTS, "structured"],
)
def test_pin_keeps_values_dtype_and_order(view):
    x = np.asarray(view(values()))

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


def test_copies_may_be_non_blocking(device):
    x = xdev.pin(np.arange(3e5))
    there = xdev.to_device(x, device, non_blocking=True)
    back = xdev.to_numpy(there, non_blocking=True)
    xdev.synchronize(device)
    np.testing.assert_array_equal(back, np.arange(3e5))
