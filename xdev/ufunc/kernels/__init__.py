"""``@kernel``: a function of indices and arrays, in threads or on a grid of CUDA's."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from math import prod
from operator import getitem, index
from typing import TYPE_CHECKING, Any, final, overload

from xdev import native
from xdev._freed import refuse
from xdev.compile.grid import DIMENSIONS
from xdev.ufunc import calls, sources
from xdev.ufunc.foreign import is_cuda
from xdev.ufunc.kernels import arguments, cpu, cuda
from xdev.ufunc.kernels.functions import KernelFunction

if TYPE_CHECKING:
    from collections.abc import Callable

# What stands in a kernel's brackets: extents, and the shape of a block on CUDA.

Shape = tuple[int, int, int]
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
    shape: Shape
    block: Shape

    @property
    def size(self) -> int:
        """The number of points."""
        return prod(self.shape)

    @property
    def whole(self) -> bool:
        """Whether a launch has a thread for each point."""
        pairs = zip(self.shape[:-1], self.block[:-1], strict=True)
        return all(-(-n // m) <= MANY for n, m in pairs)

    @property
    def launch(self) -> tuple[Shape, Shape]:
        """The blocks, and the threads of each, along x, y and z."""
        *others, last = (
            -(-n // m) for n, m in zip(self.shape, self.block, strict=True)
        )
        blocks = *(min(count, MANY) for count in others), last
        z, y, x = blocks
        deep, high, wide = self.block
        return (x, y, z), (wide, high, deep)

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
        given, block, what = key, None, f"{name}[{_text(key)}]"
        if isinstance(key, tuple) and key and isinstance(key[0], tuple):
            if len(key) != 2:  # noqa: PLR2004 - extents and block
                message = f"{name}[…] takes extents and a block: {name}[(n,), 256]"
                raise ValueError(message)
            given, block = key
        extents = _integers(given, name, "extents")
        count = len(extents)
        if not 1 <= count <= DIMENSIONS or min(extents) < 0:
            raise ValueError(
                f"{what}: a kernel has one to three extents of at least 0; a block "
                f"goes beside a tuple of them, {name}[(n,), 256]"
            )
        threads = BLOCKS[count]
        if block is not None:
            threads = _integers(block, name, "a block")
        flaw = _flaw(extents, threads)
        if flaw:
            raise ValueError(what + flaw)
        return cls(count, _filled(extents), _filled(threads))


def _flaw(extents: tuple[int, ...], threads: tuple[int, ...]) -> str:
    """Return what is wrong with extents and a block, "" for nothing."""
    count, flaw = len(extents), ""
    if prod(extents) >= 2**63:
        flaw = " has too many points: at most 2**63 - 1"
    elif len(threads) != count or min(threads) < 1:
        flaw = (
            f": a block has as many axes as there are extents ({count}), each of at "
            "least one thread"
        )
    elif prod(threads) > THREADS or (count == DIMENSIONS and threads[0] > DEEP):
        flaw = (
            f": a block has at most {THREADS} threads, {DEEP} along the first of three "
            "axes"
        )
    elif -(-extents[-1] // threads[-1]) > WIDEST:
        flaw = (
            f" has more than {WIDEST:,} blocks along its last axis: pass a wider "
            "block, or more extents"
        )
    return flaw


def _integers(given: Any, name: str, what: str) -> tuple[int, ...]:
    each = given if isinstance(given, tuple) else (given,)
    try:
        return tuple(map(index, each))
    except TypeError:
        message = f"{name}[…]: {what} must be integers, not {_text(given)}"
        raise TypeError(message) from None


def _filled(values: tuple[int, ...]) -> Shape:
    first, second, third = (1,) * (DIMENSIONS - len(values)) + values
    return first, second, third


def _text(key: Any) -> str:
    return ", ".join(map(repr, key)) if isinstance(key, tuple) else repr(key)


MOST = 256  # extents that are known at a time


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
        return _rebuild, (*sources.parts(self, self.function), self._fastmath)

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
            launched = cuda.run(self._typed, extents, args)
            if launched is not None:
                bound.launches.learn(args, launched)
        elif any(map(calls.is_fake, args)):
            calls.on_fake(  # it is for tests
                lambda args, _: cpu.run(self._typed, extents, args, checked=True),
                self._name,
                args,
                None,
                {},
                self._typed.split(extents.dimensions, len(args)),
            )
        else:
            refuse(self._name, *args)
            cpu.run(self._typed, extents, args)


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
            if cpu.again(self._typed, self.extents, args):
                return
        self._kernel._run(self, args, named)  # noqa: SLF001 - its own

    def __repr__(self) -> str:
        return f"{self._kernel!r}[{self._key!r}]"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle by the kernel and what stood in the brackets."""
        return getitem, (self._kernel, self._key)


def _rebuild(function: Callable[..., Any], excerpt: Any, fastmath: bool) -> Kernel:
    found = sources.owner(function, excerpt)
    if isinstance(found, Kernel):
        return found
    return Kernel(KernelFunction(function, fastmath=fastmath))
