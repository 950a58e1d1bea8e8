"""NumPy's functions and Python's operators of numbers, as both compilers emit them.

Numba has a table for either, which do not agree with NumPy everywhere, nor with each
other. While a function of ours is compiled, this one goes before both. An entry is
``(context, builder, signature, values) -> value``, as Numba's are.
"""

from __future__ import annotations

import importlib
import operator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev.compile import integers
from xdev.compile.integers import Device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Entry = Callable[[Any, Any, Any, Any], Any]
    Table = Mapping[tuple[Any, str], Entry]

CPU, CUDA = "numba", "numba.cuda"  # the compilers' packages
# NumPy's functions that are operators; the first one of each is what is emitted.
OPERATORS: dict[np.ufunc, tuple[Any, ...]] = {
    np.divmod: (divmod,),
    np.floor_divide: (operator.floordiv, operator.ifloordiv),
    np.left_shift: (operator.lshift, operator.ilshift),
    np.power: (operator.pow, operator.ipow, pow),
    np.remainder: (operator.mod, operator.imod),
    np.right_shift: (operator.rshift, operator.irshift),
}
INTEGERS = {
    np.divmod: integers.both,
    np.floor_divide: integers.quotient,
    np.fmod: integers.remainder,
    np.left_shift: integers.left,
    np.power: integers.power,
    np.remainder: integers.rest,
    np.right_shift: integers.right,
}


def frozen(builder: Any, value: Any) -> Any:
    """Emit LLVM's ``freeze``, for which llvmlite has no word."""
    instructions = _optional.llvm_ir().instructions
    made = instructions.Instruction(builder.block, value.type, "freeze", [value])
    builder._insert(made)  # noqa: SLF001 - as all its methods do
    return made


def told(builder: Any, condition: Any, exception: int) -> None:
    """Emit C's ``feraiseexcept`` where a condition holds."""
    number = _optional.llvm_ir().IntType(32)
    kind = _optional.llvm_ir().FunctionType(number, [number])
    cgutils = _optional.numba().core.cgutils
    with builder.if_then(condition, likely=False):
        tell = cgutils.get_or_insert_function(builder.module, kind, "feraiseexcept")
        builder.call(tell, [number(exception)])


def untold(_builder: Any, _condition: Any, _exception: int) -> None:
    """Emit nothing."""


def opaque(builder: Any, value: Any) -> Any:
    """Emit a copy of which LLVM knows nothing; NVVM has no ``freeze``."""
    ir, own = _optional.llvm_ir(), value.type
    if isinstance(value, ir.Constant):
        return value
    word = ir.IntType(max(own.width, 32))
    letter = {32: "r", 64: "l"}[word.width]
    kind, text = ir.FunctionType(word, [word]), f"mov.b{word.width} $0, $1;"
    wide = value if word == own else builder.zext(value, word)
    copy = builder.asm(kind, text, f"={letter},{letter}", [wide], side_effect=False)
    return copy if word == own else builder.trunc(copy, own)


def known(_builder: Any, value: Any) -> Any:
    """Return a value that has not overflowed."""
    return value


@cache
def _table(root: str, *, wrapping: bool) -> Table:
    """Return the entries, by function and NumPy's kind of its arguments."""
    if root == CPU:
        device = Device(frozen, told)
    else:
        device = Device(known if wrapping else opaque, untold)
    entries: dict[tuple[Any, str], Entry] = {}
    for function, emit in INTEGERS.items():
        entry = _integral(device, emit)
        for name in (function, *OPERATORS.get(function, ())):
            entries[name, "i"] = entries[name, "u"] = entry
    for function, names in OPERATORS.items():
        for kind in "fc":
            entries[function, kind] = _operator(names[0])
    return entries


def _integral(device: Device, emit: Callable[..., Any]) -> Entry:
    """Return an entry that computes in the result's type."""

    def entry(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        result = signature.return_type
        kind = getattr(result, "dtype", result)  # of divmod's pair
        operands = [
            context.cast(builder, value, own, kind)
            for value, own in zip(values, signature.args, strict=True)
        ]
        found = emit(device, builder, *operands, signed=kind.signed)
        if isinstance(found, list):
            return context.make_tuple(builder, result, found)
        return found

    return entry


def _operator(name: Any) -> Entry:
    """Return an entry that is an operator."""

    def entry(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return context.get_function(name, signature)(builder, values)

    return entry


@contextmanager
def served(root: str, asked: Callable[[], bool], *, wrapping: bool) -> Iterator[None]:
    """Have a compiler use this table where asked; the caller has its lock.

    Parameters
    ----------
    root : str
        The package of the compiler, ``CPU`` or ``CUDA``.
    asked : callable
        Whether what is being compiled is a function of ours.
    wrapping : bool
        Whether sums and products of integers may overflow. LLVM should think that
        indices do not: else it looks for negative ones, which count from the end.
    """
    owner, entries = _context(root), _table(root, wrapping=wrapping)
    wrap = importlib.import_module(f"{root}.core.base")._wrap_impl  # noqa: SLF001
    usual_function, usual_ufunc = owner.get_function, owner.get_ufunc_info

    def get_function(context: Any, function: Any, signature: Any, **more: Any) -> Any:
        key = _key(function, signature) if asked() else None
        entry = entries.get(key) if key else None
        if entry is not None:
            return wrap(entry, context, signature.as_function())
        return usual_function(context, function, signature, **more)

    def get_ufunc_info(context: Any, ufunc: np.ufunc) -> Any:
        loops = usual_ufunc(context, ufunc)
        if not asked():
            return loops
        kinds = {loop: np.dtype(loop[0]).kind for loop in loops}
        return {k: entries.get((ufunc, kinds[k]), loop) for k, loop in loops.items()}

    def flags(kind: Any) -> list[str]:
        return [] if asked() else usual_flags(kind)

    with ExitStack() as stack:
        stack.enter_context(_replaced(owner, "get_function", get_function))
        stack.enter_context(_replaced(owner, "get_ufunc_info", get_ufunc_info))
        for name in ("cpython.numbers", "np.math.numbers") if wrapping else ():
            numbers = importlib.import_module(f"{root}.{name}")
            usual_flags = numbers._int_arith_flags  # noqa: SLF001
            stack.enter_context(_replaced(numbers, "_int_arith_flags", flags))
        yield


def _key(function: Any, signature: Any) -> tuple[Any, str] | None:
    """Return where an operator of numbers of one kind may be in the table."""
    types = _optional.numba().core.types
    if not isinstance(function, types.Function):
        return None
    plain = signature.as_function()
    result = getattr(plain.return_type, "dtype", plain.return_type)  # of a pair's items
    every = (*plain.args, result)
    if all(isinstance(kind, types.Integer) for kind in every):
        return function.get_impl_key(plain), "i" if result.signed else "u"
    if all(isinstance(kind, types.Complex) for kind in plain.args):
        return function.get_impl_key(plain), "c"
    return None


def _context(root: str) -> Any:
    """Return a compiler's class of contexts."""
    if root == CPU:
        return _optional.numba().core.cpu.CPUContext
    return importlib.import_module(f"{CUDA}.target").CUDATargetContext


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Give a class or module another attribute meanwhile."""
    own = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)  # a base class has it
        else:
            setattr(owner, name, own)
