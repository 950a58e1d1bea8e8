"""``adapt`` and ``cu``: move the arrays inside a structure, and keep the structure.

After Adapt.jl's three verbs: *adapt* walks, *structure* rebuilds a container from its
adapted parts, *storage* moves the arrays (:mod:`~xdev.transfer.cuda`).

A rule is ``rule(walk, whole)``: it calls ``walk.move`` on the parts and returns a
container of the results, of the same type; ``whole`` itself if no part moved, unless
``walk.anew``. A user's own is ``rule(move, whole)``, called where a part moved.
"""

from __future__ import annotations

import array
import copy as copies
import dataclasses
import sys
from collections import OrderedDict, defaultdict, deque
from itertools import pairwise
from operator import is_
from types import BuiltinFunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev._forks import module_lock
from xdev._freed import is_freed
from xdev.device import Device, as_device, default_device, device_of, registry
from xdev.errors import UseAfterFreeError, quoted, type_name
from xdev.transfer.copies import to_device

if TYPE_CHECKING:
    from collections.abc import Callable

    Move = Callable[[Any], Any]
    Rule = Callable[["Walk", Any], Any]
    OwnRule = Callable[[Move, Any], Any]

#: By the kind of a data type: what wider ones become.
SINGLE = {"f": np.dtype("float32"), "c": np.dtype("complex64")}
ARRAY_PROTOCOLS = ("__cuda_array_interface__", "__array_namespace__", "__dlpack__")
SPARSE = ("scipy.sparse", "cupyx.scipy.sparse")
#: The sparse formats that both libraries have, and their parts but the values.
FORMATS: dict[str, tuple[str, ...]] = {"coo": ("coords",), "dia": ("offsets",)}
FORMATS |= dict.fromkeys(("csr", "csc"), ("indices", "indptr"))
CUDA_DTYPES = "?fdFD"  # what CuPy's can hold, by NumPy's characters
CONTAINERS = (OrderedDict, defaultdict, dict, deque, list, tuple)  # the narrower first
ARRAY: Any = object()  # in place of a rule
OPEN = object()  # stands for what a container is moved to, while its parts are


@final
class Walk:
    """One walk over a structure: a shared container is moved once, a cycle refused."""

    __slots__ = ("_seen", "_storage", "anew")

    def __init__(self, storage: Move, *, anew: bool = False) -> None:
        self._storage, self.anew = storage, anew
        # By identity, with the original, so that no identity is reused meanwhile.
        self._seen: dict[int, tuple[Any, Any]] = {}

    def move(self, part: Any) -> Any:
        """Return what a part becomes."""
        kind = type(part)
        rule = _rules_by_type[kind] if kind in _rules_by_type else _search(kind)
        if rule is None:
            return part
        if rule is ARRAY:
            try:
                return self._storage(part)
            except (TypeError, ValueError, UseAfterFreeError) as error:
                error.args = (f"adapt cannot move {self.path(part)}: {error}",)
                raise
        key, seen = id(part), self._seen
        if key in seen:
            moved = seen[key][1]
            if moved is OPEN:
                text = f"a {kind.__name__} contains itself, as {self.path(part)}"
                raise ValueError(f"{text}: adapt moves trees, so break the cycle first")
            return moved
        seen[key] = part, OPEN
        moved = rule(self, part)
        seen[key] = part, moved
        return moved

    def path(self, *part: Any) -> str:
        """Return how a part of what is being moved, or that itself, is reached."""
        way = [*(x for x, y in self._seen.values() if y is OPEN), *part]
        return "obj" + "".join(_step(whole, inner) for whole, inner in pairwise(way))


def arrays_in(whole: Any) -> list[Any]:
    """Return the arrays inside an object, each once."""
    arrays: dict[int, Any] = {}

    def note(x: Any) -> Any:
        return arrays.setdefault(id(x), x)

    Walk(note).move(whole)
    return [*arrays.values()]


def _step(whole: Any, inner: Any) -> str:
    """Return how a part is reached from its container."""
    steps: list[tuple[str, Any]] = []
    if isinstance(whole, dict):
        steps = [(f"[{key!r}]", part) for key, part in whole.items()]
    elif hasattr(whole, "_fields"):
        steps = [(f".{name}", getattr(whole, name)) for name in whole._fields]
    elif isinstance(whole, list | tuple | deque):
        steps = [(f"[{index}]", part) for index, part in enumerate(whole)]
    steps += [(f".{name}", part) for name, part in attributes_of(whole).items()]
    names = (step for step, part in steps if part is inner)
    return next(names, f".<a {type(inner).__name__}>")


# -- the rules ------------------------------------------------------------------------


def _content(walk: Walk, whole: Any) -> Any:
    """Copy what holds numbers of its own and no arrays, or shows such memory."""
    if not walk.anew:
        return whole
    is_view = isinstance(whole, memoryview)
    return np.array(whole).data if is_view else copies.copy(whole)


