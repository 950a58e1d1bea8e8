"""From arguments to the function that serves them: one library, one device a call."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev._freed import FREED, Remains, is_freed, use_after_free
from xdev.device import device_of
from xdev.facade.cpu import NUMPY, Functions
from xdev.facade.dtype_names import NAMES, is_numpys, library_of_dtype
from xdev.ufunc.complaints import (
    mismatch,
    no_array,
    no_arrays,
    no_sequence,
    too_large,
    unfit,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from xdev.facade.protocols import Library

#: Types of numbers that are on no device.
PYTHON_SCALARS = frozenset({bool, int, float, complex})


#: NumPy's scalars: on the host, and welcome beside arrays of every device.
HOST_SCALARS = frozenset(
    scalar
    for scalar in np.sctypeDict.values()
    if issubclass(scalar, np.number | np.bool)
)


#: What may stand beside a NumPy array.
HOST = PYTHON_SCALARS | HOST_SCALARS | {np.ndarray}


#: The library of each type of arrays seen so far but NumPy's, and of its scalars.
# Filled at the first array of a type. Two threads may do the same work; the last wins.
known: dict[type, Library] = dict.fromkeys(HOST_SCALARS, NUMPY)


def _looking(name: str) -> Callable[..., Any]:
    """Return a function that looks in each call what serves its first argument."""

    def look(x: Any, /, *args: Any, **options: Any) -> Any:
        return library_of(x, name).bound(name, x)(x, *args, **options)

    return look


@final
class _Direct(dict[type, Functions]):
    """Functions by name, by the type of arrays that may be given to them with no ado.

    Those are the types whose arrays are all on one device, and whose data types are
    NumPy's. Of any other type (and of what is no array) come functions that look at
    their first argument, so that ``direct[type(x)][name](x)`` serves all that one array
    is given to.
    """

    __slots__ = ()
    _any = Functions(_looking)

    def __missing__(self, kind: type) -> Functions:
        return self._any


direct: dict[type, Functions] = _Direct(dict.fromkeys(HOST_SCALARS, NUMPY.functions))


_by_name: dict[str, Library] = {"numpy": NUMPY}


def library_of(x: Any, name: str, label: str = "x") -> Library:
    """Return the library of an array.

    Raises
    ------
    TypeError
        ``x`` is no array of a library that array_api_compat knows; the text names the
        function and the argument.
    UseAfterFreeError
        ``x`` was freed.
    """
    kind = type(x)
    if kind is np.ndarray:
        return _numpys(x, name, label)
    found = known.get(kind)
    if found is None:
        if isinstance(x, np.ndarray):  # of a derived class
            return _numpys(x, name, label)
        found = known[kind] = _discover(x, name, label)
        if not found.several and found.numpy_dtypes:
            direct[kind] = found.functions
    return found


def _numpys(x: Any, name: str, label: str) -> Library:
    """Return NumPy's library, unless its array was freed."""
    if x.dtype in FREED:
        raise use_after_free(x, f"xdev.{name}: {label}")
    return NUMPY


def _discover(x: Any, name: str, label: str) -> Library:
    if isinstance(x, Remains):
        raise use_after_free(x, f"xdev.{name}: {label}")
    compat = importlib.import_module("array_api_compat")
    # Not of classes: the class numpy.float64 has __array_namespace__ as well.
    if isinstance(x, type | list | tuple | str | np.generic) or not (
        compat.is_array_api_obj(x)
    ):
        raise no_array(name, label, x)
    return library_named(compat.array_namespace(x))


def library_named(namespace: ModuleType) -> Library:
    """Return the one library object of a namespace."""
    name = namespace.__name__
    if name not in _by_name:
        if name in ("cupy", "array_api_compat.cupy"):
            _by_name[name] = importlib.import_module("xdev.facade.cuda").library()
        elif name == "xdev":  # what fake arrays say
            _by_name[name] = importlib.import_module("xdev.facade.fake").library()
        elif name == "array_api_compat.numpy":  # not jax.numpy
            _by_name[name] = NUMPY
        elif name == "array_api_compat.dask.array":
            dask = importlib.import_module("xdev.facade.dask")
            _by_name[name] = dask.DaskLibrary(namespace)
        else:
            other = importlib.import_module("xdev.facade.other")
            _by_name[name] = other.StandardLibrary(namespace)
    return _by_name[name]


def owner_of(thing: Any, name: str, label: str) -> Library | None:
    """Return the library of an array or data type; None where NumPy's rules hold.

    Raises
    ------
    TypeError
        It is neither; the text names the function and the argument.
    """
    if is_numpys(thing) or type(thing) in PYTHON_SCALARS:
        return None
    if hasattr(thing, "dtype") or library_of_dtype(thing) is None:
        library = library_of(thing, name, label)
    else:
        root: Any = library_of_dtype(thing)
        if not hasattr(root, "empty"):
            listed = ", ".join(f"xdev.{dtype}" for dtype in NAMES)
            message = (
                f"xdev.{name}: {label} is {thing!r}, neither an array nor a data type: "
                f"use {listed}"
            )
            raise TypeError(message)
        compat = importlib.import_module("array_api_compat")
        library = library_named(compat.array_namespace(root.empty(0)))
    return None if library.numpy_dtypes else library


ndarray = np.ndarray


_EITHER = PYTHON_SCALARS | HOST_SCALARS | {type(None)}


OPTIONAL = ("min", "max", "sorter")  # arguments that may be None


