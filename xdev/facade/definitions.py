"""Definitions of the standard's elementwise functions, of which ufuncs are made."""

from __future__ import annotations

import inspect
import math
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import native
from xdev._freed import is_freed, use_after_free
from xdev.facade import dispatch
from xdev.facade.backends import HOST_SCALARS, PYTHON_SCALARS, ends_of
from xdev.facade.cpu import MENDED, NUMPY
from xdev.facade.dispatch import libraries
from xdev.ufunc.argument_errors import check_out
from xdev.ufunc.ufuncs import Definition, call, kinds_of, of_a_call, warn_unwritten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev._plain_calls import Plan
    from xdev.facade.backends import Function, Library
    from xdev.ufunc.cpu import Chunked
    from xdev.ufunc.dtypes import Signature, Specialisation
    from xdev.ufunc.ufuncs import Ufunc

    Args = tuple[Any, ...]
    Keywords = dict[str, Any]
    Dtypes = tuple[np.dtype[Any], ...]

_DOC = """{name}{signature}

{summary}

Parameters
----------
{parameters}
out : array, optional
    Where to write: an array of the result's shape, on the same device, that can
    hold its data type.
where, casting, order, dtype, subok, signature : optional
    As those of :class:`numpy.ufunc`.

Returns
-------
array
    On the device of the arguments, of their broadcast shape; ``out`` if given.

Raises
------
DeviceMismatchError
    The arrays are of two devices or libraries.
ValueError, TypeError
    ``out`` has another shape or is read-only; it cannot hold the data type.
UseAfterFreeError
    An array was freed.

Examples
--------
>>> import xdev
>>> xdev.{name}(xdev.asarray({example})
array({shown})
"""
_PARAMETERS = {
    1: "x : array\n    Any shape.",
    2: "x1, x2 : array or number\n    Shapes that broadcast; at least one is an array.",
}
_LABELS = {1: ("x",), 2: ("x1", "x2")}
#: Functions that are no ufuncs in NumPy, and the ufunc that computes the same, if any.
_OTHERS: dict[str, np.ufunc | None] = {"imag": None, "real": None, "round": np.rint}
#: Functions whose folds may take the elements in any order: threads share them.
_FOLDS = frozenset((
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "hypot", "logaddexp",
    "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply",
))  # fmt: skip
_COMPARISONS = frozenset(
    ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")
)
_PAIRS = frozenset(("maximum", "minimum"))  # NumPy warns where out is positional
_LARGE = 1 << 15  # elements: from here on the time of a call is measured


_SIGNATURES = {
    nin: of_a_call(inspect.Parameter(x, inspect.Parameter.POSITIONAL_ONLY) for x in own)
    for nin, own in _LABELS.items()
}
_SHOWN = {nin: str(signature) for nin, signature in _SIGNATURES.items()}


