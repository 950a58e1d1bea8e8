"""Beyond one machine or one GPU: Dask's engine, with what Dask cannot know.

The namespace's functions and ufuncs take collections of ``dask.array`` as they take
arrays, and creation functions make them, ``xdev.zeros(shape, chunks=...)``. Here is
what maps any other function over their blocks, kernels too, and what gives workers
their devices.
"""

from __future__ import annotations

import functools
import importlib
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional, facade
from xdev.device import device_of
from xdev.errors import quoted
from xdev.ufunc import dask
from xdev.ufunc.dask import is_collection
from xdev.ufunc.kernels import Kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.distributed.clusters import WorkerPlugin, local_cluster, memory_status
else:

    def __getattr__(name: str) -> Any:
        """Load what needs the package ``distributed``, which ``map`` does not."""
        if name not in ("WorkerPlugin", "local_cluster", "memory_status"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.clusters"), name)


__all__ = ["WorkerPlugin", "local_cluster", "map", "memory_status"]
__dir__ = __all__.copy  # what Tab shows
MAP = "xdev.distributed.map"  # in errors


def map(  # noqa: A001 - its name in the contract
    f: Callable[..., Any],
    *arrays: Any,
    depth: int | Sequence[int] | dict[int, int] = 0,
    dtype: Any = None,
    chunks: Any = None,
    drop_axis: Any = None,
    new_axis: Any = None,
    **options: Any,
) -> Any:
    """Map a function of plain arrays over the blocks of collections, lazily.

    Parameters
    ----------
    f : callable or kernel
        It takes a block of each collection, NumPy's or CuPy's arrays, and gives arrays
        of the shape that the blocks broadcast to; a tuple of them is several results.
        A kernel runs for each point of a block, ``k[block.shape](*blocks, out)``: the
        parameters behind the inputs are results, of ``dtype``, or of the inputs' result
        type.
    *arrays
        Collections that broadcast to one shape, plain arrays like their chunks, and
        what else ``f`` takes.
    depth : int, sequence or dict
        How many elements of its neighbours a block has at its sides, for all axes or
        by axis; they are cut off the result, not by ``f``. For stencils.
    dtype : dtype, optional
        The data type of ``f``'s one result, or of each of a kernel's. Unless given,
        ``f`` is called once with arrays of size 0 to learn it.
    chunks, drop_axis, new_axis : optional
        Where blocks of results have other shapes, what says so, as
        ``dask.array.map_blocks`` takes it.
    **options
        Keyword arguments of ``f``; collections go by place.

    Returns
    -------
    collection or tuple of collections
        Nothing is computed. What ``f`` gives for a block is converted to the data type
        that the collection has, as far as ``numpy.can_cast(..., "same_kind")``.

    Raises
    ------
    TypeError
        None is a collection, or one is among the keyword arguments; ``f`` takes no
        arrays of size 0. When it is computed: ``f`` gives what cannot be converted.
    ValueError
        When it is computed: a result has not the shape that its blocks broadcast to,
        and no argument says which.

    Examples
    --------
    >>> import xdev
    >>> x = xdev.arange(6.0, chunks=3)
    >>> xdev.distributed.map(xdev.cumulative_sum, x).compute()
    array([ 0.,  1.,  3.,  3.,  7., 12.])
    """
    _check(f, arrays, options)
    if not isinstance(depth, Integral | list | tuple | dict):
        kinds = "an int, a sequence of ints, or a dict of them by axis"
        raise TypeError(f"{MAP}: depth is {quoted(depth)}, and must be {kinds}")
    originals, arrays = arrays, tuple(dask.lift(x) for x in arrays)
    name = str(getattr(f, "__name__", "map")).strip("<>")  # of tasks
    if isinstance(f, Kernel):
        rank = max(x.ndim for x in arrays if is_collection(x))
        f = functools.partial(_run, f, _results(f, rank, arrays), dtype)
        meta = _learnt(f, arrays)
    else:
        f = functools.partial(f, **options) if options else f
        meta = _learnt(f, arrays) if dtype is None else _like_first(arrays, dtype)
    several = isinstance(meta, tuple)
    shapes = {"chunks": chunks, "drop_axis": drop_axis, "new_axis": new_axis}
    shapes = {option: value for option, value in shapes.items() if value is not None}
    if several and (depth or shapes):
        no = "has no depth= and no other shapes: map one for each result"
        raise ValueError(f"{MAP}: a function of several results {no}")
    dtypes = tuple(x.dtype for x in meta) if several else meta.dtype
    da = _optional.dask_array()
    like = {} if several else {"meta": meta, "dtype": meta.dtype, "token": name}
    if depth:
        pairs = enumerate(zip(originals, arrays, strict=True))
        others = {at: plain for at, (plain, x) in pairs if not is_collection(x)}
        arrays = tuple(filter(is_collection, arrays))
        f = functools.partial(_placed, f, others) if others else f
    f = functools.partial(_on_blocks, f, dtypes, not shapes)
    if depth:
        shapes["boundary"] = "none"
        return da.map_overlap(f, *arrays, depth=depth, **like, **shapes)
    if shapes:
        return da.map_blocks(f, *arrays, **like, **shapes)
    return dask.elementwise(f, arrays, meta, name)


def _check(f: Any, arrays: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Refuse what has no collection, or has one by keyword, and kernels' keywords."""
    if not callable(f):
        raise TypeError(f"{MAP}: f is {quoted(f)}: give a function")
    if not any(is_collection(x) for x in arrays):
        way = "make one, xdev.asarray(x, chunks=...), or call f(x)"
        raise TypeError(f"{MAP}: none of the arrays is a collection of Dask's: {way}")
    for name, value in options.items():
        if is_collection(value) or isinstance(f, Kernel):
            what = "a kernel's argument" if isinstance(f, Kernel) else "a collection"
            way = f"{MAP}(f, x, {name})"
            raise TypeError(f"{MAP}: {name}= is {what}, which goes by place: {way}")


def _learnt(f: Callable[..., Any], arrays: tuple[Any, ...]) -> Any:
    """Return what a function makes of arrays of size 0."""
    try:
        with np.errstate(all="ignore"):
            output = f(*[dask.without_elements(x) for x in arrays])
    except Exception as error:
        raised = f"it raised {type(error).__name__}: {error}. Give dtype="
        raise TypeError(
            f"{MAP} calls f with arrays of size 0 to learn the data type, and {raised}"
        ) from error
    results = output if isinstance(output, tuple) else (output,)
    for result in results:
        if not hasattr(result, "dtype"):
            what = f"f returned {type(result).__name__}, and must return"
            raise TypeError(f"{MAP}: {what} an array, or a tuple of arrays")
    return output


def _like_first(arrays: tuple[Any, ...], dtype: Any) -> Any:
    """Return an array of size 0 like the first collection's blocks, of a data type."""
    first = next(x for x in arrays if is_collection(x))
    return facade.astype(dask.without_elements(first), dtype)


def _placed(f: Callable[..., Any], others: dict[int, Any], *blocks: Any) -> Any:
    """Call a function of blocks and, at their places, of what is none."""
    args = list(blocks)
    for place, value in others.items():  # from the left
        args.insert(place, value)
    return f(*args)


def _on_blocks(f: Callable[..., Any], dtypes: Any, alike: bool, *blocks: Any) -> Any:
    """Return what a function makes of blocks, of the data types that are promised.

    ``dtypes`` is the one result's, a tuple of several results; with ``alike`` a result
    has the shape that the blocks broadcast to.

    Raises
    ------
    TypeError
        A result is no array, or cannot be converted.
    ValueError
        It is of another shape.
    """
    results, shape = f(*blocks), None
    if alike:
        shape = np.broadcast_shapes(*(x.shape for x in blocks if hasattr(x, "ndim")))
    if not isinstance(dtypes, tuple):
        return _promised(results, dtypes, shape)
    if not isinstance(results, tuple) or len(results) != len(dtypes):
        what = f"f returned {len(dtypes)} arrays for blocks of size 0"
        raise TypeError(f"{MAP}: {what}, and for others no such tuple: return one")
    return tuple(_promised(x, d, shape) for x, d in zip(results, dtypes, strict=True))


def _promised(result: Any, dtype: np.dtype[Any], shape: tuple[int, ...] | None) -> Any:
    """Return a block's result as the collection's dtype and shape have it."""
    if not hasattr(result, "dtype") or is_collection(result):
        raise TypeError(
            f"{MAP}: f returned {type(result).__name__} for a block, and must return "
            f"an array of {dtype}; without dtype= it may return a tuple of arrays"
        )
    if shape is not None and result.shape != shape:
        raise ValueError(
            f"{MAP}: f made an array of shape {result.shape} of blocks of shape "
            f"{shape}: return that shape (what depth= adds is cut off afterwards), or "
            f"say chunks=, drop_axis= and new_axis= as dask.array.map_blocks takes them"
        )
    if result.dtype == dtype:
        return result
    if not np.can_cast(result.dtype, dtype, "same_kind"):
        way = f"give dtype={str(result.dtype)!r}, or convert in f"
        both = f"an array of {result.dtype}, and the collection is of {dtype}"
        raise TypeError(f"{MAP}: f made {both}: {way}")
    return result.astype(dtype)


def _results(kernel: Kernel, rank: int, arrays: tuple[Any, ...]) -> int:
    """Return how many results a kernel of so many indices and of inputs has."""
    code: Any = kernel.function.__code__
    inputs = len(arrays)
    names = code.co_varnames[rank + inputs : code.co_argcount]
    made = ((x, getattr(x, "ndim", None)) for x in arrays)
    blocks = [x if n is None else np.empty((0,) * n, x.dtype) for x, n in made]
    sample = np.empty((0,) * rank, np.result_type(*blocks))
    try:
        written = kernel.writes(rank, *blocks, *[sample] * len(names))
        missing = ", ".join(name for name in names if name not in written)
        reason = f"it does not write {missing}" if missing else ""
    except TypeError as error:  # as when an input is taken for a result
        reason = str(error)
    if reason or not names:
        of = f"{kernel.__name__} of {rank} indices and {inputs} inputs"
        results = ", ".join(names) or "(none)"
        raise TypeError(f"{MAP}: {of} would have the results {results}: {reason}")
    return len(names)


def _run(kernel: Kernel, results: int, dtype: Any, *blocks: Any) -> Any:
    """Run a kernel for each point of blocks; return what it wrote."""
    inputs = [x for x in blocks if hasattr(x, "ndim")]
    shape = np.broadcast_shapes(*(x.shape for x in inputs))
    device = device_of(inputs[0])
    dtype = facade.result_type(*blocks) if dtype is None else dtype
    outs = tuple(facade.empty(shape, dtype, device=device) for _ in range(results))
    kernel[shape](*blocks, *outs)
    return outs if results > 1 else outs[0]
