"""Mathematics on the CPU is as accurate as promised, and as special as C's.

Results are compared with more digits: float64 for float32, else ``long double`` or
mpmath. Special values and warnings are compared with the C library's.
"""

import ctypes
import ctypes.util
import itertools
import math

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st
from mpmath import mp

import xdev

UNARY = (
    *("cos", "erf", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2"),
    *("sin", "tan", "tanh"),
)
NAMES = (*UNARY, "fmod", "pow")
both = pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8")], ids=str)
ULPS = {"f": 2, "d": 4}  # what is promised
LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
BITS = {"f": np.uint32, "d": np.uint64}


def _vectorized(name):
    if name == "pow":
        return xdev.vectorize(lambda x, y: x**y)
    if name == "fmod":
        return xdev.vectorize(lambda x, y: np.fmod(x, y))  # noqa: PLW0108 - a source
    function = getattr(math, name)
    return xdev.vectorize(lambda x: function(x))  # noqa: PLW0108 - it has a source


def arity_of(name):
    return 2 if name in {"fmod", "pow"} else 1


VECTORIZED = {name: _vectorized(name) for name in NAMES}


def library(name, *arrays):
    """Return what C's function gives, element by element."""
    dtype = arrays[0].dtype
    kind = {"f": ctypes.c_float, "d": ctypes.c_double}[dtype.char]
    function = LIBM[name + {"f": "f", "d": ""}[dtype.char]]
    function.restype, function.argtypes = kind, [kind] * len(arrays)
    values = [function(*map(float, x)) for x in zip(*arrays, strict=True)]
    return np.array(values, dtype)


def exact(name, *arrays):
    """Return the results with more digits than the arrays have."""
    wide = np.float64 if arrays[0].dtype == np.float32 else np.longdouble
    if name == "erf":
        if wide is np.float64:
            return np.array([math.erf(x) for x in arrays[0]])
        with mp.workprec(80):
            return np.array([wide(mp.nstr(mp.erf(float(x)), 24)) for x in arrays[0]])
    function = np.power if name == "pow" else getattr(np, name)
    with np.errstate(all="ignore"):
        return function(*(x.astype(wide) for x in arrays))


def distance(results, expected):
    """Return how far results are off, in units in the last place; inf where wrong.

    Beyond the format's range infinity is right, with half a unit to spare.
    """
    info = np.finfo(results.dtype)
    with np.errstate(all="ignore"):
        size = np.abs(expected)
        unit = np.spacing(np.clip(size, info.tiny, info.max).astype(results.dtype))
        off = np.abs(results - expected) / unit
        large = size > info.max
        off[large] = np.where(np.isinf(results), 0, info.max - np.abs(results))[large]
    off[np.isnan(results) & np.isnan(expected)] = 0
    off[results == expected] = 0
    off[np.isnan(off)] = np.inf
    return off


SIZE = 2_000
CENTRES = [0.0, 0.5, 0.9, 1.0, -1.0, 2.0, np.pi / 2, np.pi, 10.0, -10.0, 88.0, -104.0]
SCALES = [1e-12, 1e-6, 1e-3, 0.1, 1.0, 20.0, 1e3, 1e5, 1e8]


def check_accuracy(name, *arrays):
    with np.errstate(all="ignore"):
        results = VECTORIZED[name](*arrays)
    off = distance(results, exact(name, *arrays))
    worst = int(np.argmax(off))
    at = [float(x[worst]) for x in arrays]
    assert off[worst] <= ULPS[arrays[0].dtype.char], (name, at, results[worst])


def any_bits(rng, name, dtype):
    kind, shape = BITS[dtype.char], (arity_of(name), SIZE)
    return rng.integers(0, np.iinfo(kind).max, shape, kind, endpoint=True).view(dtype)


def around_a_number(rng, name, dtype):
    values = rng.uniform(-1, 1, (arity_of(name), SIZE))
    return (rng.choice(CENTRES) + rng.choice(SCALES) * values).astype(dtype)


def near_quarter_turns(rng, _, dtype):
    turns = np.floor(2 ** rng.uniform(0, 30, SIZE)) * (np.longdouble(np.pi) / 2)
    nearest = turns.astype(dtype)
    above = np.nextafter(nearest, dtype.type(np.inf))
    return [np.concatenate([nearest, above, np.nextafter(above, dtype.type(np.inf))])]


def powers_within_the_format(rng, _, dtype):
    info = np.finfo(dtype)
    x = np.exp2(rng.uniform(info.minexp, info.maxexp, SIZE)).astype(dtype)
    near = (1 + rng.uniform(-1, 1, SIZE) * 2 ** rng.uniform(-20, 0, SIZE)).astype(dtype)
    base = np.concatenate([x, near[near > 0]])
    limit = rng.uniform(info.minexp - info.nmant - 2, info.maxexp, len(base))
    with np.errstate(divide="ignore"):
        return base, (limit / np.log2(base.astype("f8"))).astype(dtype)


@both
@pytest.mark.parametrize(
    ("name", "samples"),
    [
        *((name, each) for name in NAMES for each in (any_bits, around_a_number)),
        *((name, near_quarter_turns) for name in ("sin", "cos", "tan")),
        ("pow", powers_within_the_format),
    ],
)
@given(seed=st.integers(0, 2**32))
def test_results_are_as_accurate_as_promised(name, samples, dtype, seed):
    arrays = samples(np.random.default_rng(seed), name, dtype)
    if name == "erf" and dtype == np.float64:
        arrays = [x[: SIZE // 20] for x in arrays]  # mpmath takes its time
    check_accuracy(name, *arrays)


NUMBERS = [0, 0.5, 1, 1.5, 2, 3, 10, 87.5, 88.5, 88.73, 103.5, 104.5, 127.5, 128, 150]
NUMBERS += [709.7, 709.8, 745.5, 1023.5, 1024, 1075, 2**17 + 1, 2**24 + 1, 2**27 + 2]
NUMBERS += [2.0**53, 1e-20, 1e30, np.pi, np.inf, np.nan]


def specials(dtype):
    info = np.finfo(dtype)
    limits = [info.max, info.max / 2, info.tiny, info.tiny * 0.75]
    limits += [info.smallest_subnormal, 1 - info.epsneg, 1 + info.eps]
    values = np.array(NUMBERS + limits, dtype)
    return np.concatenate([values, -values])


def check_special(name, *arrays):
    """Compare bits where C gives what is exact, else to some units."""
    dtype = arrays[0].dtype
    expected = library(name, *arrays)
    with np.errstate(all="ignore"):
        wide = VECTORIZED[name](*(np.repeat(x, 64) for x in arrays))[::64]
        single = [VECTORIZED[name](*x) for x in zip(*arrays, strict=True)]
    for results in (wide, np.array(single, dtype)):
        special = ~np.isfinite(expected) | (expected == 0)
        kinds = [r[special].view(BITS[dtype.char]) for r in (results, expected)]
        same = (kinds[0] == kinds[1]) | (
            np.isnan(results[special]) & np.isnan(expected[special])
        )
        assert same.all(), [x[special][~same] for x in (*arrays, results, expected)]
        off = distance(results, expected.astype(np.longdouble))
        assert off.max() <= ULPS[dtype.char] + 1
        assert (np.signbit(results) == np.signbit(expected))[~np.isnan(expected)].all()


@both
@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_the_c_librarys(name, dtype):
    values = specials(dtype)
    check_special(name, *map(np.ravel, np.meshgrid(*[values] * arity_of(name))))


def reported(function, *args):
    """Return the floating point errors that NumPy tells of."""
    told = set()
    kinds = dict.fromkeys(("divide", "over", "invalid"), "call")
    with np.errstate(**kinds, under="ignore", call=lambda kind, _: told.add(kind)):
        function(*args)
    return {kind.removesuffix(" encountered") for kind in told}


def due(name, result, args):
    """Return the errors that Annex F of C99 has for a result."""
    if any(map(np.isnan, args)):
        return set()
    if np.isnan(result):
        return {"invalid value"}
    if np.isinf(result) and not any(map(np.isinf, args)):
        pole = name.startswith("log") or (name == "pow" and args[0] == 0)
        return {"divide by zero" if pole else "overflow"}
    return set()


@both
@pytest.mark.parametrize("name", NAMES)
def test_warnings_are_those_of_c(name, dtype):
    arity = arity_of(name)
    for args in itertools.product(specials(dtype)[:: 2 * arity - 1], repeat=arity):
        (result,) = library(name, *np.array(args)[:, None])
        told = reported(VECTORIZED[name], *(np.full(37, x) for x in args))
        assert told == due(name, result, args), args


FORMULA = xdev.vectorize(
    lambda x, y: math.sin(x) * math.exp(y) + math.log(x) - math.tanh(x * y) + x**y
)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_results_depend_on_values_alone(dtype):
    x, y = np.random.default_rng(0).uniform(0.1, 3, (2, 301)).astype(dtype)
    expected = FORMULA(x, y)

    for start in range(1, 20):
        assert np.array_equal(FORMULA(x[start:], y[start:]), expected[start:])
        assert FORMULA(x[start], y[start]) == expected[start]
    for step in (2, 3, -1):
        assert np.array_equal(FORMULA(x[::step], y[::step]), expected[::step])
    assert np.array_equal(
        FORMULA(x, y[:, None]), FORMULA(x + 0 * y[:, None], y[:, None])
    )
    apart = np.empty((301, 5), dtype)
    apart[:, 2] = x
    assert np.array_equal(FORMULA(apart[:, 2], y), expected)


@pytest.mark.parametrize(("dtype", "rtol"), [("f4", 1e-5), ("f8", 1e-13)])
def test_other_functions_are_the_c_librarys(dtype, rtol):
    def function(x):
        total = math.acos(x) + math.asin(x) + math.atan(x) + math.atanh(x)
        total += math.cosh(x) - math.sinh(x) + math.asinh(x) + math.acosh(x + 1)
        return total + math.erfc(x) + math.gamma(x) + math.lgamma(x)

    x = np.linspace(0.05, 0.95, 50).astype(dtype)
    assert xdev.vectorize(function)(x) == pytest.approx(
        list(map(function, x)), rel=rtol
    )


REMAINDERS = {
    np.fmod: VECTORIZED["fmod"],
    np.remainder: xdev.vectorize(lambda x, y: x % y),
    np.floor_divide: xdev.vectorize(lambda x, y: x // y),
    np.divmod: xdev.vectorize(lambda x, y: divmod(x, y)),  # noqa: PLW0108 - likewise
}


def check_remainders(x, y):
    word = BITS[x.dtype.char]
    for numpys, ours in REMAINDERS.items():
        with np.errstate(all="ignore"):
            expected, found = np.array([numpys(x, y), ours(x, y)])
        same = expected.view(word) == found.view(word)
        wrong = ~(same | (np.isnan(expected) & np.isnan(found)))
        wrong = wrong.reshape(-1, x.size).any(0)
        assert not wrong.any(), (numpys, x[wrong][0], y[wrong][0])


def of_near_exponents(rng, name, dtype):
    word, (y, _) = BITS[dtype.char], any_bits(rng, name, dtype)
    few = rng.integers(0, 1 << (np.finfo(dtype).nmant + 6), SIZE, word)
    return (y.view(word) ^ few).view(dtype), y


def beside_multiples(rng, _, dtype):
    """Return products of as many digits, of divisors, and their neighbours."""
    digits, less = rng.integers(1, 60), rng.choice([0, 0.5, 1, 2])
    sign = rng.choice([-1, 1], (2, SIZE))
    y = sign[0] * np.ldexp(1 + rng.random(SIZE), rng.integers(-60, 40, SIZE))
    y = y.astype(dtype)
    count = np.floor(rng.random(SIZE) * 2.0**digits)
    count[::5] = 2.0**digits - less
    x = (sign[1] * count * y).astype(dtype)
    return np.concatenate([x, np.nextafter(x, y), np.nextafter(x, -y)]), np.tile(y, 3)


def of_subnormal_numbers(rng, name, dtype):
    """Return them, and numbers up to two to the power of 80 times as large, and any."""
    word, fraction = BITS[dtype.char], np.finfo(dtype).nmant
    least = rng.integers(1, 1 << fraction, SIZE, word).view(dtype)
    large = np.ldexp(least, rng.integers(0, 80, SIZE, np.int32))[::-1]
    other, _ = any_bits(rng, name, dtype)
    x = np.concatenate([least, large, large, least, other])
    return x, np.concatenate([large, least, large[::-1], other, least])


@both
@pytest.mark.parametrize(
    "pairs", [any_bits, of_near_exponents, beside_multiples, of_subnormal_numbers]
)
@given(seed=st.integers(0, 2**32))
def test_remainders_and_whole_quotients_are_numpys(dtype, pairs, seed):
    check_remainders(*pairs(np.random.default_rng(seed), "fmod", dtype))


@both
def test_a_rare_divisor_changes_no_other_lane(dtype):
    x, y = np.random.default_rng(0).uniform(1, 9, (2, 64)).astype(dtype)
    for k in range(x.size):
        check_remainders(x, np.where(np.arange(64) == k, dtype.type(np.inf), y))


@both
def test_remainders_beside_the_librarys_own(dtype):
    kind, name = numba.from_dtype(dtype), {"f": "fmodf", "d": "fmod"}[dtype.char]
    own = numba.types.ExternalFunction(name, kind(kind, kind))
    f = xdev.vectorize(lambda x, y: own(x, y) + x % y)
    x, y = np.random.default_rng(0).uniform(1, 9, (2, 64)).astype(dtype)
    np.testing.assert_array_equal(f(x, y), np.fmod(x, y) + x % y)


@both
def test_no_quotient_underflows(dtype):
    x, y = np.array([[np.finfo(dtype).tiny], [np.finfo(dtype).max]]).repeat(64, 1)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(REMAINDERS[np.fmod](x, y), x)
