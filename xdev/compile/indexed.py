"""Kernels of random words: a function of an index's words writes its own elements.

The function reads no array, so that nothing but the result passes through memory. Code
for the CPU and for CUDA is kept on disk: a process that finds it does not load Numba.

The words are those of Philox-4x32-10, by which a counter and a key become four random
words without any state: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
easy as 1, 2, 3", SC'11, https://doi.org/10.1145/2063384.2063405. For CUDA they are made
in ``templates/indexed.cu``: products of 32 bits stay such only in C++.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev.compile import compilers, cubins, digests
from xdev.compile.cubins import cpp_name
from xdev.compile.formulas import computed

if TYPE_CHECKING:
    from collections.abc import Callable

    Word = np.uint64
    Words = tuple[Word, Word, Word, Word]

WORD = np.dtype(np.uint64)
WORDS = 4  # of an index
STATE = 2  # parameters in front: the key and the call
ROUNDS = 10
MULTIPLIER_0, MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL_0, WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
CONSTANTS = {
    "ROUNDS": ROUNDS,
    "MULTIPLIER_0": f"{MULTIPLIER_0}u",
    "MULTIPLIER_1": f"{MULTIPLIER_1}u",
    "WEYL_0": f"{WEYL_0}u",
    "WEYL_1": f"{WEYL_1}u",
}
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(index: Word, key: Word, call: Word) -> Words:
    """Return the four words of 32 bits that an index of a call has."""
    c0, c1, c2, c3 = index & LOW, index >> HALF, call & LOW, call >> HALF
    k0, k1 = key & LOW, key >> HALF
    for _ in range(ROUNDS):
        # What is above 32 bits is left where it is: no product looks at it.
        p0 = MULTIPLIER_0 * (c0 & LOW)
        p1 = MULTIPLIER_1 * (c2 & LOW)
        c0, c1 = (p1 >> HALF) ^ c1 ^ k0, p1
        c2, c3 = (p0 >> HALF) ^ c3 ^ k1, p0
        k0 = k0 + WEYL_0
        k1 = k1 + WEYL_1
    return c0 & LOW, c1 & LOW, c2 & LOW, c3 & LOW


@final
@dataclass(frozen=True, slots=True, eq=False)  # a key of dicts: hashed as an object
class Indexed:
    """A function of an index's words, and the types that it is compiled for.

    Each object is compiled for itself: keep one for all calls. The function takes four
    words and the parameters; it is plain Python on scalars, and may call other such
    functions that its module names. It returns the elements ``lanes * index`` and
    following, a tuple of one type if there are several.
    """

    function: Callable[..., Any]
    parameters: tuple[np.dtype[Any], ...]  # the key's and the call's too
    result: np.dtype[Any]  # of the elements; what the function returns is cast to it
    lanes: int  # how many elements an index has: 1, 2 or 4

    @property
    def types(self) -> tuple[object, ...]:
        """What decides the machine code beside the function."""
        return self.parameters, self.result, self.lanes


def closed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a plain function whose callees, which it names, are compiled ones."""

    def compiled(value: Any) -> Any:
        plain = isinstance(value, FunctionType)
        return compilers.device_function(closed(value)) if plain else value

    copy: Callable[..., Any] = digests.copied(function, compiled)
    return copy


# On the CPU: one loop.

_PROTOTYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p
)  # releases the interpreter's lock


@cache
def loop(kernel: Indexed) -> Callable[[Any, int, bytes], None]:
    """Return ``fill(address, n, parameters)``; each parameter takes 8 bytes."""
    digest, name = digests.digest(kernel.function), kernel.function.__name__
    address = digests.load_loop(digest, kernel.types, name, partial(_compiled, kernel))
    return _PROTOTYPE(address)


@_optional.numba_unset()
def _compiled(kernel: Indexed) -> tuple[bytes, str]:
    numba = _optional.numba()
    types = numba.core.types
    function, lanes = compilers.device_function(closed(kernel.function)), kernel.lanes
    words = compilers.device_function(philox)

    def values(index, key, call, *args):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN002, ANN202
        row = function(*words(index, key, call), *args)
        return row if lanes > 1 else (row,)

    called = compilers.device_function(values)
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

    Its parameter is a slot for each of the kernel's own and the output's address, the
    number of elements, and how many indices each thread has whose values are all there
    (64 bits each).
    """

    def make() -> tuple[bytes, str]:
        parameters = kernel.parameters[STATE:]
        reads = (*[WORD] * WORDS, *parameters)
        writes = (result,) * kernel.lanes
        function = closed(kernel.function)
        code = compilers.adapter()(function, reads, writes, capability)
        numbers = {"LANES": kernel.lanes, **CONSTANTS}
        macros = cubins.function_macros(numbers, reads, writes)
        types = ",".join(map(cpp_name, (result, *parameters)))
        entry = f"xdev::indexed<{types}>"
        return cubins.build("indexed", entry, macros, code, capability, fastmath=False)

    result, digest = kernel.result, digests.digest(kernel.function)
    parts, name = (kernel.types, capability), kernel.function.__name__
    return cubins.load_or_compile(digest, parts, name, make)
