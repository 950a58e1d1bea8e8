"""Containers: what their parts are, and how one is rebuilt from moved parts.

A rule is ``rule(move, whole, anew)``: it calls ``move`` on the parts and returns a
container of the results, of the same type; ``whole`` itself if no part moved, unless it
is to be made anew. A user's own is ``rule(move, whole)``, called where a part moved.
"""

from __future__ import annotations

import array
import copy
import dataclasses
from collections import OrderedDict, defaultdict, deque
from functools import cache
from itertools import pairwise
from operator import is_
from types import BuiltinFunctionType, MemberDescriptorType, SimpleNamespace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev._forks import module_lock
from xdev._freed import is_freed
from xdev.device import device_of, registry
from xdev.errors import type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xdev.device import Device

    Move = Callable[[Any], Any]
    Rule = Callable[[Move, Any, bool], Any]
    OwnRule = Callable[[Move, Any], Any]

ARRAY_PROTOCOLS = ("__cuda_array_interface__", "__array_namespace__", "__dlpack__")
SPARSE = ("scipy.sparse", "cupyx.scipy.sparse")
FORMATS = ("coo", "csr", "csc", "dia")  # of sparse matrices: what both libraries have
CUDA_DTYPES = "?fdFD"  # what CuPy's can hold, by NumPy's characters
BASES = (OrderedDict, defaultdict, dict, deque, list, tuple)  # the narrower ones first
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
        except NotRebuilt as error:
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


def _stays(parts: Iterable[Any], moved: list[Any], anew: bool) -> bool:
    """Say whether a container stays as it is, since no part moved."""
    return not anew and all(map(is_, moved, parts))


def _sequence(move: Move, parts: Any, anew: bool) -> Any:
    moved = [*map(move, parts)]  # a comprehension would be a frame more for each level
    if _stays(parts, moved, anew):
        return parts
    kind = type(parts)
    if kind is list:
        return moved
    if kind is tuple:
        return tuple(moved)
    return deque(moved, parts.maxlen) if kind is deque else kind._make(moved)


def _mapping(move: Move, parts: dict[Any, Any], anew: bool) -> Any:
    moved = [*map(move, parts.values())]
    same = _stays(parts.values(), moved, anew)
    return parts if same else dict(zip(parts, moved, strict=True))


def _object(move: Move, whole: Any, anew: bool) -> Any:
    """Rebuild without ``__init__``: frozen, slotted, derived fields are all alike."""
    held = attributes_of(whole)
    moved = [*map(move, held.values())]
    if _stays(held.values(), moved, anew):
        return whole
    base = SimpleNamespace if isinstance(whole, SimpleNamespace) else object
    try:
        like = base.__new__(type(whole))
        _name_parts(like, whole, zip(held, moved, strict=True))
    except Exception as error:
        raise NotRebuilt from error
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
            return _derived_rule(kind) if _is_derived(kind, base) else _rules[base]
        if base.__module__.startswith(SPARSE):
            return _sparse if hasattr(kind, "tocsr") else None
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
    held = attributes_of(whole)
    steps += [(f".{name}", part) for name, part in held.items()]
    found = (step for step, part in steps if part is inner)
    return next(found, f".<a {type(inner).__name__}>")


class NotRebuilt(Exception):  # noqa: N818 - the walk makes an error of it
    """A container was not rebuilt, for the reason that is this exception's cause."""


# A derived class's own ``__new__``, ``__init__`` or ``__setitem__`` may take what it
# likes, count or refuse. So a container is made by its built-in base, its attributes
# are copied like its parts, and what a base cannot make is left to a user's rule.


def _derived_rule(kind: type) -> Rule:
    """Return the rule for the containers of a derived class."""
    base: Any = next(base for base in BASES if issubclass(kind, base))
    values = base.values if issubclass(base, dict) else base.__iter__

    def rebuilt(move: Move, whole: Any, anew: bool) -> Any:
        parts, held = [*values(whole)], attributes_of(whole)
        moved, named = [*map(move, parts)], [*map(move, held.values())]
        if _stays([*parts, *held.values()], moved + named, anew):
            return whole
        try:
            like = _made(base, whole, moved)
            _name_parts(like, whole, zip(held, named, strict=True))
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


def _name_parts(like: Any, whole: Any, attributes: Iterable[tuple[str, Any]]) -> None:
    """Set attributes where the original has them."""
    free = getattr(whole, "__dict__", ())
    for name, part in attributes:
        if name in free:
            like.__dict__[name] = part
        else:
            object.__setattr__(like, name, part)


def _sparse(move: Move, x: Any, anew: bool) -> Any:
    """Move a matrix's parts, and rebuild in the library of where they went."""
    if x.format not in FORMATS:
        return _at_home(move, x, anew)
    parts = _parts(x)
    moved = [move(part) for part in parts]
    if _stays(parts, moved, anew):
        return x
    data, *indices = moved
    device = device_of(data)
    make = _class(x, data, device)
    with registry.backend(device.type).use(device.index):
        if x.format != "coo":
            return make((data, *indices), shape=x.shape)
        made = make((data, tuple(indices)), shape=x.shape)
    made.has_canonical_format = x.has_canonical_format
    return made


def _parts(x: Any) -> tuple[Any, ...]:
    """Return a matrix's values, then its index arrays in the constructors' order."""
    if x.format == "coo":
        return x.data, *x.coords
    if x.format == "dia":
        return x.data, x.offsets
    return x.data, x.indices, x.indptr


def _class(x: Any, data: Any, device: Device) -> Any:
    """Return the class for values that were moved: a matrix stays one, an array too."""
    kind = "matrix" if _is_matrix(type(x)) else "array"
    if device.type == "cpu":
        return getattr(_optional.scipy_sparse(), f"{x.format}_{kind}")
    if device.type != "cuda":
        message = (
            f"there is no sparse {kind} on {device}: move its parts, such as .data, "
            f"or x.toarray()"
        )
        raise TypeError(message)
    if data.dtype.char not in CUDA_DTYPES:
        message = (
            f"CUDA has no sparse {kind} of dtype {data.dtype}: convert it first, as in "
            f'x.astype("float64")'
        )
        raise TypeError(message)
    return getattr(_optional.cupy_sparse(), f"{x.format}_{kind}")


def _is_matrix(kind: type) -> bool:
    return any(base.__name__ == "spmatrix" for base in kind.__mro__)


def _at_home(move: Move, x: Any, anew: bool) -> Any:
    """Refuse a format that CuPy does not have, unless it stays on the host."""
    probe = np.empty(0)  # such a matrix may have no arrays to ask about
    if isinstance(move(probe), np.ndarray):
        return x.copy() if anew else x
    message = (
        f"{type(x).__name__} cannot be moved: adapt moves COO, CSR, CSC and DIA, so "
        f"convert it first, as in x.tocsr()"
    )
    raise TypeError(message)
