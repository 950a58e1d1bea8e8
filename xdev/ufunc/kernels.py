"""``@kernel``: a function of indices and arrays, in threads or on a grid of CUDA's."""

from __future__ import annotations

import ast
import functools
import warnings
from contextlib import suppress
from operator import getitem
from typing import TYPE_CHECKING, Any, final, overload

import numpy as np
from numpy import ndarray

from xdev import _config, _optional, native
from xdev._forks import module_lock
from xdev.compile.grid import Argument, Grid, writes
from xdev.errors import users_level
from xdev.memory.arrays import is_fake
from xdev.ufunc import calls, foreign, rewriting, sources
from xdev.ufunc.argument_errors import refuse
from xdev.ufunc.cuda import remember
from xdev.ufunc.cuda_operands import Array, Number, encoders, handed
from xdev.ufunc.foreign import NUMBERS, is_cuda
from xdev.ufunc.grids import CUDA, HOST, Extents, HostRun, address_function
from xdev.ufunc.kinds import Rules, real
from xdev.ufunc.rewriting import UPDATES, Checks
from xdev.ufunc.scalar import replacement
from xdev.ufunc.sources import FunctionScope, positional, refusal, refuse_arrays

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from xdev.ufunc.rewriting import Rewriting

MOST = 256  # extents that one kernel keeps at a time
#: Indices, arguments, and the dtype of floats.
Typing = tuple[int, tuple[Argument, ...], np.dtype[Any]]
_lock = module_lock()  # guards the making of plans: each is made once


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
    return Kernel(sources.undecorated(function, Kernel), bool(fastmath))


