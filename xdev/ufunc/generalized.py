"""``@guvectorize``: a generalized ufunc that runs where its inputs live."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.compile.grid import Argument
from xdev.ufunc import sources
from xdev.ufunc.core_arrays import CoreLoops, Layout
from xdev.ufunc.grids import CUDA, HOST
from xdev.ufunc.inputs import CountingParameters
from xdev.ufunc.kernels import (
    check_dtype,
    check_plain,
    refuse_unwritten,
    result_type,
    typed,
)
from xdev.ufunc.rewriting import WholeArrays
from xdev.ufunc.scalar import check_options
from xdev.ufunc.signatures import chosen, dtypes_of, parse_types, types_of
from xdev.ufunc.ufuncs import Definition, Ufunc

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Sequence

    from xdev.compile.formulas import Dtypes
    from xdev.ufunc.signatures import Types
    from xdev.ufunc.sources import FunctionScope

# ``@guvectorize``: its forms and its options.


def guvectorize(
    signatures: Any = None,
    /,
    signature: str | None = None,
    *,
    target: str | None = None,
    fastmath: bool = False,
    **options: bool,
) -> Callable[[Callable[..., Any]], Ufunc]:
    """Make a generalized ufunc of a function of arrays; it runs where its inputs live.

    Parameters
    ----------
    signatures : str, or list of signatures
        The core dimensions of inputs and outputs, ``"(m,n),(n)->(m)"``; the others are
        loop dimensions, which broadcast. Types may come before them, as Numba writes
        them: ``["void(float32[:,:], float32[:], float32[:])"]``.
    signature : str, optional
        The core dimensions, where types come first, or by its name.
    target : "cpu", "parallel", "cuda" or None
        Where arrays in host memory are computed: by default on the CPU, with
        ``"parallel"`` in threads that share the loop indices; ``"cuda"`` uploads them,
        computes and downloads. Arrays on a CUDA device are computed there.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.
    **options
        Numba's ``nopython``, ``cache`` and ``boundscheck`` are accepted.

    Returns
    -------
    callable
        A decorator. The function takes the core arrays, then the outputs, into which it
        writes: an input without core dimensions is a number, an output without is an
        array of one element, ``out[0] = …``. Without types, results have the inputs'
        result type.

    Raises
    ------
    TypeError, ValueError
        An option, a signature or the function is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> @guvectorize("(n),(n)->()")
    ... def dot(x, y, out):
    ...     out[0] = 0
    ...     for i in range(x.shape[0]):
    ...         out[0] += x[i] * y[i]
    >>> dot(np.arange(6.0).reshape(2, 3), np.asarray([1.0, 10.0, 100.0]))
    array([210., 543.])
    """
    check_options("guvectorize", target, options, "target, fastmath")
    if signature is None:
        signatures, signature = None, signatures
    if signature is None or callable(signature):
        message = "guvectorize needs core dimensions: @guvectorize('(n),(n)->()')"
        raise TypeError(message)
    core = Layout.parse(signature)
    several = isinstance(signatures, list | set | frozenset)
    types = signatures if several or signatures is None else [signatures]
    explicit = [_parse_cores(each, core) for each in types or ()]

    def decorate(function: Any) -> Ufunc:
        plain = sources.undecorated(function, CoreFunction)
        return Ufunc(
            CoreFunction(plain, core, explicit, fastmath=bool(fastmath)), target
        )

    return decorate


def _parse_cores(signature: object, layout: Layout) -> Types:
    """Return the types of ``"void(float32[:], float32[:])"``, which fit a layout."""
    types, results = parse_types(signature)
    operands = layout.operands
    if results or len(types) != len(operands):
        raise TypeError(
            f"{signature} has {len(types)} types, but {layout.text} has "
            f"{len(operands)} operands, and its function returns nothing"
        )
    for k, ((_, ndim), own) in enumerate(zip(types, operands, strict=True)):
        number = not own and k < len(layout.inputs)
        if ndim != max(len(own), 1) and not (number and ndim is None):
            raise TypeError(
                f"{signature}: operand {k} has the core dimensions ({','.join(own)}) "
                f"in {layout.text}, so that its type is an array of "
                f"{max(len(own), 1)} axes"
            )
    return types


@final
@dataclass(frozen=True, slots=True, eq=False)  # a key of dicts: hashed as an object
class CoreSpecialisation:
    """One typing of a function of core arrays: what every device compiles."""

    function: Callable[..., Any]  # literals typed
    arguments: tuple[Argument, ...]  # arrays with any strides, and numbers
    inputs: Dtypes
    outputs: Dtypes


@final
class CoreFunction(Definition):
    """A Python function of core arrays, inputs first.

    Signatures are tried in their order with safe casting; without any, each combination
    of dtypes is a typing.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        layout: Layout,
        signatures: Sequence[Types],
        *,
        fastmath: bool,
    ) -> None:
        names = check_plain(function, "guvectorize", "def f(x, y, out)")
        if len(names) != len(layout.operands):
            raise TypeError(
                f"{function.__name__}({', '.join(names)}) has {len(names)} parameters, "
                f"but {layout.text} needs {len(layout.operands)}: first "
                f"{len(layout.inputs)} inputs, then {len(layout.outputs)} outputs"
            )
        indices = (", ".join("ijklmn"[: len(own)]) or "0" for own in layout.outputs)
        outputs = names[len(layout.inputs) :]
        places = dict(zip(outputs, indices, strict=True))
        refuse_unwritten(function, places, unnamed=True)
        self.function, self.layout, self.fastmath = function, layout, fastmath
        self.signatures = tuple(signatures)
        nin = len(layout.inputs)
        #: The signatures by the dtypes of their inputs and outputs.
        self._types = {
            (dtypes_of(types[:nin]), dtypes_of(types[nin:])): types
            for types in self.signatures
        }
        self.name: str = function.__name__
        self.nin, self.nout = len(layout.inputs), len(layout.outputs)
        self.names, self.labels = names, names[: self.nin]
        self._specialisations: dict[tuple[Dtypes, Dtypes], CoreSpecialisation] = {}

    def describe(self, ufunc: Ufunc) -> None:
        """Give a ufunc the function's name and docstring, and the core dimensions."""
        form = f"({', '.join(self.names)})"
        sources.describe(ufunc, self.function, form, signature=self.layout.text)

    def check(self, name: str, **_: Any) -> None:
        """Refuse the methods of ufuncs, as NumPy does those of generalized ones."""
        raise RuntimeError(
            f"{self.name}.{name} does not exist: a function of core arrays, "
            f"{self.layout.text}, can only be called"
        )

    def cpu_loops(self, ufunc: Ufunc) -> CoreLoops:
        """Return what computes on NumPy arrays."""
        return CoreLoops(self, HOST, shared=ufunc.target == "parallel")

    def cuda_loops(self) -> CoreLoops:
        """Return what computes on CUDA arrays."""
        return CoreLoops(self, CUDA)

    def reduced(self, ufunc: Ufunc) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle a ufunc by the Python function and the options."""
        options = self.layout, self.signatures, self.fastmath, ufunc.target
        return sources.pickled(ufunc, _remake, self.function, *options)

    @property
    def types(self) -> list[str]:
        """The explicit signatures, or the typings made so far."""
        return [types_of(*pair) for pair in self._types or self._specialisations]

    @functools.cached_property
    def _counts(self) -> CountingParameters:
        return CountingParameters(self.function)

    def resolve(self, args: Sequence[Any]) -> Dtypes:
        """Return the dtypes of inputs, as :meth:`CountingParameters.resolve` does."""
        return self._counts.resolve(args, [i for i, _ in self._types], self.name)

    def specialise(
        self,
        inputs: Dtypes,
        outputs: Sequence[np.dtype[Any] | None],
        dtype: Any = None,
        casting: str = "same_kind",
    ) -> CoreSpecialisation:
        """Return the typing for dtypes."""
        native = tuple(dtype.newbyteorder("=") for dtype in inputs)
        if self.signatures:
            pair = chosen(self.name, [*self._types], native, dtype, casting)
            types, results = self._types[pair], pair[1]
        else:
            own = self._counts.working(native)
            results = (own if dtype is None else np.dtype(dtype),) * self.nout
            written = (
                result if y is None else y.newbyteorder("=")
                for result, y in zip(results, outputs, strict=True)
            )
            types = tuple(
                (own_dtype, None if k < len(native) and not own else max(len(own), 1))
                for k, (own_dtype, own) in enumerate(
                    zip((*native, *written), self.layout.operands, strict=True)
                )
            )
        can_cast: Any = np.can_cast  # checks the word itself
        for result, y in zip(results, outputs, strict=True):
            if y is not None and not can_cast(result, y, casting):
                raise TypeError(
                    f"Cannot cast gufunc {self.name!r} output from {result!r} to "
                    f"{y!r} with casting rule {casting!r}: pass out= of the result's "
                    "dtype, dtype= of what the function gives, or casting='unsafe'"
                )
        key = dtypes_of(types[: self.nin]), dtypes_of(types[self.nin :])
        if key not in self._specialisations:  # by identity, so the first one stays
            self._specialisations.setdefault(key, self._make(types, *key))
        return self._specialisations[key]

    def _make(
        self, types: Types, inputs: Dtypes, outputs: Dtypes
    ) -> CoreSpecialisation:
        for label, (dtype, _) in zip(self.names, types, strict=True):
            check_dtype(dtype, f"{self.name}: {label}")
        arguments = tuple(
            Argument(dtype, ndim, contiguous=False, writable=k >= len(inputs))
            for k, (dtype, ndim) in enumerate(types)
        )
        cores = dict(zip(self.names, self.layout.operands, strict=True))
        working = result_type(dtype for dtype, _ in types)

        def loops(tree: ast.FunctionDef, scope: FunctionScope) -> None:
            WholeArrays(tree, scope, cores).generic_visit(tree)

        function = typed(self.function, working, loops)
        return CoreSpecialisation(function, arguments, inputs, outputs)


def _remake(
    function: Callable[..., Any],
    layout: Layout,
    signatures: Any,
    fastmath: bool,
    target: str | None,
) -> Ufunc:
    return Ufunc(CoreFunction(function, layout, signatures, fastmath=fastmath), target)
