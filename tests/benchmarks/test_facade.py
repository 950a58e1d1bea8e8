"""The program that times every function of the facade: its rows."""

from collections import Counter

import numpy as np
import pytest

import xdev

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
