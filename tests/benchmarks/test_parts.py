"""Parts of the benchmark programs that another machine depends on."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import xdev


def test_the_processes_of_first_use_see_what_this_one_sees(
    program, tmp_path, monkeypatch
):
    there = tmp_path / "there"
    there.mkdir()
    (there / "only_there.py").write_text("seconds = 1.5")
    (tmp_path / "chain0.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(there))
    measured = program("first_use").measured

    text = "import chain0, only_there\nprint(only_there.seconds, False)"
    assert measured(text, tmp_path, "new") == (1.5, False)
    with pytest.raises(RuntimeError, match="No module named 'nowhere'"):
        measured("import nowhere", tmp_path, "new")


def test_a_chain_captured_by_hand_allocates_nothing_meanwhile(program, monkeypatch):
    """What it would allocate, nobody would keep while the graph is replayed."""
    graphs = program("graphs")
    taken = []

    class Stream:
        def __init__(self, *, non_blocking):
            assert non_blocking

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def begin_capture(self):
            taken.append(xdev.memory.stats("cpu")["allocation.all.allocated"])

        def end_capture(self):
            self.begin_capture()
            return SimpleNamespace(launch=lambda: None)

    device = SimpleNamespace(synchronize=lambda: None)
    cupy = SimpleNamespace(cuda=SimpleNamespace(Stream=Stream, Device=lambda: device))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    x, y = np.random.default_rng(0).random((2, 1 << 16), np.float32)  # from the pool

    result = graphs.by_hand(x, y)()

    assert taken[0] == taken[1] > 0
    np.testing.assert_array_equal(result, graphs.chain(x, y))
