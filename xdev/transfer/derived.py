"""Containers of derived classes: rebuilt by their built-in bases alone.

A class's own ``__new__``, ``__init__`` or ``__setitem__`` may take what it likes, count
or refuse. So a container is made by its base, its attributes are copied like its parts,
and what a base cannot make is left to a rule of the user's.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from functools import cache
from operator import is_
from types import BuiltinFunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Move = Callable[[Any], Any]
    Rule = Callable[[Move, Any, bool], Any]

BASES = (OrderedDict, defaultdict, dict, deque, list, tuple)  # the narrower ones first


class NotRebuilt(Exception):  # noqa: N818 - the walk makes an error of it
    """A container was not rebuilt, for the reason that is this exception's cause."""


def rule_of(kind: type) -> Rule:
    """Return the rule for the containers of a derived class."""
    base: Any = next(base for base in BASES if issubclass(kind, base))
    values = base.values if issubclass(base, dict) else base.__iter__
    slots = _slots(kind)

    def rebuilt(move: Move, whole: Any, anew: bool) -> Any:
        parts = list(values(whole))
        moved = list(map(move, parts))
        named = None
        if slots or getattr(whole, "__dict__", None):
            held = attributes_of(whole)
            named = dict(zip(held, map(move, held.values()), strict=True))
            parts += held.values()
        new = moved if named is None else [*moved, *named.values()]
        if not anew and all(map(is_, new, parts)):
            return whole
        try:
            like = _made(base, whole, moved)
            name_parts(like, whole, named or {})
        except Exception as error:
            raise NotRebuilt from error
        return like

    return rebuilt


def attributes_of(whole: Any) -> dict[str, Any]:
    """Return what an object holds by name: its ``__dict__``, and slots with a value."""
    kind: Any = type(whole)
    held: dict[str, Any] = getattr(whole, "__dict__", {})
    slots = _slots(kind)
    if not slots:
        return held
    filled = [name for name in slots if hasattr(whole, name)]
    return held | {name: getattr(whole, name) for name in filled}


@cache
def _slots(kind: Any) -> tuple[str, ...]:
    bases: tuple[type, ...] = kind.__mro__
    return tuple(
        name
        for base in bases
        if "__slots__" in vars(base)
        for name, held in vars(base).items()
        if isinstance(held, MemberDescriptorType)
    )


def _made(base: Any, whole: Any, moved: list[Any]) -> Any:
    kind: Any = type(whole)
    # A class in C, as PyTorch's named results are, makes its own; Python's have a base.
    new = (
        kind.__new__ if isinstance(kind.__new__, BuiltinFunctionType) else base.__new__
    )
    if base is tuple:
        return new(kind, moved)
    like = new(kind)
    if base is list:
        list.extend(like, moved)
    elif base is deque:
        deque.__init__(like, moved, whole.maxlen)
    else:
        if base is defaultdict:
            defaultdict.__init__(like, whole.default_factory)
        for key, part in zip(base.keys(whole), moved, strict=True):
            base.__setitem__(like, key, part)
    return like


def name_parts(like: Any, whole: Any, attributes: dict[str, Any]) -> None:
    """Set attributes where the original has them."""
    free = getattr(whole, "__dict__", ())
    for name, part in attributes.items():
        if name in free:
            like.__dict__[name] = part
        else:
            object.__setattr__(like, name, part)
