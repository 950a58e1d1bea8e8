"""Containers: what their parts are, and how one is rebuilt from moved parts.

A rule is ``rule(move, whole, anew)``: it calls ``move`` on the parts and returns a
container of the results, of the same type; ``whole`` itself if no part moved, unless it
is to be made anew. A user's own is ``rule(move, whole)``, called where a part moved.
"""

from __future__ import annotations

import array
import copy
import dataclasses
from collections import deque
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev._forks import module_lock
from xdev._freed import is_freed
from xdev.errors import type_name
from xdev.transfer import derived

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Move = Callable[[Any], Any]
    Rule = Callable[[Move, Any, bool], Any]
    OwnRule = Callable[[Move, Any], Any]

ARRAY_PROTOCOLS = ("__cuda_array_interface__", "__array_namespace__", "__dlpack__")
SPARSE = ("scipy.sparse", "cupyx.scipy.sparse")
OPEN = object()  # stands for what a container is moved to, while its parts are


@final
class Walk:
    """One walk over a structure: a shared container is moved once, a cycle refused.

    Parameters
    ----------
    storage : callable
        Moves an array, each time that it occurs.
    anew : bool
        Whether containers are made anew also where no part of theirs moved.

    Examples
    --------
    >>> Walk(lambda x: x + 1).move({"a": np.arange(2), "b": "text"})
    {'a': array([1, 2]), 'b': 'text'}
    """

    __slots__ = ("_anew", "_seen", "_storage")

    def __init__(self, storage: Move, *, anew: bool = False) -> None:
        self._storage, self._anew = storage, anew
        # By identity, with the original, so that no identity is reused meanwhile.
        self._seen: dict[int, tuple[Any, Any]] = {}

    def move(self, part: Any) -> Any:
        """Return what a part becomes.

        Raises
        ------
        ValueError
            A container contains itself; the text says where.
        TypeError
            A container's class does not let it be rebuilt; the text says where.
        """
        kind = type(part)
        rule = _known[kind] if kind in _known else _rule_of(kind)
        if rule is None:
            return part
        if rule is _array:
            return self._storage(part)
        key, seen = id(part), self._seen
        if key in seen:
            moved = seen[key][1]
            if moved is OPEN:
                raise _cycle(part, self.way())
            return moved
        seen[key] = part, OPEN
        try:
            moved = rule(self.move, part, self._anew)
        except derived.NotRebuilt as error:
            raise _not_rebuilt(self.way(), error) from error.__cause__
        seen[key] = part, moved
        return moved

    def way(self) -> list[Any]:
        """Return the containers that are being moved, each inside the one before."""
        return [x for x, y in self._seen.values() if y is OPEN]


def arrays_in(whole: Any, there: type | None = None) -> dict[int, Any]:
    """Return the arrays inside an object by identity, each once.

    Those of exactly the type ``there`` are left out, but not if they were freed.
    """
    found: dict[int, Any] = {}

    def note(x: Any) -> Any:
        if type(x) is not there or is_freed(x):
            found[id(x)] = x
        return x

    Walk(note).move(whole)
    return found


def path_to(array: Any, whole: Any) -> str:
    """Return how an array inside an object is reached, as it would be written."""
    paths = []

    def note(x: Any) -> Any:
        if x is array:
            paths.append(_paths((*walk.way(), x))[-1])
        return x

    walk = Walk(note)
    walk.move(whole)
    return paths[0] if paths else "an array that a rule made"


def _array(storage: Move, x: Any, _: bool) -> Any:
    """Move an array, which has no parts."""
    return storage(x)


def _sequence(move: Move, parts: Any, anew: bool) -> Any:
    moved, same = [], not anew
    for part in parts:  # no comprehension: a frame less for each level of a deep tree
        new = move(part)
        moved.append(new)
        same = same and new is part
    if same:
        return parts
    kind = type(parts)
    if kind is list:
        return moved
    if kind is tuple:
        return tuple(moved)
    return deque(moved, parts.maxlen) if kind is deque else kind._make(moved)


def _mapping(move: Move, parts: dict[Any, Any], anew: bool) -> Any:
    moved, same = {}, not anew
    for key, part in parts.items():
        moved[key] = new = move(part)
        same = same and new is part
    return parts if same else moved


