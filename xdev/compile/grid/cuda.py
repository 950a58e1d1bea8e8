"""Kernels over a grid on CUDA: one thread an index."""

from __future__ import annotations

import importlib
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev.compile import cubins, digests, elementwise, numba_cuda
from xdev.compile.elementwise import FUNCTION
from xdev.compile.grid import DIMENSIONS, Grid, check_result, cpu, cuda_loops, emission
from xdev.compile.grid.emission import Memory, Target
from xdev.compile.refusals import cause, compiler_errors, refusal
from xdev.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.compile.grid import Cores

Block = tuple[int, int, int]


@final
@dataclass(frozen=True, slots=True)
class Template:
    """How the template is filled in for a kernel."""

    grid: Grid | Cores
    narrow: bool = False
    template: str = "grid"
    entry: str = "xdev::grid"

    def macros(self) -> elementwise.Macros:
        """Return the template's macros."""
        words = {
            "FUNCTION": FUNCTION,
            "WORDS": self.grid.words,
            "INDICES": self.grid.indices,
            "NARROW": int(self.narrow),
        }
        return [(f"XDEV_{k}", str(v)) for k, v in words.items()]


@cache
def target() -> Target:
    """Return numba-cuda's own functions."""
    _optional.numba_cuda()
    cgutils, arrays, functions = (
        importlib.import_module(f"numba.cuda.{name}")
        for name in ("cgutils", "np.arrayobj", "nvvmutils")
    )

    def add_float(builder: Any, pointer: Any, value: Any) -> Any:
        bits = {"float": 32, "double": 64}[str(value.type)]
        declare = getattr(functions, f"declare_atomic_add_float{bits}")
        return builder.call(declare(builder.module), (pointer, value))

    return Target(cgutils, arrays, add_float, attrgetter("fndesc.call_conv"))


def cubin(
    grid: Grid | Cores,
    capability: tuple[int, int],
    *,
    narrow: bool = False,
    small: bool = False,
) -> tuple[bytes, str]:
    """Compile a function of indices into a kernel. No GPU is needed.

    Its one parameter is the memory of its arguments, by value.

    Parameters
    ----------
    grid : Grid
        The function and its types.
    capability : (int, int)
        The compute capability, as in ``(9, 0)``.
    narrow : bool
        Whether it is only for launches with a thread for each point, and for extents,
        shapes and strides that fit into 32 bits with their sign; of a ``Grid`` only.
    small : bool
        Whether it is only for arrays of fewer than 2**31 elements.

    Returns
    -------
    (bytes, str)
        The cubin, and the kernel's name in it.

    Raises
    ------
    TypeError
        The function cannot be compiled for these types; the text has the reason and
        the source line.
    DeviceUnavailableError
        The CUDA compiler is missing or its parts do not fit together.
    """
    template = Template(grid, narrow)

    def make() -> tuple[bytes, str]:
        code = ltoir(grid, capability, narrow=narrow, small=small)
        return elementwise.build(template, code, capability, fastmath=grid.fastmath)

    digest, name = digests.digest(grid.function), grid.function.__name__
    return cubins.kept(digest, (*grid.parts, narrow, small, capability), name, make)


def ltoir(
    grid: Grid | Cores, capability: tuple[int, int], *, narrow: bool, small: bool
) -> bytes:
    """Compile the function alone: ``void(int64 i, int64 j, int64 k, const void*)``.

    Raises
    ------
    TypeError
        The function cannot be compiled for these types.
    """
    if not _optional.installed("numba_cuda"):
        message = f"kernels on CUDA need numba-cuda: {_optional.CUDA_EXTRA}"
        raise DeviceUnavailableError(message)
    _optional.numba_cuda()
    numba = _optional.numba()
    types = numba.core.types
    extending = importlib.import_module("numba.cuda.extending")
    emission.serve(extending, target())

    @extending.intrinsic  # type: ignore[untyped-decorator]
    def run(_typing: Any, i: Any, j: Any, k: Any, words: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, given: Any) -> Any:
            memory = Memory(target(), context, builder, given[3], narrow=narrow)
            values = grid.operands(memory, given[:DIMENSIONS], grid.load(memory))
            call(context, builder, grid, values)
            return context.get_dummy_value()

        return types.void(i, j, k, words), generate

    def entry(i, j, k, words):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        run(i, j, k, words)

    signature = types.void(*[types.int64] * DIMENSIONS, types.voidptr)
    ir = target().cgutils.ir
    slow = _optional.numba().core.errors.NumbaPerformanceWarning
    with warnings.catch_warnings(action="ignore", category=slow):  # of what is refused
        try:
            with cuda_loops.short(ir) if small else nullcontext():
                return numba_cuda.compiled(
                    entry, signature, FUNCTION, capability, fastmath=grid.fastmath
                )
        except compiler_errors() as error:
            # Numba knows the line; numba-cuda does not where it calls in between.
            shown, fastmath = grid.arguments, grid.fastmath
            cpu.device_function(grid.function, grid.types(), shown, fastmath=fastmath)
            said = refusal(grid.function, grid.arguments, error, " for CUDA")
            raise said from cause(error)


def call(context: Any, builder: Any, grid: Grid | Cores, values: Sequence[Any]) -> None:
    """Emit a call of the function; an exception ends this point of the grid alone."""
    types = _optional.numba().core.types
    function = cuda_loops.replaced(grid.function)
    compiled = context.compile_subroutine(
        builder, function, types.void(*grid.types()), caching=False
    )
    check_result(grid.function, grid.arguments, compiled.signature.return_type)
    made = compiled.library.get_function(compiled.fndesc.llvm_func_name)
    cuda_loops.unroll(made, target().cgutils.ir)
    context.call_internal_no_propagate(
        builder, compiled.fndesc, compiled.signature, values
    )
