"""Errors of array arguments: what was given, what must be, the call that mends it."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev._freed import is_freed, use_after_free
from xdev.device import Device, device_of
from xdev.device.choice import traced
from xdev.errors import (
    ConfigurationError,
    DeviceMismatchError,
    not_array,
    quoted,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What data types are called, by NumPy's codes of their kinds; those of numbers.
_KINDS = {"b": "bool", "i": "integers", "f": "real floats", "c": "complex floats"}
#: The page of the documentation on Dask's collections.
PAGE = "docs: When one machine is not enough"
_NUMBERS = {bool: "b", int: "i", float: "f", complex: "c"}
#: NumPy's keywords, and the standard's for the same.
_RENAMED = {"a_max": "max", "a_min": "min", "ddof": "correction", "kind": "stable"}


def misplaced(
    function: Any, more: tuple[Any, ...], unknown: dict[str, Any] | None = None
) -> TypeError:
    """Return the error for arguments by place that go by keyword alone, or by no name.

    ``more`` came before the function's keyword-only parameters, ``unknown`` by other
    keywords.

    Examples
    --------
    >>> import xdev
    >>> print(misplaced(xdev.std, (), {"ddof": 1}))
    std() got an unexpected keyword argument 'ddof' (NumPy's): use correction=
    >>> print(misplaced(xdev.mean, (True,)))
    mean takes x and axis positionally and keepdims by keyword (keepdims=...): it got 3
    positional arguments
    """
    code = function.__code__
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    if unknown:
        return _unexpected(function.__name__, names, next(iter(unknown)))
    by_keyword = ", ".join(f"{name}=..." for name in names[count:])
    text = (
        f"{function.__name__} takes {_listed(names[:count])} positionally and "
        f"{_listed(names[count:])} by keyword ({by_keyword}): it got "
        f"{count + len(more)} positional arguments"
    )
    if names[count - 1] == "shape" and all(type(value) is int for value in more):
        text += "; the extents of a shape go in one tuple"
    return TypeError(text)


def _unexpected(name: str, names: tuple[str, ...], keyword: str) -> TypeError:
    """Return the error for a keyword that a function does not have."""
    text = f"{name}() got an unexpected keyword argument {keyword!r}"
    own = _RENAMED.get(keyword)
    if own in names:
        return TypeError(f"{text} (NumPy's): use {own}=")
    if keyword in inspect.signature(getattr(np, name)).parameters:
        return TypeError(f"{text} (NumPy's): leave it out, or use xdev.numpy.{name}")
    return TypeError(f"{text}: it takes {_listed(names)}")


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def no_array(name: str, label: str, x: Any) -> TypeError:
    """Return the error for an argument that is no array."""
    # xdev.asarray() itself asks, and refuses dates, texts and records of NumPy's.
    maker = "numpy" if isinstance(x, np.generic) else "xdev"
    way = f"make one with {maker}.asarray({label})"
    if label == "out":  # which comes after the inputs
        way = "give an array of the result's shape, or leave it out"
        way += "; xdev.numpy.round takes decimals" if name == "round" else ""
    return TypeError(f"xdev.{name}: {label} is {not_array(x, way, label)}")


def no_values(obj: Any) -> TypeError | None:
    """Return the error for an array of a class or a sparse matrix, None for others."""
    if isinstance(obj, type) or hasattr(obj, "tocsr"):
        return no_array("asarray", "obj", obj)
    return None


def no_sequence(name: str, x: Any) -> TypeError:
    """Return the error for one array, or a number, in place of a list of arrays."""
    return TypeError(
        f"xdev.{name}: arrays is {type_name(x)}, and must be a list or a tuple of "
        f"arrays: xdev.{name}([x, y])"
    )


def unfit(name: str, arguments: dict[str, Any]) -> TypeError | None:
    """Return the error for a data type that NumPy's ufunc has no loop for, or None."""
    loops = getattr(getattr(np, name, None), "types", ())
    taken = {np.dtype(code).kind for loop in loops for code in loop.partition("->")[0]}
    for label, x in arguments.items():
        dtype = getattr(x, "dtype", None)
        kind = _NUMBERS.get(type(x)) if dtype is None else getattr(dtype, "kind", None)
        if kind is None or kind in taken or not taken:
            continue
        to = "float64" if "f" in taken else "int64"
        way = f"convert it with xdev.astype({label}, xdev.{to})"
        if kind == "c" and "f" in taken:
            way = f"take xdev.real({label})"
        if dtype is None:
            way = "give another number"
        kinds = _listed(tuple(text for code, text in _KINDS.items() if code in taken))
        what = type(x).__name__ if dtype is None else dtype
        return TypeError(f"xdev.{name} takes {kinds}, and {label} is {what}: {way}")
    return None


def no_product(x1: Any, x2: Any) -> ValueError | None:
    """Return the error for shapes of which there is no matrix product, or None."""
    with suppress(ValueError):
        np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
        if x1.shape[-1:] == x2.shape[-2:][:1] != ():
            return None
    return ValueError(
        f"xdev.matmul: x1 is of shape {x1.shape} and x2 of shape {x2.shape}: the last "
        "axis of x1 must be as long as the last but one, or the only one, of x2 "
        "(xdev.matrix_transpose(x) swaps them), and those before must broadcast; a "
        "number multiplies by xdev.multiply(x1, x2)"
    )


def no_matrix(name: str, x: Any) -> np.linalg.LinAlgError:
    """Return the error for an array with fewer than two axes."""
    return np.linalg.LinAlgError(
        f"xdev.{name}: x is {x.ndim}-D, and must be 2-D or more: "
        f"xdev.reshape(x, (1, -1)) is one row"
    )


def no_mode(mode: Any) -> ValueError:
    """Return the error for a mode of ``qr`` that the standard does not have."""
    return ValueError(
        f"xdev.linalg.qr: mode is {quoted(mode)}, and must be 'reduced' or 'complete': "
        f"xdev.linalg.qr(x).R is the triangular factor alone"
    )


def no_arrays(name: str, labels: list[str]) -> TypeError:
    """Return the error for a call with numbers only, which says no device."""
    return TypeError(
        f"xdev.{name}: none of {', '.join(labels)} is an array, so there is no device "
        f"to compute on: make one with xdev.asarray({labels[0]})"
    )


def too_large(name: str, label: str, x: int) -> OverflowError:
    """Return the error for a Python int that no data type holds."""
    return OverflowError(
        f"xdev.{name}: {label} is an int of {x.bit_length():,} bits, and 64 are the "
        f"most: pass float({label})"
    )


def held_elsewhere(x: Any) -> TypeError | None:
    """Return the error for a list that holds an array of a device, None for others."""
    where = where_is(x)
    if where is None or where == "cpu":
        return None
    return TypeError(
        f"xdev.asarray: the list holds an array ({type_name(x)}) on {where}, which is "
        f"not copied to the host unasked: join arrays there with xdev.stack, or give "
        f"device='{where}'"
    )


def mismatch(
    name: str, first: tuple[str, Any], second: tuple[str, Any]
) -> DeviceMismatchError:
    """Return the error for arrays of two libraries or two devices."""
    (one, x), (other, y) = first, second
    where, there = where_is(x), where_is(y)
    ways = []
    for label, value, like, target in (one, x, other, there), (other, y, one, where):
        # NumPy's arrays are in xdev's own library there. What JAX traces has no values.
        foreign = (target and target.library) or type(value) is not np.ndarray
        if traced(value) is None and (where != there or foreign):
            ways.append(_way(label, like, target))
    return DeviceMismatchError(
        f"xdev.{name}: {one} ({type_name(x)}) is on {device_name(where, x)}, "
        f"{other} ({type_name(y)}) is on {device_name(there, y)}. xdev moves "
        f"nothing by itself: move one, {' or '.join(ways)}"
    )


def elsewhere(name: str, x: Any, here: Device, target: Device) -> DeviceMismatchError:
    """Return the error for a fill value on another device than it is to fill."""
    return DeviceMismatchError(
        f"xdev.{name}: fill_value ({type_name(x)}) is on {here}, the result is to be "
        f"on {target}. xdev moves nothing by itself: move one, "
        f"xdev.to_device(fill_value, '{target}') or device='{here}'"
    )


def where_is(x: Any) -> Device | None:
    """Return where an array is; None for JAX's that are spread over many."""
    try:
        return device_of(x)
    except (TypeError, ConfigurationError):
        return None


def device_name(where: Device | None, x: Any) -> str:
    """Return what an array's library calls its device, which xdev calls ``where``."""
    if where is None:
        return "no one device"
    return str(getattr(x, "device", where) if where.library else where)


def _way(label: str, like: str, target: Device | None) -> str:
    """Return the call that moves an argument to where, and what, another one is."""
    if target is None:
        return f"xdev.namespace({like}).asarray({label})"
    if target.library:
        return f"xdev.asarray({label}, device=xdev.device_of({like}))"
    return f"xdev.to_device({label}, '{target}')"


def refuse(
    name: str, labels: Sequence[str], operands: Sequence[Any], nout: int = 1
) -> None:
    """Refuse classes and freed arrays among inputs, ``nout`` outputs and ``where``."""
    for number, x in enumerate(operands):
        if isinstance(x, type) or is_freed(x):
            outs = ["out="] if nout == 1 else [f"out[{k}]" for k in range(nout)]
            what = f"{name}: {[*labels, *outs, 'where='][number]}"
            if is_freed(x):
                raise use_after_free(x, what)
            raise TypeError(f"{what} is {not_array(x, 'pass an array')}")


# Of an output that cannot be written.


def check_out(
    name: str, out: Any, shape: Sequence[int], dtype: Any, own: Any = None
) -> None:
    """Refuse an ``out=`` that cannot hold a result of a shape and data type.

    ``own`` is NumPy's data type of it, where its own is another library's.
    """
    kind: type[Exception] = ValueError
    if tuple(out.shape) != tuple(shape):
        flaw = f"of shape {tuple(out.shape)}"
    elif not getattr(getattr(out, "flags", None), "writeable", True):
        flaw = "read-only"
    elif not np.can_cast(dtype, own or out.dtype, "same_kind"):
        kind, flaw = TypeError, f"of data type {_text(out.dtype)}"
    else:
        return
    wanted, where, extents = _text(dtype), device_of(out), tuple(shape)
    device = "xdev.device_of(out)" if where.library else f"'{where}'"
    raise kind(
        f"xdev.{name}: out is {flaw}; it must be a writable array of shape {extents} "
        f"that can hold {wanted}: make one with "
        f"xdev.empty({extents}, dtype=xdev.{wanted}, device={device})"
    )


def _text(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def never_written(name: str, out: Any, reason: str) -> TypeError:
    """Return the error for an ``out=`` of a library whose arrays cannot be written."""
    return TypeError(
        f"xdev.{name}: out ({type_name(out)}) cannot be written: {reason}. Leave out= "
        f"out, and use what xdev.{name} returns"
    )


def of_slice(name: str, out: Any) -> ValueError:
    """Return the error for an ``out=`` that is a slice of a Dask collection."""
    return ValueError(
        f"xdev.{name}: out (shape {out.shape}) is a slice of a collection of Dask's, "
        f"which is no view: leave out= out, and assign the result to the slice, "
        f"y[...] = xdev.{name}(...) ({PAGE})"
    )


def not_over_blocks(
    name: str, reason: str, join: str | None = None
) -> NotImplementedError:
    """Return the error for what Dask's collections cannot do; ``join`` joins chunks."""
    first = f"Join the chunks, {join}; or compute" if join else "Compute"
    return NotImplementedError(
        f"xdev.{name} of a collection of Dask's: {reason}. {first} it, "
        f"xdev.{name}(x.compute()), or map a function over the blocks, "
        f"xdev.distributed.map(f, x) ({PAGE})"
    )


# NumPy's refusals of a ufunc's call, with the way out.

WAYS = {
    "op_axes": "pass out= of as many dimensions as the array",
    "for reduction operation": "pass out= of the result's shape, or leave it out",
    " input ": "cast the arguments, or pass casting='unsafe'",
    "Cannot cast ufunc": "pass out= of the result's dtype, or casting='unsafe'",
    "non-broadcastable output": "pass out= of the broadcast shape, or leave it out",
    "read-only": "pass out= an array that may be written",
    "to dtype('bool')": "pass where= a bool, or an array of bool, as mask != 0",
    "must be of ArrayType": "pass out= an array of the inputs' device, or a tuple",
    "'out' tuple": "pass one array, or None, for each output",
    "remapped shapes": "pass out= of the result's shape, where= of the array's",
    "could not be broadcast": "make axes match, or be 1; out= has the result's shape",
}


def explain(error: Exception) -> None:
    """Raise NumPy's error with the way out, if it has one, as its built-in kind."""
    text = str(error).rstrip()  # NumPy ends some with a space
    way = next((way for words, way in WAYS.items() if words in text), None)
    if way is not None and raised_by_numpy(error):
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{text}: {way}") from error


def raised_by_numpy(error: Exception) -> bool:
    """Say whether an error is NumPy's own, and not what a user's handler raised."""
    from traceback import walk_tb  # which `import xdev` does not load

    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    module = frames[-1].f_globals.get("__name__", "") if frames else ""
    return module.partition(".")[0] in {"xdev", "numpy"}


# Reductions that are refused, in the same words on every device.

# Of what NumPy says, the words that tell the case; what users read, and the way out.
START = (
    "{}.reduce with where=, or of nothing, has no identity to start from: pass "
    "initial=, or give the function an identity, @vectorize(identity=...)"
)
REFUSED = {
    "not reorderable": (
        "{}.reduce is not reorderable, so it takes one axis at a time; with "
        "@vectorize(identity=...) it takes several"
    ),
    "where mask": START,
    "no identity": START,
}


def reduction_error(key: str, name: str) -> ValueError:
    """Return the error for a reduction: a case of the table, and a function's name."""
    return ValueError(REFUSED[key].format(name))
