"""Inside functions, xdev's and xdev.numpy's names mean NumPy's functions of numbers."""

import os

import numpy as np
import pytest
from running import called, same, there

import xdev
import xdev as xp
import xdev.numpy as xnp
from xdev import facade, maximum, pi, sin, where
from xdev.ufunc import Ufunc

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
NAMES = sorted(
    name
    for name, function in vars(facade).items()
    if isinstance(function, Ufunc) and not name.startswith("bitwise")
)
UNARY = {name for name in NAMES if getattr(xdev, name).nin == 1}
X, Y = np.array([0.3, 0.7, -0.2, 2.5]), np.array([0.5, 2.0, -1.0, 2.5])
BYTES = np.array([[200, 3], [100, 250]], "u1")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a function that makes one of a lambda's text, with a source or without."""

    def make(text, *, source=True):
        file = tmp_path_factory.mktemp("written") / "written.py"
        if source:
            file.write_text(f"f = {text}\n")
        names = {"xp": xp, "np": xnp, "sin": sin, "where": where, "tau": 2 * pi}
        exec(compile(f"f = {text}\n", file, "exec"), names)  # noqa: S102 - our own text
        return names["f"]

    return make


TOGETHER = 6  # results of one function: to compile many more takes seconds


# Of the two modules each has every other name, in the deep run both have all.
@pytest.fixture(
    scope="module", params=[0, 1] if DEEP else [0], ids=["", "swapped"][: 1 + DEEP]
)
def all_names(request, written):
    """Return ufuncs whose results are those of every name, with the names."""
    rooms, found = ("xp", "np") if request.param else ("np", "xp"), []
    for start in range(0, len(NAMES), TOGETHER):
        names = NAMES[start : start + TOGETHER]
        calls = [
            f"{rooms[k % 2]}.{name}({'x' if name in UNARY else 'x, y'})"
            for k, name in enumerate(names)
        ]
        text = f"lambda x, y: ({', '.join(calls)})"
        found.append((xdev.vectorize(written(text)), names))
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_elementwise_name_is_numpys(device, all_names):
    for function, names in all_names:
        for name, found in zip(names, called(device, function, X, Y), strict=True):
            expected = getattr(np, name)(*(X, Y)[: 1 + (name not in UNARY)])
            assert found.dtype == expected.dtype, name
            np.testing.assert_allclose(found, expected, rtol=1e-14, err_msg=name)


@xdev.vectorize
def by_import(x, y):
    return where(x > y, sin(x) * pi, maximum(x, y)) + xp.e


@xdev.vectorize
def by_module(x, y):
    return xnp.where(xnp.greater(x, y), xp.sin(x) * xnp.pi, xnp.maximum(x, y)) + xnp.e


@pytest.mark.parametrize("function", [by_import, by_module])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_names_are_found_by_import_and_in_modules(device, function, dtype):
    x, y = X.astype(dtype), Y.astype(dtype)
    expected = np.where(x > y, np.sin(x) * np.pi, np.maximum(x, y)) + np.e
    same(called(device, function, x, y), expected, 8 * np.finfo(dtype).eps)


@xdev.vectorize
def limited(x, low, high):
    return xp.clip(x, low, high), np.clip(x, 2, 9), xp.clip(x, max=high), xp.clip(x)


@pytest.mark.parametrize("dtype", ["u1", "i4", "f4", "f8"])
def test_clip_of_numbers_is_numpys(device, dtype):
    x, low, high = (np.array(v, dtype) for v in ([0, 4, 20, 9], [1, 5, 1, 1], [7] * 4))
    expected = np.clip(x, low, high), np.clip(x, 2, 9), np.minimum(x, high), x
    same(called(device, limited, x, low, high), expected)
    x, low = np.array([[np.nan, 1.0, 2.0], [0.0, np.nan, 0.0]])
    with np.errstate(invalid="ignore"):
        found, *_ = called(device, limited, x, low, np.full(3, 1.5))
    same(found, [np.nan, np.nan, 1.5])


def helper(x, y):
    return xp.maximum(xnp.exp(x), where(y > 1, x, y))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_generalized_ufuncs_and_kernels_have_them_too(device, dtype):
    x, y = X.astype(dtype), Y.astype(dtype)
    larger = np.maximum(np.exp(x), np.where(y > 1, x, y))
    dx, dy, out = there(device, x, y, np.empty_like(x))
    points[4](dx, dy, out)
    for found in (rows(dx, dy), out):
        same(found, larger + np.clip(x, 0.0, 0.5), 8 * np.finfo(dtype).eps)


@xdev.guvectorize("(n),(n)->(n)")
def rows(x, y, out):
    for k in range(x.shape[0]):
        out[k] = helper(x[k], y[k]) + xp.clip(x[k], 0.0, 0.5)


@xdev.kernel
def points(i, x, y, out):
    out[i] = helper(x[i], y[i]) + xnp.clip(x[i], 0.0, 0.5)


@xdev.vectorize
def inner(x):
    return xp.square(x) + tau_of(1)


@xdev.vectorize
def tau_of(x):
    return 2 * xp.pi * x


@xdev.vectorize
def plus_one(x):
    return x + 1


plus_one.__name__ = "sin"  # a user's function of such a name is his


@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        (lambda x: inner(xp.sqrt(x)), Y[[[0, 1, 3]]], Y[[0, 1, 3]] + 2 * np.pi),
        (lambda x, y: xp.add(x, y) // 2, BYTES, np.add(*BYTES) // 2),
        (lambda x: plus_one(x) + 0, X[None], X + 1),
    ],
)
def test_ufuncs_and_integers_have_them_too(device, function, args, expected):
    same(called(device, xdev.vectorize(function), *args), expected, 1e-7)


@pytest.mark.parametrize(
    "text", ["lambda x: xp.sin(x) * tau", "lambda x: sin(x) * np.pi * 2.0"]
)
def test_functions_without_source_have_them(device, written, text):
    found = called(device, xdev.vectorize(written(text, source=False)), X)
    np.testing.assert_allclose(found, np.sin(X) * 2 * np.pi, rtol=1e-14)


def test_what_compilers_lack_is_told_by_the_name_as_written(written):
    function = xdev.vectorize(written("lambda x: xp.sort(x)"))
    with pytest.raises(TypeError, match=r"compiled code has no .*sort.*numbers"):
        function(X)


plus_one.__name__ = "sin"
