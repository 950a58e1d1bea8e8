"""NumPy's functions and Python's operators of numbers, as both compilers emit them.

Numba has a table for either, which do not agree with NumPy everywhere, nor with each
other. While a function of ours is compiled, this one goes before both. An entry is
``(context, builder, signature, values) -> value``, as Numba's are.
"""

from __future__ import annotations

import importlib
import math
import operator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev.compile import formulas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Entry = Callable[[Any, Any, Any, Any], Any]
    Table = Mapping[tuple[Any, str], Entry]

MOST = 1 << 20  # an exponent that no float has
CPU, CUDA = "numba", "numba.cuda"  # the compilers' packages
CONTEXTS = {CPU: ("core.cpu", "CPUContext"), CUDA: ("target", "CUDATargetContext")}
# For these Numba's code is the C library's or LLVM's, which NVVM lacks.
LIBDEVICE = (
    *("cbrt", "exp", "exp2", "expm1", "fabs"),
    *("fmod", "log1p", "nextafter", "rint", "sqrt", "trunc"),
)
# NumPy's functions that are operators; the first one of each is what is emitted.
OPERATORS: dict[np.ufunc, tuple[Any, ...]] = {
    np.absolute: (abs,),
    np.divide: (operator.truediv, operator.itruediv),
    np.divmod: (divmod,),
    np.floor_divide: (operator.floordiv, operator.ifloordiv),
    np.left_shift: (operator.lshift, operator.ilshift),
    np.multiply: (operator.mul, operator.imul),
    np.power: (operator.pow, operator.ipow, pow),
    np.remainder: (operator.mod, operator.imod),
    np.right_shift: (operator.rshift, operator.irshift),
}
INTEGERS = ["divmod", "floor_divide", "fmod", "left_shift", "remainder", "right_shift"]


@cache
def _table(root: str) -> Table:
    """Return the entries, by function and NumPy's kind of its arguments."""
    host = root == CPU
    integral = {name: _integral(name, host=host) for name in INTEGERS}
    integral["lcm"] = _python(formulas.lcm)
    integral["power"] = _python(formulas.integer_power)
    named: dict[str, dict[str, Entry]] = {
        "i": integral,
        "u": integral | {"sign": _python(formulas.unsigned_sign)},
        "f": _real(root) | _divisions(host=host),
        "c": _complex(library=host),
    }
    entries: dict[tuple[Any, str], Entry] = {
        (getattr(np, name), kind): entry
        for kind, functions in named.items()
        for name, entry in functions.items()
    }
    for function, names in OPERATORS.items():
        for kind in named:
            entry = entries.get((function, kind))
            if entry is not None:
                entries |= {(name, kind): entry for name in names}
            elif kind in "fc":
                entries[function, kind] = _operator(names[0])
    if root == CUDA:  # the compiler's own leave NaN out, of two but not of three
        entries[min, "f"], entries[max, "f"] = map(_extreme, (operator.lt, operator.gt))
        entries["iternext", "range"] = _next
    return entries


def _real(root: str) -> dict[str, Entry]:
    """Return the entries of real numbers that are no operators."""
    named = {"ldexp": _python(_ldexp), "sign": _python(_sign)}
    if root == CPU:
        return named | {name: _real_library(name) for name in ("cbrt", "fmod")}
    named |= {name: _real_library(f"__nv_{name}") for name in LIBDEVICE}
    for name in ("logaddexp", "logaddexp2"):
        named[name] = _python(getattr(formulas, name))
    return named | {"spacing": _spacing}


def _divisions(*, host: bool) -> dict[str, Entry]:
    """Return those of whole quotients."""
    both = partial(formulas.float_divmod, host=host)
    return {
        "divmod": lambda context, builder, signature, values: context.make_tuple(
            builder, signature.return_type, both(builder, *values)
        ),
        "floor_divide": lambda _, builder, __, values: both(builder, *values)[0],
        "remainder": lambda _, builder, __, values: both(builder, *values)[1],
    }


def _complex(*, library: bool) -> dict[str, Entry]:
    """Return the entries of complex numbers."""
    own = ["exp2", "expm1", "log1p", "log2", "log10", "sign"]
    if not library:
        own += "exp", "log", "power", "rint"
    named = {name: _python(getattr(formulas, name)) for name in own}
    if library:
        named |= {k: _library(symbol) for k, symbol in formulas.LIBRARY.items()}
    named["power"] = named["float_power"] = _powers(named["power"])
    return named | {"absolute": _absolute, "multiply": _python(_product)}


def _python(function: Callable[..., Any]) -> Entry:
    """Return an entry that is a function of Python's, compiled."""
    return lambda context, builder, signature, values: context.compile_internal(
        builder, function, signature, values
    )


