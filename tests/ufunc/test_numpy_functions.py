"""NumPy's functions by name inside functions, also as xdev's and xdev.numpy's names."""

import itertools
import math
import os

import numpy as np
import pytest
from running import called, same, there, with_source, without_source

import xdev
import xdev as xp
import xdev.numpy
import xdev.numpy as xnp
from xdev import facade, maximum, pi, sin, where
from xdev.ufunc import Ufunc

INF, NAN = np.inf, np.nan
KINDS = "bhilBHILfdFD"
LACKING = ["bitwise_count", "frexp", "heaviside", "modf"]
FUNCTIONS = sorted(
    name
    for name, found in vars(np).items()
    if isinstance(found, np.ufunc)
    and found.signature is None
    and found.__name__ == name
    and name not in LACKING
)
# Those that differed once; HYPOTHESIS_PROFILE=deep has all of NumPy's ufuncs for all
# dtypes but bools, which are counted as Python has it.
PICKED = [
    *zip(["floor_divide", "remainder", "power", "lcm", "add"], "ldBll", strict=True),
    *zip(["fmod", "divmod", "left_shift", "right_shift"], "lbbl", strict=True),
    *zip(["logaddexp", "nextafter", "rint", "sqrt", "cbrt"], "ddfdd", strict=True),
    *zip(["ldexp", "spacing", "exp", "log1p", "sign"], "fffDL", strict=True),
    *zip(["power", "multiply", "absolute", "log", "divide"], "DFFDD", strict=True),
    *zip(["exp2", "expm1", "log10", "arccosh", "tanh"], "DDFDD", strict=True),
    *zip(["sign", "float_power", "absolute", "copysign"], "FDlf", strict=True),
    *zip(["floor", "logaddexp2", "fmod", "remainder"], "ffdl", strict=True),
    *zip(["float_power", "ldexp", "sqrt"], "FDF", strict=True),
]
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
if DEEP:
    PICKED = list(itertools.product(FUNCTIONS, KINDS))
# Results of floats have the inputs' width, as all of a function's have.
WIDTHS = {"ldexp"}
# Of complex numbers, on CUDA: the others are the compiler's there.
EVERYWHERE = {"power", "multiply", "absolute", "log", "sign", "divide", "exp"}
EVERYWHERE |= {"exp2", "expm1", "log2", "log10", "float_power"}
PARTS = [0.0, -0.0, 1, -1, 1e-6, 0.5, -2.5, 3]
FLOATS = [*PARTS, 2, -2, 2.5, 1e3, 88.7, -1e10]
ENDLESS = [INF, -INF, NAN]


