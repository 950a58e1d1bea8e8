"""Sizes, data types, parameters and out=: what is taken and what is refused."""

import ml_dtypes
import numpy as np
import pytest
from running import host, there

import xdev
from xdev.random import default_rng

COMPLEX = np.asarray([1, 2j])
FLOATS = ["random", "standard_normal", "standard_exponential"]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda r: r.random(-1), ValueError, "negative dimensions are not allowed"),
        (lambda r: r.random(2.5), TypeError, "expected a sequence of integers"),
        (lambda r: r.random(3, "int32"), TypeError, "Unsupported dtype"),
        (lambda r: r.standard_normal(3, "float16"), TypeError, "Unsupported dtype"),
        (lambda r: r.normal(0, -1), ValueError, "scale < 0"),
        (lambda r: r.normal(0, -0.0), ValueError, "scale < 0"),
        (lambda r: r.normal([0, 1], [1, -1]), ValueError, "scale < 0"),
        (lambda r: r.exponential(-1), ValueError, "scale < 0"),
        (lambda r: r.uniform(2, 1), ValueError, "high - low < 0"),
        (lambda r: r.uniform(0, np.inf), OverflowError, "exceeds valid bounds"),
        (lambda r: r.normal(0, [1, 2], 3), ValueError, "broadcast"),
        (lambda r: r.uniform(None), TypeError, "None"),
        (lambda r: r.exponential(scale=None), TypeError, "None"),
        (lambda r: r.integers(5, 5), ValueError, "low >= high"),
        (lambda r: r.integers(5, 4, endpoint=True), ValueError, "low > high"),
        (lambda r: r.integers(0), ValueError, "high <= 0"),
        (lambda r: r.integers(0, 300, dtype="u1"), ValueError, "high is out of bounds"),
        (lambda r: r.integers(-1, 5, dtype="u1"), ValueError, "low is out of bounds"),
        (lambda r: r.integers(0, 3, dtype=bool), ValueError, "high is out of bounds"),
        (lambda r: r.integers(2**63, 2**63 + 1), ValueError, "high is out of bounds"),
        (lambda r: r.integers(0, 5, dtype="f4"), TypeError, "Unsupported dtype"),
        (lambda r: r.integers([1, 2], [3, 2]), ValueError, "low >= high"),
        (lambda r: r.integers([1], [400], dtype="u1"), ValueError, "high is out of b"),
        (lambda r: r.integers([-1], [40], dtype="u1"), ValueError, "low is out of bou"),
    ],
)
def test_what_numpy_refuses_is_refused_alike_and_not_counted(rng, call, error, text):
    before = rng.bit_generator.state
    for generator in (np.random.default_rng(0), rng):
        with pytest.raises(error, match=text):
            call(generator)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize(
    "call",
    [
        lambda r: r.integers(5, 5, 0),
        lambda r: r.integers(5, 4, (2, 0)),
        lambda r: r.integers(0, size=[0]),
        lambda r: r.integers(-1, 300, 0, dtype="u1"),
        lambda r: r.integers(7, 5, (0, 3), dtype=bool, endpoint=True),
        lambda r: r.integers([5, 6], [5, 1], (0, 2)),
        lambda r: r.choice(0, 0),
        lambda r: r.choice(-1, (2, 0)),
        lambda r: r.choice(0, 0, replace=False),
        lambda r: r.choice([], 0),
        lambda r: r.permutation(0),
    ],
)
def test_where_nothing_is_drawn_there_may_be_nothing_to_draw_from(rng, call):
    wanted, made = call(np.random.default_rng(0)), host(call(rng))

    np.testing.assert_array_equal(made, wanted, strict=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda r: r.normal(0, -1, 0),
        lambda r: r.exponential(-1, 0),
        lambda r: r.uniform(0, np.inf, 0),
        lambda r: r.integers(5, 5, ()),
        lambda r: r.choice(3, 0, p=[0.1, 0.1, 0.1]),
        lambda r: r.normal(xdev.to_device(COMPLEX, getattr(r, "device", "cpu"))),
    ],
)
def test_what_numpy_refuses_at_any_size_is_refused_alike(rng, call):
    with pytest.raises((ValueError, OverflowError, TypeError)) as numpys:
        call(np.random.default_rng(0))
    with pytest.raises(numpys.type):
        call(rng)
    with pytest.raises(TypeError, match="Cannot cast loc"):
        rng.normal(xdev.to_device(COMPLEX, rng.device))


