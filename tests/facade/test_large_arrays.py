"""Large arrays on the CPU: by several threads, to NumPy's bits, errors and refusals."""

import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import xdev
from xdev.compile import threads
from xdev.facade import cpu_threads, definitions, dispatch, inspection
from xdev.ufunc import cpu as ufunc_threads

UNARY = ("exp", "sin", "sqrt", "abs", "negative", "isnan", "floor", "square")
BINARY = ("add", "multiply", "subtract", "divide", "less", "maximum", "pow", "atan2")
DTYPES = ("bool", "int8", "uint16", "int64", "float16", "float32", "float64")
DTYPES += ("complex64", ">f4")
hypothetical = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=[2, 3, 16])
def parts(request, monkeypatch):
    """Share every call, however small, by so many threads; return what was shared."""
    shared, run, elements = [], threads.run, threads.elements

    def noted(task, n, *, grain=1):
        shared.append(n)
        run(task, n, grain=1 if grain < ufunc_threads.LINE else ufunc_threads.LINE)

    def noted_elements(*args, **options):
        shared.append(args)
        return elements(*args, **options)

    monkeypatch.setattr(threads, "run", noted)
    monkeypatch.setattr(threads, "elements", noted_elements)
    monkeypatch.setattr(threads._config, "num_threads", lambda: request.param)
    for name, value in {"CUT": 1e-12, "REST": 0, "LEAST": 1, "SURE": 1}.items():
        monkeypatch.setattr(threads, name, value)
    monkeypatch.setattr(definitions, "_LARGE", 2)
    monkeypatch.setattr(dispatch, "LARGE", dict.fromkeys(dispatch.LARGE, 2))
    for module in dispatch, inspection:
        monkeypatch.setattr(module, "MANY", 2)
    monkeypatch.setattr(cpu_threads, "_costs", {})
    monkeypatch.setattr(cpu_threads, "PART", 64)
    monkeypatch.setattr(cpu_threads, "CHUNK", 256)
    monkeypatch.setattr(cpu_threads, "BLOCK", 32)
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
    steps = [step for step, n in zip(made.strides, made.shape, strict=True) if n > 1]
    return made.shape, made.dtype, np.ascontiguousarray(made).tobytes(), said, steps


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


def test_threads_take_part_in_all(parts):
    x, large = np.ones((40, 50)), np.random.default_rng(3).random((64, 64))
    layouts = x, x.T.copy().T, x[::-1, ::2].repeat(2, 1), x[0], x[:, :1], 2.0
    indices = np.arange(64)[::-1].copy()
    calls = [
        *(lambda y=y: xdev.add(x, y) for y in layouts),
        *(lambda name=name: getattr(xdev, name)(large) for name in FOLDS),
        *(lambda name=name: getattr(xdev, name)(large, axis=0) for name in FOLDS),
        lambda: xdev.astype(large, xdev.float32),
        lambda: xdev.where(large > 1, large, large),
        lambda: xdev.where(large > 1, 2.0, large),
        lambda: xdev.concat([large, large]),
        lambda: xdev.take(large, indices, axis=0),
        lambda: xdev.sort(large, axis=0),
        lambda: xdev.argsort(large, axis=1),
    ]
    for call in calls:
        del parts[:]
        for _ in range(4):
            call()
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
        assert all(one.filename == __file__ for one in told)
    assert called == [("divide by zero", 1)] * 4 * (setting == "call")
    assert parts


