"""Kernels are compiled for every architecture without a GPU, and their code is read."""

import importlib
import re

import numpy as np
import pytest

import xdev
from xdev import _config, _optional, atomic
from xdev.compile import grid as grid_code
from xdev.compile.compilers import cubin
from xdev.compile.cubins import (
    STATISTICS,
    Elementwise,
    Operand,
    Reduce,
    Scan,
    Scatter,
    computed,
)
from xdev.compile.grid import Argument, Grid
from xdev.ufunc.generalized import CoreFunction, Layout

ARCHITECTURES = [(7, 5), (8, 0), (9, 0), (10, 0)]

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
    [("b", {}), ("d", {}), ("e", {"dimensions": 2}), ("f", {"wide": True})],
    ids=str,
)
def test_sums_along_rows_move_16_bytes_at_a_time(char, layout, instructions):
    lines = instructions(built(add, char * 2, char, **layout)[0])

    # Two loads of aligned operands; twice two words of which a misaligned one is made.
    assert sum("LDG.E.128" in line for line in lines) == 6
    assert sum("STG.E.128" in line for line in lines) == 1
    assert not any(word in line for line in lines for word in ("CALL", "LDL", "STL"))


def test_a_product_and_a_sum_stay_two_roundings(instructions):
    def chain(x, y):
        return x * y + y

    lines = instructions(built(chain, "ff", "f")[0])

    assert any("FMUL" in line for line in lines)
    assert not any("FFMA" in line for line in lines)


@pytest.mark.parametrize("capability", [(7, 5), (9, 0)], ids=str)
def test_bfloat16_is_converted_by_hardware_that_can(capability, instructions):
    pytest.importorskip("ml_dtypes")

    lines = instructions(built(add, ["bfloat16"] * 2, ["bfloat16"], capability)[0])

    assert sum("LDG.E.128" in line for line in lines) == 6
    assert any("BF16" in line for line in lines) == (capability >= (8, 0))


@pytest.mark.parametrize(
    "layout",
    [
        {"template": "strided", "dimensions": 3, "masked": True},
        {"template": "strided", "dimensions": 2, "wide": True},
        {"dimensions": 3, "far": True},
    ],
    ids=str,
)
def test_every_layout_compiles_with_several_outputs_and_no_local_memory(
    layout, instructions
):
    kind = "Strided" if "template" in layout else "Linear"

    lines = instructions(built(both, "fd", "dd", kind=kind, **layout)[0])

    assert not any(word in line for line in lines for word in ("LDL", "STL"))


@pytest.mark.parametrize("kind", ["Constant", "Uniform"])
def test_a_number_is_no_load_for_each_element(kind, instructions):
    f = np.dtype("f")
    operands = (Operand("Linear", f, f), Operand(kind, f, f), Operand("Output", f, f))

    code, _ = cubin(Elementwise(operands), add, (f, f), (f,), (9, 0))

    assert sum("LDG.E.128" in line for line in instructions(code)) == 3


@pytest.mark.parametrize("char", "?bLefdFD")
def test_operands_convert_between_memory_and_loop(char):
    loop, kinds = np.dtype(char), "?bLefdFD"
    for storage in map(np.dtype, kinds[kinds.index(char) % 4 :: 4]):
        operands = (Operand("Linear", storage, loop), Operand("Output", storage, loop))
        code, _ = cubin(Elementwise(operands), lambda x: x, (loop,), (loop,), (9, 0))
        assert code[:4] == b"\x7fELF"


CALLED = "add multiply power exp2 log1p absolute sqrt arctanh sign conjugate"


def test_numpys_functions_of_complex_numbers_are_compiled_and_linked():
    for name in CALLED.split():
        function = getattr(np, name)
        names, inputs = ", ".join("xy"[: function.nin]), "F" * function.nin
        call = eval(f"lambda {names}: f({names})", {"f": function})  # noqa: S307
        assert built(call, inputs, "f" if name == "absolute" else "F"), name
    for char in "fF":
        assert built(lambda x: np.round(x), char, char)  # noqa: PLW0108 - has a source


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


