# ruff: noqa: SLF001 - of the class whose second half this is
"""What a ufunc's calls and methods do that no plan is for: the general way.

They are functions of the ufunc: ``import xdev`` makes many, and loads none of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xdev.ufunc import dask, dispatch, fake, foreign, parameters
from xdev.ufunc.foreign import is_cuda
from xdev.ufunc.inputs import is_collection, refuse
from xdev.ufunc.sources import WEAK

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.ufunc.generalized.ufuncs import Generalized
    from xdev.ufunc.ufuncs import Ufunc

KEYWORDS = ("out", "where", "casting", "order", "dtype", "signature", "sig", "subok")


class Way(NamedTuple):
    """What tells the calls of ufuncs and of generalized ones apart."""

    #: The keywords that there are.
    keywords: tuple[str, ...] = KEYWORDS
    #: ``dask(ufunc, args, outs, keywords)`` maps over collections' blocks.
    dask: Callable[..., Any] = dask.call
    #: ``for_cuda(ufunc, keywords)`` returns those that CUDA has.
    for_cuda: Callable[..., dict[str, Any]] = dispatch.for_cuda


ELEMENTWISE = Way()


def call(
    ufunc: Ufunc | Generalized,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    way: Way = ELEMENTWISE,
) -> Any:
    """Compute the function elementwise: what a call does that no plan is for.

    Parameters
    ----------
    *args
        The inputs: arrays of one device that broadcast to one shape, and numbers;
        then, optionally, the outputs.
    out : array, or tuple of arrays and None, optional
        Where the results go: any shape that the inputs broadcast to, any strides,
        any library of the inputs' device. It is written in place. Beside
        ``where=``, None says that new results may hold anything elsewhere; ``...``
        makes arrays of what would be scalars.
    **keywords
        ``where``, ``casting``, ``order``, ``dtype``, ``signature`` and ``subok``,
        as those of :class:`numpy.ufunc`.

    Returns
    -------
    array or tuple of arrays
        ``out`` itself, or new arrays of the first array's library; NumPy scalars
        for numbers.

    Raises
    ------
    TypeError
        Wrong arguments, no typing for their dtypes, or a cast that is not allowed.
    ValueError
        Shapes that do not broadcast, or an ``out`` that cannot be written.
    DeviceMismatchError, UseAfterFreeError
        Arrays of two devices; a freed one. Whatever is raised, nothing was written.
    """
    given = "out" in keywords
    out = keywords.pop("out", None)
    if out is ...:
        return dispatch.as_arrays(ufunc(*args, out=None, **keywords))
    if not keywords and len(args) < ufunc.nin:
        filled = ufunc.definition.filled(args)
        if len(filled) > len(args):
            return ufunc(*filled, **({"out": out} if given else {}))
    result = _general(ufunc, args, out, keywords, way)
    if not given and all(x is None for x in args[ufunc.nin :]):
        dispatch.tell_unwritten(keywords)
    return result


def _general(  # noqa: PLR0911 - one for each kind of arrays
    ufunc: Ufunc | Generalized,
    args: tuple[Any, ...],
    out: Any,
    keywords: dict[str, Any],
    way: Way,
) -> Any:
    """Sort out the arguments, and send them to their device."""
    for keyword in keywords:
        if keyword not in way.keywords:
            labels = ufunc.definition.labels
            raise parameters.unknown(ufunc.__name__, labels, keyword, way.keywords)
    args, outs = bound(ufunc, args, out)
    operands = [*args, *(outs or ()), keywords.get("where", True)]
    labels = ufunc.definition.labels
    refuse(ufunc.__name__, labels, operands, len(outs or ()))
    if any(map(is_collection, operands)):
        return way.dask(ufunc, args, outs, keywords)
    if any(map(is_cuda, operands)):
        return ufunc._cuda(args, outs, **way.for_cuda(ufunc, keywords))
    if foreign.any_of(operands):
        keywords["out"] = outs
        return foreign.on_host(ufunc, ufunc.__name__, args, keywords, outs or ())
    if any(map(fake.is_fake, operands)):
        there = way.for_cuda(ufunc, keywords)
        return dispatch.on_fake(ufunc._cpu, ufunc.__name__, args, outs, there, labels)
    if any(map(dispatch.overrides, operands)):
        if "sig" in keywords:
            keywords["signature"] = keywords.pop("sig")
        return dispatch.ask(ufunc, "__call__", args, outs or (), keywords)
    plain = dispatch.operands(args, outs, ufunc.__name__, labels)
    if ufunc.target == "cuda":
        cuda = way.for_cuda(ufunc, keywords)
        return dispatch.on_cuda(ufunc._cuda, plain, outs, cuda)
    return ufunc._cpu(plain, outs, **dispatch.read(ufunc, keywords))


def bound(
    ufunc: Ufunc | Generalized, args: tuple[Any, ...], out: Any
) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
    """Return the inputs, and the outputs as a tuple, None without any."""
    scalar: Any = ufunc.definition
    nin, name = ufunc.nin, ufunc.__name__
    args = scalar.filled(args)
    args, positional = args[:nin], tuple(args[nin:])
    if positional and out is not None:
        message = f"{name}() takes {nin} arguments, and out once: positionally or "
        raise TypeError(message + "by keyword")
    outs = out if isinstance(out, tuple) else None if out is None else (out,)
    outs = positional if outs is None else outs
    if not isinstance(out, tuple) and all(x is None for x in outs):
        return args, None
    nout = scalar.nout
    if nout is None:  # never typed yet
        natives = [foreign.to_native(x, name) for x in args]
        nout = len(scalar.specialise(scalar.resolve(natives)).outputs)
    if len(positional) > nout:
        given = nin + len(positional)
        raise TypeError(scalar.many(given, nout))
    if len(positional) < nout and positional:
        outs = (*positional, *[None] * (nout - len(positional)))
    if len(outs) != nout:
        message = f"{name}() has {nout} outputs, but out has {len(outs)}: pass one "
        wrong = ValueError if isinstance(out, tuple) else TypeError  # as NumPy's
        raise wrong(message + "array, or None, for each")
    return args, None if all(x is None for x in outs) else outs


@dispatch.method(out=3)
def reduce(
    ufunc: Ufunc, array: Any, axis: Any, dtype: Any, out: Any, **keywords: Any
) -> Any:
    """Reduce along one or more axes, as :meth:`numpy.ufunc.reduce` does."""
    there = _on_cuda(ufunc, "reduce", array, out, keywords.get("where"))
    if there:
        call = ufunc._cuda_methods.reduce
        return there(call, array, out, axis=axis, dtype=dtype, **keywords)
    return ufunc._cpu.reduce(array, axis, dtype, out, **keywords)


@dispatch.method(out=3)
def accumulate(
    ufunc: Ufunc, array: Any, axis: int = 0, dtype: Any = None, out: Any = None
) -> Any:
    """Accumulate along an axis, as :meth:`numpy.ufunc.accumulate` does."""
    there = _on_cuda(ufunc, "accumulate", array, out)
    if there:
        call = ufunc._cuda_methods.accumulate
        return there(call, array, out, axis=axis, dtype=dtype)
    return ufunc._cpu.accumulate(array, axis, dtype, out)


@dispatch.method(out=4)
def reduceat(
    ufunc: Ufunc,
    array: Any,
    indices: Any,
    axis: int = 0,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    """Reduce over slices, as :meth:`numpy.ufunc.reduceat` does."""
    there = _on_cuda(ufunc, "reduceat", array, out)
    if there:
        call = ufunc._cuda_methods.reduceat
        return there(call, array, out, indices=indices, axis=axis, dtype=dtype)
    return ufunc._cpu.reduceat(array, indices, axis, dtype, out)


@dispatch.method(out=2)
def outer(ufunc: Ufunc, a: Any, b: Any, /, **keywords: Any) -> Any:
    """Apply to every pair of elements, as :meth:`numpy.ufunc.outer` does."""
    check_method(ufunc, "outer", a, b, keywords.get("out"))
    if isinstance(a, np.matrix) or isinstance(b, np.matrix):
        message = f"{ufunc.__name__}.outer takes no numpy.matrix, which cannot have "
        raise TypeError(message + "more than two axes: pass numpy.asarray(x)")
    if is_cuda(a) or is_cuda(b):
        outs, cuda = keywords.get("out"), dispatch.for_cuda(ufunc, keywords)
        made = ufunc._cuda_methods.outer(a, b, outs, cuda)
        if "out" not in keywords:
            dispatch.tell_unwritten(keywords)
        return made
    if type(a) not in WEAK:
        a = np.asanyarray(a)
        a = a.reshape(a.shape + (1,) * np.ndim(b))
    return ufunc(a, b, **keywords)


@dispatch.method(out=0)
def at(ufunc: Ufunc, a: Any, indices: Any, b: Any = None, /) -> None:
    """Work in place at indices, repeated ones too, as :meth:`numpy.ufunc.at`."""
    values = () if b is None else (b,)
    check_method(ufunc, "at", a, *values, nin=1 + len(values))
    if is_cuda(a):
        ufunc._cuda_methods.at(a, indices, b)
    else:
        ufunc._cpu.at(a, indices, *values)


def _on_cuda(ufunc: Ufunc, method: str, *operands: Any) -> Callable[..., Any] | None:
    """Return how to call a CUDA method, None where the operands are the host's."""
    check_method(ufunc, method, *operands)
    if any(map(is_cuda, operands)):
        return dispatch.there
    return dispatch.round_trip if ufunc.target == "cuda" else None


def check_method(ufunc: Ufunc, method: str, *operands: Any, nin: int = 2) -> None:
    """Refuse a method that a function of so many arguments has not, or its operands."""
    if ufunc.nin != nin:
        takes = "one argument" if nin == 1 else "two arguments"
        message = (
            f"{ufunc.__name__}.{method} needs a function of {takes}, "
            f"and {ufunc.__name__} takes {ufunc.nin}"
        )
        raise ValueError(message)
    name = f"{ufunc.__name__}.{method}"
    refuse(name, dispatch.VALUES[method], operands)
