"""From arguments to the function that serves them: one library, one device a call."""

from __future__ import annotations

import importlib
import operator
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._freed import FREED, Remains, is_freed, use_after_free
from xdev.device import Device, as_device, default_device, device_of
from xdev.device.choice import CPU, from_environment, in_context
from xdev.device.registry import backend
from xdev.errors import type_name
from xdev.facade.backends import HOST_SCALARS, PYTHON_SCALARS, is_numpys
from xdev.facade.cpu import HOST, NUMPY, OF_ARRAYS
from xdev.ufunc import argument_errors as errors

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import ModuleType

    from xdev.facade.backends import Factory, Function, Library

#: Types whose objects go beside a NumPy array.
BESIDE = PYTHON_SCALARS | HOST_SCALARS | {np.ndarray}


#: The library of each type of arrays seen so far but NumPy's, and of NumPy's scalars.
# Filled at the first array of a type. Two threads may do the same work; the last wins.
libraries: dict[type, Library] = dict.fromkeys(HOST_SCALARS, NUMPY)


#: Of a type of arrays, functions by plans for any device and stream, by their names:
#: NotImplemented where no plan is for the arguments. Calls go there first.
launches: dict[type, dict[str, Function]] = {}


#: Launches as calls on CUDA arrays were before, by functions' names and an option.
planned: dict[Any, Any] = {}
OPTIONS = frozenset({int, str, type(None)})  # types of which equal ones mean the same


def relaunch(name: str, option: Any, x: Any, *more: Any) -> Any:
    """Launch as a call before on such arrays; None: there was none."""
    # PyTorch's compiler follows the first question, and stops at the second.
    if type(x) not in launches or type(option) not in OPTIONS:
        return None
    again = planned.get((name, option))
    out = NotImplemented if again is None else again(x, *more)
    return None if out is NotImplemented else out


_by_name: dict[str, Library] = {"numpy": NUMPY, "array_api_compat.numpy": NUMPY}
#: By the namespace's name, array_api_compat's too.
_MODULES = {"cupy": "cuda", "dask.array": "dask"}


def library_of(x: Any, name: str, label: str = "x") -> Library:
    """Return the library of an array."""
    library = libraries.get(type(x))
    if library is not None:
        return library
    if not isinstance(x, np.ndarray):
        return libraries.setdefault(type(x), _discover(x, name, label))
    if x.dtype in FREED:
        raise use_after_free(x, f"xdev.{name}: {label}")
    return NUMPY


def is_array(x: object) -> bool:
    """Say whether an object is an array, NumPy's scalar, or a class with such names."""
    known = type(x) in libraries or isinstance(x, np.ndarray)
    return known or bool(_compat().is_array_api_obj(x))


def _compat() -> Any:
    return importlib.import_module("array_api_compat")


def _discover(x: Any, name: str, label: str) -> Library:
    if isinstance(x, Remains):
        raise use_after_free(x, f"xdev.{name}: {label}")
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(x, cupy.ndarray):
        return library_named(cupy)
    # Not of classes: the class numpy.float64 has __array_namespace__ as well.
    if isinstance(x, type | list | tuple | str | np.generic) or not is_array(x):
        raise errors.no_array(name, label, x)
    try:
        return library_named(_compat().array_namespace(x))
    except AttributeError as error:  # what it names is no module
        message = f"xdev.{name}: {label} is a {type_name(x)}, whose __array_namespace__"
        raise TypeError(f"{message} is not a library's: {error}") from error


def library_named(namespace: ModuleType) -> Library:
    """Return the one library object of a namespace."""
    name = namespace.__name__
    if name not in _by_name:
        own = name.removeprefix("array_api_compat.")
        _by_name[name] = backend_of(_MODULES.get(own, "other")).library(namespace)
    return _by_name[name]


def owner_of(thing: Any, name: str, label: str) -> Library | None:
    """Return the library of an array or data type; None where NumPy's rules hold."""
    if is_numpys(thing) or type(thing) in PYTHON_SCALARS:
        return None
    root: Any = sys.modules.get(type(thing).__module__.partition(".")[0])
    if hasattr(thing, "dtype") or root is None:
        library = library_of(thing, name, label)
    elif hasattr(root, "empty"):  # of the library that a data type is of
        library = library_named(_compat().array_namespace(root.empty(0)))
    else:
        return None
    return None if library.numpy_dtypes else library


ndarray = np.ndarray


_EITHER = PYTHON_SCALARS | HOST_SCALARS | {type(None)}


OPTIONAL = ("min", "max", "sorter")  # arguments that may be None


def refuse(name: str, **arrays: Any) -> None:
    """Raise an error for a call that failed, in place of NumPy's where it says less."""
    for label, x in arrays.items():
        if is_freed(x):
            raise use_after_free(x, f"xdev.{name}: {label}")
    error = errors.unfit(name, {key: x for key, x in arrays.items() if key != "out"})
    if error is not None:
        raise error from None


