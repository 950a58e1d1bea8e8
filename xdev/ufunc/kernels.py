"""``@kernel``: a function of indices and arrays, in threads or on a grid of CUDA's."""

from __future__ import annotations

import functools
from array import array
from dataclasses import dataclass
from math import prod
from operator import attrgetter, getitem, index
from typing import TYPE_CHECKING, Any, final, overload

from numpy import ndarray

from xdev import _optional, native
from xdev._freed import refuse
from xdev._plain_calls import BYTES, LIMIT
from xdev.compile import grid_code, launch, threads
from xdev.compile.grid import DIMENSIONS, HEADER, LENGTH, WORD, packer
from xdev.compile.launch import Launch, Value
from xdev.ufunc import calls, cuda, cuda_operands, kernel_functions, sources
from xdev.ufunc.cuda_operands import Array, Number, handed, read
from xdev.ufunc.foreign import NUMBERS, is_cuda
from xdev.ufunc.inputs import too_large
from xdev.ufunc.kernel_functions import KernelFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.compile.grid import Argument, Grid
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
        return sources.pickled(self, _remake, self.function, self._fastmath)

    def writes(self, indices: int, *args: Any) -> frozenset[str]:
        """Return the names of the arguments in host memory that it would write.

        Raises
        ------
        TypeError, ValueError
            The arguments are wrong.
        """
        names = self._typed.split(indices, len(args))
        operands = [kernel_functions.host(x, self._name) for x in args]
        typing = kernel_functions.types(operands, names, self._name)
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
            launched = run_on_cuda(self._typed, extents, args)
            if launched is not None:
                bound.launches.learn(args, launched)
        elif any(map(calls.is_fake, args)):
            calls.on_fake(  # it is for tests
                lambda args, _: run_on_cpu(self._typed, extents, args, checked=True),
                self._name,
                args,
                None,
                {},
                self._typed.split(extents.dimensions, len(args)),
            )
        else:
            refuse(self._name, *args)
            run_on_cpu(self._typed, extents, args)


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
            if repeat_on_cpu(self._typed, self.extents, args):
                return
        self._kernel._run(self, args, named)  # noqa: SLF001 - its own

    def __repr__(self) -> str:
        return f"{self._kernel!r}[{self._key!r}]"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle by the kernel and what stood in the brackets."""
        return getitem, (self._kernel, self._key)


def _remake(function: Callable[..., Any], fastmath: bool) -> Kernel:
    return Kernel(KernelFunction(function, fastmath=fastmath))


# What stands in a kernel's brackets: extents, and the shape of a block on CUDA.

Triple = tuple[int, int, int]
BLOCKS = {1: (256,), 2: (8, 32), 3: (2, 4, 32)}  # where none is given
THREADS = 1024  # CUDA's limit for a block,
DEEP = 64  # for its first of three axes,
WIDEST = 2**31 - 1  # for blocks along the last axis,
MANY = 65535  # and along the others


@final
@dataclass(frozen=True, slots=True)
class Extents:
    """The points that a kernel runs for, and how they are dealt out on CUDA.

    Parameters
    ----------
    dimensions : int
        How many indices there are.
    shape : (int, int, int)
        How many points there are along each; 1 in front where there are fewer.
    block : (int, int, int)
        The threads of a block, likewise.
    """

    dimensions: int
    shape: Triple
    block: Triple

    @property
    def size(self) -> int:
        """The number of points."""
        return prod(self.shape)

    @property
    def launch(self) -> tuple[Triple, Triple]:
        """The blocks, and the threads of each, along x, y and z."""
        z, y, x = (-(-n // m) for n, m in zip(self.shape, self.block, strict=True))
        deep, high, wide = self.block
        return (x, min(y, MANY), min(z, MANY)), (wide, high, deep)

    def narrow(self, arrays: Sequence[Array]) -> bool:
        """Say whether a kernel for 32 bits and a thread for each point will do.

        Extents, shapes and strides fit into 32 bits with their sign.
        """
        numbers = [*self.shape]
        for x in arrays:
            numbers += (*x.shape, *x.strides)
        pairs = zip(self.shape[:-1], self.block[:-1], strict=True)
        whole = all(-(-n // m) <= MANY for n, m in pairs)
        return whole and max(numbers) < 2**31 and min(numbers) >= -(2**31)

    @classmethod
    def read(cls, key: Any, name: str) -> Extents:
        """Return what ``kernel[key]`` means.

        Raises
        ------
        TypeError
            It holds something that is no integer.
        ValueError
            There are more than three extents, a negative one, or too many points; or
            the block is none that CUDA has.
        """
        points, block, flaw = key, None, ""
        if isinstance(key, tuple) and key and isinstance(key[0], tuple):
            points, *blocks = key
            if len(blocks) != 1:
                message = f"{name}[…] takes extents and a block: {name}[(n,), 256]"
                raise ValueError(message)
            (block,) = blocks
        extents = _integers(points, name)
        count = len(extents)
        threads = BLOCKS.get(count, ()) if block is None else _integers(block, name)
        if not 1 <= count <= DIMENSIONS or min(extents) < 0:
            flaw = (
                "a kernel has one to three extents of at least 0; a block goes beside "
                f"a tuple of them, {name}[(n,), 256]"
            )
        elif prod(extents) >= 2**63:
            flaw = "there are too many points: at most 2**63 - 1"
        elif (
            len(threads) != count
            or min(threads) < 1
            or prod(threads) > THREADS
            or (count == DIMENSIONS and threads[0] > DEEP)
        ):
            flaw = (
                f"a block has as many axes as there are extents ({count}), and 1 to "
                f"{THREADS} threads, {DEEP} along the first of three axes"
            )
        elif -(-extents[-1] // threads[-1]) > WIDEST:
            flaw = (
                f"there are more than {WIDEST:,} blocks along the last axis: pass a "
                "wider block, or more extents"
            )
        if flaw:
            shown = ", ".join(map(repr, key)) if isinstance(key, tuple) else repr(key)
            raise ValueError(f"{name}[{shown}]: {flaw}")
        return cls(count, _filled(extents), _filled(threads))


def _integers(values: Any, name: str) -> tuple[int, ...]:
    try:
        return tuple(map(index, values if isinstance(values, tuple) else (values,)))
    except TypeError:
        message = f"{name}[…]: extents and blocks must be integers, not {values!r}"
        raise TypeError(message) from None


def _filled(values: tuple[int, ...]) -> Triple:
    first, second, third = (1,) * (DIMENSIONS - len(values)) + values
    return first, second, third


# On the CPU: a compiled loop over points, shared by threads.


def repeat_on_cpu(
    function: KernelFunction, extents: Extents, args: Sequence[Any]
) -> bool:
    """Run for every point, if there was such a call before; say whether it was done."""
    key, values = _read(args)
    call = function.calls.get((extents.dimensions, *key))
    return call is not None and _compute(function, extents, call, values)


def run_on_cpu(
    function: KernelFunction,
    extents: Extents,
    args: Sequence[Any],
    *,
    checked: bool = False,
) -> None:
    """Run for every point on NumPy arrays and numbers.

    Accesses out of bounds are reported where ``checked``, or under ``XDEV_DEBUG=1``.

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
    operands = [kernel_functions.host(x, function.name) for x in args]
    key = checked, *map(kernel_functions.key, operands)
    plan = function.plan(key, indices, operands, grid_code.loop, checked=checked)
    dtypes = [kind.dtype for kind in plan.kinds]
    owners = [x.owner for x in operands]
    arrays = [x for x in operands if isinstance(x, Array)]
    numbers = [
        (i, dtypes[i].type) for i, x in enumerate(operands) if isinstance(x, Number)
    ]
    call = plan, numbers, [n for x in arrays for n in (*x.shape, *x.strides)]
    function.begin_writes(args, operands, names, plan)
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


