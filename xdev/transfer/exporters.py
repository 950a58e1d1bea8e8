"""Arrays of any library, as what a copy needs to know of them."""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import Any, Literal, final

import numpy as np

from xdev import _optional
from xdev.device import device_of, registry
from xdev.device.choice import cuda_interface
from xdev.device.natives import library_of_type
from xdev.errors import not_array
from xdev.memory.arrays import host_array

PROTOCOLS = ("__cuda_array_interface__", "__dlpack__", "__array_interface__")
READABLE = ("__array__", "__array_interface__", "__buffer__")  # by numpy.asarray


def as_array(x: Any) -> Any:
    """Give an exporter the attributes of an array; arrays come back themselves.

    Parameters
    ----------
    x : object
        An array, or an exporter of ``__cuda_array_interface__``, DLPack,
        ``__array_interface__`` or the buffer protocol.

    Raises
    ------
    TypeError
        It is none of them.

    Examples
    --------
    >>> as_array(memoryview(b"ab"))
    array([97, 98], dtype=uint8)
    """
    # A class has an array's attributes, not their values; a sparse matrix is several.
    if isinstance(x, type) or hasattr(x, "tocsr"):
        raise _no_array(x)
    located = hasattr(x, "device") or not hasattr(x, "__array_interface__")
    if located and hasattr(x, "shape") and hasattr(x, "dtype"):
        is_array = isinstance(x.dtype, np.dtype) or library_of_type(type(x)) is not None
        # Else a protocol tells what the dtype is, as with Warp's.
        if is_array or not any(hasattr(x, name) for name in PROTOCOLS):
            return x
    if hasattr(x, "__cuda_array_interface__"):
        return CudaExport(x)
    if hasattr(x, "__array_interface__"):  # says, as DLPack 1 only, what can be written
        return np.asarray(x)
    if hasattr(x, "__dlpack__"):
        where = device_of(x)
        if where.type != "cuda":
            return np.from_dlpack(x)
        where.require()
        with registry.backend("cuda").use(where.index):  # the exporter orders streams
            return _optional.cupy().from_dlpack(x)
    try:
        return np.asarray(memoryview(x))
    except TypeError:
        pass
    raise _no_array(x)


def _no_array(x: Any) -> TypeError:
    way = (
        "make one with xdev.asarray(x, device=...), or move the arrays in it with "
        "xdev.adapt(device, x)"
    )
    return TypeError(f"x is {not_array(x, way)}")


@final
class CudaExport:
    """CUDA memory behind ``__cuda_array_interface__``, with the attributes of an array.

    Parameters
    ----------
    owner : object
        Who exports it; it lives as long as this.
    ordered : bool
        Whether to leave the exporter's stream out: who orders the work by events does
        not want a consumer that makes the host wait for it.
    """

    # Slots: who asks the class sees the attribute, too.
    __slots__ = ("__cuda_array_interface__", "dtype", "owner", "shape")

    def __init__(self, owner: Any, *, ordered: bool = False) -> None:
        checked = cuda_interface(owner)
        if checked is None:
            raise _no_array(owner)
        interface = dict(checked)
        if ordered:
            interface["stream"] = None
        self.owner, self.__cuda_array_interface__ = owner, interface
        self.shape = tuple(interface["shape"])
        self.dtype = np.dtype(interface["typestr"])


def dtype_of(x: Any) -> np.dtype[Any]:
    """Return NumPy's name for an array's dtype, such as ``array_api_strict.int8``.

    Raises
    ------
    TypeError
        NumPy has no such dtype.

    Examples
    --------
    >>> dtype_of(np.ones(2, ">f4"))
    dtype('>f4')
    """
    if isinstance(x.dtype, np.dtype):
        return x.dtype
    return numpys(x.dtype, f"convert the {type(x).__name__} first, for one to float32")


def numpys(dtype: Any, way: str) -> np.dtype[Any]:
    """Return NumPy's dtype of the same name as any library's.

    Parameters
    ----------
    dtype : dtype
        NumPy's, or another library's.
    way : str
        What to do where NumPy has none: the end of the error's text.

    Raises
    ------
    TypeError
        NumPy has no such dtype.

    Examples
    --------
    >>> numpys("f4", "use float32")
    dtype('float32')
    """
    with suppress(TypeError):
        same: np.dtype[Any] = np.dtype(dtype)
        return same
    name = str(dtype).rpartition(".")[2]
    if name == "bfloat16":
        with suppress(ImportError):
            importlib.import_module("ml_dtypes")  # gives NumPy the name
    try:
        return np.dtype(name)
    except TypeError as error:
        raise TypeError(f"NumPy and CuPy have no dtype {name!r}: {way}") from error


def computed(x: Any) -> Any:
    """Return an array whose memory holds its values: Dask's are computed first.

    Raises
    ------
    ValueError
        It is a PyTorch tensor that is part of a gradient's computation, or whose values
        are to be conjugated or negated yet.
    """
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "dask") and hasattr(x, "compute"):
        return x.compute()
    if not hasattr(x, "resolve_conj"):
        return x
    for said, what, way in (
        (x.requires_grad, "requires grad", "x.detach()"),
        (x.is_conj(), "is still to be conjugated", "x.resolve_conj()"),
        (x.is_neg(), "is still to be negated", "x.resolve_neg()"),
    ):
        if said:
            message = f"a {type(x).__name__} that {what} cannot be moved: pass {way}"
            raise ValueError(message)
    return x


def refuse_mask(x: Any) -> None:
    """Refuse an array whose mask a copy does not have.

    Raises
    ------
    TypeError
        It is one of ``numpy.ma``.
    """
    kind = type(x)
    if kind is not np.ndarray and issubclass(kind, np.ndarray) and hasattr(x, "mask"):
        raise TypeError(
            f"the mask of a {kind.__name__} would be lost: pass x.filled(value), or "
            "x.data and x.mask each"
        )


def host_values(x: Any) -> np.ndarray[Any, Any]:
    """Return what a host array of any library holds, to be read.

    NumPy makes an array of objects of what exports nothing but DLPack.
    """
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "resolve_conj") and dtype_of(x).kind == "V":  # PyTorch's bfloat16
        return np.asarray(x.view(_optional.torch().int16)).view(dtype_of(x))
    readable = any(hasattr(x, name) for name in READABLE)
    return np.asarray(x) if readable else np.from_dlpack(x)


def shared(x: Any) -> Any:
    """Return a host array's memory as a NumPy array, or raise what DLPack does."""
    if isinstance(x, np.ndarray):
        return x
    # DLPack before its version 1 makes all read-only, NumPy's protocol says what is.
    by_numpy = hasattr(x, "__array_interface__") or not hasattr(x, "__dlpack__")
    return np.asarray(x) if by_numpy else np.from_dlpack(x)


def order_of(x: Any) -> Literal["C", "F"]:
    """Return how a copy of an array is laid out: as the array, or in C order."""
    return "F" if x.flags.fnc else "C"


def copy_on_host(values: np.ndarray[Any, Any], out: Any) -> Any:
    """Copy a NumPy array to one of any library; Fortran's order stays so."""
    if out is None:
        out = host_array(values.shape, values.dtype, order_of(values))
    if hasattr(out, "dask"):  # it has no memory, but may be told other values
        out[...] = values.copy()
    else:
        np.copyto(shared(out), values)
    return out
