"""The adapters to numba-cuda and its successor: a scalar function becomes LTO-IR.

Each is a function; :mod:`~xdev.compile.cubins` chooses.
"""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from threading import get_ident
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev._forks import module_lock
from xdev.compile import cubins, numpy_functions
from xdev.compile.digests import copied
from xdev.compile.errors import explained
from xdev.compile.formulas import Dtypes, computed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_lock = module_lock()  # guards the successor's idea of the current device


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
    inputs, outputs : tuple of numpy.dtype
        What it takes and what its results are cast to; halves are float32 there.
    capability : (int, int)
        The compute capability to compile for, as in ``(9, 0)``. No GPU is needed.
    fastmath : bool
        Whether floating point arithmetic may be reordered and approximated.

    Raises
    ------
    TypeError
        Numba cannot compile the function for these types; the text has its reason
        and the source line.
    """
    _optional.numba_cuda()
    types = _optional.numba().core.types
    kinds = [tuple(map(computed, dtypes)) for dtypes in (inputs, outputs)]
    apply = _applied(function, *kinds)

    def elementwise(reads, writes):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        apply(reads, writes)

    pointers = (types.Tuple(list(map(types.CPointer, each))) for each in kinds)
    signature = types.void(*pointers)
    options = {"fastmath": fastmath, "wrapping": True}
    with explained(function, inputs, " for CUDA"):
        return compiled(elementwise, signature, capability, **options)


@_optional.numba_unset()
def compiled(
    function: Callable[..., Any],
    signature: Any,
    capability: tuple[int, int],
    *,
    fastmath: bool,
    wrapping: bool = False,
) -> bytes:
    """Compile a function of Numba's types to LTO-IR; raises Numba's own errors.

    Parameters
    ----------
    function : callable
        A Python function.
    signature : Numba signature
        Its types; a tuple's items are passed one by one.
    capability, fastmath
        As :func:`ltoir` takes them.
    wrapping : bool
        As :func:`xdev.compile.numpy_functions.served` takes it.
    """
    served = numpy_functions.unraising(numpy_functions.CUDA, wrapping=wrapping)
    with _compiling_for(capability), served:
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

    numba-cuda compiles every function that the outer one calls for the current device,
    which asks for a driver. For this thread that device is a stand-in meanwhile.
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
    with explained(function, inputs, " for CUDA"), _lock, device:
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
    """Return a function as this compiler calls it.

    So are the functions inside that Numba compiled, which this one does not know.
    """
    return _mlir("cuda").jit(copied(function, _called), device=True)


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
    loop: Callable[..., None] = namespace["elementwise"]
    return loop
