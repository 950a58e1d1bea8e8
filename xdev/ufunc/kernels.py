"""``@kernel``: a function of indices and arrays, in threads or on a grid of CUDA's."""

from __future__ import annotations

import functools
from contextlib import suppress
from operator import getitem
from typing import TYPE_CHECKING, Any, final, overload

from numpy import ndarray

from xdev import _optional, native
from xdev._plain_calls import BYTES
from xdev.memory.arrays import is_fake
from xdev.ufunc import calls, kernel_functions, sources
from xdev.ufunc.cuda_operands import Array, Number, handed
from xdev.ufunc.foreign import NUMBERS, is_cuda
from xdev.ufunc.grids import CUDA, HOST, Extents, HostRun, address_function
from xdev.ufunc.inputs import refuse
from xdev.ufunc.kernel_functions import KernelFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST = 256  # extents, and layouts on the CPU, that one kernel keeps at a time


@overload
def kernel(function: Callable[..., Any], /, *, fastmath: bool = ...) -> Kernel: ...
@overload
def kernel(*, fastmath: bool = ...) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(function: Any = None, /, *, fastmath: bool = False) -> Any:
    """Make a kernel of a function of indices and arrays; it runs where they live.

    ``k[n](x, out)`` calls ``function(i, x, out)`` for each ``i`` from 0 to ``n - 1``,
    all at once: in threads on the CPU, one thread each on CUDA, on the current stream.
    Two and three extents, ``k[h, w](…)``, give as many indices.

    Parameters
    ----------
    function : callable
        Plain Python: one to three indices (int64), then arrays and numbers. It reads
        and writes array elements, and returns nothing. Arrays may have any strides and
        be views. It may call :mod:`xdev.atomic`, ufuncs of ``@vectorize`` and plain
        functions. Floats written in it, and Python's floats among the arguments, have
        the result type of the floating arrays, as in NEP 50; ints are int64.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.

    Returns
    -------
    Kernel
        ``k[extents](*arguments)`` runs it; ``k[extents, block]``, with the extents as
        a tuple, also fixes the shape of CUDA's blocks.

    Raises
    ------
    TypeError
        It is no such function.

    Examples
    --------
    >>> import numpy as np
    >>> @kernel
    ... def add(i, x, y, out):
    ...     out[i] = x[i] + y[i]
    >>> x, out = np.arange(5), np.zeros(5, dtype="int64")
    >>> add[5](x, x, out)
    >>> out
    array([0, 2, 4, 6, 8])
    """
    if function is None:
        return functools.partial(kernel, fastmath=fastmath)
    return Kernel(sources.undecorated(function), bool(fastmath))