@final
class Kernel:
    """A function that runs for every point of a grid: ``k[extents](*arguments)``."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]
    __iter__ = None  # Python would ask for [0], [1], … and find no end

    def __init__(self, function: Callable[..., Any], fastmath: bool) -> None:
        self._names = check_plain(function, "kernel", "def f(i, x, out)", least=2)
        sources.describe(self, function, f"({', '.join(self._names)})")
        self.function, self._fastmath = function, fastmath
        self._name: str = function.__name__
        # By kind too, since 3 == 3.0, and 1 == True.
        self._bound = functools.lru_cache(MOST, typed=True)(self._bind)
        self._plans: dict[Any, tuple[Grid, Any, Typing]] = {}
        self._writes: dict[Any, frozenset[str]] = {}

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

    def __reduce__(self) -> sources.Reduced:
        """Pickle by the Python function and the option."""
        return sources.pickled(self, Kernel, self.function, self._fastmath)

    def writes(self, indices: int, *args: Any) -> frozenset[str]:
        """Return the names of the arguments in host memory that it would write."""
        names = self._split(indices, len(args))
        operands = [HOST.read(x, self._name) for x in args]
        return self._written(indices, *types(operands, names, self._name))

    def _run(self, bound: Bound, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Run it where its arguments are."""
        extents = bound.extents
        if named:
            listed = ", ".join(self._names[extents.dimensions :])
            raise TypeError(
                f"{self._name} takes its arguments positionally, not "
                f"{', '.join(named)} by keyword: {self._name}[…]({listed})"
            )
        names = self._split(extents.dimensions, len(args))
        if any(map(is_cuda, args)):
            launch, dtypes = self._on(CUDA, extents, args, names)
            array = _optional.cupy().ndarray
            if launch is not None and all(_is_exactly(x, array) for x in args):
                plan = native.calls.LaunchPlan(
                    launch, encoders=encoders(launch.values, dtypes)
                )
                bound.launches.learn(args, plan)
        elif any(map(is_fake, args)):

            def checking(args: Sequence[Any], _: None) -> Any:  # it is for tests
                return self._on(HOST, extents, args, names, checked=True)

            calls.on_fake(checking, self._name, args, None, {}, names)
        else:
            refuse(self._name, names, args)
            loop, _ = self._on(HOST, extents, args, names)
            if loop is not None and all(_is_exactly(x, ndarray) for x in args):
                remember(bound.loops, _read(args)[0], loop)

    def _on(
        self,
        grids: Any,
        extents: Extents,
        args: Sequence[Any],
        names: tuple[str, ...],
        *,
        checked: bool = False,
    ) -> tuple[Any, list[Any]]:
        """Run for every point, on one kind of device.

        Accesses out of bounds are reported where ``checked``, or by ``XDEV_DEBUG=1``.
        """
        indices, name = extents.dimensions, self._name
        operands = [
            grids.read(x, name, label) for x, label in zip(args, names, strict=True)
        ]
        arrays = [x for x in operands if isinstance(x, Array)]
        with grids.on_device(arrays, name) as place:
            narrow = extents.narrow(arrays)
            key = indices, place, checked, narrow, *map(_key, operands)
            compile_ = functools.partial(grids.compiled, narrow=narrow)
            grid, machine, typing = self._plan(key, operands, names, compile_)
            kinds = grid.arguments
            dtypes = [kind.dtype for kind in kinds]
            self._begin_writes(args, operands, names, typing)
            if not extents.size:
                return None, dtypes
            work = grids.run(machine, kinds, extents, operands, checked=grid.checked)
            with grids.ordered(arrays):
                report = work(handed(operands, dtypes, name, names))
        if report and report[0]:
            number, axis, index, length = report[1:5]
            point = ", ".join(map(str, report[-indices:]))
            raise IndexError(
                f"{name}: {names[number]} has {length} elements along axis {axis}, and "
                f"the index there is {index}, at point ({point})"
            )
        return None if grid.checked else work, dtypes

    def _plan(
        self,
        key: tuple[Any, ...],
        operands: Sequence[Array | Number],
        names: Sequence[str],
        compile_: Callable[[Grid], Any],
    ) -> tuple[Grid, Any, Typing]:
        """Return what was compiled for a key, once: grid, machine code and types."""
        if key not in self._plans:
            with _lock:
                if key not in self._plans:
                    indices, _, checked, *_ = key
                    typing = indices, *types(operands, names, self._name)
                    self._refuse_unwritten(*typing)
                    grid = self._grid(*typing, checked=checked)
                    machine = self._refusing_writes(compile_, grid, typing)
                    self._plans[key] = grid, machine, typing
        return self._plans[key]

    def _refuse_unwritten(
        self, indices: int, arguments: tuple[Argument, ...], working: np.dtype[Any]
    ) -> None:
        """Refuse arrays that it names but to bind them anew, as numbers may be.

        And a kernel that writes no array: it would do nothing.
        """
        pairs = zip(self._names[indices:], arguments, strict=True)
        arrays = [x for x, own in pairs if own.ndim is not None]
        place, name = ", ".join(self._names[:indices]), self._names[-1]
        refuse_unwritten(self.function, dict.fromkeys(arrays, place), unnamed=False)
        try:
            written = self._assigns or self._written(indices, arguments, working)
        except TypeError:  # only CUDA may compile it
            return
        if not written:
            raise TypeError(
                f"{self._name} writes into no array, so that nothing is left of it: "
                f"assign elements, as {name}[{place}] = … ({name} = … names a value)"
            )

    def _written(
        self, indices: int, arguments: tuple[Argument, ...], working: np.dtype[Any]
    ) -> frozenset[str]:
        """Return the names of the arrays that it writes, as the CPU's compiler says."""
        key = indices, arguments, working
        if key not in self._writes:
            able = tuple(each._replace(writable=True) for each in arguments)
            places = writes(self._grid(indices, able, working))
            names = (self._names[indices + k] for k in places)
            self._writes[key] = self._flat.union(names)
        return self._writes[key]

    def _begin_writes(
        self,
        args: Sequence[Any],
        operands: Sequence[Array | Number],
        names: Sequence[str],
        typing: Typing,
    ) -> None:
        """Tell the libraries of arrays that these, and no others, will be written."""
        if not foreign.any_of(args):
            return
        written: Iterable[str] = names
        with suppress(TypeError):  # what only CUDA compiles may write any
            written = self._written(*typing)
        for x, operand, label in zip(args, operands, names, strict=True):
            adapter = foreign.of(type(x))
            writable = isinstance(operand, Array) and operand.writable
            if adapter and writable and label in written:
                adapter.begin_write(x, self._name, label)

    @functools.cached_property
    def _assigns(self) -> bool:
        """Whether elements are assigned in it, or updated by :mod:`xdev.atomic`."""
        source = sources.find(self.function.__code__)
        if source is None:
            return False
        scope = FunctionScope(source.node, sources.outside(self.function))
        return any(
            isinstance(node.ctx, ast.Store)
            if isinstance(node, ast.Subscript)
            else isinstance(node, ast.Call) and scope.value(node.func) in UPDATES
            for node in ast.walk(source.node)
        )

    @functools.cached_property
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
        """Return machine code; refuse writes into read-only arrays in clear words."""
        pairs = zip(self._names[grid.indices :], grid.arguments, strict=True)
        frozen = [x for x, own in pairs if own.ndim is not None and not own.writable]
        written, line, cause = self._flat, "", None
        try:
            machine = compile_(grid)
        except TypeError as error:
            written = self._written(*typing) if frozen else written
            if written.isdisjoint(frozen):
                raise
            line, cause = f"\n{str(error).splitlines()[-1]}", error
        if refused := [f"{x} is read-only" for x in frozen if x in written]:
            raise ValueError(
                f"{self._name} writes into what may not be written: "
                f"{', '.join(refused)} (as JAX's arrays always are): "
                f"pass a copy that may be written{line}"
            ) from cause
        return machine

    def _split(self, indices: int, count: int) -> tuple[str, ...]:
        """Return the names of the arguments beside so many indices."""
        names = self._names[indices:]
        if count != len(names) or len(self._names) <= indices:
            raise TypeError(
                f"{self._name}({', '.join(self._names)}) on a {indices}-d grid takes "
                f"the arguments {', '.join(names)}, not {count}: each extent in the "
                f"brackets, as in {self._name}[h, w], gives one of its first parameters"
            )
        return names

    def _grid(
        self,
        indices: int,
        arguments: tuple[Argument, ...],
        working: np.dtype[Any],
        *,
        checked: bool = False,
    ) -> Grid:
        """Return what compilers take."""
        kinds = dict(zip(self._names[indices:], arguments, strict=True))
        check = checked or _config.debug()
        if check and not sources.find(self.function.__code__):
            message = f"{self._name}: no source, so that no bounds are checked"
            warnings.warn(message, RuntimeWarning, stacklevel=users_level())
            check = False
        arrays = {x: k for k, x in enumerate(kinds) if kinds[x].ndim is not None}

        def checking(tree: ast.FunctionDef, scope: FunctionScope) -> None:
            Checks(tree, scope, arrays).visit(tree)

        function = typed(self.function, working, checking if check else None)
        return Grid(function, indices, arguments, self._fastmath, check)


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

    def __reduce__(self) -> sources.Reduced:
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


