"""What a notebook shows of measurements and of memory: a table, a plot, the notes."""

import base64
import re
import sys
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from running import timed

import xdev
from xdev.timing import Comparison, Sweep, compare

RUNS = list(np.random.default_rng(0).uniform(1.0, 1.5, 7))
SVG = "{http://www.w3.org/2000/svg}"


def timing(seconds, **more):
    return timed([seconds * run for run in RUNS], **more)


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


def bars(tree):
    return [node for node in tree.iter() if node.tag == f"{SVG}rect"]


def test_a_timing_shows_its_text_each_run_of_each_clock_and_notes():
    clocks = {"launch": [0.1 * r for r in RUNS], "device": [0.9 * r for r in RUNS]}
    one = timing(1.0, queued=True, waits=True, **clocks)

    tree = shown(one)

    assert texts(tree, "pre") == [str(one)]
    assert len(bars(tree)) == 3 * (1 + len(RUNS))
    assert texts(tree, "text")[::2] == ["wall", "device", "launch"]
    assert texts(tree, "li") == one.notes
    assert len(texts(shown(timing(1.0)), "text")) == 2  # on the CPU one clock


def test_a_comparison_shows_its_table_and_a_bar_as_long_as_its_time():
    table = comparison(**{"a < b": 2.0, "other": 1.0})

    tree = shown(table)

    assert texts(tree, "th") == table.cells()[0]
    assert texts(tree, "td") == [c for row in table.cells()[1:] for c in row]
    long, short = bars(tree)[0], bars(tree)[1 + len(RUNS)]
    ratio = float(long.get("width")) / float(short.get("width"))
    assert ratio == pytest.approx(2, rel=0.01)
    assert texts(tree, "text")[::2] == ["a < b", "other"]


def test_a_sweep_shows_its_plot_table_and_notes(monkeypatch):
    found = Sweep((1, 10), (comparison(one=1.0, two=2.0),) * 2)
    kind, data = shown(found).find("img").get("src").split(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(data).startswith(b"\x89PNG")

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # none is installed
    tree = shown(found)
    assert tree.find("img") is None
    assert texts(tree, "td")[::3] == ["1", "10"]
    assert texts(tree, "li") == found.crossovers()


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 3e8])
def test_extreme_times_are_plotted_inside_the_plot(seconds):
    one = comparison(**{"a name longer than any plot is wide " * 20: seconds})
    for thing in one.rows[0].timing, one:
        for bar in bars(shown(thing)):
            x, width = (float(bar.get(key)) for key in ("x", "width"))
            assert 0 <= x <= x + width <= 721


def test_the_summary_of_memory_shows_a_bar_a_pool_beside_its_text(device):
    x = xdev.empty(1 << 16, dtype=xdev.uint8, device=device)
    report = xdev.memory.summary(device)

    tree = shown(report)

    assert isinstance(report, str)
    assert texts(tree, "pre") == [report]
    pools = re.findall(r"^(.+) pool usage: ", report, re.MULTILINE)
    assert texts(tree, "text")[::2] == pools
    assert len(bars(tree)) == 3 * len(pools)
    del x


def test_status_is_displayed_in_a_notebook_and_printed_elsewhere(monkeypatch, capsys):
    from IPython.core.formatters import DisplayFormatter

    xdev.memory.status("cpu")
    text = capsys.readouterr().out
    assert text == xdev.memory.summary("cpu") + "\n"
    assert text.startswith("cpu: memory held")

    displayed = []
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    monkeypatch.setattr("IPython.display.display", displayed.append)
    xdev.memory.status("cpu")

    assert "<svg" in DisplayFormatter().format(displayed[0])[0]["text/html"]
    assert capsys.readouterr().out == ""
