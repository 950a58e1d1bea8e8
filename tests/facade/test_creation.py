"""Creation: arrays, zeros, ranges, matrices; where, of which type; what is refused."""

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp
from running import host, there

import xdev
from xdev import memory

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


def test_what_does_not_fit_is_refused(device):
    for odd in ([1, {}], [object()], ["a", 1]):
        with pytest.raises((TypeError, ValueError)) as caught:
            xdev.asarray(odd, dtype="float64", device=device)
        assert "stack" not in str(caught.value)
    with pytest.raises(OverflowError):
        xdev.full(3, 300, dtype=xdev.int8, device=device)
    with pytest.raises(OverflowError, match=r"integer of 71 bits.*give dtype="):
        xdev.full(3, 2**70, device=device)
    large = xdev.full(3, 2**70, dtype=xdev.float64, device=device)
    assert host(large).tolist() == [2.0**70] * 3


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


LAZY = 32 << 20  # from here on NumPy's zeros are pages that the system makes [B]


def dirtied(nbytes):
    """Leave a block in the pool that is full of ones."""
    xdev.full(nbytes, 255, dtype=xdev.uint8, device="cpu")


def resident():
    """Return how much memory this process has touched [B]."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128", "i4,f8"])
@pytest.mark.parametrize("nbytes", [0, 144, 1 << 16, 1 << 20, LAZY - 64, LAZY + 4000])
def test_a_used_block_is_cleared(dtype, nbytes):
    shape = (nbytes // np.dtype(dtype).itemsize // 3, 3)
    dirtied(nbytes + 64)

    x = xdev.zeros(shape, dtype=dtype, device="cpu")
    dirtied(nbytes)
    fortran = np.zeros(shape[::-1], dtype).T
    y = xdev.zeros_like(fortran)

    assert (x.shape, x.dtype, y.strides) == (shape, dtype, fortran.strides)
    for made in x, y:
        assert not np.frombuffer(made.tobytes(), np.uint8).any()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux's files")
@pytest.mark.parametrize("used", [False, True])
def test_large_zeros_have_no_memory_before_they_are_used(used):
    xdev.memory.reclaim()
    before = resident()
    if used:
        dirtied(4 * LAZY)

    x = xdev.zeros(4 * LAZY, dtype="uint8", device="cpu")

    assert resident() - before < LAZY
    x[::4096] = 1
    assert int(xdev.sum(x)) == x.size // 4096


FAKE = "an array of a device"
ODD_COUNTS = [2.5, "a", (2, 3), [2], np.array([1.5, 2.5]), np.array([1, 2])]
NO_NUMBERS = ["a", np.str_("a"), [1], np.array([1]), np.ones((2, 2))]


RANGES = [
    *(((5,), {}), ((2, 9), {}), ((9, 2, -3), {}), ((0.5, 3.1, 0.2), {}), ((0,), {})),
    *(((5,), {"dtype": "float32"}), ((1, 4), {"step": 2})),
    *(
        ((one, 9, one), {"dtype": "float64"})
        for one in (np.array(2), np.float32(2), Fraction(2), True)
    ),
]
LINES = [
    ((-1, 2, num), {"endpoint": endpoint})
    for num in (0, 1, 7, np.int8(100))
    for endpoint in (True, False)
]
EYES = [
    ((rows, rows if columns is None else columns), {"k": k})
    for rows in (0, 1, 4, np.int64(3), np.uint8(20), np.int8(100))
    for columns in (None, 0, 3, 5, 300)
    for k in (-9, -2, 0, 1, 9, np.int8(-128))
]


@pytest.mark.parametrize(
    ("name", "calls"), [("arange", RANGES), ("linspace", LINES), ("eye", EYES)]
)
def test_ranges_and_matrices_agree_with_numpy(device, name, calls):
    for args, options in calls:
        made = host(getattr(xdev, name)(*args, **options, device=device))
        whole = int if name == "eye" else lambda x: x  # NumPy's takes no int8
        named = {key: whole(x) for key, x in options.items()}
        wanted = getattr(np, name)(*map(whole, args), **named)
        np.testing.assert_allclose(made, wanted, rtol=1e-15, atol=1e-15)
    assert xdev.eye(3, device=device).shape == (3, 3)


@pytest.mark.parametrize("step", [0, 0.0, -0.0, False, np.float32(0), np.int8(0)])
@pytest.mark.parametrize("bounds", [(10,), (0, 10), (5, 5), (0.5, 3)])
@pytest.mark.parametrize("kw", [{}, {"dtype": "float32"}])
def test_a_step_of_zero_is_refused(device, bounds, step, kw):
    with pytest.raises(ValueError, match=r"xdev\.arange: step is .* use another"):
        xdev.arange(*bounds, step=step, device=device, **kw)


@pytest.mark.parametrize("place", ["start", "stop", "step"])
def test_what_is_no_number_of_a_range_is_named(device, place):
    numbers = {"start": 0, "stop": 5, "step": 1}
    there = xdev.asarray(1, device="fake" if device == "cpu" else device)
    for odd in (*NO_NUMBERS, there):
        text = rf"xdev\.arange: {place} is not a number but .*give"
        if odd is there:
            text += rf" one of the host, float\({place}\)"
        for here in (None, device, "cpu", "fake"):
            with (
                xdev.transfer_guard("disallow"),
                pytest.raises(TypeError, match=text),
            ):
                xdev.arange(*(numbers | {place: odd}).values(), device=here)
        if place != "stop":
            given = {"start": 0, "step": 1, place: odd}
            with pytest.raises(TypeError, match=text):
                xdev.arange(given["start"], step=given["step"], device=device)
    for kind in (float, np.float32):
        with pytest.raises(ValueError, match=rf"xdev\.arange: {place} is nan"):
            xdev.arange(*(numbers | {place: kind("nan")}).values(), device=device)


@pytest.mark.parametrize("bounds", [(np.inf,), (0, np.inf), (-np.inf, 0)])
def test_a_range_without_end_is_refused(device, bounds):
    with pytest.raises(ValueError, match=r"xdev\.arange: \w+ is -?inf"):
        xdev.arange(*bounds, device=device)


@pytest.mark.parametrize(
    "args",
    [
        *((0, 5, 10**400), (10**20, 10**20 + 3), (0, 10**20, 10**19)),
        *((0, -(10**20), -(10**19)), (Fraction(1, 2), 3)),
    ],
)
def test_a_range_that_no_data_type_holds_is_refused(args):
    for device in ("cpu", "fake"):
        with pytest.raises((OverflowError, TypeError), match=r"dtype=xdev\.float64"):
            xdev.arange(*args, device=device)
        made = host(xdev.arange(*args, dtype="float64", device=device))
        np.testing.assert_array_equal(made, np.arange(*args, dtype="float64"))


@pytest.mark.parametrize("odd", [*ODD_COUNTS, FAKE], ids=str)
def test_sizes_that_are_no_whole_number_are_named(device, odd):
    x = xdev.asarray([1.0, 2.0], device="fake") if odd is FAKE else odd
    for text, call in {
        r"eye: n_rows is .*": lambda: xdev.eye(x, device=device),
        r"eye: n_cols is .*": lambda: xdev.eye(2, x, device=device),
        r"eye: k is .*": lambda: xdev.eye(2, k=x, device=device),
        r"linspace: num is .*": lambda: xdev.linspace(0, 1, x, device=device),
    }.items():
        with pytest.raises(TypeError, match=rf"xdev\.{text}: give a whole"):
            call()


def test_a_count_on_a_device_is_told_how_it_comes_to_the_host():
    count = xdev.asarray(3, device="fake")

    for device in ("cpu", "fake"):
        with pytest.raises(TypeError, match=r"of the host, int\(num\)"):
            xdev.linspace(0, 1, count, device=device)
        for call in (xdev.zeros, lambda n, device: xdev.full((2, n), 1, device=device)):
            with pytest.raises(TypeError, match="is not a shape"):
                call(count, device=device)
    with pytest.raises(TypeError, match=r"start is .*of the host, float\(start\)"):
        xdev.linspace(count, 1, 5, device="cpu")


N = 10**8  # 800 MB of float64
CREATIONS = {
    "empty": lambda: xdev.empty(N, device="fake"),
    "zeros": lambda: xdev.zeros((N,), device="fake"),
    "ones": lambda: xdev.ones(N, device="fake"),
    "full": lambda: xdev.full(N, 0.5, device="fake"),
    "full, typed": lambda: xdev.full(N, 1, dtype=xdev.float64, device="fake"),
    "arange": lambda: xdev.arange(N, device="fake"),
    "arange by steps": lambda: xdev.arange(0, N / 4, 0.25, device="fake"),
    "linspace": lambda: xdev.linspace(0, 1, N, device="fake"),
    "eye": lambda: xdev.eye(10**4, device="fake"),
    "random": lambda: xdev.random.default_rng(1, "fake").random(N),
}


@pytest.fixture
def made_by_the_host(monkeypatch):
    """The sizes that NumPy was asked for, by whoever makes pooled arrays."""
    made = []
    monkeypatch.setattr(
        memory.pool("cpu"), "take", lambda nbytes, _=0: made.append(nbytes)
    )
    return made


@pytest.mark.fake
@pytest.mark.parametrize("name", CREATIONS)
def test_a_limit_refuses_before_the_host_allocates(name, made_by_the_host):
    memory.set_limit("100 MB", "fake")
    try:
        with pytest.raises(xdev.OutOfMemoryError, match="fake:0: cannot allocate"):
            CREATIONS[name]()
    finally:
        memory.set_limit(None, "fake")
    assert not made_by_the_host


@pytest.mark.fake
def test_an_upload_is_refused_before_the_host_copies():
    row = np.broadcast_to(np.float64(1), (N, 10**4))  # of 8 TB
    with pytest.raises(xdev.OutOfMemoryError, match="fake:0: cannot allocate"):
        xdev.to_device(row, "fake")


@pytest.mark.fake
def test_what_fits_is_made_and_counted_once():
    before = memory.allocated("fake")
    x = xdev.zeros(3 << 20, device="fake")
    assert memory.allocated("fake") - before == x.nbytes
    np.testing.assert_array_equal(xdev.to_numpy(x), 0)


@pytest.mark.fake
@pytest.mark.parametrize("shape", [(-(10**5), -(10**5)), (10**30,), (2**40, 2**40)])
def test_an_impossible_shape_is_said_to_be_one_as_on_the_host(shape):
    with pytest.raises(ValueError, match="shape") as on_host:
        xdev.empty(shape, device="cpu")
    with pytest.raises(ValueError, match="shape") as on_fake:
        xdev.empty(shape, device="fake")
    assert str(on_fake.value) == str(on_host.value)
