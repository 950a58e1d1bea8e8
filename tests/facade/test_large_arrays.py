"""Large arrays on the CPU: by several threads, to NumPy's bits, errors and refusals."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import xdev
from xdev.compile import threads
from xdev.facade import definitions

UNARY = ("exp", "sin", "sqrt", "abs", "negative", "isnan", "floor", "square")
BINARY = ("add", "multiply", "subtract", "divide", "less", "maximum", "pow", "atan2")
DTYPES = ("bool", "int8", "uint16", "int64", "float16", "float32", "float64")
DTYPES += ("complex64", ">f4")
hypothetical = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=[2, 3, 16])
def parts(request, monkeypatch):
    """Share every call, however small, by so many threads; return what was shared."""
    shared, run = [], threads.run

    def noted(task, n, **_):
        shared.append(n)
        run(task, n)

    monkeypatch.setattr(threads, "run", noted)
    monkeypatch.setattr(threads._config, "num_threads", lambda: request.param)
    for name, value in {"CUT": 1e-12, "REST": 0, "LEAST": 1, "SURE": 1}.items():
        monkeypatch.setattr(threads, name, value)
    monkeypatch.setattr(definitions, "_LARGE", 2)
    forget()
    yield shared
    forget()


def forget():
    for name in (*UNARY, *BINARY):
        getattr(xdev, name).plans.forget()


def numpys(name):
    return getattr(np, name)


def drawn(data, shape):
    """Draw an array of a shape, of any dtype and layout; or a number."""
    dtype = np.dtype(data.draw(st.sampled_from(DTYPES)))
    seed = data.draw(st.integers(0, 99))
    made = np.random.default_rng(seed).standard_normal([2 * k + 1 for k in shape]) * 9
    x = made.astype(dtype)
    how = data.draw(st.sampled_from(["C", "F", "step", "reversed", "row", "number"]))
    if how == "number":
        return data.draw(st.sampled_from([2, 0.5, np.float32(3)]))
    if how == "row":
        return np.ascontiguousarray(x[0, : shape[1]])
    if how in ("step", "reversed"):
        return x[1::2, 1::2] if how == "step" else x[-shape[0] :, : shape[1]][::-1]
    return np.array(x[: shape[0], : shape[1]], order=how)


def outcome(function, *args, **keywords):
    """Return the result's bits, and what was warned of; or the error."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            made = function(*args, **keywords)
        except (TypeError, ValueError, OverflowError) as error:
            return type(error)
    said = sorted({str(warning.message) for warning in told})
    return made.shape, made.dtype, np.ascontiguousarray(made).tobytes(), said


@pytest.mark.usefixtures("parts")
@hypothetical
@given(data=st.data(), shape=st.tuples(st.integers(1, 9), st.integers(1, 70)))
def test_a_ufunc_has_numpys_bits_and_warnings(data, shape):
    name = data.draw(st.sampled_from(UNARY + BINARY))
    count = 2 if name in BINARY else 1
    args = [drawn(data, shape) for _ in range(count)]
    if not any(isinstance(x, np.ndarray) for x in args):
        args[0] = np.ones(shape)
    with np.errstate(all="warn"):
        expected = outcome(numpys(name), *args)
        for _ in range(4):  # two of them tell what a call costs
            assert outcome(getattr(xdev, name), *args) == expected


@pytest.mark.usefixtures("parts")
@hypothetical
@given(data=st.data())
def test_outputs_may_lie_in_the_operands(data):
    name = data.draw(st.sampled_from(["add", "multiply", "maximum"]))
    cut = [data.draw(st.integers(0, 3)) for _ in range(3)]
    step = data.draw(st.sampled_from([1, 2, -1]))

    def call(module):
        whole = np.arange(400.0)
        x, y, out = (whole[k : k + 390 : step] for k in cut)
        assert getattr(module, name)(x, y, out=out) is out
        return whole

    for _ in range(4):
        np.testing.assert_array_equal(call(xdev), call(np))


def test_threads_take_part_whatever_the_layout(parts):
    x = np.ones((40, 50))
    for y in (x, x.T.copy().T, x[::-1, ::2].repeat(2, 1), x[0], x[:, :1], 2.0):
        del parts[:]
        for _ in range(4):
            xdev.add(x, y)
        assert parts


@pytest.mark.parametrize("setting", ["warn", "raise", "ignore", "call"])
def test_errors_are_told_once_as_the_caller_wants(parts, setting):
    x, called = np.ones((30, 40)), []
    for _ in range(4):
        xdev.divide(x, 2.0)
        with (
            warnings.catch_warnings(record=True) as told,
            np.errstate(all=setting, call=lambda *given: called.append(given)),
        ):
            warnings.simplefilter("always")
            if setting == "raise":
                with pytest.raises(FloatingPointError, match="divide by zero"):
                    xdev.divide(x, 0.0)
            else:
                assert np.isinf(xdev.divide(x, 0.0)).all()
        assert len(told) == (setting == "warn")
        assert all(one.filename == __file__ for one in told[1:])
    assert called == [("divide by zero", 1)] * 4 * (setting == "call")
    assert parts


def test_what_does_not_fit_is_refused_as_it_is_in_one_call(parts):
    x = np.ones((30, 40))
    for _ in range(4):
        with pytest.raises(ValueError, match="broadcast"):
            xdev.add(x, np.ones(7))
        with pytest.raises(ValueError, match="out is of shape"):
            xdev.add(x, x, out=np.ones((2, 30, 40)))
        with pytest.raises(ValueError, match="out"):
            xdev.add(x, x, out=np.broadcast_to(1.0, x.shape))
        xdev.add(x, x)
    assert parts
