"""Kernels over a grid are compiled for every architecture without a GPU."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from xdev import _config, _optional, atomic
from xdev.compile.grid import Argument, Grid, cuda
from xdev.compile.grid.cores import Cores
from xdev.ufunc.kernels.functions import KernelFunction

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


def dot(x, y, out):
    out[0] = 0
    for k in range(x.shape[0]):
        out[0] += x[k] * y


def array(char, ndim=1, contiguous=True):
    return Argument(np.dtype(char), ndim, contiguous, writable=True)


def grid(function, indices, *arguments):
    typed = KernelFunction(function, fastmath=False)
    found = [a.dtype for a in arguments if a.ndim is not None and a.dtype.kind in "fc"]
    return typed.typed(indices, arguments, np.result_type(*found, "f"))


def instructions(code, folder):
    import nvidia

    tools = (f for p in nvidia.__path__ for f in Path(p).glob("*/bin/nvdisasm"))
    tool = next(tools, None) or pytest.skip("needs nvidia-cuda-nvdisasm")
    file = Path(folder) / "kernel.cubin"
    file.write_bytes(code)
    text = subprocess.run(
        [str(tool), "-c", file], capture_output=True, text=True, check=True
    ).stdout
    lines = (line.split("*/", 1)[-1].strip() for line in text.splitlines())
    return [line for line in lines if line.endswith(";")]


@pytest.fixture(autouse=True)
def no_disk_cache(monkeypatch):
    monkeypatch.setattr(cuda.cubins, "load", lambda _: None)
    monkeypatch.setattr(cuda.cubins, "save", lambda *_: None)


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
]


@pytest.mark.parametrize("capability", ARCHITECTURES, ids="sm_{0[0]}{0[1]}".format)
def test_every_architecture_has_kernels_of_all_kinds(capability):
    for function, indices, arguments in KERNELS:
        code, _ = cuda.cubin(grid(function, indices, *arguments), capability)
        assert code[:4] == b"\x7fELF"
    cores = Cores(dot, (array("f", 1, False), Argument(F), array("f")), 2)
    assert cuda.cubin(cores, capability)[0][:4] == b"\x7fELF"
    cores = Cores(dot, (array("f"), Argument(D), array("d")), 1, frozenset({1}))
    assert cuda.cubin(cores, capability)[0][:4] == b"\x7fELF"


def test_a_kernel_is_what_one_would_write_in_cuda(tmp_path):
    arguments = Argument(F), array("f"), array("f"), array("f")
    code, _ = cuda.cubin(grid(saxpy, 1, *arguments), (9, 0))

    lines = instructions(code, tmp_path)

    assert sum("LDG.E R" in line for line in lines) == 2
    assert sum("STG.E " in line for line in lines) == 1
    assert not any(w in line for line in lines for w in ("CALL", "LDL", "STL", "F2F"))
    assert any("FMUL" in line for line in lines)  # rounded twice, as NumPy does
    assert not any("FFMA" in line for line in lines)


def test_two_indices_divide_nothing(tmp_path):
    code, _ = cuda.cubin(grid(stencil, 2, array("f", 2), array("f", 2)), (9, 0))

    lines = instructions(code, tmp_path)

    assert not any(w in line for line in lines for w in ("CALL", "LDL", "STL", "I2F"))


@pytest.mark.parametrize(
    ("function", "char", "instruction"),
    [
        (histogram, "i", "RED"),
        (histogram, "l", "RED"),
        (histogram, "f", "RED"),
        (histogram, "d", "RED"),
        (extremes, "l", "RED"),
        (extremes, "f", "ATOMG.E.CAS"),
        (swap, "l", "ATOMG.E.CAS.64"),
    ],
)
def test_atomics_are_the_machines_own(function, char, instruction, tmp_path):
    first = array("i") if function is histogram else array(char)
    code, _ = cuda.cubin(grid(function, 1, first, array(char)), (9, 0))

    assert any(instruction in line for line in instructions(code, tmp_path))


@pytest.mark.parametrize("function", [saxpy, histogram])
def test_the_debug_mode_compiles(function, monkeypatch):
    monkeypatch.setattr(_config, "debug", lambda: True)
    given = array("f"), array("f"), array("f")
    arguments = (Argument(F), *given) if function is saxpy else (array("i"), array("f"))
    checked = grid(function, 1, *arguments)

    assert checked.checked
    assert cuda.cubin(checked, (8, 0))[0][:4] == b"\x7fELF"


def test_an_untypable_function_is_refused_with_types_and_line():
    def broken(i, x):
        x[i] = x.nothing_like_that

    with pytest.raises(TypeError) as caught:
        cuda.cubin(grid(broken, 1, array("f")), (9, 0))

    text = str(caught.value)
    assert text.startswith("cannot compile broken(float32[:])")
    assert "x[i] = x.nothing_like_that" in text


def test_kernels_of_other_types_have_other_code():
    one = Grid(saxpy, 1, (Argument(F), array("f"), array("f"), array("f")))
    two = Grid(saxpy, 1, (Argument(D), array("d"), array("d"), array("d")))

    assert one.parts != two.parts
    assert one.words == two.words == 4 + 1 + 3 * 3
