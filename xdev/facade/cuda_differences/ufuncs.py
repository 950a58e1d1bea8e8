"""CuPy's elementwise functions with other loops for some of their data types.

The loops are in ``ufuncs.cuh``. CuPy compiles and launches them as it does its own, so
``out=``, casting and broadcasting are its own as well, and nothing is copied. Data
types that are right already keep CuPy's loops.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdev import _optional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SOURCE = Path(__file__).with_name("ufuncs.cuh")


def special(name: str, own: Any = None) -> Callable[..., Any]:
    """Return a function of one array with loops of ours for complex numbers.

    Parameters
    ----------
    name : str
        ``xdev_{name}`` is in the source.
    own : cupy.ufunc, optional
        CuPy's, of that name unless given.
    """
    code = f"out0 = xdev_{name}(in0)"
    own = own or getattr(_optional.cupy(), name)
    return _with_loops(name, own, {"F": code, "D": code})


def remainder() -> Callable[..., Any]:
    """Return ``remainder`` with loops of ours for floating-point numbers."""
    single = "out0 = xdev_remainder<float>(in0, in1)"  # float16 too, as NumPy does
    double = "out0 = xdev_remainder<double>(in0, in1)"
    loops = {"e": single, "f": single, "d": double}
    return _with_loops("remainder", _optional.cupy().remainder, loops)


def truth(name: str, code: str) -> Callable[..., Any]:
    """Return a function of truth values with loops for complex numbers, too.

    Parameters
    ----------
    name : str
        CuPy's.
    code : str
        What they compute.
    """
    own = getattr(_optional.cupy(), name)
    more = ((f"{char * own.nin}->?", code) for char in "FD")
    return _created(name, (*_loops(own), *more))


def real(name: str, own: Any = None) -> Callable[..., Any]:
    """Return a function without loops for complex numbers, which do not compile."""
    own = own or getattr(_optional.cupy(), name)
    return _created(name, (loop for loop in _loops(own) if loop[0][0][0].kind != "c"))


def no_bool(name: str) -> Callable[..., Any]:
    """Return a function of one number that refuses bools, which CuPy casts."""

    def refuse() -> None:
        message = f"xdev.{name} takes no bool: convert it with xdev.astype"
        raise TypeError(message)

    own = getattr(_optional.cupy(), name)
    return _created(name, (("?->?", refuse), *_loops(own)))


def _with_loops(name: str, own: Any, loops: dict[str, str]) -> Any:
    """Make a ufunc like CuPy's own, with other loops for some data types (chars)."""
    return _created(
        name,
        (
            (types, loops.get(types[0][0].char, routine))
            for types, routine in _loops(own)
        ),
    )


def _loops(own: Any) -> list[tuple[Any, Any]]:
    """Return the types of each loop of a ufunc of CuPy's, and its code."""
    return [
        ([loop.in_types, loop.out_types], loop.routine)
        for loop in own._ops.ops  # noqa: SLF001 - see below
    ]


def _created(name: str, loops: Iterable[tuple[Any, Any]]) -> Any:
    """Make a ufunc as CuPy makes its own.

    CuPy's and cupyx's ufuncs are made by ``create_ufunc``, which has no public name. An
    ``ElementwiseKernel`` would neither cast into ``out=`` nor promote numbers.
    """
    create = _optional.cupy()._core.create_ufunc  # noqa: SLF001 - see above
    return create(f"xdev_{name}", tuple(loops), preamble=SOURCE.read_text())