@pytest.mark.parametrize("dtype", ["?", "u1", "f2", ml_dtypes.bfloat16])
def test_parameters_of_any_real_dtype_are_their_values(make, device, dtype):
    scale = np.asarray([0, 1, 1], dtype)
    found = make().normal(0.0, xdev.to_device(scale, device))
    expected = make().normal(0.0, xdev.asarray([0.0, 1.0, 1.0], device=device))
    np.testing.assert_array_equal(host(found), host(expected))


@pytest.mark.parametrize("dtypes", [("f8", "f4"), ("f8", "i8"), ("i8", "u8")])
def test_permuted_does_not_write_what_an_out_cannot_hold(rng, dtypes):
    x, out = np.arange(4, dtype=dtypes[0]), np.zeros(4, dtypes[1])
    with pytest.raises(TypeError, match="Cannot cast array data"):
        np.random.default_rng(0).permuted(x, out=out)
    here = xdev.to_device(out, rng.device)
    before = rng.bit_generator.state
    with pytest.raises(TypeError, match="Cannot cast array data"):
        rng.permuted(xdev.to_device(x, rng.device), out=here)

    assert rng.bit_generator.state == before
    assert not host(here).any()


def test_exponential_numbers_take_numpys_arguments_in_numpys_order(make, device):
    out = xdev.empty(3, dtype=xdev.float32, device=device)

    found = make().standard_exponential(3, np.float32, "inv", out)

    assert found is out
    np.testing.assert_array_equal(
        host(out), host(make().standard_exponential(3, dtype=np.float32))
    )


@pytest.mark.parametrize("dtype", "?bhilBHIL")
def test_integers_reach_both_ends_of_every_dtype(rng, dtype):
    kind = np.dtype(dtype)
    least, most = (0, 1) if dtype == "?" else (np.iinfo(kind).min, np.iinfo(kind).max)

    for low, high in [(least, least), (most, most), (least, most)]:
        found = host(rng.integers(low, high, 6000, kind, endpoint=True))
        assert found.dtype == kind
        assert low <= found.min() <= found.max() <= high
    if kind.itemsize == 1:
        assert (found.min(), found.max()) == (least, most)


def test_numbers_alone_are_of_the_dtype_or_pythons(rng):
    assert type(rng.integers(5)) is np.int64
    assert type(rng.integers(2, dtype="u1")) is np.uint8
    assert rng.integers(7, 8) == 7
    assert rng.integers(7, endpoint=True, dtype="i2") in range(8)
    for name in FLOATS:
        assert type(getattr(rng, name)()) is float
        assert type(getattr(rng, name)(dtype=np.float32)) is float
    assert type(rng.normal(0, 1)) is type(rng.uniform()) is float
    assert type(rng.exponential(np.float64(2))) is float


def test_parameters_broadcast(make, device):
    low, high, scale = there(
        device,
        np.array([[0.0], [10.0]]),
        np.array([1.0, 1e2, 1e3]),
        np.array([0, 1, 1e9]),
    )
    found = host(make().uniform(low, high + 10))

    assert found.shape == (2, 3)
    assert np.all((found >= host(low)) & (found < host(high) + 10))
    assert host(make().uniform(low, high + 10, (4, 2, 3))).shape == (4, 2, 3)
    found, plain = host(make().exponential(scale)), host(make().exponential(1, 3))
    assert found.tolist() == (plain * host(scale)).tolist()


@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_arrays_of_parameters_act_as_numbers_do(make, device, name):
    one, two = -1.25, 3.7
    expected = host(getattr(make(), name)(one, two, 100))
    for values in (
        (np.full(1, one), two),
        (one, np.full(1, two)),
        (np.full(100, one), np.full(100, two)),
    ):
        found = host(getattr(make(), name)(*there(device, *values), 100))
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64"])
@pytest.mark.parametrize("endpoint", [False, True])
def test_ends_of_ranges_may_be_arrays(rng, device, dtype, endpoint):
    high = xdev.asarray([1, 2, 5, 100], dtype=dtype, device=device)

    found = host(rng.integers(0, high, (3000, 4), dtype, endpoint=endpoint))

    assert found.dtype == np.dtype(dtype)
    assert found.min(axis=0).tolist()[:3] == [0, 0, 0]
    assert (found.max(axis=0) - endpoint).tolist() == [0, 1, 4, 99]


