"""Plans of CUDA arrays that are made by one launch, with NumPy's bits.

Of one value, of numbers at equal distances, of ones on a diagonal.
"""

from __future__ import annotations

from math import inf, prod
from typing import Any

import numpy as np

from xdev.compile.cubins import cpp_name
from xdev.compile.launch import Value
from xdev.facade.backends import FLOAT64, as_shape, ends_of
from xdev.facade.cuda_copies import FAR, Move, Operands, Program, move

INT64 = np.dtype(np.int64)
#: Of data types, what launches convert to them as NumPy does: types of numbers, and
#: bounds, beyond which NumPy refuses or warns, or 64 bits end.
SPANS: dict[Any, tuple[set[type], float, float]] = {
    x: ({int}, ends_of(x)[0], min(ends_of(x)[1], 2**63 - 1))
    for x in map(np.dtype, "?bhilBHIL")
}
for kind in map(np.dtype, "efdFD"):
    SPANS[kind] = {int, float}, -float(np.finfo(kind).max), float(np.finfo(kind).max)
NONE = set[type](), inf, -inf
ROUNDED = {*map(np.dtype, "efd")}  # to which numbers computed in float64 are rounded


def ramp(
    _: Operands, shape: Any, dtype: Any, filled: bool, *places: int
) -> Move | None:
    """Plan numbers at equal distances.

    Of a first number, a distance and a number that certain places have: from the first
    of ``places`` to the second, so many apart; from the fourth on all count from the
    end. ``filled``: a range, whose second number stands for both.
    """
    shape = as_shape(shape)
    if min(shape, default=1) < 0 or not 0 < prod(shape) < FAR:
        return None
    rounded = FLOAT64 if dtype.kind in "fc" else INT64
    computed = dtype if filled and dtype in ROUNDED else rounded
    types = cpp_name(dtype), cpp_name(computed), str(filled).lower()
    entry, numbers = f"xdev::ramp<{','.join(types)}>", (Value.number(0, computed),) * 3
    program = Program(entry, slots=4, numbers=numbers)
    return move(program, dtype, shape, *places[:4])
