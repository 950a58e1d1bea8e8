"""Arguments in host memory that are not plain NumPy arrays on their way to the CPU."""

from __future__ import annotations

import warnings
from array import array as buffer
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.device import device_of
from xdev.errors import DeviceMismatchError, not_array, type_name, users_level
from xdev.ufunc import fake
from xdev.ufunc.complaints import device_name
from xdev.ufunc.inputs import is_dask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.ufunc.ufuncs import Ufunc

ARRAYS = ("__array__", "__array_interface__", "__array_struct__")
#: Python's own that are arrays to NumPy: sequences and buffers.
SEQUENCES = (list, tuple, range, bytearray, memoryview, buffer)
PLAIN = (np.ndarray, np.generic, bool, int, float, complex)


def operands(
    args: Sequence[Any], outs: Sequence[Any] | None, name: str, labels: Sequence[str]
) -> list[Any]:
    """Return what NumPy can compute with.

    Parameters
    ----------
    args, outs : sequence
        The inputs, and the outputs that are given.
    name, labels
        The function's name and its inputs', for errors.

    Raises
    ------
    DeviceMismatchError
        The arrays are of two devices.
    TypeError
        One is an array of a library that computes elsewhere, or no array at all.
    """
    arrays = [x for x in (*args, *(outs or ())) if _is_array(x)]
    if not all(isinstance(x, PLAIN) for x in arrays):
        first, *others = ((x, device_of(x)) for x in arrays)
        for x, device in others:
            if device != first[1]:
                y, there = first
                message = (
                    f"{name}() got arrays of two devices: {type_name(y)} of shape "
                    f"{y.shape} is on {device_name(there, y)}, {type_name(x)} of shape "
                    f"{x.shape} is on {device_name(device, x)}; move one with "
                    f"xdev.to_device(x, '{'cpu' if there.library else there}')"
                )
                raise DeviceMismatchError(message)
    return [
        x if isinstance(x, PLAIN) else _operand(x, name, label)
        for x, label in zip(args, labels, strict=True)
    ]


def _is_array(x: Any) -> bool:
    kind = type(x)
    return isinstance(x, np.ndarray) or hasattr(kind, "__array_namespace__")


def _operand(x: Any, name: str, label: str, device: str = "cpu") -> Any:
    """Return what NumPy makes of an input; ``device`` is where the others are."""
    kind, what = type(x), f"{label} is {type_name(x)}"
    if is_dask(x):
        message = (
            f"{name}() takes dask.array's collections alone of Dask's, and {what}: "
            f"map it over the parts, {label}.map_partitions(f) or {label}.map(f)"
        )
        raise TypeError(message)
    if hasattr(kind, "__dlpack__") or hasattr(kind, "__array_namespace__"):
        message = (
            f"{name}() takes NumPy and CUDA arrays, and {what}: pass xdev.to_device("
            f"{label}, '{device}'), which copies only where it must"
        )
        raise TypeError(message)
    if any(hasattr(kind, name) for name in ARRAYS) or isinstance(x, SEQUENCES):
        return np.asarray(x)
    message = f"{name}: {label} is {not_array(x, 'pass an array or a number', label)}"
    raise TypeError(message)


def on_fake(
    loops: Callable[..., Any],
    name: str,
    args: Sequence[Any],
    outs: Sequence[Any] | None,
    keywords: dict[str, Any],
    labels: Sequence[str],
) -> Any:
    """Return what :func:`fake.call` does, of inputs of which some are fake arrays.

    Raises
    ------
    TypeError
        Another is an array of a library that computes elsewhere, or no array at all.
    """
    arrays = (*args, *(outs or ()), *keywords.values())
    there = next(str(x.device) for x in arrays if fake.is_fake(x))
    values = [
        x
        if fake.is_fake(x) or isinstance(x, (*PLAIN, list, tuple))
        else _operand(x, name, label, there)
        for x, label in zip(args, labels, strict=True)
    ]
    return fake.call(loops, name, values, outs, keywords, labels)


def tell_unwritten(keywords: dict[str, Any]) -> None:
    """Warn, as NumPy does, of ``where=`` without ``out=``: memory that none writes."""
    if keywords.get("where", True) is not True:
        message = (
            "'where' used without 'out', expect uninitialized memory in output. If "
            "this is intentional, use out=None."
        )
        warnings.warn(message, UserWarning, stacklevel=users_level())


def read(ufunc: Ufunc, keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords; the dtypes that they ask for are one ``signature`` then."""
    if not keywords:
        return keywords
    from xdev.ufunc.signatures import asked

    return asked(ufunc.__name__, ufunc.nin, keywords)


def for_cuda(ufunc: Ufunc, keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords that CUDA has; the others have no meaning there."""
    name = ufunc.__name__
    keywords = read(ufunc, keywords)
    order = keywords.get("order", "K")
    if order not in {"K", "C", "A", "F"}:
        message = f"{name}() has no order={order!r}; valid are 'K', 'C', 'A' and 'F'"
        raise ValueError(message)
    names = {"where", "casting", "signature", "order"}
    return {k: v for k, v in keywords.items() if k in names}


def on_cuda(
    loops: Callable[..., Any],
    args: Sequence[Any],
    outs: tuple[Any, ...] | None,
    keywords: dict[str, Any],
) -> Any:
    """Upload host arrays, compute, download the results: copies that are counted."""
    from xdev import transfer

    def up(x: Any) -> Any:
        whole = isinstance(x, np.ndarray) and x.ndim > 0
        return transfer.to_device(x, "cuda") if whole else x

    for out in outs or ():
        if out is not None and not (
            isinstance(out, np.ndarray) and out.flags.writeable
        ):
            message = "out must be a NumPy array that may be written, as the inputs are"
            raise ValueError(message)
    if "where" in keywords:
        keywords = {**keywords, "where": up(keywords["where"])}
    there = None if outs is None else tuple(map(transfer_out, outs))
    result = loops([up(x) for x in args], there, **keywords)
    results = result if isinstance(result, tuple) else (result,)
    given = outs or (None,) * len(results)
    back = tuple(
        transfer.to_numpy(made)[()] if out is None else transfer.to_numpy(made, out=out)
        for made, out in zip(results, given, strict=True)
    )
    return back if isinstance(result, tuple) else back[0]


def there(call: Callable[..., Any], array: Any, out: Any, **keywords: Any) -> Any:
    """Call a method on arrays that are on the device."""
    return call(array, out=out, **keywords)


def round_trip(call: Callable[..., Any], array: Any, out: Any, **keywords: Any) -> Any:
    """Upload a host array, call a method, download its result; copies are counted."""
    from xdev import transfer

    if keywords["dtype"] is None and out is not None:
        keywords["dtype"] = np.result_type(out, array)
    made = call(transfer.to_device(array, "cuda"), out=None, **keywords)
    if out is None:
        return transfer.to_numpy(made)[()]
    np.copyto(out, transfer.to_numpy(made), casting="unsafe")
    return out


def transfer_out(out: Any) -> Any:
    """Return a copy of an output on the device: what is not computed stays as it is."""
    from xdev import transfer

    return None if out is None else transfer.to_device(out, "cuda")
