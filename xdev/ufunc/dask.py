"""Ufuncs of Dask's collections: called on each block, where and when it is computed."""

from __future__ import annotations

import functools
import operator
import sys
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev.device import device_of
from xdev.errors import type_name
from xdev.ufunc.argument_errors import PAGE, check_out, of_slice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.device import Device
    from xdev.ufunc.ufuncs import Ufunc

AXES = ("axis", "keepdims")  # what says where core dimensions are


def is_dask(x: Any) -> bool:
    """Say whether an object is a collection of Dask's, or one is in it.

    What may hold one (xarray, pint) has its protocol, and no graph where it does not.
    """
    graph = getattr(type(x), "__dask_graph__", None)
    return graph is not None and graph(x) is not None


def is_collection(x: Any) -> bool:
    """Say whether an object is a ``dask.array``: not what may hold one."""
    array = getattr(sys.modules.get("dask.array"), "Array", ())
    return isinstance(x, array)


def lift(x: Any) -> Any:
    """Return a plain array as a collection of one chunk; lists of them likewise."""
    if isinstance(x, list | tuple):
        return type(x)(map(lift, x))
    own = all(hasattr(x, name) for name in ("dtype", "ndim", "shape"))
    if isinstance(x, type | np.generic) or not own or hasattr(x, "dask"):
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

    ``meta`` is a result of size 0, or a tuple of them; ``name`` is what tasks are
    called. Nothing is computed.
    """
    da = _optional.dask_array()
    args = [lift(x) for x in args]
    shapes = [x.shape for x in args if hasattr(x, "dask")]
    known = [shape for shape in shapes if not any(n != n for n in shape)]  # noqa: PLR0124 - NaN: Dask knows the chunks
    try:
        np.broadcast_shapes(*known)
    except ValueError as error:
        raise ValueError(
            f"{name or getattr(function, '__name__', 'f')}: the shapes "
            f"{', '.join(map(str, shapes))} do not broadcast to one: an axis has the "
            f"same length in all, or 1; slice or reshape one"
        ) from error
    if meta is None:
        with np.errstate(all="ignore"):
            meta = function(*map(without_elements, args))
    ranks = [x.ndim if hasattr(x, "dask") else None for x in args]
    rank = max(r for r in ranks if r is not None)
    axes = [None if r is None else tuple(range(rank - r, rank)) for r in ranks]
    pairs, whole = chain.from_iterable(zip(args, axes, strict=True)), tuple(range(rank))
    first = meta[0] if isinstance(meta, tuple) else meta
    blocks = da.blockwise(
        function, whole, *pairs, meta=first, dtype=first.dtype, token=name
    )
    if not isinstance(meta, tuple):
        return blocks
    return tuple(
        da.blockwise(operator.getitem, whole, blocks, whole, i, None, meta=one)
        for i, one in enumerate(meta)
    )


def over_cores(
    function: Callable[..., Any], layout: str, args: Sequence[Any], **options: Any
) -> Any:
    """Map a function of core arrays over the blocks of the other dimensions.

    ``layout`` are the core dimensions, ``"(m,n),(n)->(m)"``; ``options`` those of
    ``dask.array.apply_gufunc``. A tuple of results has the type that the function
    returns. Nothing is computed.
    """
    da = _optional.dask_array()
    args = [lift(x) for x in args]
    if not {"axes", "axis"} & options.keys():
        args = _aligned(function, layout, args)
    samples = [
        # No loop index: code of the user's meets no values that it is not for.
        np.empty_like(x._meta, shape=(0, *shape))  # noqa: SLF001 - Dask's own protocol
        for x, shape in zip(args, cores(layout), strict=True)
    ]
    meta = function(*samples)
    metas = tuple(meta) if isinstance(meta, tuple) else meta
    results = da.apply_gufunc(function, layout, *args, meta=metas, **options)
    return type(meta)._make(results) if hasattr(meta, "_make") else results


def _aligned(function: Any, layout: str, args: list[Any]) -> list[Any]:
    """Return collections cut alike along loop dimensions; core ones are whole.

    Dask cuts none alike here, and advises an option of its own where a core is cut.
    """
    pairs: list[Any] = []
    for place, (x, core) in enumerate(zip(args, cores(layout), strict=True)):
        rank = x.ndim - len(core)
        cut = [axis for axis in range(-len(core), 0) if x.numblocks[axis] > 1]
        if cut:
            raise ValueError(
                f"{getattr(function, '__name__', 'f')}: argument {place} is in "
                f"{x.numblocks[cut[0]]} chunks along axis {cut[0]}, a core dimension "
                f"of {layout}: join them, x.rechunk({dict.fromkeys(cut, -1)}) ({PAGE})"
            )
        whole = ((place, axis) for axis in range(len(core)))
        pairs += x, (*range(-rank, 0), *whole)
    return list(_optional.dask_array().core.unify_chunks(*pairs)[1])


def cores(layout: str) -> list[tuple[int, ...]]:
    """Return a shape for the core of each input: 3 for all that has a name."""
    inputs = layout.replace(" ", "").partition("->")[0].strip("()").split("),(")
    names = [text.split(",") if text else [] for text in inputs]
    return [tuple(int(n) if n.isdigit() else 3 for n in core) for core in names]


def chunk(x: Any) -> tuple[type, Device]:
    """Return the type of a collection's chunks, and the device that they are on."""
    meta = x._meta  # noqa: SLF001 - Dask's own protocol
    return type(meta), device_of(meta)


