"""The facade's reductions of CUDA arrays, by the engine's kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev.facade import elementwise
from xdev.ufunc.cuda_methods import CudaReduction

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.facade.backends import Axes, DType

#: Reductions of elementwise functions, by the engine's kernels.
REDUCTIONS = {
    "all": elementwise.logical_and,
    "any": elementwise.logical_or,
    "max": elementwise.maximum,
    "min": elementwise.minimum,
    "prod": elementwise.multiply,
    "sum": elementwise.add,
}
#: Sums of which the same kernels make more, of real numbers.
STATISTICS = {
    **{name: name for name in ("argmax", "argmin", "mean", "std", "var")},
    "count_nonzero": "count",
    "linalg.matrix_norm": "norm",
    "linalg.vector_norm": "norm",
}


def reduction(function: Any) -> Callable[..., Any]:
    """Return a reduction along all axes, or some."""

    def reduce(
        x: Any, *, axis: Axes = None, dtype: DType = None, keepdims: bool = False
    ) -> Any:
        if keepdims:
            return function.reduce(x, axis, dtype, None, True)
        return function.reduce(x, axis, dtype)

    vars(reduce)["marks"] = True  # the engine does
    return reduce


def statistic(name: str, own: Callable[..., Any]) -> Callable[..., Any]:
    """Return such a function; ``own`` is CuPy's, for what the kernels do not serve."""
    add: Any = elementwise.add
    fold = CudaReduction(add._cuda, 0, STATISTICS[name])  # noqa: SLF001

    matrix = name == "linalg.matrix_norm"
    least, plain = (2, "fro") if matrix else (0, 2)

    def reduce(
        x: Any, *, keepdims: bool = False, ord: Any = plain, **options: Any
    ) -> Any:
        asked = {"axis": (-2, -1), **options} if matrix else options
        if ord == plain and not keepdims:
            made = fold.again(x, **asked)
            if made is not NotImplemented:
                return made
        serves = x.dtype.kind != "c" or name == "count_nonzero"
        if name.startswith("arg"):  # of all elements the place counts rows of them
            rows = options.get("axis") is None and not x._c_contiguous  # noqa: SLF001
            serves = serves and x.size > 0 and not rows
        if ord == plain and serves and x.ndim >= least:
            return fold(x, keepdims=keepdims, **asked)
        ways = {"ord": ord} if name.startswith("linalg.") else {}
        return own(x, keepdims=keepdims, **ways, **options)

    vars(reduce)["marks"] = True  # the engine does
    return reduce
