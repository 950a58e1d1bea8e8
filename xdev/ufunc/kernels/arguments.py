"""What a kernel is called with: arrays where they are, numbers by value."""

from __future__ import annotations

import ast
import builtins
import math
import re
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.compile.grid import Argument
from xdev.ufunc import foreign, sources
from xdev.ufunc.complaints import PAGE
from xdev.ufunc.cuda_layout import contiguous
from xdev.ufunc.cuda_operands import Array, Number
from xdev.ufunc.foreign import NUMBERS
from xdev.ufunc.inputs import is_dask
from xdev.ufunc.kernels.functions import UPDATES
from xdev.ufunc.rules import real
from xdev.ufunc.sources import Scope, numpys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


# Which of its arrays a kernel writes, by its source.
#
# Libraries that keep arrays for later, as autograd does, are told of those alone.

FACTS = frozenset({"shape", "size", "ndim", "strides", "itemsize", "nbytes", "dtype"})
OF_NUMBERS = abs, bool, complex, divmod, float, int, len, max, min, pow, range, round
READERS = frozenset((*OF_NUMBERS, *(f for f in vars(math).values() if callable(f))))


@final
@dataclass(frozen=True, slots=True)
class Writes:
    """The names of the arrays that a kernel writes.

    Parameters
    ----------
    surely : frozenset of str
        Those that stand before ``[…] =`` or ``+=``, or are updated atomically.
    perhaps : frozenset of str
        Those that other functions get, or of which parts have names of their own.
    flat : frozenset of str
        Those of the first that are written as ``x.flat[…]``.
    """

    surely: frozenset[str]
    perhaps: frozenset[str]
    flat: frozenset[str] = frozenset()


def find_writes(function: Callable[..., Any], arrays: Mapping[str, int]) -> Writes:
    """Return what a kernel writes.

    Parameters
    ----------
    function : callable
        Its Python function; without a source all of its arrays are ``perhaps``.
    arrays : mapping of str to int
        The names of its arrays, and how many axes they have.
    """
    source = sources.find(function.__code__)
    if source is None:
        return Writes(frozenset(), frozenset(arrays))
    visitor = _Visitor(function, source.node, arrays)
    for node in source.node.body:
        visitor.visit(node)
    surely = frozenset(visitor.surely)
    return Writes(surely, frozenset(visitor.perhaps) - surely, frozenset(visitor.flat))


