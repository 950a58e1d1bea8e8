"""What compiled code depends on but the function: compilers, settings, our own code."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from functools import cache, lru_cache

from xdev import _optional
from xdev.compile.digests import joined

COMPILERS = ("numba", "llvmlite", "numpy", "xdev_array")
CONFIGURATIONS = ("numba.core.config", "numba.cuda.core.config")
CONFIGURATION = ".numba_config.yaml"  # Numba reads it where a process starts
VARIABLES = ("NUMBA_", "LLVMLITE_", "CUDA_HOME", "CUDA_PATH")
# What other settings change is the machine code, or is not known to leave it alone.
HARMLESS = frozenset(
    {"CACHE_DIR", "NUM_THREADS", "NUMBA_NUM_THREADS", "CUDA_DEFAULT_PTX_CC"}
)
SOURCES = (".py", ".cu", ".cuh")


def digest() -> str:
    """Return what compiled code depends on but the function: compilers, our own code.

    And the compilers' settings, which a program may change.
    """
    return joined(_installed(), _settings())


@cache
def _installed() -> str:
    """Return the versions, and our own code's.

    It is found without loading a compiler, and without reading our files: when they
    were changed, and their sizes, tell them apart, as they do for Python's own cache.
    """
    versions = [(name, _optional.version(name)) for name in COMPILERS]
    parts: list[object] = [versions, sys.version]
    here = os.path.dirname(__file__)  # noqa: PTH120 - pathlib doubles the time
    folders = [here, f"{here}/../ufunc"]
    for folder in folders:  # it grows
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.endswith(SOURCES):
                    found = entry.stat()
                    parts.append((entry.name, found.st_size, found.st_mtime_ns))
                elif "." not in entry.name and not entry.name.startswith("_"):
                    folders.append(entry.path)
    return joined(*parts)


def _settings() -> tuple[object, ...]:
    """Return what Numba is told: by the environment, a file, and the program."""
    names = [name for name in os.environ if name.startswith(VARIABLES)]
    variables = tuple(
        (name, os.environ.get(name))
        for name in sorted(names)
        if name.removeprefix("NUMBA_") not in HARMLESS
    )
    try:
        with open(CONFIGURATION, "rb") as file:  # noqa: PTH123 - pathlib loads more
            text = file.read()
    except OSError:
        text = b""
    changed = []
    for name in CONFIGURATIONS:
        if name in sys.modules:
            unchanged = _unchanged(name, variables, text)
            now = vars(sys.modules[name])
            changed += [
                (option, repr(now.get(option)))
                for option, value in unchanged.items()
                if repr(now.get(option)) != value
            ]
    return variables, text, changed


@lru_cache(maxsize=len(CONFIGURATIONS))
def _unchanged(name: str, *_told: object) -> dict[str, str]:
    """Return the options that a configuration of Numba has before programs set any."""
    spec = importlib.util.spec_from_file_location(name, sys.modules[name].__file__)
    assert spec is not None  # noqa: S101 - the file was loaded before
    assert spec.loader is not None  # noqa: S101
    fresh = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings(action="ignore"):  # said when it was loaded
        spec.loader.exec_module(fresh)
    options = vars(fresh).items()
    return {k: repr(v) for k, v in options if k.isupper() and k not in HARMLESS}
