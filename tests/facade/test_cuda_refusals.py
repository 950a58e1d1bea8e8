"""What entries of the table refuse: the errors of NumPy's functions, in our words.

On CUDA each goes through its entry; here they run with NumPy standing in for CuPy too.
"""

import numpy as np
import pytest
from numpy.exceptions import AxisError
from numpy.linalg import LinAlgError

import xdev
from xdev.facade import cuda_differences as cupys
from xdev.facade.cpu import pinv
from xdev.facade.cuda_differences import decompositions

LAST = {"axis": -1}
#: What is refused: with which error, in our words, and in NumPy's where those differ.
REFUSED = [
    ("outer", [(2, 2), 2], {}, ValueError, "2-D and 1-D, and must be 1-D", "one-dim"),
    ("outer", [2, ()], {}, ValueError, "1-D and 0-D, and must be 1-D", "one-dim"),
    ("cross", [2, 2], LAST, ValueError, "must have 3: .*concat", "3-dim"),
    ("cross", [3, (4, 2)], LAST, ValueError, "sizes 3 and 2 along axis -1", "3-dim"),
    ("cross", [(2, 3)] * 2, {"axis": 0}, ValueError, "must have 3", "3-dim"),
    ("cross", [3, 3], {"axis": 1}, IndexError, "axis 1 is out of", "tuple index"),
    ("vecdot", [(2, 4), (2, 3)], LAST, ValueError, "vectors of one size", "size 3"),
    ("vecdot", [3, 1], LAST, ValueError, "vectors of one size", "size 1"),
    ("vecdot", [(3, 2), 2], {"axis": 0}, ValueError, "axis 0 being the last", "size 2"),
    ("vecdot", [(), 3], LAST, ValueError, r"shapes \(\) and \(3,\)", "operand 0"),
    ("vecdot", [3, ()], LAST, ValueError, r"shapes \(3,\) and \(\)", "operand 1"),
    ("vecdot", [(2, 3), 3], {"axis": 2}, AxisError, "axis 2 is out of", ""),
    ("vecdot", [(2, 3), 3], {"axis": -2}, AxisError, "axis -2 is out of", ""),
    ("vecdot", [(), ()], {"axis": 0}, ValueError, "axis 0 is out of", "operand 0"),
    *(
        (
            name,
            [shape],
            {"rtol": None},
            LinAlgError,
            f"{name}: x is {n}-D, and must",
            "",
        )
        for name in ("matrix_rank", "pinv")
        for n, shape in enumerate([(), 3])
    ),
    *(
        (
            "qr",
            [(3, 2)],
            {"mode": mode},
            ValueError,
            f"mode is {mode!r}, and must be",
            "",
        )
        for mode in ("r", "raw", "full", "economic", "other", None)
    ),
]
NAMES = "name", "shapes", "options", "error", "ours", "numpys"


@pytest.mark.parametrize(NAMES, REFUSED)
def test_refusals(device, name, shapes, options, error, ours, numpys):
    arrays = [xdev.ones(shape, device=device) for shape in shapes]
    with pytest.raises(error, match=f"{ours}|{numpys}" if numpys else ours):
        getattr(xdev.linalg, name)(*arrays, **options)


def entry(name):
    made = decompositions(np.linalg) | {"linalg.pinv": pinv}
    return made.get(f"linalg.{name}") or getattr(cupys, name)


@pytest.mark.usefixtures("numpys")
@pytest.mark.parametrize(NAMES[:-1], [row[:-1] for row in REFUSED])
def test_entries_refuse_in_our_words(name, shapes, options, error, ours):
    with pytest.raises(error, match=ours):
        entry(name)(*map(np.ones, shapes), **options)
