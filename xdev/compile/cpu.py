"""Numba on the CPU: type a scalar function, and make a NumPy ufunc's inner loop of it.

The inner loop has NumPy's C signature ``(char **args, intp *dimensions, intp *steps,
void *data)``. It is written in LLVM's terms, for any number of operands, so that
contiguous operands and scalars get loops of their own with constant strides, which
LLVM turns into SIMD code.
"""

from __future__ import annotations

import re
from dis import get_instructions
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from xdev import _optional
from xdev.compile import cpu_loop, digests, errors, numpy_functions
from xdev.compile.cpu_loop import ALONE, BINARY, LINE, UNROLLED, Advice, Emitter
from xdev.compile.cpu_math import CALLED, SYMBOLS, vectorized
from xdev.compile.formulas import Dtypes, computed, is_half, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

JUMPS = "POP_JUMP", "JUMP_IF"  # how conditional jumps of Python's begin

# How much work a compiled scalar function is, by its instructions.

ASSIGNED = re.compile(r"\s+%[\w.]+ = (?:tail )?(.*)")
# Comparisons to which NaN is an invalid value, in SIMD code at least.
COMPARISON = re.compile(r" fcmp (?:\w+ )*?[ou][lg][te] ")
CALLING = 100  # simple instructions that take as long as a call


class Work(NamedTuple):
    """What a function costs.

    Attributes
    ----------
    amount : int
        In simple instructions.
    branches : bool
        Whether there are conditions, or loops, that are no instruction.
    compares : bool
        Whether floats are compared by size.
    """

    amount: int
    branches: bool
    compares: bool


def work_of(compiled: Any) -> Work:
    """Return the work of a function that Numba compiled (its ``CompileResult``)."""
    module = compiled.library._final_module  # noqa: SLF001
    function = module.get_function(compiled.fndesc.llvm_func_name)
    text = str(function)
    amount = sum(map(_cost, ASSIGNED.findall(text)))
    return Work(amount, len(list(function.blocks)) > 1, bool(COMPARISON.search(text)))


def _cost(operation: str) -> int:
    called = CALLED.findall(operation)
    dear = (x in SYMBOLS or not x.startswith(("llvm.", "sqrt")) for x in called)
    return CALLING if any(dear) else 1


LIGHT = 10  # simple instructions that take less time than loading and storing do
COPYING = 4  # simple instructions that copying an element is worth


class LoopOperand(NamedTuple):
    """One operand: its Numba type in memory, that of its values, its size."""

    stored: Any
    computed: Any
    itemsize: int


class Body(NamedTuple):
    """What one iteration does: a compiled scalar function between operands.

    Parameters
    ----------
    compiled : CompileResult
        The scalar function for the operands' types.
    inputs, outputs : list of LoopOperand
        What is loaded and stored.
    branches : bool
        Whether the function has conditions. SIMD code computes both sides, so that
        ``log(x) if x > 0 else 0`` would have NumPy warn of a logarithm not taken:
        the loop clears the exceptions of such a function.
    work : Work
        What the function costs.
    library : CodeLibrary or Linkable
        The function's, whose mathematics is vectorized.
    """

    compiled: Any
    inputs: list[LoopOperand]
    outputs: list[LoopOperand]
    branches: bool
    work: Work
    library: Any

    @property
    def operands(self) -> list[LoopOperand]:
        """Return the inputs, then the outputs, as NumPy has them."""
        return self.inputs + self.outputs

    @property
    def light(self) -> bool:
        """Return whether it takes less time than loading and storing do."""
        return not self.work.branches and self.work.amount <= LIGHT

    @property
    def dear(self) -> bool:
        """Return whether an iteration takes longer than copying its elements does."""
        work = self.work
        return work.branches or work.amount > COPYING * len(self.operands)

    @property
    def cases(self) -> list[list[int]]:
        """Return strides that have loops of their own: of one element, and numbers."""
        sizes, nin = [operand.itemsize for operand in self.operands], len(self.inputs)
        numbers = range(nin if nin == BINARY and self.work.amount < CALLING else 0)
        zeros = ([size * (k != j) for k, size in enumerate(sizes)] for j in numbers)
        return [sizes, *zeros]

    @property
    def blocks(self) -> bool:
        """Return whether other strides have the loop in blocks."""
        nin = len(self.inputs)
        return self.dear if nin == 1 else nin != BINARY or not self.light

    def advice(self, *, apart: bool) -> Advice:
        """Return what LLVM should know of the loop over elements.

        One that waits for memory does one cache line an iteration: two vectors of half
        a cache line, of which every other one lies in two lines where an array is not
        aligned. More and larger ones cost up to a fifth from the second level of caches
        on. One that goes element by element is no SIMD code.
        """
        if not apart:
            return ALONE if self.dear else UNROLLED
        if not self.light:
            return {}
        lanes = LINE // 2 // max(operand.itemsize for operand in self.operands)
        return {"vectorize.width": max(lanes, 1), "interleave.count": 2}

    def compute(self, emitter: Emitter, values: Sequence[Any]) -> list[Any]:
        """Emit the scalar function, between the types that are computed with."""
        context, builder = emitter.context, emitter.builder
        fndesc, signature = self.compiled.fndesc, self.compiled.signature
        context.add_linking_libs([self.library])
        parts = numpy_functions.call(context, builder, fndesc, signature, values)
        kind = signature.return_type
        kinds = getattr(kind, "types", (kind,))  # a tuple's
        return [
            context.cast(builder, part, source, o.computed)
            for o, part, source in zip(self.outputs, parts, kinds, strict=True)
        ]


