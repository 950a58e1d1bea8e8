"""Where a call goes: the host, a device, another library, an operand's own way."""

from __future__ import annotations

import functools
import operator
import warnings
from array import array as buffer
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.device import device_of
from xdev.errors import DeviceMismatchError, not_array, type_name, users_level
from xdev.ufunc import dask, fake, foreign
from xdev.ufunc.complaints import device_name
from xdev.ufunc.foreign import NUMBERS, is_cuda
from xdev.ufunc.inputs import is_collection, is_dask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from xdev.ufunc.generalized.ufuncs import Generalized
    from xdev.ufunc.ufuncs import Ufunc

# Arguments in host memory that are not plain NumPy arrays on their way to the CPU.

ARRAYS = ("__array__", "__array_interface__", "__array_struct__")
#: Python's own that are arrays to NumPy: sequences and buffers.
SEQUENCES = (list, tuple, range, bytearray, memoryview, buffer)
PLAIN = (np.ndarray, *NUMBERS)


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


def read(ufunc: Ufunc | Generalized, keywords: dict[str, Any]) -> dict[str, Any]:
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

    def there_too(out: Any) -> Any:  # what is not computed stays as it is
        return None if out is None else transfer.to_device(out, "cuda")

    for out in outs or ():
        if out is not None and not (
            isinstance(out, np.ndarray) and out.flags.writeable
        ):
            message = "out must be a NumPy array that may be written, as the inputs are"
            raise ValueError(message)
    if "where" in keywords:
        keywords = {**keywords, "where": up(keywords["where"])}
    there = None if outs is None else tuple(map(there_too, outs))
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


# A ufunc's methods for arrays that are not plain NumPy arrays: whose way is taken.
#
# Another library's arrays and fake ones first, then an operand's ``__array_ufunc__``.

INPUTS = {
    "reduce": ("array",),
    "accumulate": ("array",),
    "reduceat": ("array", "indices"),
    "outer": ("a", "b"),
    "at": ("a", "indices", "b"),
}
#: Those of them that are values.
VALUES = {
    method: tuple(label for label in labels if label != "indices")
    for method, labels in INPUTS.items()
}
FOLDS = ("reduce", "accumulate", "reduceat")
OPTIONS = ("axis", "dtype", "out")  # a fold's arguments behind its inputs


def method(out: int) -> Callable[[Any], Any]:
    """Return a decorator for a ufunc's method: arrays that are not plain ones.

    ``out`` is the place of the argument that is written, where not by the name.
    """

    def decorate(call: Any) -> Any:
        @functools.wraps(call)
        def on_any(ufunc: Ufunc, *args: Any, **keywords: Any) -> Any:
            return _routed(call, out, ufunc, args, keywords)

        return on_any

    return decorate


