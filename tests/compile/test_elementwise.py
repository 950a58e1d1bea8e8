"""Kernels are compiled for every architecture without a GPU, and their code is read."""

import itertools
import os

import numpy as np
import pytest

from xdev import _optional
from xdev.compile.elementwise import Elementwise, Operand, computed, cubin
from xdev.compile.folds import STATISTICS, Reduce, Scan, Scatter

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
ARCHITECTURES = [(7, 5), (8, 0), (9, 0), (10, 0)]
DTYPES = "?bhilBHILefdFD"
SIZES = "bd"  # of the smallest numbers and of wide ones

if not all(map(_optional.installed, ("cupy", "numba_cuda"))):
    pytest.skip("needs numba-cuda and CuPy: the group cuda", allow_module_level=True)


def add(x, y):
    return x + y


def either(x, y):
    return x or y


def both(x, y):
    return x + y, x - y


def built(function, inputs, outputs, capability=(9, 0), kind="Linear", **layout):
    """Return the cubin of a function with operands of the loop's own dtypes."""
    reads, writes = (tuple(map(np.dtype, chars)) for chars in (inputs, outputs))
    operands = [Operand(kind, dtype, dtype) for dtype in reads]
    operands += [Operand("Output", dtype, dtype) for dtype in writes]
    kernel = Elementwise(tuple(operands), **layout)
    return cubin(kernel, function, reads, writes, capability)


@pytest.mark.parametrize(
    ("char", "layout"),
    [
        *((char, {}) for char in (DTYPES if DEEP else SIZES)),
        ("e", {"dimensions": 2}),
        ("f", {"wide": True}),
    ],
    ids=str,
)
def test_sums_along_rows_move_16_bytes_at_a_time(char, layout, instructions):
    function = either if char == "?" else add

    code, _ = built(function, char * 2, char, **layout)

    lines = instructions(code)
    # Two loads of aligned operands; twice two words of which a misaligned one is made.
    assert sum("LDG.E.128" in line for line in lines) == 6
    assert sum("STG.E.128" in line for line in lines) == 1
    assert not any(word in line for line in lines for word in ("CALL", "LDL", "STL"))


def test_mixed_widths_still_load_the_wide_operand_in_16_bytes(instructions):
    lines = instructions(built(add, "bd", "d")[0])

    # Two words of the wide operand; as many and one more where it is misaligned.
    assert sum("LDG.E.128" in line for line in lines) == 5
    assert sum("STG.E.128" in line for line in lines) == 2
    assert not any(word in line for line in lines for word in ("CALL", "LDL", "STL"))


def test_a_product_and_a_sum_stay_two_roundings(instructions):
    def chain(x, y):
        return x * y + y

    lines = instructions(built(chain, "ff", "f")[0])

    assert any("FMUL" in line for line in lines)
    assert not any("FFMA" in line for line in lines)


@pytest.mark.parametrize(
    ("char", "capability"),
    [
        (char, architecture)
        for k, char in enumerate("?blefdFD")
        for architecture in (ARCHITECTURES if DEEP else ARCHITECTURES[k % 4 :: 4])
    ],
    ids=str,
)
def test_every_architecture_has_both_templates(capability, char):
    function = either if char == "?" else add

    contiguous, _ = built(function, char * 2, char, capability)
    layout = {"template": "strided", "dimensions": 2}
    strided, _ = built(function, char * 2, char, capability, "Strided", **layout)

    assert contiguous[:4] == strided[:4] == b"\x7fELF"


@pytest.mark.parametrize("capability", [(7, 5), (9, 0)], ids=str)
def test_bfloat16_moves_16_bytes_at_a_time(capability, instructions):
    pytest.importorskip("ml_dtypes")
    brain = np.dtype("bfloat16")
    kinds = "Linear", "Linear", "Output"
    operands = tuple(Operand(kind, brain, brain) for kind in kinds)

    code, _ = cubin(Elementwise(operands), add, (brain,) * 2, (brain,), capability)

    lines = instructions(code)
    assert sum("LDG.E.128" in line for line in lines) == 6
    assert sum("STG.E.128" in line for line in lines) == 1
    by_hardware = any("BF16" in line for line in lines)
    assert by_hardware == (capability >= (8, 0))


LAYOUTS = [
    {"template": "strided"},
    {"template": "strided", "dimensions": 3, "masked": True},
    {"template": "strided", "dimensions": 2, "far": True},
    {"template": "strided", "dimensions": 2, "wide": True},
    {"dimensions": 2},
    {"dimensions": 3, "far": True},
    {"wide": True},
]


@pytest.mark.parametrize("layout", LAYOUTS if DEEP else LAYOUTS[1::2], ids=str)
def test_every_layout_compiles_with_several_outputs_and_no_local_memory(
    layout, instructions
):
    kind = "Strided" if "template" in layout else "Linear"

    code, _ = built(both, "fd", "dd", kind=kind, **layout)

    lines = instructions(code)
    assert not any(word in line for line in lines for word in ("LDL", "STL"))


