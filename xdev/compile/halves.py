"""Floats of 16 bits: stored as such, computed in float32."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from xdev import _optional

if TYPE_CHECKING:
    import numpy as np

BFLOAT16 = (
    "bfloat16"  # the name of ml_dtypes' dtype, which NumPy knows once it is there
)


def is_half(dtype: np.dtype[Any]) -> bool:
    """Say whether values of a dtype are computed in float32 though they are smaller.

    Examples
    --------
    >>> import numpy as np
    >>> is_half(np.dtype("float16")), is_half(np.dtype("float32"))
    (True, False)
    """
    return dtype.char == "e" or is_bfloat16(dtype)


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Say whether a dtype is ml_dtypes' bfloat16."""
    return dtype.kind == "V" and dtype.name == BFLOAT16


def computed(dtype: np.dtype[Any]) -> Any:
    """Return the Numba type that values of a dtype are computed in."""
    numba = _optional.numba()
    if is_half(dtype):
        return numba.core.types.float32
    return numba.np.numpy_support.from_dtype(dtype)


@cache
def stored(dtype: np.dtype[Any]) -> Any:
    """Return the Numba type of values in memory, which a load makes float32.

    Raises
    ------
    NotImplementedError
        The processor has no instructions for float16, and libgcc no functions.
    """
    numba = _optional.numba()
    ir, models = _optional.llvm_ir(), numba.core.datamodel.models
    in_memory = ir.IntType(16) if is_bfloat16(dtype) else ir.HalfType()
    if not (is_bfloat16(dtype) or has_feature("f16c")):
        llvm = _optional.llvm()
        with suppress(RuntimeError):  # there is none
            llvm.load_library_permanently("libgcc_s.so.1")
        if not llvm.address_of_symbol("__extendhfsf2"):
            raise NotImplementedError("float16 needs a CPU with F16C, or libgcc 12")

    class Half(numba.core.types.Type):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__(dtype.name)

    @numba.extending.register_model(Half)
    class HalfModel(models.PrimitiveModel):  # type: ignore[misc, name-defined]
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, ir.FloatType())

        def get_data_type(self) -> Any:
            return in_memory

        def from_data(self, builder: Any, value: Any) -> Any:
            if in_memory == ir.HalfType():
                return builder.fpext(value, self.be_type)
            word = builder.zext(value, ir.IntType(32))
            return builder.bitcast(builder.shl(word, word.type(16)), self.be_type)

        def as_data(self, b: Any, value: Any) -> Any:
            if in_memory == ir.HalfType():
                return b.fptrunc(value, in_memory)
            bits = b.bitcast(value, ir.IntType(32))
            high = b.lshr(bits, bits.type(16))
            odd = b.and_(high, bits.type(1))
            even = b.lshr(b.add(b.add(bits, odd), bits.type(0x7FFF)), bits.type(16))
            quiet = b.or_(high, bits.type(0x40))
            is_nan = b.fcmp_unordered("uno", value, value)
            return b.trunc(b.select(is_nan, quiet, even), in_memory)

    return Half()


def has_feature(name: str) -> bool:
    """Say whether Numba compiles for a CPU of x86 with a feature, or for another."""
    context = _optional.numba().core.registry.cpu_target.target_context
    triple, _, features = context.codegen().magic_tuple()
    return not triple.startswith("x86") or f"+{name}," in f"{features},"
