"""Special values of elementwise functions, on every device.

The complex ones are checked against ``cmath``, which follows C99's Annex G, and against
the standard's own rows for what ``cmath`` lacks; ``remainder`` against Python's ``%``.
"""

import cmath
import math
from itertools import product

import numpy as np
import pytest

import xdev

INF, NAN, PI = math.inf, math.nan, math.pi
PARTS = [0.0, 0.5, 1.0, 2.5, 4.0, 20.0, INF]
PARTS = [*PARTS, *(-part for part in PARTS), NAN]
GRID = [complex(x, y) for x, y in product(PARTS, PARTS)]
BY_CMATH = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log",
    "log10", "sin", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip
#: Python's are NaN where the standard knows one part; rows of the standard are below.
FINITE_ONLY = ("acosh", "tan", "tanh")
KINDS = ["complex64", "complex128"]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def computed(name, values, kind, device, out=False):
    """Apply a function of xdev's on a device; give the result on the host."""
    x = xdev.asarray(np.asarray(values, dtype=kind), device=device)
    if out:
        target = xdev.empty(x.shape, dtype=x.dtype, device=device)
        assert getattr(xdev, name)(x, out=target) is target
        return xdev.to_numpy(target)
    return xdev.to_numpy(getattr(xdev, name)(x))


def by_cmath(name, z):
    """Return C99's value, or None where ``cmath`` raises what C99 gives a value for."""
    try:
        return getattr(cmath, name)(z)
    except (ValueError, OverflowError):
        return None


def same(result, wanted, tolerance, signed=True):
    if math.isnan(wanted) or math.isnan(result):
        return math.isnan(wanted) and math.isnan(result)
    if not signed:
        result, wanted = abs(result), abs(wanted)
    if math.isinf(wanted) or math.isinf(result) or wanted == 0 == result:
        return result == wanted and math.copysign(1, result) == math.copysign(1, wanted)
    return math.isclose(result, wanted, rel_tol=tolerance, abs_tol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BY_CMATH)
def test_complex_functions_have_c99s_special_values(device, name, kind):
    results = computed(name, GRID, kind, device)

    tolerance = 2e-6 if kind == "complex64" else 1e-14
    checked = 0
    for z, result in zip(GRID, results, strict=True):
        wanted = by_cmath(name, z)
        if wanted is None or (name in FINITE_ONLY and not cmath.isfinite(z)):
            continue
        # C99 leaves signs open beside NaN, and of functions of an infinite angle.
        logarithm = name in ("log", "log10") and not cmath.isnan(z)
        signed = cmath.isfinite(z) or logarithm
        for part in ("real", "imag"):
            given, expected = getattr(result, part), getattr(wanted, part)
            assert same(given, expected, tolerance, signed), (name, z, result, wanted)
        checked += 1
    assert checked > 100


