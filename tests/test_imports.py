"""What `import xdev` loads, and which way imports go."""

import inspect
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

    assert {name for name in more if name.partition(".")[0] != "xdev"} <= {
        *("__future__", "cython_runtime"),
        *(name for name in more if name.startswith("_cython")),
    }


def test_import_loads_no_device_but_the_cpu():
    loaded = python("import sys, xdev; print(*sys.modules)").split()

    assert "xdev.device.registry" in loaded
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


@pytest.mark.parametrize("room", [room for room in LAZY if room != "ufunc"])
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
import sys
import xdev
from xdev import {room}

assert '{room}' in dir(xdev)
assert {room} is xdev.{room} is sys.modules["xdev.{room}"]
assert {room}.__doc__
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


@pytest.mark.parametrize(
    ("name", "room"),
    [
        ("to_numpy", "transfer"),
        ("timeit", "timing"),
        ("vectorize", "ufunc.decorator"),
        ("guvectorize", "ufunc.generalized"),
        ("graph", "ufunc.graphs"),
        ("kernel", "ufunc.kernels"),
    ],
)
def test_lazy_names_are_the_rooms_own_objects(name, room):
    code = f"""
import inspect, pickle, sys
import xdev

assert "{name}" in dir(xdev) and "xdev.{room}" not in sys.modules
found = xdev.{name}
assert found is vars(sys.modules["xdev.{room}"])["{name}"] is vars(xdev)["{name}"]
assert inspect.isfunction(found) or inspect.isclass(found)
assert pickle.loads(pickle.dumps(found)) is found
assert inspect.signature(found).parameters and found.__doc__
from xdev import {name}
assert {name} is found
print("fine")
"""
    assert python(code) == "fine\n"


def test_from_xdev_import_star_gives_every_public_name():
    code = (
        "from xdev import *; import sys, xdev;"
        "lost = [name for name in xdev.__all__ if globals().get(name) is not "
        "getattr(xdev, name)]; print(lost, [x for x in sys.modules if x == 'cupy'])"
    )
    assert python(code) == "[] []\n"


def test_inspect_lists_every_public_name():
    members = dict(inspect.getmembers(xdev))

    # A star does not bring `numpy`: it would hide NumPy itself.
    assert set(members) == {*xdev.__all__, "numpy"}
    assert all(value is getattr(xdev, name) for name, value in members.items())


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
    """Over 600 lines, a file says in its first 15 why it must be longer."""
    crowded = []
    for path in Path(xdev.__file__).parent.rglob("*.py"):
        lines = path.read_text().splitlines()
        if len(lines) > 600 and not any("lines:" in line for line in lines[:15]):
            crowded.append((path.name, len(lines)))

    assert not crowded


def test_all_holds_the_facades_names():
    assert set(xdev.facade.__all__) <= set(xdev.__all__)


def test_the_extensions_are_modules_to_import():
    assert python("import xdev.linalg, xdev.fft as f; print(f.fft.__name__)") == "fft\n"
