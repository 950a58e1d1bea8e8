"""Dask's collections of NumPy's or CuPy's arrays: functions over blocks, run later.

What works on blocks alone (elementwise functions, stacks of matrices) is xdev's own
function of the blocks; what crosses them is Dask's.
"""

from __future__ import annotations

import functools
import importlib
import operator
from itertools import chain
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from xdev import _optional, facade
from xdev.device import device_of
from xdev.errors import type_name
from xdev.facade import arithmetic, logic, transcendental
from xdev.facade.complaints import (
    PAGE,
    misfit,
    not_over_blocks,
    of_slice,
    wrong_dtype,
)
from xdev.facade.dtype_names import to_library_dtype
from xdev.facade.functions import Functions
from xdev.facade.libraries import direct

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from xdev.device import Device
    from xdev.facade.protocols import DType

MATRIX = 2  # axes

#: Functions of the standard whose results at a place depend on the arguments there.
ELEMENTWISE = {"where", *arithmetic.__all__, *logic.__all__, *transcendental.__all__}

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


def lift(x: Any) -> Any:
    """Return a plain array as a collection of one chunk; lists of them likewise."""
    if isinstance(x, list | tuple):
        return type(x)(map(lift, x))
    if isinstance(x, type | np.generic) or not hasattr(x, "ndim") or hasattr(x, "dask"):
        return x
    return _optional.dask_array().from_array(x, chunks=x.shape, asarray=False)


def without_elements(x: Any) -> Any:
    """Return an array like a collection's blocks, of size 0; what is none as it is."""
    if not hasattr(x, "dask"):
        return x
    meta = x._meta  # noqa: SLF001 - Dask's own protocol
    return meta if x.ndim else meta[None][:0]


def elementwise(
    function: Callable[..., Any],
    args: Sequence[Any],
    meta: Any = None,
    name: str | None = None,
) -> Any:
    """Map a function over the blocks of collections that broadcast to one shape.

    Parameters
    ----------
    function : callable
        It takes blocks, and gives blocks of the shape that they broadcast to; of
        several results a tuple.
    args : sequence
        Collections, plain arrays like their chunks, and what else it takes.
    meta : array or tuple of arrays, optional
        Results of size 0; by default what the function gives for blocks of size 0.
    name : str, optional
        What tasks are called; the function's own name unless given.

    Returns
    -------
    collection or tuple of collections
        Nothing is computed.
    """
    da = _optional.dask_array()
    args = [lift(x) for x in args]
    shapes = [x.shape for x in args if hasattr(x, "dask")]
    _check_shapes(name or str(getattr(function, "__name__", "f")), shapes)
    if meta is None:
        with np.errstate(all="ignore"):
            meta = function(*map(without_elements, args))
    ranks = [x.ndim if hasattr(x, "dask") else None for x in args]
    rank = max(r for r in ranks if r is not None)
    axes = [None if r is None else tuple(range(rank - r, rank)) for r in ranks]
    pairs, whole = chain.from_iterable(zip(args, axes, strict=True)), tuple(range(rank))
    first = meta[0] if isinstance(meta, tuple) else meta
    made = da.blockwise(
        function, whole, *pairs, meta=first, dtype=first.dtype, token=name
    )
    if not isinstance(meta, tuple):
        return made
    return tuple(
        da.blockwise(operator.getitem, whole, made, whole, i, None, meta=one)
        for i, one in enumerate(meta)
    )


def _check_shapes(name: str, shapes: list[tuple[float, ...]]) -> None:
    """Refuse shapes that do not broadcast; of unknown extents Dask knows the chunks."""
    if any(extent != extent for shape in shapes for extent in shape):  # noqa: PLR0124 - NaN
        return
    try:
        np.broadcast_shapes(*cast("list[tuple[int, ...]]", shapes))
    except ValueError as error:
        message = (
            f"{name}: the shapes {', '.join(map(str, shapes))} do not broadcast to "
            f"one: an axis has the same length in all, or 1; slice or reshape one"
        )
        raise ValueError(message) from error


