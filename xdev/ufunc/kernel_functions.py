"""The function of a kernel: checked, and typed for the arguments of a call."""

from __future__ import annotations

import ast
import inspect
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np

from xdev import _config
from xdev._forks import module_lock
from xdev.compile.grid import Argument, Grid, packer
from xdev.compile.grid_code import writes
from xdev.errors import type_name, users_level
from xdev.ufunc import foreign, literals, sources
from xdev.ufunc.argument_errors import PAGE
from xdev.ufunc.cuda_layout import contiguous
from xdev.ufunc.cuda_operands import Array, Number
from xdev.ufunc.foreign import NUMBERS
from xdev.ufunc.inputs import (
    is_dask,
    positional,
    refuse_arrays,
    refuse_deferred_or_raising,
)
from xdev.ufunc.kinds import Rules, real
from xdev.ufunc.rewriting import Checks, Ranges
from xdev.ufunc.scalar import within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from xdev.ufunc.sources import FunctionScope


@final
@dataclass(slots=True)
class KernelPlan:
    """What was compiled for arguments of some types.

    Parameters
    ----------
    kinds : tuple of Argument
        The types.
    pack : callable
        Returns a kernel's memory, of the arguments.
    machine : object
        A loop of the CPU's, or a kernel of CUDA's.
    writes : callable
        Returns the names of the arrays that are written.
    checked : bool
        Whether it reports accesses out of bounds.
    each : float
        Seconds that a point took the last time that threads shared them, 0 before; a
        guess for the next.
    """

    kinds: tuple[Argument, ...]
    pack: Callable[..., bytes]
    machine: Any
    writes: Callable[[], frozenset[str]]
    checked: bool
    each: float = 0.0


#: A plan, the places and types of its numbers, and its arrays' shapes and strides.
Call = tuple[KernelPlan, list[tuple[int, Any]], list[int]]
_lock = module_lock()  # guards the making of plans: each is made once
# How a call says for how many points it runs, by the number of indices.
EXTENTS = {1: "n", 2: "h, w", 3: "d, h, w"}


