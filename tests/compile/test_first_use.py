"""What one process compiled, the next one runs without a compiler."""

import os
import subprocess
import sys

import numpy as np
import pytest

import xdev
from xdev import _config, _optional
from xdev.ufunc.scalar import ScalarFunction

CUDA = all(map(_optional.installed, ("cupy", "numba_cuda")))

FUNCTION = """
import math, sys
import numpy as np
import xdev

SCALE = 2.0

@xdev.vectorize
def shifted(x):
    return x + SCALE

@xdev.vectorize
def f(x, y):
    return shifted(x) * y + math.sin(x), x > y
"""
ON_THE_CPU = """
x = np.linspace(-3, 3, 100, dtype="float32")
value, larger = f(x, x[::-1])
print(value.dtype, larger.dtype, value.tobytes().hex(), "numba" in sys.modules)
"""
ON_CUDA = """
from xdev.compile.elementwise import Elementwise, Operand
spec = f.definition.specialise((np.dtype("f4"), np.dtype("f4")))
operands = [Operand("Linear", d, d) for d in spec.inputs]
operands += [Operand("Output", d, d) for d in spec.outputs]
code, entry = f._cuda._cubin(spec, Elementwise(tuple(operands)), (9, 0))
print(entry, code.hex(), "numba" in sys.modules)
"""


def runs(text, folder, times=2, **environment):
    """Return the words that each of several processes prints, one after the other."""
    program = folder / "program.py"
    program.write_text(text)
    found = []
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, program],
            env={**os.environ, "XDEV_CACHE_DIR": str(folder / "cache"), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.split())
    return found


def test_a_second_process_runs_on_the_cpu_without_numba(tmp_path):
    first, second = runs(FUNCTION + ON_THE_CPU, tmp_path)

    assert first[:2] == ["float32", "bool"]
    assert first[-1] == "True"
    assert second == [*first[:-1], "False"]


RANDOM = """
import sys
import numpy as np
import xdev

rng = xdev.random.default_rng(7, device="cpu")
chances = [0.1, 0.2, 0.7]
drawn = rng.choice(3, 9, p=chances), rng.choice(3, 2, replace=False, p=chances)
drawn += rng.integers(0, np.arange(1, 10)), rng.normal(size=3)
print(*(x.tobytes().hex() for x in drawn), "numba" in sys.modules)
"""


def test_random_numbers_need_no_numba_the_second_time(tmp_path):
    first, second = runs(RANDOM, tmp_path)

    assert second == [*first[:-1], "False"]


@pytest.mark.skipif(not CUDA, reason="needs numba-cuda and CuPy: the group cuda")
def test_a_second_process_has_the_cubin_without_numba(tmp_path):
    first, second = runs(FUNCTION + ON_CUDA, tmp_path)

    assert first[-1] == "True"
    assert second == [*first[:-1], "False"]


def test_a_function_of_numbas_library_is_found_again(tmp_path):
    """`gamma` is in no C library by that name: Numba brings what the code calls."""
    text = """
import math, sys
import numpy as np
import xdev

@xdev.vectorize
def f(x):
    return math.gamma(x) + math.erf(x)

x = np.linspace(1, 5, 9)
assert np.allclose(f(x), [math.gamma(v) + math.erf(v) for v in x], rtol=1e-13)
"""
    runs(text, tmp_path)


def test_a_changed_global_of_an_inner_function_is_computed_anew(tmp_path):
    ((*_, before, _),) = runs(FUNCTION + ON_THE_CPU, tmp_path, times=1)
    changed = FUNCTION.replace("SCALE = 2.0", "SCALE = 3.0")

    ((*_, after, numba),) = runs(changed + ON_THE_CPU, tmp_path, times=1)

    assert after != before
    assert numba == "True"


def test_a_cache_that_cannot_be_used_costs_time_alone(tmp_path):
    (words,) = runs(FUNCTION + ON_THE_CPU, tmp_path, 1, XDEV_CACHE_DIR="/proc/none")

    assert words[-1] == "True"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path)
    return tmp_path


def scaled(x):
    return x * 3


@pytest.mark.parametrize("chars", ["f", "d", "b", "e", "F", "?"])
def test_a_typing_from_disk_is_the_inferred_one(cache, chars):
    inputs = tuple(map(np.dtype, chars))
    first, second = (ScalarFunction(scaled).specialise(inputs) for _ in range(2))

    assert len(list((cache / "typings").iterdir())) == 1
    assert first.outputs == second.outputs
    assert first.digest == second.digest is not None
    assert second.function(inputs[0].type(1)) == 3


def test_dtypes_with_and_without_source_do_not_mix(cache):
    """Literals are weak only where their source is known."""
    x = np.ones(3, np.float32)
    assert xdev.vectorize(scaled)(x).dtype == np.float32
    namespace = {}
    exec("def scaled(x): return x * 3", namespace)  # noqa: S102

    xdev.vectorize(namespace["scaled"])(x)

    assert len(list((cache / "typings").iterdir())) == 1


def test_a_global_that_changes_between_typing_and_compiling(cache):  # noqa: ARG001
    factor = 2.0

    def function(x):
        return x * factor

    dtype = np.dtype(np.float64)
    first = ScalarFunction(function).specialise((dtype,))
    factor = 3.0
    second = ScalarFunction(function).specialise((dtype,))

    assert first.digest != second.digest
    assert (first.function(1.0), second.function(1.0)) == (2.0, 3.0)


def test_a_function_that_cannot_be_told_apart_is_not_kept(cache):
    class Unit:
        value = 2.0

    def function(x):
        return x + Unit

    with pytest.raises(TypeError, match="Unit"):
        xdev.vectorize(function)(np.ones(3))
    assert not list(cache.rglob("*"))


def test_a_typing_of_bfloat16_comes_back(cache):  # noqa: ARG001
    bfloat16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)

    first, second = (ScalarFunction(scaled).specialise((bfloat16,)) for _ in range(2))

    assert first.outputs == second.outputs == (bfloat16,)
