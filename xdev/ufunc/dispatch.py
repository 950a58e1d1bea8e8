"""Where a call goes: the host, a device, another library, an operand's own way."""

from __future__ import annotations

import operator
import sys
import warnings
from array import array as buffer
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.device import device_of
from xdev.errors import DeviceMismatchError, not_array, type_name, users_level
from xdev.ufunc import dask, foreign
from xdev.ufunc.complaints import device_name
from xdev.ufunc.foreign import NUMBERS, is_cuda
from xdev.ufunc.inputs import is_collection, is_dask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from xdev.ufunc.generalized import Generalized
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
                raise DeviceMismatchError(
                    f"{name}() got arrays of two devices: {type_name(y)} of shape "
                    f"{y.shape} is on {device_name(there, y)}, {type_name(x)} of shape "
                    f"{x.shape} is on {device_name(device, x)}; move one with "
                    f"xdev.to_device(x, '{'cpu' if there.library else there}')"
                )
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
        raise TypeError(
            f"{name}() takes dask.array's collections alone of Dask's, and {what}: "
            f"map it over the parts, {label}.map_partitions(f) or {label}.map(f)"
        )
    if hasattr(kind, "__dlpack__") or hasattr(kind, "__array_namespace__"):
        raise TypeError(
            f"{name}() takes NumPy and CUDA arrays, and {what}: pass xdev.to_device("
            f"{label}, '{device}'), which copies only where it must"
        )
    if any(hasattr(kind, name) for name in ARRAYS) or isinstance(x, SEQUENCES):
        return np.asarray(x)
    message = f"{name}: {label} is {not_array(x, 'pass an array or a number', label)}"
    raise TypeError(message)


def is_fake(x: Any) -> bool:
    """Say whether ``x`` is an array on a fake device."""
    arrays = sys.modules.get("xdev.device.fake_arrays")  # else there is none
    return arrays is not None and type(x) is arrays.FakeArray


def on_fake(
    loops: Callable[..., Any],
    name: str,
    args: Sequence[Any],
    outs: Sequence[Any] | None,
    keywords: dict[str, Any],
    labels: Sequence[str],
) -> Any:
    """Compute with the CPU's loops on the memory behind fake arrays.

    What CUDA refuses is refused.

    Parameters
    ----------
    loops : callable
        ``loops(args, outs, **keywords)`` on NumPy arrays.
    name, labels
        The function's name and its inputs', for errors.
    args, outs, keywords
        The call's; ``outs`` are returned themselves.

    Raises
    ------
    DeviceMismatchError
        There are arrays of the host or of two devices.
    TypeError
        An input is a list, an array of a library that computes elsewhere, or none.
    """
    from xdev.device.fake_arrays import run

    given = tuple(outs or ())
    arrays = (*args, *given, *keywords.values())
    there = next(str(x.device) for x in arrays if is_fake(x))
    outputs = {
        "out" if len(given) == 1 else f"out[{i}]": y for i, y in enumerate(given)
    }
    inputs: dict[str, Any] = {}
    for x, label in zip(args, labels, strict=True):
        if isinstance(x, list | tuple):  # refused on CUDA too
            raise TypeError(
                f"{name}() got a {type(x).__name__} for {label} beside an array on "
                f"{there}: pass xdev.asarray({label}, device='{there}')"
            )
        if not (is_fake(x) or isinstance(x, PLAIN)):
            x = _operand(x, name, label, there)  # noqa: PLW2901
        taken = label in {"on", *outputs, *keywords}
        # As on CUDA, a 0-d array of the host is a number.
        number = isinstance(x, np.ndarray) and not x.ndim
        inputs[f"argument {label}" if taken else label] = x[()] if number else x

    def apart(**named: Any) -> Any:
        values = [named.pop(label) for label in inputs]
        results = tuple(named.pop(label) for label in outputs)
        return loops(values, results or None, **named)

    named: dict[str, Any] = {**inputs, **outputs, **keywords}
    return run(f"{name}()", apart, **named)


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


# A ufunc's methods for arrays that are not plain NumPy arrays: whose way is taken.
#
# Another library's arrays and fake ones first, then an operand's ``__array_ufunc__``.


def elsewhere(
    ufunc: Ufunc, name: str, inputs: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Return what a method makes of arrays that are neither NumPy's nor CUDA's.

    NotImplemented: there are none.
    """
    whole, method = f"{ufunc.__name__}.{name}", getattr(ufunc, name)
    outs = _outs(keywords.get("out"))
    operands = (*inputs, *keywords.values(), *outs)
    if any(map(is_collection, operands)):
        return dask.call_method(ufunc, name, inputs, keywords)
    if any(map(is_cuda, operands)):
        return NotImplemented
    if foreign.any_of(operands):
        written = inputs[:1] if name == "at" else outs
        return foreign.on_host(method, whole, inputs, keywords, written)
    if any(map(is_fake, operands)):
        from xdev.device.fake_arrays import strict

        return strict(f"{whole}()", method)(*inputs, **keywords)
    if any(map(overrides, (*inputs, *outs))):
        rest = {key: value for key, value in keywords.items() if key != "out"}
        return ask(ufunc, name, inputs, outs, rest)
    return NotImplemented


def only(out: Any, name: str) -> Any:
    """Return the one array of a tuple; what is none as it came."""
    if not isinstance(out, tuple):
        return out
    if len(out) != 1:
        raise ValueError(
            f"{name} has one result, and the tuple out has {len(out)} arrays: pass "
            "out=array, or out=(array,)"
        )
    return out[0]


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
            raise TypeError(
                f"{ufunc.__name__}: {type(x).__name__} does not support ufuncs "
                "(__array_ufunc__ = None): pass an array that it holds"
            )
        result = own(x, shown, name, *inputs, **keywords)
        if result is not NotImplemented:
            return result
    kinds = ", ".join(type(x).__name__ for x in (*inputs, *outs))
    called = ufunc.__name__ + ("()" if name == "__call__" else f".{name}")
    raise TypeError(
        f"{called}: no operand of {kinds} implements it: pass the arrays that they hold"
    )


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
