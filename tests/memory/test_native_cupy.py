"""What is looked at of CuPy before machine code makes its objects."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from without_a_driver import TIB, Current, array_like, like, serving

from xdev.memory.native import cupy as native, objects
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource

cupy = pytest.importorskip("cupy")


@pytest.fixture(autouse=True)
def anew():
    native.facts.cache_clear()
    yield
    native.facts.cache_clear()


def test_objects_with_a_word_more_are_left_to_cupy(monkeypatch):
    words = native._words
    monkeypatch.setattr(native, "_words", lambda x: [*words(x), 0])
    assert not native.facts()
    assert native.allocator(None, len) is len


@pytest.mark.parametrize(
    "other", [None, cupy.cuda.UnownedMemory, cupy.cuda.memory.Memory]
)
def test_memory_of_another_kind(monkeypatch, other):
    monkeypatch.setattr(cupy.cuda.memory, "CFunctionAllocatorMemory", other)
    assert not native.facts()


@pytest.mark.parametrize("name", ["FIELDS_OF", "ITEM"])
def test_code_that_is_compiled_for_another_python(monkeypatch, name):
    monkeypatch.setattr(objects, name, getattr(objects, name) + 8)
    assert not native.facts()


@pytest.mark.parametrize("place", [cupy.cuda.memory, cupy.cuda.device])
def test_functions_that_are_not_offered(monkeypatch, place):
    monkeypatch.setattr(place, "__pyx_capi__", {})
    assert not native.facts()


@pytest.mark.parametrize("name", ["_is_array_known", "_assignment"])
def test_arrays_that_are_otherwise_are_cupys(monkeypatch, name):
    monkeypatch.setattr(native, name, lambda: 0)
    with serving([Pool(FakeSource(TIB))], Current()) as served:
        served.allocator(4000)
        del served.asked[:]
        assert array_like(like((1000,)), "f4") is None
        assert cupy.ndarray((1000,), "f4").size == 1000
        assert served.asked == []


def test_code_that_is_compiled_in_otherwise(monkeypatch):
    monkeypatch.setattr(native, "ASSIGN", "_ZNSt6vectorIlSaIlEEaSEOS1_")
    assert native._assignment() == 0


def test_an_array_with_another_word(monkeypatch):
    words, seen = native._words, []

    def otherwise(x):
        found = words(x)
        if isinstance(x, cupy.ndarray):
            seen.append(x)
            found[-1] += len(seen) == 4
        return found

    assert native._is_array_known()
    monkeypatch.setattr(native, "_words", otherwise)
    assert not native._is_array_known()


@pytest.mark.parametrize("other", [None, len, cupy.cuda.memory.Memory])
def test_arrays_on_memory_of_another_kind_are_cupys(monkeypatch, other):
    monkeypatch.setattr(cupy.cuda, "UnownedMemory", other)
    with serving([Pool(FakeSource(TIB))], Current()):
        assert native.facts_of_arrays()
        assert not native._is_array_known()


@pytest.mark.parametrize("other", [np.ndarray, type("Empty", (), {"__slots__": ()})])
def test_arrays_of_another_base_are_cupys(monkeypatch, other):
    assert other.__mro__[1] is object
    with serving([Pool(FakeSource(TIB))], Current()):
        monkeypatch.setattr(cupy, "ndarray", other)
        assert native.facts_of_arrays()
        assert not native._is_array_known()


EXIT = """
import sys
sys.path.append(sys.argv[1])
import cupy
from without_a_driver import Current, serving
from xdev.memory.pools import Pool
from xdev.memory.sources.fake import FakeSource

serve = serving([Pool(FakeSource(1 << 30))], Current())
serve.__enter__()
for _ in range(3):
    kept = cupy.ndarray((1000,), "f4")

class Late:
    def __init__(self):
        self.array, self.make = cupy.ndarray((10,), "f4"), cupy.ndarray
    def __del__(self):
        self.make((10,), "f4")

late = Late()
late.me = late
sys.late = Late()
print("alive")
"""


def test_a_program_ends_with_arrays_alive():
    done = subprocess.run(
        [sys.executable, "-c", EXIT, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "alive\n", "")
