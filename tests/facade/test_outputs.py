"""``out=`` of every public function: NumPy's result, or a refusal with the way out."""

import inspect
import itertools

import numpy as np
import pytest

import xdev

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # acosh(0.5)
#: By the standard's name, where NumPy has no function of it that takes ``out=``.
NUMPYS = {"real": np.real, "imag": np.imag, "clip": np.clip}
REFUSALS = TypeError, ValueError, OverflowError
NUMBERS = [True, 3, 0.5, 0.5 + 2j, -0.0, 2**70]


def elementwise():
    for name in xdev.__all__:
        function = getattr(xdev, name)
        if callable(function) and not isinstance(function, type):
            parameters = inspect.signature(function).parameters
            if "out" in parameters and name not in {"to_device", "to_numpy"}:
                yield name, [p for p in parameters.values() if p.default is p.empty]


ALL = dict(elementwise())


def test_functions_with_an_output_are_found():
    assert {"add", "clip", "tanh", "real", "round", "where"} - {"where"} <= ALL.keys()
    assert len(ALL) > 60


def expected(name, args):
    """NumPy's result of numbers, None where it has none."""
    try:
        result = NUMPYS.get(name) or getattr(np, name)
        return np.asarray(result(*args))
    except REFUSALS:
        return None


@pytest.mark.parametrize("name", ALL)
def test_numbers_alone_are_computed_into_out_or_refused(device, name):
    for number in NUMBERS:
        args = (number,) * len(ALL[name])
        wanted = expected(name, args)
        kind = "D" if wanted is None or wanted.dtype == object else wanted.dtype
        out = xdev.asarray(np.zeros((), kind), device=device)

        if wanted is None or name == "clip" or number == 2**70:
            with pytest.raises(REFUSALS):
                getattr(xdev, name)(*args, out=out)
        else:
            assert getattr(xdev, name)(*args, out=out) is out
            np.testing.assert_allclose(xdev.to_numpy(out), wanted, rtol=1e-6)


NO_OUTS = {
    "list": [0.0, 0.0, 0.0],
    "number": 3,
    "scalar": np.float64(1),
    "text": "abc",
    "class": np.ndarray,
    "function": len,
    "buffer": bytearray(24),
    "object": object(),
    "two": (np.zeros(3), np.zeros(3)),
}


@pytest.mark.parametrize("name", ALL)
def test_what_is_no_array_is_refused_as_out(device, name):
    array = xdev.asarray(np.full(3, 0.5), device=device)
    for x, out in itertools.product((array, 0.5), NO_OUTS.values()):
        text = rf"xdev\.{name}(: out is not an|: x is|\(\) has 1 outputs)"
        with pytest.raises((TypeError, ValueError), match=text) as caught:
            getattr(xdev, name)(*(x,) * len(ALL[name]), out=out)
        assert isinstance(caught.value, TypeError) or type(out) is tuple


@pytest.mark.parametrize("name", ALL)
def test_arrays_that_do_not_fit_are_refused_as_out(device, name):
    function, count = getattr(xdev, name), len(ALL[name])
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


@pytest.mark.parametrize("name", ALL)
def test_a_tuple_of_one_array_or_none_is_an_output(device, name):
    x = np.ones(3, int) if name.startswith("bitwise_") else np.full(3, 0.5)
    args = (xdev.asarray(x, device=device),) * len(ALL[name])
    wanted = getattr(xdev, name)(*args)
    out = xdev.empty_like(wanted)

    assert getattr(xdev, name)(*args, out=(out,)) is out
    np.testing.assert_array_equal(xdev.to_numpy(out), xdev.to_numpy(wanted))
    result = getattr(xdev, name)(*args, out=(None,))
    np.testing.assert_array_equal(xdev.to_numpy(result), xdev.to_numpy(wanted))


def test_clip_of_a_number_is_refused_and_of_bools_without_bounds_writes(device):
    bounds = xdev.zeros(3, device=device)
    for args, out in (((bounds,), None), ((0, 1), bounds)):
        with pytest.raises(TypeError, match=r"xdev\.clip: x is .*asarray\(x\)"):
            xdev.clip(0.5, *args, out=out)
    x = xdev.asarray(np.array([True, False]), device=device)
    out = xdev.zeros(2, dtype=bool, device=device)
    assert xdev.clip(x, out=out) is out
    assert xdev.to_numpy(out).tolist() == [True, False]
