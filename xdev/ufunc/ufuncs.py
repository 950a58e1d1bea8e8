"""``Ufunc``: a function of numbers that runs for each element where its arrays are."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy import ndarray

from xdev import native

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from xdev.ufunc.cuda import CudaLoops
    from xdev.ufunc.cuda_methods import CudaMethods
    from xdev.ufunc.signatures import Signature
    from xdev.ufunc.specialisation import Specialisation

    class Definition(Protocol):
        """What a ufunc computes, and how its calls are made.

        Attributes
        ----------
        name, doc : str
            What loops are called.
        labels : tuple of str
            The inputs' names, for errors.
        nin, nout : int
            The numbers of inputs and outputs; ``nout`` may be None until it is typed.
        fastmath : bool
            Whether floating point arithmetic may be reordered and contracted.
        strict : bool
            Whether a call takes arrays of one library alone, and numbers beside them.
        types : list of str
            The typings, as those of :class:`numpy.ufunc`.
        """

        name: str
        doc: str
        labels: tuple[str, ...]
        nin: int
        fastmath: bool
        strict: bool

        @property
        def nout(self) -> int | None: ...  # noqa: D102 - above

        @property
        def types(self) -> list[str]: ...  # noqa: D102 - above

        def outputs(self) -> int:
            """Return the number of outputs; typed for some inputs if it never was."""

        def describe(self, ufunc: Ufunc) -> None:
            """Give a ufunc its name, docstring and signature."""

        def filled(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
            """Return a call's inputs with the defaults behind them."""

        def many(self, given: int, nout: int) -> str:
            """Return the text for a call with too many arguments."""

        def call(
            self, ufunc: Ufunc, args: tuple[Any, ...], keywords: dict[str, Any]
        ) -> Any:
            """Compute a call that no plan is for."""

        def check(self, name: str, **operands: Any) -> None:
            """Refuse operands of a method that may not meet; None is none."""

        def cpu_loops(self, ufunc: Ufunc) -> Any:
            """Return what computes NumPy arrays, of ufunc's methods too."""

        def resolve(self, args: Sequence[Any]) -> tuple[np.dtype[Any], ...]:
            """Return each argument's dtype."""

        def specialise(self, inputs: tuple[np.dtype[Any], ...]) -> Specialisation:
            """Return the typing for these input dtypes."""

        def giving(
            self, inputs: tuple[np.dtype[Any], ...], signature: Signature
        ) -> Specialisation:
            """Return the typing that a call asks for."""

        def folding(
            self, array: np.dtype[Any], out: np.dtype[Any] | None, dtype: Any
        ) -> Specialisation:
            """Return the typing of a fold, which takes its own results."""

        def reduced(
            self, ufunc: Ufunc
        ) -> str | tuple[Callable[..., Any], tuple[Any, ...]]:
            """Return what makes the ufunc again, and its arguments: its pickle."""


ABSENT: Any = np._NoValue  # noqa: SLF001 - NumPy's own default
FIXED = frozenset(("identity", "nin", "signature"))


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
    signature = None  # as that of every numpy.ufunc without core dimensions

    def __init__(
        self,
        definition: Definition,
        target: str | None = None,
        identity: Any = None,
    ) -> None:
        definition.describe(self)
        self.definition = definition
        self.target = target
        given = None if identity == "reorderable" else identity
        vars(self).update(nin=definition.nin, identity=given)
        self._identity: Any = identity

    def _call(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return self.definition.call(self, args, keywords)

    @property
    def strict(self) -> bool:
        """Whether a call takes arrays of one library alone, and numbers beside them."""
        return self.definition.strict

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
                made = self._cuda_methods.reduce.again(array, axis, dtype)
                if made is not NotImplemented:
                    return made
        given = {"keepdims": keepdims, "initial": initial, "where": where}
        options = {name: value for name, value in given.items() if value is not ABSENT}
        mask = options.get("where")
        self.definition.check("reduce", array=array, out=out, where=mask)
        return calls.reduce(self, array, axis, dtype, out, **options)

    def accumulate(self, *args: Any, **keywords: Any) -> Any:
        """Accumulate along an axis, as :meth:`numpy.ufunc.accumulate` does."""
        given = dict(zip(("array", "axis", "dtype", "out"), args, strict=False))
        return self._folded("accumulate", given | keywords, args, keywords)

    def reduceat(self, *args: Any, **keywords: Any) -> Any:
        """Reduce over slices, as :meth:`numpy.ufunc.reduceat` does."""
        labels = "array", "indices", "axis", "dtype", "out"
        given = dict(zip(labels, args, strict=False))
        return self._folded("reduceat", given | keywords, args, keywords)

    def _folded(
        self,
        name: str,
        given: dict[str, Any],
        args: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        """Fold what is not reduced; operands' own ways are handed what was given."""
        operands = {label: given.get(label) for label in ("array", "out")}
        self.definition.check(name, **operands)
        return getattr(self._general, name)(self, *args, **keywords)

    def outer(self, a: Any, b: Any, /, **keywords: Any) -> Any:
        """Apply to every pair of elements, as :meth:`numpy.ufunc.outer` does."""
        masks = {k: keywords.get(k) for k in ("out", "where")}
        self.definition.check("outer", a=a, b=b, **masks)
        return self._general.outer(self, a, b, **keywords)

    def at(self, a: Any, indices: Any, /, *b: Any) -> Any:
        """Work in place at indices, repeated ones too, as :meth:`numpy.ufunc.at`."""
        self.definition.check("at", **dict(zip("ab", (a, *b), strict=False)))
        return self._general.at(self, a, indices, *b)

    # Each device's half is loaded where it is used; the first of several threads wins.

    @functools.cached_property
    def _general(self) -> Any:
        from xdev.ufunc import calls

        return calls

    @functools.cached_property
    def _cpu(self) -> Any:
        return self.__dict__.setdefault("_cpu", self.definition.cpu_loops(self))

    @functools.cached_property
    def _cuda(self) -> CudaLoops:
        from xdev.ufunc.cuda import CudaLoops

        own = CudaLoops(self.definition, self.launches)
        made: CudaLoops = self.__dict__.setdefault("_cuda", own)
        return made

    @functools.cached_property
    def _cuda_methods(self) -> CudaMethods:
        from xdev.ufunc.cuda_methods import CudaMethods

        return CudaMethods(self._cuda, self._identity)

    # What numpy.ufunc tells of itself.

    @property
    def nout(self) -> int:
        """The number of outputs."""
        return self.definition.outputs()

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
        return self.definition.types

    @property
    def ntypes(self) -> int:
        """The number of typings."""
        return len(self.types)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute that is not one of :class:`numpy.ufunc`'s."""
        if name in FIXED:  # those without a property, which are read at each call
            message = f"attribute {name!r} of ufunc {self.__name__!r} is not writable"
            raise AttributeError(message)
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<xdev ufunc {self.__name__!r}>"

    def __reduce__(self) -> Any:
        """Pickle by the name, or by the Python function and the options."""
        return self.definition.reduced(self)
