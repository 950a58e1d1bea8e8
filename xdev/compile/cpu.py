"""Numba on the CPU: type a scalar function, and make a NumPy ufunc's inner loop of it.

The inner loop has NumPy's C signature ``(char **args, intp *dimensions, intp *steps,
void *data)``. It is written in LLVM's terms, for any number of operands, so that
contiguous operands and scalars get loops of their own with constant strides, which
LLVM turns into SIMD code.
"""

from __future__ import annotations

import linecache
from dis import get_instructions
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev.compile import cpu_loop

if TYPE_CHECKING:
    from collections.abc import Callable

Dtypes = tuple[np.dtype[Any], ...]
HALF = np.dtype(np.float16)


def infer(function: Callable[..., Any], inputs: Dtypes, name: str) -> Dtypes:
    """Return the dtypes that a scalar function returns, without compiling it.

    Parameters
    ----------
    function : callable
        A Python function of scalars; a tuple that it returns is several results.
    inputs : tuple of numpy.dtype
        The arguments' dtypes; float16 is computed in float32.
    name : str
        What errors call the function.

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
    except (numba.core.errors.NumbaError, NotImplementedError, AttributeError) as error:
        types = ", ".join(map(str, inputs))
        message = f"cannot compile {name}({types}): {_reason(error, function)}"
        raise TypeError(message) from error


def loop(
    function: Callable[..., Any], inputs: Dtypes, outputs: Dtypes, *, fastmath: bool
) -> Any:
    """Compile the inner loop of a NumPy ufunc.

    Parameters
    ----------
    function : callable
        The scalar Python function.
    inputs, outputs : tuple of numpy.dtype
        What the loop reads and writes; results are cast to ``outputs``.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.

    Returns
    -------
    CFunc
        Numba's C function; its ``address`` is valid while the object lives.

    Raises
    ------
    TypeError
        The function cannot be compiled, or a result cannot be cast.
    """
    numba = _optional.numba()
    types = numba.core.types
    options = {"error_model": "numpy", "fastmath": fastmath, "forceinline": True}
    scalar = numba.njit(**options)(function)
    operands = [_operand(dtype) for dtype in inputs + outputs]
    nin = len(inputs)
    body = cpu_loop.Body(
        scalar, operands[:nin], operands[nin:], branches=_branches(function)
    )

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def run(typing: Any, args: Any, dimensions: Any, steps: Any) -> Any:
        body.resolve(typing)

        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            cpu_loop.emit(context, builder, body, values)
            return context.get_dummy_value()

        return types.void(args, dimensions, steps), generate

    def inner(args, dimensions, steps, data):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202, ARG001
        run(args, dimensions, steps)

    pointer = types.voidptr
    try:
        return numba.cfunc(types.void(pointer, pointer, pointer, pointer))(inner)
    except numba.core.errors.NumbaError as error:
        name = function.__name__
        message = f"cannot compile {name}{inputs}: {_reason(error, function)}"
        raise TypeError(message) from error


def device_function(function: Callable[..., Any]) -> Any:
    """Return a function that other compiled functions can call, on every device."""
    options = {"error_model": "numpy", "forceinline": True}
    return _optional.numba().njit(**options)(function)


def computed(dtype: np.dtype[Any]) -> Any:
    """Return the Numba type that values of a dtype are computed in."""
    numba = _optional.numba()
    if dtype == HALF:
        return numba.core.types.float32
    return numba.np.numpy_support.from_dtype(dtype)


def _branches(function: Callable[..., Any]) -> bool:
    """Say whether a function, or a compiled one that it calls, has conditions."""
    code = function.__code__
    if any(
        i.opname.startswith(("POP_JUMP", "JUMP_IF")) for i in get_instructions(code)
    ):
        return True
    named = (function.__globals__.get(name) for name in code.co_names)
    called = (getattr(value, "py_func", None) for value in named)
    return any(_branches(one) for one in called if one is not None)


def _operand(dtype: np.dtype[Any]) -> cpu_loop.Operand:
    if dtype == HALF:
        types = _optional.numba().core.types
        widen, narrow = _half()
        return cpu_loop.Operand(types.uint16, types.float32, 2, widen, narrow)
    kind = computed(dtype)
    return cpu_loop.Operand(kind, kind, dtype.itemsize)


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
            }.get(part, f"returns {part}, which is no number")
            if isinstance(part, types.Optional):
                what = "returns nothing on some path"
            raise NotImplementedError(what)
    return tuple(map(numpy_support.as_dtype, parts))


def _reason(error: Exception, function: Callable[..., Any]) -> str:
    """Return the core of Numba's message and the source line it is about."""
    kept: list[str] = []
    for line in str(error).splitlines():
        if line.startswith(("There are", "File", "During", "Overload")):
            break
        if line.strip() and not line.startswith("Failed in"):
            kept.append(line.strip())
    code = function.__code__
    number = getattr(getattr(error, "loc", None), "line", code.co_firstlineno)
    source = linecache.getline(code.co_filename, number).strip()
    return f"{' '.join(kept)}\n  {code.co_filename}:{number}: {source}"


@cache
def _half() -> tuple[Any, Any]:
    """Return the conversions of float16's bits to float32 and back, rounded to even.

    They are integer arithmetic, since not every CPU has instructions for it.
    """
    njit = _optional.numba().njit(forceinline=True)
    above, below = np.float32(2.0**112), np.uint32(126 << 23)
    magic = np.float32(0.5)

    def widen(half):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        shifted = np.uint32(half & 0x7FFF) << np.uint32(13)
        value = np.uint32(shifted).view(np.float32) * above
        bits = np.float32(value).view(np.uint32)
        if shifted >= 0x0F800000:  # noqa: PLR2004 - inf and nan
            bits = np.uint32(bits | 0x7F800000)
        bits = np.uint32(bits | (np.uint32(half & 0x8000) << np.uint32(16)))
        return np.uint32(bits).view(np.float32)

    def narrow(value):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        bits = np.uint32(np.float32(value).view(np.uint32))
        sign = np.uint32(bits & 0x80000000)
        bits = np.uint32(bits ^ sign)
        if bits > 0x7F800000:  # noqa: PLR2004 - nan
            half = np.uint32(0x7E00)
        elif bits >= 0x47800000:  # noqa: PLR2004 - at least 2**16
            half = np.uint32(0x7C00)
        elif bits < 0x38800000:  # noqa: PLR2004 - subnormal: an addition rounds
            rounded = np.float32(np.uint32(bits).view(np.float32) + magic)
            half = np.uint32(np.float32(rounded).view(np.uint32) - below)
        else:
            odd = np.uint32((bits >> 13) & 1)
            half = np.uint32(np.uint32(bits - 0x38000000 + 0xFFF + odd) >> 13)
        return np.uint16(half | (sign >> 16))

    return njit(widen), njit(narrow)
