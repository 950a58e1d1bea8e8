"""Creation: arrays, zeros, ranges, matrices; where, of which type; what is refused."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from running import host, resident

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
    for make, target in (
        (lambda: xdev.full(2, value, device="cpu"), "cpu"),
        (lambda: xdev.full(2, value, device="fake"), "fake:0"),
        (lambda: xdev.full_like(there, value, device="cpu"), "cpu"),
        (lambda: xdev.full_like(like, value), "cpu"),
        (lambda: xdev.full_like(there, value), "fake:0"),
    ):
        way = rf"on {target}.*xdev\.to_device\(fill_value, '{target}'\)"
        with pytest.raises(xdev.DeviceMismatchError, match=way):
            make()
    with xdev.use_device("fake:1"):
        assert host(xdev.full(2, value)).tolist() == [7, 7]


LAZY = 32 << 20  # from here on NumPy's zeros are pages that the system makes [B]


def dirtied(nbytes):
    xdev.full(nbytes, 255, dtype=xdev.uint8, device="cpu")


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "float32", "complex128", "i4,f8", "S4", "V4"]
)
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


@pytest.mark.parametrize("kind", ["int32", "int64", "float32", "float64"])
def test_numbers_at_equal_distances_have_numpys_bits(device, kind):
    on = {"dtype": kind, "device": device}
    spans = [(0, 10_000, 1), (-7, 3000, 3), (9000, 2, -2)]
    for span in spans + [(0.5, 3.1, 0.2), (-1e3, 7, 0.1)] * (kind[0] == "f"):
        wanted = np.arange(*span, dtype=kind)
        assert host(xdev.arange(*span, **on)).tobytes() == wanted.tobytes()
    for name, x in (("ones", 1), ("zeros", 0), ("full", 7)):
        made = getattr(xdev, name)((70, 90), *[x] * (name == "full"), **on)
        like = getattr(xdev, f"{name}_like")(made, *[x] * (name == "full"))
        for one in made, like:
            assert host(one).tobytes() == np.full((70, 90), x, kind).tobytes()
    if kind[0] == "i":
        return
    for endpoint, num in ((True, 10_000), (False, 7), (True, 2), (True, 1)):
        options = {"endpoint": endpoint, "dtype": kind}
        wanted = np.linspace(-0.1, 2.7, num, **options)
        made = xdev.linspace(-0.1, 2.7, num, **options, device=device)
        assert host(made).tobytes() == wanted.tobytes()
    for name in ("fftfreq", "rfftfreq"):
        for n in (1, 2, 9_999, 10_000):
            wanted = getattr(np.fft, name)(n, 0.3).astype(kind)
            assert host(getattr(xdev.fft, name)(n, 0.3, **on)).tobytes() == (
                wanted.tobytes()
            )


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


N = 10**8  # 800 MB of float64
CREATIONS = {
    "empty": lambda: xdev.empty(N, device="fake"),
    "zeros": lambda: xdev.zeros((N,), device="fake"),
    "full": lambda: xdev.full(N, 0.5, device="fake"),
    "full, typed": lambda: xdev.full(N, 1, dtype=xdev.float64, device="fake"),
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


def test_what_is_no_shape_or_data_type_is_refused(device):
    for make in (
        xdev.zeros,
        xdev.ones,
        xdev.empty,
        lambda s, **o: xdev.full(s, 1, **o),
    ):
        with pytest.raises(TypeError, match=r"shape|integer"):
            make((None, 2), device=device)
    for dtype in (0, False, "", ()):
        for make in (
            lambda **options: xdev.arange(5, **options),
            lambda **options: xdev.full(5, 1.0, **options),
            lambda **options: xdev.linspace(0, 1, 5, **options),
            lambda **options: xdev.eye(5, **options),
        ):
            with pytest.raises(TypeError):
                make(dtype=dtype, device=device)
