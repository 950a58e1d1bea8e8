# ruff: noqa: D102 - backends.Factory says what each method does
"""Dask's collections of NumPy's or CuPy's arrays: functions over blocks, run later.

What works on blocks alone (elementwise functions, stacks of matrices) is xdev's own
function of the blocks; what crosses them is Dask's. Each chunk that is made is an array
of xdev's own on the device, so its memory is the pool's of the process that computes
it, where and when it does.
"""

from __future__ import annotations

import functools
import importlib
import math
import operator
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from xdev import _optional, facade
from xdev.device import Device, device_of
from xdev.errors import ConfigurationError, quoted
from xdev.facade import backends
from xdev.facade.backends import Factory, Library
from xdev.facade.cpu import cutoff
from xdev.facade.dispatch import TRANSFORMS, dispatch, factory
from xdev.facade.elementwise import __test__ as ufuncs_by_name
from xdev.ufunc import dask as engine
from xdev.ufunc.argument_errors import PAGE, no_array, not_over_blocks

if TYPE_CHECKING:
    from types import ModuleType

    from xdev.facade.backends import DType, Function

MATRIX = 2  # axes
FLOATS = "fc"  # the kinds of data types with fractions
Window = tuple[slice, ...]  # where a chunk lies in its collection

#: Functions of the standard whose results at a place depend on the arguments there.
ELEMENTWISE = {"where", "clip", *ufuncs_by_name}

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


def _of_cores(name: str, x: Any, *more: Any, **options: Any) -> Any:
    """Run xdev's function on blocks of whole matrices or vectors."""
    layout: str = CORES[name]
    fixed: dict[str, Any] = {}
    for key, value in options.items():
        layout = WIDER.get((name, key, value), layout)
    if name == "linalg.solve" and more[0].ndim == 1:
        layout = "(m,m),(m)->(m)"
    count = len(engine.cores(layout))
    arrays, rest = [engine.lift(y) for y in (x, *more[: count - 1])], more[count - 1 :]
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
    result = engine.over_cores(run, layout, arrays, **fixed)
    return _optional.dask_array().moveaxis(result, -1, axis) if vectors else result


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
    return dispatch(name, blocks[0])(*blocks, *rest, **options)


# What Dask has of its own, where that departs from the standard.


def _xp() -> Any:
    return importlib.import_module("array_api_compat.dask.array")


def _diff(x: Any, *, axis: int, n: int, **ends: Any) -> Any:
    parts = [engine.lift(ends.get("prepend")), x, engine.lift(ends.get("append"))]
    parts = [part for part in parts if part is not None]
    whole = _xp().concat(parts, axis=axis) if len(parts) > 1 else x
    return _optional.dask_array().diff(whole, n=n, axis=axis)


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


def _matrix_rank(x: Any, *, rtol: Any) -> Any:
    xp, sizes = _xp(), _svd(x).S
    return xp.count_nonzero(sizes > cutoff(xp, sizes, x.shape, rtol))


#: By the standard's names, with the reason.
MENDED: dict[str, Function] = {
    "diff": _diff,  # computes what it is to put before
    "linalg.cholesky": _cholesky,  # gives the upper factor unless told
    "linalg.matrix_rank": _matrix_rank,  # asks Dask's svd for what it has not
    "linalg.svd": _svd,  # gives a plain tuple
    "linalg.svdvals": lambda x: _svd(x).S,  # array_api_compat asks for full matrices
    "searchsorted": _searchsorted,  # takes no number, and no 0-d array
    "take": _take,  # needs an axis
}


def _dasks(name: str) -> Function:
    """Return Dask's own function of a name."""
    try:
        return MENDED.get(name) or operator.attrgetter(name)(_xp())
    except AttributeError as error:
        raise not_over_blocks(name, "Dask has no such function") from error


@final
class DaskLibrary(Library):
    """Dask's collections, each of chunks of one type on one device."""

    chunk = staticmethod(engine.chunk)

    def __init__(self, namespace: ModuleType) -> None:
        super().__init__(namespace, self._find)

    def _find(self, name: str) -> Function:
        if name in ELEMENTWISE:
            own = getattr(facade, name)
            return lambda *args: engine.elementwise(own, args)
        if name in CORES:
            return functools.partial(_of_cores, name)
        if name in TRANSFORMS:  # they need all of an axis at once
            return functools.partial(_transform, name)
        own, lift = _dasks(name), engine.lift

        def across(*args: Any, **options: Any) -> Any:
            lifted = {key: lift(value) for key, value in options.items()}
            try:
                return own(*map(lift, args), **lifted)
            except NotImplementedError as error:
                raise not_over_blocks(name, _first_line(error)) from error

        return across

    def device(self, x: Any) -> object:
        """Return the device of the chunks."""
        return engine.chunk(x)[1]

    def write(
        self, name: str, function: Function, values: list[Any], out: Any, **_: Any
    ) -> Any:
        """Let ``out`` be another collection from now on: it has no memory."""
        engine.refuse_plain(f"xdev.{name}", [out])
        return engine.written(name, out, function(*values))


