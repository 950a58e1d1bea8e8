"""Both compilers of Python functions to CUDA code give the same, through one door."""

import importlib
import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import xdev
from xdev import _optional
from xdev.compile import elementwise, numba_cuda, toolchain
from xdev.compile.elementwise import Elementwise, Operand
from xdev.errors import DeviceUnavailableError

if not all(map(_optional.installed, ("cupy", "numba_cuda"))):
    pytest.skip("needs numba-cuda and CuPy: the group cuda", allow_module_level=True)


DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"


def of_both(cases):
    """Return cases, each a tuple, with a compiler: half of them, and a third.

    All by ``HYPOTHESIS_PROFILE=deep``.
    """
    first, second = toolchain.ADAPTERS
    one, other = (cases, cases) if DEEP else (cases[::2], cases[1::3])
    return [(first, *case) for case in one] + [(second, *case) for case in other]


@pytest.fixture(params=toolchain.ADAPTERS)
def adapter(request, monkeypatch):
    if not _optional.installed(request.param):
        pytest.skip(f"needs {request.param}: the group cuda")
    ltoir = getattr(numba_cuda, toolchain.ADAPTERS[request.param])
    monkeypatch.setattr(toolchain, "adapter", lambda: ltoir)
    return ltoir


def dtypes(chars):
    return tuple(map(np.dtype, chars))


def cubin(function, inputs, outputs, capability=(9, 0)):
    inputs, outputs = dtypes(inputs), dtypes(outputs)
    operands = [Operand("Linear", d, d) for d in inputs]
    operands += [Operand("Output", d, d) for d in outputs]
    kernel = Elementwise(tuple(operands))
    return elementwise.cubin(kernel, function, inputs, outputs, capability)


def total(x, y):
    return x + y


def either(x, y):
    return x or y


def both(x, y):
    return x * y + math.sin(x), x > y


def chosen(x):
    return math.sqrt(x) if x > 0 else 0


@pytest.mark.parametrize(
    ("adapter", "char"), of_both([*zip("bhilBHILefdFD")]), indirect=["adapter"]
)
@pytest.mark.usefixtures("adapter")
def test_every_dtype_compiles_for_every_architecture(char):
    capability = {"f": (7, 5), "d": (8, 0), "D": (10, 0)}.get(char, (9, 0))

    code, entry = cubin(total, char * 2, char, capability)

    assert code.startswith(b"\x7fELF")
    assert entry.encode() in code


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(
    ("function", "inputs", "outputs"),
    [(either, "??", "?"), (both, "ff", "f?"), (both, "ee", "e?"), (chosen, "d", "d")],
)
def test_bools_results_and_conditions_compile(function, inputs, outputs):
    assert cubin(function, inputs, outputs)[0].startswith(b"\x7fELF")


BUILTINS = {
    "abs": lambda x: abs(x) + x,
    "max": lambda x: max(x, -x),
    "min": lambda x: min(x, -x),
    "round": lambda x: round(x) + x,
    "int and float": lambda x: float(int(x)),
    "bool": lambda x: x if bool(x) else -x,
    "pow": lambda x: pow(x, 2),
    "len": lambda x: x * len((x, x)),
}


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize("name", BUILTINS)
def test_builtins_are_called(name):
    assert cubin(BUILTINS[name], "f", "f")[0].startswith(b"\x7fELF")


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


def summed(x):
    result = x * 0
    for _ in range(3):
        result += x
    return result


@pytest.mark.usefixtures("adapter")
def test_loops_compile():
    assert cubin(summed, "f", "f")[0].startswith(b"\x7fELF")


@pytest.mark.usefixtures("adapter")
def test_functions_that_numba_compiled_are_called():
    numba = _optional.numba()
    inner = numba.njit(total)
    middle = numba.njit(lambda x: inner(x, x))

    def outer(x):
        return middle(x) * inner(x, x)

    assert cubin(outer, "f", "f")[0].startswith(b"\x7fELF")


def product(x, y):
    return x * y


def quotient(x, y):
    return x // y


MIXED = [
    (total, "lL", "DADD"),
    (total, "Ll", "DADD"),
    (total, "bL", "DADD"),
    (product, "Ll", "DMUL"),
    (quotient, "lL", "MUFU.RCP64H"),  # what a float64's division begins with
]


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(
    ("adapter", "function", "inputs", "operation"),
    of_both(MIXED),
    indirect=["adapter"],
)
def test_uint64_with_signed_integers_is_computed_in_float64(
    function, inputs, operation, instructions
):
    typed = xdev.vectorize(function).definition.specialise(dtypes(inputs))
    code, _ = cubin(typed.function, inputs, "d")

    lines = instructions(code)
    assert typed.outputs == dtypes("d")
    for needed in (r"I2F\.F64\.U64 ", r"I2F\.F64(\.S\d+)? ", re.escape(operation)):
        assert any(re.search(needed, line) for line in lines), needed