def values(kind, *, finite=False):
    """Return the values at which functions of a dtype go wrong."""
    dtype = np.dtype(kind)
    if dtype.kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        small = [n for n in (-7, -3, -2, -1, 0, 1, 2, 3, 7, 39) if n >= low]
        return np.array([low, low + 1, *small, high // 2, high - 1, high], dtype)
    endless = [] if finite else ENDLESS
    if dtype.kind == "c":
        parts = [*PARTS, *endless]
        return np.array([complex(x, y) for x in parts for y in parts], dtype)
    info = np.finfo(dtype)
    ends = [] if finite else [info.max, info.tiny, info.smallest_subnormal]
    return np.array([*FLOATS, *endless, *ends], dtype)


def operands(name, kind, *, finite=False):
    """Return a function's arguments, each value with each."""
    x = values(kind, finite=finite)
    function = getattr(np, name)
    if name == "ldexp":
        return x, np.resize(np.array([0, 1, -1, 5, 2000, -2000, -1060], "i4"), x.shape)
    if name in {"fmax", "fmin", "maximum", "minimum"} and x.dtype.kind == "f":
        x = x[(x != 0) | ~np.signbit(x)]  # which zero is larger is left open
    if function.nin == 1:
        if name == "reciprocal" and x.dtype.kind in "iu":
            x = x[x != 0]  # C leaves it open what an integer's infinity is
        return (x,)
    x, y = (each.ravel() for each in np.meshgrid(x, x))
    if name in {"power", "float_power"} and x.dtype.kind == "i":
        x, y = x[y >= 0], y[y >= 0]  # NumPy raises
    return x, y


def alike(found, expected, ulps=16):
    """Say which results are the same, as far as their dtype has them."""
    if expected.dtype.kind in "biu":
        return found == expected
    info = np.finfo(expected.dtype)
    undefined = np.isnan(found) & np.isnan(expected)
    error = np.abs(found - expected)
    near = error <= ulps * info.eps * np.abs(expected) + 4 * info.smallest_subnormal
    near &= np.isfinite(expected)
    if expected.dtype.kind == "c":
        return undefined | near | (found == expected)
    same = (found == expected) & (np.signbit(found) == np.signbit(expected))
    return undefined | same | (near & (expected != 0))


def reference(name, args):
    """Return NumPy's results; those of 16 bits in float32, as they are computed."""
    results = getattr(np, name)(*args)
    results = results if isinstance(results, tuple) else (results,)
    if any(each.dtype == np.float16 for each in results):
        return reference(name, [each.astype("f4") for each in args])
    return results


def by_name(name):
    """Return a ufunc of a function that calls one of NumPy's by name."""
    names = ", ".join("xy"[: getattr(np, name).nin])
    calls = [f"np.{name}({names})[{k}]" for k in range(getattr(np, name).nout)]
    results = ", ".join(calls) if len(calls) > 1 else f"np.{name}({names})"
    return xdev.vectorize(with_source(f"f = lambda {names}: ({results})", np=np))


@pytest.mark.parametrize("case", PICKED, ids="-".join)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_function_by_name_is_numpys(case, device):
    name, kind = case
    function = by_name(name)
    on_cuda = device.type == "cuda"
    if on_cuda and kind in "FD" and name not in EVERYWHERE:
        pytest.skip("the compiler's own on CUDA")
    args = operands(name, kind, finite=on_cuda and kind in "fdFD")
    there = [xdev.asarray(each, device=device) for each in args]
    try:
        expected = reference(name, args)
    except TypeError:
        if name != "ldexp" or kind in "FD":  # NumPy has no such function
            with pytest.raises(TypeError, match="compiled code has no"):
                function(*there)
            return
        # From NumPy 2.5 on bytes are no numbers in half precision.
        expected = reference(name, [args[0].astype("f4"), args[1]])
    wide = expected
    if kind == "F":  # NumPy's powers are less exact than float64's
        wide = reference(name, [each.astype("D") for each in args])
    ulps = 16
    if on_cuda and kind in "FD" and name in {"power", "float_power"}:
        z, w = (each.astype("D") for each in args)
        ulps += np.nan_to_num(np.abs(w * np.log(z)))  # the logarithm's error grows so

    results = function(*there)

    results = results if isinstance(results, tuple) else (results,)
    for found, numpys, wider in zip(results, expected, wide, strict=True):
        assert found.dtype == numpys.dtype or name in WIDTHS
        own = xdev.to_numpy(found)
        good = alike(own, numpys.astype(own.dtype), ulps)
        good |= alike(own, wider.astype(own.dtype), ulps)
        wrong = [
            (*(each[k] for each in args), own[k], numpys[k])
            for k in np.flatnonzero(~good)
        ]
        assert wrong == []


def following(x):
    return xdev.nextafter(x, 2.0)


inner = xdev.vectorize(following)


@pytest.mark.parametrize(
    ("function", "signatures", "called"),
    [
        (lambda x: np.spacing(x) + 0, [], r"numpy\.spacing"),
        (following, ["float16(float16)"], r"numpy\.nextafter"),
        (lambda x: inner(x) + 0, [], r"numpy\.nextafter"),
    ],
)
def test_neighbours_of_half_precision_are_refused(device, function, signatures, called):
    x = xdev.asarray(np.ones(3, np.float16), device=device)
    with pytest.raises(
        TypeError, match=f"computed in float32.*{called} outside, or give"
    ):
        xdev.vectorize(signatures)(function)(x)


powers = xdev.vectorize(lambda z, w: (z**3, z**-1, z**2, z**w, abs(z)))


@pytest.mark.parametrize("kind", "FD")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_complex_powers_and_distances(device, kind):
    z = np.array([3 + 4j, 0, -1e-3j, 2.5, 1e15 + 1e15j, -0.5 + 1j], kind)
    w = np.array([2.5 + 1j, 0.5 - 0.25j, 2, -1, 3, 0], kind)
    wide, exponent = z.astype("D"), w.astype("D")
    expected = wide**3, wide**-1.0, wide**2, wide**exponent, np.abs(wide)
    for own, each in zip(called(device, powers, z, w), expected, strict=True):
        assert alike(own, each.astype(own.dtype)).all()
    info = np.finfo(kind)
    large, small = float(info.max) / 2, float(info.tiny)
    z = [complex(x, x) for x in (large, small)] + [complex(INF, NAN), complex(NAN, 1)]
    z = np.array(z, kind)  # of which the squares overflow
    distances = xdev.vectorize(lambda z: abs(z))  # noqa: PLW0108 - it has a source
    found = called(device, distances, z)
    np.testing.assert_allclose(found, np.abs(z), rtol=4 * info.eps)


def extremes(x, y):
    return min(x, y), max(x, y), max(y, 2.0, x)


@xdev.kernel
def extremes_by_element(i, x, y, small, large):
    small[i] = min(x[i], y[i])
    large[i] = max(x[i], y[i])


@pytest.mark.parametrize("kind", "fd")
def test_the_smaller_and_the_larger_are_the_first_where_neither_is(device, kind):
    ends = np.array([NAN, -INF, -0.0, 0.0, 1.5, INF])
    x, y = (each.ravel() for each in np.meshgrid(ends, ends))
    expected = np.array([extremes(*pair) for pair in zip(x, y, strict=True)]).T
    x, y, *outs = there(device, x.astype(kind), y, np.empty(36), np.empty(36))

    extremes_by_element[36](x, y, *outs)
    found = [*xdev.vectorize(extremes)(x, y), *outs]

    for own, python in zip(found, [*expected, *expected[:2]], strict=True):
        values = xdev.to_numpy(own)
        np.testing.assert_array_equal(values, python)
        np.testing.assert_array_equal(np.signbit(values), np.signbit(python))


NAMES = sorted(
    name
    for name, function in vars(facade).items()
    if isinstance(function, Ufunc) and not name.startswith("bitwise")
)
UNARY = {name for name in NAMES if getattr(xdev, name).nin == 1}
U, V = np.array([0.3, 0.7, -0.2, 2.5]), np.array([0.5, 2.0, -1.0, 2.5])


def written(text, make=with_source):
    """Return a lambda of a text, with a source or without."""
    names = {"xp": xp, "np": xnp, "sin": sin, "where": where, "tau": 2 * pi}
    return make(f"f = {text}\n", **names)


@pytest.mark.parametrize("room", ["xp", "np"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_elementwise_names_are_numpys(device, room):
    names = NAMES if DEEP else NAMES[room == "np" :: 5]  # each is compiled
    calls = [f"{room}.{name}({'x' if name in UNARY else 'x, y'})" for name in names]
    function = xdev.vectorize(written(f"lambda x, y: ({', '.join(calls)})"))
    for name, found in zip(names, called(device, function, U, V), strict=True):
        expected = getattr(np, name)(*(U, V)[: 1 + (name not in UNARY)])
        assert found.dtype == expected.dtype, name
        np.testing.assert_allclose(found, expected, rtol=1e-14, err_msg=name)


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
    return maximum(xnp.exp(x), where(y > 1, sin(x) * pi, xp.cos(y)))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_generalized_ufuncs_and_kernels_have_them_too(device, dtype):
    x, y = U.astype(dtype), V.astype(dtype)
    larger = np.maximum(np.exp(x), np.where(y > 1, np.sin(x) * np.pi, np.cos(y)))
    dx, dy, out = there(device, x, y, np.empty_like(x))
    points[4](dx, dy, out)
    for found in (rows(dx, dy), out):
        same(found, larger + np.clip(x, 0.0, 0.5), 8 * np.finfo(dtype).eps)
    same(xdev.vectorize(helper)(dx, dy), larger, 8 * np.finfo(dtype).eps)


@xdev.guvectorize("(n),(n)->(n)")
def rows(x, y, out):
    for k in range(x.shape[0]):
        out[k] = helper(x[k], y[k]) + xp.clip(x[k], 0.0, 0.5)


@xdev.kernel
def points(i, x, y, out):
    out[i] = helper(x[i], y[i]) + xnp.clip(x[i], 0.0, 0.5)


@xdev.vectorize
def plus_one(x):
    return x + 1


plus_one.__name__ = "sin"  # a user's function of such a name is his


def test_a_users_function_of_such_a_name_is_his(device):
    found = called(
        device, xdev.vectorize(lambda x, y: plus_one(x) + xp.add(x, y)), U, V
    )
    np.testing.assert_allclose(found, U + 1 + U + V)


@pytest.mark.filterwarnings("ignore:f. no source")  # of which bounds are not checked
def test_functions_without_source_have_them(device):
    function = written("lambda x: xp.sin(x) * tau + sin(x) * np.pi", without_source)
    found = called(device, xdev.vectorize(function), U)
    np.testing.assert_allclose(found, np.sin(U) * 3 * np.pi, rtol=1e-14)
    text = "def f(i, x, out): xp.atomic.add(out, 0, xp.sin(x[i]))"
    x, out = there(device, U, np.zeros(1))
    xdev.kernel(without_source(text, xp=xp))[4](x, out)
    np.testing.assert_allclose(xdev.to_numpy(out), [np.sin(U).sum()])


def test_what_compilers_lack_is_told_by_the_name_as_written():
    lacking = {f"np.{name}": rf"no numpy\.{name}: use operators" for name in LACKING}
    for name, words in {**lacking, "xp.sort": "no .*sort.*numbers"}.items():
        args = "x, x" if name == "np.heaviside" else "x"
        text = f"lambda x: {name}({args})"
        function = xdev.vectorize(eval(text, {"np": np, "xp": xp}))  # noqa: S307 - ours
        with pytest.raises(TypeError, match=words):
            function(U)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_powers_of_two_beyond_32_bits(device):
    x = np.array([1, 1, 3, -0.0, INF, NAN, 1e-30, 1e30, -2])
    k = np.array([-(2**63), 2**63 - 1, -(2**40), 5, -2000, 3, 60, 2**32, -(2**31)])
    expected = np.ldexp(x, k)
    powers = xdev.vectorize(lambda x, k: (np.ldexp(x, k), math.ldexp(x, k)))
    for found in called(device, powers, x, k):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
