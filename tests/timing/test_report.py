"""A comparison's forms, and what changed since an earlier one."""

import io
import json
import re
from collections import Counter

import numpy as np
import pytest
from rich.console import Console

from xdev.errors import ConfigurationError
from xdev.timing import Comparison, Ratio, Row, Timing, compare

from .conftest import Footprint

HERE = {"processor": "abacus", "cores": 2, "cuda": None}
ROUNDS = np.random.default_rng(0).uniform(1.0, 1.01, 11)


def timing(seconds, rounds=None):
    runs = list(seconds * ROUNDS[:rounds])
    return Timing(1, len(runs), min(runs), max(runs), runs, 0.5)


def row(name, seconds, verdict="same", rounds=None, **more):
    ratio = Ratio(seconds, 0.9 * seconds, 1.1 * seconds, verdict)
    return Row(name, timing(seconds, rounds), ratio, Footprint(1 << 20, 3, 1), **more)


def comparison(*rows):
    return Comparison(rows, HERE)


TABLE = comparison(
    row("one", 1.0, nbytes=10**9, copy_bandwidth=2e9),
    row("a | b", 2.0, "slower", nbytes=10**9, copy_bandwidth=2e9),
    row("elsewhere", 0.5, "faster"),
)


def test_every_cell_stands_under_its_head():
    head, *lines = str(TABLE).splitlines()
    for title, text in (("ratio", "2"), ("verdict", "slower"), ("of copy", "25%")):
        assert lines[1][head.index(title) :].startswith(text)
    assert lines[1].split()[-7:-2] == ["25%", "1.000", "MiB", "3", "1"]
    assert "GB/s" not in lines[2]
    without = str(comparison(row("one", 1.0), row("other", 2.0)))
    assert "bandwidth" not in without
    assert "GB/s" not in without


def test_markdown_has_the_same_cells_in_each_row():
    lines = TABLE.markdown().splitlines()
    table = [line for line in lines if line.startswith("|")]
    bars = [line.replace(r"\|", "").count("|") for line in table]
    assert len(set(bars)) == 1
    assert r"a \| b" in table[3]
    assert len(table) == 2 + len(TABLE.rows)


def printed(table, width, **how):
    """Return the lines that rich prints, without the spaces at their ends."""
    file = io.StringIO()
    Console(file=file, width=width, **how).print(table)
    return [line.rstrip() for line in file.getvalue().splitlines()]


# As in rich's markup, which it is not; and one whose first call took long.
NOTED = comparison(
    row("NumPy [red]host[/red] arrays", 1.0, nbytes=10**9, copy_bandwidth=2e9),
    row("out=", 0.01, "unclear", nbytes=10**9),
)


def test_rich_prints_the_same_where_there_is_room():
    assert printed(NOTED, 400) == str(NOTED).splitlines()
    assert printed(NOTED, 80) == NOTED.text(80).splitlines()
    how = {"force_terminal": True, "color_system": "standard", "legacy_windows": False}
    coloured = "\n".join(printed(TABLE, 400, **how))
    assert "\x1b[31mslower" in coloured
    assert "\x1b[32mfaster" in coloured


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_columns_that_do_not_fit_stand_below_whole(width):
    """Put side by side again, the tables are the cells."""
    assert TABLE.text(width).splitlines() == printed(TABLE, width)
    cells, lines = TABLE.cells(), printed(TABLE, width)
    assert all(len(line) <= width for line in lines)
    names = max(len(name) for name, *_ in cells)
    for number, (name, *others) in enumerate(cells):
        parts = lines[number :: len(cells)]
        assert {part[:names].strip() for part in parts} == {name}
        found = "  ".join(part[names:].strip() for part in parts)
        assert re.split("  +", found.strip()) == list(filter(None, others))


@pytest.mark.parametrize("width", [15, 20, 30, 50, 80, 100])
def test_nothing_is_cropped_however_narrow(width):
    letters = Counter("".join(printed(NOTED, width)))
    asked = Counter("".join(map("".join, [*NOTED.cells(), NOTED.notes()])))
    del asked[" "]
    assert letters >= asked


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
    now, then = (
        comparison(row("short", seconds, rounds=3), row("long", seconds))
        for seconds in (2.0, 1.0)
    )
    found = now.since(then.as_dict())
    assert found.regressed == ("long",)
    *_, last = str(found).splitlines()
    assert last == "short: too few runs for a verdict, now or then"


@pytest.mark.parametrize(("key", "value"), [("processor", "slide rule"), ("cores", 64)])
def test_a_baseline_of_another_machine_is_refused(key, value):
    other = Comparison(TABLE.rows, HERE | {key: value})
    with pytest.raises(ConfigurationError, match=f"another machine, the {key} being"):
        TABLE.since(other.as_dict())


@pytest.mark.parametrize(
    ("then", "now", "same"),
    [
        ("NVIDIA H200", "NVIDIA H200", True),
        ("NVIDIA A100", "NVIDIA H200", False),
        ("cpu", "NVIDIA H200", False),
        (None, "NVIDIA H200", True),
        ("cpu", None, True),
    ],
)
def test_a_baseline_of_another_device_is_refused(then, now, same):
    """Rows of one name are compared, whatever else the machine has."""
    gone = row("gone", 1.0, device_name="abacus")
    # Whether CuPy was loaded tells nothing of a row.
    before = Comparison((row("one", 1.0, device_name=then), gone), HERE)
    after = Comparison((row("one", 1.0, device_name=now),), HERE | {"cuda": "a GPU"})
    told = json.loads(before.to_json())
    if same:
        assert after.since(told).ratios["one"].verdict == "same"
        return
    with pytest.raises(ConfigurationError, match="the device of 'one' being") as error:
        after.since(told)
    assert repr(then) in str(error.value)
    assert repr(now) in str(error.value)


def test_a_cold_baseline_of_hot_calls_is_refused(machine):
    calls = {"call": lambda: machine.launch(1e-3)}
    cold, hot = (
        compare(calls, number=2, repeat=2, cold=each) for each in (True, False)
    )
    assert not cold.since(cold.as_dict()).regressed
    for now, then in ((cold, hot), (hot, cold)):
        with pytest.raises(ConfigurationError, match="the cold of 'call' being"):
            now.since(then.as_dict())


ROW = {"name": "one", "samples": [1.0]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("[]", "not a record of compare"),
        ("{}", "not a record of compare"),
        ("3", "not a record of compare"),
        ('{"environment": {}, "rows": 3}', "not a record of compare"),
        ('{"environment": 3, "rows": []}', "not a record of compare"),
        *(
            (json.dumps({"environment": HERE, "rows": [ROW, wrong]}), "has a row that")
            for wrong in (
                {},
                3,
                ROW | {"samples": []},
                ROW | {"samples": 3},
                ROW | {"samples": ["fast"]},
                ROW | {"samples": [0.0]},
                ROW | {"name": 3},
            )
        ),
    ],
)
def test_what_is_no_record_is_refused_by_its_name(tmp_path, text, words):
    path = tmp_path / "saved.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=words) as error:
        TABLE.since(path)
    assert str(error.value).startswith(repr(str(path)))
    if text:
        with pytest.raises(ConfigurationError, match=f"^the baseline .*{words}"):
            TABLE.since(json.loads(text))


def test_a_name_that_is_none_is_told_with_those_that_are():
    with pytest.raises(KeyError, match=r"'two': there are 'one', 'a \| b', 'else"):
        TABLE["two"]