def _object(move: Move, whole: Any, anew: bool) -> Any:
    """Rebuild without ``__init__``: frozen, slotted, derived fields are all alike."""
    held = derived.attributes_of(whole)
    moved, same = {}, not anew
    for name, part in held.items():
        moved[name] = new = move(part)
        same = same and new is part
    if same:
        return whole
    base = SimpleNamespace if isinstance(whole, SimpleNamespace) else object
    try:
        like = base.__new__(type(whole))
        derived.name_parts(like, whole, moved)
    except Exception as error:
        raise derived.NotRebuilt from error
    return like


def _content(_: Move, whole: Any, anew: bool) -> Any:
    """Copy what holds numbers of its own and no arrays."""
    return copy.copy(whole) if anew else whole


def _view(_: Move, whole: memoryview, anew: bool) -> memoryview:
    """Copy the memory that a view shows."""
    return np.array(whole).data if anew else whole


def _registered(rule: OwnRule) -> Rule:
    """Return a user's rule that gives back the original where no part moved."""

    def keep(move: Move, whole: Any, anew: bool) -> Any:
        any_moved = anew

        def watched(part: Any) -> Any:
            nonlocal any_moved
            moved = move(part)
            any_moved = any_moved or moved is not part
            return moved

        rebuilt = rule(watched, whole)
        if rebuilt is None:
            message = (
                f"the rule for {type(whole).__name__} returned None: let it return "
                f"what it made of the moved parts"
            )
            raise TypeError(message)
        return rebuilt if any_moved else whole

    return keep


_lock = module_lock()  # guards changes of the two tables
_rules: dict[type, Rule] = {
    **dict.fromkeys((list, tuple, deque), _sequence),
    dict: _mapping,
    SimpleNamespace: _object,
    **dict.fromkeys((array.array, bytearray, set), _content),
    memoryview: _view,
}
_known: dict[type, Rule | None] = {}  # by exact type; None: it has no arrays


def register(kind: type, rule: OwnRule) -> None:
    """Set how a type, and those derived from it, are rebuilt."""
    with _lock:
        _rules[kind] = _registered(rule)
        _known.clear()


def _rule_of(kind: type) -> Rule | None:
    with _lock:
        found = _known[kind] = _search(kind)
    return found


def _search(kind: type) -> Rule | None:
    for base in kind.__mro__:
        if base in _rules:
            return derived.rule_of(kind) if _is_derived(kind, base) else _rules[base]
        if base.__module__.startswith(SPARSE):
            from xdev.transfer import sparse

            return sparse.rule_of(kind)
    if dataclasses.is_dataclass(kind):
        return _object
    is_array = any(hasattr(kind, protocol) for protocol in ARRAY_PROTOCOLS)
    return _array if is_array and not issubclass(kind, np.generic) else None


def _is_derived(kind: type, base: type) -> bool:
    """Say whether a container is more than a built-in one or a plain named tuple."""
    if _rules[base] not in (_sequence, _mapping) or kind is base:
        return False
    return not (hasattr(kind, "_make") and not kind.__dictoffset__)


def _not_rebuilt(way: list[Any], error: Exception) -> TypeError:
    """Return the error for the last container of a way, whose class fails."""
    name = type_name(way[-1])
    return TypeError(
        f"adapt cannot rebuild {_paths(way)[-1]}, of the class {name}: "
        f"{error.__cause__}: register the class: xdev.adapt.register"
    )


def _paths(way: Iterable[Any]) -> list[str]:
    """Return how each container on a way is reached from the first."""
    paths = ["obj"]
    for whole, inner in pairwise(way):
        paths.append(paths[-1] + _step(whole, inner))
    return paths


def _cycle(part: Any, way: list[Any]) -> ValueError:
    """Return the error for a part that is among the containers on the way to it."""
    paths = _paths((*way, part))
    first = next(path for path, whole in zip(paths, way, strict=False) if whole is part)
    return ValueError(
        f"a {type(part).__name__} contains itself: {paths[-1]} is {first}: adapt moves "
        f"trees, so break the cycle first"
    )


def _step(whole: Any, inner: Any) -> str:
    """Return how a part is reached from its container, as it would be written."""
    if isinstance(whole, dict):
        steps = [(f"[{key!r}]", part) for key, part in whole.items()]
    elif hasattr(whole, "_fields"):
        steps = [(f".{name}", getattr(whole, name)) for name in whole._fields]
    elif isinstance(whole, list | tuple | deque):
        steps = [(f"[{index}]", part) for index, part in enumerate(whole)]
    else:
        steps = []
    held = derived.attributes_of(whole)
    steps += [(f".{name}", part) for name, part in held.items()]
    found = (step for step, part in steps if part is inner)
    return next(found, f".<a {type(inner).__name__}>")