@_optional.numba_unset()
def infer(function: Callable[..., Any], inputs: Dtypes) -> Dtypes:
    """Return the dtypes that a scalar function returns, without compiling it.

    Parameters
    ----------
    function : callable
        A Python function of scalars; a tuple that it returns is several results.
    inputs : tuple of numpy.dtype
        The arguments' dtypes; halves are computed in float32.

    Raises
    ------
    TypeError
        Numba cannot type the function; the text has its reason and source line.
    """
    numba = _optional.numba()
    target = numba.core.registry.cpu_target
    flags = numba.core.compiler.Flags()
    target.options.parse_as_flags(flags, {"nopython": True, "error_model": "numpy"})
    target.typing_context.refresh()
    target.target_context.refresh()
    arguments = tuple(map(computed, inputs))
    with errors.explained(function, inputs):
        result = numba.core.compiler.compile_extra(
            target.typing_context,
            target.target_context,
            function,
            args=arguments,
            return_type=None,
            flags=flags,
            locals={},
            pipeline_class=_typing_only(),
        )
        return _results(result)


@_optional.numba_unset()
def loop(
    function: Callable[..., Any],
    inputs: Dtypes,
    outputs: Dtypes,
    *,
    fastmath: bool,
    reorderable: bool = False,
) -> tuple[bytes, str]:
    """Compile the inner loop of a NumPy ufunc.

    Parameters
    ----------
    function : callable
        The scalar Python function.
    inputs, outputs : tuple of numpy.dtype
        What the loop reads and writes; results are cast to ``outputs``.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.
    reorderable : bool
        Whether reductions may fold values in pairs of neighbours.

    Returns
    -------
    (bytes, str)
        The object file, and the C function's name in it.

    Raises
    ------
    TypeError
        The function cannot be compiled, or a result cannot be cast.
    """
    numba = _optional.numba()
    operands = [_operand(dtype) for dtype in inputs + outputs]
    nin = len(inputs)
    kinds = [operand.computed for operand in operands[:nin]]
    scalar = jitted(function, kinds, inputs, fastmath=fastmath, wrapping=True)
    (compiled,) = scalar.overloads.values()
    errors.refuse_faults(function, inputs, compiled)
    branches, work = _branches(function), work_of(compiled)
    library = vectorized(compiled.library)
    body = Body(compiled, operands[:nin], operands[nin:], branches, work, library)

    def emit(context: Any, builder: Any, arguments: Sequence[Any]) -> None:
        cpu_loop.emit(context, builder, body, arguments, reorderable=reorderable)

    with errors.explained(function, inputs):
        return emitted(emit, *[numba.core.types.voidptr] * 4)


_numbers = count()


@_optional.numba_unset()
def emitted(
    emit: Callable[[Any, Any, Sequence[Any]], None], *kinds: Any
) -> tuple[bytes, str]:
    """Compile a C function without a result, whose instructions are emitted.

    Parameters
    ----------
    emit : callable
        ``emit(context, builder, arguments)``.
    *kinds
        What the function takes, in Numba's types.

    Returns
    -------
    (bytes, str)
        The object file, and the function's name in it.
    """
    core, ir = _optional.numba().core, _optional.llvm_ir()
    context, name = core.registry.cpu_target.target_context, f"xdev_{next(_numbers)}"
    library = context.codegen().create_library(name)
    library.enable_object_caching()  # else it keeps no object file
    module = library.create_ir_module(name)
    kind = ir.FunctionType(ir.VoidType(), list(map(context.get_value_type, kinds)))
    builder = ir.IRBuilder(ir.Function(module, kind, name).append_basic_block("entry"))
    flags = core.targetconfig.ConfigStack().enter(core.compiler.Flags())
    with flags, context.push_code_library(library):
        emit(context, builder, builder.function.args)
    builder.ret_void()
    library.add_ir_module(module)
    library.finalize()
    return library._get_compiled_object(), name  # noqa: SLF001


