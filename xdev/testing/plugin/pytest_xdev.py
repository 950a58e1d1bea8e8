"""xdev's plug-in for pytest: the fixtures ``xp``, with SciPy's markers, and
``xdev_benchmark``.

It is a module beside the package, and imports nothing of it until a fixture is used:
pytest loads plug-ins at every start, before coverage measures anything.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from xdev.testing.fixtures import Benchmark

#: By SciPy's names (and ``fake``), which begin with the module that each needs.
BACKENDS = (
    *("numpy", "fake", "cupy", "torch", "jax.numpy", "dask.array"),
    "array_api_strict",
)
ALIASES = {"cpu": "numpy", "cuda": "cupy", "jax": "jax.numpy", "dask": "dask.array"}
VARIABLE = "XDEV_TEST_BACKENDS"
OUTCOMES: Any = {"skip_xp_backends": pytest.skip, "xfail_xp_backends": pytest.xfail}
ARGUMENTS = "backend, *, reason, cpu_only, np_only, eager_only, exceptions"
MARKERS = (
    f"skip_xp_backends({ARGUMENTS}): skip the test for a backend of the fixture xp",
    f"xfail_xp_backends({ARGUMENTS}): expect it to fail there",
    "array_api_backends: the test uses the fixture xp",
)
MEASURED = pytest.StashKey["Benchmark"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--xdev-backends`` and ``--xdev-benchmark-json``."""
    group = parser.getgroup("xdev")
    group.addoption(
        "--xdev-benchmark-json",
        metavar="FILE",
        type=Path,
        help="write what xdev_benchmark measures to FILE, as pytest-benchmark does",
    )
    group.addoption(
        "--xdev-backends",
        metavar="NAMES",
        help=f"what the fixture xp iterates on, of {', '.join(BACKENDS)}, separated by "
        f"commas; all that are installed unless given here or by {VARIABLE}",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and the fixture for the backends that were chosen."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    named = config.getoption("--xdev-backends") or os.environ.get(VARIABLE)
    names = _parse(named) if named else _installed()
    plugin = _fixtures(names, promised=bool(named))
    config.pluginmanager.register(plugin, "xdev-fixtures")
    if not hasattr(config, "workerinput"):  # no worker of pytest-xdist
        path = config.getoption("--xdev-benchmark-json")
        if path is not None:
            from xdev.timing.verdict import writable

            try:
                writable(path)  # before any test runs
            except OSError as error:
                message = f"--xdev-benchmark-json: cannot write {str(path)!r}: {error}"
                raise pytest.UsageError(message) from error
        config.pluginmanager.register(Measurements(path), "xdev-measurements")


@pytest.fixture
def xdev_benchmark(request: pytest.FixtureRequest) -> Benchmark:
    """Call it with a function and its arguments: it times them, returns the result."""
    from xdev.testing.fixtures import Benchmark

    node = request.node
    params = node.callspec.params if hasattr(node, "callspec") else None
    benchmark = node.stash[MEASURED] = Benchmark(node.name, node.nodeid, params)
    return benchmark


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, Any]:
    """Let the report of a test's call carry what it measured, to where it is read.

    In the traceback of an error xdev's frames but one are hidden, unless XDEV_DEBUG=1.
    """
    if call.excinfo is not None and "xdev" in sys.modules:
        from xdev import _tracebacks

        _tracebacks.hide(call.excinfo.value)
    report = yield
    if call.when == "call" and MEASURED in item.stash:
        report.xdev_benchmark = item.stash[MEASURED].entry()
    return report


class Measurements:
    """What ``xdev_benchmark`` measured in all tests, of all of pytest-xdist's workers.

    Parameters
    ----------
    path : Path or None
        Where the record goes.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.entries: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a test measured."""
        entry = getattr(report, "xdev_benchmark", None)
        if entry is not None:
            self.entries.append(entry)

    def pytest_sessionfinish(self) -> None:
        """Write the record."""
        if self.path is not None:
            from xdev.testing.fixtures import document

            text = json.dumps(document(self.entries), indent=1)
            self.path.write_text(f"{text}\n", encoding="utf-8")

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Print the times."""
        if not self.entries:
            return
        from xdev.timing.result import format_time

        terminalreporter.section("xdev_benchmark")
        for entry in self.entries:
            stats = entry["stats"]
            times = (format_time(stats[key]) for key in ("median", "min", "max"))
            terminalreporter.write_line(
                "{}: {} ({} to {})".format(entry["fullname"], *times)
            )


def _parse(text: str) -> list[str]:
    names = [ALIASES.get(name.strip(), name.strip()) for name in text.split(",")]
    for name in names:
        if name not in BACKENDS:
            message = f"xp has no backend {name!r}: use some of {', '.join(BACKENDS)}"
            raise pytest.UsageError(message)
    return names


def _installed() -> list[str]:
    find = importlib.util.find_spec
    return [n for n in BACKENDS if n == "fake" or find(n.partition(".")[0]) is not None]


def _fixtures(names: list[str], *, promised: bool) -> object:
    """Return a plug-in with the fixture, whose parameters are known only now."""
    mark = pytest.mark.array_api_backends
    params = [pytest.param(name, id=name, marks=mark) for name in names]

    class Fixtures:
        @pytest.fixture(params=params)
        def xp(self, request: pytest.FixtureRequest) -> Iterator[Any]:
            """Each array API namespace in turn, its device the default one."""
            from xdev import DeviceUnavailableError, use_device
            from xdev.testing import fixtures

            for marker, leave_out in OUTCOMES.items():
                reasons = fixtures.reasons(request.node.iter_markers(marker))
                if request.param in reasons:
                    leave_out(reasons[request.param])
            try:
                device, namespace = fixtures.require(request.param)
            except (ImportError, DeviceUnavailableError) as error:
                if promised:
                    raise
                pytest.skip(str(error))
            with use_device(device):
                yield namespace

    return Fixtures()