#: Names; the parts of an argument; the parts of the value that the standard lays down.
ROWS = [
    ("log", -0.0, 0.0, -INF, PI), ("log2", -0.0, 0.0, -INF, PI / math.log(2)),
    ("log2", INF, 1.0, INF, 0), ("log2", 1.0, INF, INF, PI / 2 / math.log(2)),
    ("log1p", -1.0, 0.0, -INF, 0), ("log1p", 1.0, INF, INF, PI / 2),
    ("log1p", -INF, 1.0, INF, PI), ("log1p", INF, NAN, INF, NAN),
    ("log1p", NAN, INF, INF, NAN), ("log1p", NAN, 1.0, NAN, NAN),
    ("log1p", -2.5, -0.0, math.log(1.5), -PI), ("expm1", -0.0, 0.0, 0, 0),
    ("expm1", INF, 0.0, INF, 0), ("expm1", INF, 2.5, -INF, INF),
    ("expm1", -INF, 2.5, -1, 0), ("expm1", NAN, 0.0, NAN, 0),
    ("expm1", 1.0, INF, NAN, NAN), ("tanh", 0.0, INF, 0, NAN),
    ("tanh", 1.0, INF, NAN, NAN), ("tanh", INF, 2.5, 1, 0), ("tanh", NAN, 0.0, NAN, 0),
    ("tanh", -0.0, INF, -0.0, NAN), ("tanh", NAN, 1.0, NAN, NAN),
    ("acosh", 0.0, 0.0, 0, PI / 2), ("acosh", 2.5, INF, INF, PI / 2),
    ("acosh", 2.5, NAN, NAN, NAN), ("acosh", -INF, 2.5, INF, PI),
    ("acosh", INF, NAN, INF, NAN), ("acosh", NAN, INF, INF, NAN),
    ("tan", INF, 0.0, NAN, 0), ("tan", NAN, -0.0, NAN, -0.0),
]  # fmt: skip
STANDARD = [(name, complex(a, b), complex(c, d)) for name, a, b, c, d in ROWS]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "z", "wanted"), STANDARD)
def test_complex_functions_have_the_standards_special_values(
    device, name, z, wanted, kind
):
    for out in (False, True):
        (result,) = computed(name, [z], kind, device, out)
        for part in ("real", "imag"):
            given, expected = getattr(result, part), getattr(wanted, part)
            assert same(given, expected, 2e-6), (name, z, result)


@pytest.mark.parametrize("name", ["expm1", "log1p"])
@pytest.mark.parametrize("z", [1e-9 + 0j, 1e-9 + 1e-9j, -1e-9 + 2e-9j, 1e-9 - 0.25j])
def test_complex_expm1_and_log1p_are_exact_near_0(device, name, z):
    (result,) = computed(name, [z], "complex128", device)

    # Both parts by real functions that do not cancel.
    x, y = z.real, z.imag
    wanted = {
        "expm1": complex(
            math.expm1(x) * math.cos(y) - 2 * math.sin(y / 2) ** 2,
            math.exp(x) * math.sin(y),
        ),
        "log1p": complex(math.log1p(x * (2 + x) + y * y) / 2, math.atan2(y, 1 + x)),
    }[name]
    assert same(result.real, wanted.real, 1e-15)
    assert math.isclose(result.real, wanted.real, rel_tol=1e-14)
    assert math.isclose(result.imag, wanted.imag, rel_tol=1e-14)


@pytest.mark.parametrize("name", ["expm1", "log1p", "tanh"])
def test_complex_functions_are_the_same_with_keywords(name):
    x = np.array([1e-9 + 1e-9j, complex(INF, 2.5), 3 - 4j, -1 + 0j])
    mask, function = np.array([True, True, False, False]), getattr(xdev, name)
    for dtype in ("D", "F"):
        out, given = np.full(4, 7, dtype), {"where": mask, "casting": "same_kind"}
        assert function(x, out=out, **given) is out
        np.testing.assert_array_equal(out, [*function(x[:2]).astype(dtype), 7, 7])
        found = function(x[:2], dtype=dtype)
        np.testing.assert_array_equal(found, out[:2], strict=True)
    assert function(x[0], order="C") == function(x[0])


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_quotients_of_floats_beside_whole_numbers(device, name, kind):
    rng = np.random.default_rng(8)
    y = np.tile((0.1 * rng.integers(1, 2000, 5000)).astype(kind), 4)
    whole = y * rng.integers(-(2**22), 2**22, y.size).astype(kind)
    x = np.concat([whole, np.nextafter(whole, y), np.nextafter(whole, -y)])
    y = np.tile(y, 3) * np.where(rng.random(x.size) < 0.5, -1, 1).astype(kind)
    wanted = getattr(np, name)(x, y)
    made = getattr(xdev, name)(*(xdev.asarray(z, device=device) for z in (x, y)))
    np.testing.assert_array_equal(xdev.to_numpy(made), wanted, strict=True)
