"""Makers of elementwise functions: the NumPy call inline, everything else dispatched.

Those that are called often are called by machine code (:mod:`xdev.facade.quick`), which
does the same with arrays by position alone, and leaves the rest to what is here.

``out`` may be given by position, as in NumPy and CuPy; a keyword-only one would cost a
third of the whole overhead of a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.facade.cpu import FLOAT32, FLOAT64, NUMPY
from xdev.facade.dispatch import apply, of, of_two
from xdev.facade.libraries import HOST, direct
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
        try:
            if out is None:
                if x.__class__ is ndarray:
                    return numpys(x)
                if type(x) in direct:
                    return direct[type(x)][name](x)
                return of(x, name)(x)
            if type(x) is type(out) is ndarray and x.shape == out.shape:
                return numpys(x, out=out)
        except (TypeError, ValueError):
            pass  # before it wrote anything: apply() says what is wrong
        return apply(name, out, x=x)

    _describe(function, name, summary, _X, example, shown)
    QUICKENING.join(function, 1)
    return function


def unary_mended_for_complex(
    name: str, summary: str, example: str, shown: str
) -> Unary:
    """Make a function of which NumPy's own serves real arrays only; see :func:`unary`.

    The test for the two common data types costs less than calling the mended one.
    """
    numpys: Any = getattr(np, name)

    def function(x: Any, /, out: Any = None) -> Any:
        try:
            if out is None:
                if x.__class__ is not ndarray:
                    return of(x, name)(x)
                dtype = x.dtype
                if dtype is FLOAT64 or dtype is FLOAT32:
                    return numpys(x)
        except (TypeError, ValueError):
            pass
        return apply(name, out, x=x)

    _describe(function, name, summary, _X, example, shown)
    QUICKENING.join(function, 1, reals=True)
    return function


def binary(name: str, summary: str, example: str, shown: str) -> Binary:
    """Make the elementwise function ``name`` of two arguments; see :func:`unary`."""
    numpys = NUMPY.bound(name, None)

    def function(x1: Any, x2: Any, /, out: Any = None) -> Any:
        try:
            if out is None:
                if x1.__class__ is ndarray:
                    if x2.__class__ is ndarray or type(x2) in HOST:
                        return numpys(x1, x2)
                elif type(x1) is type(x2) and type(x1) in direct:
                    return direct[type(x1)][name](x1, x2)
                elif x2.__class__ is not ndarray:
                    return of_two(x1, x2, name)(x1, x2)
                elif type(x1) in HOST:
                    return numpys(x1, x2)
            plain = type(x1) is type(x2) is type(out) is ndarray
            if plain and x1.shape == x2.shape == out.shape:
                return numpys(x1, x2, out=out)
        except (TypeError, ValueError):
            pass  # before it wrote anything: apply() says what is wrong
        return apply(name, out, x1=x1, x2=x2)

    _describe(function, name, summary, _X1_X2, example, shown)
    QUICKENING.join(function, 2)
    return function


def _describe(
    function: Any, name: str, summary: str, parameters: str, example: str, shown: str
) -> None:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "xdev"
    function.__doc__ = _DOC.format(
        name=name, summary=summary, parameters=parameters, example=example, shown=shown
    )
