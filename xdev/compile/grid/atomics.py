"""What :mod:`xdev.atomic` is in compiled code: one emission for every device."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev._forks import module_lock

if TYPE_CHECKING:
    from xdev.compile.grid.emission import Target

THREE = "array, index, value"
FORMS = {"cas": "array, index, expected, value"}  # those of other arguments
DTYPES = ": use int32, int64, uint32, uint64, float32 or float64"
ORDER = "monotonic"
WIDTHS = (32, 64)  # bits, which every device can update
_lock = module_lock()  # guards the set below
_served: set[str] = set()


def serve(extending: Any, target: Target) -> None:
    """Let a compiler know the functions of :mod:`xdev.atomic`.

    Parameters
    ----------
    extending : module
        Its ``extending``.
    target : Target
        Its other functions.
    """
    with _lock:
        if extending.__name__ in _served:
            return
        own = importlib.import_module("xdev.atomic")
        for name in ("add", "max", "min"):
            extending.overload(getattr(own, name))(_binary(extending, target, name))
        swap = _updating(extending, target, "cas")
        # Without types, which numba-cuda would compare with the inner function's.
        extending.overload(own.cas)(
            lambda a, index, expected, value: (  # noqa: ARG005
                lambda a, index, expected, value: swap(  # noqa: PLW0108 - Numba's form
                    a, index, expected, value
                )
            )
        )
        _served.add(extending.__name__)


def _binary(extending: Any, target: Target, name: str) -> Any:
    """Return the overload of a function of an element and a value."""
    update = _updating(extending, target, name)
    return lambda a, index, value: (  # noqa: ARG005
        lambda a, index, value: update(a, index, value, value)
    )


def _updating(extending: Any, target: Target, name: str) -> Any:
    """Return the compiled-code call that updates an element."""
    types = _optional.numba().core.types
    emit = {"add": _add, "cas": _swap, "max": _extreme, "min": _extreme}[name]

    @extending.intrinsic  # type: ignore[untyped-decorator]
    def update(_typing: Any, a: Any, index: Any, expected: Any, value: Any) -> Any:
        _check(a, index, (expected, value), name)
        one = isinstance(index, types.Integer)
        kinds = [index] if one else list(index)

        def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
            unpack = target.cgutils.unpack_tuple
            indices = [args[1]] if one else unpack(builder, args[1])
            places = [
                context.cast(builder, place, kind, types.intp)
                for place, kind in zip(indices, kinds, strict=True)
            ]
            array = context.make_array(a)(context, builder, args[0])
            pointer = target.cgutils.get_item_pointer(
                context, builder, a, array, places, wraparound=True
            )
            values = [
                context.cast(builder, given, kind, a.dtype)
                for given, kind in zip(args[2:], (expected, value), strict=True)
            ]
            return emit(_Place(target, builder, a.dtype, pointer, name), *values)

        return a.dtype(a, index, expected, value), generate

    return update


@final
@dataclass(frozen=True, slots=True)
class _Place:
    """The element that an update is of, and where its instructions go."""

    target: Target
    builder: Any
    kind: Any
    pointer: Any
    operation: str

    @property
    def integer(self) -> bool:
        """Whether it is one."""
        return isinstance(self.kind, _optional.numba().core.types.Integer)

    @property
    def bits(self) -> Any:
        """The integer type of its size."""
        return self.target.cgutils.ir.IntType(self.kind.bitwidth)

    def swap(self, expected: Any, value: Any) -> tuple[Any, Any]:
        """Emit a comparison and exchange of bits; return the old ones, and if done."""
        b = self.builder
        where = b.bitcast(self.pointer, self.bits.as_pointer())
        found = b.cmpxchg(where, expected, value, ORDER, ORDER)
        return b.extract_value(found, 0), b.extract_value(found, 1)


def _check(a: Any, index: Any, values: Any, name: str) -> None:
    """Refuse what cannot be updated, as a typing error."""
    numba = _optional.numba()
    types = numba.core.types
    message = None
    for value in values:
        if not isinstance(value, types.Number | types.Boolean):
            message = f"takes a number for a value, not {value}"
        elif isinstance(value, types.Complex):
            message = f"takes no complex numbers{DTYPES}"
    if not isinstance(a, types.Array):
        message = f"takes an array, not {a}"
    elif not a.mutable:
        message = "cannot write a read-only array"
    elif (
        not isinstance(a.dtype, types.Integer | types.Float)
        or a.dtype.bitwidth not in WIDTHS
    ):
        message = f"cannot update elements of {a.dtype}{DTYPES}"
    else:
        axes = index if isinstance(index, types.BaseTuple) else [index]
        if not all(isinstance(one, types.Integer) for one in axes):
            message = f"takes an integer or a tuple of them for an index, not {index}"
        elif len(axes) != a.ndim:
            message = f"needs {a.ndim} indices, one an axis, not {len(axes)}"
    if message is not None:
        call = f"xdev.atomic.{name}({FORMS.get(name, THREE)})"
        raise numba.core.errors.TypingError(f"{call} {message}")


def _add(at: _Place, _: Any, value: Any) -> Any:
    if at.integer:
        return at.builder.atomic_rmw("add", at.pointer, value, ORDER)
    return at.target.add_float(at.builder, at.pointer, value)


def _swap(at: _Place, expected: Any, value: Any) -> Any:
    b = at.builder
    old, _ = at.swap(b.bitcast(expected, at.bits), b.bitcast(value, at.bits))
    return b.bitcast(old, value.type)


def _extreme(at: _Place, _: Any, value: Any) -> Any:
    """Emit the larger or smaller of two; of floats by exchanging while it is better."""
    b = at.builder
    if at.integer:
        word = at.operation if at.kind.signed else f"u{at.operation}"
        return b.atomic_rmw(word, at.pointer, value, ORDER)
    entry = b.block
    first = b.load(b.bitcast(at.pointer, at.bits.as_pointer()))
    test, swap, done = (
        b.append_basic_block(f"atomic.{name}") for name in ("test", "swap", "done")
    )
    b.branch(test)
    b.position_at_end(test)
    seen = b.phi(at.bits)
    seen.add_incoming(first, entry)
    old = b.bitcast(seen, value.type)
    sign = ">" if at.operation == "max" else "<"
    better = b.or_(  # a NaN wins, and the first one stays
        b.fcmp_ordered(sign, value, old), b.fcmp_unordered("uno", value, value)
    )
    b.cbranch(b.and_(b.fcmp_ordered("ord", old, old), better), swap, done)
    b.position_at_end(swap)
    found, swapped = at.swap(seen, b.bitcast(value, at.bits))
    seen.add_incoming(found, swap)
    b.cbranch(swapped, done, test)
    b.position_at_end(done)
    return old
