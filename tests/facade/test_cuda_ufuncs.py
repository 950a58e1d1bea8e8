"""The CUDA source of mended elementwise functions, without a GPU.

NVRTC compiles it for one, and a C++ compiler for the host, with CuPy's own complex
functions underneath both times: so the formulas are checked where no GPU is.
"""

import ctypes
import math
import shutil
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import xdev

cupy = pytest.importorskip("cupy")

from xdev import _optional  # noqa: E402 - after the check for CuPy
from xdev.facade.cuda_differences import mended, ufuncs  # noqa: E402

MENDED = ["acosh", "expm1", "log", "log10", "log1p", "log2", "tan", "tanh"]
INCLUDES = [
    option.removeprefix("-I")
    for option in cupy._core.core.assemble_cupy_compiler_options(())
    if option.startswith("-I")
]
LOOPS = "\n".join(
    f'extern "C" KERNEL void {name}_{T}(const complex<{T}>* x, complex<{T}>* y, int n)'
    f"{{ for (int i = 0; i < n; ++i) y[i] = xdev_{name}(x[i]); }}"
    for name in MENDED
    for T in ("float", "double")
) + "\n".join(
    f'extern "C" KERNEL void remainder_{T}(const {T}* x, const {T}* y, {T}* z, int n)'
    f"{{ for (int i = 0; i < n; ++i) z[i] = xdev_remainder(x[i], y[i]); }}"
    for T in ("float", "double")
)
HOST = """
#define __host__
#define __device__
#define KERNEL
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <math.h>
#include <cupy/complex.cuh>
using std::isfinite; using std::isinf; using std::isnan;
"""
HALF = """
#define KERNEL __global__
extern "C" __global__ void half_remainder(float16* x) {
    x[0] = xdev_remainder<float>(x[1], x[2]);
}
"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_the_source_compiles_for_gpus(arch):
    core = _optional.cuda_core()
    headers = ["cupy/float16.cuh", *cupy._core.core._cupy_header_list]
    source = "".join(f"#include <{header}>\n" for header in headers)
    source += ufuncs.SOURCE.read_text() + HALF + LOOPS
    options = core.ProgramOptions(arch=arch, std="c++17", include_path=INCLUDES)

    compiled = core.Program(source, "c++", options).compile("cubin")

    assert len(compiled.code) > 10_000


@pytest.mark.parametrize("name", [*MENDED, "remainder"])
def test_other_data_types_keep_cupys_loops(name):
    made = mended()[name]
    own = getattr(cupy, "arccosh" if name == "acosh" else name)

    ours = set("efd" if name == "remainder" else "FD")
    assert (made.nin, made.nout) == (own.nin, own.nout)
    assert made.types == own.types
    for loop, cupys in zip(made._ops.ops, own._ops.ops, strict=True):
        if loop.in_types[0].char in ours:
            assert f"xdev_{name}" in loop.routine
        else:
            assert loop.routine == cupys.routine
    assert own._preamble == ""  # else their loops would lack it


@pytest.mark.parametrize("name", ["and", "or", "xor", "not"])
def test_truth_values_of_complex_numbers_have_loops(name):
    made, own = mended()[f"logical_{name}"], getattr(cupy, f"logical_{name}")

    assert made.types[: len(own.types)] == own.types
    added = made.types[len(own.types) :]
    assert added == [f"{char * own.nin}->?" for char in "FD"]


@pytest.mark.parametrize("name", ["atan2", "copysign", "hypot", "nextafter"])
def test_real_functions_have_no_complex_loops(name):
    own = getattr(cupy, "arctan2" if name == "atan2" else name)

    assert [x for x in own.types if x[0] not in "FD"] == mended()[name].types


def test_signs_of_bools_are_refused():
    made = mended()["sign"]

    assert made.types == ["?->?", *cupy.sign.types]
    with pytest.raises(TypeError, match=r"xdev\.sign takes no bool"):
        made._ops.ops[0].error_func()


@pytest.fixture(scope="module")
def on_host(tmp_path_factory):
    """The source as a library of the host."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("ufuncs")
    text, made = folder / "ufuncs.cpp", folder / "ufuncs.so"
    text.write_text(HOST + ufuncs.SOURCE.read_text() + LOOPS)
    options = ["-std=c++17", "-O1", "-w", "-shared", "-fPIC"]
    own = str(Path(cupy.__file__).parent)  # CUDA's own headers are not the host's
    options += [f"-I{path}" for path in INCLUDES if path.startswith(own)]
    subprocess.run([compiler, *options, str(text), "-o", str(made)], check=True)
    return ctypes.CDLL(str(made))


def run(library, name, *arrays):
    kind = "float" if arrays[0].real.dtype == np.float32 else "double"
    out = np.empty_like(arrays[0])
    addresses = [ctypes.c_void_p(x.ctypes.data) for x in (*arrays, out)]
    getattr(library, f"{name}_{kind}")(*addresses, out.size)
    return out


def grid(kind):
    limits = np.finfo(kind)
    parts = [0.0, 0.5, 1.5, 4.0, 1e-3, 1e-30, 21.0, 1e10, limits.tiny, math.inf]
    parts = [*parts, *(-part for part in parts), math.nan]
    out = np.empty((len(parts), len(parts)), kind)
    out.real, out.imag = np.asarray(list(product(parts, parts))).T.reshape(
        2, *out.shape
    )
    return out.ravel()


def agrees(result, wanted, tolerance):
    close = np.isclose(result, wanted, rtol=tolerance, atol=0, equal_nan=True)
    signed = np.isnan(wanted) | (np.signbit(result) == np.signbit(wanted))
    return close & (signed | (wanted != 0))


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
@pytest.mark.parametrize("name", MENDED)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_formulas_give_what_the_cpu_gives(on_host, name, kind):
    x = grid(kind)
    tolerance = 3e-5 if kind == "complex64" else 1e-13

    result, wanted = run(on_host, name, x), getattr(xdev, name)(x)

    right = agrees(result.real, wanted.real, tolerance)
    right &= agrees(result.imag, wanted.imag, tolerance)
    if name == "expm1":
        # NumPy has NaN for 0 times an overflow; a sign of zero is open at -inf - inf j.
        right |= (x.real > 21) & np.isfinite(x)
        right |= np.isneginf(x.real) & np.isinf(x.imag) & (result.real == -1)
    assert right.all(), list(
        zip(x[~right], result[~right], wanted[~right], strict=True)
    )


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_formula_of_remainder_gives_what_numpy_gives(on_host, kind):
    parts = [0.0, 1.0, 2.5, 3.0, 0.1, 1e30, 1e-30, math.inf]
    parts = np.asarray([*parts, *(-part for part in parts), math.nan], kind)
    x, y = (np.ascontiguousarray(part.ravel()) for part in np.meshgrid(parts, parts))

    result, wanted = run(on_host, "remainder", x, y), np.remainder(x, y)

    assert agrees(result, wanted, 0).all()
