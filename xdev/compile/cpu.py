"""Numba on the CPU: type a scalar function, and make a NumPy ufunc's inner loop of it.

The inner loop has NumPy's C signature ``(char **args, intp *dimensions, intp *steps,
void *data)``. It is written in LLVM's terms, for any number of operands, so that
contiguous operands and scalars get loops of their own with constant strides, which
LLVM turns into SIMD code.
"""

from __future__ import annotations

from dis import get_instructions
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev.compile import cpu_body, cpu_loop, loops, refusals, subroutines
from xdev.compile.halves import conversions, is_half
from xdev.compile.refusals import cause, compiler_errors, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

Dtypes = tuple[np.dtype[Any], ...]
LIGHT = 2  # operations that take less time than loading and storing


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
    try:
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
    except compiler_errors() as error:
        raise refusal(function, inputs, error) from cause(error)


@_optional.numba_unset()
def loop(
    function: Callable[..., Any],
    inputs: Dtypes,
    outputs: Dtypes,
    *,
    fastmath: bool,
    reorderable: bool = False,
) -> tuple[str, bytes]:
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
    (str, bytes)
        The C function's name, and the object file that it is in.

    Raises
    ------
    TypeError
        The function cannot be compiled, or a result cannot be cast.
    """
    numba = _optional.numba()
    types = numba.core.types
    options = {"error_model": "numpy", "fastmath": fastmath, "forceinline": True}
    bare = {"no_cpython_wrapper": True}  # Python itself calls neither function
    scalar = numba.njit(no_cfunc_wrapper=True, **bare, **options)(function)
    operands = [_operand(dtype) for dtype in inputs + outputs]
    nin = len(inputs)
    try:
        with subroutines.unraising(wrapping=True):
            scalar.compile(tuple(operand.computed for operand in operands[:nin]))
    except compiler_errors() as error:
        raise refusal(function, inputs, error) from cause(error)
    (compiled,) = scalar.overloads.values()
    refusals.check_faults(function, inputs, compiled)
    body = cpu_body.Body(
        scalar,
        operands[:nin],
        operands[nin:],
        branches=_branches(function),
        light=_light(function) and refusals.is_straight(compiled),
        work=cpu_body.work_of(compiled),
    )

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def run(typing: Any, args: Any, dimensions: Any, steps: Any, data: Any) -> Any:
        body.resolve(typing)

        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            cpu_loop.emit(context, builder, body, values, reorderable=reorderable)
            return context.get_dummy_value()

        return types.void(args, dimensions, steps, data), generate

    def inner(args, dimensions, steps, data):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        run(args, dimensions, steps, data)

    pointer = types.voidptr
    try:
        signature = types.void(pointer, pointer, pointer, pointer)
        return loops.code_of(numba.cfunc(signature, **bare)(inner))
    except compiler_errors() as error:
        raise refusal(function, inputs, error) from cause(error)


@_optional.numba_unset()
def device_function(function: Callable[..., Any]) -> Any:
    """Return a function that other compiled functions can call, on every device."""
    options = {"error_model": "numpy", "forceinline": True}
    made = _optional.numba().njit(**options)(function)
    compiler = made._compiler  # noqa: SLF001 - compiles wherever it is first called
    usual = compiler.compile

    def compile_(*args: Any) -> Any:
        with subroutines.unraising(wrapping=True):
            return usual(*args)

    compiler.compile = compile_
    return made


def computed(dtype: np.dtype[Any]) -> Any:
    """Return the Numba type that values of a dtype are computed in."""
    numba = _optional.numba()
    if is_half(dtype):
        return numba.core.types.float32
    return numba.np.numpy_support.from_dtype(dtype)


def _branches(function: Callable[..., Any]) -> bool:
    """Say whether a function, or a compiled one that it calls, has conditions."""
    code = function.__code__
    if any(
        i.opname.startswith(("POP_JUMP", "JUMP_IF")) for i in get_instructions(code)
    ):
        return True
    named = [function.__globals__.get(name) for name in code.co_names]
    named += [cell.cell_contents for cell in function.__closure__ or ()]
    called = (getattr(value, "py_func", None) for value in named)
    return any(_branches(one) for one in called if one is not None)


def _light(function: Callable[..., Any]) -> bool:
    """Say whether a function is an operation or two, as ``a * x + y``, and casts."""
    instructions = list(get_instructions(function))
    names = [i.opname for i in instructions]
    read = [i.argval for i in instructions if i.opname == "LOAD_GLOBAL"]
    casts = sum(isinstance(function.__globals__.get(name), type) for name in read)
    calls = sum(name.startswith("CALL") for name in names)
    operations = sum(name.startswith(("BINARY", "UNARY", "COMPARE")) for name in names)
    heavy = ("JUMP", "POP_JUMP", "FOR_ITER")
    straight = not any(name.startswith(heavy) for name in names)
    return operations <= LIGHT and calls == casts and straight


def _operand(dtype: np.dtype[Any]) -> cpu_body.Operand:
    if is_half(dtype):
        types = _optional.numba().core.types
        widen, narrow = conversions(dtype)
        return cpu_body.Operand(types.uint16, types.float32, 2, widen, narrow)
    kind = computed(dtype)
    return cpu_body.Operand(kind, kind, dtype.itemsize)


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
            what = {
                types.none: "returns nothing",
            }.get(part, f"returns {part}, which is not a number")
            if isinstance(part, types.Optional):
                what = "returns nothing on some path"
            raise NotImplementedError(what)
    return tuple(map(numpy_support.as_dtype, parts))
