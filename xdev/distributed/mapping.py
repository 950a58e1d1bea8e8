"""Any function of plain arrays, kernels too, over the blocks of Dask's collections."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional, facade
from xdev.device import device_of
from xdev.facade import dask
from xdev.ufunc.inputs import is_collection
from xdev.ufunc.kernels import Kernel, writes

if TYPE_CHECKING:
    from collections.abc import Callable


def map_blocks(
    f: Callable[..., Any],
    *arrays: Any,
    depth: int | dict[int, int] = 0,
    dtype: Any = None,
    **shapes: Any,
) -> Any:
    """Map a function of plain arrays over the blocks of collections, lazily.

    Parameters
    ----------
    f : callable or kernel
        It takes a block of each collection, NumPy's or CuPy's arrays, and gives arrays
        of the shape that the blocks broadcast to; a tuple of them is several results.
        A kernel runs for each point of a block, ``k[block.shape](*blocks, out)``: the
        parameters behind the inputs are results, of the inputs' result type.
    *arrays
        Collections that broadcast to one shape, plain arrays like their chunks, and
        what else ``f`` takes.
    depth : int or dict
        How many elements of its neighbours a block has at its sides, for all axes or
        by axis; the result is without them. For stencils.
    dtype : dtype, optional
        The results' data type. Unless given, ``f`` is called once with arrays of size 0
        to learn it.
    **shapes
        Where blocks of results have other shapes, what ``dask.array.map_blocks`` takes
        to say so: ``chunks``, ``drop_axis``, ``new_axis``.

    Returns
    -------
    collection or tuple of collections
        Nothing is computed.

    Raises
    ------
    TypeError
        None is a collection, or ``f`` takes no arrays of size 0.
    ValueError
        The results' rank is another, and ``shapes`` does not say how.

    Examples
    --------
    >>> import xdev
    >>> x = xdev.arange(6.0, chunks=3)
    >>> xdev.distributed.map(xdev.cumulative_sum, x).compute()
    array([ 0.,  1.,  3.,  3.,  7., 12.])
    """
    if not any(map(is_collection, arrays)):
        message = (
            "xdev.distributed.map: none of the arrays is a collection of Dask's: make "
            "one, xdev.asarray(x, chunks=...), or call f(x)"
        )
        raise TypeError(message)
    arrays = tuple(map(dask.lift, arrays))
    rank = max(x.ndim for x in arrays if is_collection(x))
    if isinstance(f, Kernel):
        f = functools.partial(_run, f, _results(f, rank, len(arrays)))
    meta = _like_first(arrays, dtype) if dtype is not None else _learnt(f, arrays)
    if depth or shapes:
        if isinstance(meta, tuple):
            message = (
                "xdev.distributed.map: a function of several results has no depth= and "
                "no other shapes: map one for each result"
            )
            raise ValueError(message)
        da = _optional.dask_array()
        if not depth:
            return da.map_blocks(f, *arrays, meta=meta, dtype=meta.dtype, **shapes)
        shapes["boundary"] = "none"
        return da.map_overlap(
            f, *arrays, depth=depth, meta=meta, dtype=meta.dtype, **shapes
        )
    for made in meta if isinstance(meta, tuple) else (meta,):
        if dtype is None and np.ndim(made) != rank:
            message = (
                f"xdev.distributed.map: of blocks of {rank} axes f makes arrays of "
                f"{np.ndim(made)}: say which go and come, drop_axis=, new_axis= and "
                f"chunks= as dask.array.map_blocks takes them"
            )
            raise ValueError(message)
    return dask.elementwise(f, arrays, meta)


def _learnt(f: Callable[..., Any], arrays: tuple[Any, ...]) -> Any:
    """Return what a function makes of arrays of size 0."""
    try:
        with np.errstate(all="ignore"):
            made = f(*map(dask.without_elements, arrays))
    except Exception as error:
        message = (
            f"xdev.distributed.map calls f with arrays of size 0 to learn the result's "
            f"data type, and it raised {type(error).__name__}: {error}. Give dtype="
        )
        raise TypeError(message) from error
    results = made if isinstance(made, tuple) else (made,)
    for result in results:
        if not hasattr(result, "dtype"):
            message = (
                f"xdev.distributed.map: f returned {type(result).__name__}, and must "
                f"return an array, or a tuple of arrays"
            )
            raise TypeError(message)
    return made


def _like_first(arrays: tuple[Any, ...], dtype: Any) -> Any:
    """Return an array of size 0 like the first collection's blocks, of a data type."""
    first = next(x for x in arrays if is_collection(x))
    return facade.astype(dask.without_elements(first), dtype)


def _results(kernel: Kernel, rank: int, inputs: int) -> int:
    """Return how many results a kernel of so many indices and inputs has."""
    code: Any = kernel.function.__code__
    names = code.co_varnames[rank + inputs : code.co_argcount]
    found = writes.find(kernel.function, dict.fromkeys(names, 1))
    unwritten = [name for name in names if name not in found.surely | found.perhaps]
    if unwritten or not names:
        what = (
            f"does not write {', '.join(unwritten)}" if unwritten else "has no result"
        )
        message = (
            f"xdev.distributed.map: {kernel.__name__} of {rank} indices and {inputs} "
            f"inputs {what}: what comes behind the inputs are results"
        )
        raise TypeError(message)
    return len(names)


def _run(kernel: Kernel, results: int, *blocks: Any) -> Any:
    """Run a kernel for each point of blocks; return what it wrote."""
    inputs = [x for x in blocks if hasattr(x, "ndim")]
    shape = np.broadcast_shapes(*(x.shape for x in inputs))
    dtype, device = facade.result_type(*blocks), device_of(inputs[0])
    outs = tuple(facade.empty(shape, dtype, device=device) for _ in range(results))
    kernel[shape](*blocks, *outs)
    return outs if results > 1 else outs[0]
