"""Indices of 32 bits on CUDA: a negative one counts from the end, in one step."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

BITS = 32


@contextmanager
def short(ir: Any) -> Iterator[None]:
    """Let numba-cuda compile for arrays of fewer than 2**31 elements.

    Its own code extends an index that was loaded from memory to 64 bits, and then takes
    eight instructions to add the extent to it where it is negative. As an unsigned
    number of 32 bits a negative index is large, and the sum is not: the smaller of both
    is the place, and no index that is in bounds has another one.

    Parameters
    ----------
    ir : module
        llvmlite's ``ir``, as numba-cuda has it.
    """
    arrays: Any = importlib.import_module("numba.cuda.np.arrayobj")
    lock = importlib.import_module("numba.cuda.core.compiler_lock").global_compiler_lock
    half = ir.IntType(BITS)

    def fixed(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
        extended = kind.signed and getattr(index, "opname", None) == "sext"
        if not extended or index.operands[0].type.width > BITS:
            return real(context, builder, kind, index, size)
        place = builder.trunc(index, half)
        other = builder.add(place, builder.trunc(size, half))
        less = builder.icmp_unsigned("<", other, place)
        return builder.zext(builder.select(less, other, place), size.type)

    with lock:  # others compile before or after
        real = arrays.fix_integer_index
        arrays.fix_integer_index = fixed
        try:
            yield
        finally:
            arrays.fix_integer_index = real
