"""What `import xdev` loads, and which way imports go."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import xdev
from xdev import _optional

ROOMS = ("device", "facade", "memory", "random", "timing", "transfer", "ufunc")
HEAVY = ("cupy", "numba", "dask", "torch", "scipy", "array_api_compat.numpy", "cuda")


def python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_import_loads_nothing_optional():
    loaded = python("import sys, xdev; print(*sys.modules)").split()

    assert "numpy" in loaded
    assert not [name for name in HEAVY if name in loaded]


def test_import_loads_of_the_standard_library_what_numpy_does():
    """Each module more is time that every program pays: ``threading`` 0.5 ms."""
    more = python(
        "import sys, numpy; before = set(sys.modules); import xdev;"
        "print(*(set(sys.modules) - before))"
    ).split()

    assert {name for name in more if name.partition(".")[0] != "xdev"} <= {"__future__"}


def test_import_loads_no_device_but_the_cpu():
    loaded = python("import sys, xdev; print(*sys.modules)").split()

    assert "xdev.device.cpu" in loaded
    for name in ("device.cuda", "device.fake", "device.natives", "_optional"):
        assert f"xdev.{name}" not in loaded


@pytest.mark.skipif(not _optional.installed("cupy"), reason="needs the group cuda")
def test_who_imported_cupy_before_waits_for_no_module_in_the_first_call():
    rooms = '{"xdev.ufunc.cuda", "xdev.ufunc.decorator"}'
    for first, second, found in ("cupy", "xdev", rooms), ("xdev", "cupy", "set()"):
        loaded = f"{rooms} & set(sys.modules)"
        python(f"import sys, {first}, {second}; assert {loaded} == {found}")


def test_small_host_programs_load_nothing_optional():
    loaded = python(
        "import sys, numpy, xdev; x = numpy.ones(3); xdev.sum(xdev.add(x, x));"
        "print(*sys.modules)"
    ).split()

    assert not [name for name in HEAVY if name in loaded]


LAZY = ["fft", "linalg", "memory", "random", "testing", "timing", "transfer", "ufunc"]


@pytest.mark.parametrize("room", LAZY)
def test_rooms_load_at_their_first_use(room):
    code = (
        f"import sys, xdev; assert 'xdev.{room}' not in sys.modules; "
        f"xdev.{room}.__doc__; dir(xdev.{room}); "
        f"assert xdev.{room} is sys.modules['xdev.{room}']; print('loaded')"
    )
    assert python(code).strip() == "loaded"


@pytest.mark.parametrize("room", LAZY)
def test_a_room_imported_by_name_is_the_room(room):
    code = f"""
import copy, pickle
import xdev
from xdev import {room}

assert '{room}' in dir(xdev)
assert {room}.__doc__ == xdev.{room}.__doc__ is not None
for name in xdev.{room}.__all__:
    for _ in range(2):
        assert getattr({room}, name) is getattr(xdev.{room}, name)
assert set(dir({room})) == set(dir(xdev.{room}))
assert copy.deepcopy({room}) is xdev.{room}
try:
    {room}.not_there
except AttributeError:
    print("fine")
"""
    assert python(code) == "fine\n"


@pytest.mark.parametrize("room", LAZY)
def test_threads_that_use_a_room_first_at_once_find_the_same(room):
    code = f"""
import sys
import xdev
from threading import Barrier, Thread
from xdev.device.registry import backend, backends

def use():
    ready.wait()
    names = dir(xdev.{room})
    functions = tuple(getattr(xdev.{room}, name) for name in names)
    found.append((functions, backend("cuda"), tuple(backends().items())))

sys.setswitchinterval(1e-6)
found, ready = [], Barrier(8)
threads = [Thread(target=use) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
first = found[0]
assert len(found) == 8
for others in found:
    assert all(x is y for x, y in zip(others[0], first[0], strict=True))
    assert others[1:] == first[1:]
assert xdev.{room} is sys.modules["xdev.{room}"]
print(*(name for name, _ in first[2]))
"""
    assert python(code) == "cpu cuda fake\n"


def test_lazy_names_replace_themselves():
    code = (
        "import xdev, inspect; stub = xdev.to_numpy; "
        "print(list(inspect.signature(stub).parameters)); "
        "assert xdev.to_numpy is xdev.transfer.to_numpy is not stub"
    )
    assert python(code).strip() == "['x', 'out', 'non_blocking']"


def test_every_public_name_is_there():
    missing = [name for name in xdev.__all__ if not hasattr(xdev, name)]

    assert not missing


def test_no_submodule_bears_a_public_name():
    """A module ``stats.py`` would fight with the function ``memory.stats``."""
    clashes = []
    for room in (getattr(xdev, name) for name in ROOMS):
        files = Path(xdev.__file__).parent.joinpath(room.__name__.split(".")[1])
        modules = {path.stem for path in files.iterdir() if path.stem[0] != "_"}
        clashes += [
            f"{room.__name__}.{name}"
            for name in modules & set(room.__all__)
            if not isinstance(getattr(room, name), ModuleType)
        ]

    assert not clashes


def test_no_file_is_crowded():
    """Over 350 lines, a file says in its first 15 why it must be longer."""
    crowded = []
    for path in Path(xdev.__file__).parent.rglob("*.py"):
        lines = path.read_text().splitlines()
        if len(lines) > 350 and not any("lines:" in line for line in lines[:15]):
            crowded.append((path.name, len(lines)))

    assert not crowded


def test_all_holds_the_facades_names():
    assert set(xdev.facade.__all__) <= set(xdev.__all__)


def test_the_extensions_are_modules_to_import():
    assert python("import xdev.linalg, xdev.fft as f; print(f.fft.__name__)") == "fft\n"


def test_lazy_names_can_be_documented_and_pickled():
    code = (
        "import pickle, copy; from xdev import to_numpy, memory; import xdev;"
        "assert 'NumPy array' in to_numpy.__doc__;"
        "assert pickle.loads(pickle.dumps(to_numpy)) is xdev.transfer.to_numpy;"
        "assert copy.deepcopy(memory) is xdev.memory; print('fine')"
    )
    assert python(code) == "fine\n"