@pytest.mark.parametrize("capability", ARCHITECTURES, ids="sm_{0[0]}{0[1]}".format)
def test_every_architecture_has_every_template(capability):
    dtype = np.dtype("eDlf"[ARCHITECTURES.index(capability)])
    loop = computed(dtype)
    types = dtype, loop, dtype
    for kernel in (
        Reduce(*types, 1, 2),
        Reduce(*types, 256, 1, masked=True, joining=256),
        Reduce(*types, 8, 2, joining=32, wide=16 // dtype.itemsize),
        Reduce(*types, 32, 3, segmented=True),
        Scan(*types, 1, 2),
        Scan(*types, 256, 1),
        Scatter(dtype, dtype, (dtype, dtype), dtype),
    ):
        own = dtype if isinstance(kernel, Scatter) else loop
        assert folding(kernel, own, capability)[:4] == b"\x7fELF"
    char = dtype.char
    for kind, layout in (
        ("Linear", {}),
        ("Strided", {"template": "strided", "dimensions": 2}),
    ):
        code, _ = built(add, char * 2, char, capability, kind, **layout)
        assert code[:4] == b"\x7fELF"


def test_every_statistic_compiles():
    dtype = np.dtype("f")
    for k, statistic in enumerate(STATISTICS[1:]):
        options = {"joining": 256, "statistic": statistic, "masked": True}
        kernel = Reduce(dtype, dtype, dtype, (1, 256)[k % 2], **options)
        assert folding(kernel, dtype)[:4] == b"\x7fELF"
    # Columns of small numbers, whose folds have to fit into shared memory.
    source, loop = np.dtype("b"), np.dtype("d")
    kernel = Reduce(source, loop, loop, 8, joining=256, statistic="var", wide=8)
    assert folding(kernel, loop)[:4] == b"\x7fELF"


pytestmark = pytest.mark.usefixtures("no_disk_cache")


def saxpy(i, a, x, y, out):
    out[i] = a * x[i] + y[i]


def stencil(i, j, x, out):
    out[i + 1, j + 1] = 0.25 * (x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j])


def volume(i, j, k, x, out):
    out[i, j, k] = x[k, j, i]


def histogram(i, x, bins):
    atomic.add(bins, x[i], 1)


def extremes(i, x, bins):
    atomic.max(bins, i % 3, x[i])
    atomic.min(bins, (0,), x[i])


def swap(i, x, bins):
    x[i] = atomic.cas(bins, i, 0, 1)


def dot(x, y, out):
    out[0] = 0
    for k in range(x.shape[0]):
        out[0] += x[k] * y


def product(x, out):
    out[0] = np.dot(x, x)


def scaled(x, y, out):
    out[:] = x * 2 + y


def array(char, ndim=1, contiguous=True):
    return Argument(np.dtype(char), ndim, contiguous, writable=True)


def grid(function, indices, *arguments):
    found = [a.dtype for a in arguments if a.ndim is not None and a.dtype.kind in "fc"]
    return xdev.kernel(function)._grid(indices, arguments, np.result_type(*found, "f"))


F, D, L = map(np.dtype, "fdl")
KERNELS = [
    (saxpy, 1, (Argument(F), array("f"), array("f"), array("f"))),
    (stencil, 2, (array("f", 2), array("d", 2, contiguous=False))),
    (volume, 3, (array("?", 3), array("?", 3))),
    (histogram, 1, (array("i"), array("L"))),
    (extremes, 1, (array("f"), array("f"))),
    (extremes, 1, (array("I"), array("I"))),
    (swap, 1, (array("d"), array("d"))),
]


@pytest.mark.parametrize("capability", ARCHITECTURES, ids="sm_{0[0]}{0[1]}".format)
def test_every_architecture_has_kernels_of_all_kinds(capability):
    first = ARCHITECTURES.index(capability)
    for k, (function, indices, arguments) in enumerate(KERNELS[first::4], first):
        made = grid(function, indices, *arguments)
        code, _ = grid_code.cubin(made, capability, narrow=bool(k % 2))
        assert code[:4] == b"\x7fELF"
    cores = array("f", 1, False), Argument(F), array("f")
    rows = array("f", 3, False), array("f", 2, False), array("f", 3)
    made = Grid(dot, 1, rows, cores=cores)
    assert grid_code.cubin(made, capability)[0][:4] == b"\x7fELF"
    made = Grid(dot, 1, (rows[0], Argument(F), rows[2]), cores=cores)
    assert grid_code.cubin(made, capability, narrow=True)[0][:4] == b"\x7fELF"


