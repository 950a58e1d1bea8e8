"""What the namespace can do, which library serves what; data types, how they meet."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, final, overload

import numpy as np

from xdev._freed import FREED
from xdev.device import Device, as_device, devices
from xdev.device.choice import coming_default, names_device
from xdev.device.registry import backend
from xdev.facade import dispatch
from xdev.facade.backends import (
    CLASSES,
    HOST_SCALARS,
    PYTHON_SCALARS,
    has_dtype,
    numpy_dtype_of,
    to_numpy_dtype,
)
from xdev.facade.dispatch import MANY
from xdev.ufunc.argument_errors import misplaced

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Never, TypeVar

    from numpy.typing import NDArray

    from xdev.facade.backends import Array, DType, Library

    Scalar = TypeVar("Scalar", bound=np.generic)

__all__ = [
    "__array_api_version__", "__array_namespace_info__", "astype", "can_cast", "finfo",
    "iinfo", "isdtype", "namespace", "result_type",
]  # fmt: skip

__array_api_version__ = "2025.12"


#: Devices whose arrays have NumPy's data types, defaults and number of dimensions.
LIKE_NUMPY = frozenset({"cpu", "cuda", "fake"})
MAX_DIMENSIONS = 64  # of NumPy's and CuPy's arrays


@final
class NamespaceInfo:
    """The standard's inspection functions; none of them starts a device."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """Return what the default device's library can do, by the standard's names."""
        where = coming_default()
        capabilities: dict[str, Any] = _info(where)[0].capabilities()
        if where.library is None:  # NumPy 2.3 lacks it
            capabilities.setdefault("max dimensions", MAX_DIMENSIONS)
        return capabilities

    def default_device(self) -> Any:
        """Return the device that creation functions use when none is named.

        Returns
        -------
        device
            As :meth:`devices` has it.
        """
        return coming_default().native

    def default_dtypes(self, *, device: object = None) -> dict[str, Any]:
        """Return the data types used where none is given, by kind.

        Parameters
        ----------
        device : device, optional
            The default device unless given.

        Raises
        ------
        ConfigurationError, DeviceUnavailableError
            There is no such device, or it cannot be used.
        """
        info, place = _info(_usable(device))
        return info.default_dtypes(device=place)

    def dtypes(
        self, *, device: object = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, Any]:
        """Return the data types of a device, by name.

        Parameters
        ----------
        device : device, optional
            The default device unless given.
        kind : str or tuple of str, optional
            As :func:`isdtype` has them; all unless given.

        Raises
        ------
        ConfigurationError, DeviceUnavailableError
            There is no such device, or it cannot be used.
        ValueError
            There is no such kind.
        """
        info, place = _info(_usable(device))
        return info.dtypes(device=place, kind=kind)

    def devices(self) -> tuple[Any, ...]:
        """Return the devices that can be used now.

        Returns
        -------
        tuple of devices
            As the arrays' own ``device`` names them, so that ``x.device`` is among
            them: CuPy's is equal to no other library's. :func:`xdev.devices` gives
            xdev's. A tuple, as the standard says since 2025.12.
        """
        return tuple(device.native for device in devices())


def _usable(device: object) -> Device:
    """Return the device that is meant, not started; it must be there."""
    chosen = coming_default() if device is None else Device(device)
    if chosen.library is not None or chosen.index >= backend(chosen.type).count():
        chosen.require()  # says why it cannot be used
    return chosen


def _info(device: Device) -> tuple[Any, Any]:
    """Return what a device's library says of it, and what that calls the device."""
    if device.library is None and device.type in LIKE_NUMPY:
        return np.__array_namespace_info__(), None  # which knows the host only
    owner = device.library and namespace(device)
    library: Any = owner or importlib.import_module(backend(device.type).libraries[0])
    return library.__array_namespace_info__(), device.native


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807 - the standard's name
    """Return the standard's inspection functions.

    Returns
    -------
    NamespaceInfo
        ``capabilities``, ``default_device``, ``default_dtypes``, ``dtypes``,
        ``devices``.

    Examples
    --------
    >>> import xdev
    >>> xdev.__array_namespace_info__().capabilities()["boolean indexing"]
    True
    """
    return NamespaceInfo()


