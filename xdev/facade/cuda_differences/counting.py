"""Functions that count elements or look for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev import _optional

if TYPE_CHECKING:
    from collections.abc import Callable


def count_nonzero() -> Callable[..., Any]:
    """Return ``count_nonzero`` as CuPy has it, but with ``keepdims=``.

    Its reductions are made by ``create_reduction_func``, which has no public name.
    """
    create = _optional.cupy()._core.create_reduction_func  # noqa: SLF001 - see above
    loops = tuple(f"{char}->l" for char in "?bBhHiIlLqQefdFD")
    steps = ("in0 != type_in0_raw(0)", "a + b", "out0 = a", None)
    made: Callable[..., Any] = create("xdev_count_nonzero", loops, steps, 0)
    return made


def repeat(x: Any, repeats: Any, *, axis: int | None) -> Any:
    """Repeat elements, each as often as its count says; counts may be an array."""
    if type(repeats) is int:
        return x.repeat(repeats, axis)
    cupy = _optional.cupy()
    if not isinstance(repeats, cupy.ndarray):
        return x.repeat(repeats, axis)
    if axis is None:
        x, axis = x.ravel(), 0
    ends = cupy.cumsum(cupy.broadcast_to(repeats, (x.shape[axis],)))
    total = int(ends[-1]) if ends.size else 0  # the result's shape: the host must wait
    source = cupy.searchsorted(ends, cupy.arange(total), side="right")
    return cupy.take(x, source, axis=axis)


def isin() -> Callable[..., Any]:
    """Return ``isin`` as CuPy has it; either argument may be a number."""
    cupy = _optional.cupy()
    array, kind, found = cupy.asarray, cupy.ndarray, cupy.isin

    def isin(x1: Any, x2: Any, *, invert: bool = False) -> Any:
        if type(x1) is not kind:
            x1 = array(x1)
        if type(x2) is not kind:
            x2 = array(x2)
        return found(x1, x2, False, invert)

    return isin


def searchsorted() -> Callable[..., Any]:
    """Return ``searchsorted`` as CuPy has it; a number may be looked for."""
    cupy = _optional.cupy()
    array, kind, found = cupy.asarray, cupy.ndarray, cupy.searchsorted

    def searchsorted(
        x1: Any, x2: Any, *, side: Any = "left", sorter: Any = None
    ) -> Any:
        return found(x1, x2 if type(x2) is kind else array(x2), side, sorter)

    return searchsorted