def _rebuilding(kind: Any) -> Rule:
    """Return the rule for a class of containers, or of objects with attributes.

    A class's own ``__new__``, ``__init__`` or ``__setitem__`` may take what it likes,
    count or refuse. So an object is made by its built-in base, its attributes are
    copied like its parts, and what a base cannot make is left to a user's rule.
    """
    bases = (*CONTAINERS, SimpleNamespace, object)
    base: Any = next(base for base in bases if issubclass(kind, base))
    values = getattr(base, "values" if issubclass(base, dict) else "__iter__", None)
    has_attributes = kind.__dictoffset__ or kind.__basicsize__ > base.__basicsize__
    is_plain = kind is list or kind is tuple

    def rebuilt(walk: Walk, whole: Any) -> Any:
        held = attributes_of(whole) if has_attributes else {}
        parts = whole
        if not is_plain:
            parts = [*(values(whole) if values else ()), *held.values()]
        moved = [*map(walk.move, parts)]  # a comprehension: a frame more for each level
        if not walk.anew and all(map(is_, moved, parts)):
            return whole
        count = len(parts) - len(held)
        try:
            like = _built(base, whole, moved[:count])
            free = getattr(whole, "__dict__", ())
            for name, part in zip(held, moved[count:], strict=True):
                if name in free:
                    like.__dict__[name] = part
                else:
                    object.__setattr__(like, name, part)
        except Exception as error:
            what = f"{walk.path()}, of the class {type_name(whole)}: {error}"
            way = "register the class: xdev.adapt.register"
            raise TypeError(f"adapt cannot rebuild {what}: {way}") from error
        return like

    return rebuilt


def attributes_of(whole: Any) -> dict[str, Any]:
    """Return what an object holds by name: its ``__dict__``, and slots with a value."""
    state: Any = object.__getstate__(whole)  # a class's own may tell less
    attributes, slots = state if type(state) is tuple else (state, None)
    return (attributes or {}) | (slots or {})


def _built(base: Any, whole: Any, moved: list[Any]) -> Any:
    """Return a container of a class by what its built-in base does."""
    kind: Any = type(whole)
    if base is tuple:  # a class in C, as PyTorch's named results are, makes its own
        own = isinstance(kind.__new__, BuiltinFunctionType)
        return (kind if own else base).__new__(kind, moved)
    like = base.__new__(kind)
    if base is list:
        list.extend(like, moved)
    elif base is deque:
        deque.__init__(like, moved, whole.maxlen)
    elif issubclass(base, dict):
        if base is defaultdict:
            defaultdict.__init__(like, whole.default_factory)
        for key, part in zip(base.keys(whole), moved, strict=True):
            base.__setitem__(like, key, part)
    return like


def _own(rule: OwnRule) -> Rule:
    """Return a user's rule that gives back the original where no part moved."""

    def keep(walk: Walk, whole: Any) -> Any:
        any_moved = walk.anew

        def watched(part: Any) -> Any:
            nonlocal any_moved
            moved = walk.move(part)
            any_moved = any_moved or moved is not part
            return moved

        rebuilt = rule(watched, whole)
        if rebuilt is None:
            name, way = type(whole).__name__, "return what it made of the moved parts"
            raise TypeError(f"the rule for {name} returned None: let it {way}")
        return rebuilt if any_moved else whole

    return keep


def _sparse(walk: Walk, x: Any) -> Any:
    """Move a matrix's parts, and rebuild in the library of where they went."""
    names = FORMATS.get(x.format)
    if names is None:
        parts = [np.empty(0)]  # which goes where its arrays would
    elif x.format == "coo":
        parts = [x.data, *x.coords]
    else:
        parts = [x.data, *(getattr(x, name) for name in names)]
    values, *indices = moved = [*map(walk.move, parts)]
    if not walk.anew and all(map(is_, moved, parts)):
        return x
    if names is None and isinstance(values, np.ndarray):
        return x.copy()
    device = device_of(values)
    make = _class(x, values, device)
    with registry.backend(device.type).use(device.index):
        if x.format != "coo":
            return make((values, *indices), shape=x.shape)
        matrix = make((values, tuple(indices)), shape=x.shape)
    matrix.has_canonical_format = x.has_canonical_format
    return matrix


