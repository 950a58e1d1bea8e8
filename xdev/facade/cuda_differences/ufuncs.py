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
    from collections.abc import Callable

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


def _with_loops(name: str, own: Any, loops: dict[str, str]) -> Any:
    """Make a ufunc like CuPy's own, with other loops for some data types (chars).

    CuPy's and cupyx's ufuncs are made by ``create_ufunc``, which has no public name. An
    ``ElementwiseKernel`` would neither cast into ``out=`` nor promote numbers.
    """
    made = tuple(
        (
            [loop.in_types, loop.out_types],
            loops.get(loop.in_types[0].char, loop.routine),
        )
        for loop in own._ops.ops  # noqa: SLF001 - likewise
    )
    create = _optional.cupy()._core.create_ufunc  # noqa: SLF001 - see above
    return create(f"xdev_{name}", made, preamble=SOURCE.read_text())
