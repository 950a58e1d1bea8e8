"""What Numba compiles for itself inside a function, made so that it does not raise.

A loop has nobody to raise to: an element for which anything did would stay unwritten.
So functions are compiled by NumPy's error model, in which a quotient by zero is
infinite or NaN. But Numba's own ``a ** -1`` has Python's on the CPU, whatever is asked
for, and its complex quotient raises everywhere.
"""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev.compile import numpy_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAN = float("nan")
_made: dict[Any, Any] = {}  # on the CPU, by code and types; Numba keeps others' apart


def complex_div(a: Any, b: Any) -> Any:
    """Return CPython's quotient of complex numbers, and NumPy's where that raises."""
    areal, aimag, breal, bimag = a.real, a.imag, b.real, b.imag
    abs_breal, abs_bimag = abs(breal), abs(bimag)
    if abs_breal >= abs_bimag:
        if abs_breal == 0:
            return complex(areal / abs_breal, aimag / abs_breal)
        ratio = bimag / breal
        denom = breal + bimag * ratio
        return complex((areal + aimag * ratio) / denom, (aimag - areal * ratio) / denom)
    if abs_bimag >= abs_breal:
        ratio = breal / bimag
        denom = breal * ratio + bimag
        return complex((areal * ratio + aimag) / denom, (aimag * ratio - areal) / denom)
    return complex(NAN, NAN)


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


@contextmanager
def unraising(*, wrapping: bool = False) -> Iterator[None]:
    """Have what Numba compiles for the CPU not raise, while nobody else compiles.

    What the user compiled, or compiles meanwhile, keeps the error model that it has.
    Functions of numbers are those of :mod:`~xdev.compile.numpy_functions`, which knows
    what ``wrapping`` is.
    """
    core = _optional.numba().core

    def compile_for(context: Any, builder: Any, impl: Any, sig: Any) -> Any:
        cells = tuple(cell.cell_contents for cell in impl.__closure__ or ())
        key = impl.__code__, sig, cells
        if key not in _made:
            flags, above = core.compiler.Flags(), core.targetconfig.ConfigStack().top()
            flags.nrt = bool(above.is_set("nrt") and above.nrt)
            flags.error_model = "numpy"
            own = context._compile_subroutine_no_cache  # noqa: SLF001 - else they mix
            _made[key] = own(builder, impl, sig, flags=flags)
        context.active_code_library.add_linking_library(_made[key].library)
        return _made[key]

    def asked() -> bool:
        above = core.targetconfig.ConfigStack()
        return bool(above) and above.top().error_model == "numpy"

    lock = core.compiler_lock.global_compiler_lock
    served = numpy_functions.served(numpy_functions.CPU, asked, wrapping=wrapping)
    with lock, served, numpy_functions.replaced(_change(core.base, compile_for, asked)):
        yield


@contextmanager
def unraising_on_cuda(*, wrapping: bool) -> Iterator[None]:
    """Do so for CUDA; the caller has the compiler's lock."""
    base = importlib.import_module("numba.cuda.core.base")
    usual = base.BaseContext.compile_subroutine

    def asked() -> bool:
        return True  # CUDA has no other model

    served = numpy_functions.served(numpy_functions.CUDA, asked, wrapping=wrapping)
    with served, numpy_functions.replaced(_change(base, usual, asked)):
        yield


def _change(
    base: Any, compile_for: Callable[..., Any], asked: Callable[[], bool]
) -> tuple[Any, str, Any]:
    """Let contexts compile by another function where asked, and quotients be ours."""
    usual = base.BaseContext.compile_subroutine

    def compile_subroutine(
        context: Any, builder: Any, impl: Any, sig: Any, *args: Any, **options: Any
    ) -> Any:
        wanted = asked() and options.get("caching", True)
        if wanted and impl.__name__ == complex_div.__name__:
            impl = complex_div
        if not wanted or any(args) or any(options.values()):
            return usual(context, builder, impl, sig, *args, **options)
        return compile_for(context, builder, impl, sig)

    return base.BaseContext, "compile_subroutine", compile_subroutine
