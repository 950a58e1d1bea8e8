"""Kernels over a grid are compiled for every architecture without a GPU."""

import importlib
import os
import re
from dataclasses import replace

import numpy as np
import pytest

from xdev import _config, _optional, atomic
from xdev.compile.grid import Argument, Grid, cuda
from xdev.ufunc.generalized.functions import CoreFunction
from xdev.ufunc.generalized.layouts import Layout
from xdev.ufunc.kernels.functions import KernelFunction

pytestmark = pytest.mark.usefixtures("no_disk_cache")

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
ARCHITECTURES = [(7, 5), (8, 0), (9, 0), (10, 0)]

if not all(map(_optional.installed, ("cupy", "numba_cuda"))):
    pytest.skip("needs numba-cuda and CuPy: the group cuda", allow_module_level=True)


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


def spmv(i, starts, columns, values, x, out):
    total = 0.0
    for k in range(starts[i], starts[i + 1]):
        total += values[k] * x[columns[k]]
    out[i] = total


def nested(i, n, out):
    for j in range(n[i]):
        if j == 7:
            continue
        for k in range(j, n[i], 2):
            out[i] += k
        for k in range(2, n[j]):
            if k * k > j:
                break
            out[i] += len(range(k))


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
    typed = KernelFunction(function, fastmath=False)
    found = [a.dtype for a in arguments if a.ndim is not None and a.dtype.kind in "fc"]
    return typed.typed(indices, arguments, np.result_type(*found, "f"))


F, D, L = map(np.dtype, "fdl")
KERNELS = [
    (saxpy, 1, (Argument(F), array("f"), array("f"), array("f"))),
    (saxpy, 1, (Argument(D), array("F"), array("F", 1, False), array("D"))),
    (stencil, 2, (array("f", 2), array("d", 2, contiguous=False))),
    (volume, 3, (array("?", 3), array("?", 3))),
    (histogram, 1, (array("i"), array("L"))),
    (histogram, 1, (array("i"), array("d"))),
    (extremes, 1, (array("f"), array("f"))),
    (extremes, 1, (array("I"), array("I"))),
    (swap, 1, (array("d"), array("d"))),
    (spmv, 1, (array("i"), array("l"), array("f"), array("f", 1, False), array("f"))),
    (spmv, 1, (array("h"), array("B"), array("d"), array("d"), array("d"))),
    (nested, 1, (array("i"), array("l"))),
    (nested, 1, (array("L"), array("f"))),
]


SIZES = [{}, {"narrow": True}, {"narrow": True, "small": True}]


@pytest.mark.parametrize("capability", ARCHITECTURES, ids="sm_{0[0]}{0[1]}".format)
def test_every_architecture_has_kernels_of_all_kinds(capability):
    first = ARCHITECTURES.index(capability)
    chosen = KERNELS if DEEP else KERNELS[first::4]
    for k, (function, indices, arguments) in enumerate(chosen, first):
        made = grid(function, indices, *arguments)
        code, _ = cuda.cubin(made, capability, **SIZES[k % len(SIZES)])
        assert code[:4] == b"\x7fELF"
    cores = array("f", 1, False), Argument(F), array("f")
    rows = array("f", 3, False), array("f", 2, False), array("f", 3)
    made = Grid(dot, 1, rows, cores=cores)
    assert cuda.cubin(made, capability)[0][:4] == b"\x7fELF"
    made = Grid(dot, 1, (rows[0], Argument(F), rows[2]), cores=cores)
    assert cuda.cubin(made, capability, narrow=True)[0][:4] == b"\x7fELF"


def of_cores(function, layout, *inputs):
    typed = CoreFunction(function, Layout.parse(layout), [], fastmath=False)
    made = typed.specialise(inputs, [None])
    rows = [replace(core, ndim=1 + (core.ndim or 0)) for core in made.arguments]
    return cuda.cubin(Grid(made.function, 1, (*rows,), cores=made.arguments), (9, 0))[0]


