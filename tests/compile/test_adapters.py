"""Both compilers of Python functions to CUDA code, and kernels over indices.

A linker that is older than the compilers is refused.
"""

import math
import re
from contextlib import nullcontext

import numpy as np
import pytest

import xdev
from xdev import _optional
from xdev.compile import compilers, cubins
from xdev.compile.cubins import Elementwise, Operand
from xdev.compile.indexed import cubin as indexed_cubin
from xdev.errors import DeviceUnavailableError
from xdev.random import kernels

if not all(map(_optional.installed, ("cupy", "numba_cuda"))):
    pytest.skip("needs numba-cuda and CuPy: the group cuda", allow_module_level=True)


@pytest.fixture(params=compilers.ADAPTERS)
def adapter(request, monkeypatch):
    if not _optional.installed(request.param):
        pytest.skip(f"needs {request.param}: the group cuda")
    ltoir = compilers.ADAPTERS[request.param]
    monkeypatch.setattr(compilers, "adapter", lambda: ltoir)
    return ltoir


def dtypes(chars):
    return tuple(map(np.dtype, chars))


def cubin(function, inputs, outputs, capability=(9, 0)):
    inputs, outputs = dtypes(inputs), dtypes(outputs)
    operands = [Operand("Linear", d, d) for d in inputs]
    operands += [Operand("Output", d, d) for d in outputs]
    kernel = Elementwise(tuple(operands))
    return compilers.cubin(kernel, function, inputs, outputs, capability)


def total(x, y):
    return x + y


def both(x, y):
    return x * y + math.sin(x), x > y


def summed(x):
    result = x * 0
    for _ in range(3):
        result += x
    return result


def builtins(x):
    whole = round(x) + float(int(x)) + pow(x, 2) + len((x, x))
    return abs(x) + max(x, -x) + min(x, -x) + (x if bool(x) else -x) + whole


inner = _optional.numba().njit(total)
middle = _optional.numba().njit(lambda x: inner(x, x))


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(
    ("function", "inputs", "outputs"),
    [
        (lambda x, y: x or y, "??", "?"),
        (both, "ff", "f?"),
        (both, "ee", "e?"),
        (lambda x: math.sqrt(x) if x > 0 else 0, "d", "d"),
        (builtins, "f", "f"),
        (summed, "f", "f"),
        (lambda x: middle(x) * inner(x, x), "f", "f"),
    ],
)
def test_results_conditions_loops_and_calls_compile(function, inputs, outputs):
    assert cubin(function, inputs, outputs)[0].startswith(b"\x7fELF")


NUMPYS = [
    f"np.{name}({'x, y'[: 3 * function.nin - 2]})"
    for name, function in vars(np).items()
    if isinstance(function, np.ufunc) and f"{'d' * function.nin}->d" in function.types
    if function.signature is None and name != "heaviside"
]


@pytest.mark.parametrize("char", "fd")
def test_numpys_functions_of_floats_compile(char):
    total = eval(f"lambda x, y: {' + '.join(NUMPYS)}", {"np": np})  # noqa: S307

    assert cubin(total, char * 2, char)[0].startswith(b"\x7fELF")


@xdev.vectorize
def increased(x, y=200):
    return x + y


def summed_and_halved(x):
    total = (x & 0) + 100
    for k in range(3):
        total += 50 + k
    return total // 2


def subtracted(x):
    return (np.int8(x & 0) - 100 - 100) // 3 + (x & 0)


def floored(x):
    return (math.floor((x & 0) / 3 + 200.5) + ((x & 0) + 100)) // 2


