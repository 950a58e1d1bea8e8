"""Which library an array belongs to: by its exact type, asked once a type."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev._freed import FREED, Remains, use_after_free
from xdev.facade.cpu import NUMPY
from xdev.facade.dtype_names import NAMES, is_numpys, library_of_dtype
from xdev.facade.functions import Functions
from xdev.ufunc.complaints import no_array

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
