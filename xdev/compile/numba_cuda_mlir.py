"""The adapter to numba-cuda-mlir, numba-cuda's successor."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev._forks import module_lock
from xdev.compile.digests import named_globals
from xdev.compile.errors import explained
from xdev.compile.halves import is_half
from xdev.compile.numpy_functions import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Dtypes = tuple[np.dtype[Any], ...]
_lock = module_lock()  # guards the compiler's idea of the current device


def ltoir(
    function: Callable[..., Any],
    inputs: Dtypes,
    outputs: Dtypes,
    symbol: str,
    capability: tuple[int, int],
    *,
    fastmath: bool = False,
) -> bytes:
    """Compile a scalar function to LTO-IR with a pointer for each operand.

    Parameters
    ----------
    function, inputs, outputs, symbol, capability, fastmath
        As :func:`xdev.compile.numba_cuda.ltoir` takes them.

    Raises
    ------
    TypeError
        The function cannot be compiled for these types; the text has the reason and
        the source line.
    """
    _optional.numba_cuda_mlir()
    types, compiler = _module("types"), _module("compiler")
    pointers = [types.CPointer(_type(dtype)) for dtype in (*inputs, *outputs)]
    elementwise = _elementwise(_device(function), len(inputs), len(outputs))
    with explained(function, inputs, " for CUDA"), _compiling_for(capability):
        code, _ = compiler.compile(
            elementwise,
            types.void(*pointers),
            cc=capability,
            device=True,
            abi_info={"abi_name": symbol},
            output="ltoir",
            fastmath=fastmath,
        )
    return bytes(code)


def _module(name: str) -> Any:
    return importlib.import_module(f"numba_cuda_mlir.{name}")


def _type(dtype: np.dtype[Any]) -> Any:
    if is_half(dtype):
        dtype = np.dtype(np.float32)
    return _module("numba_cuda.np.numpy_support").from_dtype(dtype)


def _device(function: Any) -> Any:
    """Return a function as this compiler calls it.

    So are the functions inside that Numba compiled, which this one does not know.
    """
    known, cells = named_globals(function), function.__closure__ or ()
    for name in function.__code__.co_names:
        if name in known:  # the others are builtins, and attributes
            known[name] = _called(known[name])
    closure = tuple(CellType(_called(cell.cell_contents)) for cell in cells)
    plain = FunctionType(
        function.__code__,
        known,
        function.__name__,
        function.__defaults__,
        closure or None,
    )
    return _module("cuda").jit(plain, device=True)


def _called(value: Any) -> Any:
    plain = getattr(value, "py_func", None)
    return value if plain is None else _device(plain)


def _elementwise(function: Any, nin: int, nout: int) -> Callable[..., None]:
    """Return a function of pointers that loads, calls ``function`` and stores.

    The compiler takes no ``*args``: its source is written for the number of operands.
    """
    reads, writes = [f"x{k}" for k in range(nin)], [f"y{k}" for k in range(nout)]
    loads, stores = (", ".join(f"{x}[0]" for x in each) for each in (reads, writes))
    head = f"def elementwise({', '.join((*reads, *writes))}):"
    lines = [head, f"    {stores} = function({loads})"]
    namespace: dict[str, Any] = {"function": function}
    exec("\n".join(lines), namespace)  # noqa: S102 - names and numbers of our own
    made: Callable[..., None] = namespace["elementwise"]
    return made


@contextmanager
def _compiling_for(capability: tuple[int, int]) -> Iterator[None]:
    """Give the compiler a device to ask where there is no driver."""
    with _lock, replaced((_module("tools"), "_cached_cc", capability)):
        yield
