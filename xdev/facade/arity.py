"""Makers of elementwise functions: the NumPy call inline, everything else dispatched.

A call that raised is never made again: what raised may be the user's own, a handler of
``numpy.errstate``, and ``out`` is written by then.

``out`` may be given by position, as in NumPy and CuPy; a keyword-only one would cost a
third of the whole overhead of a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from xdev.facade.cpu import NUMPY
from xdev.facade.dispatch import apply, of_two, refuse
from xdev.facade.libraries import HOST, direct, into, known

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.facade.protocols import Binary, Unary

ndarray = np.ndarray

_DOC = """{summary}

    Parameters
    ----------
    {parameters}
    out : array, optional
        Where to write: an array of the result's shape, on the same device, that can
        hold its data type.

    Returns
    -------
    array
        On the device of the arguments, of their broadcast shape; ``out`` if given.

    Raises
    ------
    DeviceMismatchError
        The arrays are of two devices or libraries.
    ValueError, TypeError
        ``out`` has another shape or is read-only; it cannot hold the data type.
    UseAfterFreeError
        An array was freed.

    Examples
    --------
    >>> import xdev
    >>> xdev.{name}({example})
    {shown}
    """
METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")
#: What finds a ufunc's method, by both names. They are those of NumPy's names, a room
#: above, so the package's front puts it here.
finder: list[Callable[[str, str], Callable[..., Any]]] = []
_X = """x : array
        Any shape."""
_X1_X2 = """x1, x2 : array or number
        Shapes that broadcast; at least one is an array."""


def unary(name: str, summary: str, example: str, shown: str) -> Unary:
    """Make the elementwise function ``name`` of one array.

    Parameters
    ----------
    name : str
        The standard's.
    summary : str
        The docstring's first line.
    example, shown : str
        The arguments of the docstring's example, and what it shows.
    """
    numpys = NUMPY.bound(name, None)

    def function(x: Any, /, out: Any = None) -> Any:
        kind = type(x)
        if out is None:
            try:
                if kind is ndarray:
                    return numpys(x)
                if kind in known:
                    return direct[kind][name](x)
            except TypeError:
                refuse(name, x=x)
                raise
        elif kind is type(out) is ndarray and x.shape == out.shape:
            try:
                return numpys(x, out=out)
            except (TypeError, ValueError):
                refuse(name, x=x, out=out)
                NUMPY.refuse(name, numpys, [x], out)
                raise
        elif type(out) in into and (
            (written := into[type(out)].one[name](x, out)) is not NotImplemented
        ):
            return written
        return apply(name, out, x=x)

    _describe(function, name, summary, _X, example, shown)
    return function


def binary(name: str, summary: str, example: str, shown: str) -> Binary:
    """Make the elementwise function ``name`` of two arguments; see :func:`unary`."""
    numpys = NUMPY.bound(name, None)

    def function(x1: Any, x2: Any, /, out: Any = None) -> Any:
        kind, other = type(x1), type(x2)
        if out is None:
            try:
                if (kind is ndarray and (other is ndarray or other in HOST)) or (
                    other is ndarray and kind in HOST
                ):
                    return numpys(x1, x2)
                if kind is other and kind in direct:
                    return direct[kind][name](x1, x2)
                found = of_two(x1, x2, name)
                if found is not None:
                    return found(x1, x2)
            except TypeError:
                refuse(name, x1=x1, x2=x2)
                raise
        elif (
            kind is other is type(out) is ndarray and x1.shape == x2.shape == out.shape
        ):
            try:
                return numpys(x1, x2, out=out)
            except (TypeError, ValueError):
                refuse(name, x1=x1, x2=x2, out=out)
                NUMPY.refuse(name, numpys, [x1, x2], out)
                raise
        elif type(out) in into and (
            (written := into[type(out)].two[name](x1, x2, out)) is not NotImplemented
        ):
            return written
        return apply(name, out, x1=x1, x2=x2)

    _describe(function, name, summary, _X1_X2, example, shown)
    vars(function).update((method, _method(name, method)) for method in METHODS)
    return cast("Binary", function)


def _method(name: str, method: str) -> Callable[..., Any]:
    """Return a ufunc's method, which is looked for when it is called."""

    def function(*args: Any, **options: Any) -> Any:
        return finder[0](name, method)(*args, **options)

    function.__name__, function.__qualname__ = method, f"{name}.{method}"
    function.__module__ = "xdev"
    function.__doc__ = f"As :meth:`numpy.ufunc.{method}`, where the arrays are."
    return function


def _describe(
    function: Any, name: str, summary: str, parameters: str, example: str, shown: str
) -> None:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "xdev"
    function.__doc__ = _DOC.format(
        name=name, summary=summary, parameters=parameters, example=example, shown=shown
    )
