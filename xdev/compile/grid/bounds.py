"""Accesses out of bounds: reported and stopped, by one emission for every device.

The first point of the grid to see one writes a report of ``LENGTH`` 64-bit integers:
1, the argument's number, the axis, the index, the axis's length, and its own three
indices. Each point that sees one ends there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev._forks import module_lock
from xdev.compile.grid import DIMENSIONS, WORD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.compile.grid.emission import Target

LENGTH = 5 + DIMENSIONS
_lock = module_lock()  # guards the set below
_served: set[str] = set()


def checked(
    index: Any,
    shape: Any,  # noqa: ARG001
    argument: Any,  # noqa: ARG001
    axis: Any,  # noqa: ARG001
    report: Any,  # noqa: ARG001
) -> Any:
    """Return an index into an array; in compiled code, if it is in bounds.

    Parameters
    ----------
    index : int, or tuple of int and slices
        What the array is indexed with; a slice is never out of bounds.
    shape : tuple of int
        The array's shape, from ``axis`` on.
    argument : int
        The array's number among the kernel's arguments.
    axis : int
        Where the index begins.
    report : tuple of int
        The report's address, and the grid's three indices.
    """
    return index


def serve(extending: Any, target: Target) -> None:
    """Let a compiler know :func:`checked`; parameters as those of the atomics'."""
    with _lock:
        if extending.__name__ not in _served:
            made = _check(extending, target)
            extending.overload(checked)(
                lambda index, shape, argument, axis, report: (  # noqa: ARG005
                    lambda index, shape, argument, axis, report: made(  # noqa: PLW0108
                        index, shape, argument, axis, report
                    )
                )
            )
            _served.add(extending.__name__)


def _check(extending: Any, target: Target) -> Any:
    """Return the compiled-code call."""
    types = _optional.numba().core.types

    @extending.intrinsic  # type: ignore[untyped-decorator]
    def check(
        _typing: Any, index: Any, shape: Any, argument: Any, axis: Any, report: Any
    ) -> Any:
        one = not isinstance(index, types.BaseTuple)
        kinds = [index] if one else list(index)
        # With an ellipsis or a new axis, places in the index are not axes.
        plain = all(isinstance(k, types.Integer | types.SliceType) for k in kinds)

        def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
            given, lengths, *place, words = args
            parts = [given] if one else target.cgutils.unpack_tuple(builder, given)
            unpacked = target.cgutils.unpack_tuple(builder, lengths)
            number, first = (
                context.cast(builder, one, kind, types.int64)
                for one, kind in zip(place, (argument, axis), strict=True)
            )
            for k, (kind, length) in enumerate(zip(kinds, unpacked, strict=False)):
                if plain and isinstance(kind, types.Integer):
                    at = context.cast(builder, parts[k], kind, types.int64)
                    outside = builder.or_(
                        builder.icmp_signed(">=", at, length),
                        builder.icmp_signed("<", at, builder.neg(length)),
                    )
                    with target.cgutils.if_unlikely(builder, outside):
                        found = number, builder.add(first, at.type(k)), at, length
                        _report(target, builder, words, found)
                        raised = target.convention(context)
                        raised.return_user_exc(builder, IndexError, ())
            return given

        return index(index, shape, argument, axis, report), generate

    return check


def _report(target: Target, builder: Any, words: Any, found: Sequence[Any]) -> None:
    """Emit the writing of the report, unless there is one."""
    address, *indices = target.cgutils.unpack_tuple(builder, words)
    start = builder.inttoptr(address, address.type.as_pointer())
    none, some = address.type(0), address.type(1)
    won = builder.extract_value(
        builder.cmpxchg(start, none, some, "monotonic", "monotonic"), 1
    )
    with builder.if_then(won):
        for k, value in enumerate((*found, *indices), 1):
            place = builder.inttoptr(
                builder.add(address, address.type(k * WORD)),
                address.type.as_pointer(),
            )
            builder.store(value, place)