@final
class _Visitor(ast.NodeVisitor):
    """Collects the arrays that are written, or may be."""

    def __init__(
        self,
        function: Callable[..., Any],
        tree: ast.FunctionDef,
        arrays: Mapping[str, int],
    ) -> None:
        self._outside = sources.outside(function)
        self._arrays, self._scope = arrays, Scope(tree, self._outside)
        # Any name may be one's then.
        self._slices = _makes_slices(function, (), {})
        self.surely: set[str] = set()
        self.perhaps: set[str] = set()
        self.flat: set[str] = set()

    def visit_Call(self, node: ast.Call) -> None:
        """Look at what a function gets: many only read."""
        builtin = self._scope.builtin(node.func)
        called = getattr(builtins, builtin, None) or self._scope.static(node.func)
        reads = _reads(called, len(node.args))
        if called is None:
            self.visit(node.func)
        updated = [word.value for word in node.keywords if word.arg == "a"]
        updated = updated or node.args[:1]  # of an atomic operation
        for argument in (*node.args, *(word.value for word in node.keywords)):
            name = self._array(argument)
            if name and called in UPDATES and argument in updated:
                self.surely.add(name)
            if name and (reads or called in UPDATES):
                self._indices(argument)
            else:
                self.visit(argument)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Take x += y for a write, where x = y is but a name."""
        if isinstance(node.target, ast.Name):
            self.surely |= {node.target.id} & self._arrays.keys()
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """Take an array that has another name for one that is written by it."""
        self._part(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Tell x[i] from x[i] = y, and elements from parts."""
        self._part(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Tell x.shape from x.fill."""
        self._part(node)

    def _part(self, node: ast.Name | ast.Subscript | ast.Attribute) -> None:
        name = self._array(node)
        if not isinstance(node.ctx, ast.Load):
            if not isinstance(node, ast.Name):
                written = {name} & self._arrays.keys()
                self.surely |= written
                if isinstance(node.value, ast.Attribute) and node.value.attr == "flat":
                    self.flat |= written
        elif name in self._arrays and not self._value_alone(node, self._arrays[name]):
            self.perhaps.add(name)
        self._indices(node)

    def _array(self, node: ast.expr) -> str:
        """Return the array that an expression is a part of; "" for others."""
        while isinstance(node, ast.Subscript | ast.Attribute):
            node = node.value
        found = isinstance(node, ast.Name) and node.id in self._arrays
        return node.id if found and isinstance(node, ast.Name) else ""

    def _indices(self, node: ast.expr) -> None:
        """Visit what stands in the brackets of an array's part."""
        while isinstance(node, ast.Subscript | ast.Attribute):
            if isinstance(node, ast.Subscript):
                self.visit(node.slice)
            node = node.value
        if not isinstance(node, ast.Name):
            self.visit(node)

    def _value_alone(self, node: ast.expr, axes: int) -> bool:
        """Say whether a part of an array is an element, or a fact of the array."""
        while isinstance(node, ast.Subscript | ast.Attribute):
            if isinstance(node, ast.Attribute):
                if node.attr in FACTS:
                    return True
            else:
                index = node.slice
                each = index.elts if isinstance(index, ast.Tuple) else [index]
                axes -= sum(map(self._takes_axis, each))
            node = node.value
        return axes <= 0

    def _takes_axis(self, index: ast.expr) -> bool:
        """Say whether an index is a number, as far as the source tells.

        None and ... take no axis away, slices none whole; names may stand for them.
        """
        if isinstance(index, ast.Slice | ast.Starred):
            return False
        if isinstance(index, ast.Constant):
            return isinstance(index.value, int)
        outer = index.value if isinstance(index, ast.Attribute) else index
        if isinstance(outer, ast.Name) and outer.id in self._outside:
            return isinstance(self._scope.value(index), int | np.integer)
        return not self._slices or isinstance(index, ast.BinOp | ast.UnaryOp)


def _reads(function: Any, given: int) -> bool:
    """Say whether a function is known to write none of its arguments."""
    if isinstance(function, np.ufunc):
        return given <= function.nin
    return any(function is known for known in READERS)


def _makes_slices(value: Any, names: tuple[str, ...], seen: dict[Any, Any]) -> bool:
    """Say whether a value is a slice, has one, or is a function that may make one.

    Parameters
    ----------
    value : object
        What a function reads, or itself.
    names : tuple of str
        Those that the function has, as which it may read what is in a module.
    seen : dict
        What was looked at with which names, by identity: values may have no hash.
    """
    value = numpys(getattr(value, "py_func", value))
    if str(getattr(value, "__module__", "")).startswith("xdev."):
        return False  # those that compiled code may call make none
    if value is slice or isinstance(value, slice):
        return True
    key = id(value), names
    parts: Iterable[Any] = ()
    if key in seen:
        return False
    seen[key] = value
    if isinstance(value, tuple):
        parts = value
    elif isinstance(value, ModuleType):
        parts = [vars(value).get(name) for name in names]
    elif isinstance(value, FunctionType):
        names = value.__code__.co_names
        parts = sources.outside(value).values()
    return "slice" in names or any(_makes_slices(part, names, seen) for part in parts)


Dtypes = tuple[np.dtype[Any], ...]
SUPPORTED = frozenset("?bhilqBHILQfdFD")
FLOAT = np.dtype(np.float64)
# How Numba shows writes to such an argument: x[i] = y, and the atomic ones; and x += y,
# which fails like that for other reasons, too.
READ_ONLY = re.compile(r"setitem\(readonly array|cannot write a read-only array")
PERHAPS = "'NoneType' object has no attribute 'args'"


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
    kind = type(x)
    way = "pass an array that it holds, or a number"
    if isinstance(x, list | tuple):
        way = "pass xdev.asarray(x), so that the kernel's writes can be seen"
    elif isinstance(x, np.ma.MaskedArray):
        way = "pass x.filled(value), or x.data and x.mask each"
    elif is_dask(x):
        way = f"map it over the blocks, xdev.distributed.map(kernel, x) ({PAGE})"
    elif hasattr(kind, "__dlpack__"):
        way = "pass xdev.to_device(x, 'cpu'), which copies only where it must"
    message = f"{name} takes NumPy and CUDA arrays and numbers, not "
    raise TypeError(f"{message}{kind.__module__}.{kind.__qualname__}: {way}")


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
        message = f"{name} got no array: what it computes has nowhere to go"
        raise TypeError(message)
    inexact = [x.dtype for x in arrays if x.dtype.kind in "fc"]
    working = np.result_type(*inexact) if inexact else FLOAT
    found = []
    for x, label in zip(operands, names, strict=True):
        dtype = x.dtype if isinstance(x, Array) or not x.weak else _weak(x, working)
        if dtype.char not in SUPPORTED or not dtype.isnative:
            shown = dtype if dtype.names else dtype.str  # which has the byte order
            message = (
                f"{name}: {label} has dtype {shown}, which kernels do not have: use "
                "bool, integers, float32, float64, complex64 or complex128 in native "
                "byte order"
            )
            raise TypeError(message)
        if isinstance(x, Number):
            found.append(Argument(dtype))
            continue
        if x.address % dtype.alignment or any(s % dtype.alignment for s in x.strides):
            message = f"{name}: {label} is not aligned: copy it first"
            raise ValueError(message)
        found.append(Argument(dtype, len(x.shape), _contiguous(x), x.writable))
    return tuple(found), working


def key(x: Array | Number) -> Any:
    """Return all of an argument that its type depends on."""
    if isinstance(x, Number):
        return type(x.value) if x.weak else x.value.dtype
    step = x.dtype.alignment
    aligned = not (x.address % step or any(stride % step for stride in x.strides))
    return x.dtype, len(x.shape), _contiguous(x), x.writable, aligned


@contextmanager
def explaining(
    operands: Sequence[Array | Number],
    names: Sequence[str],
    name: str,
    writes: Callable[[dict[str, int]], Writes],
) -> Iterator[None]:
    """Refuse writes into read-only arrays in clear words.

    A compiler refuses them, but for those through ``x.flat``.

    Parameters
    ----------
    operands, names, name
        As :func:`types` takes them.
    writes : callable
        As :func:`begin_writes` takes it.

    Raises
    ------
    ValueError
        The kernel writes, and an argument is read-only; the text has the line where a
        compiler found it.
    """
    frozen = [
        label
        for x, label in zip(operands, names, strict=True)
        if isinstance(x, Array) and not x.writable
    ]
    if not frozen:
        yield
        return
    found = writes(_axes(operands, names))
    written = found.surely.intersection(frozen)
    try:
        yield
    except TypeError as error:
        text = str(error)
        if READ_ONLY.search(text):
            written |= found.perhaps
        elif not written or PERHAPS not in text:
            raise
        labels = [label for label in frozen if label in written] or frozen
        raise _frozen(name, labels, f"\n{text.splitlines()[-1]}") from error
    flat = [label for label in frozen if label in found.flat]
    if flat:
        raise _frozen(name, flat)


def _frozen(name: str, labels: Sequence[str], line: str = "") -> ValueError:
    """Return the error for a kernel that writes into read-only arrays."""
    one = "is" if len(labels) == 1 else "are"
    return ValueError(
        f"{name} writes into an array that may not be written: {', '.join(labels)} "
        f"{one} read-only (as JAX's arrays always are): pass a copy that may be "
        f"written{line}"
    )


def _axes(operands: Sequence[Array | Number], names: Sequence[str]) -> dict[str, int]:
    """Return how many axes the arrays have, by their names."""
    return {
        label: len(x.shape)
        for x, label in zip(operands, names, strict=True)
        if isinstance(x, Array)
    }


def begin_writes(
    args: Sequence[Any],
    operands: Sequence[Array | Number],
    names: Sequence[str],
    name: str,
    writes: Callable[[dict[str, int]], Writes],
) -> None:
    """Tell the libraries of arrays that a kernel is about to write them.

    Parameters
    ----------
    args : sequence
        The arguments as they came.
    operands, names, name
        As :func:`types` takes them.
    writes : callable
        Returns which arrays are written, of the number of axes of each.

    Raises
    ------
    TypeError
        A library forbids it.
    """
    if not foreign.any_of(args):
        return
    found = writes(_axes(operands, names))
    for x, operand, label in zip(args, operands, names, strict=True):
        adapter = foreign.of(type(x))
        if adapter and isinstance(operand, Array) and operand.writable:
            if label in found.surely:
                adapter.begin_write(x, name, label)
            elif label in found.perhaps:
                adapter.mark_written(x)


def narrow(extents: Sequence[int], arrays: Sequence[Array]) -> bool:
    """Say whether extents, shapes and strides fit into 32 bits with their sign."""
    numbers = [*extents]
    for x in arrays:
        numbers += x.shape
        numbers += x.strides
    return max(numbers) < 2**31 and min(numbers) >= -(2**31)


def small(arrays: Sequence[Array]) -> bool:
    """Say whether each array has fewer than 2**31 bytes, of which a view is made."""
    return all(prod(x.shape) * x.dtype.itemsize < 2**31 for x in arrays)


def words(
    operands: Sequence[Array | Number], arguments: Sequence[Argument]
) -> list[Any]:
    """Return what :func:`xdev.compile.grid.packer`'s function takes for arguments.

    Raises
    ------
    OverflowError
        A Python int is too large for int64.
    """
    slots: list[Any] = []
    layouts: list[int] = []
    for x, argument in zip(operands, arguments, strict=True):
        if isinstance(x, Array):
            slots.append(x.address)
            layouts += x.shape
            layouts += x.strides
        else:
            slots.append(argument.dtype.type(x.value).tobytes())
    return slots + layouts


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
