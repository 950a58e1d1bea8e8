"""The quickest way to a launch: contiguous CuPy arrays of one shape, all given.

A function per number of inputs, each written out: a loop over the operands would cost
more than the checks do. What does not pass goes the general way, and so does a launch
that fails: a stream is new (so nobody needs to look for a second one here), or the
thread has no context yet; a real failure comes again there. Arrays of one dimension are
compared by size, which takes less than shapes.
"""

# ruff: noqa: C901, SLF001 - long on purpose; CuPy has the flag in public only inside an
# object that costs more

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev.compile import launch
from xdev.memory.owners import mark_uses
from xdev.memory.streams import live_streams

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.ufunc.cuda_plan import Plan

# By the number of elements: the dtypes of the operands and of a result that is to be
# made, how to launch, the bytes of the largest operand and their negative, and whether
# itemsizes differ (then equal addresses are no licence to write in place).
Table = dict[int, tuple[Any, ...]]


@cache
def devices() -> int:
    """Return how many CUDA devices this process sees."""
    return int(_optional.cupy().cuda.runtime.getDeviceCount())


def learn(table: Table, args: Sequence[Any], out: Any, plan: Plan) -> None:
    """Remember a plan, if the fast path can run it.

    Parameters
    ----------
    table : dict
        What the fast path looks in.
    args : sequence
        The inputs of the call.
    out : array
        Its one result, made or given.
    plan : Plan
        What ran.
    """
    operands = (*args, out)
    array = _optional.cupy().ndarray
    if (
        isinstance(plan.run, launch.Plain)
        and all(type(x) is array and x._c_contiguous for x in operands)
        and all(o.kind != "Uniform" for o in plan.elementwise.operands)
    ):
        dtypes = [x.dtype for x in operands]
        sizes = {dtype.itemsize for dtype in dtypes}
        run, nbytes = plan.run, max(sizes) * plan.run.size
        made = plan.elementwise.operands[-1].loop
        table[run.size] = (
            *dtypes,
            *(made, run.config, run.kernel, nbytes, -nbytes, len(sizes) > 1),
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
    stream, start, find = launch.streams().known.get, launch.launcher(), table.get
    live = live_streams

    def call(x: Any, out: Any) -> Any:
        if type(x) is array:
            if live.several:
                mark_uses((x, out))
            n = x.size
            entry = find(n)
            if entry is not None:
                dx, do, made, config, kernel, nbytes, low, mixed = entry
                if x.dtype is dx and x._c_contiguous:
                    a = x.data.ptr
                    if out is None:
                        if do is made:
                            out = array(x.shape, made)
                            try:
                                start(
                                    stream(current().ptr),
                                    config,
                                    kernel,
                                    a,
                                    out.data.ptr,
                                    n,
                                )
                            except Exception:  # noqa: BLE001
                                return slow((x,), out)
                            return out
                    elif (
                        type(out) is array
                        and out.dtype is do
                        and out._c_contiguous
                        and (
                            (out.size == n and out.ndim == x.ndim == 1)
                            or out.shape == x.shape
                        )
                    ):
                        o = out.data.ptr
                        if not (low < a - o < nbytes and (a != o or mixed)):
                            try:
                                start(stream(current().ptr), config, kernel, a, o, n)
                            except Exception:  # noqa: BLE001
                                return slow((x,), out)
                            return out
        return slow((x,), out)

    return call


def _binary(slow: Callable[..., Any], table: Table) -> Callable[..., Any]:
    cupy = _optional.cupy()
    array, current = cupy.ndarray, cupy.cuda.get_current_stream
    stream, start, find = launch.streams().known.get, launch.launcher(), table.get
    live = live_streams

    def call(x: Any, y: Any, out: Any) -> Any:
        if type(x) is array and type(y) is array:
            if live.several:
                mark_uses((x, y, out))
            n = x.size
            entry = find(n)
            if entry is not None:
                dx, dy, do, made, config, kernel, nbytes, low, mixed = entry
                if (
                    x.dtype is dx
                    and y.dtype is dy
                    and x._c_contiguous
                    and y._c_contiguous
                    and ((y.size == n and x.ndim == y.ndim == 1) or x.shape == y.shape)
                ):
                    a, b = x.data.ptr, y.data.ptr
                    if out is None:
                        if do is made:
                            out = array(x.shape, made)
                            try:
                                start(
                                    stream(current().ptr),
                                    config,
                                    kernel,
                                    a,
                                    b,
                                    out.data.ptr,
                                    n,
                                )
                            except Exception:  # noqa: BLE001
                                return slow((x, y), out)
                            return out
                    elif (
                        type(out) is array
                        and out.dtype is do
                        and out._c_contiguous
                        and (
                            (out.size == n and out.ndim == x.ndim == 1)
                            or out.shape == x.shape
                        )
                    ):
                        o = out.data.ptr
                        if not (
                            (low < a - o < nbytes and (a != o or mixed))
                            or (low < b - o < nbytes and (b != o or mixed))
                        ):
                            try:
                                start(stream(current().ptr), config, kernel, a, b, o, n)
                            except Exception:  # noqa: BLE001
                                return slow((x, y), out)
                            return out
        return slow((x, y), out)

    return call


def _ternary(slow: Callable[..., Any], table: Table) -> Callable[..., Any]:
    cupy = _optional.cupy()
    array, current = cupy.ndarray, cupy.cuda.get_current_stream
    stream, start, find = launch.streams().known.get, launch.launcher(), table.get
    live = live_streams

    def call(x: Any, y: Any, z: Any, out: Any) -> Any:
        if type(x) is array and type(y) is array and type(z) is array:
            if live.several:
                mark_uses((x, y, z, out))
            n = x.size
            entry = find(n)
            if entry is not None:
                dx, dy, dz, do, made, config, kernel, nbytes, low, mixed = entry
                if (
                    x.dtype is dx
                    and y.dtype is dy
                    and z.dtype is dz
                    and x._c_contiguous
                    and y._c_contiguous
                    and z._c_contiguous
                    and (
                        (
                            y.size == n
                            and z.size == n
                            and x.ndim == y.ndim == z.ndim == 1
                        )
                        or x.shape == y.shape == z.shape
                    )
                ):
                    a, b, c = x.data.ptr, y.data.ptr, z.data.ptr
                    if out is None:
                        if do is made:
                            out = array(x.shape, made)
                            try:
                                start(
                                    stream(current().ptr),
                                    config,
                                    kernel,
                                    a,
                                    b,
                                    c,
                                    out.data.ptr,
                                    n,
                                )
                            except Exception:  # noqa: BLE001
                                return slow((x, y, z), out)
                            return out
                    elif (
                        type(out) is array
                        and out.dtype is do
                        and out._c_contiguous
                        and (
                            (out.size == n and out.ndim == x.ndim == 1)
                            or out.shape == x.shape
                        )
                    ):
                        o = out.data.ptr
                        if not (
                            (low < a - o < nbytes and (a != o or mixed))
                            or (low < b - o < nbytes and (b != o or mixed))
                            or (low < c - o < nbytes and (c != o or mixed))
                        ):
                            try:
                                start(
                                    stream(current().ptr), config, kernel, a, b, c, o, n
                                )
                            except Exception:  # noqa: BLE001
                                return slow((x, y, z), out)
                            return out
        return slow((x, y, z), out)

    return call
