"""The C++ expressions of the elementwise functions: NumPy's results.

A compiler for the host makes functions of them, with CuPy's complex numbers underneath,
so that the formulas are checked without a GPU; the kernels are compiled for one, too.
"""

import ctypes
import shutil
import subprocess
from itertools import product

import numpy as np
import pytest
from running import host, there

import xdev
from xdev.compile.cubins import FOLDER, computed
from xdev.ufunc import expressions

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
CHARS = "?bBhHilILqQefdFD"
HOST = """
#define __device__
#define __host__
#define __forceinline__ inline
#include <cmath>
#include <math.h>
#include <cstring>
using std::isfinite; using std::isinf; using std::isnan; using std::signbit;
struct uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static inline unsigned __float_as_uint(float x) { return *(unsigned*)&x; }
static inline float __uint_as_float(unsigned x) { return *(float*)&x; }
static inline unsigned __funnelshift_r(unsigned, unsigned, unsigned) { return 0; }
"""
INF, NAN = np.inf, np.nan
PARTS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -2.5, 7.0, 20.0, -1e10, INF, -INF, NAN]
#: The difference allowed [ulp]; the host's C library is within it, too.
ULP = 4
LOOSE = {"logaddexp": 16, "pow": 16}


def typings(name):
    """Return the function's typings for inputs of one data type each, and of two."""
    ufunc, found = np.rint if name == "round" else getattr(np, name), {}
    pairs = [(char,) * ufunc.nin for char in CHARS]
    if ufunc.nin == 2:
        pairs += [("q", "Q"), ("Q", "q")]
    for pair in pairs:
        if name == "round" and np.dtype(pair[0]).kind in "iu":
            ufunc = np.positive
        try:
            spec = expressions.typed(name, ufunc, tuple(map(np.dtype, pair)))
        except TypeError:
            continue
        if not (name == "nextafter" and "e" in spec.types):  # in PTX's own words
            found[spec.types] = spec
    return list(found.values())


def values(dtype):
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        few = [0, 1, 2, 3, 7, 8, 31, 63, 64, 100, ends.max, ends.max - 1, ends.min]
        few += [] if dtype.kind == "u" else [-1, -2, -3, -7, -100, ends.min + 1]
        return np.array(few, dtype)
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        more = [limits.tiny, limits.max, -limits.max, limits.smallest_subnormal, 1e-3]
        return np.array([*PARTS, *more, 3.0, -3.0, 1e30], dtype)
    return np.array([complex(x, y) for x, y in product(PARTS, PARTS)], dtype)


def arguments(spec):
    each = [values(dtype) for dtype in spec.inputs]
    if len(each) == 1:
        return each
    if len(each[0]) > 100:  # complex numbers: not all pairs of them
        rng = np.random.default_rng(0)
        picked = [rng.integers(0, len(x), 5000) for x in each]
        return [x[places] for x, places in zip(each, picked, strict=True)]
    return [np.ascontiguousarray(x.ravel()) for x in np.meshgrid(*each)]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Return a function of the host for each name's typing, all compiled at once."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    pytest.importorskip("cupy")

    specs = [spec for name in expressions.EXPRESSIONS for spec in typings(name)]
    folder = tmp_path_factory.mktemp("expressions")
    parts = []
    for place, spec in enumerate(specs):
        code = expressions.source(spec.name, spec.inputs, spec.outputs)
        # Each in a space of its own, since all have the same names.
        rest = code.partition("namespace xdev {\n")[2]
        rest = rest.replace("xdev_function", f"f{place}").replace("R", f"R{place}")
        rest = rest.replace("value(", f"value{place}(")
        taken = rest.partition(f"f{place}(")[2].partition(")")[0].split(", ")
        step = ", ".join(f"{x.split()[-1]} + i" for x in taken)
        parts += [
            f"namespace xdev {{\n{rest}",
            f'extern "C" void run{place}(long n, {", ".join(taken)})',
            f"{{ for (long i = 0; i < n; ++i) f{place}({step}); }}\n",
        ]
    text = HOST
    text += "#include <cupy/complex.cuh>\n#define XDEV_COMPLEX\n"
    text += '#include "functions.cuh"\n' + "".join(parts)
    file, made = folder / "f.cpp", folder / "f.so"
    file.write_text(text)
    includes = [f"-I{FOLDER}", f"-I{expressions._headers()}"]
    options = "-std=c++20 -DXDEV_BLOCK=256 -O0 -w -shared -fPIC -fwrapv"
    command = compiler, *options.split(), *includes, file, "-o", made
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(made))
    return {
        (spec.name, spec.types): getattr(library, f"run{place}")
        for place, spec in enumerate(specs)
    }


