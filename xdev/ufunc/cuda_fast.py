"""The quickest ways to a launch: arrays and numbers whose plan is known.

First a function per number of inputs, written out, for CuPy's contiguous arrays of one
shape: a loop over the operands would cost more than the checks do. Arrays of one
dimension are compared by size, which takes less than shapes. Then one for any layout,
and for Numba's arrays too, which looks the plan up by all that it depends on. What
neither knows goes the general way, and so does what the launch itself refuses: a stream
that is new (so nobody needs to look for a second one here), a thread without a context,
a number that does not fit, an output that overlaps an input. A real failure comes again
there.
"""

# ruff: noqa: SLF001 - CuPy has the flag in public only inside an object that costs more

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev.compile import machine_launch
from xdev.memory.device_arrays import array_maker
from xdev.memory.owners import mark_uses
from xdev.memory.streams import live_streams
from xdev.ufunc import foreign
from xdev.ufunc.cuda_operands import Number
from xdev.ufunc.foreign import numba
from xdev.ufunc.on_cuda import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.ufunc.cuda_plan import Plan


@final
class Known:
    """The plans that can be launched without a look at more than types and layouts.

    Attributes
    ----------
    alike : dict
        By the number of elements, for contiguous arrays of one shape: the operands'
        dtypes, that of a result that is to be made, the launch's address, and the
        launch, which owns what is there: another thread may have plans forgotten.
    any : dict
        By all dtypes, shapes and strides: the launch's address, how to make a result,
        which numbers go as bytes, with the loop's dtype, which argument's library a
        result that is made goes to, None for CuPy, and the launch.
    """

    def __init__(self) -> None:
        self.alike: dict[int, tuple[Any, ...]] = {}
        self.any: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def clear(self) -> None:
        """Forget all."""
        self.alike.clear()
        self.any.clear()

    def learn(self, args: Sequence[Any], out: Any, made: Any, plan: Plan) -> None:
        """Remember a plan, if the fast ways can run it.

        Parameters
        ----------
        args : sequence
            The inputs of the call.
        out : array or None
            The caller's output.
        made : array
            The one result: ``out``, or a new array.
        plan : Plan
            What ran.
        """
        array = _optional.cupy().ndarray
        run = plan.run
        arrays = [x for x in args if not isinstance(x, NUMBERS)]
        kinds = {type(x) for x in (*arrays, made)}
        if run is None or not kinds <= {array, *numba.KNOWN}:
            return
        encoded = tuple(
            (i, dtype)
            for i, (value, dtype) in enumerate(
                zip(run.values, plan.inputs, strict=False)
            )
            if value.kind == machine_launch.BYTES
        )
        key, _ = _read(args, out, array)
        like = None
        if out is None and type(made) is not array:
            like = next(i for i, x in enumerate(args) if x is arrays[0])
        if key:
            self.any[key] = run.address, plan.results[0], encoded, like, run
        operands = (*args, made)
        linear = {x.kind for x in plan.elementwise.operands} <= {"Linear", "Output"}
        if (
            linear
            and kinds == {array}
            and all(x._c_contiguous and x.shape == made.shape for x in operands)
        ):
            dtypes = [x.dtype for x in operands]
            loop = plan.elementwise.operands[-1].loop
            self.alike[made.size] = *dtypes, loop, run.address, run


@cache
def devices() -> int:
    """Return how many CUDA devices this process sees."""
    return int(_optional.cupy().cuda.runtime.getDeviceCount())


def path(slow: Callable[..., Any], known: Known, nin: int) -> Callable[..., Any]:
    """Return the fast path of functions of ``nin`` inputs, ``path(*inputs, out)``."""
    if devices() > 1:

        def general(*operands: Any) -> Any:
            return slow(operands[:-1], operands[-1])

        return general
    any_layout = _any(slow, known)
    made = {1: _unary, 2: _binary, 3: _ternary}.get(nin)
    if made is None:

        def many(*operands: Any) -> Any:
            return any_layout(operands[:-1], operands[-1])

        return many
    return made(any_layout, known)


def _read(
    args: Sequence[Any], out: Any, array: Any
) -> tuple[tuple[Any, ...], list[Any]]:
    """Return all that a plan depends on, and the operands' addresses and numbers.

    Nothing, where a Numba array's stream is to be ordered with the current one.
    """
    key: list[Any] = []
    values: list[Any] = []
    known = numba.KNOWN
    for x in args if out is None else (*args, out):
        kind = type(x)
        if kind is array:
            address = x.data.ptr
            key += x.dtype, x.shape, x.strides
        elif kind in known:
            if not numba.is_ordered(x):
                return (), []
            address = numba.address(x)
            key += kind, x.dtype, x.shape, x.strides, address & 15
        else:
            key.append(kind)
            address = x
        values.append(address)
    if out is not None:
        key += (address & 15,)
    return tuple(key), values