@final
class StandardDefinition(Definition):
    """An elementwise function of the standard: NumPy's, and an expression on CUDA.

    Its calls take arrays of one library and device, and numbers beside them. Arrays of
    libraries other than NumPy and CuPy go to those libraries' functions.
    """

    nout = 1

    def __init__(self, name: str, summary: str, example: str, shown: str) -> None:
        self.key, self.name = name, f"xdev.{name}"
        #: NumPy's own, None where that is no ufunc.
        self.numpy = _OTHERS[name] if name in _OTHERS else getattr(np, name)
        self.nin: int = 1 if self.numpy is None else self.numpy.nin
        self.labels = _LABELS[self.nin]
        array, _, rest = example.partition("]")
        self.doc = _DOC.format(
            name=name,
            signature=_SHOWN[self.nin],
            summary=summary,
            parameters=_PARAMETERS[self.nin],
            example=f"{array}]){rest}",
            shown=shown,
        )

    def describe(self, ufunc: Ufunc) -> None:
        """Give a ufunc its name, docstring and signature."""
        vars(ufunc).update(
            __name__=self.key,
            __qualname__=self.key,
            __module__="xdev",
            __doc__=self.doc,
            __signature__=_SIGNATURES[self.nin],
            # torch.compile follows no compiled call, but what these say in its place.
            __script_if_tracing_wrapper=True,
            __original_fn=self._traced(),
        )

    def _traced(self) -> Function:
        """Return what a compiler of another library follows: its own function."""
        name, nin = self.key, self.nin

        def function(*args: Any, out: Any = None, **keywords: Any) -> Any:
            if len(args) == nin + 1:
                *args, out = args  # type: ignore[assignment]
            if out is not None:
                keywords["out"] = out
            like = next(x for x in args if type(x) not in PYTHON_SCALARS)
            return dispatch.library_of(like, name).bound(name, like)(*args, **keywords)

        return function

    @property
    def types(self) -> list[str]:
        """NumPy's typings."""
        return [] if self.numpy is None else self.numpy.types

    def reduced(self, ufunc: Ufunc) -> str:  # noqa: ARG002
        """Pickle by the name."""
        return self.key

    def call(self, ufunc: Ufunc, args: Args, keywords: Keywords) -> Any:
        """Compute a call that no plan is for."""
        kinds = [] if self.numpy or keywords else [*map(type, args)]
        if len(kinds) == 1 and kinds[0] in dispatch.launches:  # CuPy's own, no launch
            return dispatch.dispatch(self.key, *args)(*args)
        arrays = [x for x in args if type(x) not in PYTHON_SCALARS]
        library = libraries.get(type(arrays[0])) if arrays else None
        if library and library.device_type is None and len(args) == self.nin:
            function = dispatch.dispatch_alike(self.key, arrays)
            if function is not None and not keywords:
                return function(*args)
        return call(ufunc, args, keywords, self._general)

    def refuse(self, args: Sequence[Any]) -> None:
        """Raise an error that says what is wrong with the inputs, if that is known."""
        dispatch.refuse(self.key, **dict(zip(self.labels, args, strict=True)))

    def _general(
        self, ufunc: Ufunc, args: Args, outs: Args | None, keywords: Keywords
    ) -> Any:
        """Find the library of the arrays, and compute there."""
        out = outs[0] if outs else None
        arguments = dict(zip(self.labels, args, strict=True))
        where = keywords.get("where", True)
        masks = {} if where is True else {"where": where}
        try:
            library, like, values, masks = dispatch.resolve_operands(
                self.key, out, arguments, masks
            )
        except TypeError:
            if self.numpy is None or not any(map(_overrides, (*args, out, where))):
                raise
            return self.numpy(*args, out=out, **keywords)  # which asks their types
        keywords = keywords | masks
        if self.key in _COMPARISONS:
            values = _comparable(values)
        try:
            result = self._computed(ufunc, library, like, values, out, keywords)
        except TypeError:
            self.refuse(args)
            raise
        if library is NUMPY and not keywords:
            self._learn(ufunc, args, out)
        if outs is None and masks:
            warn_unwritten(keywords)
        return result

    def _computed(
        self,
        ufunc: Ufunc,
        library: Library,
        like: Any,
        values: list[Any],
        out: Any,
        keywords: dict[str, Any],
    ) -> Any:
        if library.device_type == "cuda" and self.numpy is not None:
            return self._on_cuda(ufunc, values, out, keywords)
        function = library.bound(self.key, like)
        if not keywords:
            if out is None:
                return function(*values)
            return library.write(self.key, function, values, out)
        if library.chunk is not None:
            from xdev.ufunc import dask

            outs = None if out is None else (out,)
            return dask.call(ufunc, values, outs, keywords)
        if not library.numpy_dtypes or self.numpy is None:
            names = ", ".join(f"{key}=" for key in keywords)
            theirs = library.namespace.__name__.removeprefix("array_api_compat.")
            raise TypeError(
                f"{self.name} of arrays of {theirs} takes no {names}: leave it out"
            )
        keywords = {"signature" if k == "sig" else k: v for k, v in keywords.items()}
        if out is None:
            return function(*values, out=None, **keywords)
        return library.write(self.key, function, values, out, **keywords)

    def _on_cuda(
        self, ufunc: Ufunc, values: list[Any], out: Any, keywords: Keywords
    ) -> Any:
        from xdev.ufunc.dtypes import for_cuda

        loops, options = ufunc._cuda, for_cuda(ufunc, keywords)  # noqa: SLF001 - half
        if out is None:
            return loops(values, **options)
        if is_freed(out):
            raise use_after_free(out, f"{self.name}: out")
        where = options.get("where", True)
        shape = np.broadcast_shapes(*(np.shape(x) for x in (*values, where)))
        wanted = self.specialise(self.resolve(values)).outputs[0]
        if out.shape != shape or options.keys() <= {"where", "order"}:
            check_out(self.key, out, shape, wanted)
        return loops(values, out, **options)

    def _learn(self, ufunc: Ufunc, args: Sequence[Any], out: Any) -> None:
        """Keep a plan for calls like this one, on NumPy arrays and numbers."""
        operands = tuple(args) if out is None else (*args, out)
        kinds = kinds_of(operands)
        if out is not None and not any(type(x) is np.ndarray for x in args):
            return  # NumPy would spread numbers over an output, which is no result's
        numbers = PYTHON_SCALARS | HOST_SCALARS
        plain = all(isinstance(kind, np.dtype) or kind in numbers for kind in kinds)
        if not plain or PYTHON_SCALARS.issuperset(kinds[: self.nin]):
            return
        own = NUMPY.bound(self.key, None)
        of_complex = getattr(getattr(args[0], "dtype", None), "kind", "") == "c"
        mended = self.key in _OTHERS or (of_complex and self.key in MENDED)
        function: Any = own if mended else self.numpy
        if out is not None and self.key in _PAIRS:
            function = _by_keyword(function)
        limit = float("inf") if mended else _LARGE
        # NumPy would spread inputs over an output that is larger than they are.
        strided = limit if out is None else 0
        call = _NumPyCall(self)
        call.plan = native.calls.Plan(kinds, self.nin, function, call, limit, strided)
        ufunc.plans.learn(call.plan)

    def check(self, name: str, **operands: Any) -> None:
        """Refuse a method's operands but arrays of one library, and numbers."""
        whole = f"{self.key}.{name}"
        if self.key in _OTHERS:
            raise TypeError(
                f"xdev.{whole}: numpy.{self.key} is no ufunc, and has no such method: "
                f"call xdev.{self.key}(x)"
            )
        out = operands.pop("out", None)
        if type(out) is tuple and len(out) == 1:
            (out,) = out
        inputs: dict[str, Any] = {}
        masks: dict[str, Any] = {}
        for label, x in operands.items():
            if x is not None and not _overrides(x):
                (masks if label == "where" else inputs)[label] = x
        if _overrides(out):
            out = None
        if out is None and PYTHON_SCALARS.issuperset(map(type, inputs.values())):
            return
        library, like, *_ = dispatch.resolve_operands(whole, out, inputs, masks)
        library.bound(whole, like)  # which says what the others lack
        folds = self.key in _FOLDS or name in ("outer", "at")
        if not folds and library.device_type in ("cuda", "fake"):
            raise TypeError(
                f"xdev.{whole} is not on CUDA, where threads share the elements: "
                f"its result depends on their order. Copy them, xdev.to_numpy(x)"
            )

    def cpu_loops(self, ufunc: Ufunc) -> SimpleNamespace:  # noqa: ARG002
        """Return the methods of NumPy's ufunc."""
        own: Any = self.numpy

        def fold(name: str, inputs: Args, **keywords: Any) -> Any:
            return getattr(own, name)(*inputs, **keywords)

        return SimpleNamespace(at=own.at, reduce=own.reduce, fold=fold)

    # What CUDA compiles.

    def resolve(self, args: Sequence[Any]) -> Dtypes:
        """Return each argument's dtype; Python numbers are weak, as in NEP 50."""
        from xdev.ufunc.dtypes import resolve

        return resolve(args, self.name)

    def specialise(self, inputs: Dtypes) -> Specialisation:
        """Return the typing for these input dtypes: NumPy's."""
        return self.giving(inputs, ((None,) * self.nin, (None,)))

    def giving(self, inputs: Dtypes, signature: Signature) -> Specialisation:
        """Return the typing that a call asks for."""
        whole = self.key == "round" and inputs[0].kind in "iu"
        loop = np.positive if whole else self.numpy
        return _typed(self.key, loop, inputs, signature)

    def folding(
        self, array: np.dtype[Any], out: np.dtype[Any] | None, dtype: Any
    ) -> Specialisation:
        """Return the typing of a fold, which takes its own results, as NumPy has it."""
        if dtype is None and out is None:
            own: Any = self.numpy
            dtype = own.reduce(np.zeros(1, array)).dtype
        elif dtype is None:
            dtype = np.result_type(out, array)
        typing = self.specialise((np.dtype(dtype),) * 2)
        if set(typing.inputs) != set(typing.outputs):
            typing = self.specialise((typing.outputs[0],) * 2)
        return typing


