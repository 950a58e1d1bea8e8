"""The function of a kernel: checked, and typed for the arguments of a call."""

from __future__ import annotations

import ast
import inspect
import warnings
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np

from xdev import _config
from xdev._forks import module_lock
from xdev.compile.grid import Argument, Grid
from xdev.compile.grid_code import writes
from xdev.errors import quoted, users_level
from xdev.ufunc import foreign, literals, sources
from xdev.ufunc.cuda_layout import contiguous
from xdev.ufunc.cuda_operands import Array, Number
from xdev.ufunc.inputs import (
    positional,
    refuse_arrays,
    refuse_deferred_or_raising,
    shown,
)
from xdev.ufunc.kinds import Rules, real
from xdev.ufunc.rewriting import Checks
from xdev.ufunc.scalar import within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from xdev.ufunc.literals import Rewriting
    from xdev.ufunc.sources import FunctionScope


#: What :meth:`KernelFunction.writes` takes: indices, arguments, the dtype of floats.
Typing = tuple[int, tuple[Argument, ...], np.dtype[Any]]
_lock = module_lock()  # guards the making of plans: each is made once


@final
class KernelFunction:
    """A Python function of indices and arguments; no other is taken."""

    def __init__(self, function: Callable[..., Any], *, fastmath: bool) -> None:
        self.names = check_plain(function, "kernel", "def f(i, x, out)", least=2)
        places = dict.fromkeys(self.names, self.names[0])
        refuse_unwritten(function, places, unnamed=False)
        self.function, self.fastmath = function, fastmath
        self.name: str = function.__name__
        self._plans: dict[Any, tuple[Grid, Any, Typing]] = {}
        self._writes: dict[Any, frozenset[str]] = {}

    def plan(
        self,
        key: tuple[Any, ...],
        indices: int,
        operands: Sequence[Array | Number],
        compile_: Callable[[Grid], Any],
        *,
        checked: bool = False,
    ) -> tuple[Grid, Any, Typing]:
        """Return what was compiled for arguments, once: grid, machine code and types.

        ``key`` is all that it depends on beside the number of indices.
        """
        key = indices, *key
        if key not in self._plans:
            with _lock:
                if key not in self._plans:
                    typing = indices, *types(operands, self.names[indices:], self.name)
                    grid = self.typed(*typing, checked=checked)
                    machine = self._refusing_writes(compile_, grid, typing)
                    self._plans[key] = grid, machine, typing
        return self._plans[key]

    def writes(
        self, indices: int, arguments: tuple[Argument, ...], working: np.dtype[Any]
    ) -> frozenset[str]:
        """Return the names of the arrays that it writes, as the CPU's compiler says."""
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
        typing: Typing,
    ) -> None:
        """Tell the libraries of arrays that they are about to be written.

        Those that keep arrays for later, as autograd does, are told of no others.
        """
        if not foreign.any_of(args):
            return
        written: Iterable[str] = names
        with suppress(TypeError):  # what only CUDA compiles may write any
            written = self.writes(*typing)
        for x, operand, label in zip(args, operands, names, strict=True):
            adapter = foreign.of(type(x))
            writable = isinstance(operand, Array) and operand.writable
            if adapter and writable and label in written:
                adapter.begin_write(x, self.name, label)

    @cached_property
    def _flat(self) -> frozenset[str]:
        """The names that stand in ``x.flat[…] =``, which compilers always take."""
        source = sources.find(self.function.__code__)
        names = set()
        for node in () if source is None else ast.walk(source.node):
            match node:
                case ast.Subscript(ast.Attribute(ast.Name(x), "flat"), _, ast.Store()):
                    names.add(x)
        return frozenset(names)

    def _refusing_writes(
        self, compile_: Callable[[Grid], Any], grid: Grid, typing: Typing
    ) -> Any:
        """Return machine code; refuse writes into read-only arrays in clear words.

        A compiler refuses them, but for those through ``x.flat``.
        """
        pairs = zip(self.names[grid.indices :], grid.arguments, strict=True)
        frozen = [x for x, own in pairs if own.ndim is not None and not own.writable]
        written, line, cause = self._flat, "", None
        try:
            machine = compile_(grid)
        except TypeError as error:
            written = self.writes(*typing) if frozen else written
            if written.isdisjoint(frozen):
                raise
            line, cause = f"\n{str(error).splitlines()[-1]}", error
        if refused := [f"{x} is read-only" for x in frozen if x in written]:
            raise ValueError(
                f"{self.name} writes into an array that may not be written: "
                f"{', '.join(refused)} (as JAX's arrays always are): "
                f"pass a copy that may be written{line}"
            ) from cause
        return machine

    def refuse_reported(self, report: Sequence[int], indices: int) -> NoReturn:
        """Raise the error that a kernel of so many indices has reported."""
        number, axis, index, length = report[1:5]
        point = ", ".join(map(str, report[-indices:]))
        raise IndexError(
            f"{self.name}: {self.names[indices + number]} has {length} elements along "
            f"axis {axis}, and the index there is {index}, at point ({point})"
        )

    def split(self, indices: int, count: int) -> tuple[str, ...]:
        """Return the names of the arguments beside so many indices."""
        names = self.names[indices:]
        if count != len(names) or len(self.names) <= indices:
            raise TypeError(
                f"{self.name}({', '.join(self.names)}) on a {indices}-d grid takes the "
                f"arguments {', '.join(names)}, not {count}: each extent in the "
                f"brackets, as in {self.name}[h, w], gives an index, by which its "
                "parameters begin"
            )
        return names

    def typed(
        self,
        indices: int,
        arguments: tuple[Argument, ...],
        working: np.dtype[Any],
        *,
        checked: bool = False,
    ) -> Grid:
        """Return what compilers take."""
        kinds = dict(zip(self.names[indices:], arguments, strict=True))
        check = checked or _config.debug()
        if check and not sources.find(self.function.__code__):
            message = f"{self.name}: no source, so that no bounds are checked"
            warnings.warn(message, RuntimeWarning, stacklevel=users_level())
            check = False
        arrays = {x: k for k, x in enumerate(kinds) if kinds[x].ndim is not None}

        def checking(tree: ast.FunctionDef, scope: FunctionScope) -> None:
            Checks(tree, scope, arrays).visit(tree)

        function = typed(self.function, working, checking if check else None)
        return Grid(function, indices, arguments, self.fastmath, check)