def read_only():
    out = np.zeros(3)
    out.flags.writeable = False
    return out


@pytest.mark.parametrize("name", FLOATS)
def test_an_out_that_does_not_fit_is_refused(rng, device, name):
    def made(dtype):
        return xdev.zeros(3, dtype=dtype, device=device)

    wrong = r"wrong type\. Expected float64, got float32"
    refused = [
        ((), made("float32"), TypeError, wrong),
        ((4,), made("float64"), ValueError, r"size must match out\.shape"),
        ((), [0.0], TypeError, "out must be an array"),
        *(
            ((), made(dtype), TypeError, f"{dtype}: out must be float64 or float32")
            for dtype in ("int32", "bool", "complex64")
        ),
    ]
    if device == "cpu":
        refused += [
            ((), read_only(), ValueError, "read-only: pass a writable array"),
            ((), np.zeros(3, ">f8"), TypeError, "wrong type"),
        ]
    for size, out, error, text in refused:
        with pytest.raises(error, match=text):
            getattr(rng, name)(*size, out=out)
        assert not np.any(host(out) if hasattr(out, "shape") else out)
    assert host(getattr(rng, name)(3, out=made("float64"))).all()


def test_out_may_lie_at_any_address():
    expected = default_rng(0, "cpu").random(9)
    out = np.zeros(9 * 8 + 1, np.uint8)[1:].view(np.float64)

    assert default_rng(0, "cpu").random(out=out) is out
    assert out.tobytes() == expected.tobytes()


@pytest.mark.parametrize("other", ["fake:0", "fake:1"])
def test_arrays_of_another_device_are_refused(device, other):
    rng, there = default_rng(0, device), other if device != other else "cpu"
    x = xdev.ones(3, device=there)

    for call in (
        lambda: rng.random(out=x),
        lambda: rng.normal(x, 1),
        lambda: rng.integers(0, xdev.astype(x, "int64")),
        lambda: rng.permutation(x),
        lambda: rng.choice(x),
        lambda: rng.choice(3, 2, p=x / 3),
    ):
        with pytest.raises(xdev.DeviceMismatchError, match="to_device"):
            call()


def test_results_come_from_the_pool_and_freed_arrays_are_refused(device):
    kind = {"cpu": "host"}.get(device.type)
    rng = default_rng(0, device)
    rng.random(10)
    before = xdev.memory.allocated(device, kind)

    x = rng.random((1 << 17,))

    assert xdev.memory.allocated(device, kind) - before >= x.nbytes
    xdev.memory.free(x)
    assert xdev.memory.allocated(device, kind) == before
    with pytest.raises(xdev.UseAfterFreeError):
        rng.random(out=x)


def test_out_may_be_pytorchs():
    torch = pytest.importorskip("torch")
    whole = torch.zeros((5, 6))
    out = whole[:, ::2]

    assert default_rng(3, "cpu").random(out=out, dtype="float32") is out
    expected = default_rng(3, "cpu").random((5, 3), "float32")
    assert np.array_equal(out.numpy(), expected)
    assert not whole[:, 1::2].any()


@pytest.mark.cuda
def test_out_may_be_numbas(cuda):
    numba_cuda = pytest.importorskip("numba.cuda")
    out = numba_cuda.device_array((5, 3), np.float32)

    assert default_rng(3, cuda).random(out=out, dtype="float32") is out
    expected = default_rng(3, "cpu").random((5, 3), "float32")
    assert np.array_equal(out.copy_to_host(), expected)


@pytest.mark.parametrize("name", ["gamma", "poisson", "bytes"])
def test_a_method_of_numpys_alone_is_told_what_there_is_and_the_way_out(rng, name):
    assert not hasattr(rng, name)
    with pytest.raises(AttributeError, match=name) as caught:
        getattr(rng, name)

    text = str(caught.value)
    for word in ("exponential, integers", "numpy.random", "xdev.to_device"):
        assert word in text
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = rng.nothing
