"""Set-ups of the machine and of Numba under which everything works as elsewhere."""

import pytest

PROGRAM = """
    import numpy as np, xdev
    from xdev import memory

    double = xdev.vectorize(lambda x: x * 2 + 1)
    total = xdev.vectorize(["float32(float32, float32)"])(lambda x, y: x + y)

    @xdev.guvectorize("(n)->()")
    def first(x, out):
        out[0] = x[0]

    @xdev.kernel
    def shift(i, x, out, counted):
        out[i] = x[i - 1]
        xdev.atomic.add(counted, 0, 1)

    x, n = np.arange(1 << 17, dtype="f4"), 1 << 17
    out, counted = np.empty_like(x), np.zeros(1)
    assert double(x).dtype == "f4" and (double(x) == x * 2 + 1).all()
    assert double(np.float16(2)) == 5
    assert (total(x, x) == x + x).all() and total.reduce(x[:9]) == 36
    assert first(x.reshape(2, -1)).tolist() == [0, n // 2]
    shift[n](x, out, counted)
    assert (out == np.roll(x, 1)).all() and counted == n
    assert xdev.sum(xdev.add(x, 1)) == (x + 1).sum()
    assert [y.sum() for y in xdev.batches([x[:3]], "cpu")] == [3]
    memory.set_limit("50%", "cpu")
    assert memory.get_limit("cpu") > 0
    memory.set_limit(None, "cpu")
    assert "cpu" in memory.summary("cpu")
    try:
        memory.bridges.install("numpy")
        assert np.ones(100_000).sum() == 100_000
        memory.bridges.uninstall("numpy")
    except xdev.ConfigurationError:  # there is no compiled part
        pass
"""
NUMBAS = """
    import numba

    @numba.njit
    def own(x):
        return x[5]

    assert ("Dispatcher" in type(own).__name__) == COMPILED
    try:
        own(np.ones(2))
    except IndexError:
        pass
    else:
        raise AssertionError("its own function's bounds are not checked")
"""
INFO = """
    from xdev.cli import main
    main(["info"])
"""
WITHOUT_PROC = """
    import builtins, io, os

    def hidden(real):
        def without(path, *arguments, **options):
            if str(path).startswith(("/proc", "/sys")):
                raise FileNotFoundError(2, "No such file or directory", str(path))
            return real(path, *arguments, **options)
        return without

    builtins.open, os.scandir = hidden(open), hidden(os.scandir)
    io.open, os.listdir = hidden(io.open), hidden(os.listdir)
"""
WITHOUT_A_TOTAL = """
    os.sysconf = lambda name: -1
    import xdev
    from xdev import memory
    assert xdev.sum(xdev.ones(100_000)) == 100_000
    print(memory.summary("cpu"))
    try:
        memory.set_limit("50%", "cpu")
    except xdev.ConfigurationError as error:
        print(error)
    memory.set_limit("1GiB", "cpu")
    assert memory.get_limit("cpu") == 1 << 30
"""


@pytest.fixture
def run(printed):
    def run_parts(*parts, **variables):
        return printed("".join(parts), options=("-W", "ignore"), **variables)

    return run_parts


def test_there_is_no_proc(run):
    told = run(WITHOUT_PROC, PROGRAM, INFO)
    assert "FAIL" not in told
    assert "PASS" in told


def test_the_system_does_not_tell_how_much_memory_there_is(run):
    told = run(WITHOUT_PROC, WITHOUT_A_TOTAL)
    assert "give the limit in bytes (4294967296)" in told


SETTINGS = {"BOUNDSCHECK": "1", "DEBUGINFO": "1", "OPT": "0", "CPU_NAME": "generic"}
SMALL = """
    import numpy as np, xdev
    assert xdev.vectorize(lambda x: x * 2 + 1)(np.ones(9)).sum() == 27
"""


@pytest.mark.parametrize("compiled", [True, False])
def test_numbas_settings_are_for_its_own_functions(run, tmp_path, compiled):
    own = NUMBAS.replace("COMPILED", str(compiled))
    settings = SETTINGS if compiled else SETTINGS | {"DISABLE_JIT": "1"}
    numbas = {f"NUMBA_{name}": value for name, value in settings.items()}
    numbas["XDEV_CACHE_DIR"] = str(tmp_path)  # without anything: all is compiled
    run(SMALL if compiled else PROGRAM, own, **numbas)
