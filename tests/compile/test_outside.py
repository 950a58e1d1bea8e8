"""What copies of functions keep alive: what their code names, and nothing else."""

import os
import subprocess
import sys
import types

import pytest

from xdev.compile.digests import named_globals

PROGRAM = """
import gc, math, weakref
import numpy as np
import xdev

@xdev.vectorize
def twice(a):
    return 2 * a

@xdev.vectorize
def f(a, b):
    return twice(a) + b * 2.0625 + math.sin(a)

@xdev.kernel
def k(i, a, o):
    o[i] = twice(a[i])

@xdev.guvectorize("(n)->()")
def g(x, o):
    total = 0.0
    for v in x:
        total += v
    o[0] = total

x = np.ones(1000)
kept, o = weakref.ref(x), np.empty_like(x)
f(x, x, out=o)
k[x.size](x, o)
g(x)
del x, o
gc.collect()
print(kept() is None)
"""


def test_the_names_of_a_function_and_of_those_inside():
    space = {"a": 1, "b": 2, "other": 3, "__name__": "here", "__builtins__": {}}
    code = compile("lambda: a + (lambda: b + nowhere)()", "", "eval")
    function = types.FunctionType(code.co_consts[0], space)

    assert named_globals(function) == {k: v for k, v in space.items() if k != "other"}


@pytest.mark.parametrize("shares", [False, True], ids=["compiled", "kept on disk"])
def test_no_array_of_the_users_module_is_kept(tmp_path, shares):
    for _ in range(1 + shares):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"XDEV_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
