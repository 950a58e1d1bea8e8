"""The quickest ways to a launch: arrays and numbers whose plan is known.

They may have any layout, and be Numba's: the plan is looked up by all that it depends
on. What is not known goes the general way, and so does what the launch itself refuses
before anything ran: a stream that is new (so nobody needs to look for a second one
here), a thread without a context, a number that does not fit, an output that overlaps
an input. A real failure comes again there.
"""

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
from xdev.ufunc.foreign import NUMBERS, numba

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.ufunc.cuda_plan import Plan


@final
class Known:
    """The plans that can be launched without a look at more than types and layouts.

    Attributes
    ----------
    any : dict
        By all dtypes, shapes and strides: the launch's address, how to make a result,
        which numbers go as bytes, with the loop's dtype, which argument's library a
        result that is made goes to, None for CuPy, and the launch, which owns what is
        at the address: another thread may have plans forgotten.
    """

    def __init__(self) -> None:
        self.any: dict[tuple[Any, ...], tuple[Any, ...]] = {}

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


@cache
def devices() -> int:
    """Return how many CUDA devices this process sees."""
    return int(_optional.cupy().cuda.runtime.getDeviceCount())


def path(
    slow: Callable[..., Any], known: Known
) -> Callable[[tuple[Any, ...], Any], Any]:
    """Return the fast path: ``path(inputs, out)``."""
    return slow if devices() > 1 else _any(slow, known)


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
