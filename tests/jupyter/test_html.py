"""What a notebook shows of measurements and of memory: a table, a plot, the notes."""

import re
import sys
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import xdev
from xdev.timing import Comparison, Sweep, Timing, compare

RUNS = list(np.random.default_rng(0).uniform(1.0, 1.5, 7))


def timing(seconds, **more):
    runs = [seconds * run for run in RUNS]
    return Timing(1, len(runs), min(runs), max(runs), runs, 0.5, **more)


def comparison(**seconds):
    """Return a comparison of nothing, as if it had taken so long."""
    done = compare(dict.fromkeys(seconds, lambda: None), number=1, repeat=2)
    times = zip(done.rows, seconds.values(), strict=True)
    rows = tuple(replace(row, timing=timing(each)) for row, each in times)
    return Comparison(rows, {})


def shown(thing):
    """Return what a notebook gets, as a tree: it is well-formed."""
    text = thing._repr_html_()
    return ET.fromstring(f"<div>{text}</div>")  # noqa: S314 - our own


def texts(tree, tag):
    return ["".join(node.itertext()) for node in tree.iter() if node.tag.endswith(tag)]


def nodes(tree, tag):
    return [node for node in tree.iter() if node.tag == f"{{{SVG}}}{tag}"]


SVG = "http://www.w3.org/2000/svg"


def test_a_timing_shows_its_text_each_run_of_each_clock_and_notes():
    clocks = {"launch": [0.1 * r for r in RUNS], "device": [0.9 * r for r in RUNS]}
    one = timing(1.0, queued=True, waits=True, **clocks)

    tree = shown(one)

    assert texts(tree, "pre") == [str(one)]
    assert len(nodes(tree, "rect")) == 3 * (1 + len(RUNS))
    assert texts(tree, "text")[::2] == ["wall", "device", "launch"]
    assert texts(tree, "li") == one.notes
    assert len(texts(shown(timing(1.0)), "text")) == 2  # on the CPU one clock


def test_a_comparison_shows_its_table_and_a_bar_as_long_as_its_time():
    table = comparison(**{"a < b": 2.0, "other": 1.0})

    tree = shown(table)

    assert texts(tree, "th") == table.cells()[0]
    assert texts(tree, "td") == [c for row in table.cells()[1:] for c in row]
    long, *_ = nodes(tree, "rect")
    short = nodes(tree, "rect")[1 + len(RUNS)]
    ratio = float(long.get("width")) / float(short.get("width"))
    assert ratio == pytest.approx(2, rel=0.01)
    assert texts(tree, "text")[::2] == ["a < b", "other"]


def test_a_sweep_shows_a_line_through_its_medians_in_logarithms():
    sizes = 10, 1000, 100_000
    flat = [comparison(flat=1e-3, rising=1e-6 * n) for n in sizes]

    tree = shown(Sweep(sizes, tuple(flat)))

    *_, one, two = nodes(tree, "polyline")
    level, slope = (
        [tuple(map(float, at.split(","))) for at in line.get("points").split()]
        for line in (one, two)
    )
    assert len(level) == len(slope) == 3
    assert len({y for _, y in level}) == 1
    (x0, y0), (x1, y1), (x2, y2) = slope
    assert (y1 - y0) / (x1 - x0) == pytest.approx((y2 - y1) / (x2 - x1), rel=0.02)
    assert y0 > y1 > y2  # the axis goes up
    assert {"flat", "rising", "10", "100,000"} <= set(texts(tree, "text"))
    assert texts(tree, "li") == Sweep(sizes, tuple(flat)).crossovers()


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 3e8])
def test_extreme_times_are_plotted_inside_the_plot(seconds):
    name = "a name that is longer than any plot is wide " * 20
    one = comparison(**{name: seconds})
    for thing in (
        one.rows[0].timing,
        one,
        Sweep((1,), (one,)),
        Sweep((7, 9), (one, one)),
    ):
        for node in nodes(shown(thing), "rect"):
            x, width = (float(node.get(key)) for key in ("x", "width"))
            assert 0 <= x <= x + width <= 721


def test_the_summary_of_memory_shows_a_bar_a_pool_beside_its_text(device):
    x = xdev.empty(1 << 16, dtype=xdev.uint8, device=device)
    report = xdev.memory.summary(device)

    tree = shown(report)

    assert isinstance(report, str)
    assert texts(tree, "pre") == [report]
    pools = re.findall(r"^(.+) pool usage: ", report, re.MULTILINE)
    assert texts(tree, "text")[::2] == pools
    assert len(nodes(tree, "rect")) == 3 * len(pools)
    del x


def test_status_is_displayed_in_a_notebook_and_printed_elsewhere(monkeypatch, capsys):
    xdev.memory.status("cpu")
    assert capsys.readouterr().out.startswith("cpu: memory held")

    displayed = []
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    monkeypatch.setattr("IPython.display.display", displayed.append)
    xdev.memory.status("cpu")

    assert [type(report).__name__ for report in displayed] == ["Report"]
    assert capsys.readouterr().out == ""


def test_ipython_takes_the_html_of_each():
    from IPython.core.formatters import DisplayFormatter

    one = comparison(one=1.0)
    things = one, one.rows[0].timing, Sweep((1, 10), (one, one)), xdev.memory.summary()
    for thing in things:
        data, _ = DisplayFormatter().format(thing)
        assert "<svg" in data["text/html"]