@final
class KernelFunction:
    """A Python function of indices and arguments.

    Parameters
    ----------
    function : callable
        Plain Python: what ``@kernel`` decorates.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.

    Raises
    ------
    TypeError
        It is no plain function, raises, or reads an array from outside.
    """

    def __init__(self, function: Callable[..., Any], *, fastmath: bool) -> None:
        self.names = check_plain(function, "kernel", "def f(i, x, out)")
        self.function, self.fastmath = function, fastmath
        self.name: str = function.__name__
        self._plans: dict[Any, KernelPlan] = {}
        #: Calls of NumPy's arrays that were made before, by types and layouts.
        self.calls: dict[Any, Call] = {}
        self._writes: dict[Any, frozenset[str]] = {}

    def plan(
        self,
        key: tuple[Any, ...],
        indices: int,
        operands: Sequence[Array | Number],
        compile_: Callable[[Grid], Any],
        *,
        checked: bool = False,
    ) -> KernelPlan:
        """Return what runs for arguments, compiled once.

        ``key`` is all that it depends on beside the number of indices; ``compile_``
        returns the machine code of what :meth:`typed` returns.

        Raises
        ------
        TypeError, ValueError
            The arguments are wrong, or it cannot be compiled for them.
        """
        key = indices, *key
        plan = self._plans.get(key)
        if plan is None:
            with _lock:
                plan = self._plans.get(key)
                if plan is None:
                    names = self.names[indices:]
                    typing = indices, *types(operands, names, self.name)
                    grid = self.typed(*typing, checked=checked)
                    with self.refusing_writes(*typing):
                        machine = compile_(grid)
                    kinds, writes = grid.arguments, partial(self.writes, *typing)
                    plan = KernelPlan(
                        kinds, packer(kinds), machine, writes, grid.checked
                    )
                    self._plans[key] = plan
        return plan

    def writes(
        self, indices: int, arguments: tuple[Argument, ...], working: np.dtype[Any]
    ) -> frozenset[str]:
        """Return the names of the arrays that it writes.

        Parameters are those of :meth:`typed`.

        Raises
        ------
        TypeError
            It cannot be compiled for them on the CPU, whatever may be written.
        """
        key = indices, arguments, working
        if key not in self._writes:
            able = tuple(each._replace(writable=True) for each in arguments)
            places = writes(self.typed(indices, able, working))
            names = (self.names[indices + k] for k in places)
            self._writes[key] = self._flat.union(names)
        return self._writes[key]

    def begin_writes(
        self,
        args: Sequence[Any],
        operands: Sequence[Array | Number],
        names: Sequence[str],
        plan: KernelPlan,
    ) -> None:
        """Tell the libraries of arrays that they are about to be written.

        Those that keep arrays for later, as autograd does, are told of no others.

        Raises
        ------
        TypeError
            A library forbids it.
        """
        if not foreign.any_of(args):
            return
        try:
            written: Iterable[str] = plan.writes()
        except TypeError:  # what only CUDA compiles: any may be written
            written = names
        for x, operand, label in zip(args, operands, names, strict=True):
            adapter = foreign.of(type(x))
            writable = isinstance(operand, Array) and operand.writable
            if adapter and writable and label in written:
                adapter.begin_write(x, self.name, label)

    @cached_property
    def _flat(self) -> frozenset[str]:
        """The names that stand in ``x.flat[…] =``, which compilers always take."""
        source = sources.find(self.function.__code__)
        names = []
        for node in ast.walk(source.node) if source else ():
            match node:
                case ast.Subscript(
                    ast.Attribute(ast.Name(name), "flat"), ctx=ast.Store()
                ):
                    names.append(name)
        return frozenset(names)

    @contextmanager
    def refusing_writes(
        self, indices: int, arguments: tuple[Argument, ...], working: np.dtype[Any]
    ) -> Iterator[None]:
        """Refuse writes into read-only arrays in clear words.

        Parameters are those of :meth:`typed`. A compiler refuses them, but for those
        through ``x.flat``.

        Raises
        ------
        ValueError
            It writes, and an argument is read-only; the text has the line where a
            compiler found it.
        TypeError
            It cannot be compiled for arrays that may be written either.
        """
        frozen = [
            label
            for label, each in zip(self.names[indices:], arguments, strict=True)
            if each.ndim is not None and not each.writable
        ]
        line, cause = "", None
        try:
            yield
            written = self._flat
        except TypeError as error:
            if not frozen:
                raise
            written = self.writes(indices, arguments, working)
            if written.isdisjoint(frozen):
                raise
            line, cause = f"\n{str(error).splitlines()[-1]}", error
        if refused := [f"{x} is read-only" for x in frozen if x in written]:
            raise ValueError(
                f"{self.name} writes into an array that may not be written: "
                f"{', '.join(refused)} (as JAX's arrays always are): "
                f"pass a copy that may be written{line}"
            ) from cause

    def refuse_reported(self, report: Sequence[int], indices: int) -> NoReturn:
        """Raise the error that a kernel of so many indices has reported."""
        number, axis, index, length = report[1:5]
        point = ", ".join(map(str, report[-indices:]))
        raise IndexError(
            f"{self.name}: {self.names[indices + number]} has {length} elements along "
            f"axis {axis}, and the index there is {index}, at point ({point})"
        )

    def split(self, indices: int, count: int) -> tuple[str, ...]:
        """Return the names of the arguments beside so many indices.

        Raises
        ------
        TypeError
            There are more or fewer arguments.
        """
        names = self.names[indices:]
        if count != len(names) or len(self.names) <= indices:
            message = (
                f"{self.name}({', '.join(self.names)}) on a {indices}-d grid takes the "
                f"arguments {', '.join(names)}, not {count}: each extent in the "
                "brackets gives an index, by which its parameters begin"
            )
            extents = EXTENTS.get(len(self.names) - count)
            if extents:
                message += (
                    f", so for {count} give it the extents {self.name}[{extents}]"
                )
            raise TypeError(message)
        return names

    def typed(
        self,
        indices: int,
        arguments: tuple[Argument, ...],
        working: np.dtype[Any],
        *,
        checked: bool = False,
    ) -> Grid:
        """Return what compilers take.

        Parameters
        ----------
        indices : int
            How many of the parameters are indices.
        arguments : tuple of Argument
            The types of the others.
        working : numpy.dtype
            What floats in the function are.
        checked : bool
            Whether bounds are checked, which they are under ``XDEV_DEBUG=1``.

        Raises
        ------
        TypeError
            It reads an array from outside.
        """
        kinds = dict(zip(self.names[indices:], arguments, strict=True))
        check = checked or _config.debug()
        arrays = {
            name: k
            for k, (name, kind) in enumerate(kinds.items())
            if kind.ndim is not None
        }

        def also(tree: ast.FunctionDef, scope: FunctionScope) -> None:
            rewriter = Checks(tree, scope, arrays) if check else Ranges(scope)
            rewriter.visit(tree)

        function = typed(self.function, working, also)
        if check and not sources.find(self.function.__code__):
            message = f"{self.name}: no source, so that no bounds are checked"
            warnings.warn(message, RuntimeWarning, stacklevel=users_level())
            check = False
        return Grid(function, indices, arguments, self.fastmath, check)


