# ruff: noqa: SLF001 - of the class whose second half this is
"""What a ufunc's calls and methods do that no plan is for: the general way.

They are functions of the ufunc: ``import xdev`` makes many, and loads none of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xdev.ufunc import dask, dispatch, foreign, parameters
from xdev.ufunc.foreign import is_cuda
from xdev.ufunc.inputs import is_collection, refuse
from xdev.ufunc.sources import WEAK
from xdev.ufunc.ufuncs import OWN

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.ufunc.generalized import Generalized
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
    if any(map(dispatch.is_fake, operands)):
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


def fold(
    ufunc: Ufunc,
    name: str,
    inputs: tuple[Any, ...],
    out: Any,
    keywords: dict[str, Any],
) -> Any:
    """Reduce, accumulate or reduce over slices, as :class:`numpy.ufunc` does.

    Parameters
    ----------
    ufunc, name
        The function and the method.
    inputs : tuple
        An array, and for ``reduceat`` indices.
    out : array, tuple of one, ``...`` or None
        Where the result goes.
    keywords : dict
        The others that were given.
    """
    if out is ...:
        return dispatch.as_arrays(fold(ufunc, name, inputs, None, keywords))
    out = dispatch.only(out, f"{ufunc.__name__}.{name}")
    arrays = inputs[0], out, keywords.get("where")
    check_method(ufunc, name, *arrays)
    given = keywords if out is None else {**keywords, "out": out}
    made = dispatch.elsewhere(ufunc, name, inputs, given)
    if made is not NotImplemented:
        return made
    keywords = OWN | keywords
    if not any(map(is_cuda, arrays)) and ufunc.target != "cuda":
        return ufunc._cpu.fold(name, inputs, out=out, **keywords)
    method = getattr(ufunc._cuda_methods, name)
    more = dict(zip(("indices",), inputs[1:], strict=False))

    def there(values: Any, outs: Any, **options: Any) -> Any:
        return method(values[0], out=outs and outs[0], **options)

    keywords |= more
    outs = None if out is None else (out,)
    if any(map(is_cuda, arrays)):
        return there(inputs, outs, **keywords)
    return dispatch.on_cuda(there, inputs[:1], outs, keywords)


def outer(ufunc: Ufunc, a: Any, b: Any, keywords: dict[str, Any]) -> Any:
    """Apply to every pair of elements, as :meth:`numpy.ufunc.outer` does."""
    check_method(ufunc, "outer", a, b, keywords.get("out"))
    made = dispatch.elsewhere(ufunc, "outer", (a, b), keywords)
    if made is not NotImplemented:
        return made
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


def at(ufunc: Ufunc, a: Any, indices: Any, *values: Any) -> Any:
    """Work in place at indices, repeated ones too, as :meth:`numpy.ufunc.at`."""
    check_method(ufunc, "at", a, *values, nin=1 + len(values))
    made = dispatch.elsewhere(ufunc, "at", (a, indices, *values), {})
    if made is not NotImplemented:
        return made
    if is_cuda(a):
        return ufunc._cuda_methods.at(a, indices, *(values or (None,)))
    return ufunc._cpu.at(a, indices, *values)


def check_method(ufunc: Ufunc, method: str, *operands: Any, nin: int = 2) -> None:
    """Refuse a method that a function of so many arguments has not, or its operands."""
    if ufunc.nin != nin:
        takes = "one argument" if nin == 1 else "two arguments"
        raise ValueError(
            f"{ufunc.__name__}.{method} needs a function of {takes}, "
            f"and {ufunc.__name__} takes {ufunc.nin}"
        )
    labels = ("a", "b") if method in {"outer", "at"} else ("array",)
    refuse(f"{ufunc.__name__}.{method}", labels, operands)