def of_others(name: str, args: tuple[Any, ...]) -> Callable[..., Any] | None:
    """Return the function ``name`` of a library that is not NumPy or CuPy.

    Of arrays of one type on one device, and Python's numbers; None for anything else.
    """
    arrays = [x for x in args if type(x) not in PYTHON_SCALARS]
    if not arrays:
        return None
    like = arrays[0]
    library = known.get(type(like))
    if library is None or library.device_type is not None:
        return None
    for x in arrays[1:]:
        if type(x) is not type(like) or library.device(x) != library.device(like):
            return None
    return library.bound(name, like)


def refuse(name: str, **arrays: Any) -> None:
    """Say what is wrong in a call that raised, where NumPy says it in other words.

    Raises
    ------
    UseAfterFreeError
        An array was freed.
    TypeError
        One is of a data type that the function does not take.
    """
    for label, x in arrays.items():
        if is_freed(x):
            raise use_after_free(x, f"xdev.{name}: {label}")
    error = unfit(name, {key: x for key, x in arrays.items() if key != "out"})
    if error is not None:
        raise error from None


def of_all(name: str, **arrays: Any) -> Callable[..., Any]:
    """Return the function ``name`` for arrays that must be of one library and device.

    Raises
    ------
    DeviceMismatchError
        They are not; the text names two arguments and how to move one.
    """
    for x in arrays.values():
        if type(x) is not ndarray or x.dtype in FREED:
            library, like = _common(name, arrays.items())
            return library.bound(name, like)
    return NUMPY.bound(name, None)


def of_each(name: str, label: str, arrays: Any) -> Callable[..., Any]:
    """Return the function ``name`` for a sequence of arrays, as :func:`of_all`."""
    if getattr(arrays, "ndim", 2) < 2 or not hasattr(arrays, "__iter__"):  # noqa: PLR2004
        raise no_sequence(name, label, arrays)
    items = [(f"{label}[{index}]", x) for index, x in enumerate(arrays)]
    if not items:
        message = f"xdev.{name}: {label} is empty: give at least one array"
        raise ValueError(message)
    library, like = _common(name, items)
    return library.bound(name, like)


def mixed(name: str, **arguments: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return the function and its arguments, numbers made fit to meet the arrays.

    Raises
    ------
    DeviceMismatchError, TypeError
        The arrays are of two libraries or devices; or there are only numbers.
    """
    library, like = _leader(name, arguments)
    values = [library.operand(value, like) for value in arguments.values()]
    return library.bound(name, like), values


def placed(
    name: str, out: Any, arguments: dict[str, Any], masks: dict[str, Any]
) -> tuple[Library, Any, list[Any], dict[str, Any]]:
    """Find where an elementwise function computes: arrays of one device, and numbers.

    Parameters
    ----------
    name : str
        The function's, for errors.
    out : array or None
        Where it writes.
    arguments : dict
        The inputs, by their names.
    masks : dict
        What else may be an array.

    Returns
    -------
    library, array, list, dict
        The arrays' library; one of them; the inputs, and the masks, fit to meet them.

    Raises
    ------
    DeviceMismatchError, TypeError
        The arrays are of two libraries or devices; or there are only numbers.
    """
    written = {} if out is None else {"out": out}
    if out is not None:
        if type(out) in _EITHER:
            raise no_array(name, "out", out)
        if PYTHON_SCALARS.issuperset(map(type, arguments.values())):
            arguments = {k: _scalar(name, k, x) for k, x in arguments.items()}
    library, like = _leader(name, {**arguments, **masks, **written})
    values = [library.operand(value, like) for value in arguments.values()]
    return (
        library,
        like,
        values,
        {k: library.operand(x, like) for k, x in masks.items()},
    )


def apply(name: str, out: Any, **arguments: Any) -> Any:
    """Run a function that is no ufunc on arrays of one device and numbers."""
    if type(out) is tuple and len(out) == 1:
        (out,) = out  # as NumPy's ufuncs take it
    library, like, values, _ = placed(name, out, arguments, {})
    function = library.bound(name, like)
    if out is None:
        return function(*values)
    return library.write(name, function, values, out)


def _scalar(name: str, label: str, x: Any) -> Any:
    """Return the NumPy scalar of a Python number, which no array is beside."""
    scalar: Any = np.asarray(x)[()]
    if type(scalar) in HOST_SCALARS:
        return scalar
    raise too_large(name, label, x)


def _leader(name: str, arguments: dict[str, Any]) -> tuple[Library, Any]:
    """Return the library and array that the numbers among the arguments follow."""
    arrays, hosts = [], []
    for label, value in arguments.items():
        kind = type(value)
        if value is None and label not in OPTIONAL:
            raise no_array(name, label, value)
        # A 0-d host array is a number that goes anywhere, unless it is written to.
        flat = kind is ndarray and not value.ndim and label != "out"
        if (flat and value.dtype not in FREED) or kind in HOST_SCALARS:
            hosts.append((label, value))
        elif kind not in _EITHER:
            arrays.append((label, value))
    if not arrays and not hosts:
        raise no_arrays(name, list(arguments))
    return _common(name, arrays or hosts)


def _common(name: str, items: Any) -> tuple[Library, Any]:
    """Return the library of all the arrays, and the first of them."""
    first: Any = None
    for label, value in items:
        library = library_of(value, name, label)
        here = library.device(value)
        if first is None:
            first, common, where = (label, value), library, here
        elif library is common and (here == where or here is None or where is None):
            continue
        elif may_join(library, value, first[1]):
            first, common, where = (label, value), library, here
        elif not may_join(common, first[1], value):
            raise mismatch(name, first, (label, value))
    return common, first[1]


def may_join(library: Library, collection: Any, x: Any) -> bool:
    """Say whether an array may stand beside a collection: it is like its chunks."""
    if library.chunk is None:
        return False
    return library.chunk(collection) == (type(x), device_of(x))