def twice(x):
    return 30 + (increased(increased(x & 0)) > 200)


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(
    ("adapter", "function"),
    [
        *(("numba_cuda", f) for f in (summed_and_halved, subtracted, twice)),
        *(("numba_cuda_mlir", f) for f in (floored, twice)),
    ],
    indirect=["adapter"],
)
def test_integers_inside_wrap_as_numpys(function, instructions):
    # The result is one of all arguments, which the compiler knows.
    with np.errstate(all="ignore"):
        expected = int(function(np.uint8(5))) % 256
    typed = xdev.vectorize(function).definition.specialise(dtypes("B"))

    lines = instructions(cubin(typed.function, "B", "B")[0])

    assert any("0x" + f"{expected:02x}" * 4 in line for line in lines)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("z = x + 1\nreturn z.upper()", "'upper'"),
        ("import math\nreturn math.sin(x)", "Python alone has what is there"),
        ("return str(x)", "returns '.*', which is not made a float32|has no str"),
        ("return x, 'a'", "returns Tuple.*, which is not made a|no code for it"),
    ],
)
def test_no_compilers_own_error_gets_out(adapter, written, body, words):
    function = written(body)
    with pytest.raises(TypeError) as refused:
        adapter(function, dtypes("f"), dtypes("f"), (9, 0))

    first, second = str(refused.value).splitlines()
    assert first.startswith("cannot compile f(float32) for CUDA: ")
    assert re.search(words, first)
    assert re.match(rf"  {function.__code__.co_filename}:\d+: \S", second)
    assert "upper" not in body or second.endswith(":4: return z.upper()")


def test_the_one_that_is_installed_is_chosen(monkeypatch):
    for installed, chosen in (
        ({"numba_cuda", "numba_cuda_mlir"}, compilers.ltoir),
        ({"numba_cuda_mlir"}, compilers.mlir_ltoir),
    ):
        monkeypatch.setattr(_optional, "installed", installed.__contains__)
        assert compilers.adapter.__wrapped__() is chosen
    monkeypatch.setattr(_optional, "installed", lambda _: False)
    with pytest.raises(DeviceUnavailableError, match="pip install"):
        compilers.adapter.__wrapped__()


WITHOUT_A_NAME = """
import numpy as np; vars(np).pop('row_stack', None)
from xdev.compile import compilers
f4 = (np.dtype('f4'),)
code = compilers.ltoir(lambda x: x + x, f4, f4, (9, 0))
from numba import cuda
kernel = lambda x: None
cuda.compile(kernel, 'void(int32)', cc=(9, 0))
print(len(code) > 0)
"""


def test_numba_cuda_compiles_where_numpy_dropped_a_name(printed):
    """As on NumPy 2.5, which has no `numpy.row_stack`."""
    assert printed(WITHOUT_A_NAME) == "True\n"


@pytest.mark.parametrize(
    ("linker", "compiler", "nvvm", "words"),
    [
        ((12, 4), (12, 8), "12.8.93", "nvJitLink 12.4 is older than NVRTC 12.8"),
        ((13, 0), (13, 0), "13.2.51", r"than NVVM 13.2, .*'nvidia-nvjitlink>=13.2'"),
        ((13, 1), (13, 0), "", None),
        (None, (13, 0), "13.0.48", None),
    ],
)
def test_an_nvjitlink_older_than_the_compilers_is_refused(
    linker, compiler, nvvm, words, monkeypatch
):
    bound = {"nvjitlink": linker, "nvrtc": compiler}
    monkeypatch.setattr(cubins, "_bound", bound.get)
    monkeypatch.setattr(cubins, "installed", lambda: {"nvvm": nvvm})

    with pytest.raises(DeviceUnavailableError, match=words) if words else nullcontext():
        cubins.check()


# Kernels over indices. Products are rounded before they are added, as the CPU's; other
# quotients and roots are made of FMAs.
@pytest.mark.usefixtures("no_disk_cache")
@pytest.mark.parametrize(
    ("function", "result", "rounded"),
    [
        (kernels.uniform64, "d", True),
        (kernels.uniform32, "f", True),
        (kernels.exponential32, "f", True),
        (kernels.normal64, "d", False),
        (kernels.few, "l", False),
    ],
)
def test_cuda_kernels_store_16_bytes_and_read_nothing(
    function, result, rounded, instructions
):
    code, _ = indexed_cubin(kernels.kernel(function, np.dtype(result)), (9, 0))

    lines = instructions(code)
    assert any("STG.E.128" in line for line in lines)
    assert not re.search(r"\b(LDG|LDL|STL)", " ".join(lines))
    if rounded:
        assert re.search(r"\b[DF]MUL", " ".join(lines))
        assert not re.search(r"\b[DF]FMA", " ".join(lines))


@pytest.mark.usefixtures("no_disk_cache")
@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (9, 0), (10, 0)])
def test_cuda_kernels_compile_for_every_architecture(capability):
    for function, result in ((kernels.many, "l"), (kernels.few, "?")):
        kernel = kernels.kernel(function, np.dtype(result))
        assert indexed_cubin(kernel, capability)[0][:4] == b"\x7fELF"