def refuse_plain(name: str, outs: Sequence[Any]) -> None:
    """Refuse an ``out`` that is a plain array, which would have to be computed now."""
    for out in outs:
        if out is not None and not hasattr(out, "dask"):
            raise TypeError(
                f"{name}: out is {type_name(out)}, and an input a collection of "
                f"Dask's, not computed yet: leave out= out, or compute it first"
            )


def written(name: str, out: Any, result: Any) -> Any:
    """Give a collection other values, lazily; return it. Refuse what does not fit."""
    check_out(name, out, result.shape, result.dtype)
    if out.name.startswith("getitem-"):
        raise of_slice(name, out)
    out[...] = result.astype(out.dtype)
    return out


def call(
    ufunc: Ufunc,
    args: Sequence[Any],
    outs: Sequence[Any] | None,
    keywords: dict[str, Any],
) -> Any:
    """Return what a ufunc makes of collections: collections, nothing computed.

    Plain arrays among ``args`` are like the collections' chunks; ``outs`` become the
    results.
    """
    name, where = ufunc.__name__, keywords.get("where", True)
    if where is not True and outs is None:
        raise TypeError(
            f"{name}: where= of Dask's collections needs out=, for elsewhere there is "
            f"nothing: take xdev.where(mask, {name}(x), other) ({PAGE})"
        )
    refuse_plain(name, outs or ())
    axes = {key: keywords[key] for key in AXES if key in keywords}
    others = {k: v for k, v in keywords.items() if k not in {"where", *axes}}
    function = functools.partial(ufunc, **others) if others else ufunc
    meta = next(x for x in args if hasattr(x, "dask"))._meta  # noqa: SLF001 - Dask's own
    lists = list, tuple  # blocks are taken of arrays
    arrays = [np.asarray(x, like=meta) if isinstance(x, lists) else x for x in args]
    if ufunc.signature:
        result = over_cores(function, str(ufunc.signature), arrays, **axes)
    else:
        result = elementwise(function, arrays)
    if outs is None:
        return result
    several, results = type(result) is tuple, []
    for made, out in zip(result if several else (result,), outs, strict=True):
        if out is not None and where is not True:
            made = _optional.dask_array().where(where, made, out)  # noqa: PLW2901
        results.append(made if out is None else written(name, out, made))
    return tuple(results) if several else results[0]


def call_method(
    ufunc: Ufunc, name: str, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Compute a ufunc's method of collections: a reduction, or a refusal."""
    if name == "reduce":
        return _reduced(ufunc, *args, **keywords)
    if name == "outer":
        a, b = args
        if hasattr(a, "ndim") and hasattr(b, "ndim"):  # beside numbers it is the call
            a = a[(..., *(None,) * b.ndim)]
        return ufunc(a, b, **keywords)
    raise TypeError(
        f"{ufunc.__name__}.{name} takes no collections of Dask's, whose chunks it "
        f"would cross: compute it, x.compute(), or join the chunks and map it, "
        f"xdev.distributed.map({ufunc.__name__}.{name}, x.rechunk(-1)) ({PAGE})"
    )


def _reduced(
    ufunc: Ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    **others: Any,
) -> Any:
    """Reduce the chunks, then their results: right where the order does not matter."""
    name = f"{ufunc.__name__}.reduce"
    if not ufunc.reorderable:
        raise TypeError(
            f"{name} of a collection of Dask's joins the results of its chunks in "
            f"another order: say that it may, @vectorize(identity=...), where "
            f'"reorderable" is none; or compute it, {name}(x.compute()) ({PAGE})'
        )
    keywords = others if out is None else {**others, "out": out}
    if keywords:
        message = f"{name} of a collection of Dask's takes axis, dtype and keepdims, "
        raise TypeError(message + f"not {', '.join(keywords)}: leave it out")
    da = _optional.dask_array()
    empty = without_elements(array)
    meta = ufunc(empty, empty, dtype=dtype)
    options = {"axis": axis, "keepdims": keepdims, "dtype": meta.dtype, "meta": meta}
    return da.reduction(array, ufunc.reduce, ufunc.reduce, **options)
