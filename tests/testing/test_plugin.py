"""The pytest plug-in: which backends a test runs on, and SciPy's markers."""

import importlib
import importlib.util
import re
import textwrap

import pytest

import xdev

pytest_plugins = ["pytester"]

SHOW = """
import xdev

def test_device(xp):
    x = xp.asarray([1.0, 2.0])
    print("ran on", xdev.device_of(x), type(x).__name__)
    assert float(xdev.sum(x)) == 3
"""


def installed(name):
    return importlib.util.find_spec(name) is not None


@pytest.fixture(scope="module", autouse=True)
def loaded():
    """Load what a run in this process would load, and take away with itself."""
    xdev.to_numpy(xdev.sum(xdev.ones(2, device="fake")))
    if installed("array_api_strict"):
        strict = importlib.import_module("array_api_strict")
        xdev.to_numpy(xdev.sum(strict.ones(2)))


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest on a program's text without CUDA, apart where it loads libraries."""
    monkeypatch.delenv("XDEV_TEST_BACKENDS", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run_program(text, *options, apart=False):
        pytester.makepyfile(text)
        start = pytester.runpytest_subprocess if apart else pytester.runpytest
        return start("-p", "pytest_xdev", "-rsx", "-s", *options)

    return run_program


def test_a_test_runs_on_each_backend_that_is_named(run):
    result = run(SHOW, "--xdev-backends=cpu,fake,array_api_strict", "-v")

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "*test_device[[]numpy] ran on cpu ndarray",
            "*test_device[[]fake] ran on fake:0 FakeArray",
            "*test_device[[]array_api_strict] ran on cpu Array",
        ]
    )


def test_without_names_all_that_are_installed_run_or_say_why_not(run):
    result = run(SHOW, apart=True)

    names = ("torch", "jax", "dask", "array_api_strict")
    cupy = int(installed("cupy"))
    result.assert_outcomes(passed=2 + sum(map(installed, names)), skipped=cupy)
    if cupy:
        result.stdout.fnmatch_lines("SKIPPED*cuda*cannot be used*")


def test_a_named_backend_that_cannot_be_used_is_an_error(run):
    result = run(SHOW, "--xdev-backends=cuda", apart=True)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines("*DeviceUnavailableError: cuda*cannot be used*")


def test_an_unknown_name_is_refused_with_those_that_are_known(run):
    result = run(SHOW, "--xdev-backends=numpy,tensorflow")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("*no backend 'tensorflow'*numpy, fake, cupy*")


MARKED = """
import pytest

skip_xp_backends = pytest.mark.skip_xp_backends
xfail_xp_backends = pytest.mark.xfail_xp_backends

@skip_xp_backends("fake", reason="by name")
@skip_xp_backends(cpu_only=True, reason="the name counts more")
def test_named(xp):
    pass

@skip_xp_backends(np_only=True, exceptions=["fake"])
def test_numpy_and_an_exception(xp):
    pass

@xfail_xp_backends(cpu_only=True)
def test_expected_to_fail(xp):
    assert float(xp.asarray(1.0)) == 1.0

@pytest.mark.parametrize("n", [1, 2])
class TestOfAClass:
    pytestmark = skip_xp_backends("array_api_strict")

    def test_n(self, xp, n):
        pass

def test_without_xp():
    pass
"""


def test_markers_leave_backends_out(run):
    chosen = "--xdev-backends=numpy,fake,array_api_strict"
    result = run(MARKED, chosen, "--strict-markers")

    result.assert_outcomes(passed=2 + 2 + 2 + 2 * 2 + 1, skipped=1 + 1 + 2, xfailed=1)
    result.stdout.fnmatch_lines_random(
        ["*by name*", "*only NumPy*", "*only the CPU*", "*array_api_strict is not*"]
    )
    result.stdout.no_fnmatch_line("*the name counts more*")
    run(MARKED, chosen, "-m", "array_api_backends").assert_outcomes(
        passed=10, skipped=4, xfailed=1, deselected=1
    )


WRONG = """
import pytest

skip = pytest.mark.skip_xp_backends

@skip("tensorflow")
def test_unknown(xp): pass

@skip("fake", "cupy")
def test_two(xp): pass

@skip("fake", cpu_only=True)
def test_both(xp): pass

@skip(exceptions=["tensorflow"], cpu_only=True)
def test_exception(xp): pass

@skip(gpu_only=True)
def test_keyword(xp): pass

@skip(cpu_only=False, eager_only=True, np_only=True, exceptions="fake")
def test_right(xp): pass
"""


def test_wrong_arguments_of_markers_are_refused(run, monkeypatch):
    monkeypatch.setenv("XDEV_TEST_BACKENDS", "fake")
    result = run(WRONG)

    result.assert_outcomes(errors=5, passed=1)
    for words in ("not a backend: use one of", "one backend and a reason", "gpu_only"):
        result.stdout.fnmatch_lines(f"*{words}*")


def test_the_default_device_is_as_before_the_test(run):
    after = """
    def test_after():
        import xdev
        assert xdev.default_device() == "cpu"
    """

    run(SHOW + textwrap.dedent(after), "--xdev-backends=fake").assert_outcomes(passed=2)


def test_nothing_of_xdev_loads_until_it_is_used(run):
    program = """
    import sys

    def test_it():
        assert not [name for name in sys.modules if name.startswith("xdev")]
        assert "numpy" not in sys.modules
    """

    run(program, apart=True).assert_outcomes(passed=1)


def test_a_failure_shows_the_users_line_and_one_of_xdev(pytester, monkeypatch):
    pytester.makepyfile(
        """
        import numpy as np
        import xdev as xp

        def test_it():
            xp.add(np.ones(3), [1, 2, 3])
        """
    )
    options = "-p", "pytest_xdev", "--tb=short"
    few = pytester.runpytest_subprocess(*options).stdout.str()
    monkeypatch.setenv("XDEV_DEBUG", "1")
    every = pytester.runpytest_subprocess(*options).stdout.str()

    frames = re.compile(r"^\S*xdev/\S+\.pyx?:\d+: ", re.MULTILINE)
    assert len(frames.findall(few)) == 1
    assert len(frames.findall(every)) > 2