@cache
def _typed(key: str, loop: Any, inputs: Dtypes, signature: Signature) -> Specialisation:
    """Return NumPy's typing for input dtypes."""
    from xdev.ufunc import expressions

    return expressions.typed(key, loop, inputs, signature)


@final
class _NumPyCall:
    """What a plan's calls on NumPy arrays need besides NumPy's function."""

    __slots__ = ("_chunked", "_function", "plan")

    plan: Plan

    def __init__(self, function: StandardDefinition) -> None:
        self._function = function
        self._chunked: Chunked | None = None

    def large(self, operands: tuple[Any, ...]) -> Any:
        """Compute many elements, or into an output whose shape may not be theirs."""
        function, values = self._function, operands[: self._function.nin]
        compute = self._of_many(operands) or NUMPY.bound(function.key, None)
        try:
            if len(operands) == function.nin:
                return compute(*values)
            return NUMPY.write(function.key, compute, list(values), operands[-1])
        except TypeError:
            function.refuse(values)
            raise
        finally:
            if self._chunked is not None:
                self.plan.limit = self._chunked.limit
                self.plan.strided = self.plan.strided and self.plan.limit

    def _of_many(self, operands: tuple[Any, ...]) -> Chunked | None:
        """Return what computes many elements, if these are and there is such a way."""
        ufunc, plan = self._function.numpy, self.plan
        if max(getattr(x, "size", 1) for x in operands) < _LARGE:
            return None
        if self._chunked is None and plan.limit == _LARGE and ufunc is not None:
            from xdev.ufunc.cpu import Chunked  # not for small programs

            self._chunked = Chunked.of(ufunc, plan.kinds)
            plan.limit = float("inf")  # for those that there is none for
            plan.strided = plan.strided and plan.limit
        return self._chunked

    def explain(self, error: Exception, operands: tuple[Any, ...]) -> None:
        """Raise NumPy's error for a call in xdev's words, if it has some."""
        function, nin = self._function, self._function.nin
        values, outs = operands[:nin], operands[nin:]
        if isinstance(error, TypeError) or outs:
            function.refuse(values)
        for out in outs:
            if isinstance(error, TypeError | ValueError):
                NUMPY.refuse(function.key, list(values), out, out.shape)


def _by_keyword(function: Any) -> Function:
    """Return a function of two that takes its output by place."""
    return lambda x1, x2, out: function(x1, x2, out=out)


def _overrides(x: Any) -> bool:
    """Say whether an object overrides ufuncs, but is of no array library."""
    own = getattr(type(x), "__array_ufunc__", None)
    if own is None or own is np.ndarray.__array_ufunc__ or type(x) in libraries:
        return False
    return not hasattr(type(x), "__array_namespace__") and not isinstance(x, np.generic)


def _comparable(values: list[Any]) -> list[Any]:
    """Return operands of a comparison, ints beyond the array's type made infinite."""
    kinds = [x.dtype for x in values if hasattr(x, "dtype")]
    if not kinds or getattr(kinds[0], "kind", "") not in ("i", "u"):
        return values
    least, most = ends_of(kinds[0])

    def within(x: Any) -> Any:
        if type(x) is not int or least <= x <= most:
            return x
        return math.inf if x > 0 else -math.inf

    return list(map(within, values))