def typed(
    function: Callable[..., Any],
    working: np.dtype[Any],
    also: Rewriting | None,
) -> Callable[..., Any]:
    """Return a function of arrays with its literals typed."""
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
    function: Callable[..., Any], decorator: str, form: str, least: int = 0
) -> tuple[str, ...]:
    """Return the names of a function's parameters, of which there are some."""
    parameters = positional(function)
    if (
        parameters is None
        or len(parameters) < least
        or any(p.default is not inspect.Parameter.empty for p in parameters)
    ):
        name = getattr(function, "__name__", quoted(function))
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


def refuse_unwritten(
    function: Callable[..., Any], places: Mapping[str, str], *, unnamed: bool
) -> None:
    """Refuse parameters that a function names but to bind them anew, or not at all.

    ``places`` has an index of each; ``unnamed`` says whether each must be named.
    """
    source = sources.find(function.__code__)
    if source is None:
        return
    nodes = [*ast.walk(source.node)]
    changed = {node.target for node in nodes if isinstance(node, ast.AugAssign)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    read = (node for node in names if node in changed or isinstance(node.ctx, ast.Load))
    used = {node.id for node in read}
    lines = {node.id: node.lineno for node in reversed(names)}
    for name, place in places.items():
        if name not in used and (unnamed or name in lines):
            raise TypeError(
                f"{function.__name__} writes nothing into {name}: assign its elements, "
                f"{name}[{place}] = … ({name} = … but names a value)\n"
                f"{shown(function.__code__, lines.get(name, source.node.lineno))}"
            )


# What kernels take: arrays and numbers.

SUPPORTED = frozenset("?bhilqBHILQfdFD")
FLOAT = np.dtype(np.float64)


def result_type(dtypes: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the dtype that floats in a function have, of those of its arrays."""
    inexact = [dtype for dtype in dtypes if dtype.kind in "fc"]
    return np.result_type(*inexact) if inexact else FLOAT


def check_dtype(dtype: np.dtype[Any], what: str) -> None:
    """Refuse what compiled functions of arrays do not have."""
    if dtype.char not in SUPPORTED or not dtype.isnative:
        shown = dtype if dtype.names else dtype.str  # which has the byte order
        raise TypeError(
            f"{what} has dtype {shown}, which kernels and generalized ufuncs do not "
            "have: use bool, integers, float32, float64, complex64 or complex128 in "
            "native byte order"
        )


def types(
    operands: Sequence[Array | Number], names: Sequence[str], name: str
) -> tuple[tuple[Argument, ...], np.dtype[Any]]:
    """Return the arguments' types, and the dtype that floats in the function have.

    Python's numbers are weak, as in NEP 50: a float has the result type of the arrays
    that are no integers, an int is int64.
    """
    arrays = [x for x in operands if isinstance(x, Array)]
    if not arrays:
        raise TypeError(f"{name} got no array: what it computes has nowhere to go")
    working = result_type(x.dtype for x in arrays)
    kinds = []
    for x, label in zip(operands, names, strict=True):
        dtype = x.dtype if isinstance(x, Array) or not x.weak else _weak(x, working)
        check_dtype(dtype, f"{name}: {label}")
        if isinstance(x, Number):
            kinds.append(Argument(dtype))
            continue
        if not is_aligned(x):
            raise ValueError(f"{name}: {label} is not aligned: copy it first")
        kinds.append(Argument(dtype, len(x.shape), is_contiguous(x), x.writable))
    return tuple(kinds), working


def key(x: Array | Number) -> Any:
    """Return all of an argument that its type depends on."""
    if isinstance(x, Number):
        return x.layout
    return x.dtype, len(x.shape), is_contiguous(x), x.writable, is_aligned(x)


def is_aligned(x: Array) -> bool:
    """Say whether each element is where its dtype may be read."""
    return not any(n % x.dtype.alignment for n in (x.address, *x.strides))


def _weak(x: Number, working: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a Python number."""
    if isinstance(x.value, int):
        return np.dtype(np.bool_ if isinstance(x.value, bool) else np.int64)
    if isinstance(x.value, complex):
        return np.result_type(working, 1j)
    return real(working)


def is_contiguous(x: Array) -> bool:
    """Say whether the elements are in C order without gaps."""
    steps = contiguous(x.shape, x.dtype.itemsize)
    pairs = zip(x.shape, x.strides, steps, strict=True)
    return 0 in x.shape or all(n == 1 or own == step for n, own, step in pairs)
