"""What the plug-in's fixtures give: ``xp``'s backends, and ``xdev_benchmark``."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime
from functools import partial
from statistics import mean, median, quantiles, stdev
from typing import TYPE_CHECKING, Any, final

from xdev.device import as_device
from xdev.timing.environment import environment
from xdev.timing.sampling import begin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType

    from xdev.device import Device
    from xdev.timing import Timing


#: Where arrays are, and whose functions make them: by SciPy's names, and ``fake``.
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


def reasons(markers: Iterable[Any]) -> dict[str, str]:
    """Return the backends that markers leave out, each with the reason.

    Parameters
    ----------
    markers : iterable of pytest.Mark
        Of ``skip_xp_backends(backend, *, reason)`` or ``skip_xp_backends(*, np_only,
        cpu_only, eager_only, exceptions, reason)``; of several reasons for one backend
        the one that names it counts, else the first.

    Raises
    ------
    TypeError, ValueError
        A marker has an argument that it cannot have, or names no backend.
    """
    by_name: dict[str, str] = {}
    by_kind: dict[str, str] = {}
    for marker in markers:
        keywords = dict(marker.kwargs)
        reason = keywords.pop("reason", None)
        if marker.args:
            name = _named(marker.args, keywords)
            by_name.setdefault(name, reason or f"{name} is not supported")
            continue
        listed = keywords.pop("exceptions", ())
        exceptions = {listed} if isinstance(listed, str) else set(listed)
        for name in exceptions:
            _check(name)
        for keyword, wanted in keywords.items():
            if keyword not in KEYWORDS:
                valid = ", ".join(("reason", "exceptions", *KEYWORDS))
                raise TypeError(f"the marker has no argument {keyword!r}: use {valid}")
            left_out, why = KEYWORDS[keyword]
            for name in left_out - exceptions if wanted else ():
                by_kind.setdefault(name, reason or why)
    return by_kind | by_name


def _named(args: tuple[Any, ...], others: dict[str, Any]) -> str:
    name = args[0]
    if len(args) > 1 or others:
        raise ValueError(
            f"the marker takes one backend and a reason, or keywords: {args}, {others}"
        )
    _check(name)
    return str(name)


def _check(name: object) -> None:
    if not isinstance(name, str) or name not in BACKENDS:
        raise ValueError(f"{name!r} is not a backend: use one of {', '.join(BACKENDS)}")


def require(name: str) -> tuple[Device, ModuleType]:
    """Return a backend's device and namespace.

    Raises
    ------
    ImportError, DeviceUnavailableError
        The library is not installed, or its device cannot be used.
    """
    device, namespace = BACKENDS[name]
    return as_device(device), importlib.import_module(namespace)


# As compare's.
RUN_SECONDS = 0.01
REPEAT = 11
# The version of pytest-benchmark whose format this is.
FORMAT = "5.1.0"


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
            raise RuntimeError(
                "xdev_benchmark times one thing in a test: make it two tests, or use "
                "xdev.timing.compare"
            )
        candidate, result = begin(partial(f, *args, **kwargs), arguments=args)
        candidate.settle(None, RUN_SECONDS)
        for _ in range(REPEAT):
            candidate.sample()
        self.timing = candidate.timing()
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
            "extra_info": plain(self.extra_info),
            "options": {"timer": "perf_counter", "disable_gc": True, "warmup": True},
            "stats": statistics_of(self.timing.timings, self.timing.loops),
        }


def plain(value: Any) -> Any:
    """Return a value in JSON's types: arrays' numbers as Python's, others as text.

    So it goes into the record, and comes from pytest-xdist's workers.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"n": np.int64(3), 4: [np.ones(2), None, 1j]})
    {'n': 3, '4': [[1.0, 1.0], None, '1j']}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if value is None or isinstance(value, bool):
        return value
    kind = next((kind for kind in (int, float) if isinstance(value, kind)), str)
    return kind(value)


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


def document(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the whole record, as ``pytest-benchmark compare`` reads it."""
    return {
        "machine_info": environment(),
        "commit_info": {},
        "benchmarks": entries,
        "datetime": datetime.now(UTC).isoformat(),
        "version": FORMAT,
    }
