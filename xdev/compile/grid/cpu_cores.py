"""Functions of core arrays on the CPU: the inner loop of a generalized NumPy ufunc."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev.compile import digests, faults, loops
from xdev.compile.grid.cpu import call, device_function, target
from xdev.compile.grid.emission import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.compile.grid import Argument

Places = tuple[tuple[int, ...], ...]


def loop(
    function: Callable[..., Any],
    arguments: tuple[Argument, ...],
    places: Places,
    *,
    fastmath: bool,
) -> loops.Loop:
    """Compile the inner loop of a generalized ufunc.

    Parameters
    ----------
    function : callable
        ``function(*arguments)``, plain Python.
    arguments : tuple of Argument
        The operands' types, of arrays with any strides.
    places : tuple of tuple of int
        For each operand the places of its core dimensions among all; an array without
        any has one axis of length 1.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.

    Returns
    -------
    Loop
        A C function of NumPy's inner loop signature.

    Raises
    ------
    TypeError
        The function cannot be compiled for these types; the text has the reason and
        the source line.
    """
    parts = "cores", arguments, places, fastmath
    name = function.__name__

    def make() -> tuple[str, bytes]:
        made = _compiled(function, arguments, places, fastmath=fastmath)
        return loops.code_of(made)

    return loops.kept(digests.digest(function), parts, name, make)


@_optional.numba_unset()
def _compiled(
    function: Callable[..., Any],
    arguments: tuple[Argument, ...],
    places: Places,
    *,
    fastmath: bool,
) -> Any:
    """Return Numba's C function: arrays without gaps have code of their own."""
    numba = _optional.numba()
    types = numba.core.types
    cases = [arguments]
    if any(places):
        dense = (replace(a, contiguous=a.ndim is not None) for a in arguments)
        cases = [tuple(dense), arguments]
    compiled = [
        device_function(function, [a.type for a in case], arguments, fastmath=fastmath)
        for case in cases
    ]
    for made in compiled:
        faults.check(function, arguments, made)

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def run(_typing: Any, args: Any, dimensions: Any, steps: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, given: Any) -> Any:
            operands = _Operands(context, builder, arguments, places, given)
            if len(cases) == 1:
                operands.loop(compiled[0], arguments)
                return context.get_dummy_value()
            with builder.if_else(operands.dense()) as (yes, no):
                with yes:
                    operands.loop(compiled[0], cases[0])
                with no:
                    operands.loop(compiled[1], cases[1])
            return context.get_dummy_value()

        return types.void(args, dimensions, steps), generate

    def inner(args, dimensions, steps, data):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202, ARG001
        run(args, dimensions, steps)

    pointers = [types.voidptr] * 4
    return numba.cfunc(types.void(*pointers), _nrt=False)(inner)


@final
class _Operands:
    """What NumPy hands to the inner loop: addresses, extents and strides."""

    def __init__(
        self,
        context: Any,
        builder: Any,
        arguments: Sequence[Argument],
        places: Places,
        given: Sequence[Any],
    ) -> None:
        args, dimensions, steps = (
            Memory(target(), context, builder, pointer) for pointer in given
        )
        self._memory, self._builder = args, builder
        count, first = len(arguments), len(arguments)
        self._size = dimensions.word(0)
        self._data = list(map(args.pointer, args.words(0, count)))
        self._outer = steps.words(0, count)
        self._shapes: list[list[Any]] = []
        self._strides: list[list[Any]] = []
        for argument, own in zip(arguments, places, strict=True):
            word = args.int64
            shape = [dimensions.word(1 + place) for place in own]
            strides = steps.words(first, len(own))
            alone = argument.ndim is not None and not own
            self._shapes.append([word(1)] if alone else shape)
            self._strides.append([word(argument.dtype.itemsize)] if alone else strides)
            first += len(own)
        self._sizes = [argument.dtype.itemsize for argument in arguments]

    def dense(self) -> Any:
        """Return whether all core arrays lie in C order without gaps."""
        b, tests = self._builder, []
        for size, shape, strides in zip(
            self._sizes, self._shapes, self._strides, strict=True
        ):
            step = self._memory.int64(size)
            for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
                tests.append(b.icmp_signed("==", stride, step))
                step = b.mul(step, extent)
        return reduce(b.and_, tests)

    def loop(self, compiled: Any, arguments: Sequence[Argument]) -> None:
        """Emit the loop with the arrays typed in one way."""
        memory, b = self._memory, self._builder
        with memory.target.cgutils.for_range(b, self._size, intp=memory.int64) as loop:
            values = []
            for k, argument in enumerate(arguments):
                data = memory.moved(self._data[k], b.mul(loop.index, self._outer[k]))
                if argument.ndim is None:
                    values.append(memory.loaded(argument, data))
                else:
                    shape, strides = self._shapes[k], self._strides[k]
                    values.append(memory.array(argument, data, shape, strides))
            call(memory, compiled, values)