def typed(
    function: Callable[..., Any],
    working: np.dtype[Any],
    also: Callable[[ast.FunctionDef, FunctionScope], object],
) -> Callable[..., Any]:
    """Return a function of arrays with its literals typed.

    Parameters
    ----------
    function : callable
        A Python function.
    working : numpy.dtype
        What floats in it are.
    also : callable
        ``also(tree, scope)`` rewrites its source before.

    Raises
    ------
    TypeError
        It reads an array from outside.
    """
    # Compilers would take the array for a constant.
    refuse_arrays(function, sources.outside(function), way="")
    replace = partial(_replacement, function, working)
    rules = Rules((), working=working)
    return literals.typed(function, rules, replace, also).function


def _replacement(
    own: Callable[..., Any], working: np.dtype[Any], value: object
) -> object:
    """Return what compiled code uses for the value of an outside name.

    A ufunc's function, or a plain one, becomes one that can be called.
    """
    typed = getattr(value, "_typed", None)
    if isinstance(typed, KernelFunction):
        raise TypeError(
            f"{own.__name__} calls the kernel {typed.name}, which runs over points of "
            "its own: call one after the other, make what both need a plain function, "
            "or write a recursion as a loop"
        )
    scalar = within(value)
    if scalar is None:
        return value
    return scalar.device_function(Rules((), working=working))


def check_plain(
    function: Callable[..., Any], decorator: str, form: str
) -> tuple[str, ...]:
    """Return the names of a function's parameters.

    Parameters
    ----------
    function : callable
        What is decorated.
    decorator, form : str
        The decorator's name, and an example of what it takes, for errors.

    Raises
    ------
    TypeError
        It is no Python function of two or more plain parameters, it is async or a
        generator, or it raises.
    """
    parameters = positional(function) or []
    if len(parameters) < 2 or any(  # noqa: PLR2004 - what is read, what is written
        p.default is not inspect.Parameter.empty for p in parameters
    ):
        name = getattr(function, "__name__", repr(function))
        raise TypeError(
            f"{decorator} needs a Python function, {form}, without defaults, *args or "
            f"**kwargs, not {name}"
        )
    refuse_deferred_or_raising(
        function,
        "compiled code cannot: write a mark into an array, and look at it after the "
        "call",
    )
    return tuple(p.name for p in parameters)


# What kernels take: arrays and numbers.

SUPPORTED = frozenset("?bhilqBHILQfdFD")
FLOAT = np.dtype(np.float64)


