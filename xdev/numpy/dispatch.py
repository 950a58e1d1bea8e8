"""Which library a call of one of NumPy's functions goes to: that of its arrays.

A call without arrays is NumPy's, and arrays that it returns are made on the default
device: a NumPy program's ``np.array([1, 2])`` is where its other arrays are.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._freed import refuse
from xdev.device import default_device
from xdev.device.choice import CPU
from xdev.device.fake import METHODS_IN_CUPY, is_in_cupy
from xdev.device.fake_arrays import positions, strict
from xdev.facade import dispatch
from xdev.facade.backends import HOST_SCALARS, PYTHON_SCALARS
from xdev.facade.cpu import NUMPY
from xdev.facade.dispatch import common_library, factory, libraries
from xdev.ufunc import Ufunc
from xdev.ufunc.argument_errors import mismatch, where_is

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xdev.facade.backends import Library

ndarray = np.ndarray
NOT_ARRAYS = PYTHON_SCALARS | HOST_SCALARS | {str, bytes, type, type(None), np.dtype}
PLAIN = NOT_ARRAYS | {ndarray}  # with these alone a call is NumPy's
#: The kinds of data types that every device has; arrays of others stay on the host.
DEVICE_KINDS = frozenset("?biufc")
#: Functions of ranks: Dask's want an axis, and ``percentile`` of chunks is another one.
RANKS = frozenset((
    *("median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"),
))  # fmt: skip


def is_array(x: object) -> bool:
    """Say whether an object is an array of NumPy's or of another library."""
    if type(x) in NOT_ARRAYS or isinstance(x, type | np.generic):
        return False
    return dispatch.is_array(x)


def arrays_in(values: Sequence[Any], path: tuple[int, ...] = ()) -> Iterator[Any]:
    """Yield each array among nested sequences and slices, as a pair with its path."""
    if NOT_ARRAYS.issuperset(map(type, values)):  # long lists of numbers, in no time
        return
    for index, value in enumerate(values):
        kind = type(value)
        if kind in NOT_ARRAYS:
            continue
        if kind is list or kind is tuple:
            yield from arrays_in(value, (*path, index))
        elif kind is slice:
            parts = value.start, value.stop, value.step
            yield from arrays_in(parts, (*path, index))
        elif is_array(value):
            yield (*path, index), value


def call(name: str, function: Callable[..., Any], args: Any, options: Any) -> Any:
    """Call NumPy's function, or what another library has under its name."""
    library, like = library_of_call(name, function, args, options)
    if library is not NUMPY:
        args = [library.operand(x, like) if type(x) is ndarray else x for x in args]
        return _bound(library, name, like)(*args, **options)
    try:
        result = function(*args, **options)
    except TypeError:  # NumPy's of a freed array, with which it computes nothing
        _refuse_freed(name, args, options)
        raise
    if type(result) is ndarray and result.dtype.kind == "V":  # it may be moved about
        _refuse_freed(name, args, options)
    return on_default_device(result) if like is None else result


def _refuse_freed(name: str, args: Any, options: Any) -> None:
    for _, x in arrays_in((*args, *options.values())):
        refuse(f"xdev.numpy.{name}", x)


def library_of_call(
    name: str, function: Callable[..., Any], args: Any, options: Any
) -> tuple[Library, Any]:
    """Return the library of all arrays among the arguments, and an array of it.

    Without arrays they are NumPy and None; of NumPy's arrays the class may stand for
    one. A 0-d array of NumPy's is a number, which goes anywhere.
    """
    kinds = {*map(type, args), *map(type, options.values())}
    if kinds <= PLAIN:
        return NUMPY, ndarray if ndarray in kinds else None
    pairs: list[Any] = [
        (_Label(function, args, options, path), x)
        for path, x in arrays_in((*args, *options.values()))
    ]
    arrays = [pair for pair in pairs if type(pair[1]) is not ndarray or pair[1].ndim]
    if not pairs:
        return NUMPY, None
    library, like = common_library(f"numpy.{name}", arrays or pairs)
    if library.chunk is not None:
        plain = [pair for pair in arrays if not hasattr(pair[1], "dask")]
        if plain and any(str(label).startswith("out") for label, _ in arrays):
            collection = next(pair for pair in arrays if pair[1] is like)
            raise mismatch(f"numpy.{name}", plain[0], collection)  # never written
    return library, like


class _Label:
    """What an argument, or a part of it, is called: found out where a text says it."""

    def __init__(self, *place: Any) -> None:
        self._place = place

    def __str__(self) -> str:
        function, args, options, path = self._place
        labels = [*positions(function)[: len(args)]]
        labels += [f"args[{k}]" for k in range(len(labels), len(args))]
        labels += options
        return "".join((labels[path[0]], *(f"[{index}]" for index in path[1:])))


def on_default_device(result: Any) -> Any:
    """Return a result with its arrays of the standard's types on the default device."""
    kind = type(result)
    if kind is ndarray:
        device = default_device()
        if device is CPU or result.dtype.kind not in DEVICE_KINDS:
            return result
        return factory(device).asarray(result, None, None)
    if kind is tuple or kind is list:
        return kind(map(on_default_device, result))
    if isinstance(result, tuple) and hasattr(kind, "_make"):  # linalg's named results
        return kind._make(map(on_default_device, result))
    if kind is np.lib.npyio.NpzFile:
        result.__class__ = _Archive
    return result


class _Archive(np.lib.npyio.NpzFile):
    """An open ``.npz`` file, whose arrays are made on the default device when read."""

    def __getitem__(self, key: str) -> Any:
        return on_default_device(super().__getitem__(key))


