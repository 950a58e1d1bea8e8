"""Tests leave the user's home as it is."""

PROGRAM = """if 1:
    import contextlib, numpy as np, xdev

    @xdev.vectorize
    def f(x):
        return x + 1

    f(np.ones(3))
    with contextlib.suppress(xdev.ConfigurationError):  # where there is no native tier
        xdev.memory.bridges.install("numpy")
"""


def test_what_tests_run_writes_nothing_into_the_home(
    tmp_path, tmp_path_factory, python
):
    program = f"{PROGRAM}    import tempfile; print(tempfile.gettempdir())"
    done = python("-c", program, XDG_CACHE_HOME="", HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path_factory.getbasetemp()))
    assert list(tmp_path.rglob("*")) == []
