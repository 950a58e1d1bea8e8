"""``@kernel``: a function of indices and arrays, in threads or on a grid of CUDA's."""

from __future__ import annotations

import functools
from array import array
from operator import attrgetter, getitem
from typing import TYPE_CHECKING, Any, final, overload

from numpy import ndarray

from xdev import native
from xdev._freed import refuse
from xdev.compile import threads
from xdev.compile.grid import LENGTH, WORD, cpu as compiler
from xdev.ufunc import calls, cuda_grids, kernel_arguments as arguments, sources
from xdev.ufunc.cuda_operands import Array, Number
from xdev.ufunc.foreign import NUMBERS, is_cuda
from xdev.ufunc.inputs import too_large
from xdev.ufunc.kernel_arguments import Extents
from xdev.ufunc.kernel_functions import KernelFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.ufunc.kernel_functions import Call

MOST = 256  # extents, and calls on the CPU, that one kernel keeps at a time


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
    plain = function.function if isinstance(function, Kernel) else function
    plain = getattr(plain, "py_func", plain)  # of a function that Numba compiled
    return Kernel(KernelFunction(plain, fastmath=bool(fastmath)))


@final
class Kernel:
    """A function that runs for every point of a grid: ``k[extents](*arguments)``.

    Parameters
    ----------
    typed : KernelFunction
        The function.
    """

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]

    def __init__(self, typed: KernelFunction) -> None:
        functools.update_wrapper(self, typed.function)
        self.function = typed.function
        self.__qualname__ = self.__qualname__.removesuffix(sources.INSIDE)
        self._typed = typed
        self._name, self._fastmath = typed.name, typed.fastmath
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
            if type(key) is not tuple:
                return self._bound(key)
            kinds = tuple(map(type, key))
            return self._bound(key, kinds, repr(key) if tuple in kinds else "")
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
        return sources.pickled(self, _remake, self.function, self._fastmath)

    def writes(self, indices: int, *args: Any) -> frozenset[str]:
        """Return the names of the arguments in host memory that it would write.

        Raises
        ------
        TypeError, ValueError
            The arguments are wrong.
        """
        names = self._typed.split(indices, len(args))
        operands = [arguments.host(x, self._name) for x in args]
        typing = arguments.types(operands, names, self._name)
        return self._typed.writes(indices, *typing)

    def _run(self, bound: Bound, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Run it where its arguments are."""
        extents = bound.extents
        if named:
            names = ", ".join(self._typed.names[extents.dimensions :])
            raise TypeError(
                f"{self._name} takes its arguments positionally, not "
                f"{', '.join(named)} by keyword: {self._name}[…]({names})"
            )
        if any(map(is_cuda, args)):
            launched = cuda_grids.run(self._typed, extents, args)
            if launched is not None:
                bound.launches.learn(args, launched)
        elif any(map(calls.is_fake, args)):
            calls.on_fake(  # it is for tests
                lambda args, _: run(self._typed, extents, args, checked=True),
                self._name,
                args,
                None,
                {},
                self._typed.split(extents.dimensions, len(args)),
            )
        else:
            refuse(self._name, *args)
            run(self._typed, extents, args)


@final
class Bound:
    """A kernel and the extents that it runs for: ``k[extents]``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    key : object
        What stood in the brackets.
    extents : Extents
        What that means.
    """

    __slots__ = ("_kernel", "_key", "_typed", "extents", "launches")

    def __init__(self, kernel: Kernel, key: Any, extents: Extents) -> None:
        self._kernel, self._key, self.extents = kernel, key, extents
        self._typed = kernel._typed  # noqa: SLF001 - its own
        self.launches = native.calls.Launches()  # calls before, on CUDA

    def __call__(self, *args: Any, **named: Any) -> None:
        """Run for every point."""
        if not named:
            if self.launches(*args) is not NotImplemented:
                return
            if again(self._typed, self.extents, args):
                return
        self._kernel._run(self, args, named)  # noqa: SLF001 - its own

    def __repr__(self) -> str:
        return f"{self._kernel!r}[{self._key!r}]"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle by the kernel and what stood in the brackets."""
        return getitem, (self._kernel, self._key)


def _remake(function: Callable[..., Any], fastmath: bool) -> Kernel:
    return Kernel(KernelFunction(function, fastmath=fastmath))


# On the CPU: a compiled loop over points, shared by threads.


def again(function: KernelFunction, extents: Extents, args: Sequence[Any]) -> bool:
    """Run for every point, if there was such a call before; say whether it was done.

    Parameters are those of :func:`run`, of any library.
    """
    key, values = _read(args)
    call = function.calls.get((extents.dimensions, *key))
    return call is not None and _compute(function, extents, call, values)


def run(
    function: KernelFunction,
    extents: Extents,
    args: Sequence[Any],
    *,
    checked: bool = False,
) -> None:
    """Run for every point.

    Parameters
    ----------
    function : KernelFunction
        The kernel's.
    extents : Extents
        The points.
    args : sequence
        NumPy arrays and numbers.
    checked : bool
        Whether accesses out of bounds are reported, whatever ``XDEV_DEBUG`` is.

    Raises
    ------
    TypeError, ValueError, OverflowError
        The arguments are wrong, or the function cannot be compiled for them: nothing
        was written.
    IndexError
        An access was out of bounds; where that is checked.
    """
    indices = extents.dimensions
    names = function.split(indices, len(args))
    operands = [arguments.host(x, function.name) for x in args]
    key = checked, *map(arguments.key, operands)
    plan = function.plan(key, indices, operands, compiler.loop, checked=checked)
    dtypes = [kind.dtype for kind in plan.kinds]
    owners = [x.owner for x in operands]
    arrays = [x for x in operands if isinstance(x, Array)]
    numbers = [
        (i, dtypes[i].type) for i, x in enumerate(operands) if isinstance(x, Number)
    ]
    call = plan, numbers, [n for x in arrays for n in (*x.shape, *x.strides)]
    arguments.begin_writes(args, operands, names, function.name, plan.writes)
    values = [x.address if isinstance(x, Array) else x.value for x in operands]
    if not _compute(function, extents, call, values):
        raise too_large(owners, dtypes, function.name, names)
    if not checked and all(type(x) is ndarray or isinstance(x, NUMBERS) for x in args):
        if len(function.calls) >= MOST:
            function.calls.clear()
        kinds, _ = _read(args)
        function.calls[indices, *kinds] = call


def _compute(
    function: KernelFunction, extents: Extents, call: Call, values: list[Any]
) -> bool:
    """Run a plan of addresses and numbers; say whether these fit."""
    plan, numbers, layouts = call
    try:
        for i, kind in numbers:
            values[i] = kind(values[i]).tobytes()
    except OverflowError:
        return False
    report = array("q", bytes(WORD * LENGTH))
    address, _ = report.buffer_info()
    memory = plan.pack(*extents.shape, address, *values, *layouts)
    code = plan.machine.address
    plan.each = threads.compute(plan.machine, code, memory, extents.size, plan.each)
    if report[0]:
        function.refuse_reported(report, extents.dimensions)
    return True


@functools.cache
def _address() -> Callable[[Any], int]:
    """Return what tells where an array begins; the array's own attributes take 1 µs."""
    compiled = native.module("threads")
    return attrgetter("ctypes.data") if compiled is None else compiled.address


def _read(args: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """Return all that a loop depends on, and the addresses and numbers.

    A freed array has a dtype of its own, which no call before had.
    """
    key: list[Any] = []
    values: list[Any] = []
    address = _address()
    for x in args:
        if type(x) is ndarray:
            key += x.dtype, x.shape, x.strides, x.flags.num
            values.append(address(x))
        else:
            key.append(type(x))
            values.append(x)
    return tuple(key), values
