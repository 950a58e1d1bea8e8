"""What is looked at of CuPy before machine code makes its objects."""

import subprocess
import sys
from pathlib import Path

import pytest

from xdev.memory.native import cupy as native, objects

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


def test_functions_that_are_not_offered(monkeypatch):
    monkeypatch.setattr(cupy.cuda.device, "__pyx_capi__", {})
    assert not native.facts()


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