@final
class Kernel:
    """A function that runs for every point of a grid: ``k[extents](*arguments)``."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]
    __iter__ = None  # Python would ask for [0], [1], … and find no end

    def __init__(self, function: Callable[..., Any], fastmath: bool) -> None:
        self._typed = typed = KernelFunction(function, fastmath=fastmath)
        functools.update_wrapper(self, function)
        self.__qualname__ = self.__qualname__.removesuffix(sources.INSIDE)
        self.function, self._name, self._fastmath = function, typed.name, fastmath
        self.__doc__ = self.__doc__ or f"{typed.name}({', '.join(typed.names)})"
        # By kind too, since 3 == 3.0, and 1 == True.
        self._bound = functools.lru_cache(MOST, typed=True)(self._bind)

    def __getitem__(self, key: Any) -> Bound:
        """Return what runs it for extents: an int, or one to three in a tuple.

        With a block for CUDA, the extents are a tuple: ``k[(n,), 256]``.

        Raises
        ------
        TypeError, ValueError
            They are no such.
        """
        try:
            return self._bound(key, repr(key) if type(key) is tuple else "")
        except TypeError:  # it has no hash, as an array of no dimensions
            return self._bind(key)

    def _bind(self, key: Any, *_: Any) -> Bound:
        return Bound(self, key, Extents.read(key, self._name))

    def __call__(self, *_: Any, **__: Any) -> None:
        """Refuse a call without extents."""
        raise TypeError(
            f"{self._name} is a kernel: say for how many points it runs, "
            f"{self._name}[n](…)"
        )

    def __repr__(self) -> str:
        return f"<xdev kernel {self._name!r}>"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle by the Python function and the option."""
        return sources.pickled(self, Kernel, self.function, self._fastmath)

    def writes(self, indices: int, *args: Any) -> frozenset[str]:
        """Return the names of the arguments in host memory that it would write."""
        names = self._typed.split(indices, len(args))
        operands = [HOST.read(x, self._name) for x in args]
        typing = kernel_functions.types(operands, names, self._name)
        return self._typed.writes(indices, *typing)

    def _run(self, bound: Bound, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Run it where its arguments are."""
        function, extents = self._typed, bound.extents
        if named:
            names = ", ".join(function.names[extents.dimensions :])
            raise TypeError(
                f"{self._name} takes its arguments positionally, not "
                f"{', '.join(named)} by keyword: {self._name}[…]({names})"
            )
        if any(map(is_cuda, args)):
            launch, dtypes = run(function, extents, args, CUDA)
            array = _optional.cupy().ndarray
            if launch is not None and all(_is_exactly(x, array) for x in args):
                encoders = tuple(
                    Number.encoder(dtype) if value.kind == BYTES else None
                    for value, dtype in zip(launch.values, dtypes, strict=True)
                )
                plan = native.calls.LaunchPlan(launch, encoders=encoders)
                bound.launches.learn(args, plan)
        elif any(map(is_fake, args)):
            calls.on_fake(  # it is for tests
                lambda args, _: run(function, extents, args, HOST, checked=True),
                self._name,
                args,
                None,
                {},
                function.split(extents.dimensions, len(args)),
            )
        else:
            refuse(self._name, function.split(extents.dimensions, len(args)), args)
            loop, _ = run(function, extents, args, HOST)
            if loop is not None and all(_is_exactly(x, ndarray) for x in args):
                if len(bound.loops) >= MOST:
                    bound.loops.clear()
                bound.loops[_read(args)[0]] = loop


@final
class Bound:
    """A kernel and the extents that it runs for: ``k[key]``."""

    __slots__ = ("_kernel", "_key", "extents", "launches", "loops")

    def __init__(self, kernel: Kernel, key: Any, extents: Extents) -> None:
        self._kernel, self._key, self.extents = kernel, key, extents
        self.launches = native.calls.Launches()  # calls before, on CUDA
        self.loops: dict[Any, HostRun] = {}  # and on the CPU, by types and layouts

    def __call__(self, *args: Any, **named: Any) -> None:
        """Run for every point."""
        if not named:
            if self.launches(*args) is not NotImplemented:
                return
            key, values = _read(args)
            loop = self.loops.get(key)
            if loop is not None:
                with suppress(OverflowError):  # which the general way words
                    loop(values)
                    return
        self._kernel._run(self, args, named)  # noqa: SLF001 - its own

    def __repr__(self) -> str:
        return f"{self._kernel!r}[{self._key!r}]"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle by the kernel and what stood in the brackets."""
        return getitem, (self._kernel, self._key)


def _is_exactly(x: Any, array: type) -> bool:
    return type(x) is array or isinstance(x, NUMBERS)


def _read(args: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """Return all that a loop depends on, and the addresses and numbers.

    A freed array has a dtype of its own, which no call before had.
    """
    key: list[Any] = []
    values: list[Any] = []
    address = address_function()
    for x in args:
        if type(x) is ndarray:
            key += x.dtype, x.shape, x.strides, x.flags.num
            values.append(address(x))
        else:
            key.append(type(x))
            values.append(x)
    return tuple(key), values


def run(
    function: KernelFunction,
    extents: Extents,
    args: Sequence[Any],
    grids: Any,
    *,
    checked: bool = False,
) -> tuple[Any, list[Any]]:
    """Run for every point, on one kind of device.

    Accesses out of bounds are reported where ``checked``, or under ``XDEV_DEBUG=1``.
    """
    indices, name = extents.dimensions, function.name
    names = function.split(indices, len(args))
    operands = [
        grids.read(x, name, label) for x, label in zip(args, names, strict=True)
    ]
    arrays = [x for x in operands if isinstance(x, Array)]
    with grids.on_device(arrays, name) as place:
        narrow = extents.narrow(arrays)
        key = place, checked, narrow, *map(kernel_functions.key, operands)
        compile_ = functools.partial(grids.compiled, narrow=narrow)
        grid, machine, typing = function.plan(
            key, indices, operands, compile_, checked=checked
        )
        kinds = grid.arguments
        dtypes = [kind.dtype for kind in kinds]
        function.begin_writes(args, operands, names, typing)
        if not extents.size:
            return None, dtypes
        work = grids.run(machine, kinds, extents, operands, checked=grid.checked)
        with grids.ordered(arrays):
            report = work(handed(operands, dtypes, name, names))
    if report and report[0]:
        function.refuse_reported(report, indices)
    return None if grid.checked else work, dtypes