def of_cores(function, layout, *inputs):
    typed = CoreFunction(function, Layout.parse(layout), [], fastmath=False)
    made = typed.specialise(inputs, [None])
    rows = [core._replace(ndim=1 + (core.ndim or 0)) for core in made.arguments]
    return grid_code.cubin(
        Grid(made.function, 1, (*rows,), cores=made.arguments), (9, 0)
    )[0]


def test_whole_arrays_are_assigned_in_loops_of_c():
    assert of_cores(scaled, "(n),(n)->(n)", D, D)[:4] == b"\x7fELF"


def test_linear_algebra_is_refused_without_a_warning():
    importlib.import_module("numba.np.linalg")  # which warns, once it is there
    with pytest.raises(TypeError, match=r"no dot of an array|as sorted, linalg"):
        of_cores(product, "(n)->()", D)


def narrow(instructions, *parts):
    """Return the instructions of a kernel up to the last return."""
    lines = instructions(grid_code.cubin(grid(*parts), (9, 0), narrow=True)[0])
    last = max(k for k, line in enumerate(lines) if line.startswith("EXIT"))
    return lines[: last + 1]


def count(lines, *words):
    return sum(any(word in line for word in words) for line in lines)


def test_a_kernel_is_what_one_would_write_in_cuda(instructions):
    lines = narrow(instructions, saxpy, 1, Argument(F), *[array("f")] * 3)

    assert count(lines, "LDG.E R") == 2
    assert count(lines, "STG.E ") == 1
    assert not count(lines, "CALL", "LDL", "STL", "F2F")
    assert count(lines, "FMUL") == 1  # rounded twice, as NumPy does
    assert not count(lines, "FFMA")
    assert len(lines) <= 24  # the same in CUDA C++ has 22, with FFMA


def test_two_indices_divide_nothing_and_loop_over_nothing(instructions):
    lines = narrow(instructions, stencil, 2, array("f", 2), array("f", 2))

    assert not count(lines, "CALL", "LDL", "STL", "I2F", "SEL", "BSSY")
    assert len(lines) <= 60  # in CUDA C++ 43, for arrays known to be alike


@pytest.mark.parametrize(
    ("function", "char", "instruction"),
    [
        (histogram, "d", "RED"),
        (extremes, "f", "ATOMG.E.CAS"),
        (swap, "l", "ATOMG.E.CAS.64"),
    ],
)
def test_atomics_are_the_machines_own(function, char, instruction, instructions):
    first = array("i") if function is histogram else array(char)
    code, _ = grid_code.cubin(grid(function, 1, first, array(char)), (9, 0))

    assert any(instruction in line for line in instructions(code))


def first(window, out):
    out[0] = window[0]


def test_a_number_for_an_array_is_read_where_it_lies(instructions):
    number = Argument(L, 1)
    cores, rows = (number, array("l", 1, False)), (Argument(L), array("l", 2, False))
    code, _ = grid_code.cubin(Grid(first, 1, rows, cores=cores), (9, 0))

    lines = instructions(code)
    assert any("STG" in line for line in lines)
    assert not any(re.search(r"\bLDG?\b", line) for line in lines)


@pytest.mark.parametrize("function", [saxpy, histogram])
def test_the_debug_mode_compiles(function, monkeypatch):
    monkeypatch.setattr(_config, "debug", lambda: True)
    given = array("f"), array("f"), array("f")
    arguments = (Argument(F), *given) if function is saxpy else (array("i"), array("f"))
    checked = grid(function, 1, *arguments)

    assert checked.checked
    assert grid_code.cubin(checked, (8, 0))[0][:4] == b"\x7fELF"
