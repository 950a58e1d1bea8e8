"""Kernels over indices on the CPU: one loop, machine code that is kept on disk.

A process that finds it there does not load Numba.
"""

from __future__ import annotations

import ctypes
from functools import partial
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev._forks import module_lock
from xdev.compile import cpu, digests, loops
from xdev.compile.indexed import INDEX, Indexed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SLOT = 8  # bytes that each parameter has
_PROTOTYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p
)  # releases the interpreter's lock
_lock = module_lock()  # guards the dict below
_loaded: dict[Indexed, tuple[loops.Loop, Any]] = {}


def loop(kernel: Indexed) -> Callable[[Any, int, bytes], None]:
    """Return ``fill(address, n, parameters)``, compiled where nobody has done so.

    It writes ``n`` elements from ``address`` on. Each parameter takes 8 bytes of
    ``parameters``, from the first on.

    Raises
    ------
    TypeError
        The function cannot be compiled for these types.
    """
    found = _loaded.get(kernel)
    if found is None:
        with _lock:
            found = _loaded.get(kernel)
            if found is None:
                digest, name = digests.digest(kernel.function), kernel.function.__name__
                make = partial(_compiled, kernel)
                code = loops.kept(digest, kernel.types, name, make)
                found = _loaded[kernel] = code, _PROTOTYPE(code.address)
    function: Callable[[Any, int, bytes], None] = found[1]
    return function


@_optional.numba_unset()
def _compiled(kernel: Indexed) -> tuple[str, bytes]:
    numba = _optional.numba()
    types = numba.core.types
    kinds = [cpu.computed(dtype) for dtype in (INDEX, *kernel.parameters)]
    inputs = [cpu.Operand(kind, kind, SLOT) for kind in kinds]
    kind = cpu.computed(kernel.result)
    output = cpu.Operand(kind, kind, kernel.result.itemsize)
    scalar = cpu.device_function(kernel.callable())
    body = cpu.Body(scalar, inputs, [output] * kernel.lanes, branches=False)

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def run(typing: Any, out: Any, n: Any, parameters: Any) -> Any:
        body.resolve(typing)

        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            _emit(context, builder, body, values)
            return context.get_dummy_value()

        return types.void(out, n, parameters), generate

    def fill(out, n, parameters):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        run(out, n, parameters)

    signature = types.void(types.voidptr, types.int64, types.voidptr)
    try:
        return loops.code_of(numba.cfunc(signature)(fill))
    except numba.core.errors.NumbaError as error:
        message = f"cannot compile {kernel.function.__name__}: {error}"
        raise TypeError(message) from error


def _emit(context: Any, builder: Any, body: cpu.Body, arguments: Sequence[Any]) -> None:
    """Emit the loop over whole indices, then the elements of a last index in part."""
    cgutils = _optional.numba().core.cgutils
    out, n, memory = arguments
    (operand, *_), lanes = body.outputs, len(body.outputs)
    word = n.type
    managers = context.data_model_manager

    def pointer(base: Any, offset: Any, kind: Any) -> Any:
        data = managers[kind].get_data_type().as_pointer()
        return builder.bitcast(builder.gep(base, [offset], inbounds=True), data)

    parameters = []
    for k, parameter in enumerate(body.inputs[1:]):
        place = pointer(memory, word(k * SLOT), parameter.stored)
        model = managers[parameter.stored]
        parameters.append(model.load_from_data_pointer(builder, place))

    def values(index: Any) -> list[Any]:
        return body.apply(context, builder, [index, *parameters])

    def store(index: Any, lane: int, value: Any) -> None:
        element = builder.add(builder.mul(index, word(lanes)), word(lane))
        offset = builder.mul(element, word(operand.itemsize))
        place = pointer(out, offset, operand.stored)
        context.pack_value(builder, operand.stored, value, place)

    whole = builder.udiv(n, word(lanes))
    rest = builder.urem(n, word(lanes))
    with cgutils.for_range(builder, whole, intp=word) as loop_:
        for lane, value in enumerate(values(loop_.index)):
            store(loop_.index, lane, value)
    with builder.if_then(builder.icmp_unsigned("!=", rest, word(0))):
        for lane, value in enumerate(values(whole)[:-1]):
            with builder.if_then(builder.icmp_unsigned("<", word(lane), rest)):
                store(whole, lane, value)
