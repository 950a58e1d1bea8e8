"""Tests leave the user's home as it is."""

import os
import tempfile
from pathlib import Path

import pytest

VARIABLES = ["XDEV_CACHE_DIR", "CUPY_CACHE_DIR", "NUMBA_CACHE_DIR", "CUDA_CACHE_PATH"]
VARIABLES += ["MPLCONFIGDIR", "IPYTHONDIR"]
PROGRAM = """if 1:
    import contextlib, numpy as np, xdev

    @xdev.vectorize
    def f(x):
        return x + 1

    f(np.ones(3))
    with contextlib.suppress(xdev.ConfigurationError):  # where there is no native tier
        xdev.memory.bridges.install("numpy")
"""


@pytest.mark.parametrize("name", VARIABLES)
def test_caches_have_a_folder_of_their_own(name):
    assert os.environ[name]


def test_temporary_files_lie_in_pytests_folder(tmp_path_factory, python):
    run = python("-c", "import tempfile; print(tempfile.gettempdir())")
    for folder in tempfile.gettempdir(), run.stdout.strip():
        assert tmp_path_factory.getbasetemp() in Path(folder).parents


def test_what_tests_run_writes_nothing_into_the_home(tmp_path, python):
    done = python("-c", PROGRAM, XDG_CACHE_HOME="", HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob("*")) == []
