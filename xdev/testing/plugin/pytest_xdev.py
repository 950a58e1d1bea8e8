"""xdev's plug-in for pytest: the fixture ``xp`` and SciPy's markers for it.

It is a module beside the package, and imports nothing of it until the fixture is used:
pytest loads plug-ins at every start, before coverage measures anything.
"""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The backends by SciPy's names (and ``fake``), each with the module that it needs.
MODULES = {
    "numpy": "numpy",
    "fake": "numpy",
    "cupy": "cupy",
    "torch": "torch",
    "jax.numpy": "jax",
    "dask.array": "dask",
    "array_api_strict": "array_api_strict",
}
ALIASES = {"cpu": "numpy", "cuda": "cupy", "jax": "jax.numpy", "dask": "dask.array"}
VARIABLE = "XDEV_TEST_BACKENDS"
OUTCOMES: dict[str, Any] = {
    "skip_xp_backends": pytest.skip,
    "xfail_xp_backends": pytest.xfail,
}
ARGUMENTS = "backend, *, reason, cpu_only, np_only, eager_only, exceptions"
MARKERS = (
    f"skip_xp_backends({ARGUMENTS}): skip the test for a backend of the fixture xp",
    f"xfail_xp_backends({ARGUMENTS}): expect it to fail there",
    "array_api_backends: the test uses the fixture xp",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--xdev-backends``."""
    parser.getgroup("xdev").addoption(
        "--xdev-backends",
        metavar="NAMES",
        help=f"what the fixture xp iterates on, of {', '.join(MODULES)}, separated by "
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


def _parse(text: str) -> list[str]:
    names = [ALIASES.get(name.strip(), name.strip()) for name in text.split(",")]
    for name in names:
        if name not in MODULES:
            message = f"xp has no backend {name!r}: use some of {', '.join(MODULES)}"
            raise pytest.UsageError(message)
    return names


def _installed() -> list[str]:
    find = importlib.util.find_spec
    return [name for name, module in MODULES.items() if find(module) is not None]


def _fixtures(names: list[str], *, promised: bool) -> object:
    """Return a plug-in with the fixture, whose parameters are known only now."""
    mark = pytest.mark.array_api_backends
    params = [pytest.param(name, id=name, marks=mark) for name in names]

    class Fixtures:
        @pytest.fixture(params=params)
        def xp(self, request: pytest.FixtureRequest) -> Iterator[Any]:
            """Each array API namespace in turn, its device the default one."""
            from xdev import DeviceUnavailableError
            from xdev.testing import backends

            for marker, leave_out in OUTCOMES.items():
                reasons = backends.reasons(request.node.iter_markers(marker))
                if request.param in reasons:
                    leave_out(reasons[request.param])
            try:
                opened = backends.require(request.param)
            except (ImportError, DeviceUnavailableError) as error:
                if promised:
                    raise
                pytest.skip(str(error))
            with opened as namespace:
                yield namespace

    return Fixtures()