@pytest.mark.parametrize("setting", ["warn", "call"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_errors_of_a_fold_are_told_once(parts, setting, axis):
    # In what the ufunc's loop folds, in the elements after the last part, and in the
    # fold of the parts.
    x, called = np.full((30, 90), 1e308), []
    x[:, 45:] *= -1
    for _ in range(4):
        with (
            warnings.catch_warnings(record=True) as told,
            np.errstate(all=setting, call=lambda *given: called.append(given)),
        ):
            warnings.simplefilter("always")
            xdev.sum(x, axis=axis)
        texts = [str(one.message) for one in told]
        assert len(texts) == len({*texts}) > 0 or setting == "call"
        assert len(called) == len({*called}) > 0 or setting == "warn"
        assert all(one.filename == __file__ for one in told)
        del called[:]
    assert parts


# -- functions that are no ufuncs -----------------------------------------------------

FOLDS = ("sum", "max", "min", "mean", "var", "std")
REAL = ("bool", "int8", "uint16", "int64", "float32", "float64")
AXES = [None, 0, 1, -1, (0, 1), (0, 2), (1,), ()]


def folded(name, x, **options):
    """Return NumPy's fold, of floats by the most exact numbers there are."""
    if name in ("mean", "var", "std", "sum") and x.dtype.kind == "f":
        x = x.astype(np.longdouble)
    return getattr(np, name)(x, **options)


@pytest.mark.usefixtures("parts")
@hypothetical
@given(data=st.data(), shape=st.tuples(*[st.integers(1, 12)] * 3))
def test_folds_are_numpys(data, shape):
    name, dtype = data.draw(st.sampled_from(FOLDS)), data.draw(st.sampled_from(REAL))
    axis = data.draw(st.sampled_from(AXES))
    keepdims = data.draw(st.booleans())
    values = np.random.default_rng(0).standard_normal(shape) * 3
    x = values.astype(dtype)
    x = data.draw(st.sampled_from([x, x.T.copy().T, x[::-1], np.asfortranarray(x)]))
    same = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    expected = folded(name, x, axis=axis, keepdims=keepdims)

    for _ in range(4):
        made = getattr(xdev, name)(x, axis=axis, keepdims=keepdims)
        assert (made.shape, made.dtype) == (same.shape, same.dtype)
        np.testing.assert_allclose(
            made, expected, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-6
        )


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float64"])
def test_sums_have_the_dtype_that_is_asked_for(parts, dtype):
    x = (np.arange(30 * 90).reshape(30, 90) % 7).astype(dtype)
    for axis, kind in product([None, 0, 1], {dtype, "int32", "float32"}):
        expected = np.sum(x, axis=axis, dtype=kind)
        for _ in range(4):
            made = np.asarray(xdev.sum(x, axis=axis, dtype=getattr(xdev, kind)))
            np.testing.assert_array_equal(made, expected, strict=True)
    assert parts


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("shape", [(33, 65), (70, 129), (5, 129, 3), (5, 65, 129)])
def test_folds_along_axes_have_numpys_bits(parts, name, shape):
    x = np.random.default_rng(7).random(shape).astype("float32")
    for axis in range(len(shape)):
        expected = getattr(np, name)(x, axis=axis)
        for _ in range(4):
            assert getattr(xdev, name)(x, axis=axis).tobytes() == expected.tobytes()
    assert parts


@pytest.mark.parametrize("name", ["sum", "mean", "var", "std"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bits_of_a_fold_are_those_of_its_values(monkeypatch, name, dtype):
    x = np.random.default_rng(1).standard_normal((400, 333)).astype(dtype) + 1
    monkeypatch.setattr(cpu_threads, "PART", 4096)
    monkeypatch.setattr(cpu_threads, "CHUNK", 16384)
    found = set()
    for count in (1, 2, 3, 16):
        monkeypatch.setattr(threads._config, "num_threads", lambda count=count: count)
        monkeypatch.setattr(cpu_threads, "_costs", {})
        for cut in (1e-12, 1.0):
            monkeypatch.setattr(threads, "CUT", cut)
            found |= {float(getattr(xdev, name)(x)) for _ in range(5)}

    assert len(found) == 1
    exact = getattr(x.astype(np.longdouble), name)()
    error = abs(getattr(np, name)(x) - exact)
    assert abs(found.pop() - exact) <= error + 4 * np.spacing(getattr(np, dtype)(exact))


@pytest.mark.usefixtures("parts")
@hypothetical
@given(data=st.data(), shape=st.tuples(st.integers(1, 9), st.integers(1, 70)))
def test_what_copies_has_numpys_bits(data, shape):
    x, y = (np.ones(shape) * drawn(data, shape) for _ in range(2))
    x = data.draw(st.sampled_from([x, np.asfortranarray(x), x[:, ::-1]]))
    dtype = data.draw(st.sampled_from(["int8", "float32", "complex64", "bool"]))
    axis = data.draw(st.sampled_from([0, 1, -1]))
    count = shape[axis]
    indices = np.random.default_rng(2).integers(-count, count, 31)
    calls = {
        "astype": lambda xp: xp.astype(x, getattr(xp, dtype, dtype)),
        "where": lambda xp: xp.where(x > y, x, y[:1]),
        "number": lambda xp: xp.where(x > y, 2, y.astype(dtype)),
        "concat": lambda xp: xp.concat([x, y, x], axis=axis),
        "take": lambda xp: xp.take(x, indices, axis=axis),
        "sort": lambda xp: xp.sort(x.real, axis=axis),
        "argsort": lambda xp: xp.argsort(x.real, axis=axis, stable=True),
    }
    call = calls[data.draw(st.sampled_from(list(calls)))]
    expected = outcome(call, np)
    for _ in range(4):
        assert outcome(call, xdev) == expected


@pytest.mark.usefixtures("parts")
def test_lost_imaginary_parts_are_told_once_and_indices_beyond_the_end_refused():
    x = np.ones((30, 40), complex)
    for _ in range(4):
        with pytest.warns(np.exceptions.ComplexWarning) as told:
            xdev.astype(x, xdev.float32)
        assert len(told) == 1
    x = np.ones((4, 50))
    for bad in (-5, 4):
        indices = np.full(40, 3)
        for _ in range(4):
            xdev.take(x, indices, axis=0)
        indices[-1] = bad
        with pytest.raises(IndexError, match="out of bounds"):
            xdev.take(x, indices, axis=0)


TRANSFORMS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", [*TRANSFORMS, "rfftn", "irfftn"])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_large_transforms_are_numpys(name, dtype, norm):
    if name in ("rfft", "rfftn", "ihfft") and dtype.startswith("complex"):
        return
    x = np.random.default_rng(4).standard_normal((128, 2, 260)).astype(dtype)
    for options in {}, {"axis": 0, "n": 100}, {"axes": (0, 2)}:
        if options and ("axes" in options) != name.endswith("n"):
            continue
        made = getattr(xdev.fft, name)(x, norm=norm, **options)
        expected = getattr(np.fft, name)(x, norm=norm, **options)
        assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
        scale = np.abs(expected).max()
        close = 1e-6 if dtype in ("float32", "complex64") else 1e-14
        np.testing.assert_allclose(made / scale, expected / scale, atol=close)


def test_a_transform_is_refused_in_numpys_words():
    x = np.ones((300, 300))
    for name in TRANSFORMS[:6]:
        with pytest.raises(ValueError, match="Invalid number of FFT data points"):
            getattr(xdev.fft, name)(x, n=0)
    with pytest.raises(TypeError):
        xdev.fft.fft(x, n=True)
    with pytest.raises(TypeError):
        xdev.fft.fftn(x, axes=1)
    with pytest.raises(IndexError):
        xdev.fft.fft(x, axis=2)
