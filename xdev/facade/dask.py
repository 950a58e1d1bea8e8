"""Dask's collections of NumPy's or CuPy's arrays: functions over blocks, run later.

What works on blocks alone (elementwise functions, stacks of matrices) is xdev's own
function of the blocks; what crosses them is Dask's.
"""

from __future__ import annotations

import functools
import importlib
import operator
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from xdev import _optional, facade
from xdev.facade.cpu import Functions
from xdev.facade.dispatch import direct
from xdev.facade.dtype_names import to_library_dtype
from xdev.facade.elementwise import __all__ as elementwise_names
from xdev.ufunc.complaints import not_over_blocks
from xdev.ufunc.dask import (
    chunk,
    cores,
    elementwise,
    lift,
    over_cores,
    refuse_plain,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from xdev.facade.protocols import DType

MATRIX = 2  # axes

#: Functions of the standard whose results at a place depend on the arguments there.
ELEMENTWISE = {"where", *elementwise_names}

#: Functions of stacks of matrices or vectors: core dimensions; ``k`` is the least one.
CORES = {
    "linalg.cholesky": "(m,m)->(m,m)",
    "linalg.cross": "(n),(n)->(n)",
    "linalg.det": "(m,m)->()",
    "linalg.eig": "(m,m)->(m),(m,m)",
    "linalg.eigh": "(m,m)->(m),(m,m)",
    "linalg.eigvals": "(m,m)->(m)",
    "linalg.eigvalsh": "(m,m)->(m)",
    "linalg.inv": "(m,m)->(m,m)",
    "linalg.matrix_power": "(m,m)->(m,m)",
    "linalg.matrix_rank": "(m,n)->()",
    "linalg.pinv": "(m,n)->(n,m)",
    "linalg.qr": "(m,n)->(m,k),(k,n)",
    "linalg.slogdet": "(m,m)->(),()",
    "linalg.solve": "(m,m),(m,k)->(m,k)",
    "linalg.svd": "(m,n)->(m,k),(k),(k,n)",
    "linalg.svdvals": "(m,n)->(k)",
    "take_along_axis": "(n),(k)->(k)",
}
#: Those that Dask has across blocks, of one matrix.
ACROSS = {f"linalg.{name}" for name in ("cholesky", "inv", "matrix_rank", "qr")}
ACROSS |= {"linalg.solve", "linalg.svd", "linalg.svdvals"}
#: Where other arguments mean other core dimensions.
WIDER = {
    ("linalg.qr", "mode", "complete"): "(m,n)->(m,m),(m,n)",
    ("linalg.svd", "full_matrices", True): "(m,n)->(m,m),(k),(n,n)",
}

#: Those that need all of an axis at once.
TRANSFORMS = {
    f"fft.{inverse}{name}"
    for inverse in ("", "i")
    for name in ("fft", "fftn", "rfft", "rfftn", "hfft")
}


def _of_cores(name: str, x: Any, *more: Any, **options: Any) -> Any:
    """Run xdev's function on blocks of whole matrices or vectors."""
    layout: str = CORES[name]
    fixed: dict[str, Any] = {}
    for key, value in options.items():
        layout = WIDER.get((name, key, value), layout)
    if name == "linalg.solve" and more[0].ndim == 1:
        layout = "(m,m),(m)->(m)"
    count = len(cores(layout))
    arrays, rest = [lift(y) for y in (x, *more[: count - 1])], more[count - 1 :]
    vectors = not layout.startswith("(m")
    axis = options.pop("axis", -1) if vectors else -1
    axes = [axis] if vectors else [-2, -1]
    if any(y.numblocks[axis] > 1 for y in arrays for axis in axes[-y.ndim :]):
        join = f"x.rechunk({dict.fromkeys(axes, -1)})"
        if name not in ACROSS or x.ndim != MATRIX:
            raise not_over_blocks(name, f"axis {axes[-1]} is in several chunks", join)
        try:
            return _dasks(name)(*arrays, *rest, **options)
        except (ImportError, NotImplementedError, ValueError) as error:  # no SciPy
            raise not_over_blocks(name, _first_line(error), join) from error
    if vectors:
        arrays = [_optional.dask_array().moveaxis(y, axis, -1) for y in arrays]
        options["axis"] = -1
    inputs, _, outputs = layout.partition("->")
    if "k" in outputs and "k" not in inputs:
        fixed["output_sizes"] = {"k": min(x.shape[-2:])}
    run = functools.partial(_on_blocks, name, rest, options)
    made = over_cores(run, layout, arrays, **fixed)
    return _optional.dask_array().moveaxis(made, -1, axis) if vectors else made


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".:")


def _transform(name: str, x: Any, **options: Any) -> Any:
    """Run Dask's Fourier transform, along axes that are whole."""
    axes = options.get("axes", options.get("axis"))
    if axes is None:
        axes = range(-len(options["s"] or x.shape), 0)
    axes = normalize_axis_tuple(axes, x.ndim, allow_duplicate=True)
    cut = [axis for axis in axes if x.numblocks[axis] > 1]
    if cut:
        join = f"x.rechunk({dict.fromkeys(cut, -1)})"
        raise not_over_blocks(name, f"axis {cut[0]} is in several chunks", join)
    return _dasks(name)(x, **options)


def _on_blocks(
    name: str, rest: tuple[Any, ...], options: dict[str, Any], *blocks: Any
) -> Any:
    return direct[type(blocks[0])][name](*blocks, *rest, **options)


