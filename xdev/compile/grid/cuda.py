"""Kernels over a grid on CUDA: one thread an index."""

from __future__ import annotations

import importlib
import warnings
from contextlib import contextmanager, nullcontext
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev._forks import module_lock
from xdev.compile import cubins, digests, numba_cuda
from xdev.compile.cubins import FUNCTION
from xdev.compile.errors import explained
from xdev.compile.grid import DIMENSIONS, Grid, KernelMemory, check_result, cpu, target
from xdev.compile.numpy_functions import CUDA, replaced
from xdev.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Loops over ``range`` on CUDA, in the form that its compiler knows best.
#
# numba-cuda counts down how often a loop still runs, beside the loop's own index, and
# says so in a way that the compiler neither simplifies nor unrolls well. A range
# whose step is 1 is a ``for`` loop of C here.

# What ``range`` of one or two arguments is called in a function whose loops may be
# compiled so. Everywhere else it is ``range`` itself.
RANGE = "xdev_range"
MARK = "xdev.more"  # what the test of such a loop is called in LLVM's language
_lock = module_lock()  # guards the making of the next function's value


def with_spans(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose ranges are C's loops; numba-cuda alone compiles it.

    Parameters
    ----------
    function : callable
        A Python function.
    """
    namespace: dict[str, Any] = function.__globals__
    if namespace.get(RANGE) is not range:
        return function
    with _lock:
        names = {**namespace, RANGE: _range()}
    code, defaults, cells = (
        getattr(function, f"__{part}__") for part in ("code", "defaults", "closure")
    )
    copy = FunctionType(code, names, function.__name__, defaults, cells)
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


@cache
def _range() -> Any:
    """Let numba-cuda know the loops; return what the name stands for."""
    extending, cgutils, imputils = (
        importlib.import_module(f"numba.cuda.{name}")
        for name in ("extending", "cgutils", "core.imputils")
    )
    types = _optional.numba().core.types

    class Span(types.SimpleIteratorType):  # type: ignore[misc, name-defined]
        """A loop's index, which every turn reads and moves on, and its end."""

        def __init__(self, kind: Any) -> None:
            super().__init__(f"xdev_span({kind})", kind)

    @extending.register_model(Span)
    class _SpanModel(extending.models.StructModel):  # type: ignore[misc, name-defined]
        def __init__(self, manager: Any, kind: Any) -> None:
            one = kind.yield_type
            members = [("place", types.CPointer(one)), ("stop", one)]
            super().__init__(manager, kind, members)

    @extending.intrinsic  # type: ignore[untyped-decorator]
    def span(typing: Any, first: Any, last: Any = None) -> Any:
        one = last is None or isinstance(last, types.Omitted)
        signature = typing.resolve_function_type(
            typing.resolve_value_type(range), (first,) if one else (first, last), {}
        )
        if signature is None:
            return None
        kind = signature.args[0]  # the index's type is that of Numba's own range

        def begin(context: Any, builder: Any, signature: Any, bounds: Any) -> Any:
            helper = context.make_helper(builder, signature.return_type)
            start = context.get_constant(kind, 0) if one else bounds[0]
            helper.place = cgutils.alloca_once_value(builder, start)
            helper.stop = bounds[0] if one else bounds[1]
            return helper._getvalue()  # noqa: SLF001 - how Numba names it

        return Span(kind)(kind, types.Omitted(None) if one else kind), begin

    def turn(
        context: Any, builder: Any, signature: Any, args: Any, result: Any
    ) -> None:
        (kind,) = signature.args
        span = context.make_helper(builder, kind, value=args[0])
        index = builder.load(span.place)
        signed = kind.yield_type.signed
        less = builder.icmp_signed if signed else builder.icmp_unsigned
        result.set_valid(less("<", index, span.stop, name=MARK))
        result.yield_(index)
        flags = ["nsw" if signed else "nuw"]  # past the end nobody looks at it
        builder.store(builder.add(index, index.type(1), flags=flags), span.place)

    untracked = imputils.iternext_impl(imputils.RefType.UNTRACKED)
    extending.lower_builtin("iternext", Span)(untracked(turn))
    return span


# Which loops of a function are unrolled on CUDA, and how often.
#
# By itself the compiler unrolls four times, and more often only the shortest loops. A
# thread then comes back to a sector of 32 bytes that it reads along when other
# threads have driven it out of the cache: eight neighbours of 4 bytes are a whole
# one. Of 4, 8 and 16 turns, 16 was the quickest on an H200: 4 % before CUDA C++,
# which does as much.

TURNS = 16
LONG = 200  # instructions of a loop as they come from Numba, most of which go away


def unroll(function: Any, ir: Any) -> None:
    """Ask for the unrolling of a function's short loops over ranges.

    They are those whose body has no branch, and calls no function.

    Parameters
    ----------
    function : llvmlite.ir.Function
        The function, not yet handed to the compiler.
    ir : module
        llvmlite's ``ir``.
    """
    for head in function.blocks:
        body = next(iter(_targets(head, ir)), head)
        inside = [*head.instructions, *body.instructions]
        if (
            any(getattr(one, "name", "").startswith(MARK) for one in head.instructions)
            and _targets(body, ir) == [head]
            and not any(isinstance(one, ir.CallInstr) for one in inside)
            and len(inside) <= LONG
        ):
            _mark(function.module, body, ir)


def _mark(module: Any, last: Any, ir: Any) -> None:
    """Say to a loop's last branch how often the loop is unrolled."""
    times = ir.Constant(ir.IntType(32), TURNS)
    name = ir.MetaDataString(module, "llvm.loop.unroll.count")
    count = module.add_metadata([name, times])
    own = ir.MetaDataString(module, last.name)  # each loop has a node of its own,
    node = module.add_metadata([own, count])
    node.operands = (node, count)  # which LLVM knows by its pointing to itself
    last.terminator.set_metadata("llvm.loop", node)


def _targets(block: Any, ir: Any) -> list[Any]:
    """Return where a block may go on."""
    operands = getattr(block.terminator, "operands", ())
    return [one for one in operands if isinstance(one, ir.Block)]


# Indices of 32 bits on CUDA: a negative one counts from the end, in one step.

BITS = 32


@contextmanager
def short(ir: Any) -> Iterator[None]:
    """Let numba-cuda compile for arrays of fewer than 2**31 elements.

    Its own code extends an index that was loaded from memory to 64 bits, and then takes
    eight instructions to add the extent to it where it is negative. As an unsigned
    number of 32 bits a negative index is large, and the sum is not: the smaller of both
    is the place, and no index that is in bounds has another one.

    Parameters
    ----------
    ir : module
        llvmlite's ``ir``, as numba-cuda has it.
    """
    arrays: Any = importlib.import_module("numba.cuda.np.arrayobj")
    lock = importlib.import_module("numba.cuda.core.compiler_lock").global_compiler_lock
    half = ir.IntType(BITS)

    def fixed(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
        extended = kind.signed and getattr(index, "opname", None) == "sext"
        if not extended or index.operands[0].type.width > BITS:
            return real(context, builder, kind, index, size)
        place = builder.trunc(index, half)
        other = builder.add(place, builder.trunc(size, half))
        less = builder.icmp_unsigned("<", other, place)
        return builder.zext(builder.select(less, other, place), size.type)

    with lock:  # others compile before or after
        real = arrays.fix_integer_index
        with replaced((arrays, "fix_integer_index", fixed)):
            yield


def cubin(
    grid: Grid,
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
    sizes = {"WORDS": grid.words, "INDICES": grid.indices, "NARROW": int(narrow)}
    macros = cubins.defined({"FUNCTION": FUNCTION, **sizes})

    def make() -> tuple[bytes, str]:
        code = ltoir(grid, capability, narrow=narrow, small=small)
        return cubins.build(
            "grid", "xdev::grid", macros, code, capability, fastmath=grid.fastmath
        )

    digest, name = digests.digest(grid.function), grid.function.__name__
    return cubins.load_or_compile(
        digest, (*grid.parts, narrow, small, capability), name, make
    )


def ltoir(
    grid: Grid, capability: tuple[int, int], *, narrow: bool, small: bool
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
    compiler = target(CUDA)

    @compiler.extending.intrinsic  # type: ignore[untyped-decorator]
    def run(_typing: Any, i: Any, j: Any, k: Any, words: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
            memory = KernelMemory(compiler, context, builder, args[3], narrow=narrow)
            values = grid.operands(memory, args[:DIMENSIONS], grid.load(memory))
            call(context, builder, grid, values)
            return context.get_dummy_value()

        return types.void(i, j, k, words), generate

    def entry(i, j, k, words):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        run(i, j, k, words)

    signature = types.void(*[types.int64] * DIMENSIONS, types.voidptr)
    ir = compiler.cgutils.ir
    slow = _optional.numba().core.errors.NumbaPerformanceWarning
    with (
        warnings.catch_warnings(action="ignore", category=slow),  # of what is refused
        explained(grid.function, grid.shown, " for CUDA"),
    ):
        try:
            with short(ir) if small else nullcontext():
                return numba_cuda.compiled(
                    entry, signature, FUNCTION, capability, fastmath=grid.fastmath
                )
        except Exception:
            # Numba knows the line; numba-cuda does not where it calls in between.
            fastmath = grid.fastmath
            cpu.device_function(
                grid.function, grid.types(), grid.shown, fastmath=fastmath
            )
            raise


def call(context: Any, builder: Any, grid: Grid, values: Sequence[Any]) -> None:
    """Emit a call of the function; an exception ends this point of the grid alone."""
    types = _optional.numba().core.types
    function = with_spans(grid.function)
    compiled = context.compile_subroutine(
        builder, function, types.void(*grid.types()), caching=False
    )
    check_result(grid.function, grid.shown, compiled.signature.return_type)
    code = compiled.library.get_function(compiled.fndesc.llvm_func_name)
    unroll(code, target(CUDA).cgutils.ir)
    context.call_internal_no_propagate(
        builder, compiled.fndesc, compiled.signature, values
    )
