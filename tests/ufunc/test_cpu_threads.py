"""Large calls on the CPU in several threads: the same results."""

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st
from running import unaligned, within

import xdev

pytestmark = pytest.mark.usefixtures("several_threads")


def function(x, y):
    return x * 2 - y


@st.composite
def views(draw, shape):
    """Memory, and a function that looks at it as an array of that shape."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([-2, -1, 1, 1, 1, 3])) for _ in shape]
    held = [shape[k] * abs(steps[k]) + draw(st.integers(0, 1)) for k in order]
    cut = tuple(slice(0, n * abs(k), abs(k)) for n, k in zip(shape, steps, strict=True))
    turned = tuple(slice(None, None, -1 if k < 0 else 1) for k in steps)
    memory = np.random.default_rng(0).standard_normal(held)
    return memory, lambda memory: memory.transpose(np.argsort(order))[cut][turned]


@given(data=st.data(), shape=st.lists(st.integers(1, 40), min_size=1, max_size=3))
def test_arrays_anyhow_in_memory(data, shape):
    f = xdev.vectorize(function)
    few = [data.draw(st.sampled_from([n, n, 1])) for n in shape]
    (one, x), (other, y) = data.draw(views(few)), data.draw(views(shape))
    memory, out = data.draw(views(shape))
    expected = memory.copy()
    out(expected)[...] = x(one) * 2 - y(other)

    for _ in range(2):
        f(x(one), y(other), out=out(memory))
        made, numpys = f(x(one), y(other)), np.subtract(x(one), y(other))

    np.testing.assert_array_equal(memory, expected)
    np.testing.assert_array_equal(made, out(expected))
    assert made.strides == numpys.strides


CAST = {
    "another dtype": lambda x: x.astype(np.float32),
    "another order": lambda x: x.astype(x.dtype.newbyteorder()),
    "unaligned": unaligned,
}


@pytest.mark.parametrize("how", CAST)
def test_what_numpy_must_cast_or_align(how):
    f = xdev.vectorize(["float64(float64, float64)"])(function)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 20_000)).astype("f4").astype("f8")
    for _ in range(3):
        np.testing.assert_array_equal(f(CAST[how](x), y), x * 2 - y)


def test_outs_of_other_shapes():
    x = np.random.default_rng(0).standard_normal(5000)
    for other in ((1, 1), (1, 1, 1)):  # a single value of more axes
        f, out = xdev.vectorize(lambda x, y: x + y), np.zeros(5000)
        for _ in range(3):
            f(x, x, out=out)
        with pytest.raises(ValueError, match="broadcast"):
            f(x, np.ones(other), out=out)
        assert f(x, np.ones(other)).shape == (*other[:-1], 5000)
    f, out = xdev.vectorize(function), np.empty((3, 5000))
    for _ in range(3):
        f(x, x, out=out)
        np.testing.assert_array_equal(out, [x] * 3)
        with pytest.raises(ValueError, match="broadcast"):
            f(x, out, out=np.empty(5000))


@pytest.mark.parametrize("shift", [-5, -1, 0, 1, 5])
def test_an_out_that_overlaps_an_input_as_numpys(shift):
    f = xdev.vectorize(function)
    mine = np.random.default_rng(0).standard_normal(50_010)
    numpys = mine.copy()
    for _ in range(3):
        f(mine[5:-5], 1.0, out=mine[5 + shift : 50_005 + shift])
        numpys[5 + shift : 50_005 + shift] = numpys[5:-5] * 2 - 1
        np.testing.assert_array_equal(mine, numpys)


@pytest.mark.parametrize("f", [xdev.vectorize(lambda x, y: x + y), xdev.add])
def test_one_value_of_the_output_is_read_before_it_is_written(f):
    for _ in range(5):
        x = np.arange(1_000_000.0)
        f(x, x[5:6].reshape(()), out=x)
        np.testing.assert_array_equal(x, np.arange(5, 1_000_005.0))


def test_several_outputs_and_one_of_them_given():
    @xdev.vectorize
    def both(x, y):
        return x + y, x < y

    x, y = np.random.default_rng(0).standard_normal((2, 40_000))
    mine = np.empty(40_000)
    for _ in range(3):
        total, less = both(x, y)
        np.testing.assert_array_equal(total, x + y)
        np.testing.assert_array_equal(less, x < y)
        assert both(x, y, out=(mine, None))[0] is mine
        np.testing.assert_array_equal(mine, x + y)


def test_several_callers_at_once_and_no_result_is_kept():
    f = xdev.vectorize(function)
    x = np.random.default_rng(0).standard_normal(100_000)

    def work(k):
        results = [f(x, float(k)) for _ in range(20)]
        return all(np.array_equal(result, x * 2 - k) for result in results)

    assert within(60, [partial(work, k) for k in range(6)]) == [True] * 6
    before = xdev.memory.allocated("cpu", kind="host")
    for _ in range(50):
        f(x, x)
        assert xdev.memory.allocated("cpu", kind="host") == before


# Floating-point errors of calls in several threads: told of once.


X = np.ones(40_000)


@xdev.vectorize
def quotient(x, y):
    return x / y


@pytest.mark.parametrize("setting", ["ignore", "warn", "raise", "call", "print", "log"])
@pytest.mark.parametrize("f", [quotient, xdev.divide])
def test_errstate_decides_what_is_told_once_with_the_users_line(f, setting, capfd):
    y, told = X.copy(), []
    y[::7] = 0
    for _ in range(3):
        f(X, X)  # until it is spread

    class Log:
        def write(self, text):
            told.append(text)

    words = f"divide by zero encountered in {'xdev:' * (f is quotient)}{f.__name__}"
    call = {"call": lambda *words: told.append(words), "log": Log()}.get(setting)
    with (
        warnings.catch_warnings(record=True, action="always") as warned,
        np.errstate(divide=setting, call=call),
    ):
        if setting == "raise":
            with pytest.raises(FloatingPointError, match=words):
                f(X, y)
        else:
            assert np.isinf(f(X, y)).sum() == len(y[::7])
    warned = [(str(w.message), w.filename) for w in warned]
    assert warned == [(words, __file__)] * (setting == "warn")
    expected = {"call": [("divide by zero", 1)], "log": [f"Warning: {words}\n"]}
    assert told == expected.get(setting, [])
    printed = [f"Warning: {words}"] if setting == "print" else []
    assert capfd.readouterr().err.splitlines() == printed