def _sign(x: Any) -> Any:
    """Return the sign of a float: of both zeros 0, of NaN itself."""
    return (x > 0) - (x < 0) if x == x else x  # noqa: PLR0124 - not NaN


def _ldexp(x: Any, exponent: Any) -> Any:
    """Return C's, whose exponent has 32 bits: beyond them nothing changes."""
    return math.ldexp(x, min(max(exponent, -MOST), MOST))


def _product(z: Any, w: Any) -> Any:
    """Return a product as NumPy has it: Numba's mends infinities, as C's does."""
    x, y, u, v = z.real, z.imag, w.real, w.imag
    return complex(x * u - y * v, x * v + y * u)


def _absolute(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    narrow = signature.args[0] == _optional.numba().core.types.complex64
    function = formulas.narrow_absolute if narrow else formulas.absolute
    return _python(function)(context, builder, signature, values)


def _powers(general: Entry) -> Entry:
    """Return the entry of powers: products, and others."""

    def entry(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        numba, kind = _optional.numba(), signature.return_type
        # Numba has float_power of complex64, which gives complex128.
        values = _cast(context, builder, signature, values, kind)
        signature = kind(kind, kind)
        test = numba.core.types.boolean(kind, kind)
        simple = context.compile_internal(builder, formulas.is_product, test, values)
        simple = context.cast(builder, simple, test.return_type, numba.core.types.bool_)
        result = numba.core.cgutils.alloca_once(builder, context.get_value_type(kind))
        sides = _python(formulas.product), general
        with builder.if_else(simple) as branches:
            for branch, side in zip(branches, sides, strict=True):
                with branch:
                    builder.store(side(context, builder, signature, values), result)
        return builder.load(result)

    return entry


def _cast(
    context: Any, builder: Any, signature: Any, values: Any, kind: Any
) -> list[Any]:
    """Emit the arguments as numbers of a type."""
    pairs = zip(values, signature.args, strict=True)
    return [context.cast(builder, value, own, kind) for value, own in pairs]


def _library(symbol: str) -> Entry:
    """Return an entry that calls the C library's function of ``double complex``.

    On x86-64 and aarch64 it takes and gives the parts in registers.
    """

    def entry(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = _optional.numba().core.types.complex128
        operands = _cast(context, builder, signature, values, kind)
        result = _called(builder, symbol, *operands)
        return context.cast(builder, result, kind, signature.return_type)

    return entry


def _real_library(name: str) -> Entry:
    """Return an entry that calls the C library's function, or libdevice's, of reals."""
    return lambda _context, builder, _signature, values: _called(builder, name, *values)


def _called(builder: Any, name: str, *values: Any) -> Any:
    kind = values[0].type
    suffix = "f" if kind == _optional.llvm_ir().FloatType() else ""
    return formulas.called(builder, name + suffix, kind, *values)


def _spacing(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
    (x,) = values
    end = _called(builder, "__nv_copysign", x.type(math.inf), x)
    return builder.fsub(_called(builder, "__nv_nextafter", x, end), x)


def _integral(name: str, *, host: bool) -> Entry:
    """Return an entry of integers of one type."""

    def entry(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        signed, result = signature.args[0].signed, signature.return_type
        integers = formulas.Integers(builder, signed=signed, host=host)
        value = getattr(integers, name)(*values)
        is_pair = isinstance(value, list)
        return context.make_tuple(builder, result, value) if is_pair else value

    return entry


def _extreme(compare: Any) -> Entry:
    """Return an entry that is Python's ``min`` or ``max``: the first if none is beyond.

    So NaN stays where it is the first, and is passed over elsewhere.
    """

    def entry(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        extreme, *others = values
        test = _optional.numba().core.types.boolean(*signature.args[:2])
        beyond = context.get_function(compare, test)
        for other in others:
            extreme = builder.select(beyond(builder, (other, extreme)), other, extreme)
        return extreme

    return entry


def _alike(entry: Entry) -> Entry:
    """Return an entry that gets its numbers in the largest of their types.

    Integers have the result's, which may be another.
    """

    def widened(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        types, result = _optional.numba().core.types, signature.return_type
        if len(values) == 1:
            return entry(context, builder, signature, values)
        widest = max(signature.args, key=operator.attrgetter("bitwidth"))
        if isinstance(widest, types.Integer):
            widest = getattr(result, "dtype", result)  # of divmod's pair
        same = result(*[widest] * len(values))
        numbers = _cast(context, builder, signature, values, widest)
        return entry(context, builder, same, numbers)

    return widened


def _operator(name: Any) -> Entry:
    """Return an entry that is an operator."""
    return lambda context, builder, signature, values: context.get_function(
        name, signature
    )(builder, values)


@contextmanager
def served(root: str, asked: Callable[[], bool], *, wrapping: bool) -> Iterator[None]:
    """Have a compiler, ``CPU`` or ``CUDA``, use this table; the caller has its lock.

    It does where a function of ours is being compiled, and that is ``asked``. Sums and
    products of integers may overflow where they are ``wrapping``. LLVM should think
    that indices do not: else it looks for negative ones, which count from the end.
    """
    place, name = CONTEXTS[root]
    owner = getattr(importlib.import_module(f"{root}.{place}"), name)
    entries = _table(root)
    wrap = importlib.import_module(f"{root}.core.base")._wrap_impl  # noqa: SLF001
    usual_function, usual_ufunc = owner.get_function, owner.get_ufunc_info

    def get_function(context: Any, function: Any, signature: Any, **more: Any) -> Any:
        key = _key(function, signature) if asked() else None
        entry = entries.get(key) if key else None
        if entry is not None:
            return wrap(_alike(entry), context, signature.as_function())
        return usual_function(context, function, signature, **more)

    def get_ufunc_info(context: Any, ufunc: np.ufunc) -> Any:
        if not asked():
            return usual_ufunc(context, ufunc)
        try:
            loops = usual_ufunc(context, ufunc)
        except KeyError:  # CUDA's own table has but a part
            general = importlib.import_module(f"{root}.np.ufunc_db")
            loops = general.get_ufunc_info(ufunc)
        kinds = {loop: np.dtype(loop[0]).kind for loop in loops}
        return {k: entries.get((ufunc, kinds[k]), loop) for k, loop in loops.items()}

    def flags(kind: Any) -> list[str]:
        return [] if asked() else usual_flags(kind)

    changes: list[Any] = [
        (owner, "get_function", get_function),
        (owner, "get_ufunc_info", get_ufunc_info),
        (owner, "cast", _casting(root, asked)),
    ]
    if root == CUDA:
        arrays = importlib.import_module(f"{root}.np.arraymath")
        changes.append((arrays, "_np_round_intrinsic", _nearest))
    else:
        for name in ("cpython.mathimpl", "np.math.mathimpl"):
            real = importlib.import_module(f"{root}.{name}")
            changes.append((real, "is_finite", _finite))
    for name in ("cpython.numbers", "np.math.numbers") if wrapping else ():
        numbers = importlib.import_module(f"{root}.{name}")
        usual_flags = numbers._int_arith_flags  # noqa: SLF001
        changes.append((numbers, "_int_arith_flags", flags))
    with replaced(*changes):
        yield


def _casting(root: str, asked: Callable[[], bool]) -> Callable[..., Any]:
    """Return how a compiler casts: floats to integers so that each has an answer."""
    place, name = CONTEXTS[root]
    usual = getattr(importlib.import_module(f"{root}.{place}"), name).cast
    types = _optional.numba().core.types

    def cast(context: Any, builder: Any, value: Any, source: Any, target: Any) -> Any:
        of_float = isinstance(source, types.Float)
        known = of_float and str(value.type) in formulas.FLOAT_BITS
        if not (known and isinstance(target, types.Integer) and asked()):
            return usual(context, builder, value, source, target)
        width, signed = target.bitwidth, target.signed
        return formulas.truncated(builder, value, width, signed, host=root == CPU)

    return cast


def _next(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Emit a step of a range without a branch: else NVVM sees no counted loop."""
    pair = context.make_helper(builder, signature.return_type)
    iterator = context.make_helper(builder, signature.args[0], values[0])
    count, pair.first = builder.load(iterator.count), builder.load(iterator.iter)
    pair.second = builder.icmp_signed(">", count, count.type(0))
    builder.store(builder.sub(count, count.type(1)), iterator.count)
    builder.store(builder.add(pair.first, iterator.step), iterator.iter)
    return pair._getvalue()  # noqa: SLF001 - how Numba names it


def _finite(builder: Any, value: Any) -> Any:
    """Emit whether a float is finite, by its bits: Numba's difference tells of NaN."""
    width = formulas.FLOAT_BITS[str(value.type)]
    word = _optional.llvm_ir().IntType(width)
    exponent = word({32: 0x7F80_0000, 64: 0x7FF0 << 48}[width])
    bits = builder.and_(builder.bitcast(value, word), exponent)
    return builder.icmp_unsigned("!=", bits, exponent)


def _nearest(kind: Any) -> str:
    """Return the function that rounds for ``numpy.round``, where LLVM's is lacking."""
    return "__nv_rintf" if kind.bitwidth == 32 else "__nv_rint"  # noqa: PLR2004


def _key(function: Any, signature: Any) -> tuple[Any, str] | None:
    """Return where an operator of numbers of one kind, or a range, may be in it."""
    types = _optional.numba().core.types
    if not isinstance(function, types.Function):
        kind = signature.args[0] if function == "iternext" else None
        counts = isinstance(kind, types.RangeIteratorType)
        return (function, "range") if counts else None
    plain = signature.as_function()
    result = getattr(plain.return_type, "dtype", plain.return_type)  # of a pair's items
    every = (*plain.args, result)
    if all(isinstance(kind, types.Integer) for kind in every):
        return function.get_impl_key(plain), "i" if result.signed else "u"
    for parts, letter in ((types.Float, "f"), (types.Complex, "c")):
        if all(isinstance(kind, parts) for kind in plain.args):
            return function.get_impl_key(plain), letter
    return None


@contextmanager
def replaced(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Give classes or modules other attributes meanwhile: owners, names and values."""
    with ExitStack() as undone:
        for owner, name, value in changes:
            if name in vars(owner):
                undone.callback(setattr, owner, name, vars(owner)[name])
            else:  # a base class has it
                undone.callback(delattr, owner, name)
            setattr(owner, name, value)
        yield


# What Numba compiles for itself inside a function, made so that it does not raise.
#
# A loop has nobody to raise to, so that functions are compiled by NumPy's error model.
# But Numba's own ``a ** -1`` has Python's on the CPU, whatever is asked for, and its
# complex quotient raises everywhere.

_made: dict[Any, Any] = {}  # on the CPU, by code and types; Numba keeps others' apart


def undefined(context: Any, builder: Any, kind: Any) -> Any:
    """Return what an element is for which a function raises: NaN, or zero."""
    numba = _optional.numba()
    types, cgutils = numba.core.types, numba.core.cgutils
    if isinstance(kind, types.BaseTuple):
        parts = [undefined(context, builder, part) for part in kind]
        return context.make_tuple(builder, kind, parts)
    if isinstance(kind, types.Float):
        return context.get_constant(kind, float("nan"))
    if isinstance(kind, types.Complex):
        return context.get_constant(kind, complex("nan+nanj"))
    return cgutils.get_null_value(context.get_value_type(kind))


def call(
    context: Any, builder: Any, fndesc: Any, signature: Any, values: Sequence[Any]
) -> list[Any]:
    """Emit a call of a function; return its results, undefined where it raises."""
    status, result = context.call_internal_no_propagate(
        builder, fndesc, signature, values
    )
    kind = signature.return_type
    result = builder.select(status.is_error, undefined(context, builder, kind), result)
    numba = _optional.numba()
    if not isinstance(kind, numba.core.types.BaseTuple):
        return [result]
    results: list[Any] = numba.core.cgutils.unpack_tuple(builder, result)
    return results


@contextmanager
def unraising(root: str = CPU, *, wrapping: bool = False) -> Iterator[None]:
    """Have what Numba compiles not raise, while nobody else compiles, and be served.

    For the CPU what the user compiled, or compiles meanwhile, keeps its error model;
    CUDA has no other, and there the caller has the compiler's lock.
    """
    core = _optional.numba().core
    base = importlib.import_module(f"{root}.core.base").BaseContext
    usual, stack = base.compile_subroutine, core.targetconfig.ConfigStack

    def asked() -> bool:
        above = stack.top_or_none()  # of this thread
        return root == CUDA or bool(above and above.error_model == "numpy")

    def compile_subroutine(
        context: Any, builder: Any, impl: Any, sig: Any, *args: Any, **options: Any
    ) -> Any:
        wanted = asked() and options.get("caching", True)
        if wanted and impl.__name__ == formulas.complex_div.__name__:
            impl = formulas.complex_div
        if root == CUDA or not wanted or any(args) or any(options.values()):
            return usual(context, builder, impl, sig, *args, **options)
        cells = tuple(cell.cell_contents for cell in impl.__closure__ or ())
        key = impl.__code__, sig, cells
        if key not in _made:
            flags, top = core.compiler.Flags(), stack().top()
            flags.nrt = bool(top.is_set("nrt") and top.nrt)
            flags.error_model = "numpy"
            own = context._compile_subroutine_no_cache  # noqa: SLF001 - else they mix
            _made[key] = own(builder, impl, sig, flags=flags)
        context.active_code_library.add_linking_library(_made[key].library)
        return _made[key]

    lock = core.compiler_lock.global_compiler_lock if root == CPU else nullcontext()
    change = base, "compile_subroutine", compile_subroutine
    with lock, served(root, asked, wrapping=wrapping), replaced(change):
        yield
