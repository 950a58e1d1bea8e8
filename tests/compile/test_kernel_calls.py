"""The machine code of kernels' calls: its plain functions, run by Python."""

import ast
import ctypes
import importlib
from pathlib import Path

import numpy as np
import pytest

from xdev.compile import threads
from xdev.compile.grid import calls, quick
from xdev.compile.team import plain, threads as team_threads

LIMITS = quick.Limits(1e-5, 3e-6, 1e-5, 5e-6, 1024, 256, 8)


def test_what_machine_code_does_is_what_its_functions_do_in_python():
    x, y = np.arange(12.0).reshape(3, 4)[:, ::2], np.arange(3, dtype="f4")
    args = x, y, 1 / 3, 0.1, -7, True, np.int8(3), 2 - 1j
    ways = [(x.dtype, 2, calls.MATTERS & x.flags.num)]
    ways += [(y.dtype, 1, calls.MATTERS & y.flags.num)]
    ways += [(float, calls.COPIED, 1), (float, calls.NARROWED, 1)]
    ways += [(int, calls.COUNTED, 1), (bool, calls.TRUTH, 1)]
    ways += [(np.int8, calls.COPIED, 1), (complex, calls.COPIED, 2)]
    given = [quick.Given(*each) for each in ways]
    layouts = [*x.shape, *x.strides, *y.shape, *y.strides]
    memory = np.array([0] * (4 + 2 * len(args)) + layouts).tobytes()
    row = quick._row(given, memory, 0, 10, LIMITS)
    place, words = quick._address(row), np.array([id(arg) for arg in args])

    def fits():
        return calls.fits(place, quick._address(words), id(np.ndarray))

    assert fits()
    for k, other in enumerate((x[::-1], x[0], 0.5j, 1, 2.0, 3, np.int16(3), 1.0)):
        words[k] = id(other)
        assert not fits()
        words[k] = id(args[k])
    process = np.zeros(calls.PROCESS_WORDS, np.int64)
    process[calls.TRUE] = id(True)
    prototype = ctypes.PYFUNCTYPE(*[ctypes.c_int64] * 5)
    integer = prototype(("PyLong_AsLongLongAndOverflow", ctypes.pythonapi))
    process[calls.INTEGER] = ctypes.cast(integer, ctypes.c_void_p).value
    args_at = quick._address(words)
    assert calls.fill(quick._address(process), place, args_at) == 1
    slots = row[(row[calls.SLOTS] - place) // 8 :][: 2 * len(args)].copy()
    assert slots[[0, 2]].tolist() == [x.ctypes.data, y.ctypes.data]
    assert slots[4:5].view("d") == 1 / 3
    assert slots[6:7].view("f")[0] == np.float32(0.1)
    assert slots[[8, 10]].tolist() == [-7, 1]
    assert slots[12:13].view("b")[0] == 3
    assert slots[14:16].view("D")[0] == 2 - 1j
    large = [1e300, 2**63]
    for k, number in zip((3, 4), large, strict=True):
        words[k] = id(number)
        assert calls.fill(quick._address(process), place, args_at) == 0
        words[k] = id(args[k])


@pytest.mark.parametrize("points", [1, 2, 31, 1000, 10**12])
@pytest.mark.parametrize("cost", [0, 1, 10**4, 10**9, 10**18])
def test_pieces_cover_all_points(points, cost):
    row = quick._row([], bytes(32), 0, points, LIMITS)
    row[calls.THREADS] = 4
    for first in {0, points // 3, points - 1}:
        lanes = calls.divide(quick._address(row), first, cost)
        job = row[(row[calls.JOB] - quick._address(row)) // 8 :]
        count, size = int(job[calls.COUNT]), int(job[calls.SIZE])
        assert 1 <= lanes <= min(4, count)
        assert first + size * (count - 1) < points <= first + size * count


@pytest.mark.parametrize("code", [quick.CODE, threads.CODE, team_threads.CODE])
def test_kept_code_depends_on_every_file_whose_numbers_it_has(monkeypatch, code):
    files = []
    monkeypatch.setattr(plain._machine_code, "key", lambda *given: files.extend(given))
    code._key()
    for part in code._parts:
        tree = ast.parse(Path(part.__file__).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("xdev"):
                assert importlib.import_module(node.module).__file__ in files
