"""Ufuncs of Dask's collections: called on each block, where and when it is computed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from xdev import _optional
from xdev.facade import dask
from xdev.facade.complaints import PAGE
from xdev.ufunc.inputs import is_collection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.ufunc.generalized.ufuncs import Generalized
    from xdev.ufunc.vectorized import Vectorized

AXES = ("axes", "axis", "keepdims")  # what says where core dimensions are


def call(
    ufunc: Vectorized,
    args: Sequence[Any],
    outs: Sequence[Any] | None,
    keywords: dict[str, Any],
) -> Any:
    """Return what a ufunc makes of collections: collections, nothing computed.

    Parameters
    ----------
    ufunc : Vectorized
        What is called on the blocks.
    args, outs : sequence
        The inputs, of which plain arrays are like the collections' chunks; the outputs
        that are given, which become the results.
    keywords : dict
        The others.

    Raises
    ------
    TypeError
        ``where=`` without ``out=``; an output that is no collection.
    """
    name, keywords = ufunc.__name__, dict(keywords)
    where = keywords.pop("where", True)
    if where is not True and outs is None:
        message = (
            f"{name}: where= of Dask's collections needs out=, for elsewhere there is "
            f"nothing: take xdev.where(mask, {name}(x), other) ({PAGE})"
        )
        raise TypeError(message)
    dask.refuse_plain(name, outs or ())
    function = functools.partial(ufunc, **keywords) if keywords else ufunc
    made = dask.elementwise(function, [_array(x) for x in args])
    if outs is None:
        return made
    results = []
    for result, out in zip(made if type(made) is tuple else (made,), outs, strict=True):
        if out is not None and where is not True:
            result = _optional.dask_array().where(where, result, out)  # noqa: PLW2901
        results.append(result if out is None else dask.written(name, out, result))
    return tuple(results) if type(made) is tuple else results[0]


def call_generalized(
    ufunc: Generalized,
    args: Sequence[Any],
    outs: Sequence[Any] | None,
    keywords: dict[str, Any],
) -> Any:
    """Return what a generalized ufunc makes of collections; see :func:`call`."""
    name = ufunc.__name__
    dask.refuse_plain(name, outs or ())
    axes = {key: value for key, value in keywords.items() if key in AXES}
    others = {key: value for key, value in keywords.items() if key not in AXES}
    function = functools.partial(ufunc, **others) if others else ufunc
    made = dask.over_cores(function, ufunc.signature, [_array(x) for x in args], **axes)
    if outs is None:
        return made
    results = [
        result if out is None else dask.written(name, out, result)
        for result, out in zip(made if ufunc.nout > 1 else (made,), outs, strict=True)
    ]
    return tuple(results) if ufunc.nout > 1 else results[0]


def method(decorated: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a ufunc's method that takes collections: a reduction, or a refusal."""

    @functools.wraps(decorated)
    def on_any(self: Vectorized, *args: Any, **keywords: Any) -> Any:
        if not any(map(is_collection, (*args, *keywords.values()))):
            return decorated(self, *args, **keywords)
        if name == "reduce":
            return _reduced(self, *args, **keywords)
        if name == "outer":
            a, b = args
            return self(a[(..., *(None,) * b.ndim)], b, **keywords)
        message = (
            f"{self.__name__}.{name} takes no collections of Dask's, whose chunks it "
            f"would cross: compute it, x.compute(), or join the chunks and map it, "
            f"xdev.distributed.map({self.__name__}.{name}, x.rechunk(-1)) ({PAGE})"
        )
        raise TypeError(message)

    return on_any


def _reduced(
    ufunc: Vectorized,
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
        message = (
            f"{name} of a collection of Dask's joins the results of its chunks in "
            f"another order: say that it may, @vectorize(identity=...), where "
            f'"reorderable" is none; or compute it, {name}(x.compute()) ({PAGE})'
        )
        raise TypeError(message)
    given = others if out is None else {**others, "out": out}
    if given:
        message = f"{name} of a collection of Dask's takes axis, dtype and keepdims, "
        raise TypeError(message + f"not {', '.join(given)}: leave it out")
    da = _optional.dask_array()
    empty = dask.without_elements(array)
    meta = ufunc(empty, empty, dtype=dtype)
    options = {"axis": axis, "keepdims": keepdims, "dtype": meta.dtype, "meta": meta}
    return da.reduction(array, ufunc.reduce, ufunc.reduce, **options)


def _array(x: Any) -> Any:
    """Return an input that may be a list as an array: as blocks are taken."""
    if isinstance(x, list | tuple):
        from xdev import facade

        return facade.asarray(x)
    return x