library = DaskLibrary


@final
class CollectionFactory(Factory):
    """One device, and how collections of arrays there are cut, as Dask takes it."""

    def __init__(self, device: Device, chunks: Any = "auto") -> None:
        if device.type == "fake" or device.library not in (None, "dask"):
            raise ConfigurationError(
                f"chunks= makes a collection of Dask's, whose chunks are NumPy's or "
                f"CuPy's arrays, and the device is {device!r}: give device='cpu' or "
                f"device='cuda', or set XDEV_DEVICE"
            )
        self._device, self._chunks = str(device), chunks

    def _collection(self, shape: Any, dtype: Any, make: Any, *args: Any) -> Any:
        """Return a collection whose chunks are ``make(window, device, dtype, *args)``.

        What is wrong with the arguments is raised here, by a chunk of size 0.
        """
        da = _optional.dask_array()
        from dask.layers import ArraySliceDep

        make = functools.partial(make, self._device, dtype, *args)
        whole = backends.as_shape(shape)
        if min(whole, default=0) < 0:
            message = f"a shape of {whole} has a negative extent: give 0 or more"
            raise ValueError(message)
        meta = make((slice(0, 0),) * len(whole))
        windows = ArraySliceDep(_cut(self._chunks, whole, meta.dtype))
        axes = tuple(range(len(whole)))
        return da.blockwise(
            make, axes, windows, axes, align_arrays=False, meta=meta, dtype=meta.dtype
        )

    def empty(self, shape: Any, dtype: DType) -> Any:
        return self._collection(shape, dtype, _of_shape, "empty")

    def full(self, shape: Any, value: Any, dtype: DType) -> Any:
        kind = dtype or backends.dtype_of_number(value)
        return self._collection(shape, kind, _of_shape, "full", value)

    def empty_like(self, x: Any, dtype: DType) -> Any:
        if not hasattr(x, "shape"):
            raise no_array("empty_like", "x", x)
        if _unknown(x):
            return self.full_like(x, 0, dtype)
        return self._like(x).empty(x.shape, dtype or x.dtype)

    def full_like(self, x: Any, value: Any, dtype: DType) -> Any:
        kind = dtype or x.dtype
        if not _unknown(x):
            return self._like(x).full(x.shape, value, kind)
        make = functools.partial(_full_like, self._device, kind, value)
        meta = make(x._meta)  # noqa: SLF001 - Dask's own protocol
        return x.map_blocks(make, dtype=meta.dtype, meta=meta)

    def _like(self, x: Any) -> CollectionFactory:
        if self._chunks != "auto" or not hasattr(x, "dask"):
            return self
        return CollectionFactory(Device(self._device), x.chunks)

    def arange(self, start: Any, stop: Any, step: Any, dtype: DType) -> Any:
        if stop is None:
            start, stop = 0, start
        count = max(0, math.ceil((stop - start) / step))
        ends = (np.arange(x, x, step) for x in (start, stop))
        kind = backends.to_numpy_dtype(dtype) if dtype else np.result_type(*ends)
        return self._collection(count, kind, _range, start, step)

    def linspace(
        self, start: Any, stop: Any, num: int, *, dtype: DType, endpoint: bool
    ) -> Any:
        kind = backends.to_numpy_dtype(dtype or np.linspace(start, stop, 1).dtype)
        return self._collection(num, kind, _spaced, (start, stop, num, endpoint))

    def eye(self, rows: int, columns: int, k: int, dtype: DType) -> Any:
        return self._collection((rows, columns), dtype or np.float64, _diagonal, k)

    def asarray(self, obj: Any, dtype: DType, copy: bool | None) -> Any:
        if not hasattr(obj, "dask"):
            return self.chunked(
                facade.asarray(obj, dtype, device=self._device, copy=copy)
            )
        cast = obj if dtype is None else obj.astype(backends.to_numpy_dtype(dtype))
        return cast.copy() if copy else cast

    def chunked(self, x: Any) -> Any:
        """Return an array, or a collection cut otherwise, as a collection."""
        if not hasattr(x, "dask"):
            chunks = _cut(self._chunks, x.shape, x.dtype)
            return _optional.dask_array().from_array(x, chunks=chunks, asarray=False)
        if not _unknown(x):
            _cut(self._chunks, x.shape, x.dtype)
        return x.rechunk(self._chunks)

    def frequencies(self, name: str, n: int, d: float, dtype: DType) -> Any:
        return self.chunked(factory(self._device).frequencies(name, n, d, dtype))

    def from_dlpack(self, x: Any, copy: bool | None) -> Any:
        return self.chunked(facade.from_dlpack(x, device=self._device, copy=copy))


