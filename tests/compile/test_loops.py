"""Loops kept on disk: loaded where all that they call is, else compiled again."""

import ctypes

import pytest

from xdev import _config, _optional
from xdev._disk_cache import DiskCache
from xdev.compile import loops

# It calls the C library's mathematics, and something that it may lack.
TEXT = """
declare double @tgamma(double)
declare double @{other}(double)

define double @twice(double %x) {{
  %y = call double @tgamma(double %x)
  %z = call double @{other}(double %y)
  %w = fadd double %z, %z
  ret double %w
}}
"""


def object_file(other):
    llvm = _optional.llvm()
    loops._llvm()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(
        codemodel="jitdefault", reloc="pic"
    )
    return target.emit_object(llvm.parse_assembly(TEXT.format(other=other)))


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """A function that returns the loop of a name, and whether it was made."""
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path)

    def loop(name, *binaries):
        made = list(binaries)
        found = loops.kept(name, (), name, lambda: (made.pop(), "twice"))
        call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(found.address)
        return call, len(made) < len(binaries)

    return loop


def test_a_loop_on_disk_is_loaded_each_time_anew(kept):
    binary = object_file("floor")
    first, made = kept("one", binary)
    assert made
    second, made = kept("one")
    assert not made
    assert first(4.0) == second(4.0) == 12.0


def test_a_loop_that_calls_what_nobody_has_is_made_again(kept):
    stranger = object_file("xdev_has_no_such_function")
    key = "other"
    assert kept(key, object_file("floor"))[1]
    cache = DiskCache("loops")
    name = next(path.name for path in (_config.cache_dir() / "loops").iterdir())
    cache.save(name, b"twice\n" + stranger, "other")  # as by a Numba that had it
    assert cache.load(name)

    call, made = kept(key, object_file("fabs"))

    assert made
    assert call(4.0) == 12.0
