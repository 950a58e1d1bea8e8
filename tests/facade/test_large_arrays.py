"""Large arrays on the CPU: by several threads, to NumPy's bits, errors and refusals."""

import warnings
from itertools import product

import numpy as np
import pytest

import xdev

BINARY = ("add", "multiply", "subtract", "divide", "less", "maximum", "pow", "atan2")
UNARY = ("exp", "sin", "sqrt", "abs", "negative", "isnan", "floor", "square")
DTYPES = ("bool", "int8", "uint16", "int64", "float16", "float32", "float64")
DTYPES += ("complex64", ">f4")
FOLDS = ("sum", "max", "min", "mean", "var", "std")
CALLS = 4  # of each: the first ones tell what a call costs
RANDOM = np.random.default_rng(3)
NORMAL = RANDOM.standard_normal((200, 700)) * 9
LAYOUTS = {
    "C": lambda x: x,
    "F": np.asfortranarray,
    "step": lambda x: x.repeat(2, 1)[:, 1::2],
    "reversed": lambda x: x[::-1],
    "row": lambda x: x[0].copy(),
    "number": lambda x: x[0, 0].item(),
}


def outcome(function, *args, **keywords):
    """Return the result's bits, and what was warned of; or the error."""
    with warnings.catch_warnings(record=True) as told, np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            made = function(*args, **keywords)
        except (TypeError, ValueError, OverflowError) as error:
            return type(error)
    said = sorted({str(warning.message) for warning in told})
    steps = [step for step, n in zip(made.strides, made.shape, strict=True) if n > 1]
    return made.shape, made.dtype, np.ascontiguousarray(made).tobytes(), said, steps


def same_as_numpys(call):
    expected = outcome(call, np)
    for _ in range(CALLS):
        assert outcome(call, xdev) == expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_ufunc_has_numpys_bits_and_warnings(dtype):
    x = NORMAL.astype(dtype)
    for name, layout in product(UNARY, list(LAYOUTS)[:4]):
        same_as_numpys(lambda xp: getattr(xp, name)(LAYOUTS[layout](x)))  # noqa: B023
    for k, (name, layout) in enumerate(product(BINARY, LAYOUTS)):
        y = LAYOUTS[layout](NORMAL[::-1].astype(DTYPES[k % len(DTYPES)]))
        same_as_numpys(lambda xp: getattr(xp, name)(x, y))  # noqa: B023