def _routed(  # noqa: PLR0911 - one for each kind of arrays
    call: Any,
    place: int,
    ufunc: Ufunc,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    """Call a method where its arrays are."""
    name = call.__name__
    whole = f"{ufunc.__name__}.{name}"
    if name in FOLDS:  # whose out may be in a tuple, or ``...``, as that of NumPy's
        if len(args) > place:
            args, keywords["out"] = args[:place], args[place]
        if keywords.get("out") is ...:
            keywords["out"] = None
            return as_arrays(_routed(call, place, ufunc, args, keywords))
        keywords["out"] = _only(keywords.get("out"), whole)
    outs = _outs(keywords.get("out"))
    operands = (*args, *keywords.values(), *outs)
    if any(map(is_collection, operands)):
        return dask.call_method(ufunc, name, args, keywords)
    if any(map(is_cuda, operands)):
        return call(ufunc, *args, **keywords)
    if foreign.any_of(operands):
        written = (*args[place : place + 1], *outs)

        def own(*args: Any, **keywords: Any) -> Any:
            return _routed(call, place, ufunc, args, keywords)

        return foreign.on_host(own, whole, args, keywords, written)
    if any(map(fake.is_fake, operands)):
        return fake.call_method(call, ufunc, args, keywords)
    if any(map(overrides, (*args, keywords.get("array"), *outs))):
        return _overridden(ufunc, name, args, keywords)
    return call(ufunc, *args, **keywords)


def _only(out: Any, name: str) -> Any:
    """Return the one array of a tuple; what is none as it came."""
    if not isinstance(out, tuple):
        return out
    if len(out) != 1:
        message = (
            f"{name} has one result, and the tuple out has {len(out)} arrays: pass "
            "out=array, or out=(array,)"
        )
        raise ValueError(message)
    return out[0]


def _overridden(
    ufunc: Ufunc, name: str, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Call the operands' ``__array_ufunc__`` with what NumPy's methods call it with."""
    labels = INPUTS[name]
    inputs = args[: len(labels)]
    keywords = dict(zip(OPTIONS, args[len(labels) :], strict=False)) | keywords
    inputs += tuple(
        keywords.pop(label) for label in labels[len(inputs) :] if label in keywords
    )
    values = inputs if name == "outer" else inputs[::2]
    nin = len(values) if name == "at" else 2
    from xdev.ufunc.calls import check_method  # which imports this

    check_method(ufunc, name, *values, nin=nin)
    outs = _outs(keywords.pop("out", None))
    if name == "reduce":  # which hands on its defaults
        defaults = {"axis": 0, "dtype": None}
        keywords = {
            k: v for k, v in keywords.items() if v is not defaults.get(k, keywords)
        }
    return ask(ufunc, name, inputs, outs, keywords)


def ask(
    ufunc: Ufunc | Generalized,
    name: str,
    inputs: Sequence[Any],
    outs: Sequence[Any],
    keywords: dict[str, Any],
) -> Any:
    """Return what the operands' ``__array_ufunc__`` make of a call, as in NEP 13.

    Parameters
    ----------
    ufunc : Ufunc or Generalized
        What is called, which they are handed.
    name : str
        The method, ``"__call__"`` among them.
    inputs, outs : sequence
        The inputs, and the outputs that are given.
    keywords : dict
        The others.

    Raises
    ------
    TypeError
        None of them implements it, or one has None in its place.
    """
    if outs:
        keywords = {**keywords, "out": tuple(outs)}
    shown = _shown(ufunc)
    for x in _in_order((*inputs, *outs, keywords.get("where"))):
        own = type(x).__array_ufunc__
        if own is None:
            message = (
                f"{ufunc.__name__}: {type(x).__name__} does not support ufuncs "
                "(__array_ufunc__ = None): pass an array that it holds"
            )
            raise TypeError(message)
        result = own(x, shown, name, *inputs, **keywords)
        if result is not NotImplemented:
            return result
    kinds = ", ".join(type(x).__name__ for x in (*inputs, *outs))
    called = ufunc.__name__ + (f".{name}" if name in INPUTS else "()")
    message = (
        f"{called}: no operand of {kinds} implements it: pass the arrays that they hold"
    )
    raise TypeError(message)


def _shown(ufunc: Any) -> Any:
    """Return a ufunc as operands are handed it: itself, or one of another name.

    Libraries look up what they know by the name: ``add`` would run theirs. What is
    NumPy's is handed itself.
    """
    numpys = getattr(getattr(ufunc, "definition", None), "numpy", None)
    if numpys is not None:
        return numpys
    name = ufunc.__name__
    if not (hasattr(operator, name) or isinstance(getattr(np, name, None), np.ufunc)):
        return ufunc
    loops = ufunc._cpu  # noqa: SLF001 - a friend; it is one for both
    kind: Any = type(ufunc)
    renamed = kind.__new__(kind)
    vars(renamed).update(vars(ufunc), _cpu=loops, __name__=f"xdev:{name}")
    return renamed


def _in_order(operands: Iterable[Any]) -> list[Any]:
    """Return those that override, each type once, subclasses before their bases."""
    found: list[Any] = []
    for x in operands:
        if not overrides(x) or any(type(x) is type(y) for y in found):
            continue
        bases = (k for k, y in enumerate(found) if issubclass(type(x), type(y)))
        found.insert(next(bases, len(found)), x)
    return found


def overrides(x: Any) -> bool:
    """Say whether an operand has an ``__array_ufunc__`` of its own.

    Dask's would look the function up by its name; its collections have their own way.
    """
    kind = type(x)
    if kind is np.ndarray or isinstance(x, NUMBERS):
        return False
    plain = np.ndarray.__array_ufunc__
    return getattr(kind, "__array_ufunc__", plain) is not plain and not is_collection(x)


def _outs(out: Any) -> tuple[Any, ...]:
    outs = out if isinstance(out, tuple) else (out,)
    return () if all(x is None for x in outs) else outs


def as_arrays(result: Any) -> Any:
    """Return what ``out=...`` asks for: 0-d arrays in the place of NumPy's scalars."""
    if isinstance(result, tuple):
        return tuple(map(as_arrays, result))
    return np.asarray(result) if isinstance(result, np.generic) else result
