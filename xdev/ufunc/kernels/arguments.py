"""What a kernel is called with: arrays where they are, numbers by value."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.compile.grid import Argument
from xdev.ufunc import foreign
from xdev.ufunc.complaints import PAGE
from xdev.ufunc.cuda_layout import contiguous
from xdev.ufunc.cuda_operands import Array, Number
from xdev.ufunc.foreign import NUMBERS
from xdev.ufunc.inputs import is_dask
from xdev.ufunc.kinds import real

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from xdev.ufunc.kernels import Extents

Dtypes = tuple[np.dtype[Any], ...]
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
    found = []
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
            found.append(Argument(dtype))
            continue
        if not _aligned(x):
            raise ValueError(f"{name}: {label} is not aligned: copy it first")
        found.append(Argument(dtype, len(x.shape), _contiguous(x), x.writable))
    return tuple(found), working


def key(x: Array | Number) -> Any:
    """Return all of an argument that its type depends on."""
    if isinstance(x, Number):
        return x.layout
    return x.dtype, len(x.shape), _contiguous(x), x.writable, _aligned(x)


def _aligned(x: Array) -> bool:
    return not any(n % x.dtype.alignment for n in (x.address, *x.strides))


def begin_writes(
    args: Sequence[Any],
    operands: Sequence[Array | Number],
    names: Sequence[str],
    name: str,
    writes: Callable[[], Container[str]],
) -> None:
    """Tell the libraries of arrays that a kernel is about to write them.

    Those that keep arrays for later, as autograd does, are told of no others.

    Parameters
    ----------
    args : sequence
        The arguments as they came.
    operands, names, name
        As :func:`types` takes them.
    writes : callable
        Returns the names of the arrays that are written; a TypeError: nobody knows.

    Raises
    ------
    TypeError
        A library forbids it.
    """
    if not foreign.any_of(args):
        return
    try:
        written = writes()
    except TypeError:
        written = names
    for x, operand, label in zip(args, operands, names, strict=True):
        adapter = foreign.of(type(x))
        known = isinstance(operand, Array) and operand.writable
        if adapter and known and label in written:
            adapter.begin_write(x, name, label)


def sizes(extents: Extents, arrays: Sequence[Array]) -> tuple[bool, bool]:
    """Say what a CUDA kernel may be compiled for.

    Returns
    -------
    (bool, bool)
        Whether a launch has a thread for each point, and extents, shapes and strides
        fit into 32 bits with their sign; whether each array has fewer than 2**31 bytes,
        of which a view is made.
    """
    numbers = [*extents.shape]
    for x in arrays:
        numbers += (*x.shape, *x.strides)
    fit = max(numbers) < 2**31 and min(numbers) >= -(2**31)
    small = all(prod(x.shape) * x.dtype.itemsize < 2**31 for x in arrays)
    return extents.whole and fit, small


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