def test_whole_arrays_are_assigned_in_loops_of_c():
    assert of_cores(scaled, "(n),(n)->(n)", D, D)[:4] == b"\x7fELF"


def test_linear_algebra_is_refused_without_a_warning():
    importlib.import_module("numba.np.linalg")  # which warns, once it is there
    with pytest.raises(TypeError, match=r"no dot of an array|no linear algebra"):
        of_cores(product, "(n)->()", D)


def narrow(function, indices, *arguments):
    made = grid(function, indices, *arguments)
    return cuda.cubin(made, (9, 0), narrow=True, small=True)[0]


def count(lines, *words):
    return sum(any(word in line for word in words) for line in lines)


def test_a_kernel_is_what_one_would_write_in_cuda(instructions):
    code = narrow(saxpy, 1, Argument(F), array("f"), array("f"), array("f"))

    lines = instructions(code)

    assert count(lines, "LDG.E R") == 2
    assert count(lines, "STG.E ") == 1
    assert not count(lines, "CALL", "LDL", "STL", "F2F")
    assert count(lines, "FMUL") == 1  # rounded twice, as NumPy does
    assert not count(lines, "FFMA")
    assert len(body(lines)) <= 24  # the same in CUDA C++ has 22, with FFMA


def test_two_indices_divide_nothing_and_loop_over_nothing(instructions):
    code = narrow(stencil, 2, array("f", 2), array("f", 2))

    lines = instructions(code)

    assert not count(lines, "CALL", "LDL", "STL", "I2F", "SEL", "BSSY")
    assert len(body(lines)) <= 60  # in CUDA C++ 43, for arrays known to be alike


def test_negative_indices_that_are_loaded_cost_one_instruction(instructions):
    def gather(i, where, x, out):
        out[i] = x[where[i]]

    code = narrow(gather, 1, array("i"), array("f"), array("f"))

    lines = instructions(code)

    assert count(lines, "VIADDMNMX.U32") == 1
    assert not count(lines, "SEL", "LEA", "SHF")


@pytest.mark.parametrize("char", "il")
def test_short_loops_read_sixteen_turns_at_once(char, instructions):
    given = array(char), array(char), array("f"), array("f"), array("f")

    lines = instructions(narrow(spmv, 1, *given))

    turns = 16 + 1  # those that are left run one by one
    assert count(lines, "FMUL") == turns
    assert count(lines, "LDG.E") == 3 * turns + 2
    assert not count(lines, "CALL", "LDL", "STL")


def body(lines):
    """Return the instructions up to the last return, without the filling."""
    last = max(k for k, line in enumerate(lines) if line.startswith("EXIT"))
    return lines[: last + 1]


ATOMICS = [
    (histogram, "i", "RED"),
    (histogram, "d", "RED"),
    (extremes, "f", "ATOMG.E.CAS"),
    (swap, "l", "ATOMG.E.CAS.64"),
    (histogram, "l", "RED"),
    (histogram, "f", "RED"),
    (extremes, "l", "RED"),
]


@pytest.mark.parametrize(
    ("function", "char", "instruction"), ATOMICS if DEEP else ATOMICS[1:4]
)
def test_atomics_are_the_machines_own(function, char, instruction, instructions):
    first = array("i") if function is histogram else array(char)
    code, _ = cuda.cubin(grid(function, 1, first, array(char)), (9, 0))

    assert any(instruction in line for line in instructions(code))


def first(window, out):
    out[0] = window[0]


def test_a_number_for_an_array_is_read_where_it_lies(instructions):
    number = Argument(L, 1)
    cores, rows = (number, array("l", 1, False)), (Argument(L), array("l", 2, False))
    code, _ = cuda.cubin(Grid(first, 1, rows, cores=cores), (9, 0))

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
    assert cuda.cubin(checked, (8, 0))[0][:4] == b"\x7fELF"