def run(function, spec, arrays):
    arrays = [x.astype(computed(x.dtype)) for x in arrays]
    out = np.empty(arrays[0].shape, computed(spec.outputs[0]))
    addresses = [ctypes.c_void_p(x.ctypes.data) for x in (*arrays, out)]
    function(ctypes.c_long(out.size), *addresses)
    return out.astype(spec.outputs[0])


def wanted(spec, arrays):
    if spec.name == "pow" and spec.inputs[0].kind in "iu":
        bits = 8 * spec.outputs[0].itemsize
        powers = [
            pow(int(x), int(y), 2**bits) if y >= 0 else _inverse(int(x), int(y))
            for x, y in zip(*arrays, strict=True)
        ]
        unsigned = [power % 2**bits for power in powers]
        return np.array(unsigned, f"u{bits // 8}").view(spec.outputs[0])
    own = getattr(xdev, spec.name)
    return np.asarray(own(*arrays))


def _inverse(x, y):
    """Return a whole number's negative power, rounded towards 0."""
    return x ** (y % 2) if x in (1, -1) else 0


def excused(spec, arrays):
    """Say where NumPy departs from the standard, or leaves the result open."""
    none = np.zeros(arrays[0].shape, bool)
    if spec.name == "floor_divide" and spec.inputs[0].kind == "f":
        return np.isinf(arrays[0]) | np.isinf(arrays[1])
    return none


#: Complex functions whose special values are C99's on the CPU, too.
MENDED = ("acosh", "expm1", "log", "log10", "log1p", "log2", "tan", "tanh")


def agree(spec, arrays, result, expected):
    if result.dtype.kind == "c":
        return _complex_agree(spec, arrays, result, expected)
    right = near(result, expected, LOOSE.get(spec.name, ULP)) | excused(spec, arrays)
    if spec.name in ("maximum", "minimum"):
        right |= (result == 0) & (expected == 0)
    if spec.name == "hypot":  # CUDA's is within 2 ulp, beyond the largest number, too
        largest = np.finfo(expected.dtype).max
        right |= np.isinf(result) & (expected >= largest)
    return right


def assert_agree(spec, arrays, result, expected):
    assert result.dtype == expected.dtype
    right = agree(spec, arrays, result, expected)
    wrong = [x[~right][:5] for x in (*arrays, result, expected)]
    assert right.all(), (spec.types, wrong)


def _complex_agree(spec, arrays, result, expected):
    tolerance = 3e-5 if result.dtype == np.complex64 else 1e-12
    right = np.ones(result.shape, bool)
    for one, other in ((result.real, expected.real), (result.imag, expected.imag)):
        close = np.isclose(one, other, rtol=tolerance, atol=0, equal_nan=True)
        signed = np.isnan(other) | (np.signbit(one) == np.signbit(other))
        if spec.name not in MENDED:  # cancellation; the sign of zero
            close |= np.abs(one - other) <= tolerance * np.abs(expected)
            signed |= True
        right &= close & (signed | (other != 0))
    if spec.name == "expm1":
        # NumPy has NaN for 0 times an overflow; a sign of zero is open at -inf - inf j.
        (x,) = arrays
        right |= (x.real > 20) & np.isfinite(x)
        right |= np.isneginf(x.real) & np.isinf(x.imag) & (result.real == -1)
    if spec.name not in MENDED:  # special values: test_special_values
        right |= ~np.logical_and.reduce([np.isfinite(x) for x in arrays])
        right |= np.logical_or.reduce([np.abs(x) > 1e4 for x in arrays])
    if spec.name in ("pow", "reciprocal", "divide"):
        right |= np.logical_or.reduce([x == 0 for x in arrays])
    return right


