"""A comparison's forms, and what changed since an earlier one."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from xdev.errors import ConfigurationError
from xdev.timing import Comparison, Ratio, Row, Timing
from xdev.timing.baseline import changes
from xdev.timing.footprint import Footprint

HERE = {"processor": "abacus", "cores": 2, "cuda": None}
ROUNDS = np.random.default_rng(0).uniform(1.0, 1.01, 11)


def timing(seconds):
    runs = list(seconds * ROUNDS)
    return Timing(1, len(runs), min(runs), max(runs), runs, 0.5)


def row(name, seconds, verdict="same", **more):
    ratio = Ratio(seconds, 0.9 * seconds, 1.1 * seconds, verdict)
    return Row(name, timing(seconds), ratio, Footprint(1 << 20, 3, 1), **more)


def comparison(*rows):
    return Comparison(rows, HERE)


TABLE = comparison(
    row("one", 1.0, nbytes=10**9, copy_bandwidth=2e9),
    row("a | b", 2.0, "slower", nbytes=10**9, copy_bandwidth=2e9),
    row("elsewhere", 0.5, "faster"),
)


def test_bandwidth_and_its_share_of_a_copys():
    one, other, elsewhere = TABLE.rows
    assert one.bandwidth == pytest.approx(1e9, rel=0.02)
    assert other.bandwidth == pytest.approx(5e8, rel=0.02)
    assert one.share == pytest.approx(0.5, rel=0.02)
    assert elsewhere.bandwidth is None
    assert elsewhere.share is None


def test_every_cell_stands_under_its_head():
    head, *lines = str(TABLE).splitlines()
    for title, text in (("ratio", "2"), ("verdict", "slower"), ("of copy", "25%")):
        assert lines[1][head.index(title) :].startswith(text)
    assert lines[1].split()[-7:-2] == ["25%", "1.000", "MiB", "3", "1"]
    assert "GB/s" not in lines[2]


def test_without_bytes_there_is_no_column_of_them():
    text = str(comparison(row("one", 1.0), row("other", 2.0)))
    assert "bandwidth" not in text
    assert "GB/s" not in text


def test_markdown_has_the_same_cells_in_each_row():
    lines = TABLE.markdown().splitlines()
    table = [line for line in lines if line.startswith("|")]
    bars = [line.replace(r"\|", "").count("|") for line in table]
    assert len(set(bars)) == 1
    assert r"a \| b" in table[3]
    assert len(table) == 2 + len(TABLE.rows)


def test_rich_only_adds_colours():
    def printed(**how):
        file = io.StringIO()
        console = Console(file=file, width=400, **how)
        console.print(TABLE, soft_wrap=True)
        return file.getvalue().rstrip("\n")

    assert printed() == str(TABLE)
    coloured = printed(force_terminal=True, color_system="standard", legacy_windows=0)
    assert "\x1b[31m  slower\x1b[0m" in coloured
    assert "\x1b[32m  faster\x1b[0m" in coloured


def test_the_record_holds_the_memory_and_the_bandwidth():
    told = json.loads(TABLE.to_json())["rows"][0]
    assert (told["peak_bytes"], told["allocations"]) == (1 << 20, 3)
    assert told["driver_allocations"] == 1
    assert told["bandwidth"] == TABLE["one"].bandwidth
    assert told["copy_bandwidth"] == 2e9


def test_what_changed_since_a_saved_record(tmp_path):
    path = tmp_path / "saved.json"
    before = comparison(row("same", 1.0), row("slower", 1.0), row("gone", 1.0))
    path.write_text(before.to_json())
    now = comparison(row("same", 1.05), row("slower", 1.3), row("new", 1.0))

    found = now.since(path)

    assert found.regressed == ("slower",)
    assert found.ratios["slower"].middle == pytest.approx(1.3, rel=0.02)
    assert found.ratios["same"].verdict == "same"
    assert (found.added, found.gone) == (("new",), ("gone",))
    words = [line.split()[-1] for line in str(found).splitlines()]
    assert words == ["verdict", "same", "slower", "new", "gone"]
    assert now.since(before.as_dict()) == found


def test_a_change_that_too_few_runs_hide_is_named():
    few = [slice(0, 3), slice(0, 11)]
    now, then = (
        {
            "environment": HERE,
            "rows": [
                {"name": name, "samples": list(seconds * ROUNDS[part])}
                for name, part in zip(("short", "long"), few, strict=True)
            ],
        }
        for seconds in (2.0, 1.0)
    )
    found = changes(now, then)
    assert found.regressed == ("long",)
    *_, last = str(found).splitlines()
    assert last == "short: too few runs for a verdict, now or then"
    assert len(str(found).splitlines()) == 4


@pytest.mark.parametrize(
    ("key", "value"), [("processor", "slide rule"), ("cores", 64), ("cuda", "a GPU")]
)
def test_a_baseline_of_another_machine_is_refused(key, value):
    other = Comparison(TABLE.rows, HERE | {key: value})
    with pytest.raises(ConfigurationError, match=f"another machine, its {key}"):
        TABLE.since(other.as_dict())
