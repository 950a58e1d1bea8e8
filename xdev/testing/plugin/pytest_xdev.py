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
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import mean, median, quantiles, stdev
from typing import TYPE_CHECKING, Any, final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from xdev.timing import Timing

#: Where arrays are, and whose functions make them: by SciPy's names (and ``fake``),
#: which begin with the module that each needs.
BACKENDS = {
    "numpy": ("cpu", "xdev"),
    "fake": ("fake", "xdev"),
    "cupy": ("cuda", "xdev"),
    "torch": ("cpu", "array_api_compat.torch"),
    "jax.numpy": ("cpu", "jax.numpy"),
    "dask.array": ("cpu", "array_api_compat.dask.array"),
    "array_api_strict": ("cpu", "array_api_strict"),
}
#: Which backends a keyword of a marker leaves out, and the reason it gives.
KEYWORDS = {
    "np_only": ({*BACKENDS} - {"numpy"}, "only NumPy is supported"),
    "cpu_only": ({"fake", "cupy"}, "only the CPU is supported"),
    "eager_only": ({"jax.numpy", "dask.array"}, "only eager arrays are supported"),
}
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
# As compare's.
RUN_SECONDS = 0.01
REPEAT = 11
FORMAT = "5.1.0"  # the version of pytest-benchmark whose format the record has


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
    """What ``xdev_benchmark`` measured in all tests, of all workers of pytest-xdist."""

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
            from xdev.timing.environment import environment

            document = {
                "machine_info": environment(),
                "commit_info": {},
                "benchmarks": self.entries,
                "datetime": datetime.now(UTC).isoformat(),
                "version": FORMAT,
            }
            text = json.dumps(document, indent=1)
            self.path.write_text(f"{text}\n", encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the times."""
        if not self.entries:
            return
        from xdev.timing.result import format_time

        terminalreporter.section("xdev_benchmark")
        for entry in self.entries:
            stats = entry["stats"]
            times = (format_time(stats[key]) for key in ("median", "min", "max"))
            text = "{}: {} ({} to {})".format(entry["fullname"], *times)
            terminalreporter.write_line(text)


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
            from xdev import Device, DeviceUnavailableError, use_device

            for marker, leave_out in OUTCOMES.items():
                reasons = reasons_of(request.node.iter_markers(marker))
                if request.param in reasons:
                    leave_out(reasons[request.param])
            name, library = BACKENDS[request.param]
            try:
                device = Device(name).require()
                namespace = importlib.import_module(library)
            except (ImportError, DeviceUnavailableError) as error:
                if promised:
                    raise
                pytest.skip(str(error))
            with use_device(device):
                yield namespace

    return Fixtures()


def reasons_of(markers: Iterable[Any]) -> dict[str, str]:
    """Return the backends that markers leave out, each with the reason.

    Of several reasons for one backend that of a marker which names it counts, else the
    first.
    """
    reasons: dict[str, str] = {}
    for marker in sorted(markers, key=lambda marker: not marker.args):
        keywords = dict(marker.kwargs)
        reason, listed = keywords.pop("reason", None), keywords.pop("exceptions", ())
        exceptions = {listed} if isinstance(listed, str) else set(listed)
        if len(marker.args) > 1 or (marker.args and (keywords or exceptions)):
            way = "the marker takes one backend and a reason, or keywords"
            raise ValueError(f"{way}: {marker}")
        for name in (*marker.args, *exceptions):
            if not isinstance(name, str) or name not in BACKENDS:
                valid = ", ".join(BACKENDS)
                raise ValueError(f"{name!r} is not a backend: use one of {valid}")
        left_out = [({name}, f"{name} is not supported") for name in marker.args]
        for keyword, wanted in keywords.items():
            if keyword not in KEYWORDS:
                valid = ", ".join(("reason", "exceptions", *KEYWORDS))
                raise TypeError(f"the marker has no argument {keyword!r}: use {valid}")
            left_out += [KEYWORDS[keyword]] * bool(wanted)
        for names, why in left_out:
            for name in names - exceptions:
                reasons.setdefault(name, reason or why)
    return reasons


@final
class Benchmark:
    """What a test gets as ``xdev_benchmark``: call it once, with what is to be timed.

    Parameters
    ----------
    name, fullname : str
        The test's name, without and with its file.
    params : dict or None
        What it is parametrised with.

    Attributes
    ----------
    group : str or None
        Tests of one group stand in one table of pytest-benchmark.
    extra_info : dict
        More for the record: numbers, texts, arrays, lists and dicts of them; what is
        none of these goes in as text.
    timing : Timing or None
        What was measured.

    Examples
    --------
    >>> measured = Benchmark("test_sum", "test_it.py::test_sum", None)
    >>> measured(sum, [1, 2, 3])
    6
    >>> measured.timing.repeat
    11
    """

    def __init__(self, name: str, fullname: str, params: dict[str, Any] | None) -> None:
        self.name, self.fullname, self.params = name, fullname, params
        self.group: str | None = None
        self.extra_info: dict[str, Any] = {}
        self.timing: Timing | None = None

    def __call__(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Time ``f(*args, **kwargs)`` to the end of its work; return its first result.

        Raises
        ------
        RuntimeError
            Something was timed in this test before.
        """
        if self.timing is not None:
            way = "make it two tests, or use xdev.timing.compare"
            raise RuntimeError(f"xdev_benchmark times one thing in a test: {way}")
        from xdev.timing.sampling import begin

        candidate, result = begin(partial(f, *args, **kwargs), arguments=args)
        self.timing = candidate.measure(None, REPEAT, seconds=RUN_SECONDS)
        return result

    def entry(self) -> dict[str, Any] | None:
        """Return what the record says of the test; None where nothing was timed."""
        if self.timing is None:
            return None
        # Parameters of any type go in as text.
        params = self.params and {key: str(each) for key, each in self.params.items()}
        return {
            "group": self.group,
            "name": self.name,
            "fullname": self.fullname,
            "params": params,
            "param": "-".join(params.values()) if params else None,
            "extra_info": json.loads(json.dumps(self.extra_info, default=_plain)),
            "options": {"timer": "perf_counter", "disable_gc": True, "warmup": True},
            "stats": statistics_of(self.timing.timings, self.timing.loops),
        }


def _plain(value: Any) -> Any:
    """Return a value that JSON lacks in its types: arrays' as Python's, others as text.

    So it goes into the record, and comes from pytest-xdist's workers.
    """
    values = value.tolist() if hasattr(value, "tolist") else str(value)
    return str(value) if type(values) is type(value) else values


def statistics_of(times: Sequence[float], loops: int) -> dict[str, Any]:
    """Return what pytest-benchmark says of times of a call in each round [s]."""
    low, _, high = quantiles(times, method="inclusive")
    middle, spread, reach = mean(times), stdev(times), 1.5 * (high - low)
    outliers = sum(abs(t - middle) > spread for t in times)
    inner = [t for t in times if low - reach <= t <= high + reach]
    return {
        "min": min(times),
        "max": max(times),
        "mean": middle,
        "stddev": spread,
        "rounds": len(times),
        "median": median(times),
        "iqr": high - low,
        "q1": low,
        "q3": high,
        "iqr_outliers": len(times) - len(inner),
        "stddev_outliers": outliers,
        "outliers": f"{outliers};{len(times) - len(inner)}",
        "ld15iqr": min(inner),
        "hd15iqr": max(inner),
        "ops": 1 / middle,
        "total": sum(times),
        "data": list(times),
        "iterations": loops,
    }
