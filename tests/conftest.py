"""One test, every device: an absent one skips, unless the run promised it."""

import gc
import importlib
import os
import re
import signal
import sys
import tempfile
from functools import cache
from pathlib import Path

import hypothesis
import numpy as np
import pytest

import xdev
from xdev import _config, native
from xdev.compile import threads

sys.path.append(str(Path(__file__).parent))  # for the modules that rooms share
import running

# JAX reads these when it is imported: two devices, the standard's data types, and no
# memory of the GPU beyond what it needs.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "2")
os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
PROMISED = set(os.environ.get("XDEV_TEST_DEVICES", "cpu").split(","))
LIBRARIES = set(os.environ.get("XDEV_TEST_LIBRARIES", "").split(","))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell's background job
    signal.signal(signal.SIGINT, signal.default_int_handler)  # some tests interrupt

hypothesis.settings.register_profile("ci", deadline=None, max_examples=25)
hypothesis.settings.register_profile("deep", deadline=None, max_examples=2000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


# Compilers make much that is no garbage: to look through it takes a tenth of the time.
gc.set_threshold(20_000, 20, 20)

# What makes large arrays keeps the pool that it finds first: not one of a test's own.
xdev.memory.host_array((1 << 16,), np.dtype(np.uint8))

ROOT = Path(__file__).parents[1]


def pytest_collection_modifyitems(items):
    for item in items:
        text = _text(item.path)
        if item.path.suffix == ".py" and not all(map(_is_public, _names(text))):
            item.add_marker("internal")


@cache
def _text(path):
    return path.read_text(encoding="utf-8")


@cache
def _names(text):
    """Return each dotted name of ours in a program, and in texts that are programs."""
    names = {f"xdev{name}" for name in re.findall(r"\b(?:xdev|xp)((?:\.\w+)+)", text)}
    pattern = r"from (xdev[\w.]*) import (?:\(([^)]*)\)|([^\n]*))"
    for room, lines, line in re.findall(pattern, text):
        imported = re.sub(r" as \w+|#.*", "", lines or line)
        names |= {f"{room}.{name}" for name in re.findall(r"\w+", imported)}
    return names


@cache
def _is_public(name):
    parts = name.split(".")
    for n, part in enumerate(parts[1:], 2):
        path = ROOT.joinpath(*parts[:n])
        is_module = path.is_dir() or path.with_suffix(".py").is_file()
        if is_module and ".".join(parts[:n]) not in running.PUBLIC:
            return False
        if part.startswith("_") and not part.startswith("__"):
            return False
    return True


@pytest.fixture(scope="session", autouse=True)
def _temporary_files(tmp_path_factory):
    """Temporary files of the tests, and of what they run, go where pytest's do."""
    os.environ["TMPDIR"] = str(tmp_path_factory.mktemp("temporary"))
    tempfile.tempdir = None  # it is asked for anew


@pytest.fixture(scope="module", autouse=True)
def _what_is_there_stays():
    """Leave what earlier modules and the tests' list hold out of each collection.

    Many tests collect, and a refusal of memory does; among all that Numba, Hypothesis
    and twenty thousand tests keep, one takes a second.
    """
    gc.collect()
    gc.freeze()


TEAMS = {"plain": threads.PythonTeam}
if compiled := native.module("threads"):
    TEAMS["compiled"] = compiled


@pytest.fixture(scope="session")
def tier():
    compiled = native.module("pool")
    if compiled is None:
        pytest.skip(native.STATE)  # tests/native says where it must be
    return compiled


@pytest.fixture(params=TEAMS)
def team(request, monkeypatch):
    """The threads, compiled where the tier is, and what stands in for them."""
    monkeypatch.setattr(threads, "team", lambda: TEAMS[request.param])
    return TEAMS[request.param]


def _require(name: str) -> xdev.Device:
    try:
        return xdev.Device(name).require()
    except xdev.DeviceUnavailableError as error:
        if name in PROMISED:
            raise
        pytest.skip(str(error))


@pytest.fixture(
    params=[
        "cpu",
        pytest.param("fake", marks=pytest.mark.fake),
        pytest.param("cuda", marks=pytest.mark.cuda),
    ]
)
def device(request):
    return _require(request.param)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def real_device(request):
    """Each device in turn but the fake ones, for what is about hardware."""
    return _require(request.param)


@pytest.fixture(scope="session")
def imported():
    """Return a function that imports a library; one that was promised is there."""

    def load(name):
        promised = name.partition(".")[0] in LIBRARIES
        return importlib.import_module(name) if promised else pytest.importorskip(name)

    return load


@pytest.fixture(scope="session")
def without_cuda():
    """Return what ends a test of a library without CUDA: red if both were promised."""

    def end(name):
        promised = name in LIBRARIES and "cuda" in PROMISED
        (pytest.fail if promised else pytest.skip)(f"{name} has no CUDA here")

    return end


@pytest.fixture
def cuda():
    """The CUDA device, for what only it has; mark the test ``cuda`` as well."""
    return _require("cuda")


@pytest.fixture(scope="session")
def python():
    return running.python


@pytest.fixture(scope="session")
def printed():
    return running.printed


@pytest.fixture
def read(monkeypatch):
    """Return what reads a variable with a text as if for the first time; its names."""

    def reader(name, text):
        monkeypatch.setenv(name, text)
        return getattr(_config, name.removeprefix("XDEV_").lower()).__wrapped__()

    reader.names = set(_config.SETTINGS)
    return reader


@pytest.fixture
def raised_by_handler():
    """Say whether a call raises an error that ``numpy.errstate`` calls for, once."""

    def is_raised(error, call):
        calls = []

        def handler(*_):
            calls.append(1)
            if len(calls) == 1:
                raise error

        with np.errstate(all="call", call=handler), pytest.raises(type(error)) as it:
            call()
        return it.value is error and len(calls) == 1

    return is_raised