# What Dask has of its own, where that departs from the standard.


def _xp() -> Any:
    return importlib.import_module("array_api_compat.dask.array")


def _eye(rows: int, columns: int, **options: Any) -> Any:
    return _xp().eye(max(rows, columns), **options)[:rows, :columns]


def _diff(x: Any, *, axis: int, n: int, **ends: Any) -> Any:
    parts = [lift(ends.get("prepend")), x, lift(ends.get("append"))]
    parts = [part for part in parts if part is not None]
    whole = _xp().concat(parts, axis=axis) if len(parts) > 1 else x
    return _optional.dask_array().diff(whole, n=n, axis=axis)


def _repeat(x: Any, repeats: Any, *, axis: int | None) -> Any:
    if not isinstance(repeats, int | np.integer):
        raise not_over_blocks("repeat", "the counts are an array")
    return _optional.dask_array().repeat(x, repeats, axis=axis)


def _reshape(x: Any, shape: Any, *, copy: bool | None) -> Any:
    try:
        return _xp().reshape(x, shape, copy=copy)
    except NotImplementedError as error:
        raise not_over_blocks("reshape", _first_line(error), "x.rechunk(-1)") from error


def _searchsorted(x1: Any, x2: Any, **options: Any) -> Any:
    xp = _xp()
    values = xp.asarray(x2)
    if values.ndim:
        return xp.searchsorted(x1, values, **options)
    return xp.searchsorted(x1, values[None], **options)[0]


def _take(x: Any, indices: Any, *, axis: int | None) -> Any:
    return _xp().take(x, indices, axis=0 if axis is None and x.ndim == 1 else axis)


def _cholesky(x: Any, *, upper: bool) -> Any:
    return _optional.dask_array().linalg.cholesky(x, lower=not upper)


def _svd(x: Any, *, full_matrices: bool = False) -> Any:
    if full_matrices:
        message = "over several chunks there is full_matrices=False alone"
        raise NotImplementedError(message)
    xp = _xp()
    return xp.linalg.SVDResult(*xp.linalg.svd(x, full_matrices=False))


def _svdvals(x: Any) -> Any:
    return _svd(x).S


def _matrix_rank(x: Any, *, rtol: Any) -> Any:
    xp, sizes = _xp(), _svd(x).S
    if rtol is None:
        rtol = max(x.shape) * xp.finfo(sizes.dtype).eps
    return xp.count_nonzero(sizes > sizes[:1] * rtol)  # the first is the largest


#: By the standard's names, with the reason.
MENDED: dict[str, Callable[..., Any]] = {
    "diff": _diff,  # computes what it is to put before
    "eye": _eye,  # lacks blocks of what is wider than high
    "linalg.cholesky": _cholesky,  # gives the upper factor unless told
    "linalg.matrix_rank": _matrix_rank,  # asks Dask's svd for what it has not
    "linalg.svd": _svd,  # gives a plain tuple
    "linalg.svdvals": _svdvals,  # array_api_compat asks for full matrices
    "repeat": _repeat,  # says less
    "reshape": _reshape,  # has no way out
    "searchsorted": _searchsorted,  # takes no number, and no 0-d array
    "take": _take,  # needs an axis
}


def _dasks(name: str) -> Callable[..., Any]:
    """Return Dask's own function of a name.

    Raises
    ------
    NotImplementedError
        It has none; the text has the ways out.
    """
    try:
        return MENDED.get(name) or operator.attrgetter(name)(_xp())
    except AttributeError as error:
        raise not_over_blocks(name, "Dask has no such function") from error


@final
class DaskLibrary:
    """Dask's collections, each of chunks of one type on one device.

    Parameters
    ----------
    namespace : module
        array_api_compat's for Dask.
    """

    __slots__ = ("functions", "namespace")
    numpy_dtypes = True
    device_type: str | None = None
    several = True
    chunk = staticmethod(chunk)

    def __init__(self, namespace: ModuleType) -> None:
        self.namespace = namespace
        self.functions = Functions(self._find)

    def bound(self, name: str, like: Any) -> Callable[..., Any]:  # noqa: ARG002
        """Return the function of that name, of collections and plain arrays."""
        return self.functions[name]

    def _find(self, name: str) -> Callable[..., Any]:
        if name in ELEMENTWISE:
            own = getattr(facade, name)
            return lambda *args: elementwise(own, args)
        if name in CORES:
            return functools.partial(_of_cores, name)
        if name in TRANSFORMS:
            return functools.partial(_transform, name)
        own = _dasks(name)
        return lambda *args, **options: own(
            *map(lift, args), **{key: lift(value) for key, value in options.items()}
        )

    def device(self, x: Any) -> object:
        """Return the device of the chunks."""
        return chunk(x)[1]

    def dtype(self, dtype: DType) -> DType:
        """Return NumPy's data type for anybody's."""
        return None if dtype is None else to_library_dtype(dtype, self.namespace)

    def operand(self, value: Any, like: Any) -> Any:  # noqa: ARG002
        """Return 0-d host arrays as scalars, as for CuPy."""
        return value[()] if type(value) is np.ndarray and not value.ndim else value

    def write(
        self,
        name: str,
        function: Callable[..., Any],
        values: list[Any],
        out: Any,
        **keywords: Any,  # noqa: ARG002 - the engine's way has them
    ) -> Any:
        """Let ``out`` be another collection from now on: it has no memory."""
        refuse_plain(f"xdev.{name}", [out])
        return written(name, out, function(*values))
