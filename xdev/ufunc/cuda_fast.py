"""The quickest way to a launch: contiguous CuPy arrays of one shape, all given.

A function per number of inputs, each written out: a loop over the operands would cost
more than the checks do. What does not pass goes the general way.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev.compile import launch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.ufunc.cuda_plan import Plan

# By the number of elements: the operands' dtypes, how to launch, the bytes of the
# largest operand, and whether itemsizes differ (then equal addresses are no licence
# to write in place).
Table = dict[int, tuple[Any, ...]]


@cache
def devices() -> int:
    """Return how many CUDA devices this process sees."""
    return int(_optional.cupy().cuda.runtime.getDeviceCount())


def learn(
    table: Table, args: Sequence[Any], out: tuple[Any, ...], plan: Plan
) -> None:
    """Remember a plan, if the fast path can run it."""
    cupy = _optional.cupy()
    operands = (*args, *out)
    if (
        isinstance(plan.run, launch.Plain)
        and len(out) == 1
        and all(type(x) is cupy.ndarray for x in operands)
        and all(o.kind != "Uniform" for o in plan.elementwise.operands)
    ):
        dtypes = [x.dtype for x in operands]
        sizes = {dtype.itemsize for dtype in dtypes}
        run = plan.run
        table[run.size] = (
            *dtypes,
            *(run.config, run.kernel, max(sizes) * run.size, len(sizes) > 1),
        )


def path(slow: Callable[..., Any], table: Table, nin: int) -> Callable[..., Any]:
    """Return the fast path of functions of ``nin`` inputs, ``path(*inputs, out)``."""
    made = {1: _unary, 2: _binary, 3: _ternary}.get(nin)
    if made is None or devices() > 1:

        def general(*operands: Any) -> Any:
            return slow(operands[:-1], operands[-1])

        return general
    return made(slow, table)


def _unary(slow: Callable[..., Any], table: Table) -> Callable[..., Any]:
    cupy = _optional.cupy()
    array, current = cupy.ndarray, cupy.cuda.get_current_stream
    streams, start, find = launch.streams(), launch.launcher(), table.get

    def call(x: Any, out: Any) -> Any:
        if type(x) is array and type(out) is array:
            n = x.size
            entry = find(n)
            if entry is not None:
                dx, do, config, kernel, nbytes, mixed = entry
                if (
                    x.dtype is dx
                    and out.dtype is do
                    and x._c_contiguous
                    and out._c_contiguous
                    and x.shape == out.shape
                ):
                    a, o = x.data.ptr, out.data.ptr
                    if not -nbytes < a - o < nbytes or (a == o and not mixed):
                        handle = current().ptr
                        stream = streams.known.get(handle) or streams.get(handle)
                        start(stream, config, kernel, a, o, n)
                        return out
        return slow((x,), out)

    return call


def _binary(slow: Callable[..., Any], table: Table) -> Callable[..., Any]:
    cupy = _optional.cupy()
    array, current = cupy.ndarray, cupy.cuda.get_current_stream
    streams, start, find = launch.streams(), launch.launcher(), table.get

    def call(x: Any, y: Any, out: Any) -> Any:
        if type(x) is array and type(y) is array and type(out) is array:
            n = x.size
            entry = find(n)
            if entry is not None:
                dx, dy, do, config, kernel, nbytes, mixed = entry
                if (
                    x.dtype is dx
                    and y.dtype is dy
                    and out.dtype is do
                    and x._c_contiguous
                    and y._c_contiguous
                    and out._c_contiguous
                    and x.shape == y.shape == out.shape
                ):
                    a, b, o = x.data.ptr, y.data.ptr, out.data.ptr
                    if (not -nbytes < a - o < nbytes or (a == o and not mixed)) and (
                        not -nbytes < b - o < nbytes or (b == o and not mixed)
                    ):
                        handle = current().ptr
                        stream = streams.known.get(handle) or streams.get(handle)
                        start(stream, config, kernel, a, b, o, n)
                        return out
        return slow((x, y), out)

    return call


def _ternary(slow: Callable[..., Any], table: Table) -> Callable[..., Any]:
    cupy = _optional.cupy()
    array, current = cupy.ndarray, cupy.cuda.get_current_stream
    streams, start, find = launch.streams(), launch.launcher(), table.get

    def call(x: Any, y: Any, z: Any, out: Any) -> Any:
        if (
            type(x) is array
            and type(y) is array
            and type(z) is array
            and type(out) is array
        ):
            n = x.size
            entry = find(n)
            if entry is not None:
                dx, dy, dz, do, config, kernel, nbytes, mixed = entry
                if (
                    x.dtype is dx
                    and y.dtype is dy
                    and z.dtype is dz
                    and out.dtype is do
                    and x._c_contiguous
                    and y._c_contiguous
                    and z._c_contiguous
                    and out._c_contiguous
                    and x.shape == y.shape == z.shape == out.shape
                ):
                    a, b, c, o = x.data.ptr, y.data.ptr, z.data.ptr, out.data.ptr
                    if (
                        (not -nbytes < a - o < nbytes or (a == o and not mixed))
                        and (not -nbytes < b - o < nbytes or (b == o and not mixed))
                        and (not -nbytes < c - o < nbytes or (c == o and not mixed))
                    ):
                        handle = current().ptr
                        stream = streams.known.get(handle) or streams.get(handle)
                        start(stream, config, kernel, a, b, c, o, n)
                        return out
        return slow((x, y, z), out)

    return call
