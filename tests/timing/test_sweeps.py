"""Comparisons over sizes: who overtakes whom where, and the plot."""

import json
import struct
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st
from running import timed

from xdev.timing import Comparison, Ratio, Row, Sweep, sweep


def sums(n):
    x = np.ones(n)
    return {"built in": lambda: sum(x), "method": x.sum}


@pytest.fixture(scope="module")
def found():
    return sweep(sums, [1000, 1, 30], number=1, repeat=3)


def test_sizes_are_in_order_and_candidates_as_given(found):
    assert found.sizes == (1, 30, 1000)
    assert found.names == ("built in", "method")
    with pytest.raises(KeyError, match="'typo': there are 'built in', 'method'"):
        found.times("typo")
    rows = json.loads(found.to_json())["rows"]
    assert len({row["name"] for row in rows}) == 6
    for row in rows:
        assert row["samples"] == found.times(row["candidate"])[row["n"]]
    assert {n: len(t) for n, t in found.times("method").items()} == dict.fromkeys(
        found.sizes, 3
    )


def test_the_text_has_a_row_a_size_and_says_who_wins(found):
    lines = str(found).splitlines()
    assert lines[0].split() == ["n", "built", "in", "method"]
    assert [line.split()[0] for line in lines[1:4]] == ["1", "30", "1,000"]
    assert lines[4].startswith("method is faster than built in from n = ")
    assert found.markdown().splitlines()[-1] == f"- {lines[4]}"


def test_a_candidate_may_be_absent_at_some_sizes(tmp_path):
    def some(n):
        calls = sums(n)
        return calls if n < 10 else {"method": calls["method"]}

    found = sweep(some, [1, 4, 100], number=1, repeat=1)
    assert list(found.times("built in")) == [1, 4]
    assert str(found).splitlines()[3].split()[0] == "100"
    found.plot(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 0


def crossover(times):
    """Return from which size on the first of two is the faster, by their times."""

    def row(name, seconds):
        return Row(name, timed([seconds]), Ratio(1.0, 1.0, 1.0, "same"), None)

    found = (Comparison(tuple(map(row, "ab", pair)), {}) for pair in times.values())
    return Sweep(tuple(times), tuple(found)).crossover("a", "b")


@given(st.floats(0.1, 3), st.floats(0.1, 3), st.floats(-2, 8), st.floats(1e-6, 1e-3))
def test_power_laws_cross_where_they_do(slow, slower, where, scale):
    """t = scale (n / n0)**a for each: the one with the smaller a wins beyond n0."""
    small, large = sorted([slow, slow + slower])
    n0 = 10**where
    sizes = [10**power for power in range(7)]
    times = {n: (scale * (n / n0) ** small, scale * (n / n0) ** large) for n in sizes}
    at = crossover(times)
    if (sizes[-1] / n0) ** (large - small) < 1.02:
        assert at is None
    elif (sizes[-1] / n0) ** (large - small) > 1.04:
        assert at == pytest.approx(max(n0, 1.0), rel=1e-6)


def test_at_a_size_that_was_measured_the_crossing_is_that_size():
    assert crossover({1: (2.0, 1.0), 10: (1.0, 1.0), 100: (1.0, 2.0)}) == 10
    assert crossover({10: (1.0, 2.0), 1000: (1.0, 2.0)}) == 10


def test_the_plot_is_a_png_by_matplotlib(found, tmp_path, monkeypatch):
    path = tmp_path / "sweep.png"
    found.plot(path)

    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (840, 540)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError) as raised:
        found.plot("never.png")
    assert 'python -m pip install ".[plot]"' in raised.value.__notes__[0]


def test_the_plot_shows_names_as_they_are_and_tells_lines_apart(monkeypatch):
    figures = []
    keep = lambda figure, *_, **__: figures.append(figure)  # noqa: E731
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", keep)
    names = ["_a", "$b_{$", "c < d", *map(str, range(20))]
    sweep(lambda _: dict.fromkeys(names, int), [1], number=1, repeat=1).plot("none")

    (axes,) = figures[0].axes
    shown = axes.get_legend().get_texts()
    assert [text.get_text() for text in shown] == names
    figures[0].canvas.draw()  # no name is read as a formula
    assert len({(ln.get_color(), ln.get_linestyle()) for ln in axes.lines}) == 23


@pytest.mark.parametrize("sizes", [[], [0], [4, -1], [1.5], ["1"], [True]])
def test_no_sizes_are_refused(sizes):
    with pytest.raises(ValueError, match="sweep needs sizes"):
        sweep(sums, sizes)


@pytest.mark.parametrize("wrong", [([1, 2], sum), ({"a": sum}, [1]), (sums, 3)])
def test_what_is_no_sweep_is_refused_with_the_way_to_write_one(wrong):
    with pytest.raises(TypeError, match=r"sweep\(lambda n: .*, sizes\), not "):
        sweep(*wrong)
