"""Kernels over indices: a function of an index writes its own elements of an array.

The function reads no array, so that nothing but the result passes through memory. Code
for the CPU and for CUDA is kept on disk: a process that finds it does not load Numba.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev.compile import cpu, cubins, digests, loops
from xdev.compile.cubins import cpp_name
from xdev.compile.formulas import computed

if TYPE_CHECKING:
    from collections.abc import Callable

INDEX = np.dtype(np.uint64)


@final
@dataclass(frozen=True, slots=True, eq=False)  # a key of dicts: hashed as an object
class Indexed:
    """A function of an index, and the types that it is compiled for.

    Each object is compiled for itself: keep one for all calls.

    Parameters
    ----------
    function : callable
        ``function(index, *parameters)``, plain Python on scalars. It returns ``lanes``
        values, a tuple of one type if there are several: elements ``lanes * index`` and
        following. It may call other plain functions that its module names.
    parameters : tuple of numpy.dtype
        The parameters' dtypes, 8 bytes at most each; the index is an uint64.
    result : numpy.dtype
        The dtype of the elements; what the function returns is cast to it.
    lanes : int
        How many elements an index has: 1, 2 or 4.
    """

    function: Callable[..., Any]
    parameters: tuple[np.dtype[Any], ...]
    result: np.dtype[Any]
    lanes: int

    @property
    def types(self) -> tuple[object, ...]:
        """What decides the machine code beside the function."""
        return self.parameters, self.result, self.lanes


def closed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a plain function whose callees, which it names, are compiled ones."""

    def compiled(value: Any) -> Any:
        plain = isinstance(value, FunctionType)
        return cpu.device_function(closed(value)) if plain else value

    copy: Callable[..., Any] = digests.copied(function, compiled)
    return copy


# On the CPU: one loop.

_PROTOTYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p
)  # releases the interpreter's lock


@cache
def loop(kernel: Indexed) -> Callable[[Any, int, bytes], None]:
    """Return ``fill(address, n, parameters)``, compiled where nobody has done so.

    It writes ``n`` elements from ``address`` on. Each parameter takes 8 bytes of
    ``parameters``, from the first on.
    """
    digest, name = digests.digest(kernel.function), kernel.function.__name__
    address = loops.load_or_compile(
        digest, kernel.types, name, partial(_compiled, kernel)
    )
    return _PROTOTYPE(address)


@_optional.numba_unset()
def _compiled(kernel: Indexed) -> tuple[bytes, str]:
    numba = _optional.numba()
    types = numba.core.types
    function, lanes = cpu.device_function(closed(kernel.function)), kernel.lanes

    def values(*args):  # type: ignore[no-untyped-def] # noqa: ANN002, ANN202
        return (function(*args),)

    called = function if lanes > 1 else cpu.device_function(values)
    cast, stored = kernel.result.type, computed(kernel.result)
    if stored == types.boolean:  # whose values are single bits, but not in memory
        stored = types.uint8

    def fill(out, n, parameters):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        args, whole = parameters[0], n // lanes
        for index in range(whole):
            row = called(np.uint64(index), *args)
            for lane in range(lanes):
                out[lanes * index + lane] = cast(row[lane])
        if lanes * whole < n:
            row = called(np.uint64(whole), *args)
            for lane in range(lanes):  # in steps that a compiler can count
                if lanes * whole + lane < n:
                    out[lanes * whole + lane] = cast(row[lane])

    parameters = types.Tuple([computed(dtype) for dtype in kernel.parameters])
    pointers = types.CPointer(stored), types.CPointer(parameters)
    signature = types.void(pointers[0], types.int64, pointers[1])
    options = {"error_model": "numpy", "_nrt": False}
    compiled = numba.cfunc(signature, **options)(fill)
    return compiled._library._get_compiled_object(), compiled.native_name  # noqa: SLF001


# On CUDA: a thread an index.


def cubin(kernel: Indexed, capability: tuple[int, int]) -> tuple[bytes, str]:
    """Compile a function of an index into a kernel. No GPU is needed.

    Its parameter is a slot for each of the function's own and the output's address, and
    the number of elements (64 bits).
    """

    def make() -> tuple[bytes, str]:
        reads, writes = (INDEX, *kernel.parameters), (result,) * kernel.lanes
        function = closed(kernel.function)
        code = cubins.adapter()(function, reads, writes, capability)
        macros = cubins.function_macros({"LANES": kernel.lanes}, reads, writes)
        types = ",".join(map(cpp_name, (result, *kernel.parameters)))
        entry = f"xdev::indexed<{types}>"
        return cubins.build("indexed", entry, macros, code, capability, fastmath=False)

    result, digest = kernel.result, digests.digest(kernel.function)
    parts, name = (kernel.types, capability), kernel.function.__name__
    return cubins.load_or_compile(digest, parts, name, make)
