"""Elementwise functions: NumPy's results, on every device, into any out=."""

import math

import numpy as np
import pytest
from calls import CALLS
from hypothesis import HealthCheck, given, settings, strategies as st
from running import host, there

import xdev
from xdev import facade

ULP = 4
#: Of each its arguments, in its domain, and 2-D so that strides matter.
SAMPLES = {
    call.path: tuple(np.resize(x, (4, 3)) for x in call.args)
    for call in CALLS
    if call.path in facade.elementwise.__all__ and call.path != "clip"
}
BINARY = [
    name
    for name, args in SAMPLES.items()
    if len(args) == 2 and not name.startswith(("bitwise", "logical"))
]


def test_the_sample_covers_every_elementwise_function():
    assert {*SAMPLES, "clip"} == {*facade.elementwise.__all__}


def assert_same(result, wanted):
    result = host(result)
    assert result.dtype == wanted.dtype
    if wanted.dtype.kind == "f":
        np.testing.assert_array_max_ulp(result, wanted, ULP)
    else:
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("name", SAMPLES)
def test_agrees_with_numpy_on_views_and_writes_into_out(device, name):
    args, function, numpys = SAMPLES[name], getattr(xdev, name), getattr(np, name)
    on_device = there(device, *args)
    result = function(*(arg.T[::2] for arg in on_device))
    assert xdev.device_of(result) == device
    assert_same(result, numpys(*(arg.T[::2] for arg in args)))

    wanted = numpys(*args)
    out, whole = (np.zeros(shape, wanted.dtype) for shape in (wanted.shape, (8, 3)))
    out, whole = there(device, out, whole)
    for call in (
        lambda: function(*on_device, out=out),
        lambda: function(*on_device, out),
        lambda: function(*on_device, out=(out,)),
    ):
        out[...] = 0
        assert call() is out
        assert_same(out, wanted)
    assert_same(function(*on_device, out=(None,)), wanted)
    function(*on_device, out=whole[::2])
    assert_same(whole[::2], wanted)
    assert not host(whole[1::2]).any()
    for arg, before in zip(on_device, args, strict=True):
        np.testing.assert_array_equal(host(arg), before)


@pytest.mark.parametrize("name", sorted({*BINARY} - {"nextafter", "copysign"}))
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_numbers_adapt_and_host_scalars_keep_their_type(library, name, kind):
    host_array = np.linspace(0.5, 2.5, 6, dtype=kind)
    x = library.put(host_array, library.sites[-1])
    function, numpys = getattr(xdev, name), getattr(np, name)

    for number in (2, 2.0, np.float32(2), np.float64(2), np.array(2.0)):
        for result, wanted in (
            (function(x, number), numpys(host_array, number)),
            (function(number, x), numpys(number, host_array)),
        ):
            assert library.owns(result)
            assert xdev.device_of(result) == xdev.device_of(x)
            if library.name in ("numpy", "fake", "cupy"):
                assert_same(result, wanted)
            else:
                rtol = 1e-6 if kind == "float32" else 1e-7
                np.testing.assert_allclose(library.host(result), wanted, rtol)
        assert library.owns(xdev.where(xdev.less(x, 2), x, number))
        assert library.owns(xdev.clip(x, 0, number))


BOUNDS = st.one_of(
    st.none(),
    st.integers(-(10**400), 10**400) | st.integers(-300, 300),
    st.floats(allow_nan=False) | st.floats(-300, 300),
    st.sampled_from([np.int16(300), np.uint8(9), np.float16(2), np.float32(0.5)]),
)


def inside(bound, ends, rounded):
    """Return a bound as a whole number of the type's; None is its end."""
    least, most = (-float("inf"), float("inf"))
    if bound in (None, least, most):
        return ends.min if (bound or -1) < 0 else ends.max
    return min(max(int(rounded(bound)), ends.min), ends.max)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    low=BOUNDS,
    high=BOUNDS,
    arrays=st.booleans(),
    kind=st.sampled_from(["int8", "uint8", "int64", "uint64"]),
)
def test_clip_of_integers_is_that_of_whole_numbers(device, low, high, arrays, kind):
    ends = np.iinfo(kind)
    values = np.asarray([ends.min, 0, 1, 2, 3, 127, ends.max], kind)
    x = xdev.asarray(values, device=device)
    above = ends.min if low is None else inside(low, ends, math.ceil)
    below = ends.max if high is None else inside(high, ends, math.floor)
    bounds = [low, high]
    if arrays:
        fits = [
            isinstance(b, float | np.generic) or (b is not None and abs(b) < 2**63)
            for b in bounds
        ]
        bounds = [
            xdev.asarray(np.full(7, b), device=device) if fit else b
            for b, fit in zip(bounds, fits, strict=True)
        ]

    result = xdev.clip(x, *bounds)

    wanted = [min(max(int(value), above), below) for value in values]
    assert (host(result).tolist(), result.dtype) == (wanted, values.dtype)
    assert result is not x
    assert host(x).tolist() == values.tolist()
    for bound, before in zip(bounds, (low, high), strict=True):
        if hasattr(bound, "shape") and bound.shape:
            assert host(bound).tolist() == [before] * 7


def test_clip_writes_into_a_tuple_of_one_array(device):
    x, out = there(device, np.linspace(-1, 2, 5), np.zeros(5))
    assert xdev.clip(x, 0, 1, out=(out,)) is out
    assert_same(out, np.clip(np.linspace(-1, 2, 5), 0, 1))
    assert_same(xdev.clip(x, 0, 1, out=(None,)), host(out))


def test_clip_and_nan(device):
    with pytest.raises(ValueError, match="a bound is NaN"):
        xdev.clip(xdev.arange(3, device=device), np.nan, 2)
    x, bounds = there(device, np.array([-7, 5, 7]), np.array([np.nan, 6.5, np.nan]))
    assert host(xdev.clip(x, bounds, None)).tolist() == [-7, 7, 7]
    assert host(xdev.clip(x, None, bounds)).tolist() == [-7, 5, 7]
    (x,) = there(device, np.array([np.nan, 2.0]))
    for bounds in ((0, 1), (np.asarray(0.0), None)):
        assert np.isnan(host(xdev.clip(x, *bounds))[0])
