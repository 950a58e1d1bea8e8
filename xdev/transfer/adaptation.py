"""``adapt`` and ``cu``: move the arrays inside a structure, and keep the structure.

After Adapt.jl's three verbs: *adapt* walks, *structure* rebuilds a container from its
adapted parts (:mod:`~xdev.transfer.structures`), *storage* moves the arrays
(:mod:`~xdev.transfer.packs`).
"""

from __future__ import annotations

import sys
from operator import is_
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.device import Device, default_device, device_of, registry
from xdev.device.choice import target_of
from xdev.errors import UseAfterFreeError
from xdev.transfer import structures
from xdev.transfer.copies import to_device
from xdev.transfer.structures import Walk, arrays_in, path_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.transfer.structures import OwnRule as Rule

OWN = {
    *("builtins.object", "builtins.list", "builtins.tuple", "builtins.dict"),
    *("collections.deque", "types.SimpleNamespace"),
    *("numpy.ndarray", "cupy.ndarray", "torch.Tensor"),
}  # by name: none is imported for it
#: By the kind of a data type: the widest one that stays, and what wider ones become.
SINGLE = {"f": (4, "float32"), "c": (8, "complex64")}


def move(
    target: Device,
    obj: Any,
    prepare: Callable[[Any], Any] | None = None,
    *,
    non_blocking: bool = False,
    copy: bool | None = None,
) -> Any:
    """Return what :func:`adapt` returns.

    It walks twice, first to note the arrays, then to put those in place that moved:
    together they cross in fewer copies.

    Parameters
    ----------
    target : Device
        Where to.
    obj : object
        The structure.
    prepare : callable, optional
        Makes of an array the one that is moved.
    non_blocking, copy
        As :func:`~xdev.to_device` has them. With ``copy=True`` the containers are made
        anew, too: nothing that the original's owner does shows in the result.
    """
    try:
        return _moved(target, obj, prepare, non_blocking, copy)
    except RecursionError:
        message = (
            f"the structure is nested too deep for Python's recursion limit of "
            f"{sys.getrecursionlimit()}: flatten it, or raise the limit with "
            f"sys.setrecursionlimit(n)"
        )
        raise RecursionError(message) from None


def _moved(
    target: Device,
    obj: Any,
    prepare: Callable[[Any], Any] | None,
    non_blocking: bool,
    copy: bool | None,
) -> Any:
    stay = target.kind == "cpu" and prepare is None and not copy
    there = np.ndarray if stay else None
    found = arrays_in(obj, there)
    arrays = [*found.values()]
    ready = arrays
    if prepare is not None:
        ready = _each(lambda number: prepare(arrays[number]), arrays, obj)
    together: dict[int, Any] = {}
    if target.kind in ("cpu", "cuda") and "cupy" in sys.modules:
        from xdev.transfer.packs import packed

        together = packed(ready, target)

    def alone(number: int) -> Any:
        if number in together:
            return together[number]
        return to_device(ready[number], target, non_blocking=non_blocking, copy=copy)

    moved = _each(alone, arrays, obj)
    if not copy and all(map(is_, moved, arrays)):
        return obj
    places = dict(zip(found, moved, strict=True))

    def place(x: Any) -> Any:
        if id(x) in places:
            return places[id(x)]
        late = x if prepare is None else prepare(x)  # a rule made it just now
        return to_device(late, target, copy=copy)

    return Walk(place, anew=bool(copy)).move(obj)


def _each(make: Callable[[int], Any], arrays: list[Any], obj: Any) -> list[Any]:
    """Return what is made of each array's number; an error says where the array is."""
    made = []
    for number, x in enumerate(arrays):
        try:
            made.append(make(number))
        except (TypeError, ValueError, UseAfterFreeError) as error:
            error.args = (f"adapt cannot move {path_to(x, obj)}: {error}",)
            raise
    return made


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
            An array, or dicts, lists, tuples, named tuples, deques, SimpleNamespaces
            (and classes derived from them), dataclasses, SciPy's and CuPy's sparse
            matrices and arrays, and registered types of them, nested. A derived
            class's attributes are parts too, and its own methods are not called. An
            array that occurs twice is moved once; arrays inside other objects stay
            where they are.

        Returns
        -------
        object
            Like ``obj``; ``obj`` itself where nothing had to move. Small arrays cross
            to CUDA in packs of up to 1 MiB and are views of them.

        Raises
        ------
        ValueError
            A container contains itself; the text says where.
        RecursionError
            Containers are nested deeper than Python's calls may be.
        TypeError
            An array has a dtype that the device does not have, or a class does not let
            its containers be rebuilt: the text says where. The device does not have a
            sparse matrix's format; a registered rule returned None.
        UseAfterFreeError
            An array was freed; the text says where.
        ConfigurationError, DeviceUnavailableError
            The device is unknown, or cannot be used.

        Examples
        --------
        >>> import numpy as np
        >>> adapt("cpu", {"weights": np.ones(2), "name": "layer"})
        {'weights': array([1., 1.]), 'name': 'layer'}
        """
        return move(target_of(device, obj, "adapt(device, obj)"), obj)

    def register(self, kind: type) -> Callable[[Rule], Rule]:
        """Register how a type is rebuilt: ``rule(move, x)`` with ``move`` on its parts.

        A rule has no effect but what it returns: it runs twice, once to find the
        arrays.

        Raises
        ------
        TypeError
            ``kind`` is no type, an abstract one that classes belong to without being
            derived from it, or one that adapt moves itself (classes derived from it
            may be registered); the rule cannot be called.

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
        if not isinstance(kind, type):
            message = f"adapt.register takes a type, not {kind!r}: pass type(x)"
            raise TypeError(message)
        if f"{kind.__module__}.{kind.__name__}" in OWN:
            message = (
                f"adapt has its own rule for {kind.__name__}: register a class of yours"
            )
            raise TypeError(message)
        if _is_virtual(kind):
            message = (
                f"a rule is found by what a class is derived from, which many that "
                f"are a {kind.__name__} are not: register the classes themselves"
            )
            raise TypeError(message)

        def add(rule: Rule) -> Rule:
            if not callable(rule):
                message = (
                    f"the rule for {kind.__name__} is {rule!r}: pass a function "
                    "rule(move, x)"
                )
                raise TypeError(message)
            structures.register(kind, rule)
            return rule

        return add


def _is_virtual(kind: type) -> bool:
    """Say whether a type is a protocol, or an abstract one of Python's own."""
    if getattr(kind, "_is_protocol", False):
        return True
    python = kind.__module__.partition(".")[0] in sys.stdlib_module_names
    return python and bool(getattr(kind, "__abstractmethods__", None))


adapt = _Adapt()


def cu(obj: Any) -> Any:
    """Move an object's arrays to CUDA (else the default device), in single precision.

    float64 and longdouble become float32, complex128 and clongdouble complex64;
    integers and the rest are kept.
    The opinionated sibling of :func:`adapt`.

    Examples
    --------
    >>> import numpy as np
    >>> cu([np.ones(2), np.arange(2)])[0].dtype
    dtype('float32')
    """
    cuda = Device("cuda")
    target = cuda.require() if cuda.available else default_device()
    return move(target, obj, _single)


def _single(x: Any) -> Any:
    """Return an array in single precision, of its device's usual library."""
    here = Device(str(device_of(x)))
    usual = to_device(x, here)
    nbytes, name = SINGLE.get(usual.dtype.kind, (0, ""))
    if not name or usual.dtype.itemsize <= nbytes:
        return usual
    with registry.backend(here.type).use(here.index):
        return usual.astype(name)