def jitted(
    function: Callable[..., Any],
    kinds: Sequence[Any],
    shown: Sequence[object],
    *,
    fastmath: bool,
    wrapping: bool = False,
    **options: bool,
) -> Any:
    """Return Numba's dispatcher of a function that loops call, compiled for types.

    Parameters
    ----------
    function : callable
        A Python function.
    kinds : sequence
        What it takes, in Numba's types.
    shown : sequence
        The types that errors show.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.
    wrapping : bool
        As :func:`~xdev.compile.numpy_functions.served` takes it.
    **options
        Numba's others.

    Raises
    ------
    TypeError
        It cannot be compiled for them.
    """
    bare = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # a loop calls it
    options |= {"fastmath": fastmath, **bare}
    dispatcher = device_function(function, wrapping=wrapping, **options)
    with errors.explained(function, shown):
        dispatcher.compile(tuple(kinds))
    return dispatcher


@_optional.numba_unset()
def device_function(
    function: Callable[..., Any], *, wrapping: bool = True, **options: bool
) -> Any:
    """Return a function that other compiled functions can call, on every device.

    What it reads from outside must not change: the digest is that of now.
    """
    options |= {"forceinline": True}
    dispatcher = _optional.numba().njit(error_model="numpy", **options)(function)
    dispatcher.xdev_digest = digests.digest(function)
    compiler = dispatcher._compiler  # noqa: SLF001 - compiles wherever it is first called
    usual = compiler.compile

    def compile_(*args: Any) -> Any:
        with numpy_functions.unraising(wrapping=wrapping):
            return usual(*args)

    compiler.compile = compile_
    return dispatcher


def _branches(function: Callable[..., Any]) -> bool:
    """Say whether a function, or a compiled one that it calls, has conditions."""
    code = function.__code__
    if any(i.opname.startswith(JUMPS) for i in get_instructions(code)):
        return True
    named = [function.__globals__.get(name) for name in code.co_names]
    named += [cell.cell_contents for cell in function.__closure__ or ()]
    called = (getattr(value, "py_func", None) for value in named)
    return any(_branches(one) for one in called if one is not None)


def _operand(dtype: np.dtype[Any]) -> LoopOperand:
    kind = computed(dtype)
    return LoopOperand(stored(dtype) if is_half(dtype) else kind, kind, dtype.itemsize)


@cache
def _typing_only() -> Any:
    """Return Numba's pipeline cut off after type inference."""
    numba = _optional.numba()
    compiler, machinery = numba.core.compiler, numba.core.compiler_machinery

    @machinery.register_pass(mutates_CFG=False, analysis_only=True)
    class Answer(machinery.FunctionPass):  # type: ignore[misc, name-defined]
        _name = "xdev_answer"

        def __init__(self) -> None:
            machinery.FunctionPass.__init__(self)

        def run_pass(self, state: Any) -> bool:
            raise compiler._EarlyPipelineCompletion(state.return_type)  # noqa: SLF001

    class Typing(compiler.CompilerBase):  # type: ignore[misc, name-defined]
        def define_pipelines(self) -> list[Any]:
            build = compiler.DefaultPassBuilder
            passes = build.define_untyped_pipeline(self.state)
            inference = numba.core.typed_passes.NopythonTypeInference
            passes.add_pass(inference, "nopython frontend")
            passes.add_pass(Answer, "answer")
            passes.finalize()
            return [passes]

    return Typing


def _results(result: Any) -> Dtypes:
    """Turn what a function returns, in Numba's types, into dtypes."""
    numba = _optional.numba()
    types, numpy_support = numba.core.types, numba.np.numpy_support
    parts = tuple(result) if isinstance(result, types.BaseTuple) else (result,)
    parts = tuple(map(types.unliteral, parts))
    for part in parts:
        if not isinstance(part, types.Number | types.Boolean):
            what = f"returns {part}, which is not a number"
            if isinstance(part, types.NoneType):
                what = "returns nothing: return the result"
            if isinstance(part, types.Optional):
                what = "returns nothing on some path: return a number there"
            raise NotImplementedError(what)
    return tuple(map(numpy_support.as_dtype, parts))