# What ``@kernel`` and ``@guvectorize`` make of a function, and what it may not be.


def typed(
    function: Callable[..., Any], working: np.dtype[Any], also: Rewriting | None
) -> Callable[..., Any]:
    """Return a function of arrays with its literals typed."""
    # Compilers would take the array for a constant.
    refuse_arrays(function, sources.outside(function))

    def replace(value: object) -> object:
        if isinstance(value, Kernel):
            raise TypeError(
                f"{function.__name__} calls the kernel {value.__name__}, which runs "
                "over points of its own: make what both need a plain function, or "
                "write a recursion as a loop"
            )
        return replacement(value, working)

    rules = Rules((), working=working)
    return rewriting.typed(function, rules, replace, also)[0]


def check_plain(
    function: Callable[..., Any], decorator: str, form: str, least: int = 0
) -> tuple[str, ...]:
    """Return the names of a function's parameters, of which there are some."""
    return positional(
        function,
        f"{decorator} needs a Python function, {form}, without defaults, *args or "
        "**kwargs",
        "compiled code cannot: write a mark into an array, and look at it after the "
        "call",
        least=least,
        defaults=False,
    )


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
            text = f"writes nothing into {name}: assign its elements, {name}[{place}] "
            text += f"= … ({name} = … but names a value)"
            raise refusal(function, lines.get(name, source.node.lineno), text)


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
        if not x.aligned:
            raise ValueError(f"{name}: {label} is not aligned: copy it first")
        kinds.append(Argument(dtype, len(x.shape), x.contiguous, x.writable))
    return tuple(kinds), working


def _key(x: Array | Number) -> Any:
    """Return all of an argument that its type depends on."""
    if isinstance(x, Number):
        return x.layout
    return x.dtype, len(x.shape), x.contiguous, x.writable, x.aligned


def _weak(x: Number, working: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a Python number."""
    if isinstance(x.value, int):
        return np.dtype(np.bool_ if isinstance(x.value, bool) else np.int64)
    if isinstance(x.value, complex):
        return np.result_type(working, 1j)
    return real(working)
