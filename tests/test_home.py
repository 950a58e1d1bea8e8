"""Tests leave the user's home as it is."""

PROGRAM = """
    import contextlib, numpy as np, xdev

    @xdev.vectorize
    def f(x):
        return x + 1

    f(np.ones(3))
    with contextlib.suppress(xdev.ConfigurationError):  # where there is no native tier
        xdev.memory.bridges.install("numpy")
"""


def test_what_tests_run_writes_nothing_into_the_home(
    tmp_path, tmp_path_factory, printed
):
    program = f"{PROGRAM}    import tempfile; print(tempfile.gettempdir())"
    told = printed(program, XDG_CACHE_HOME="", HOME=tmp_path)
    assert told.startswith(str(tmp_path_factory.getbasetemp()))
    assert list(tmp_path.rglob("*")) == []