@pytest.mark.parametrize("kind", ["Constant", "Uniform"])
def test_a_number_is_no_load_for_each_element(kind, instructions):
    f = np.dtype("f")
    operands = (Operand("Linear", f, f), Operand(kind, f, f), Operand("Output", f, f))

    code, _ = cubin(Elementwise(operands), add, (f, f), (f,), (9, 0))

    assert sum("LDG.E.128" in line for line in instructions(code)) == 3


@pytest.mark.parametrize("char", "?bLefdFD")
def test_operands_convert_between_memory_and_loop(char):
    def same(x):
        return x

    loop, kinds = np.dtype(char), "?bLefdFD"
    for storage in map(np.dtype, kinds if DEEP else kinds[kinds.index(char) % 4 :: 4]):
        operands = (Operand("Linear", storage, loop), Operand("Output", storage, loop))
        code, _ = cubin(Elementwise(operands), same, (loop,), (loop,), (9, 0))
        assert code[:4] == b"\x7fELF"


LACKING = {"bitwise_count", "frexp", "heaviside", "modf"}  # of every compiler
NUMPYS = {
    function: name
    for name, function in vars(np).items()
    if isinstance(function, np.ufunc) and not function.signature and name not in LACKING
}  # each by one of its names


def call_of(function, char):
    """Return a call of a function of NumPy's, and the data types of its numbers."""
    inputs = f"{char}{'l' if function is np.ldexp else char}"[: function.nin]
    try:
        dtypes = function.resolve_dtypes(
            (*map(np.dtype, inputs), *(None,) * function.nout)
        )
    except TypeError:  # NumPy has none of these types
        return None
    output = dtypes[function.nin].char
    names, part = ", ".join("xy"[: function.nin]), "[0]" if function.nout > 1 else ""
    text = f"lambda {names}: f({names}){part}"
    call = eval(text, {"f": function})  # noqa: S307
    return (call, inputs, output) if output in DTYPES else None


@pytest.mark.parametrize(("char", "step"), [("f", 6), ("F", 5)])
def test_numpys_functions_are_compiled_and_linked(char, step):
    calls = {name: call_of(function, char) for function, name in NUMPYS.items()}
    found = {name: call for name, call in calls.items() if call is not None}
    for name in list(found)[:: 1 if DEEP else step]:
        assert built(*found[name]), name
    assert len(found) > 30


@pytest.mark.parametrize("char", "fdFl")
def test_round_is_compiled_and_linked(char):
    assert built(lambda x: np.round(x), char, char)  # noqa: PLW0108


# Reductions, scans and scatters.


def folding(kernel, loop, capability=(9, 0)):
    function = either if loop.kind == "b" else add
    return cubin(kernel, function, (loop, loop), (loop,), capability)[0]


@pytest.mark.parametrize(
    ("char", "group"), [("?", 256), ("e", 32), ("f", 256), ("D", 32)]
)
def test_reductions_along_rows_load_16_bytes_at_a_time(char, group, instructions):
    dtype = np.dtype(char)
    kernel = Reduce(dtype, computed(dtype), dtype, group)

    lines = instructions(folding(kernel, computed(dtype)))

    # Four chunks of two words under way; as many, of three words, where misaligned.
    assert sum("LDG.E.128" in line for line in lines) == 20
    assert any("SHFL" in line for line in lines)


@pytest.mark.parametrize(
    "capability",
    ARCHITECTURES if DEEP else ARCHITECTURES[::3],
    ids="sm_{0[0]}{0[1]}".format,
)
def test_every_architecture_has_every_method(capability):
    dtype = np.dtype("e" if capability < (9, 0) else "D")
    loop = computed(dtype)
    types = dtype, loop, dtype
    kernels = [
        Reduce(*types, 1, 2),
        Reduce(*types, 32, 2, masked=True),
        Reduce(*types, 256, 1, masked=True, joining=256),
        Reduce(*types, 8, 2, joining=32, wide=16 // dtype.itemsize),
        Reduce(*types, 32, 1, statistic="count"),
        Reduce(*types, 32, 3, segmented=True),
        Scan(*types, 1, 2),
        Scan(*types, 256, 1),
        Scatter(dtype, dtype, (dtype, dtype), dtype),
    ]
    for kernel in kernels:
        scattered = isinstance(kernel, Scatter)
        code = folding(kernel, dtype if scattered else loop, capability)
        assert code[:4] == b"\x7fELF"


@pytest.mark.parametrize("char", "efd" if DEEP else "f")
def test_every_statistic_compiles(char):
    dtype = np.dtype(char)
    loop = computed(dtype)
    for group, statistic in itertools.product((1, 256), STATISTICS[1:]):
        kernel = Reduce(
            dtype, loop, dtype, group, joining=256, statistic=statistic, masked=True
        )
        assert folding(kernel, loop)[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("char", "loop", "statistic"),
    [("b", "d", "var"), ("e", "f", "std"), ("b", "b", "argmax"), ("b", "D", "fold")],
)
def test_columns_of_small_numbers_fit_into_shared_memory(char, loop, statistic):
    source, loop = np.dtype(char), np.dtype(loop)
    kernel = Reduce(source, loop, loop, 8, joining=256, statistic=statistic, wide=8)

    assert folding(kernel, loop)[:4] == b"\x7fELF"
