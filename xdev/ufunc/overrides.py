"""A ufunc's methods for arrays that are not plain NumPy arrays: whose way is taken.

Another library's arrays and fake ones first, then an operand's ``__array_ufunc__``.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev.ufunc import dask, fake, foreign, results
from xdev.ufunc.inputs import is_collection
from xdev.ufunc.on_cuda import NUMBERS, is_cuda

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from xdev.ufunc.generalized.ufuncs import Generalized
    from xdev.ufunc.ufuncs import Ufunc

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
        name = call.__name__.lstrip("_")
        whole = foreign.method(out=out)(fake.method(_overridable(call, name)))
        whole = dask.method(whole, name)
        return _one_out(whole, name, out) if name in FOLDS else whole

    return decorate


def _one_out(call: Any, name: str, place: int) -> Any:
    """Let a fold take its ``out`` in a tuple, or as ``...``, as NumPy's do."""

    @functools.wraps(call)
    def on_any(self: Ufunc, *args: Any, **keywords: Any) -> Any:
        if keywords.get("out") is ...:
            keywords["out"] = None
            return results.arrays(call(self, *args, **keywords))
        if len(args) > place and args[place] is ...:
            args = (*args[:place], None, *args[place + 1 :])
            return results.arrays(call(self, *args, **keywords))
        if isinstance(keywords.get("out"), tuple):
            keywords["out"] = _only(keywords["out"], f"{self.__name__}.{name}")
        elif len(args) > place and isinstance(args[place], tuple):
            one = _only(args[place], f"{self.__name__}.{name}")
            args = (*args[:place], one, *args[place + 1 :])
        return call(self, *args, **keywords)

    return on_any


def _only(outs: tuple[Any, ...], name: str) -> Any:
    if len(outs) != 1:
        message = (
            f"{name} has one result, and the tuple out has {len(outs)} arrays: pass "
            "out=array, or out=(array,)"
        )
        raise ValueError(message)
    return outs[0]


def _overridable(call: Any, name: str) -> Any:
    """Let an operand's ``__array_ufunc__`` decide, as NumPy does."""

    @functools.wraps(call)
    def on_any(self: Ufunc, *args: Any, **keywords: Any) -> Any:
        operands = [*args, keywords.get("array"), *_outs(keywords.get("out"))]
        if not any(map(overrides, operands)) or any(map(is_cuda, operands)):
            return call(self, *args, **keywords)
        return _overridden(self, name, args, keywords)

    return on_any


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

    Libraries look up what they know by the name: ``add`` would run theirs.
    """
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
