"""Numba, and its kin for CUDA: a scalar function becomes an inner loop, or LTO-IR.

On the CPU a function is typed, and is made the inner loop of a ufunc. On CUDA one of
two adapters makes LTO-IR of it, for numba-cuda or its successor.
"""

from __future__ import annotations

import importlib
import re
from contextlib import contextmanager
from dis import get_instructions
from functools import cache
from itertools import count
from threading import get_ident
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev._forks import module_lock
from xdev.compile import cubins, digests, errors, loops, numpy_functions
from xdev.compile.cpu_math import CALLED, SYMBOLS, vectorized
from xdev.compile.formulas import Dtypes, computed, is_half, stored
from xdev.compile.loops import CALLING, Body, Emitter, LoopOperand, Work
from xdev.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np

_lock = module_lock()  # guards numba-cuda-mlir's idea of the current device

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
    amount = 0
    for operation in ASSIGNED.findall(text):
        called = CALLED.findall(operation)
        dear = (x in SYMBOLS or not x.startswith(("llvm.", "sqrt")) for x in called)
        amount += CALLING if any(dear) else 1
    return Work(amount, len(list(function.blocks)) > 1, bool(COMPARISON.search(text)))


@_optional.numba_unset()
def infer(function: Callable[..., Any], inputs: Dtypes) -> Dtypes:
    """Return the dtypes that a scalar function returns, without compiling it.

    A tuple that it returns is several results; halves are computed in float32. Where
    Numba cannot type it, TypeError has the reason and the source line.
    """
    core = _optional.numba().core
    target, flags = core.registry.cpu_target, core.compiler.Flags()
    target.options.parse_as_flags(flags, {"nopython": True, "error_model": "numpy"})
    contexts = target.typing_context, target.target_context
    arguments = tuple(map(computed, inputs))
    compiler = core.compiler.Compiler(*contexts, None, arguments, None, flags, {})
    passes = core.compiler.DefaultPassBuilder.define_untyped_pipeline(compiler.state)
    passes.add_pass(core.typed_passes.NopythonTypeInference, "nopython frontend")
    passes.finalize()
    compiler.define_pipelines = lambda: [passes]
    compiler.state.cr = ()  # it is done then: nothing is compiled
    with errors.explained(function, inputs):
        compiler.compile_extra(function)
        return _results(compiler.state.return_type)


