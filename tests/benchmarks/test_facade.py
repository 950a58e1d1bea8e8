"""The program that times every function of the facade: its rows, record and page."""

import importlib.util
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import xdev

ROOT = Path(__file__).parents[2]
CPU = xdev.Device("cpu")
# CuPy's draw of a data type by cuRAND, for which NumPy has none.
ONLY_CUPYS = ("random.rand(n, dtype=d)", "random.randn(n, dtype=d)")


def test_every_public_name_has_a_row_or_a_reason(program):
    rows = program("facade_rows")
    measured = {row.function for row in rows.ROWS}
    left_out = Counter(" ".join(rows.LEFT_OUT.values()).split())
    assert set(left_out.values()) == {1}
    assert not measured & left_out.keys()
    assert measured | left_out.keys() == rows.names()
    assert {"sort", "linalg.svd", "fft.fftn", "random.shuffle"} <= measured


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.filterwarnings("ignore")  # libraries' own: of a scan's overflow
def test_libraries_give_a_rows_results_alike(program, dtype):
    facade, rows = program("facade"), program("facade_rows")
    inputs = rows.Inputs(np, 400, dtype)
    for row in rows.ROWS:
        if dtype in row.dtypes:
            calls, _, errors = facade.candidates(row, inputs, CPU)
            assert calls["xdev"]
            none = {"NumPy": row.numpy, "PyTorch": row.torch}
            for name in errors:
                assert none[name] is None or none[name] in ONLY_CUPYS, errors
            if row.alike:
                assert facade.different(calls) == {}, row


def test_it_runs_a_part_and_tells_what_came_too_late(tmp_path):
    path = tmp_path / "record.json"
    command = [sys.executable, "benchmarks/facade.py", "--device=cpu", "--json", path]
    command += ["--sizes", "100", "400", "--only=sin,unique_all,reshape"]

    def run(*more):
        subprocess.run(
            [*command, *more], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
        )
        return json.loads(path.read_text())

    record = run("--dtypes=float32")
    ours = [row for row in record["rows"] if row["candidate"] == "xdev"]
    sizes = Counter(row["call"] for row in ours)
    assert sizes["sin(x)"] == sizes["unique_all(x)"] == 2
    assert sizes["reshape(x2, (n2,))"] == 1  # a view
    assert all(row["ratio"] > 0 for row in ours)
    assert record["gpus_visible"] == sum(d.type == "cuda" for d in xdev.devices())
    assert "uint8" in record["left_out"]["a data type, or tells of one"]
    peers = {row["candidate"] for row in record["rows"]} - {"xdev"}
    torch = {"PyTorch"} if importlib.util.find_spec("torch") else set()
    assert peers == {"NumPy"} | torch

    (reason,) = [why for why in run("--limit=1e-9")["left_out"] if "reached" in why]
    assert reason.endswith("rows not reached in 1e-09 s")