def _bound(library: Library, name: str, like: Any) -> Callable[..., Any]:
    """Return a library's function by NumPy's name, for where an array is."""
    key = f"numpy.{name}"  # beside those that the facade calls
    if key not in library.functions:
        library.keep(key, _function(library, name))
    return library.bound(key, like)


def _function(library: Library, name: str) -> Callable[..., Any]:
    if library.device_type == "fake" and is_in_cupy(name):
        return strict(f"xdev.numpy.{name}", operator.attrgetter(name)(np))
    if library.device_type == "fake":
        return _standard(library, name)
    if library.chunk is not None:
        return _of_dask(library, name)
    if library.device_type != "cuda":
        return _of_namespace(library, name)
    method = name.rpartition(".")[2] in METHODS_IN_CUPY
    find = _standard if method and not is_in_cupy(name) else _of_namespace
    cuda = importlib.import_module("xdev.facade.cuda")
    function: Callable[..., Any] = cuda.with_room(name, find(library, name))
    return function


def _of_namespace(library: Library, name: str) -> Callable[..., Any]:
    """Return the function of this name in a library's namespace, or xdev's own."""
    try:
        function: Callable[..., Any] = operator.attrgetter(name)(library.namespace)
    except AttributeError:
        function = _standard(library, name)
    return function


def _of_dask(library: Library, name: str) -> Callable[..., Any]:
    """Return Dask's function of collections, and of plain arrays beside them."""
    if name in RANKS:
        return _of_ranks(library, name)
    own = _of_namespace(library, name)
    lift = importlib.import_module("xdev.ufunc.dask").lift

    def of_collections(*args: Any, **options: Any) -> Any:
        lifted = {key: x if key == "out" else lift(x) for key, x in options.items()}
        return own(*map(lift, args), **lifted)

    return of_collections


def _of_ranks(library: Library, name: str) -> Callable[..., Any]:
    """Return Dask's exact function, which joins the chunks along axes: all of them."""
    own = _of_namespace(library, name.replace("percentile", "quantile"))
    signature = inspect.signature(getattr(np, name))

    def of_whole(*args: Any, **options: Any) -> Any:
        arguments = signature.bind(*args, **options).arguments
        x = arguments["a"]
        if arguments.get("axis") is None:
            arguments["axis"] = tuple(range(x.ndim))
        if "percentile" in name:  # as NumPy divides
            hundred = x.dtype.type(100) if x.dtype.kind == "f" else 100
            arguments["q"] = np.true_divide(arguments["q"], hundred)
        return own(**arguments)

    return of_whole


def _standard(library: Library, name: str) -> Callable[..., Any]:
    """Return xdev's own function of a name, where the library has none."""
    from xdev import facade, fft, linalg

    room, _, last = name.rpartition(".")
    rooms = {"": facade, "fft": fft, "linalg": linalg}
    ufuncs = [x for x in vars(facade).values() if type(x) is Ufunc]
    numpys: dict[Any, Any] = {vars(f.definition)["numpy"]: f for f in ufuncs}
    owner = rooms.get(room) or numpys.get(getattr(np, room, None))
    own: Callable[..., Any] | None = getattr(owner, last, None)
    if own is None:
        theirs = library.namespace.__name__.removeprefix("array_api_compat.")
        called = "cupy" if library.device_type == "fake" else theirs
        raise TypeError(
            f"xdev.numpy.{name}: {called} has no {name!r}, so it takes arrays on the "
            f"CPU alone: copy them with xdev.to_numpy(x), and the result back with "
            f"xdev.to_device(result, xdev.device_of(x))"
        )
    return own


def dispatching(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy's that serves the arrays of every library."""

    @functools.wraps(function)
    def dispatched(*args: Any, **options: Any) -> Any:
        return call(name, function, args, options)

    # Where pickle finds it; in `xdev.numpy` itself doctest would run NumPy's examples.
    dispatched.__module__, dispatched.__qualname__ = "xdev.numpy.names", name
    return dispatched


class ufunc:  # noqa: N801 - NumPy's name of it
    """A ufunc of NumPy's, on the arrays of every library that has it.

    Examples
    --------
    >>> import xdev.numpy as np
    >>> np.add.reduce(np.arange(4.0)), np.multiply.outer([1, 2], [3, 4]).shape
    (np.float64(6.0), (2, 2))
    """

    def __init__(self, function: np.ufunc) -> None:
        self.__wrapped__ = function
        self.__name__ = self.__qualname__ = function.__name__
        self.__doc__ = function.__doc__
        for method in ("reduce", "accumulate", "reduceat", "outer", "at"):
            name = f"{self.__name__}.{method}"
            setattr(self, method, dispatching(name, getattr(function, method)))

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Compute, where the arrays are."""
        return call(self.__name__, self.__wrapped__, args, options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __dir__(self) -> list[str]:
        return dir(self.__wrapped__)

    def __repr__(self) -> str:
        return f"<xdev.numpy ufunc {self.__name__!r}>"

    def __reduce__(self) -> str:
        return self.__name__  # of this module, as `__module__` says


ufunc.__module__ = "xdev.numpy.names"


class AnyArray(type):
    """The type of ``ndarray``: arrays of every library are instances."""

    def __instancecheck__(cls, x: object) -> bool:
        return is_array(x)

    def __subclasscheck__(cls, kind: type) -> bool:
        if issubclass(kind, np.generic):  # has __array_namespace__, too
            return False
        arrays = issubclass(kind, ndarray) or kind in libraries
        return cls is kind or arrays or hasattr(kind, "__array_namespace__")


def where(like: Any, device: object) -> object:
    """Return the device of a creation function: ``device=``, or that of ``like=``."""
    return where_is(like) if device is None and like is not None else device
