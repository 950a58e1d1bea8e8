"""Numba on the CPU: type a scalar function, and make it the inner loop of a ufunc."""

from __future__ import annotations

import re
from dis import get_instructions
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev.compile import digests, errors, loops, numpy_functions
from xdev.compile.cpu_math import CALLED, SYMBOLS, vectorized
from xdev.compile.formulas import Dtypes, computed, is_half, stored
from xdev.compile.loops import CALLING, Body, Emitter, LoopOperand, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

JUMPS = "POP_JUMP", "JUMP_IF"  # how conditional jumps of Python's begin

# How much work a compiled scalar function is, by its instructions.

ASSIGNED = re.compile(r"\s+%[\w.]+ = (?:tail )?(.*)")
# Comparisons to which NaN is an invalid value, in SIMD code at least.
COMPARISON = re.compile(r" fcmp (?:\w+ )*?[ou][lg][te] ")


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
        emitter = Emitter(context, builder)
        loops.emit(emitter, body, arguments, reorderable=reorderable)

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