@xdev.vectorize
def increased(x, y=200):
    return x + y


def summed_and_halved(x):
    total = (x & 0) + 100
    for k in range(3):
        total += 50 + k
    return total // 2


WRAPPING = [
    (lambda x: ((x & 0) + 200 + 100) // 2,),
    (lambda x: (np.int8(x & 0) - 100 - 100) // 3 + (x & 0),),
    (lambda x: 30 + (increased(increased(x & 0)) > 200),),
    (lambda x: (math.floor((x & 0) / 3 + 200.5) + ((x & 0) + 100)) // 2,),
    (summed_and_halved,),
]


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(
    ("adapter", "function"), of_both(WRAPPING), indirect=["adapter"]
)
def test_integers_inside_wrap_as_numpys(function, instructions):
    # The result is one of all arguments, which the compiler knows.
    with np.errstate(all="ignore"):
        expected = int(function(np.uint8(5))) % 256
    typed = xdev.vectorize(function).definition.specialise(dtypes("B"))

    lines = instructions(cubin(typed.function, "B", "B")[0])

    assert any("0x" + f"{expected:02x}" * 4 in line for line in lines)


def wrong(x, y):
    z = x + y
    return z.upper()


def test_a_refusal_shows_the_line_and_the_types(adapter):
    with pytest.raises(TypeError) as refused:
        adapter(wrong, dtypes("fd"), dtypes("d"), "f", (9, 0))
    first, second = str(refused.value).splitlines()
    assert first.startswith("cannot compile wrong(float32, float64) for CUDA: ")
    assert "'upper'" in first
    line = wrong.__code__.co_firstlineno + 2
    assert second == f"  {__file__}:{line}: return z.upper()"


def importing(x):
    import math

    return math.sin(x)


def opening(x):
    with open("file") as file:  # noqa: PTH123
        file.write("x")
    return x


def assigning(x):
    global KEPT  # noqa: PLW0603
    KEPT = x
    return x


def trying(x):
    try:
        return 1 / x
    except ZeroDivisionError:
        return 0.0


def a_text(x):
    return str(x)


def nothing(x):
    x + 1


def a_pair(x):
    return x, "a"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (importing, "compiled code imports nothing: import at"),
        (opening, "compiled code has no with"),
        (assigning, "compiled code writes no global"),
        (trying, "cannot tell errors apart, and on CUDA has no try at all: test"),
        (nothing, ": returns nothing$"),
        (a_text, "returns Literal.*, which is not made a float32|has no str"),
        (
            a_pair,
            "returns Tuple.*, which is not made a float32|mlir has no code for it",
        ),
    ],
)
def test_no_compilers_own_error_gets_out(adapter, function, words):
    with pytest.raises(TypeError) as refused:
        adapter(function, dtypes("f"), dtypes("f"), "f", (9, 0))

    first, second = str(refused.value).splitlines()
    assert re.search(words, first)
    assert re.match(rf"  {__file__}:\d+: \S", second)


def test_what_the_compiler_put_aside_is_back(adapter):
    before = dict(vars(np))
    current = importlib.import_module("numba.cuda.dispatcher").get_current_device

    adapter(total, dtypes("ff"), dtypes("f"), "f", (9, 0))

    assert vars(np) == before
    after = importlib.import_module("numba.cuda.dispatcher").get_current_device
    assert after is current


@pytest.mark.parametrize(
    ("installed", "chosen"),
    [
        ({"numba_cuda", "numba_cuda_mlir"}, numba_cuda.ltoir),
        ({"numba_cuda_mlir"}, numba_cuda.mlir_ltoir),
    ],
)
def test_the_one_that_is_installed_is_chosen(installed, chosen, monkeypatch):
    monkeypatch.setattr(_optional, "installed", installed.__contains__)

    assert toolchain.adapter.__wrapped__() is chosen


def test_without_any_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(_optional, "installed", lambda _: False)

    with pytest.raises(DeviceUnavailableError, match="pip install"):
        toolchain.adapter.__wrapped__()


def test_numba_cuda_compiles_where_numpy_dropped_a_name():
    """As on NumPy 2.5, which has no `numpy.row_stack`."""
    program = (
        "import numpy as np; vars(np).pop('row_stack', None)\n"
        "from xdev.compile import numba_cuda\n"
        "f4 = (np.dtype('f4'),)\n"
        "code = numba_cuda.ltoir(lambda x: x + x, f4, f4, 'f', (9, 0))\n"
        "from numba import cuda\n"
        "kernel = lambda x: None\n"
        "cuda.compile(kernel, 'void(int32)', cc=(9, 0))\n"
        "print(len(code) > 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "True\n", done.stderr
