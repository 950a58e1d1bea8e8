# ruff: noqa: ARG001 - Numba reads the parameters
"""The machine operations as Numba compiles them."""

from __future__ import annotations

from typing import Any

from xdev import _optional


def intrinsics() -> dict[str, Any]:
    """Return the operations, for compiled code."""
    numba, ir = _optional.numba(), _optional.llvm_ir()
    int64, voidptr = numba.types.int64, numba.types.voidptr
    intrinsic, carray = numba.extending.intrinsic, numba.carray
    word, byte = ir.IntType(64), ir.IntType(8)

    def emit_load(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return builder.load(builder.inttoptr(values[0], word.as_pointer()))

    def emit_exchange(_: Any, builder: Any, __: Any, values: Any) -> Any:
        place = builder.inttoptr(values[0], word.as_pointer())
        return builder.atomic_rmw("xchg", place, values[1], "acq_rel")

    def emit_call(_: Any, builder: Any, __: Any, values: Any) -> Any:
        kind = ir.FunctionType(word, [word] * 4).as_pointer()
        return builder.call(builder.inttoptr(values[0], kind), values[1:])

    def emit_pointer(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], byte.as_pointer())

    @intrinsic  # type: ignore[untyped-decorator]
    def load(_: Any, address: Any) -> Any:
        return int64(int64), emit_load

    @intrinsic  # type: ignore[untyped-decorator]
    def exchange(_: Any, address: Any, value: Any) -> Any:
        return int64(int64, int64), emit_exchange

    @intrinsic  # type: ignore[untyped-decorator]
    def call(
        _: Any, function: Any, first: Any, second: Any, third: Any, fourth: Any
    ) -> Any:
        return int64(*[int64] * 5), emit_call

    @intrinsic  # type: ignore[untyped-decorator]
    def pointer(_: Any, address: Any) -> Any:
        return voidptr(int64), emit_pointer

    @numba.njit(error_model="numpy")  # type: ignore[untyped-decorator]
    def view(address: int, count: int) -> Any:
        return carray(pointer(address), (count,), int64)

    found = load, exchange, call
    return {each.__name__: each for each in found} | {"view": view}
