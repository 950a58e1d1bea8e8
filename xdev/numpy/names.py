"""What stands behind each of NumPy's names: a dispatched function, or NumPy's own."""

from __future__ import annotations

import functools
import importlib
import operator
from types import ModuleType
from typing import Any

import numpy as np

from xdev.facade.cpu import NUMPY
from xdev.numpy import creation
from xdev.numpy.dispatch import call, function, leader, settled, ufunc

#: Of NumPy's main namespace what concerns no program: its tests and old inner modules.
LEFT_OUT = frozenset(("__array_namespace_info__", "core", "ctypeslib", "f2py", "test"))


class _IndexTricks:
    """``np.mgrid``, ``np.r_`` and their like: arrays of what stands in brackets."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getitem__(self, key: Any) -> Any:
        made = getattr(np, self._name).__getitem__
        return call(f"{self._name}.__getitem__", made, (key,), {})


class vectorize:  # noqa: N801 - NumPy's name of it
    """As ``numpy.vectorize`` on the CPU; other arrays go to :func:`xdev.vectorize`.

    That compiles the function, for the CPU too, and is the fast one.
    """

    def __init__(
        self, pyfunc: Any = None, otypes: Any = None, *args: Any, **options: Any
    ) -> None:
        self.pyfunc, self.otypes, self._rest = pyfunc, otypes, (args, options)
        if pyfunc is not None:
            self._host = np.vectorize(pyfunc, otypes, *args, **options)
            functools.update_wrapper(self, pyfunc)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function for each element."""
        if self.pyfunc is None:  # as a decorator with options
            more, options = self._rest
            return vectorize(*args, self.otypes, *more, **options)
        library, like = leader("vectorize", self.pyfunc, args, named)
        if library is NUMPY:
            result = self._host(*args, **named)
            return settled(result) if like is None else result
        if any(self._rest) or named:
            raise TypeError(
                "xdev.numpy.vectorize: doc, excluded, cache, signature and arguments "
                "by name are for arrays on the CPU: use xdev.vectorize, or "
                "xdev.guvectorize for a signature"
            )
        result = self._compiled(*args)
        return result.astype(self.otypes[0]) if self.otypes else result

    @functools.cached_property
    def _compiled(self) -> Any:
        from xdev.ufunc import vectorize as compiled

        return compiled(self.pyfunc)


def nditer(*args: Any, **options: Any) -> Any:
    """As ``numpy.nditer``, of arrays on the CPU; NumPy's words for others mislead."""
    return call("nditer", np.nditer, args, options)


_OWN: dict[str, Any] = {name: getattr(creation, name) for name in creation.__all__} | {
    "nditer": nditer,
    "ufunc": ufunc,
    "vectorize": vectorize,
}
_OWN |= {name: _IndexTricks(name) for name in ("mgrid", "ogrid", "r_", "c_")}

_ufunc = functools.cache(ufunc)  # of `abs` and `absolute` one object


def dispatched(room: str, name: str) -> Any:
    """Return what a name of NumPy's means here.

    Parameters
    ----------
    room : str
        ``""`` for the main namespace, ``"linalg."`` or ``"fft."``.
    name : str
        The name there.

    Raises
    ------
    AttributeError
        NumPy has no such name, or it is private.
    """
    if not room and name in _OWN:
        return _OWN[name]
    try:
        found = operator.attrgetter(f"{room}{name}")(np)
    except AttributeError as error:
        own = f"xdev.numpy.{room}".rstrip(".")
        theirs = str(error).replace(f"module 'numpy{room and '.'}{room[:-1]}'", own)
        raise AttributeError(theirs) from None
    if isinstance(found, np.ufunc):
        return _ufunc(found)
    if isinstance(found, type | ModuleType) or not callable(found):
        return found
    make = creation.placed if f"{room}{name}" in creation.PLACED else function
    return make(f"{room}{name}", found)


def __getattr__(name: str) -> Any:
    """Return a name of :mod:`xdev.numpy`, whose functions pickle as names of here."""
    return getattr(importlib.import_module("xdev.numpy"), name)