@_optional.numba_unset()
def loop(
    function: Callable[..., Any],
    inputs: Dtypes,
    outputs: Dtypes,
    *,
    fastmath: bool,
    reorderable: bool = False,
) -> tuple[bytes, str]:
    """Compile the inner loop of a NumPy ufunc: an object file, and the name in it.

    Parameters
    ----------
    function : callable
        The scalar Python function; TypeError if it cannot be compiled.
    inputs, outputs : tuple of numpy.dtype
        What the loop reads and writes; results are cast to ``outputs``.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.
    reorderable : bool
        Whether reductions may fold values in pairs of neighbours.
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
    """Compile a C function whose instructions ``emit(context, builder, arguments)``.

    ``kinds`` are what it takes, in Numba's types; it has no result.
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

    ``kinds`` are Numba's types, ``shown`` those that errors show; ``wrapping`` is as
    :func:`~xdev.compile.numpy_functions.served` takes it, and options are Numba's.
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
    kind, size = computed(dtype), dtype.itemsize
    if is_half(dtype):
        return LoopOperand(stored(dtype), kind, size, kind.bitwidth // 8)
    return LoopOperand(kind, kind, size, size)


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


# On CUDA, by numba-cuda.


def ltoir(
    function: Callable[..., Any],
    inputs: Dtypes,
    outputs: Dtypes,
    capability: tuple[int, int],
    *,
    fastmath: bool = False,
) -> bytes:
    """Compile a scalar function to LTO-IR with a pointer for each operand.

    In C it is ``void xdev_function(const T1*, ..., Tout*)``, which holds for every
    dtype: complex numbers, bools and several results have no common way by value.

    Parameters
    ----------
    function : callable
        A Python function of scalars; it returns a tuple where it has several results.
        TypeError if it cannot be compiled.
    inputs, outputs : tuple of numpy.dtype
        What it takes and what its results are cast to; halves are float32 there.
    capability : (int, int)
        The compute capability to compile for, as in ``(9, 0)``. No GPU is needed.
    fastmath : bool
        Whether floating point arithmetic may be reordered and approximated.
    """
    _optional.numba_cuda()
    types = _optional.numba().core.types
    kinds = [tuple(map(computed, dtypes)) for dtypes in (inputs, outputs)]
    apply = _applied(function, *kinds)

    def elementwise(reads, writes):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        apply(reads, writes)

    pointers = (types.Tuple(list(map(types.CPointer, each))) for each in kinds)
    signature = types.void(*pointers)
    options: Any = {"fastmath": fastmath, "wrapping": True}
    with errors.explained(function, inputs, " for CUDA"):
        return cuda_code(elementwise, signature, capability, **options)


@_optional.numba_unset()
def cuda_code(
    function: Callable[..., Any],
    signature: Any,
    capability: tuple[int, int],
    *,
    fastmath: bool,
    wrapping: bool = False,
    changes: Sequence[tuple[Any, str, Any]] = (),
) -> bytes:
    """Compile a function of Numba's types to LTO-IR; raises Numba's own errors.

    A tuple's items are passed one by one. ``changes`` are the compiler's attributes
    that are replaced meanwhile.
    """
    served = numpy_functions.unraising(numpy_functions.CUDA, wrapping=wrapping)
    changed = numpy_functions.replaced(*changes)
    with _compiling_for(capability), served, changed:
        code, _ = _optional.numba_cuda().compile(
            function,
            signature,
            cc=capability,
            device=True,
            abi="c",
            abi_info={"abi_name": cubins.FUNCTION},
            output="ltoir",
            fastmath=fastmath,
        )
    return bytes(code)


def _applied(function: Callable[..., Any], inputs: Any, outputs: Any) -> Any:
    """Return the compiled-code call that loads, calls ``function``, and stores."""
    types, cgutils = _optional.numba().core.types, _optional.numba().core.cgutils
    result = outputs[0] if len(outputs) == 1 else types.Tuple(outputs)
    extending = importlib.import_module("numba.cuda.extending")

    @extending.intrinsic  # type: ignore[untyped-decorator]
    def apply(_typing: Any, reads: Any, writes: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
            pointers = [cgutils.unpack_tuple(builder, each) for each in args]
            values = [
                context.unpack_value(builder, kind, pointer)
                for kind, pointer in zip(inputs, pointers[0], strict=True)
            ]
            # Not from Numba's memory, where functions with equal code are the same one,
            # whatever their globals are.
            called = result(*inputs)
            compiled = context.compile_subroutine(
                builder, function, called, caching=False
            )
            results = numpy_functions.call(
                context, builder, compiled.fndesc, called, values
            )
            for each in zip(outputs, results, pointers[1], strict=True):
                context.pack_value(builder, *each)
            return context.get_dummy_value()

        return types.void(reads, writes), generate

    return apply


@contextmanager
def _compiling_for(capability: tuple[int, int]) -> Iterator[None]:
    """Make nested functions compile for ``capability``, as the outer one does.

    numba-cuda compiles them for the current device: for this thread a stand-in.
    """
    dispatcher: Any = importlib.import_module("numba.cuda.dispatcher")
    lock = importlib.import_module("numba.cuda.core.compiler_lock").global_compiler_lock
    thread = get_ident()
    stand_in = SimpleNamespace(compute_capability=capability)
    real = dispatcher.get_current_device

    def current() -> Any:
        return stand_in if get_ident() == thread else real()

    change = dispatcher, "get_current_device", current
    with lock, numpy_functions.replaced(change):
        yield


# By numba-cuda-mlir, numba-cuda's successor.


def mlir_ltoir(
    function: Callable[..., Any],
    inputs: Dtypes,
    outputs: Dtypes,
    capability: tuple[int, int],
    *,
    fastmath: bool = False,
) -> bytes:
    """Do what :func:`ltoir` does, by numba-cuda-mlir."""
    _optional.numba_cuda_mlir()
    types, compiler = _mlir("types"), _mlir("compiler")
    # There may be no driver to ask.
    device = numpy_functions.replaced((_mlir("tools"), "_cached_cc", capability))
    from_dtype = _mlir("numba_cuda.np.numpy_support").from_dtype
    every = map(cubins.computed, (*inputs, *outputs))
    pointers = [types.CPointer(from_dtype(dtype)) for dtype in every]
    body = _elementwise(_device(function), len(inputs), len(outputs))
    with errors.explained(function, inputs, " for CUDA"), _lock, device:
        code, _ = compiler.compile(
            body,
            types.void(*pointers),
            cc=capability,
            device=True,
            abi_info={"abi_name": cubins.FUNCTION},
            output="ltoir",
            fastmath=fastmath,
        )
    return bytes(code)


def _mlir(name: str) -> Any:
    return importlib.import_module(f"numba_cuda_mlir.{name}")


def _device(function: Any) -> Any:
    """Return a function as this compiler calls it, and those inside of Numba's."""

    def called(value: Any) -> Any:
        return _device(value.py_func) if hasattr(value, "py_func") else value

    return _mlir("cuda").jit(digests.copied(function, called), device=True)


def _elementwise(function: Any, nin: int, nout: int) -> Callable[..., None]:
    """Return a function of pointers that loads, calls ``function`` and stores.

    Its source is written for the number of operands: there is no ``*args``.
    """
    reads, writes = [f"x{k}" for k in range(nin)], [f"y{k}" for k in range(nout)]
    loads, stores = (", ".join(f"{x}[0]" for x in each) for each in (reads, writes))
    head = f"def elementwise({', '.join((*reads, *writes))}):"
    lines = [head, f"    {stores} = function({loads})"]
    namespace: dict[str, Any] = {"function": function}
    exec("\n".join(lines), namespace)  # noqa: S102 - names and numbers of our own
    loop: Callable[..., None] = namespace["elementwise"]
    return loop


# Of which compiler code for CUDA is: numba-cuda before its heir.
ADAPTERS = {"numba_cuda": ltoir, "numba_cuda_mlir": mlir_ltoir}


@cache
def adapter() -> Callable[..., bytes]:
    """Return the adapter to the compiler that is installed, as :func:`ltoir`.

    Where there is none, DeviceUnavailableError has the command that installs one.
    """
    # Numba itself still has a module numba.cuda, an old one.
    for name, compiler in ADAPTERS.items():
        if _optional.installed(name):
            return compiler
    message = f"{' and '.join(ADAPTERS)} are missing: {_optional.CUDA_EXTRA}"
    raise DeviceUnavailableError(message)


def cubin(
    kernel: cubins.Template,
    function: Callable[..., Any],
    inputs: Dtypes,
    outputs: Dtypes,
    capability: tuple[int, int],
    *,
    fastmath: bool = False,
) -> tuple[bytes, str]:
    """Compile a scalar function into a kernel: a cubin, and a name. No GPU is needed.

    Parameters and errors are those of :func:`ltoir`, and DeviceUnavailableError, where
    CUDA's compiler is missing or its parts do not fit.
    """
    code = adapter()(function, inputs, outputs, capability, fastmath=fastmath)
    entry, macros = kernel.entry, kernel.macros()
    return cubins.build(
        kernel.template, entry, macros, code, capability, fastmath=fastmath
    )


def of_32_bits(target: Any) -> tuple[Any, str, Any]:
    """Return the change by which an index of 32 bits is counted from the end in them.

    It is widened after that: for arrays that are no longer. ``target`` has Numba's
    modules ``cgutils`` and ``arrays`` for CUDA.
    """
    half, name = target.cgutils.ir.IntType(32), "fix_integer_index"
    usual = getattr(target.arrays, name)

    def fix(context: Any, builder: Any, kind: Any, index: Any, length: Any) -> Any:
        widened = getattr(index, "opname", "") == "sext"
        if not (widened and index.operands[0].type == half):
            return usual(context, builder, kind, index, length)
        own = index.operands[0]
        behind = builder.add(own, builder.trunc(length, half))
        negative = builder.icmp_signed("<", own, half(0))
        return builder.sext(builder.select(negative, behind, own), length.type)

    return target.arrays, name, fix
