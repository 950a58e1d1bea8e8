"""Loops over ``range`` on CUDA, in the form that its compiler knows best.

numba-cuda counts down how often a loop still runs, beside the loop's own index, and
says so in a way that the compiler neither simplifies nor unrolls well. A range whose
step is 1 is a ``for`` loop of C here.
"""

from __future__ import annotations

import importlib
from types import FunctionType
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev._forks import module_lock

if TYPE_CHECKING:
    from collections.abc import Callable

# What ``range`` of one and of two arguments is called in a function whose loops may be
# compiled so. Everywhere else it is ``range`` itself.
NAMES = ("xdev_range_to", "xdev_range")
MARK = "xdev.more"  # what the test of such a loop is called in LLVM's language
_lock = module_lock()  # guards the list below
_served: list[dict[str, Any]] = []


def replaced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose ranges are C's loops; numba-cuda alone compiles it.

    Parameters
    ----------
    function : callable
        A Python function.
    """
    known: dict[str, Any] = function.__globals__
    if all(known.get(name) is not range for name in NAMES):
        return function
    names = {**known, **_ranges()}
    code, defaults, cells = (
        getattr(function, f"__{part}__") for part in ("code", "defaults", "closure")
    )
    made = FunctionType(code, names, function.__name__, defaults, cells)
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    return made


def _ranges() -> dict[str, Any]:
    """Return what the names stand for."""
    with _lock:
        if not _served:
            _served.append(_serve())
        return _served[0]


def _serve() -> dict[str, Any]:
    """Let numba-cuda know the loops."""
    extending, cgutils, imputils = (
        importlib.import_module(f"numba.cuda.{name}")
        for name in ("extending", "cgutils", "core.imputils")
    )
    types = _optional.numba().core.types

    class Span(types.SimpleIteratorType):  # type: ignore[misc, name-defined]
        """A loop's index, which every turn reads and moves on, and its end."""

        def __init__(self, kind: Any) -> None:
            super().__init__(f"xdev_span({kind})", kind)

    @extending.register_model(Span)
    class _SpanModel(extending.models.StructModel):  # type: ignore[misc, name-defined]
        def __init__(self, manager: Any, kind: Any) -> None:
            one = kind.yield_type
            members = [("place", types.CPointer(one)), ("stop", one)]
            super().__init__(manager, kind, members)

    def typed(typing: Any, *given: Any) -> Any:
        """Return the index's type: that of Numba's own range."""
        found = typing.resolve_function_type(
            typing.resolve_value_type(range), given, {}
        )
        return None if found is None else found.args[0]

    def begun(context: Any, builder: Any, signature: Any, start: Any, stop: Any) -> Any:
        made = context.make_helper(builder, signature.return_type)
        made.place = cgutils.alloca_once_value(builder, start)
        made.stop = stop
        return made._getvalue()  # noqa: SLF001 - how Numba names it

    @extending.intrinsic  # type: ignore[untyped-decorator]
    def to(typing: Any, stop: Any) -> Any:
        kind = typed(typing, stop)

        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            start = context.get_constant(kind, 0)
            return begun(context, builder, signature, start, *given)

        return None if kind is None else (Span(kind)(kind), generate)

    @extending.intrinsic  # type: ignore[untyped-decorator]
    def between(typing: Any, start: Any, stop: Any) -> Any:
        kind = typed(typing, start, stop)

        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return begun(context, builder, signature, *given)

        return None if kind is None else (Span(kind)(kind, kind), generate)

    def turn(context: Any, builder: Any, signature: Any, args: Any, made: Any) -> None:
        (kind,) = signature.args
        span = context.make_helper(builder, kind, value=args[0])
        index = builder.load(span.place)
        signed = kind.yield_type.signed
        less = builder.icmp_signed if signed else builder.icmp_unsigned
        made.set_valid(less("<", index, span.stop, name=MARK))
        made.yield_(index)
        flags = ["nsw" if signed else "nuw"]  # past the end nobody looks at it
        builder.store(builder.add(index, index.type(1), flags=flags), span.place)

    untracked = imputils.iternext_impl(imputils.RefType.UNTRACKED)
    extending.lower_builtin("iternext", Span)(untracked(turn))
    return dict(zip(NAMES, (to, between), strict=True))