def namespace(x_or_device: object, /) -> ModuleType:
    """Return the library that serves an array or a device, for what xdev lacks.

    Parameters
    ----------
    x_or_device : array, device or device name
        Whose library.

    Returns
    -------
    module
        ``numpy``, ``cupy``, ``array_api_strict``, or array_api_compat's for others.

    Raises
    ------
    TypeError
        It is neither an array nor a device.
    ConfigurationError, DeviceUnavailableError
        There is no such device, or it cannot be used.

    Examples
    --------
    >>> import numpy
    >>> import xdev
    >>> xdev.namespace("cpu") is numpy, xdev.namespace(numpy.ones(3)) is numpy
    (True, True)
    """
    if isinstance(x_or_device, str) or names_device(x_or_device):
        sample = dispatch.factory(x_or_device).empty(0, None)
        return dispatch.library_of(sample, "namespace").namespace
    return dispatch.library_of(x_or_device, "namespace", "x_or_device").namespace


ndarray = np.ndarray


@overload
def astype(
    x: NDArray[Any],
    dtype: type[Scalar] | np.dtype[Scalar],
    /,
    *,
    copy: bool = True,
    device: None = None,
) -> NDArray[Scalar]: ...


@overload
def astype(
    x: NDArray[Any], dtype: DType, /, *, copy: bool = True, device: None = None
) -> NDArray[Any]: ...


@overload
def astype(
    x: Array, dtype: DType, /, *, copy: bool = True, device: object = None
) -> Array: ...


def astype(
    x: Any, dtype: DType, /, *more: Never, copy: bool = True, device: object = None
) -> Any:
    """Convert an array to another data type.

    Parameters
    ----------
    x : array
        Any shape.
    dtype : dtype
        The new type; what does not fit it is the library's own affair.
    copy : bool
        False: give ``x`` itself where it has that type already.
    device : device, optional
        Where the result is to be; where ``x`` is unless given.

    Returns
    -------
    array
        Of ``x``'s shape.

    Raises
    ------
    TypeError
        ``dtype`` is not a data type of the library.

    Examples
    --------
    >>> import xdev
    >>> xdev.astype(xdev.asarray([1.7, -1.7]), xdev.int32)
    array([ 1, -1], dtype=int32)
    """
    if more:
        raise misplaced(astype, more)
    plain = type(x) is ndarray and x.dtype not in FREED
    if plain and type(dtype) in CLASSES and device is None:
        if x.size >= MANY and (copy or x.dtype != dtype):
            function = dispatch.dispatch_large("astype", x.size, ndarray.astype)
            return function(x, np.dtype(dtype))
        return x.astype(dtype, copy=copy)
    library = dispatch.libraries.get(type(x)) or dispatch.library_of(x, "astype")
    stay = device is None or dispatch.stays(x, device)
    result = library.bound("astype", x)(x, library.dtype(dtype), copy=copy and stay)
    return result if stay else dispatch.moved(result, as_device(device))


def can_cast(from_: Any, to: DType, /) -> bool:
    """Say whether a data type can be converted to another without loss.

    Parameters
    ----------
    from_ : dtype or array
        The type, or an array of it.
    to : dtype
        The other type.

    Returns
    -------
    bool
        By the standard's type promotion rules.

    Raises
    ------
    TypeError
        One of them is no data type.

    Examples
    --------
    >>> import xdev
    >>> xdev.can_cast(xdev.int8, xdev.int16), xdev.can_cast(xdev.int16, xdev.int8)
    (True, False)
    """
    dispatch.owner_of(from_, "can_cast", "from_")
    # PyTorch's own says yes to all of one kind, narrower ones too.
    return bool(np.can_cast(numpy_dtype_of(from_), to_numpy_dtype(to)))


def isdtype(dtype: DType, kind: Any) -> bool:
    """Say whether a data type is of a kind.

    Parameters
    ----------
    dtype : dtype
        Of xdev or of any library.
    kind : str, dtype or tuple of them
        ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
        ``"real floating"``, ``"complex floating"``, ``"numeric"``, or a data type.

    Returns
    -------
    bool
        Whether it is of any of them.

    Raises
    ------
    TypeError, ValueError
        ``dtype`` is no data type, or ``kind`` no kind.

    Examples
    --------
    >>> import xdev
    >>> xdev.isdtype(xdev.float32, "real floating")
    True
    """
    if type(kind) is str and type(dtype) in CLASSES:
        return _is_of_kind(dtype, kind)
    own, is_of = to_numpy_dtype, np.isdtype
    library = dispatch.owner_of(dtype, "isdtype", "dtype")
    if library is not None:  # it may have types that NumPy lacks, as torch.bfloat16
        own, is_of = library.dtype, library.bound("isdtype", None)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    named = tuple(each if isinstance(each, str) else own(each) for each in kinds)
    return bool(is_of(own(dtype), named))