MANY = 1 << 16  # elements: threads share no function of fewer
#: The Fourier transforms along axes.
TRANSFORMS = frozenset(
    f"fft.{inverse}{name}"
    for name in ("fft", "rfft", "hfft", "fftn", "rfftn")
    for inverse in ("", "i")
)
#: How many may be worth several threads, of all arrays together.
LARGE = {
    **dict.fromkeys(("sum", "max", "min", "mean", "std", "var"), 1 << 21),
    **dict.fromkeys(("astype", "concat"), 1 << 20),
    **dict.fromkeys(("where", "take", "sort", "argsort", *TRANSFORMS), MANY),
}


def dispatch_large(name: str, size: int, plain: Any = None) -> Function:
    """Return the function for NumPy's arrays of so many elements together."""
    plain = OF_ARRAYS[name] if plain is None else plain
    if size < LARGE.get(name, size + 1):
        return plain
    # Now, not at import: that takes the pool and the threads.
    return partial(backend_of("cpu_threads").FUNCTIONS[name], plain)


def dispatch(
    name: str, x: Any, more: tuple[Any, ...] = (), unknown: dict[str, Any] | None = None
) -> Function:
    """Return the function ``name`` for an array."""
    if more or unknown:
        raise errors.misplaced(own_function(name), more, unknown)
    if type(x) is ndarray and x.dtype not in FREED:
        return OF_ARRAYS[name] if x.size < MANY else dispatch_large(name, x.size)
    library = libraries.get(type(x)) or library_of(x, name)
    one = not library.multi_device
    return library.functions[name] if one else library.bound(name, x)


def own_function(name: str) -> Any:
    """Return the facade's function of a name."""
    return operator.attrgetter(name)(sys.modules["xdev"])


def dispatch_two(
    name: str, x1: Any, x2: Any, labels: Any = ("x1", "x2"), more: Any = ()
) -> Function:
    """Return the function ``name`` for two arrays, as :func:`dispatch_all`."""
    if more:
        raise errors.misplaced(own_function(name), more)
    kind = type(x1)
    if kind is type(x2):
        if kind is ndarray:
            if x1.dtype not in FREED and x2.dtype not in FREED:
                # Elements of the rows of a matrix that are taken.
                size = x2.size * (x1.shape[-1] if x1.ndim > 1 else 1)
                return OF_ARRAYS[name] if size < MANY else dispatch_large(name, size)
        elif kind in libraries and not libraries[kind].multi_device:
            return libraries[kind].functions[name]  # as small calls on CUDA notice
    return dispatch_all(name, **dict(zip(labels, (x1, x2), strict=True)))


def dispatch_alike(name: str, arrays: Collection[Any]) -> Function | None:
    """Return the function ``name`` for arrays of one type on one device, or None."""
    size = 0
    for x in arrays:
        if type(x) is not ndarray or x.dtype in FREED:
            break
        size += x.size
    else:
        return OF_ARRAYS[name] if size < MANY else dispatch_large(name, size)
    kinds = {*map(type, arrays)}
    library = libraries.get(kinds.pop()) if len(kinds) == 1 else None
    if library is None or not library.multi_device:
        return library.functions[name] if library else None
    devices = [library.device(x) for x in arrays]
    if any(device != devices[0] for device in devices):
        return None
    return library.bound(name, next(iter(arrays)))


def dispatch_all(name: str, **arrays: Any) -> Function:
    """Return the function ``name`` for arrays of one library and device, or refuse."""
    function = dispatch_alike(name, arrays.values())
    if function is None:
        library, like = common_library(name, arrays.items())
        function = library.bound(name, like)
    return function


def dispatch_sequence(name: str, arrays: Any, axis: Any = None) -> Function:
    """Return the function ``name`` for a sequence of arrays: :func:`dispatch_all`."""
    if type(arrays) is list or type(arrays) is tuple:
        function = dispatch_alike(name, arrays)
        if function is not None:
            return function
    two = hasattr(arrays, "ndim") and hasattr(axis, "ndim")  # two arrays, and no list
    one = getattr(arrays, "ndim", 2) < 2 or not hasattr(arrays, "__iter__")  # noqa: PLR2004
    if one or two:
        raise errors.no_sequence(name, arrays)
    items = {f"arrays[{index}]": x for index, x in enumerate(arrays)}
    if not items:
        raise ValueError(f"xdev.{name}: arrays is empty: give at least one array")
    return dispatch_all(name, **items)


def dispatch_mixed(name: str, **arguments: Any) -> tuple[Function, list[Any]]:
    """Return the function and its arguments, numbers made fit to meet the arrays."""
    library, like, values, _ = resolve_operands(name, None, arguments, {})
    function = library.bound(name, like)
    if library is NUMPY and like.size >= MANY:
        plain = all(type(x) is ndarray or type(x) in PYTHON_SCALARS for x in values)
        function = dispatch_large(name, like.size, function) if plain else function
    return function, values


