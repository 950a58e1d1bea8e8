"""Where a peer is ahead of xdev: in the table, whoever measured it in which form."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import behind


def row(seconds, **facts):
    return {"samples": [seconds, seconds, 9 * seconds], **facts}


def found(*rows):
    return behind.table({"program": {"rows": list(rows)}, "broken": {"failed": "why"}})


def test_a_peer_that_is_ahead_is_there_with_both_times():
    text = found(
        row(2e-6, group="x + y", candidate="xdev", name="x + y: xdev", n=10),
        row(1e-6, group="x + y", candidate="NumPy", name="x + y: NumPy", n=10),
        row(9e-6, group="x + y", candidate="CuPy", name="x + y: CuPy", n=10),
    )
    assert "| program | x + y, n 10 | 2 µs | NumPy, 1 µs | 2 |" in text
    assert len(text.splitlines()) == 3


def test_xdevs_best_counts_and_sizes_are_apart():
    text = found(
        row(2e-6, name="sum, n = 10: xdev"),
        row(1e-6, name="sum, n = 10: xdev ufunc"),
        row(1.5e-6, name="sum, n = 10: NumPy"),
        row(0.5e-6, name="sum, n = 20: NumPy"),
    )
    assert text == "Nowhere."


def test_who_writes_into_an_array_is_compared_with_who_does_so_too():
    text = found(
        row(2e-6, name="add: xdev"),
        row(2e-6, name="add: NumPy"),
        row(1.5e-6, name="add: xdev out="),
        row(1e-6, name="add: NumPy out="),
    )
    [line] = text.splitlines()[2:]
    assert "add, into an array that is there | 1.5 µs | NumPy, 1 µs | 1.5 |" in line


def test_less_than_three_percent_is_the_same():
    pair = row(1.02e-6, name="add: xdev"), row(1e-6, name="add: NumPy")
    assert found(*pair) == "Nowhere."


def test_rows_that_name_their_task_are_compared_too():
    text = found(
        row(3e-3, name="xdev @kernel", task="saxpy", what="cpu", n=4),
        row(2e-3, name="Numba parallel", task="saxpy", what="cpu", n=4),
        row(1e-3, name="Numba parallel", task="stencil", what="cpu", n=4),
    )
    assert "saxpy, what cpu, n 4 | 3 ms | Numba parallel, 2 ms | 1.5 |" in text
    assert "stencil" not in text


#: Programs that have no row of a peer, and what they show instead.
ALONE = {
    "batches": "shares of a copy that are hidden, of loops of unlike work",
    "cold_path": "a pool's own steps by how much is free",
    "fragmentation": "bytes, beside models of other pools",
    "harness": "how often the harness itself is wrong",
    "import_cost": "what an import adds",
    "ledger": "bytes that are explained",
    "naive_timeit": "two ways to time one call",
    "tracking": "what tracking adds to the pool's own calls",
}
KEPT = sorted((Path(behind.__file__).parent / "results").glob("????-??-??-*.json"))
WHOLE = [path for path in KEPT if not path.stem.endswith(("-bench", "-first"))]


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_every_program_of_a_record_is_asked_who_is_ahead(path):
    records = json.loads(path.read_text(encoding="utf-8"))
    asked = {
        program
        for program, record in records.items()
        for times in behind.by_task(record["rows"]).values()
        if len({who.startswith("xdev") for who in times}) > 1
    }
    measured = {program for program, record in records.items() if record["rows"]}
    on_cuda = records["adapt"]["environment"]["cuda"]
    unasked = set() if on_cuda else {"adapt", "graphs"}  # their peers are on CUDA
    assert measured - asked == set(ALONE) & measured | unasked