@cache
def _is_of_kind(dtype: Any, kind: str) -> bool:
    return bool(np.isdtype(np.dtype(dtype), kind))


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Return the data type that arguments promote to when they meet.

    Parameters
    ----------
    *arrays_and_dtypes : array, number or dtype
        At least one is an array or data type. Numbers adapt to the others.

    Returns
    -------
    dtype
        Of the arrays' library; where there are none, of the data types'.

    Raises
    ------
    TypeError
        There is no common type.

    Examples
    --------
    >>> import xdev
    >>> xdev.result_type(xdev.int8, xdev.asarray([1.0], dtype=xdev.float32), 3)
    dtype('float32')
    """
    things = arrays_and_dtypes
    function = dispatch.dispatch_alike("result_type", things)
    if function is not None:
        return function(*things)
    # Of the libraries but NumPy it is the first one's, among the arrays if there are.
    owners = [
        dispatch.owner_of(thing, "result_type", f"argument {index}")
        for index, thing in enumerate(things)
    ]
    arrays = [has_dtype(x) and type(x) not in HOST_SCALARS for x in things]
    asked = arrays if any(arrays) else [True] * len(things)  # data types follow arrays
    for library, like, counts in zip(owners, things, asked, strict=True):
        if counts and library is not None:
            function = library.bound("result_type", like)
            return function(*(_in_terms_of(library, each) for each in things))
    numpys = (x if type(x) in PYTHON_SCALARS else numpy_dtype_of(x) for x in things)
    return np.result_type(*numpys)


def _in_terms_of(library: Library, thing: Any) -> Any:
    """Return an array, number or data type as the library's function takes it."""
    if not has_dtype(thing):
        return thing if type(thing) in PYTHON_SCALARS else library.dtype(thing)
    at_home = dispatch.library_of(thing, "result_type") is library
    return thing if at_home else library.dtype(thing.dtype)


class FloatInfo(NamedTuple):
    """Limits of a floating-point data type, as Python numbers: of ``finfo``."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


def finfo(type: Any, /) -> Any:
    """Limits of a floating-point data type.

    Parameters
    ----------
    type : dtype or array
        Floating-point; of a complex type, its parts are described.

    Returns
    -------
    object
        ``bits``, ``eps``, ``max``, ``min``, ``smallest_normal``, ``dtype``.

    Raises
    ------
    ValueError, TypeError
        It is not floating-point, or no data type.

    Examples
    --------
    >>> import xdev
    >>> xdev.finfo(xdev.float32).bits
    32
    """
    return _limits("finfo", type, _float_info)


def iinfo(type: Any, /) -> Any:
    """Limits of an integer data type.

    Parameters
    ----------
    type : dtype or array
        Integer.

    Returns
    -------
    object
        ``bits``, ``max``, ``min``, ``dtype``.

    Raises
    ------
    ValueError, TypeError
        It is not an integer type, or no data type.

    Examples
    --------
    >>> import xdev
    >>> xdev.iinfo(xdev.int8).max
    127
    """
    return _limits("iinfo", type, np.iinfo)


def _limits(name: str, type: Any, limits_of: Callable[[Any], Any]) -> Any:
    """Return limits as NumPy has them, or another library for its own data types."""
    library = dispatch.owner_of(type, name, "type")
    if library is None:
        return limits_of(numpy_dtype_of(type))
    function = library.bound(name, type)
    return function(type if has_dtype(type) else library.dtype(type))


@cache
def _float_info(dtype: Any) -> FloatInfo:
    finfo: Any = np.finfo(dtype)
    names = ("eps", "max", "min", "smallest_normal")
    limits = {name: float(getattr(finfo, name)) for name in names}
    return FloatInfo(bits=int(finfo.bits), dtype=finfo.dtype, **limits)
