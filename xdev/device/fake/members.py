"""The members that fake arrays share with NumPy's: made from the tables of names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.device.copies import announce
from xdev.device.fake.integers import refuse_arrays
from xdev.device.fake.surface import (
    ATTRIBUTES,
    BINARY,
    COMPARISONS,
    CONVERSIONS,
    DOWNLOADS,
    METHODS,
    NOT_IN_PLACE,
    SETTABLE,
    STARRED,
    UNARY,
)
from xdev.device.identity import Device

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = Device("cpu")


def equip(kind: Any, run: Callable[..., Any]) -> None:
    """Give the class of fake arrays its methods, attributes and operators.

    Parameters
    ----------
    kind : type
        ``FakeArray``.
    run : callable
        Calls a function of NumPy's on fake arrays of one device.
    """
    members = {name: _method(kind, run, name, text) for name, text in METHODS.items()}
    members |= {name: _attribute(kind, run, name) for name in ATTRIBUTES}
    members |= {f"__{name}__": _conversion(name) for name in CONVERSIONS}
    written = {name: f"{name} x" for name in UNARY}
    for name, (sign, _) in {**BINARY, **COMPARISONS}.items():
        written[name] = f"x {sign} y"
    for name, (sign, _) in BINARY.items():
        written[f"r{name}"] = f"y {sign} x"
        if name not in NOT_IN_PLACE:
            written[f"i{name}"] = f"x {sign}= y"
    for name, text in written.items():
        members[f"__{name}__"] = _operator(run, f"__{name}__", text)
    for name, member in members.items():
        setattr(kind, name, member)


def _method(kind: Any, run: Callable[..., Any], name: str, accepted: str) -> Any:
    function, parameters = getattr(np.ndarray, name), accepted.split()
    starred = STARRED.get(name)
    most = float("inf") if starred else len(parameters)

    def method(self: Any, *args: Any, **options: Any) -> Any:
        if len(args) > most or not options.keys() <= set(parameters):
            message = (
                f"x.{name}() takes {', '.join(parameters) or 'nothing'}: CuPy's arrays "
                f"take no more"
            )
            raise TypeError(message)
        given = [(starred, args[0] if len(args) == 1 else args)] if starred else ()
        placed = given or zip(parameters, args, strict=False)
        refuse_arrays(f"x.{name}()", kind, (*placed, *options.items()))
        result = run(f"x.{name}()", function, self, *args, **options)
        if name in DOWNLOADS:
            announce(self.device, HOST, self.nbytes)
        return result

    method.__name__, method.__doc__ = name, f"As ``numpy.ndarray.{name}``."
    return method


def _attribute(kind: Any, run: Callable[..., Any], name: str) -> Any:
    def get(self: Any) -> Any:
        found = getattr(self._values, name)
        return kind(found, self.device) if isinstance(found, np.ndarray) else found

    def set_(self: Any, value: Any) -> None:
        run(f"x.{name} = y", getattr(np.ndarray, name).__set__, self, value)

    settable = set_ if name in SETTABLE else None
    return property(get, settable, doc=f"As ``numpy.ndarray.{name}``.")


def _operator(run: Callable[..., Any], name: str, written: str) -> Any:
    function = getattr(np.ndarray, name)

    def operator(self: Any, *others: Any) -> Any:
        if others and isinstance(others[0], list | tuple):
            return NotImplemented
        return run(written, function, self, *others)

    operator.__name__ = name
    return operator


def _conversion(name: str) -> Any:
    function = getattr(np.ndarray, f"__{name}__")

    def convert(self: Any) -> Any:
        result = function(self._values)
        announce(self.device, HOST, self.nbytes)
        return result

    return convert