def over_cores(
    function: Callable[..., Any], layout: str, args: Sequence[Any], **options: Any
) -> Any:
    """Map a function of core arrays over the blocks of the other dimensions.

    Parameters
    ----------
    function : callable
        It takes blocks whose last axes are whole core arrays.
    layout : str
        The core dimensions, ``"(m,n),(n)->(m)"``.
    args : sequence
        Collections, and plain arrays like their chunks.
    **options
        Those of ``dask.array.apply_gufunc``: ``axis``, ``output_sizes``, …

    Returns
    -------
    collection or tuple of collections
        The tuple is of the type that the function returns. Nothing is computed.

    Raises
    ------
    ValueError
        A core array lies in several chunks; the text says how to join them.
    """
    da = _optional.dask_array()
    args = [lift(x) for x in args]
    if not {"axes", "axis"} & options.keys():
        args = _aligned(function, layout, args)
    samples = [
        # No loop index: code of the user's meets no values that it is not for.
        facade.empty((0, *shape), dtype=x.dtype, device=chunk(x)[1])
        for x, shape in zip(args, _cores(layout), strict=True)
    ]
    meta = function(*samples)
    metas = tuple(meta) if isinstance(meta, tuple) else meta
    made = da.apply_gufunc(function, layout, *args, meta=metas, **options)
    return type(meta)._make(made) if hasattr(meta, "_make") else made


def _aligned(function: Any, layout: str, args: list[Any]) -> list[Any]:
    """Return collections cut alike along loop dimensions; core ones are whole.

    Dask cuts none alike here, and advises an option of its own where a core is cut.
    """
    pairs: list[Any] = []
    for place, (x, core) in enumerate(zip(args, _cores(layout), strict=True)):
        rank = x.ndim - len(core)
        cut = [axis for axis in range(-len(core), 0) if x.numblocks[axis] > 1]
        if cut:
            message = (
                f"{getattr(function, '__name__', 'f')}: argument {place} is in "
                f"{x.numblocks[cut[0]]} chunks along axis {cut[0]}, a core dimension "
                f"of {layout}: join them, x.rechunk({dict.fromkeys(cut, -1)}) ({PAGE})"
            )
            raise ValueError(message)
        cores = ((place, axis) for axis in range(len(core)))
        pairs += x, (*range(-rank, 0), *cores)
    return list(_optional.dask_array().core.unify_chunks(*pairs)[1])


def _cores(layout: str) -> list[tuple[int, ...]]:
    """Return a shape for the core of each input: 3 for all that has a name."""
    inputs = layout.replace(" ", "").partition("->")[0].strip("()").split("),(")
    names = [text.split(",") if text else [] for text in inputs]
    return [tuple(int(n) if n.isdigit() else 3 for n in core) for core in names]


def chunk(x: Any) -> tuple[type, Device]:
    """Return the type of a collection's chunks, and the device that they are on."""
    meta = x._meta  # noqa: SLF001 - Dask's own protocol
    return type(meta), device_of(meta)


def _of_cores(name: str, x: Any, *more: Any, **options: Any) -> Any:
    """Run xdev's function on blocks of whole matrices or vectors."""
    layout: str = CORES[name]
    fixed: dict[str, Any] = {}
    for key, value in options.items():
        layout = WIDER.get((name, key, value), layout)
    if name == "linalg.solve" and more[0].ndim == 1:
        layout = "(m,m),(m)->(m)"
    count = len(_cores(layout))
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
        self, name: str, function: Callable[..., Any], values: list[Any], out: Any
    ) -> Any:
        """Let ``out`` be another collection from now on: it has no memory."""
        refuse_plain(f"xdev.{name}", [out])
        return written(name, out, function(*values))


def refuse_plain(name: str, outs: Sequence[Any]) -> None:
    """Refuse an ``out`` that is a plain array, which would have to be computed now."""
    for out in outs:
        if out is not None and not hasattr(out, "dask"):
            message = (
                f"{name}: out is {type_name(out)}, and an input a collection of "
                f"Dask's, not computed yet: leave out= out, or compute it first"
            )
            raise TypeError(message)


def written(name: str, out: Any, result: Any) -> Any:
    """Give a collection other values, lazily; return it.

    Raises
    ------
    ValueError, TypeError
        It has another shape, or cannot hold the data type. It is a slice of another
        collection, which would not be written.
    """
    if result.shape != out.shape:
        raise misfit(name, out, result.shape, result.dtype)
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise wrong_dtype(name, out, result.shape, result.dtype)
    if out.name.startswith("getitem-"):
        raise of_slice(name, out)
    out[...] = result.astype(out.dtype)
    return out