def resolve_operands(
    name: str, out: Any, arguments: dict[str, Any], masks: dict[str, Any]
) -> tuple[Library, Any, list[Any], dict[str, Any]]:
    """Return the library of all arrays, one of them, and its inputs and masks."""
    written = {} if out is None else {"out": out}
    if out is not None:
        if type(out) in _EITHER:
            raise errors.no_array(name, "out", out)
        if PYTHON_SCALARS.issuperset(map(type, arguments.values())):
            arguments = {k: _scalar(name, k, x) for k, x in arguments.items()}
    library, like = _library_of_operands(name, {**arguments, **masks, **written})
    values = [library.operand(value, like) for value in arguments.values()]
    masks = {k: library.operand(x, like) for k, x in masks.items()}
    return library, like, values, masks


def _scalar(name: str, label: str, x: Any) -> Any:
    """Return the NumPy scalar of a Python number, which no array is beside."""
    scalar: Any = np.asarray(x)[()]
    if type(scalar) in HOST_SCALARS:
        return scalar
    raise errors.too_large(name, label, x)


def _library_of_operands(name: str, arguments: dict[str, Any]) -> tuple[Library, Any]:
    """Return the library and array that the numbers among the arguments follow."""
    arrays, hosts = [], []
    for label, value in arguments.items():
        kind = type(value)
        if value is None and label not in OPTIONAL:
            raise errors.no_array(name, label, value)
        # A 0-d host array is a number that goes anywhere, unless it is written to.
        flat = kind is ndarray and not value.ndim and label != "out"
        if (flat and value.dtype not in FREED) or kind in HOST_SCALARS:
            hosts.append((label, value))
        elif kind not in _EITHER:
            arrays.append((label, value))
    if not arrays and not hosts:
        raise errors.no_arrays(name, list(arguments))
    return common_library(name, arrays or hosts)


def common_library(name: str, items: Any) -> tuple[Library, Any]:
    """Return the library of all the arrays, and the first of them."""
    first: Any = None
    for label, value in items:
        other = library_of(value, name, label)
        there = other.device(value)
        if first is None:
            first, library, here = (label, value), other, there
        elif other is library and (there == here or there is None or here is None):
            continue
        elif may_join(other, value, first[1]):
            first, library, here = (label, value), other, there
        elif not may_join(library, first[1], value):
            raise errors.mismatch(name, first, (label, value))
    return library, first[1]


def may_join(library: Library, collection: Any, x: Any) -> bool:
    """Say whether an array may stand beside a collection: it is like its chunks."""
    if library.chunk is None:
        return False
    return library.chunk(collection) == (type(x), device_of(x))


# Filled at the first array on a device. Two threads may do the same work: no harm.
_factories: dict[str, dict[int, Factory]] = {"cpu": {0: HOST}, "cuda": {}}
_by_word: dict[str, Factory] = {"cpu": HOST}  # of words that always mean the same one


def factory(
    device: object = None, chunks: Any = None, name: str = "", more: Any = ()
) -> Factory:
    """Return the factory of a device, or of collections there; None: the default one.

    The facade's function ``name`` that asks got ``more`` by place than it takes.
    """
    if more:
        raise errors.misplaced(own_function(name), more)
    if chunks is not None:
        return backend_of("dask").CollectionFactory(as_device(device), chunks)
    if device is None:
        device = in_context() or (from_environment and from_environment[0])
        device = device or default_device()
    elif type(device) is str and (meant := _by_word.get(device)) is not None:
        return meant
    chosen = device if type(device) is Device else as_device(device)
    if chosen is CPU:
        return HOST
    factories = _factories.setdefault(chosen.kind, {})
    if chosen.index not in factories:
        factories[chosen.index] = _make(chosen.require())
    if type(device) is str and (
        device == str(chosen) or backend(chosen.type).count() == 1
    ):
        _by_word[device] = factories[chosen.index]
    return factories[chosen.index]


def factory_of(x: Any, name: str) -> Factory:
    """Return the factory of an array's device, in its own library."""
    library = libraries.get(type(x)) or library_of(x, name)
    if library.device_type is None and not hasattr(x, "dask"):
        return library.factory(x)
    known = library.device_type == "cuda" and _factories["cuda"].get(x.data.device_id)
    return known or factory(device_of(x))


def stays(x: Any, device: object) -> bool:
    """Say whether ``device`` means the device, and the library, that ``x`` has."""
    if device is None:
        return True
    if type(x) is np.ndarray and x.dtype not in FREED:
        return factory(device) is HOST
    chosen, here = as_device(device), device_of(x)
    return chosen == here and chosen.library in (None, here.library)


def moved(x: Any, target: Device) -> Any:
    """Return an array's values on a device, as that device's library has arrays."""
    return importlib.import_module("xdev.transfer").to_device(x, target)


def _make(device: Device) -> Factory:
    if device.library is None and device.type == "cuda":
        return backend_of("cuda").CudaFactory(device.index)
    return backend_of("other").factory(device)


def backend_of(name: str) -> Any:
    """Return a backend's module of the facade, loaded at its first array."""
    return importlib.import_module(f"xdev.facade.{name}")


def _after_fork_in_child() -> None:
    # So that CUDA in a child meets the device's own refusal, not a crash.
    _by_word.clear()
    for kind in [kind for kind in _factories if kind.startswith("cuda")]:
        _factories[kind].clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
