"""Cubins on disk: made anew whenever a part of the compiler is another."""

import pytest

from xdev import _optional
from xdev.compile import cubins, digests

if not all(map(_optional.installed, ("cupy", "numba_cuda"))):
    pytest.skip("needs numba-cuda and CuPy: the group cuda", allow_module_level=True)

MADE = b"\x7fELF\n\x00code", "_Z6kernelv"


@pytest.mark.usefixtures("no_disk_cache")
def test_whatever_a_cubin_depends_on_compiles_it_anew(monkeypatch):
    def is_compiled(digest="digest", parts=("ff->f", (9, 0))):
        calls = []
        make = lambda: calls.append(1) or MADE  # noqa: E731
        assert cubins.load_or_compile(digest, parts, "f", make) == MADE
        return bool(calls)

    others = {"digest": "other"}, {"parts": ("ff->f", (8, 0))}
    assert [is_compiled(**each) for each in ({}, {}, *others)] == [
        True,
        False,
        True,
        True,
    ]
    assert is_compiled(digest=None)
    assert is_compiled(digest=None)
    versions = cubins.installed()
    for part in versions:
        with monkeypatch.context() as patch:
            patch.setattr(
                cubins, "installed", lambda part=part: versions | {part: "99"}
            )
            assert is_compiled()
    monkeypatch.setattr(digests, "environment", lambda: "another xdev")
    assert is_compiled()


FUNCTION = """
import math
import xdev

SCALE = 2.0

@xdev.vectorize
def shifted(x):
    return x + SCALE

@xdev.vectorize
def f(a, x, y):
    return 0.5 * a * shifted(x) + y * 3 - math.sin(x)
"""
ON_CUDA = """
import sys
import numpy as np
from function import f
from xdev.compile.cubins import Elementwise, Operand, load_or_compile

f4 = np.dtype("f4")
spec = f.definition.specialise((f4,) * 3)
operands = *[Operand("Linear", f4, f4)] * 3, Operand("Output", f4, f4)
make = lambda: spec.cubin(Elementwise(operands), (9, 0), fastmath=False)
print(load_or_compile(spec.digest, operands, "f", make, spec.unchanged))
print({"numba", "llvmlite"} & {*sys.modules} or "no compiler")
"""


def test_a_kept_function_is_the_same_and_needs_no_compiler(tmp_path, printed):
    (tmp_path / "function.py").write_text(FUNCTION)
    places = {"XDEV_CACHE_DIR": tmp_path / "cache", "PYTHONPATH": tmp_path}
    (made, first), (kept, later) = (
        printed(ON_CUDA, **places).splitlines() for _ in range(2)
    )

    assert kept == made
    assert first != later == "no compiler"