# On CUDA arrays: one launch on CuPy's current stream.


def run_on_cuda(
    function: KernelFunction, extents: Extents, args: Sequence[Any]
) -> native.calls.LaunchPlan | None:
    """Run for every point on CUDA arrays of one device, of any library, and numbers.

    Returns
    -------
    LaunchPlan or None
        What another such call would launch. None where nothing ran, accesses are
        checked, or arrays are of other libraries.

    Raises
    ------
    TypeError, ValueError, OverflowError
        The arguments are wrong, or the function cannot be compiled for them.
    DeviceMismatchError
        Arrays of two devices. Whatever is raised, nothing was written.
    IndexError
        An access was out of bounds; only under ``XDEV_DEBUG=1``, where a call waits
        until its work is done.
    """
    indices, name = extents.dimensions, function.name
    names = function.split(indices, len(args))
    operands = [read(x, name, label) for x, label in zip(args, names, strict=True)]
    arrays = [x for x in operands if isinstance(x, Array)]
    with cuda.on_device(arrays, name) as place:
        narrow = extents.narrow(arrays)
        key = "cuda", place, narrow, *map(kernel_functions.key, operands)
        compile_ = functools.partial(loaded, narrow=narrow)
        plan = function.plan(key, indices, operands, compile_)
        dtypes = [kind.dtype for kind in plan.kinds]
        values = handed(operands, dtypes, name, names)
        function.begin_writes(args, operands, names, plan)
        if not extents.size:
            return None
        report = _optional.cupy().zeros(LENGTH, "q") if plan.checked else None
        address = 0 if report is None else report.data.ptr
        work = launch_of(plan.machine, plan.kinds, extents, operands, address)
        with cuda_operands.ordered(arrays):
            work(values)
        if report is not None:
            words = report.tolist()
            if words[0]:
                function.refuse_reported(words, indices)
            return None
        array = _optional.cupy().ndarray
        if not all(type(x) is array or isinstance(x, NUMBERS) for x in args):
            return None
        encoders = tuple(
            Number.encoder(dtype) if value.kind == BYTES else None
            for value, dtype in zip(work.values, dtypes, strict=True)
        )
        return native.calls.LaunchPlan(work, encoders=encoders)


def loaded(grid: Grid, *, narrow: bool) -> Any:
    """Return a function's kernel on the current device.

    Raises
    ------
    TypeError
        It cannot be compiled, or CUDA hands over no memory of that size.
    """
    cuda.require()
    if grid.words * WORD > LIMIT:
        raise TypeError(
            f"{grid.function.__name__} has too many arguments for CUDA: their "
            f"addresses, shapes and strides take {grid.words * WORD} bytes of at "
            f"most {LIMIT}"
        )
    here = launch.capability(_optional.cupy().cuda.runtime.getDevice())
    return launch.Kernel(*grid_code.cubin(grid, here, narrow=narrow))


def launch_of(
    kernel: Any,
    kinds: tuple[Argument, ...],
    extents: Extents,
    operands: Sequence[Array | Number],
    report: int = 0,
) -> Launch:
    """Return the launch over a grid: all of it but addresses and numbers."""
    values = tuple(
        Value() if isinstance(x, Array) else Value.number(x.value, kind.dtype)
        for x, kind in zip(operands, kinds, strict=True)
    )
    slots = (0 if isinstance(x, Array) else b"" for x in operands)
    arrays = (x for x in operands if isinstance(x, Array))
    layouts = [number for x in arrays for number in (*x.shape, *x.strides)]
    memory = packer(kinds)(*extents.shape, report, *slots, *layouts)
    return Launch(kernel, *extents.launch, memory, values, first=HEADER * WORD)
