"""What `import xdev` loads, and which way imports go."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest
from running import PUBLIC

import xdev

ROOMS = ("device", "facade", "memory", "random", "timing", "transfer", "ufunc")
HEAVY = {"cupy", "numba", "dask", "torch", "scipy", "array_api_compat.numpy", "cuda"}
LAZY = ["fft", "linalg", "memory", "random", "testing", "timing", "transfer", "ufunc"]


def test_import_loads_nothing_optional_and_of_the_rest_what_numpy_does(printed):
    """Each module more is time that every program pays: ``threading`` 0.5 ms."""
    loaded = printed(
        "import sys, numpy; before = set(sys.modules); import xdev;"
        "print(*(set(sys.modules) - before))"
    ).split()

    others = {name for name in loaded if name.partition(".")[0] != "xdev"}
    assert {name for name in others if not name.startswith("_cython")} <= {
        *("__future__", "cython_runtime")
    }
    assert "xdev.device.registry" in loaded
    for name in ("device.cuda", "device.fake", "device.natives", "_optional"):
        assert f"xdev.{name}" not in loaded


def test_small_host_programs_load_nothing_optional(printed):
    program = (
        "import sys, xdev; x = xdev.ones(3, device='cpu'); xdev.sum(xdev.add(x, x))"
    )
    loaded = set(printed(f"{program}; print(*sys.modules)").split())
    assert not {*HEAVY, "xdev.memory"} & loaded


@pytest.mark.parametrize("room", LAZY)
def test_rooms_load_at_their_first_use_by_either_name(printed, room):
    how = ("xdev.{0}", "from xdev import {0}")[LAZY.index(room) % 2].format(room)
    code = f"""
import sys
import xdev

assert "{room}" in dir(xdev)
assert ("xdev.{room}" in sys.modules) == ("{room}" == "ufunc")
{how}
assert xdev.{room} is sys.modules["xdev.{room}"] is globals().get("{room}", xdev.{room})
assert xdev.{room}.__doc__ and dir(xdev.{room})
assert not hasattr(xdev.{room}, "not_there")
"""
    printed(code)


def test_threads_that_use_a_room_first_at_once_find_the_same(printed):
    code = """
import sys
import xdev
from threading import Barrier, Thread
from xdev.device.registry import backend, backends

def use(room):
    ready.wait()
    names = dir(room := getattr(xdev, room))
    functions = tuple(getattr(room, name) for name in names)
    found.append((functions, backend("cuda"), tuple(backends().items())))

sys.setswitchinterval(1e-6)
for room in "transfer", "memory", "ufunc":
    found, ready = [], Barrier(8)
    threads = [Thread(target=use, args=[room]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first = found[0]
    assert len(found) == 8
    for others in found:
        assert all(x is y for x, y in zip(others[0], first[0], strict=True))
        assert others[1:] == first[1:]
    assert getattr(xdev, room) is sys.modules[f"xdev.{room}"]
print(*(name for name, _ in first[2]))
"""
    assert printed(code) == "cpu cuda fake\n"


def test_from_xdev_import_star_gives_every_public_name(printed):
    code = (
        "from xdev import *; import sys, xdev;"
        "lost = [name for name in xdev.__all__ if globals().get(name) is not "
        "getattr(xdev, name)]; print(lost, [x for x in sys.modules if x == 'cupy'])"
    )
    assert printed(code) == "[] []\n"


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


@pytest.mark.parametrize("name", sorted(PUBLIC - {"xdev.cli", "xdev.device.registry"}))
def test_tab_offers_public_names_alone_and_each_is_there(name):
    if name == "xdev.distributed":
        pytest.importorskip("distributed")
    module = importlib.import_module(name)

    names = dir(module)

    assert set(module.__all__) <= set(names) <= {*module.__all__, "numpy"}
    assert not [name for name in names if name.startswith("_") and name[1] != "_"]
    assert all(hasattr(module, name) for name in names)


def test_help_in_a_fresh_process_shows_the_signature(printed):
    signatures = {
        "vectorize": "vectorize(function",
        "guvectorize": "guvectorize(signatures",
        "kernel": "kernel(function",
        "graph": "graph(f",
        "add": "add(x1,x2,/,out=None,*,where=True",
    }
    for name, signature in signatures.items():
        shown = "".join(printed(f"import xdev; help(xdev.{name})").split())
        assert signature in shown
        assert "Parameters-----" in shown