def near(result, expected, ulp):
    if result.dtype.kind != "f":
        return result == expected
    with np.errstate(all="ignore"):
        step = np.spacing(np.maximum(np.abs(result), np.abs(expected)))
        close = np.abs(result - expected) <= ulp * step
    same = (result == expected) & (np.signbit(result) == np.signbit(expected))
    return close & (expected != 0) | same | (np.isnan(result) & np.isnan(expected))


@pytest.mark.parametrize("name", expressions.EXPRESSIONS)
def test_they_give_what_numpy_gives(compiled, name):
    specs = typings(name)
    assert specs
    for spec in specs:
        arrays, function = arguments(spec), compiled[name, spec.types]
        result, expected = run(function, spec, arrays), wanted(spec, arrays)
        assert_agree(spec, arrays, result, expected)


LAYOUTS = {
    "contiguous": lambda x: x,
    "every other": lambda x: x.repeat(2)[::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "from the second on": lambda x: np.concatenate([x[:1], x])[1:],
}


@pytest.mark.cuda
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", expressions.EXPRESSIONS)
def test_they_do_on_a_gpu_in_any_layout(cuda, name, layout):
    own = getattr(xdev, name)
    for spec in typings(name):
        arrays = arguments(spec)
        expected = wanted(spec, arrays)
        there = [on_gpu(LAYOUTS[layout](x), layout, cuda) for x in arrays]

        made = own(*there)
        result = xdev.to_numpy(made)
        out = xdev.empty(made.shape, dtype=made.dtype, device=cuda)
        again = own(*there, out=out)

        assert again is out
        assert xdev.device_of(made) == cuda
        np.testing.assert_array_equal(xdev.to_numpy(out), result)
        assert_agree(spec, arrays, result, expected)


def on_gpu(x, layout, cuda):
    """Return an array there of the layout that one has here."""
    if layout == "contiguous":
        return xdev.asarray(x, device=cuda)
    whole = xdev.asarray(np.concatenate([x.repeat(2), x[:1]]), device=cuda)
    if layout == "every other":
        return whole[:-1:2]
    if layout == "backwards":
        return xdev.asarray(x[::-1].copy(), device=cuda)[::-1]
    whole = xdev.asarray(np.concatenate([x[:1], x]), device=cuda)
    return whole[1:]


@pytest.mark.parametrize("number", [300, -1, 2**40, 2**63, 2**70, -(2**70)])
@pytest.mark.parametrize("name", ["equal", "less", "greater_equal"])
@pytest.mark.parametrize("kind", ["uint8", "int64", "uint64"])
def test_integers_are_compared_with_numbers_that_they_do_not_hold(
    device, name, kind, number
):
    values, own, numpys = (
        np.asarray([0, 5, 100], kind),
        getattr(xdev, name),
        getattr(np, name),
    )
    (x,) = there(device, values)
    for other in (5, number) * 2:  # the second is not for what the first one made
        assert host(own(x, other)).tolist() == numpys(values, other).tolist()


@pytest.mark.parametrize("char", "gGO")
def test_a_data_type_that_cuda_lacks_is_refused(char):
    double, asked = np.dtype(float), np.dtype(char)
    for inputs, signature in (
        ((double, double), ((None, None), (asked,))),
        ((asked, asked), ((None, None), (None,))),
    ):
        with pytest.raises(TypeError, match=r"xdev\.add has no loop for .* on CUDA"):
            expressions.typed("add", np.add, inputs, signature)