def host(x: Any, name: str) -> Array | Number:
    """Return what an argument of a kernel on the CPU is.

    Raises
    ------
    TypeError
        It is neither an array in host memory nor a number.
    """
    adapter = foreign.of(type(x))
    if adapter is not None:
        x = adapter.to_native(x, name)
    if isinstance(x, np.ndarray) and not isinstance(x, np.ma.MaskedArray):
        address, _ = x.__array_interface__["data"]
        return Array(x, address, x.shape, x.strides, x.dtype, x.flags.writeable)
    if isinstance(x, NUMBERS):
        return Number(x)
    way = "pass an array that it holds, or a number"
    if isinstance(x, list | tuple):
        way = "pass xdev.asarray(x), so that the kernel's writes can be seen"
    elif isinstance(x, np.ma.MaskedArray):
        way = "pass x.filled(value), or x.data and x.mask each"
    elif is_dask(x):
        way = f"map it over the blocks, xdev.distributed.map(kernel, x) ({PAGE})"
    message = f"{name} takes NumPy and CUDA arrays and numbers, not {type_name(x)}: "
    raise TypeError(message + way)


def result_type(dtypes: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the dtype that floats in a function have, of those of its arrays."""
    inexact = [dtype for dtype in dtypes if dtype.kind in "fc"]
    return np.result_type(*inexact) if inexact else FLOAT


def types(
    operands: Sequence[Array | Number], names: Sequence[str], name: str
) -> tuple[tuple[Argument, ...], np.dtype[Any]]:
    """Return the arguments' types, and the dtype that floats in the function have.

    Python's numbers are weak, as in NEP 50: a float has the result type of the arrays
    that are no integers, an int is int64.

    Parameters
    ----------
    operands : sequence of Array and Number
        The arguments.
    names : sequence of str
        Their names in the function.
    name : str
        The function's, for errors.

    Raises
    ------
    TypeError
        There is no array, or a dtype that kernels do not have.
    ValueError
        An array is not aligned.
    """
    arrays = [x for x in operands if isinstance(x, Array)]
    if not arrays:
        raise TypeError(f"{name} got no array: what it computes has nowhere to go")
    working = result_type(x.dtype for x in arrays)
    kinds = []
    for x, label in zip(operands, names, strict=True):
        dtype = x.dtype if isinstance(x, Array) or not x.weak else _weak(x, working)
        if dtype.char not in SUPPORTED or not dtype.isnative:
            shown = dtype if dtype.names else dtype.str  # which has the byte order
            raise TypeError(
                f"{name}: {label} has dtype {shown}, which kernels do not have: use "
                "bool, integers, float32, float64, complex64 or complex128 in native "
                "byte order"
            )
        if isinstance(x, Number):
            kinds.append(Argument(dtype))
            continue
        if not _aligned(x):
            raise ValueError(f"{name}: {label} is not aligned: copy it first")
        kinds.append(Argument(dtype, len(x.shape), _contiguous(x), x.writable))
    return tuple(kinds), working


def key(x: Array | Number) -> Any:
    """Return all of an argument that its type depends on."""
    if isinstance(x, Number):
        return x.layout
    return x.dtype, len(x.shape), _contiguous(x), x.writable, _aligned(x)


def _aligned(x: Array) -> bool:
    return not any(n % x.dtype.alignment for n in (x.address, *x.strides))


def _weak(x: Number, working: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a Python number."""
    value = x.value
    if isinstance(value, bool):
        return np.dtype(np.bool_)
    if isinstance(value, int):
        return np.dtype(np.int64)
    if isinstance(value, complex):
        return np.result_type(working, 1j)
    return real(working)


def _contiguous(x: Array) -> bool:
    steps = contiguous(x.shape, x.dtype.itemsize)
    pairs = zip(x.shape, x.strides, steps, strict=True)
    return 0 in x.shape or all(n == 1 or own == step for n, own, step in pairs)
