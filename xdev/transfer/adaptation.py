"""``adapt`` and ``cu``: move the arrays inside a structure, and keep the structure.

After Adapt.jl's three verbs: *adapt* walks, *structure* rebuilds a container from its
adapted parts, *storage* moves an array.
"""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.device import Device, as_device, default_device
from xdev.transfer.copies import to_device

if TYPE_CHECKING:
    from collections.abc import Callable

    Move = Callable[[Any], Any]
    Rule = Callable[[Move, Any], Any]

SINGLE = {np.dtype("float64"): "float32", np.dtype("complex128"): "complex64"}


def _sequence(move: Move, parts: Any) -> Any:
    moved = [move(part) for part in parts]
    build = getattr(type(parts), "_make", type(parts))  # namedtuples take the fields
    return build(moved)


def _mapping(move: Move, parts: dict[Any, Any]) -> Any:
    moved = {key: move(value) for key, value in parts.items()}
    if type(parts) is dict:
        return moved
    copy = parts.copy()  # keeps a defaultdict's factory, an OrderedDict's order
    copy.update(moved)
    return copy


def _dataclass(move: Move, whole: Any) -> Any:
    """Rebuild without ``__init__``, so that frozen and slotted ones work alike."""
    moved = object.__new__(type(whole))
    for field in dataclasses.fields(whole):
        object.__setattr__(moved, field.name, move(getattr(whole, field.name)))
    return moved


@final
class _Walk:
    """One walk over a structure: shared parts are moved once, cycles are refused."""

    def __init__(self, storage: Move) -> None:
        self._storage = storage
        # By identity, with the original, so that no identity is reused meanwhile.
        self._done: dict[int, tuple[Any, Any]] = {}
        self._open: set[int] = set()

    def __call__(self, part: Any) -> Any:
        key = id(part)
        if key not in self._done:
            rule = _rule(part)
            if rule is not None:
                moved = self._structure(rule, part)
            elif _is_array(part):
                moved = self._storage(part)
            else:
                return part
            self._done[key] = part, moved
        return self._done[key][1]

    def _structure(self, rule: Rule, whole: Any) -> Any:
        """Rebuild a container; one of which no part moved comes back itself."""
        if id(whole) in self._open:
            message = (
                f"a {type(whole).__name__} contains itself: adapt moves trees, so "
                f"break the cycle first"
            )
            raise ValueError(message)
        moved_any = False

        def move(part: Any) -> Any:
            nonlocal moved_any
            moved = self(part)
            moved_any = moved_any or moved is not part
            return moved

        self._open.add(id(whole))
        try:
            rebuilt = rule(move, whole)
        finally:
            self._open.discard(id(whole))
        return rebuilt if moved_any else whole


def _is_array(part: Any) -> bool:
    protocols = ("__cuda_array_interface__", "__array_namespace__", "__dlpack__")
    kind = type(part)
    return not isinstance(part, np.generic) and any(
        hasattr(kind, protocol) for protocol in protocols
    )


_lock = threading.Lock()  # guards additions to the table
_rules: dict[type, Rule] = {list: _sequence, tuple: _sequence, dict: _mapping}


def _rule(part: Any) -> Rule | None:
    for kind in type(part).__mro__:
        if kind in _rules:
            return _rules[kind]
    return _dataclass if dataclasses.is_dataclass(type(part)) else None


@final
class _Adapt:
    """The function :func:`adapt`, with ``register``."""

    def __call__(self, device: object, obj: Any) -> Any:
        """Move the arrays inside an object to a device, and keep the object's type.

        Parameters
        ----------
        device : device
            Where to.
        obj : object
            An array, or dicts, lists, tuples, namedtuples, dataclasses and registered
            types of them, nested. An array that occurs twice is moved once.

        Returns
        -------
        object
            Like ``obj``; ``obj`` itself where nothing had to move.

        Raises
        ------
        ValueError
            A container contains itself.
        ConfigurationError, DeviceUnavailableError
            The device is unknown, or cannot be used.

        Examples
        --------
        >>> import numpy as np
        >>> adapt("cpu", {"weights": np.ones(2), "name": "layer"})
        {'weights': array([1., 1.]), 'name': 'layer'}
        """
        target = as_device(device)
        return _Walk(lambda x: to_device(x, target))(obj)

    def register(self, kind: type) -> Callable[[Rule], Rule]:
        """Register how a type is rebuilt: ``rule(move, x)`` with ``move`` on its parts.

        Examples
        --------
        >>> import numpy as np
        >>> class Diagonal:
        ...     def __init__(self, diag):
        ...         self.diag = diag
        >>> @adapt.register(Diagonal)
        ... def _(move, x):
        ...     return Diagonal(move(x.diag))
        >>> adapt("cpu", Diagonal(np.ones(2))).diag
        array([1., 1.])
        """

        def add(rule: Rule) -> Rule:
            with _lock:
                _rules[kind] = rule
            return rule

        return add


adapt = _Adapt()


def cu(obj: Any) -> Any:
    """Move an object's arrays to CUDA (else the default device), in single precision.

    float64 becomes float32 and complex128 complex64; integers and the rest are kept.
    The opinionated sibling of :func:`adapt`.

    Examples
    --------
    >>> import numpy as np
    >>> cu([np.ones(2), np.arange(2)])[0].dtype
    dtype('float32')
    """
    cuda = Device("cuda")
    target = cuda.require() if cuda.available else default_device()

    def storage(x: Any) -> Any:
        single = SINGLE.get(x.dtype) if isinstance(x.dtype, np.dtype) else None
        return to_device(x if single is None else x.astype(single), target)

    return _Walk(storage)(obj)
