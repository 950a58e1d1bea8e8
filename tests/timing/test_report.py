"""A comparison's forms, and what changed since an earlier one."""

import json
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st
from running import timed
from scipy import stats

from xdev.errors import ConfigurationError
from xdev.timing import Comparison, Ratio, Row

from .conftest import Footprint

HERE = {"processor": "abacus", "cores": 2, "cuda": None}
ROUNDS = np.random.default_rng(0).uniform(1.0, 1.01, 11)


def timing(seconds, rounds=None):
    return timed(list(seconds * ROUNDS[:rounds]))


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


# One whose first call took long.
NOTED = comparison(
    row("NumPy host arrays", 1.0, nbytes=10**9, copy_bandwidth=2e9),
    row("out=", 0.01, "unclear", nbytes=10**9),
)


@pytest.mark.parametrize("width", [15, 30, 40, 80, 120])
def test_columns_that_do_not_fit_stand_below_whole(width):
    """Put side by side again, the tables are the cells; nothing is cropped."""
    cells, lines = TABLE.cells(), TABLE.text(width).splitlines()
    names = max(len(name) for name, *_ in cells)
    if width >= 40:
        assert all(len(line) <= width for line in lines)
        for number, (name, *others) in enumerate(cells):
            parts = lines[number :: len(cells)]
            assert {part[:names].strip() for part in parts} == {name}
            found = "  ".join(part[names:].strip() for part in parts)
            assert re.split("  +", found.strip()) == list(filter(None, others))
    asked = Counter("".join(map("".join, [*NOTED.cells(), NOTED.notes()])))
    del asked[" "]
    assert Counter(NOTED.text(width)) >= asked


def test_what_changed_since_a_saved_record(tmp_path):
    path = tmp_path / "saved.json"
    few = row("gone", 1.0), row("few", 1.0, rounds=3)
    before = comparison(row("same", 1.0), row("slower", 1.0), *few)
    path.write_text(before.to_json())
    few = row("new", 1.0), row("few", 2.0, rounds=3)
    now = comparison(row("same", 1.05), row("slower", 1.3), *few)

    found = now.since(path)

    assert found.regressed == ("slower",)
    assert found.ratios["slower"].middle == pytest.approx(1.3, rel=0.02)
    assert found.ratios["same"].verdict == "same"
    assert (found.added, found.gone) == (("new",), ("gone",))
    *table, last = str(found).splitlines()
    words = [line.split()[-1] for line in table]
    assert words == ["verdict", "same", "slower", "unclear", "new", "gone"]
    assert last == "few: too few runs for a verdict, now or then"
    assert now.since(before.as_dict()) == found


@pytest.mark.parametrize(
    ("environment", "then", "now", "words"),
    [
        ({"processor": "slide rule"}, None, None, "machine, the processor being"),
        ({"cores": 64}, None, None, "another machine, the cores being 64, not 2"),
        ({}, "NVIDIA A100", "NVIDIA H200", "device of 'one' being 'NVIDIA A100', not"),
        ({}, "cpu", "NVIDIA H200", "the device of 'one' being 'cpu', not 'NVID"),
        # Whether CuPy was loaded tells nothing of a row.
        ({"cuda": "a GPU"}, "NVIDIA H200", "NVIDIA H200", None),
        ({}, None, "NVIDIA H200", None),
        ({}, "cpu", None, None),
    ],
)
def test_a_baseline_of_another_machine_or_device_is_refused(
    environment, then, now, words
):
    """Rows of one name are compared, whatever else the machine has."""
    gone = row("gone", 1.0, device_name="abacus")
    rows = row("one", 1.0, device_name=then), gone
    told = json.loads(Comparison(rows, HERE | environment).to_json())
    after = comparison(row("one", 1.0, device_name=now))
    if words is None:
        assert after.since(told).ratios["one"].verdict == "same"
        return
    with pytest.raises(ConfigurationError, match=words):
        after.since(told)


ROW = {"name": "one", "samples": [1.0]}
WRONG = ({}, 3, *(ROW | {"samples": x} for x in ([], 3, ["fast"], [0.0])))
TEXTS = ["", "[]", "3", '{"environment": {}, "rows": 3}', '{"environment": 3}']
TEXTS += [json.dumps({"environment": HERE, "rows": [ROW, wrong]}) for wrong in WRONG]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_no_record_is_refused_by_its_name(tmp_path, text):
    path = tmp_path / "saved.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="is not a record of comp") as error:
        TABLE.since(path)
    assert str(error.value).startswith(repr(str(path)))


# -- ratios of two measurements -------------------------------------------------------


def since(now, then):
    """Return the ratio of one row's times in two measurements [s]."""
    same = Ratio(1.0, 1.0, 1.0, "same")
    after, before = (
        comparison(Row("one", timed([*runs]), same, Footprint(0, 0, 0)))
        for runs in (now, then)
    )
    return after.since(before.as_dict()).ratios["one"]


seconds = st.lists(st.floats(1e-7, 1e2), min_size=1, max_size=8)


@given(seconds, seconds)
def test_a_ratio_turns_with_the_pair(a, b):
    there, back = since(a, b), since(b, a)
    assert there.sure == back.sure
    opposite = {"faster": "slower", "slower": "faster"}
    assert back.verdict == opposite.get(there.verdict, there.verdict)
    if there.sure:
        assert back.low == pytest.approx(1 / there.high)
        assert back.high == pytest.approx(1 / there.low)
        assert there.low <= there.middle <= there.high


@pytest.mark.parametrize(("first", "second"), [(5, 5), (11, 11), (7, 15)])
def test_the_interval_is_that_of_the_mann_whitney_test(first, second):
    """SciPy's p-value passes 5 % where the interval ends."""
    rng = np.random.default_rng(3)
    a, b = rng.lognormal(size=first), rng.lognormal(size=second)
    found = since(a, b)

    def surely_apart(factor):
        return stats.mannwhitneyu(a / factor, b, method="exact").pvalue < 0.05

    nudge = 1 + 1e-9
    assert surely_apart(found.low / nudge)
    assert not surely_apart(found.low * nudge)
    assert surely_apart(found.high * nudge)
    assert not surely_apart(found.high / nudge)
