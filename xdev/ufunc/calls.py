# ruff: noqa: SLF001 - of the class whose second half this is
"""Where a ufunc's calls and methods go that no plan is for: the general way.

They are functions of the ufunc: ``import xdev`` makes many, and loads none of this.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.errors import DeviceMismatchError, not_array, type_name
from xdev.memory.arrays import is_fake
from xdev.ufunc import dask, foreign, ufuncs
from xdev.ufunc.argument_errors import refuse
from xdev.ufunc.dask import is_collection, is_dask
from xdev.ufunc.dtypes import WEAK, asked, for_cuda
from xdev.ufunc.foreign import NUMBERS, is_cuda
from xdev.ufunc.ufuncs import ABSENT, KEYWORDS, OWN, as_arrays, warn_unwritten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev.ufunc.ufuncs import Ufunc

# Arguments in host memory that are not plain NumPy arrays on their way to the CPU.

PLAIN = (np.ndarray, *NUMBERS)
#: Those of functions of core arrays.
CORE_KEYWORDS = ("out", "axis", "keepdims", "casting", "order", "dtype", "subok")
HOST = {np.ndarray, bool, int, float, complex, type(None)}  # none's but NumPy's


def on_host(args: Sequence[Any], name: str, labels: Sequence[str]) -> list[Any]:
    """Return what NumPy can compute with; ``labels`` are for errors."""
    pairs = zip(args, labels, strict=True)
    return [x if isinstance(x, PLAIN) else _operand(x, name, k) for x, k in pairs]


def _operand(x: Any, name: str, label: str, device: str = "cpu") -> Any:
    """Return what NumPy makes of an input; ``device`` is where the others are."""
    kind, what = type(x), f"{label} is {type_name(x)}"
    if is_dask(x):
        raise TypeError(
            f"{name}() takes dask.array's collections alone of Dask's, and {what}: "
            f"map it over the parts, {label}.map_partitions(f) or {label}.map(f)"
        )
    if hasattr(kind, "__dlpack__") or hasattr(kind, "__array_namespace__"):
        raise DeviceMismatchError(
            f"{name}() takes NumPy and CUDA arrays, and {what}: pass xdev.to_device("
            f"{label}, '{device}'), which copies only where it must"
        )
    array = np.asarray(x)
    if not array.ndim and array.dtype.kind in "OSU":
        flaw = not_array(x, "pass an array or a number", label)
        raise TypeError(f"{name}: {label} is {flaw}")
    return array


def on_fake(
    loops: Callable[..., Any],
    name: str,
    args: Sequence[Any],
    outs: tuple[Any, ...] | None,
    keywords: dict[str, Any],
    labels: Sequence[str],
) -> Any:
    """Compute with the CPU's loops on the memory behind fake arrays.

    What CUDA refuses is refused. ``loops(args, outs, **keywords)`` takes NumPy arrays.
    """
    from xdev.device.fake_arrays import run

    operands = (*args, *(outs or ()), *keywords.values())
    there = next(str(x.device) for x in operands if is_fake(x))

    def value(x: Any, label: str) -> Any:
        if isinstance(x, list | tuple):  # refused on CUDA too
            raise TypeError(
                f"{name}() got a {type(x).__name__} for {label} beside an array on "
                f"{there}: pass xdev.asarray({label}, device='{there}')"
            )
        if not (is_fake(x) or isinstance(x, PLAIN)):
            x = _operand(x, name, label, there)
        # As on CUDA, a 0-d array of the host is a number.
        return x[()] if isinstance(x, np.ndarray) and not x.ndim else x

    def compute(*inputs: Any, out: Any = None, **options: Any) -> Any:
        return loops(
            inputs, out if out is None or type(out) is tuple else (out,), **options
        )

    if outs:
        keywords = {"out": outs if outs[1:] else outs[0], **keywords}
    inputs = map(value, args, labels)
    names = () if keywords.keys() & {*labels} else tuple(labels)
    return run(f"{name}()", compute, *inputs, names=names, counts=False, **keywords)


def uploaded(
    loops: Callable[..., Any],
    args: Sequence[Any],
    outs: tuple[Any, ...] | None,
    keywords: dict[str, Any],
) -> Any:
    """Upload host arrays, compute, download the results: copies that are counted."""
    from xdev.transfer import to_device, to_numpy

    def up(x: Any) -> Any:
        return to_device(x, "cuda") if isinstance(x, np.ndarray) else x

    keywords = {key: up(x) for key, x in keywords.items()}
    there = outs and tuple(map(up, outs))  # what is not computed stays as it is
    result = loops([*map(up, args)], there, **keywords)
    results = result if isinstance(result, tuple) else (result,)
    back = tuple(
        to_numpy(array)[()] if out is None else to_numpy(array, out=out)
        for array, out in zip(results, outs or (None,) * len(results), strict=True)
    )
    return back if isinstance(result, tuple) else back[0]


def call(ufunc: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Compute the function elementwise; whatever is raised, nothing was written."""

    def compute(
        ufunc: Any,
        args: tuple[Any, ...],
        outs: tuple[Any, ...] | None,
        keywords: dict[str, Any],
    ) -> Any:
        name, labels = ufunc.__name__, ufunc.definition.labels
        operands = *args, *(outs or ()), keywords.get("where", True)
        refuse(name, labels, operands, len(outs or ()))
        if not HOST.issuperset(map(type, operands)):
            out_keyword = {} if outs is None else {"out": outs or None}
            result = elsewhere(ufunc, "__call__", args, keywords | out_keyword)
            if result is not NotImplemented:
                return result
        if any(map(is_cuda, operands)):
            result = ufunc._cuda(args, outs or None, **for_cuda(ufunc, keywords))
        else:
            plain = on_host(args, name, labels)
            if ufunc.target == "cuda":
                cuda = for_cuda(ufunc, keywords)
                result = uploaded(ufunc._cuda, plain, outs or None, cuda)
            else:
                cpu = asked(name, ufunc.nin, keywords)
                result = ufunc._cpu(plain, outs or None, **cpu)
        if outs is None:
            warn_unwritten(keywords)
        return result

    valid = CORE_KEYWORDS if ufunc.signature else KEYWORDS
    return ufuncs.call(ufunc, args, keywords, compute, valid)


