"""Where a peer is ahead of xdev: in the table, whoever measured it in which form."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import behind


def row(seconds, **facts):
    return {"samples": [seconds, seconds, 9 * seconds], **facts}


def sized(seconds, who, n=10):
    return row(seconds, group="x + y", candidate=who, name=f"x + y: {who}", n=n)


def task(seconds, who, what):
    return row(seconds, name=who, task=what, what="cpu", n=4)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (  # with both times
            [sized(2e-6, "xdev"), sized(1e-6, "NumPy"), sized(9e-6, "CuPy")],
            "| program | x + y, n 10 | 2 µs | NumPy, 1 µs | 2 |",
        ),
        (  # xdev's best counts, sizes are apart
            [
                row(2e-6, name="sum, n = 10: xdev"),
                row(1e-6, name="sum, n = 10: xdev ufunc"),
                row(1.5e-6, name="sum, n = 10: NumPy"),
                row(0.5e-6, name="sum, n = 20: NumPy"),
            ],
            None,
        ),
        (  # who writes into an array is compared with who does so too
            [
                row(2e-6, name="add: xdev"),
                row(2e-6, name="add: NumPy"),
                row(1.5e-6, name="add: xdev out="),
                row(1e-6, name="add: NumPy out="),
            ],
            "add, into an array that is there | 1.5 µs | NumPy, 1 µs | 1.5 |",
        ),
        # less than three percent is the same
        ([row(1.02e-6, name="add: xdev"), row(1e-6, name="add: NumPy")], None),
        (
            [
                task(3e-3, "xdev @kernel", "saxpy"),
                task(2e-3, "Numba parallel", "saxpy"),
                task(1e-3, "Numba parallel", "stencil"),
            ],
            "saxpy, what cpu, n 4 | 3 ms | Numba parallel, 2 ms | 1.5 |",
        ),
    ],
)
def test_a_peer_that_is_ahead_is_named_with_its_task(rows, told):
    text = behind.table({"program": {"rows": rows}, "broken": {"failed": "why"}})
    if told is None:
        assert text == "Nowhere."
    else:
        [line] = text.splitlines()[2:]
        assert told in line


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
