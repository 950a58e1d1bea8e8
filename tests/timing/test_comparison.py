"""``compare``: checked first, in turn, and set side by side."""

import json
import math

import numpy as np
import pytest

import xdev
from xdev import memory
from xdev.timing import ResultsDifferError, compare, copy_bandwidth

x = np.random.default_rng(0).random(1000)


def test_candidates_that_write_into_one_buffer_are_told_apart():
    out = np.empty_like(x)
    with pytest.raises(ResultsDifferError):
        compare(
            {f.__name__: lambda f=f: f(x, x, out=out) for f in (np.add, np.multiply)}
        )


@pytest.mark.parametrize("repeat", [1, np.uint8(6)])
def test_the_record_is_json_and_holds_the_samples(repeat):
    how = {"repeat": repeat, "number": np.int64(5)}
    table = compare({"x": lambda: x + x, "y": lambda: x * 2}, **how)

    def refuse(constant):
        raise AssertionError(constant)

    record = json.loads(table.to_json(), parse_constant=refuse)

    assert record["environment"]["versions"]["numpy"] == np.__version__
    assert [row.name for row in table.rows] == ["x", "y"]
    assert table["x"].ratio.middle == 1
    with pytest.raises(KeyError, match="'none': there are 'x', 'y'"):
        table["none"]
    for row, told in zip(table.rows, record["rows"], strict=True):
        assert told["name"] == row.name
        assert len(told["samples"]) == repeat
        assert told["samples"] == row.timing.timings
        assert math.isclose(told["mean"], np.mean(told["samples"]))
        assert math.isclose(told["std"], np.std(told["samples"]))
        assert (told["interval"] is None) == (repeat < 6)


def test_the_peak_and_the_allocations_are_those_of_one_call(device):
    n = 2**20

    def call():
        first = xdev.ones(n, dtype=xdev.float32, device=device)
        return xdev.add(first, first)

    def into():
        return xdev.add(a, a, out=b)

    a, b = (xdev.ones(n, dtype=xdev.float32, device=device) for _ in range(2))
    table = compare({"new": call, "out=": into}, number=1, repeat=1, device=device)

    assert table["new"].footprint.peak >= 4 * n
    assert table["new"].footprint.allocations >= 1
    assert table["out="].footprint.peak == 0
    assert table["out="].footprint.allocations == 0


def test_notes_stand_below_the_table_and_in_the_record(machine):
    calls = {
        "waits": lambda: machine.fetch(1e-3),
        "goes on": lambda: machine.launch(1e-3),
    }
    short, enough = (compare(calls, number=1, repeat=n) for n in (6, 7))
    waits, few = str(short).splitlines()[-2:]
    assert waits.startswith("waits: each call waits for the device")
    assert few.startswith("unclear: ")
    assert "repeat=7" in few
    assert short["goes on"].ratio.verdict == "unclear"
    assert short.markdown().splitlines()[-2:] == [f"- {waits}", f"- {few}"]
    assert short.as_dict()["rows"][0]["notes"] == short["waits"].timing.notes
    assert not short["goes on"].timing.notes
    assert enough.notes() == [waits]


def never():
    pytest.fail("it was called")


WAY = r'compare\(\{"name": function'


@pytest.mark.parametrize(
    ("candidates", "options", "error", "text"),
    [
        *((wrong, {}, TypeError, WAY) for wrong in ([len], len, None)),
        ({"first": never, "second": 3}, {}, TypeError, "by name, .*'second': 3"),
        ({3: never}, {}, TypeError, "by name, .*not {3: "),
        ({}, {}, ValueError, "at least one candidate"),
        *(
            ({"one": never}, {"nbytes": wrong}, ValueError, "nbytes.* whole number")
            for wrong in (1.5, -1, {"one": "x"})
        ),
        ({"one": never}, {"nbytes": {"y": 8}}, ValueError, "'y', which is not a cand"),
        ({"one": never}, {"number": -1}, ValueError, "whole number"),
        ({"one": never}, {"repeat": 0}, ValueError, "whole number"),
        ({"one": never}, {"device": "cuda:99"}, xdev.DeviceUnavailableError, "cuda:99"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_call(
    candidates, options, error, text
):
    with pytest.raises(error, match=text):
        compare(candidates, **options)
    with pytest.raises(TypeError, match=f"by name, {WAY}"):
        compare(never, never)


# What a copy within a device's memory reaches.


def test_a_copy_counts_bytes_read_and_written_once_and_leaves_nothing(
    device, small_copies
):
    nbytes, seconds = small_copies.nbytes, small_copies.seconds
    memory.reclaim(device=device)
    held, used = memory.reserved(device), memory.allocated(device)

    first = copy_bandwidth(device)

    assert memory.allocated(device) == used
    assert memory.reserved(device) < held + nbytes
    assert copy_bandwidth(str(device)) == first == 2 * nbytes / seconds[0]
    assert 1e6 < first < 1e14
    assert len(seconds) == 1
    with pytest.raises(xdev.DeviceUnavailableError):
        copy_bandwidth("cuda:99")


def test_rows_have_their_share_of_what_a_copy_reaches(device, measured):
    measured({device: 1e9})
    y = xdev.ones(1000, device=device)
    table = compare(
        {"add": lambda: y + y, "other": lambda: 2 * y},
        nbytes={"add": 24_000},
        number=1,
        repeat=1,
    )
    row = table["add"]
    assert row.bandwidth == pytest.approx(24_000 / row.timing.timings[0])
    assert row.share == pytest.approx(row.bandwidth / 1e9)
    assert table["other"].share is None
