"""Where a peer is ahead of xdev: each program is asked; kept pages show the table."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import behind

#: Programs that have no row of a peer, and what they show instead.
ALONE = {
    "batches": "shares of a copy that are hidden, of loops of unlike work",
    "cold_path": "a pool's own steps by how much is free",
    "fragmentation": "bytes, beside models of other pools",
    "harness": "how often the harness itself is wrong",
    "import_cost": "what an import adds",
    "growth": "functions of xdev beside a copy",
    "ledger": "bytes that are explained",
    "long_run": "whether memory is flat, and results are NumPy's",
    "naive_timeit": "two ways to time one call",
    "tracking": "what tracking adds to the pool's own calls",
}
KEPT = sorted((Path(behind.__file__).parent / "results").glob("????-??-??-*.json"))
WHOLE = [path for path in KEPT if not path.stem.endswith(("-bench", "-first", "-x2"))]


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