def _any(slow: Callable[..., Any], known: Known) -> Callable[..., Any]:
    array, make = _optional.cupy().ndarray, array_maker()
    start, find = machine_launch.starter().start, known.any.get
    live = live_streams

    def call(args: tuple[Any, ...], out: Any) -> Any:
        if out is None or type(out) is array or type(out) in numba.KNOWN:
            key, values = _read(args, out, array)
            entry = find(key)
            if entry is not None:
                if live.several:
                    mark_uses((*args, out))
                plan, result, encoded, like, _ = entry
                for i, dtype in encoded:
                    values[i] = Number(values[i]).given(dtype)
                made = out
                if out is None:
                    made = make(result.shape, result.dtype)
                    if not result.straight:
                        made = made.transpose(result.axes)
                    values.append(made.data.ptr)
                if not start(plan, *values):
                    return made if like is None else foreign.lift(made, args[like])
                del made  # before the general way makes another
        return slow(args, out)

    return call


def _unary(general: Callable[..., Any], known: Known) -> Callable[..., Any]:
    array, make = _optional.cupy().ndarray, array_maker()
    start, find = machine_launch.starter().start, known.alike.get
    live = live_streams

    def call(x: Any, out: Any) -> Any:
        if type(x) is array:
            n = x.size
            entry = find(n)
            if entry is not None:
                if live.several:
                    mark_uses((x, out))
                dx, do, loop, plan, _ = entry
                if x.dtype is dx and x._c_contiguous:
                    if out is None:
                        if do is loop:
                            made = make(x.shape, do)
                            if not start(plan, x.data.ptr, made.data.ptr):
                                return made
                            del made  # before the general way makes another
                    elif (
                        type(out) is array
                        and out.dtype is do
                        and out._c_contiguous
                        and (
                            (out.size == n and out.ndim == x.ndim == 1)
                            or out.shape == x.shape
                        )
                        and not start(plan, x.data.ptr, out.data.ptr)
                    ):
                        return out
        return general((x,), out)

    return call


def _binary(general: Callable[..., Any], known: Known) -> Callable[..., Any]:
    array, make = _optional.cupy().ndarray, array_maker()
    start, find = machine_launch.starter().start, known.alike.get
    live = live_streams

    def call(x: Any, y: Any, out: Any) -> Any:
        if type(x) is array and type(y) is array:
            n = x.size
            entry = find(n)
            if entry is not None:
                if live.several:
                    mark_uses((x, y, out))
                dx, dy, do, loop, plan, _ = entry
                if (
                    x.dtype is dx
                    and y.dtype is dy
                    and x._c_contiguous
                    and y._c_contiguous
                    and ((y.size == n and x.ndim == y.ndim == 1) or x.shape == y.shape)
                ):
                    if out is None:
                        if do is loop:
                            made = make(x.shape, do)
                            if not start(plan, x.data.ptr, y.data.ptr, made.data.ptr):
                                return made
                            del made  # before the general way makes another
                    elif (
                        type(out) is array
                        and out.dtype is do
                        and out._c_contiguous
                        and (
                            (out.size == n and out.ndim == x.ndim == 1)
                            or out.shape == x.shape
                        )
                        and not start(plan, x.data.ptr, y.data.ptr, out.data.ptr)
                    ):
                        return out
        return general((x, y), out)

    return call


def _ternary(general: Callable[..., Any], known: Known) -> Callable[..., Any]:
    array, make = _optional.cupy().ndarray, array_maker()
    start, find = machine_launch.starter().start, known.alike.get
    live = live_streams

    def call(x: Any, y: Any, z: Any, out: Any) -> Any:
        if type(x) is array and type(y) is array and type(z) is array:
            entry = find(x.size)
            if entry is not None:
                if live.several:
                    mark_uses((x, y, z, out))
                dx, dy, dz, do, loop, plan, _ = entry
                if (
                    x.dtype is dx
                    and y.dtype is dy
                    and z.dtype is dz
                    and x._c_contiguous
                    and y._c_contiguous
                    and z._c_contiguous
                    and x.shape == y.shape == z.shape
                ):
                    a, b, c = x.data.ptr, y.data.ptr, z.data.ptr
                    if out is None:
                        if do is loop:
                            made = make(x.shape, do)
                            if not start(plan, a, b, c, made.data.ptr):
                                return made
                            del made  # before the general way makes another
                    elif (
                        type(out) is array
                        and out.dtype is do
                        and out._c_contiguous
                        and out.shape == x.shape
                        and not start(plan, a, b, c, out.data.ptr)
                    ):
                        return out
        return general((x, y, z), out)

    return call
