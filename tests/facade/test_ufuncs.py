"""The elementwise names as ufuncs: NumPy's keywords, methods, and every ``out=``."""

import itertools

import numpy as np
import pytest
from calls import CALLS

import xdev
from xdev import facade

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
A = np.arange(1.0, 13).reshape(3, 4)
#: Calls of methods, by what they are given: arrays of the device.
METHODS = {
    "add.reduce": lambda f, x: f(x),
    "add.reduce along the last": lambda f, x: f(x, 1),
    "add.reduce of all": lambda f, x: f(x, axis=None, keepdims=True),
    "add.reduce from 5": lambda f, x: f(x, (0, 1), initial=5),
    "multiply.reduce": lambda f, x: f(x, dtype="float32"),
    "maximum.reduce": lambda f, x: f(x, axis=None),
    "minimum.reduce": lambda f, x: f(x, 1, None, None, True),
    "logical_and.reduce": lambda f, x: f(x),
    "add.accumulate": lambda f, x: f(x, 1),
    "maximum.accumulate": lambda f, x: f(x),
    "multiply.reduceat": lambda f, x: f(x, [0, 2], axis=1),
    "subtract.outer": lambda f, x: f(x, x[0]),
    "less.outer": lambda f, x: f(x[0], 3),
    "atan2.outer": lambda f, x: f(x[0], x[1], dtype="float32"),
}


@pytest.mark.parametrize("call", METHODS)
@pytest.mark.parametrize("kind", ["float64", "int32"])
def test_methods_are_numpys(device, call, kind):
    name, method = call.partition(" ")[0].split(".")
    x = A.astype(kind)
    wanted = METHODS[call](getattr(getattr(np, name), method), x)
    own = getattr(getattr(xdev, name), method)
    result = METHODS[call](own, xdev.asarray(x, device=device))

    np.testing.assert_allclose(xdev.to_numpy(result), wanted, rtol=1e-6)
    assert result.dtype == wanted.dtype


#: How many arrays each elementwise function is given.
ALL = {
    call.path: min(2, len(call.args))
    for call in CALLS
    if call.path in facade.elementwise.__all__
}


NO_OUTS = [[0.0, 0.0, 0.0], 3, np.float64(1), "abc", np.ndarray, len, bytearray(24)]
NO_OUTS += [object(), (np.zeros(3), np.zeros(3))]


@pytest.mark.parametrize("name", ALL)
def test_what_is_no_array_is_refused_as_out(device, name):
    array = xdev.asarray(np.full(3, 0.5), device=device)
    for x, out in itertools.product((array, 0.5), NO_OUTS):
        text = rf"xdev\.{name}(: out is not an|: x is|\(\) has 1 outputs)"
        with pytest.raises((TypeError, ValueError), match=text) as caught:
            getattr(xdev, name)(*(x,) * ALL[name], out=out)
        assert isinstance(caught.value, TypeError) or type(out) is tuple


@pytest.mark.parametrize("name", ALL)
def test_arrays_that_do_not_fit_are_refused_as_out(device, name):
    function, count = getattr(xdev, name), ALL[name]
    integers = name.startswith("bitwise_")
    x = np.ones(3, int) if integers else np.full(3, 0.5)
    args = (xdev.asarray(x, device=device),) * count
    kind = xdev.to_numpy(function(*args)).dtype

    with pytest.raises(ValueError, match=rf"xdev\.{name}: out is of shape \(4,\)"):
        function(*args, out=xdev.asarray(np.zeros(4, kind), device=device))
    for numbers in (args, (3 if integers else 0.5,) * count):
        with pytest.raises((TypeError, ValueError), match=rf"xdev\.{name}: "):
            function(*numbers, out=xdev.asarray(np.zeros(4, "V8"), device="cpu"))
    if kind.kind != "b":
        short = xdev.asarray(np.zeros(3, bool), device=device)
        with pytest.raises(TypeError, match=rf"xdev\.{name}: out is of data type bool"):
            function(*args, out=short)
