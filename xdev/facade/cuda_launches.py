"""Launches that make CUDA arrays: each is planned once for a layout, and kept.

The compiled tier follows a plan; what a plan is of are kernels of ``moves.cu``.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from math import inf, prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xdev import _optional, native
from xdev._plain_calls import SLOT
from xdev.compile import cubins, launch
from xdev.compile.cubins import cpp_name
from xdev.compile.launch import Value
from xdev.facade import elementwise
from xdev.facade.backends import FLOAT64, as_shape, ends_of
from xdev.facade.dispatch import planned
from xdev.memory.arrays import array_maker
from xdev.ufunc import cuda

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.facade.backends import Function

Shape = tuple[int, ...]
THREADS, ITEMS = 256, 4  # of a block; elements that each moves
SIDE, SMALL = 32, 4  # elements along a tile, twice as many of so few bytes
PLANS = 512  # kernels and launches that are kept
WORDS = {
    1: "unsigned char",
    2: "unsigned short",
    4: "unsigned int",
    8: "uint2",
    16: "uint4",
}
WORD = 16  # bytes of the widest
FAR = 2**31  # elements that 32 bits do not count
LARGE = 2**20  # bytes of a result
NUMBERS = (int, float)


def assign(out: Any, x: Any, casting: str = "same_kind") -> Any:
    """Copy elements, or a number of NumPy's, into an array, and return it.

    A truth value becomes a truth value alone.
    """
    function: Any = elementwise.positive
    operands: tuple[Any, ...] = (x,)
    if out.dtype == np.bool_:
        function, operands = elementwise.logical_and, (x, np.True_)
    made = function.launches(*operands, out)
    if made is NotImplemented:
        function._cuda(operands, out, casting=casting)  # noqa: SLF001 - of the engine
    return out


def new(shape: Shape, dtype: Any) -> Any:
    """Return a new CuPy array, not filled."""
    return array_maker()(shape, dtype)


class Program(NamedTuple):
    """A kernel of ``moves.cu``: its C++ name, threads of a block, elements of each.

    ``slots`` is of how many arrays, and numbers, its parameter has the values;
    ``numbers`` how it takes the first ones, which are no arrays.
    """

    entry: str
    threads: int = THREADS
    items: int = ITEMS
    slots: int = 5
    template: str = "moves"
    numbers: tuple[launch.Value, ...] = ()

    def macros(self) -> cubins.Macros:
        """Return the template's macros."""
        return [("XDEV_BLOCK", str(self.threads)), ("XDEV_ITEMS", str(self.items))]


Operands = tuple[Any, ...]
#: Of a launch that makes a new array: it, and the result's data type and shape.
Move = tuple[launch.Launch, Any, Shape]


@lru_cache(maxsize=PLANS)
def _kernel(program: Program, capability: tuple[int, int]) -> launch.Kernel:
    def make() -> tuple[bytes, str]:
        return cubins.expressed(program, "", capability, [], fastmath=False)

    parts = program.entry, program.macros(), capability
    return launch.Kernel(*cubins.load_or_compile("", parts, "moves", make))


@lru_cache(maxsize=PLANS)
def _launch(
    program: Program, blocks: int, count: int, sizes: tuple[int, ...], device: int
) -> launch.Launch:
    kernel = _kernel(program, launch.capability(device))
    parameter = bytes(program.slots * SLOT) + struct.pack(f"={len(sizes)}q", *sizes)
    parameter += bytes(-len(parameter) % SLOT)
    slots = *program.numbers, *(launch.Value(),) * (count - len(program.numbers))
    return launch.Launch(kernel, blocks, program.threads, parameter, slots)


def run_of(program: Program, blocks: int, count: int, *sizes: int) -> launch.Launch:
    """Return the launch of a kernel on so many contiguous arrays and numbers."""
    device = _optional.cupy().cuda.runtime.getDevice()
    return _launch(program, blocks, count, sizes, device)


def move(program: Program, dtype: Any, shape: Shape, *sizes: int) -> Move:
    """Plan an array that a kernel makes, of whatever its slots are of."""
    count = prod(shape)
    begin = run_of(program, blocks_of(count), program.slots, *sizes, count)
    return begin, dtype, shape