def _class(x: Any, values: Any, device: Device) -> Any:
    """Return the class for values that were moved: a matrix stays one, an array too."""
    is_matrix = any(base.__name__ == "spmatrix" for base in type(x).__mro__)
    kind = "matrix" if is_matrix else "array"
    on_cpu, on_cuda = device.type == "cpu", device.type == "cuda"
    fits = on_cpu or (on_cuda and values.dtype.char in CUDA_DTYPES)
    if x.format not in FORMATS or not fits:
        way = "move x.toarray()"
        if on_cuda:  # it has COO, CSR, CSC and DIA of floats
            way = f'convert it first, x.tocsr() or x.astype("float64"), or {way}'
        what = f"no sparse {kind} of format {x.format} and dtype {x.dtype}"
        raise TypeError(f"{device} has {what}: {way}")
    library = _optional.scipy_sparse() if on_cpu else _optional.cupy_sparse()
    return getattr(library, f"{x.format}_{kind}")


_lock = module_lock()  # guards changes of the two tables
_rules: dict[type, Rule | None] = {
    **dict.fromkeys((list, tuple, deque, dict, SimpleNamespace)),  # None: rebuilding
    **dict.fromkeys((array.array, bytearray, set, memoryview), _content),
}
#: Types of adapt's own; and libraries, by name: none is imported for it.
OWN, LIBRARIES = frozenset((object, *_rules)), frozenset(("numpy", "cupy", "torch"))
_rules_by_type: dict[type, Rule | None] = {}  # by exact type; None: it has no arrays


def _search(kind: type) -> Rule | None:
    """Return the rule of a class, and remember it."""
    with _lock:
        _rules_by_type[kind] = rule = _rule_for(kind)
    return rule


def _rule_for(kind: type) -> Rule | None:
    for base in kind.__mro__:
        if base in _rules:
            return _rules[base] or _rebuilding(kind)
        if base.__module__.startswith(SPARSE):
            return _sparse if hasattr(kind, "tocsr") else None
    if dataclasses.is_dataclass(kind):
        return _rebuilding(kind)
    is_array = any(hasattr(kind, protocol) for protocol in ARRAY_PROTOCOLS)
    return ARRAY if is_array and not issubclass(kind, np.generic) else None


# -- the functions --------------------------------------------------------------------


def move(target: Device, obj: Any, prepare: Move | None = None, **options: Any) -> Any:
    """Return what :func:`adapt` returns; ``options`` are :func:`to_device`'s.

    Where small arrays cross in packs it walks twice, first to note the arrays.
    """
    anew = bool(options.get("copy"))
    stays = target.kind == "cpu" and prepare is None and not anew
    ready: dict[int, tuple[Any, Any]] = {}  # by identity: arrays, and what is moved
    moved: dict[int, Any] = {}

    def note(x: Any) -> Any:
        if id(x) not in ready:
            ready[id(x)] = x, x if prepare is None else prepare(x)
        return x

    def place(x: Any) -> Any:
        if stays and type(x) is np.ndarray and not is_freed(x):
            return x
        key = id(note(x))
        if key not in moved:
            moved[key] = to_device(ready[key][1], target, **options)
        return moved[key]

    if target.kind in ("cpu", "cuda") and "cupy" in sys.modules:
        from xdev.transfer.cuda import move_in_packs

        Walk(note).move(obj)
        moved |= move_in_packs({key: x for key, (_, x) in ready.items()}, target)
    return Walk(place, anew=anew).move(obj)


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
        return move(as_device(device), obj)

    def register(self, kind: type) -> Callable[[OwnRule], OwnRule]:
        """Register how a type is rebuilt: ``rule(move, x)`` with ``move`` on its parts.

        The rule is that of classes derived from the type, too. It has no effect but
        what it returns: it may run twice, once to find the arrays.

        Parameters
        ----------
        kind : type
            A class of yours.

        Returns
        -------
        decorator
            It takes the rule, and returns it.

        Raises
        ------
        TypeError
            ``kind`` is not a type, or adapt has a rule for it.

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
            text = f"adapt.register takes a type, not {quoted(kind)}: pass type(x)"
            raise TypeError(text)
        if kind in OWN or kind.__module__.partition(".")[0] in LIBRARIES:
            own = f"adapt has its own rule for {kind.__name__}"
            raise TypeError(f"{own}: register a class of yours")

        def add(rule: OwnRule) -> OwnRule:
            with _lock:
                _rules[kind] = _own(rule)
                _rules_by_type.clear()
            return rule

        return add


adapt = _Adapt()


def cu(obj: Any) -> Any:
    """Move an object's arrays to CUDA (else the default device), in single precision.

    float64 and longdouble become float32, complex128 and clongdouble complex64;
    integers and the rest are kept.
    The opinionated sibling of :func:`adapt`.

    Parameters
    ----------
    obj : object
        What :func:`adapt` takes.

    Returns
    -------
    object
        As :func:`adapt` returns it.

    Raises
    ------
    TypeError, ValueError
        What :func:`adapt` refuses.

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
    single = SINGLE.get(usual.dtype.kind, usual.dtype)
    if usual.dtype.itemsize <= single.itemsize:
        return usual
    with registry.backend(here.type).use(here.index):
        return usual.astype(single)
