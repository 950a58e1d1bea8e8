"""Sizes, data types, parameters and out=: what is taken and what is refused."""

import numpy as np
import pytest
from running import host, locked, there

import xdev
from xdev.random import default_rng

FLOATS = ["random", "standard_normal", "standard_exponential"]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda r: r.random(-1), ValueError, "negative dimensions are not allowed"),
        (lambda r: r.random(2.5), TypeError, "sequence of integers|is not a shape"),
        (lambda r: r.random(3, "int32"), TypeError, "Unsupported dtype"),
        (lambda r: r.standard_normal(3, "float16"), TypeError, "Unsupported dtype"),
        (lambda r: r.normal(0, -1), ValueError, "scale < 0"),
        (lambda r: r.exponential(-1), ValueError, "scale < 0"),
        (lambda r: r.uniform(2, 1), ValueError, "high - low < 0"),
        (lambda r: r.uniform(0, np.inf), OverflowError, "exceeds valid bounds"),
        (lambda r: r.normal(0, [1, 2], 3), ValueError, "broadcast"),
        (lambda r: r.uniform(None), TypeError, "None"),
        (lambda r: r.integers(5, 5), ValueError, "low >= high"),
        (lambda r: r.integers(0), ValueError, "high <= 0"),
        (lambda r: r.integers(0, 300, dtype="u1"), ValueError, "high is out of bounds"),
        (lambda r: r.integers(-1, 5, dtype="u1"), ValueError, "low is out of bounds"),
        (lambda r: r.integers(2**63, 2**63 + 1), ValueError, "high is out of bounds"),
        (lambda r: r.integers(0, 5, dtype="f4"), TypeError, "Unsupported dtype"),
        (lambda r: r.integers([1, 2], [3, 2]), ValueError, "low >= high"),
    ],
)
def test_what_numpy_refuses_is_refused_alike_and_not_counted(rng, call, error, text):
    before = rng.bit_generator.state
    for generator in (np.random.default_rng(0), rng):
        with pytest.raises(error, match=text):
            call(generator)
    assert rng.bit_generator.state == before


def test_a_size_may_be_0_d_and_a_text_names_what_was_given(rng, device):
    assert rng.random(np.array(3)).shape == (3,)
    with pytest.raises(TypeError, match=r"array\(2\.5\) is not a shape"):
        rng.random(np.array(2.5))
    x, out = (xdev.ones(n, device=device) for n in (3, 4))
    with pytest.raises(ValueError, match=r"^x\.shape must match out\.shape"):
        rng.permuted(x, out=out)


@pytest.mark.parametrize(
    "call",
    [
        lambda r: r.integers(5, 5, 0),
        lambda r: r.integers(5, 4, (2, 0)),
        lambda r: r.integers(0, size=[0]),
        lambda r: r.integers(7, 5, (0, 3), dtype=bool, endpoint=True),
        lambda r: r.integers([5, 6], [5, 1], (0, 2)),
        lambda r: r.choice(0, 0),
        lambda r: r.choice(0, 0, replace=False),
        lambda r: r.permutation(0),
    ],
)
def test_where_nothing_is_drawn_there_may_be_nothing_to_draw_from(rng, call):
    wanted, made = call(np.random.default_rng(0)), host(call(rng))

    np.testing.assert_array_equal(made, wanted, strict=True)


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
            ((), made(dtype), TypeError, f"got {dtype}: pass one of dtype float64")
            for dtype in ("int32", "bool", "complex64")
        ),
    ]
    if device == "cpu":
        refused += [
            ((), locked(np.zeros(3)), ValueError, "read-only: pass a writable array"),
            ((), np.zeros(3, ">f8"), TypeError, "wrong type"),
        ]
    for size, out, error, text in refused:
        with pytest.raises(error, match=text):
            getattr(rng, name)(*size, out=out)
        assert not np.any(host(out) if hasattr(out, "shape") else out)
    assert host(getattr(rng, name)(3, out=made("float64"))).all()


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


@pytest.mark.parametrize("name", ["gamma", "poisson", "bytes"])
def test_a_method_of_numpys_alone_is_told_the_way_out(rng, name):
    assert not hasattr(rng, name)
    with pytest.raises(AttributeError, match=name) as caught:
        getattr(rng, name)

    text = str(caught.value)
    for word in ("numpy.random", "xdev.to_device"):
        assert word in text
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = rng.nothing