def collection_of(
    obj: Any, dtype: DType, device: object, copy: bool | None, chunks: Any
) -> Any:
    """Return what ``asarray`` takes, or a collection cut otherwise, as a collection."""
    if device is not None and hasattr(obj, "dask"):
        device = Device(device, "dask")  # or it would be computed
    whole = facade.asarray(obj, dtype, device=device, copy=copy)
    return CollectionFactory(device_of(whole), chunks).chunked(whole)


def refuse_collections(nested: Any) -> None:
    """Refuse lists that hold collections, which NumPy would compute."""
    collection = _optional.dask_array().Array
    if backends.first_in(nested, lambda x: type(x) is collection) is not None:
        raise TypeError(
            f"xdev.asarray: the list holds a collection of Dask's, which is not "
            f"computed unasked: join them with xdev.stack, or pass x.compute() ({PAGE})"
        )


def _cut(chunks: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return the lengths of the chunks along each axis."""
    lengths, refused = None, None
    try:
        if isinstance(chunks, dict):
            axes = normalize_axis_tuple(tuple(chunks), len(shape))
            chunks = dict(zip(axes, chunks.values(), strict=True))
        lengths = _optional.dask_array().core.normalize_chunks(
            chunks, shape, dtype=dtype
        )
    except (ArithmeticError, RecursionError, TypeError, ValueError) as caught:
        refused = caught
    least = min(map(min, lengths or ()), default=0)
    if lengths is None or tuple(map(sum, lengths)) != shape or least < 0:
        raise ValueError(
            f"chunks={quoted(chunks)} does not cut an array of shape {shape}: give a "
            f"length, chunks=1000, one for each axis, in which -1 is all of it, "
            f"chunks=(1000, -1), or chunks='auto'"
        ) from refused
    return lengths


def _unknown(x: Any) -> bool:
    """Say whether only the chunks know an array's shape, as those of ``x[x > 0]``."""
    return any(map(math.isnan, x.shape))


# What makes a chunk: in module scope, so that it goes to workers by name.


def _shape(window: Window) -> tuple[int, ...]:
    return tuple(extent.stop - extent.start for extent in window)


def _of_shape(device: str, dtype: Any, name: str, *args: Any) -> Any:
    *value, window = args
    return getattr(facade, name)(_shape(window), *value, dtype, device=device)


def _full_like(device: str, dtype: Any, value: Any, block: Any) -> Any:
    return facade.full(block.shape, value, dtype, device=device)


def _diagonal(device: str, dtype: Any, k: int, window: Window) -> Any:
    rows, columns = window
    shifted = k + rows.start - columns.start
    n_rows, n_cols = _shape(window)
    return facade.eye(n_rows, n_cols, shifted, dtype, device=device)


def _range(device: str, dtype: Any, start: Any, step: Any, window: Window) -> Any:
    """Return a part of a range, to the same bits as a whole one of NumPy's."""
    (part,) = window
    first, second = (np.asarray(x).astype(dtype)[()] for x in (start, start + step))
    numbers = _counts(device, dtype, part)
    numbers *= second - first
    numbers += first
    if part.start <= 1 < part.stop:
        numbers[1 - part.start] = second
    return numbers


def _spaced(device: str, dtype: Any, span: tuple[Any, ...], window: Window) -> Any:
    """Return a part of evenly spaced numbers, to the same bits as NumPy's."""
    (start, stop, num, endpoint), (part,) = span, window
    between = num - endpoint
    distance = np.subtract(stop, start, dtype=np.result_type(start, stop, 1.0))
    numbers = _counts(device, distance.dtype, part)
    if between > 0 and distance / between:
        numbers *= distance / between
    else:
        numbers *= distance
        numbers /= max(between, 1)
    numbers += start
    if endpoint and num > 1 and part.start < num == part.stop:
        numbers[-1] = stop
    if np.dtype(dtype).kind not in FLOATS:
        numbers = facade.floor(numbers)
    return facade.astype(numbers, dtype, copy=False)


def _counts(device: str, dtype: Any, part: slice) -> Any:
    return facade.astype(facade.arange(part.start, part.stop, device=device), dtype)
