"""Makers of elementwise functions: the NumPy call inline, everything else dispatched.

Once they are called often, machine code does the same (:mod:`xdev.facade.quick`), and
leaves what else there is to what is here.

``out`` may be given by position, as in NumPy and CuPy; a keyword-only one would cost a
third of the whole overhead of a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.facade.cpu import NUMPY
from xdev.facade.dispatch import apply, of_two
from xdev.facade.libraries import HOST, direct, into
from xdev.facade.quick import QUICKENING

if TYPE_CHECKING:
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
_X = """x : array
        Any shape."""
_X1_X2 = """x1, x2 : array or number
        Shapes that broadcast; at least one is an array."""


def unary(
    name: str, summary: str, example: str, shown: str, *, reals: bool = False
) -> Unary:
    """Make the elementwise function ``name`` of one array.

    Parameters
    ----------
    name : str
        The standard's.
    summary : str
        The docstring's first line.
    example, shown : str
        The arguments of the docstring's example, and what it shows.
    reals : bool
        Whether NumPy's own function is right for real floats alone.
    """
    numpys = NUMPY.bound(name, None)

    def general(x: Any, out: Any) -> Any:
        try:
            if out is None:
                if type(x) is ndarray:
                    return numpys(x)
                return direct[type(x)][name](x)
            if type(x) is type(out) is ndarray and x.shape == out.shape:
                return numpys(x, out=out)
            if type(out) in into:
                return into[type(out)].one[name](x, out)
        except (TypeError, ValueError):
            pass  # before it wrote anything: apply() says what is wrong
        return apply(name, out, x=x)

    call = general

    def function(x: Any, /, out: Any = None) -> Any:
        return call(x, out)

    _describe(function, name, summary, _X, example, shown)
    own = getattr(np, name) if reals else numpys
    QUICKENING.join(function, general, own, reals=reals)
    return function


def binary(name: str, summary: str, example: str, shown: str) -> Binary:
    """Make the elementwise function ``name`` of two arguments; see :func:`unary`."""
    numpys = NUMPY.bound(name, None)

    def general(x1: Any, x2: Any, out: Any) -> Any:
        kind, other = type(x1), type(x2)
        try:
            if out is None:
                if kind is ndarray or other is ndarray:
                    if kind in HOST and other in HOST:
                        return numpys(x1, x2)
                elif kind is other and kind in direct:
                    return direct[kind][name](x1, x2)
                else:
                    return of_two(x1, x2, name)(x1, x2)
            plain = kind is other is type(out) is ndarray
            if plain and x1.shape == x2.shape == out.shape:
                return numpys(x1, x2, out=out)
            if type(out) in into:
                return into[type(out)].two[name](x1, x2, out)
        except (TypeError, ValueError):
            pass  # before it wrote anything: apply() says what is wrong
        return apply(name, out, x1=x1, x2=x2)

    call = general

    def function(x1: Any, x2: Any, /, out: Any = None) -> Any:
        return call(x1, x2, out)

    _describe(function, name, summary, _X1_X2, example, shown)
    QUICKENING.join(function, general, numpys)
    return function


def _describe(
    function: Any, name: str, summary: str, parameters: str, example: str, shown: str
) -> None:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "xdev"
    function.__doc__ = _DOC.format(
        name=name, summary=summary, parameters=parameters, example=example, shown=shown
    )
