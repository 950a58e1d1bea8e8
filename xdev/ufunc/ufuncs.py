"""``Ufunc``: a function of numbers that runs for each element where its arrays are."""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy import ndarray

from xdev import native
from xdev.errors import users_level

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from xdev.ufunc.cuda_methods import CudaMethods

ABSENT: Any = np._NoValue  # noqa: SLF001 - NumPy's own default
OWN = {"axis": 0, "dtype": None}  # a fold's
FIXED = ("identity", "nin", "signature")  # read at each call: no properties
#: A call's keywords, as :class:`numpy.ufunc` has them, and their defaults.
OPTIONS = {"where": True, "casting": "same_kind", "order": "K", "dtype": None}
OPTIONS |= {"subok": True, "signature": None}
KEYWORDS = ("out", *OPTIONS, "sig")
NOTHING = {type(None)}


class Definition:
    """What a ufunc computes: a user's Python function, or one of NumPy's."""

    name: str
    nin: int
    labels: tuple[str, ...]
    defaults: tuple[Any, ...] = ()  # of the last inputs
    fastmath = False

    def call(
        self, ufunc: Ufunc, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        """Compute a call that no plan is for: :func:`xdev.ufunc.calls.call`."""
        return ufunc._general.call(ufunc, args, keywords)  # noqa: SLF001 - its half

    def filled(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a call's arguments with the defaults behind them."""
        missing = self.nin - len(args)
        if missing > len(self.defaults):
            raise self.wrong_count(len(args))
        return args + self.defaults[-missing:] if missing > 0 else args

    def wrong_count(self, count: int) -> TypeError:
        """Return the error for a call with so many arguments by place."""
        least = self.nin - len(self.defaults)
        optional = (f"{label}=..." for label in self.labels[least:])
        listed = ", ".join((*self.labels[:least], *optional))
        return TypeError(
            f"{self.name}() takes {listed}, then out, and the rest by keyword: it got "
            f"{count} positional argument{'s' * (count != 1)}"
        )


@native.calls.direct
@final
class Ufunc(native.calls.Callable):
    """A function of numbers as a ufunc: ``f(x, y, out=None, where=True, …)``.

    It takes what :class:`numpy.ufunc` takes. NumPy arrays are computed by a real NumPy
    ufunc, CUDA arrays of any library by one kernel launch on their device.

    Parameters
    ----------
    definition : Definition
        What it computes: a user's Python function, or one of NumPy's.
    target : "cpu", "parallel", "cuda" or None
        Where arrays in host memory are computed; ``"cuda"`` uploads them and
        downloads the results.
    identity : number, "reorderable" or None
        What a reduction of nothing is; None: reductions take one axis at a time.
    """

    __name__: str
    __qualname__: str
    nin: int
    identity: Any
    signature: str | None = None  # as numpy.ufunc's: the core dimensions, if any

    def __init__(
        self, definition: Any, target: str | None = None, identity: Any = None
    ) -> None:
        definition.describe(self)
        self.definition, self.target = definition, target
        value = None if identity == "reorderable" else identity
        vars(self).update(nin=definition.nin, identity=value)
        self._identity: Any = identity

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute that is not one of :class:`numpy.ufunc`'s."""
        if name in FIXED:
            message = f"attribute {name!r} of ufunc {self.__name__!r} is not writable"
            raise AttributeError(message)
        object.__setattr__(self, name, value)

    def _call(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return self.definition.call(self, args, keywords)

    def reduce(
        self,
        array: Any,
        axis: int | tuple[int, ...] | None = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = ABSENT,
        initial: Any = ABSENT,
        where: Any = ABSENT,
    ) -> Any:
        """Reduce along one or more axes, as :meth:`numpy.ufunc.reduce` does."""
        calls = self._general
        if out is None and keepdims is initial is where is ABSENT:
            if type(array) is ndarray and self.target != "cuda":
                calls.check_method(self, "reduce", array)
                return self._cpu.reduce(array, axis, dtype, None)
            if calls.is_cuda(array):
                result = self._cuda_methods.again(array, axis, dtype)
                if result is not NotImplemented:
                    return result
        options = {"keepdims": keepdims, "initial": initial, "where": where}
        own = {"axis": axis, "dtype": dtype}
        options |= {k: v for k, v in own.items() if v is not OWN[k]}
        return self._general.fold(self, "reduce", (array,), out, options)

    def accumulate(
        self, array: Any, axis: Any = ABSENT, dtype: Any = ABSENT, out: Any = None
    ) -> Any:
        """Accumulate along an axis, as :meth:`numpy.ufunc.accumulate` does."""
        methods = vars(self).get("_cuda_methods")  # None before the first call
        if out is None and methods is not None and self._general.is_cuda(array):
            plain = 0 if axis is ABSENT else axis, None if dtype is ABSENT else dtype
            result = methods.again(array, *plain, method="accumulate")
            if result is not NotImplemented:
                return result
        options = {"axis": axis, "dtype": dtype}
        return self._general.fold(self, "accumulate", (array,), out, options)

    def reduceat(
        self,
        array: Any,
        indices: Any,
        axis: Any = ABSENT,
        dtype: Any = ABSENT,
        out: Any = None,
    ) -> Any:
        """Reduce over slices, as :meth:`numpy.ufunc.reduceat` does."""
        options = {"axis": axis, "dtype": dtype}
        return self._general.fold(self, "reduceat", (array, indices), out, options)

    def outer(self, a: Any, b: Any, /, **keywords: Any) -> Any:
        """Apply to every pair of elements, as :meth:`numpy.ufunc.outer` does."""
        return self._general.outer(self, a, b, keywords)

    def at(self, a: Any, indices: Any, b: Any = None, /) -> Any:
        """Work in place at indices, repeated ones too, as :meth:`numpy.ufunc.at`."""
        return self._general.at(self, a, indices, *(() if b is None else (b,)))

    # Each device's half is loaded where it is used; the first of several threads wins.

    @functools.cached_property
    def _general(self) -> Any:
        from xdev.ufunc import calls

        return calls

    @functools.cached_property
    def _cpu(self) -> Any:
        return self.__dict__.setdefault("_cpu", self.definition.cpu_loops(self))

    @functools.cached_property
    def _cuda(self) -> Any:
        from xdev.ufunc.cuda import CudaLoops

        loops: Any = CudaLoops(self.definition, self.launches)
        if self.signature:
            loops = self.definition.cuda_loops()
        return self.__dict__.setdefault("_cuda", loops)

    @functools.cached_property
    def _cuda_methods(self) -> CudaMethods:
        from xdev.ufunc.cuda_methods import CudaMethods

        self._general.check_method(self, "reduce", nin=self.nin)
        return CudaMethods(self._cuda, self._identity)

    # What numpy.ufunc tells of itself.

    @property
    def nout(self) -> int:
        """The number of outputs."""
        return int(self.definition.nout or self.definition.outputs())

    @property
    def reorderable(self) -> bool:
        """Whether a reduction may take its elements in any order."""
        return self._identity is not None

    @property
    def nargs(self) -> int:
        """The number of inputs and outputs."""
        return self.nin + self.nout

    @property
    def types(self) -> list[str]:
        """The typings: NumPy's, the explicit signatures, or those made so far."""
        return list(self.definition.types)

    @property
    def ntypes(self) -> int:
        """The number of typings."""
        return len(self.types)

    def __dir__(self) -> list[str]:
        """Return what is for users: Tab offers it."""
        return sorted({*object.__dir__(self)} - {"definition", "launches", "plans"})

    def __repr__(self) -> str:
        if self.signature:
            return f"<xdev gufunc {self.__name__!r} {self.signature}>"
        return f"<xdev ufunc {self.__name__!r}>"

    def __reduce__(self) -> Any:
        """Pickle by the name, or by the Python function and the options."""
        return self.definition.reduced(self)


# What every call does that no plan is for, before it looks where its arrays are.


def call(
    ufunc: Any,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    compute: Callable[..., Any],
    valid_keywords: Sequence[str] = KEYWORDS,
) -> Any:
    """Sort out a call's arguments, and ``compute(ufunc, inputs, outs, keywords)``.

    The outputs are a tuple, empty where the caller said that there are none, None where
    nothing was said.
    """
    definition, nin = ufunc.definition, ufunc.nin
    name, has_out = definition.name, "out" in keywords
    out = keywords.pop("out", None)
    if out is ...:
        return as_arrays(ufunc(*args, out=None, **keywords))
    for keyword in keywords:
        if keyword not in valid_keywords:
            valid, placed = ", ".join(valid_keywords), ", ".join(definition.labels)
            message = f"{name}() has no keyword {keyword!r}; valid are {valid}"
            if (name, keyword) == ("xdev.round", "decimals"):
                message += "; xdev.numpy.round takes decimals"
            raise TypeError(f"{message}; positionally go {placed}")
    inputs, outs = bound(definition, args, out)
    if not keywords and (len(args) < nin or (not outs and (has_out or args[nin:]))):
        # For which there may be a plan.
        return ufunc(*inputs, **({"out": outs} if outs else {}))
    return compute(ufunc, inputs, outs or (() if has_out else None), keywords)


def bound(
    definition: Any, args: tuple[Any, ...], out: Any
) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
    """Return the inputs, and the outputs as a tuple, None without any."""
    nin, name = definition.nin, definition.name
    if out is None and len(args) == nin:
        return args, None
    args = definition.filled(args)
    args, positional = args[:nin], args[nin:]
    if positional and out is not None:
        message = f"{name}() takes {nin} arguments, and out once: positionally or "
        raise TypeError(message + "by keyword")
    outs: tuple[Any, ...] = positional if out is None else (out,)
    if isinstance(out, tuple):
        outs = out
    elif NOTHING.issuperset(map(type, outs)):
        return args, None
    nout = definition.nout or definition.outputs(args)
    if len(positional) > nout:
        raise definition.wrong_count(nin + len(positional))
    if len(positional) < nout and positional:
        outs = (*positional, *[None] * (nout - len(positional)))
    if len(outs) != nout:
        message = f"{name}() has {nout} outputs, but out has {len(outs)}: pass one "
        wrong = ValueError if isinstance(out, tuple) else TypeError  # as NumPy's
        raise wrong(message + "array, or None, for each")
    return args, None if NOTHING.issuperset(map(type, outs)) else outs


def kinds_of(operands: Iterable[Any]) -> tuple[Any, ...]:
    """Return what a plan on the CPU is for: each array's dtype, the others' types."""
    return tuple([x.dtype if type(x) is ndarray else type(x) for x in operands])


def as_arrays(result: Any) -> Any:
    """Return what ``out=...`` asks for: 0-d arrays in the place of NumPy's scalars."""
    if isinstance(result, tuple):
        return tuple(map(as_arrays, result))
    return np.asarray(result) if isinstance(result, np.generic) else result


def warn_unwritten(keywords: dict[str, Any]) -> None:
    """Warn, as NumPy does, of ``where=`` without ``out=``: memory that none writes."""
    if keywords.get("where", True) is not True:
        message = (
            "'where' used without 'out', expect uninitialized memory in output. If "
            "this is intentional, use out=None."
        )
        warnings.warn(message, UserWarning, stacklevel=users_level())


def of_a_call(inputs: Iterable[inspect.Parameter]) -> inspect.Signature:
    """Return the signature of a ufunc's call, as that of :class:`numpy.ufunc`."""
    one = inspect.Parameter
    own = [p.replace(kind=one.POSITIONAL_ONLY, annotation=one.empty) for p in inputs]
    rest = [
        one("out", one.POSITIONAL_OR_KEYWORD, default=None),
        *(one(key, one.KEYWORD_ONLY, default=value) for key, value in OPTIONS.items()),
    ]
    names = {p.name for p in own}  # a signature has each name once
    return inspect.Signature([*own, *(p for p in rest if p.name not in names)])
