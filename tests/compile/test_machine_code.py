"""Object files, loaded by our own hand: as LLVM loads them, or not at all."""

import ctypes
import math
import platform
import struct
from pathlib import Path

import pytest

from xdev import _machine_code, _object_files

# Each kind of reference: to constants, to what is written, to what is elsewhere, to
# each other, and an address that lies in memory.
TEXT = """
@count = internal global i64 5
@zeros = global [3 x i64] zeroinitializer
@shared = common global i64 0
@scale = internal constant [2 x double] [double 2.0, double 0.5]
@table = global [2 x ptr] [ptr @doubled, ptr @halved]

declare double @tgamma(double)

define double @doubled(double %x) {
  %p = load volatile double, ptr @scale
  %y = fmul double %x, %p
  ret double %y
}

define double @halved(double %x) {
  %p = getelementptr [2 x double], ptr @scale, i64 0, i64 1
  %s = load volatile double, ptr %p
  %y = fmul double %x, %s
  ret double %y
}

define i64 @counted(i64 %n) {
  %old = load volatile i64, ptr @count
  %new = add i64 %old, %n
  store volatile i64 %new, ptr @count
  store volatile i64 %new, ptr @shared
  %last = getelementptr [3 x i64], ptr @zeros, i64 0, i64 2
  %z = load volatile i64, ptr %last
  %sum = add i64 %new, %z
  store volatile i64 %n, ptr %last
  ret i64 %sum
}

define double @chosen(i64 %k, double %x) {
  %p = getelementptr [2 x ptr], ptr @table, i64 0, i64 %k
  %f = load volatile ptr, ptr %p
  %y = call double %f(double %x)
  %z = call double @tgamma(double %y)
  ret double %z
}
"""
MACHINE = _object_files.MACHINE
X86_64 = struct.pack("<H", _object_files.X86_64)
ours = pytest.mark.skipif(
    platform.machine() != "x86_64",
    reason="other processors' files are loaded by LLVM alone",
)


def object_file(text):
    llvm = _machine_code._llvm()
    return _machine_code._target().emit_object(llvm.parse_assembly(text))


def functions(place):
    word, number = ctypes.c_int64, ctypes.c_double
    counted = ctypes.CFUNCTYPE(word, word)(place("counted"))
    chosen = ctypes.CFUNCTYPE(number, word, number)(place("chosen"))
    return counted, chosen, word.from_address(place("shared"))


@pytest.mark.parametrize("loader", [pytest.param("ours", marks=ours), "LLVM's"])
def test_code_computes_the_same_whoever_loads_it(monkeypatch, loader):
    if loader != "ours":
        monkeypatch.setattr(_object_files, "load", lambda *_: None)
    binary = object_file(TEXT)

    for _ in range(2):  # each time with memory of its own
        counted, chosen, shared = functions(_machine_code.load(binary))

        assert counted(2) == 7
        assert counted(10) == 17 + 2
        assert shared.value == 17
        assert chosen(0, 2.0) == math.gamma(4.0)
        assert chosen(1, 9.0) == pytest.approx(math.gamma(4.5), rel=1e-14)


@ours
def test_code_can_be_run_or_written_but_not_both():
    place = _machine_code.load(object_file(TEXT))
    rights = {}
    with Path("/proc/self/maps").open() as maps:
        for line in maps:
            bounds, allowed, *_ = line.split()
            low, high = (int(bound, 16) for bound in bounds.split("-"))
            for name in ("counted", "shared", "zeros", "table"):
                if low <= place(name) < high:
                    rights[name] = allowed

    data = dict.fromkeys(("shared", "zeros", "table"), "rw-p")
    assert rights == {"counted": "r-xp"} | data


@ours
def test_files_of_other_kinds_are_left_to_llvm():
    binary = object_file(TEXT)
    find = _machine_code._address
    file = _object_files.ObjectFile

    assert _object_files.load(file(binary), find) is not None

    elsewhere = bytearray(binary)
    elsewhere[MACHINE : MACHINE + 2] = struct.pack("<H", 183)  # ARM's
    assert _object_files.load(file(bytes(elsewhere)), find) is None

    section = next(s for s in file(binary).sections if s.kind == 4)
    unknown = bytearray(binary)
    struct.pack_into("<I", unknown, section.start + 8, 2)  # 32 bits of a distance
    assert _object_files.load(file(bytes(unknown)), find) is None


@ours
def test_stacks_are_unwound_through_the_code():
    """As that of a daemon thread is whose interpreter has ended."""
    text = "define void @leave(ptr %end) {\n  call void %end()\n  ret void\n}"
    place = _machine_code.load(_machine_code.emit([text]))
    find = ctypes.CDLL("libgcc_s.so.1")["_Unwind_Find_FDE"]
    find.restype = ctypes.c_void_p
    text_data_function = (ctypes.c_void_p * 3)()

    assert find(ctypes.c_void_p(place("leave") + 1), text_data_function) is not None
    assert text_data_function[2] == place("leave")
    assert find(ctypes.c_void_p(1), text_data_function) is None