def elsewhere(  # noqa: PLR0911 - one for each kind of arrays
    ufunc: Any, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Return what a call, or a method, makes of arrays that are not NumPy's or CUDA's.

    Another library's arrays and fake ones come first, then an operand's
    ``__array_ufunc__``. NotImplemented: there are none.
    """
    calls, name = method == "__call__", ufunc.__name__
    function = ufunc if calls else getattr(ufunc, method)
    name = name if calls else f"{name}.{method}"
    out = keywords.get("out")
    outs = out if isinstance(out, tuple) else () if out is None else (out,)
    rest = {key: value for key, value in keywords.items() if key != "out"}
    operands = *inputs, *outs, *rest.values()
    if any(map(is_collection, operands)):
        if calls:
            return dask.call(ufunc, inputs, outs or None, rest)
        return dask.call_method(ufunc, method, inputs, keywords)
    if any(map(is_cuda, operands)):
        return NotImplemented
    if foreign.any_of(operands):
        written = inputs[:1] if method == "at" else outs
        return foreign.on_host(function, name, inputs, keywords, written)
    if any(map(is_fake, operands)):
        if calls:
            there, labels = for_cuda(ufunc, rest), ufunc.definition.labels
            result = on_fake(ufunc._cpu, name, inputs, outs, there, labels)
            if "out" not in keywords:
                warn_unwritten(rest)
            return result
        from xdev.device.fake_arrays import strict

        return strict(f"{name}()", function)(*inputs, **keywords)
    if any(map(overrides, operands)):
        if "sig" in rest:
            rest["signature"] = rest.pop("sig")
        return ask(ufunc, method, inputs, outs, rest)
    return NotImplemented


def ask(
    ufunc: Any,
    name: str,
    inputs: Sequence[Any],
    outs: Sequence[Any],
    keywords: dict[str, Any],
) -> Any:
    """Return what the operands' ``__array_ufunc__`` make of a call, as in NEP 13."""
    if outs:
        keywords = {**keywords, "out": tuple(outs)}
    shown = _shown(ufunc)
    overriding: list[Any] = []  # each type once, subclasses before their bases
    for x in filter(overrides, (*inputs, *outs, keywords.get("where"))):
        if type(x) not in map(type, overriding):
            bases = (k for k, y in enumerate(overriding) if isinstance(x, type(y)))
            overriding.insert(next(bases, len(overriding)), x)
    for x in overriding:
        own = type(x).__array_ufunc__
        if own is None:  # it supports none
            break
        result = own(x, shown, name, *inputs, **keywords)
        if result is not NotImplemented:
            return result
    kinds = ", ".join(type(x).__name__ for x in (*inputs, *outs))
    called = ufunc.__name__ + ("()" if name == "__call__" else f".{name}")
    raise TypeError(
        f"{called}: no operand of {kinds} implements it: pass the arrays that they hold"
    )


def _shown(ufunc: Any) -> Any:
    """Return a ufunc as operands are handed it: NumPy's, itself, or of another name.

    Libraries look up what they know by the name: ``add`` would run theirs.
    """
    numpys = getattr(getattr(ufunc, "definition", None), "numpy", None)
    name = ufunc.__name__
    taken = hasattr(operator, name) or isinstance(getattr(np, name, None), np.ufunc)
    if numpys is not None or not taken:
        return numpys or ufunc
    loops = ufunc._cpu
    kind: Any = type(ufunc)
    renamed = kind.__new__(kind)
    vars(renamed).update(vars(ufunc), _cpu=loops, __name__=f"xdev:{name}")
    return renamed


def overrides(x: Any) -> bool:
    """Say whether an operand has an ``__array_ufunc__`` of its own.

    Dask's would look the function up by its name; its collections have their own way.
    """
    kind = type(x)
    if kind is np.ndarray or isinstance(x, NUMBERS):
        return False
    plain = np.ndarray.__array_ufunc__
    return getattr(kind, "__array_ufunc__", plain) is not plain and not is_collection(x)


def fold(
    ufunc: Ufunc, name: str, inputs: tuple[Any, ...], out: Any, options: dict[str, Any]
) -> Any:
    """Reduce, accumulate or reduce over slices (of an array and indices)."""
    keywords = {key: value for key, value in options.items() if value is not ABSENT}
    arrays = {"array": inputs[0], "out": out}
    arrays |= {"where": keywords["where"]} if "where" in keywords else {}
    ufunc.definition.check(name, **arrays)
    if out is ...:
        return as_arrays(fold(ufunc, name, inputs, None, keywords))
    if isinstance(out, tuple):
        if len(out) != 1:
            message = f"{ufunc.__name__}.{name}: out has {len(out)} arrays: pass one"
            raise ValueError(message)
        (out,) = out
    arrays["out"] = out
    check_method(ufunc, name, *arrays.values())
    with_out = keywords if out is None else {**keywords, "out": out}
    result = elsewhere(ufunc, name, inputs, with_out)
    if result is not NotImplemented:
        return result
    keywords = OWN | keywords
    cuda = any(map(is_cuda, arrays.values()))
    if not cuda and ufunc.target != "cuda":
        return ufunc._cpu.fold(name, inputs, out=out, **keywords)
    method = getattr(ufunc._cuda_methods, name)
    keywords |= dict(zip(("indices",), inputs[1:], strict=False))

    def there(values: Any, outs: Any, **options: Any) -> Any:
        return method(values[0], out=outs and outs[0], **options)

    outs = None if out is None else (out,)
    if cuda:
        return there(inputs, outs, **keywords)
    return uploaded(there, inputs[:1], outs, keywords)


def outer(ufunc: Ufunc, a: Any, b: Any, keywords: dict[str, Any]) -> Any:
    """Apply to every pair of elements, as :meth:`numpy.ufunc.outer` does."""
    masks = {k: keywords.get(k) for k in ("out", "where")}
    ufunc.definition.check("outer", a=a, b=b, **masks)
    check_method(ufunc, "outer", a, b, masks["out"])
    result = elsewhere(ufunc, "outer", (a, b), keywords)
    if result is not NotImplemented:
        return result
    if is_cuda(a) or is_cuda(b):
        result = ufunc._cuda_methods.outer(a, b, for_cuda(ufunc, keywords))
        if "out" not in keywords:
            warn_unwritten(keywords)
        return result
    if type(a) not in WEAK:
        a = np.asanyarray(a)
        a = a.reshape(a.shape + (1,) * np.ndim(b))
    return ufunc(a, b, **keywords)


def at(ufunc: Ufunc, a: Any, indices: Any, *values: Any) -> Any:
    """Work in place at indices, repeated ones too, as :meth:`numpy.ufunc.at`."""
    ufunc.definition.check("at", **dict(zip("ab", (a, *values), strict=False)))
    check_method(ufunc, "at", a, *values, nin=1 + len(values))
    result = elsewhere(ufunc, "at", (a, indices, *values), {})
    if result is not NotImplemented:
        return result
    if is_cuda(a):
        return ufunc._cuda_methods.at(a, indices, *(values or (None,)))
    return ufunc._cpu.at(a, indices, *values)


def check_method(ufunc: Ufunc, method: str, *operands: Any, nin: int = 2) -> None:
    """Refuse a method that a function of so many arguments has not, or its operands."""
    if ufunc.signature:
        ufunc.definition.check(method)
    if ufunc.nin != nin:
        takes = "one argument" if nin == 1 else "two arguments"
        raise ValueError(
            f"{ufunc.__name__}.{method} needs a function of {takes}, "
            f"and {ufunc.__name__} takes {ufunc.nin}"
        )
    labels = ("a", "b") if method in {"outer", "at"} else ("array",)
    refuse(f"{ufunc.__name__}.{method}", labels, operands)