def run(program: Program, blocks: int, arrays: list[Any], *sizes: int) -> None:
    """Launch a kernel on contiguous arrays."""
    run_of(program, blocks, len(arrays), *sizes)([x.data.ptr for x in arrays])


def launched(
    plan: Callable[..., Move | None], operands: Operands, key: tuple[Any, ...]
) -> Any:
    """Launch what is planned for arrays of such layouts and numbers of such types.

    Of arrays that are not contiguous it takes copies. The key is a name of the plan's
    and its options; equal ones are of one type. NotImplemented: nothing is planned.
    """
    launches = planned.get(key)
    if launches is not None:
        out = launches(*operands)
        if out is not NotImplemented:
            return out
    move = plan(operands, *key[1:])
    if move is None:
        return NotImplemented
    begin, dtype, shape = move
    operands = tuple(x if type(x) in NUMBERS else straight(x) for x in operands)
    launches = cuda.remember(planned, key, native.calls.Launches())
    launches.learn(operands, native.calls.LaunchPlan(begin, dtype, shape))
    out = new(shape, dtype)
    begin([x if type(x) in NUMBERS else x.data.ptr for x in (*operands, out)])
    return out


def straight(x: Any) -> Any:
    """Return the array, or a copy in C order whose elements CUDA can read as words.

    Complex numbers may begin at any real one, where CuPy's kernels fail, too.
    """
    if x._c_contiguous and not x.data.ptr % x.itemsize:  # noqa: SLF001
        return x
    if x.nbytes >= LARGE:
        order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])
        base, places = x.transpose(order), map(order.index, range(x.ndim))
        if base._c_contiguous:  # noqa: SLF001
            out = launched(_turned, (base,), ("turned", tuple(places)))
            if out is not NotImplemented:
                return out
    return assign(new(x.shape, x.dtype), x)


def blocks_of(count: int) -> int:
    """Return how many blocks move so many elements."""
    return -(-count // (THREADS * ITEMS))


INT64 = np.dtype(np.int64)
#: Of data types, what launches convert to them as NumPy does: types of numbers, and
#: bounds, beyond which NumPy refuses or warns, or 64 bits end.
SPANS: dict[Any, tuple[set[type], float, float]] = {
    x: ({int}, ends_of(x)[0], min(ends_of(x)[1], 2**63 - 1))
    for x in map(np.dtype, "?bhilBHIL")
}
SPANS |= {
    np.dtype(char): ({int, float}, -most, most)
    for char in "efdFD"
    for most in (float(np.finfo(char).max),)
}
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


def _turned(arrays: Operands, order: tuple[int, ...]) -> Move | None:
    """Plan a copy whose axes are a contiguous array's in another order.

    Of matrices that change rows for columns; other orders leave lines as they are.
    """
    (x,) = arrays
    axes = [axis for axis, size in enumerate(x.shape) if size > 1]
    groups: list[list[int]] = []  # of axes that stay beside each other
    for place in map(axes.index, filter(axes.__contains__, order)):
        if groups and place == groups[-1][-1] + 1:
            groups[-1].append(place)
        else:
            groups.append([place])
    batch, *sizes = (prod(x.shape[axes[k]] for k in group) for group in ([], *groups))
    if len(sizes) > 2 and not groups[0][0]:  # noqa: PLR2004 - besides rows and columns
        batch, *sizes = sizes
    word = WORDS.get(x.itemsize)
    if len(sizes) != 2 or word is None:  # noqa: PLR2004
        return None
    columns, rows = sizes
    side = SIDE if x.itemsize > SMALL else 2 * SIDE
    down, across = -(-rows // side), -(-columns // side)
    if batch * down * across >= FAR:
        return None
    program = Program(f"xdev::turn<{word}>", slots=2)
    begin = run_of(program, batch * down * across, 2, rows, columns, down, across)
    return begin, x.dtype, tuple(x.shape[axis] for axis in order)


def quick(function: Function, own: Function) -> Function:
    """Return a function of large arrays; ``own`` is CuPy's, for all others."""

    def serve(*args: Any, **options: Any) -> Any:
        made = function(*args, **options)
        return own(*args, **options) if made is NotImplemented else made

    return serve