@pytest.mark.parametrize("setting", ["warn", "call"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_errors_of_a_fold_are_told_once(setting, axis):
    # In what the ufunc's loop folds, in the elements after the last part, and in the
    # fold of the parts.
    x, called = np.full((1500, 1450), 1e308), []
    x[:, 725:] *= -1
    for _ in range(CALLS):
        with (
            warnings.catch_warnings(record=True, action="always") as told,
            np.errstate(all=setting, call=lambda *given: called.append(given)),
        ):
            xdev.sum(x, axis=axis)
        texts = [str(one.message) for one in told]
        assert len(texts) == len({*texts}) > 0 or setting == "call"
        assert len(called) == len({*called}) > 0 or setting == "warn"
        assert all(one.filename == __file__ for one in told)
        del called[:]


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32", "float64"])
def test_folds_are_numpys(name, dtype):
    x = np.abs(np.resize(NORMAL, (30, 75, 1000))).astype(dtype)  # nothing cancels
    exact = x.astype(np.longdouble) if dtype.startswith("float") else x
    near = 1e-5 if dtype == "float32" else 1e-12
    for axis, keepdims in ((None, True), (0, False), (2, True), ((0, 2), False)):
        options = {"axis": axis, "keepdims": keepdims}
        same = getattr(np, name)(x, **options)
        expected = getattr(np, name)(exact, **options)
        for each in (*[x] * CALLS, np.asfortranarray(x), x[::-1].copy()[::-1]):
            made = getattr(xdev, name)(each, **options)
            assert (made.shape, made.dtype) == (same.shape, same.dtype)
            np.testing.assert_allclose(made, expected, rtol=near)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float64"])
def test_sums_have_the_dtype_that_is_asked_for(dtype):
    x = (np.arange(1500 * 1450).reshape(1500, 1450) % 7).astype(dtype)
    for axis, kind in product([None, 0, 1], {dtype, "int32", "float32"}):
        expected = np.sum(x, axis=axis, dtype=kind)
        for _ in range(CALLS):
            made = np.asarray(xdev.sum(x, axis=axis, dtype=getattr(xdev, kind)))
            np.testing.assert_array_equal(made, expected, strict=True)


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("shape", [(2100, 1001), (5, 129, 3400), (11, 1500, 129)])
def test_folds_along_axes_have_numpys_bits(name, shape):
    x = np.random.default_rng(7).random(shape, dtype="float32")
    for axis in ((), *range(len(shape))):
        expected = getattr(np, name)(x, axis=axis)
        for _ in range(CALLS):
            assert getattr(xdev, name)(x, axis=axis).tobytes() == expected.tobytes()


FOLDED = """
import numpy as np, xdev
for kind in "float32", "float64":
    x = np.random.default_rng(1).standard_normal((1500, 1433)).astype(kind) + 1
    for name in "sum", "mean", "var", "std":
        print(kind, name, *{float(getattr(xdev, name)(x)).hex() for _ in range(5)})
"""


def test_the_bits_of_a_fold_are_those_of_its_values(printed):
    one, *more = (printed(FOLDED, XDEV_NUM_THREADS=count) for count in (1, 2, 16))
    assert {*more} == {one}
    for line in one.splitlines():
        kind, name, found = line.split()
        x = np.random.default_rng(1).standard_normal((1500, 1433)).astype(kind) + 1
        exact = getattr(x.astype(np.longdouble), name)()
        error = abs(getattr(np, name)(x) - exact) + 4 * np.spacing(x.dtype.type(exact))
        assert abs(float.fromhex(found) - exact) <= error


PEAK = """
import numpy as np, xdev
for x in np.ones(1 << 22), np.ones((2048, 2048)), np.ones((2048, 2048), order="F"):
    for function in xdev.var, xdev.std:
        for _ in range(4):
            with xdev.memory.peak("cpu") as peak:
                function(x)
            assert 0 < peak.nbytes < x.nbytes // 4, peak.nbytes
"""


@pytest.mark.parametrize("count", [1, 2])
def test_a_variance_of_all_elements_takes_temporaries_of_parts(printed, count):
    assert printed(PEAK, XDEV_NUM_THREADS=count) == ""


@pytest.mark.parametrize("layout", ["C", "F", "reversed"])
def test_what_copies_has_numpys_bits(layout):
    base = np.resize(NORMAL, (1030, 1030))
    x, y = LAYOUTS[layout](base), base[::-1] + 1
    same_as_numpys(lambda xp: xp.where(x > y, x, y[:1]))
    for dtype in ("int8", "float32", "complex64", "bool"):
        same_as_numpys(lambda xp: xp.astype(x, getattr(xp, dtype, dtype)))  # noqa: B023
        same_as_numpys(lambda xp: xp.where(x > y, 2, y.astype(dtype)))  # noqa: B023
    for axis, count in enumerate(x.shape):
        indices = np.random.default_rng(2).integers(-count, count, 310)
        same_as_numpys(lambda xp: xp.concat([x, y, x], axis=axis))  # noqa: B023
        same_as_numpys(lambda xp: xp.take(x, indices, axis=axis))  # noqa: B023
        same_as_numpys(lambda xp: xp.sort(x, axis=axis))  # noqa: B023
        same_as_numpys(lambda xp: xp.argsort(x[:99], axis=axis, stable=True))  # noqa: B023


def test_lost_imaginary_parts_are_told_once_and_indices_beyond_the_end_refused():
    x = np.ones((1000, 1100), complex)
    for _ in range(CALLS):
        with pytest.warns(np.exceptions.ComplexWarning) as told:
            xdev.astype(x, xdev.float32)
        assert len(told) == 1
    x = np.ones((4, 500))
    for bad in (-5, 4):
        indices = np.full(400, 3)
        for _ in range(CALLS):
            xdev.take(x, indices, axis=0)
        indices[-1] = bad
        with pytest.raises(IndexError, match="out of bounds"):
            xdev.take(x, indices, axis=0)


TRANSFORMS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", [*TRANSFORMS, "rfftn", "irfftn"])
def test_large_transforms_are_numpys(name, dtype):
    if name in ("rfft", "rfftn", "ihfft") and dtype.startswith("complex"):
        return
    x = np.random.default_rng(4).standard_normal((128, 2, 260)).astype(dtype)
    for options, norm in product(
        ({}, {"axis": 0, "n": 100}, {"axes": (0, 2)}), ("backward", "ortho", "forward")
    ):
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
    for call in (lambda: xdev.fft.fft(x, n=True), lambda: xdev.fft.fftn(x, axes=1)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(IndexError):
        xdev.fft.fft(x, axis=2)
