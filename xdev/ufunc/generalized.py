"""``@guvectorize``: a generalized ufunc that runs where its inputs live."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import memory
from xdev.compile import grid_code, loops, threads
from xdev.compile.grid import Argument
from xdev.ufunc import calls, sources
from xdev.ufunc.argument_errors import explain
from xdev.ufunc.core_arrays import Layout, parse_cores
from xdev.ufunc.inputs import CountingParameters, strong
from xdev.ufunc.kernel_functions import SUPPORTED, check_plain, result_type, typed
from xdev.ufunc.layout import POOLED
from xdev.ufunc.rewriting import WholeArrays
from xdev.ufunc.scalar import WITHOUT_EFFECT, check_options
from xdev.ufunc.signatures import types_of
from xdev.ufunc.ufuncs import Ufunc

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Sequence

    from xdev.ufunc.core_arrays import Types
    from xdev.ufunc.cuda_layout import Shape
    from xdev.ufunc.signatures import Signature
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
        ``"parallel"`` in threads that share the first loop dimension of a call with
        ``out=``; ``"cuda"`` uploads them, computes and downloads. Arrays on a CUDA
        device are computed there.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.
    **options
        Numba's ``nopython``, ``cache``, ``boundscheck`` and ``writable_args=()`` are
        accepted.

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
    accepted = (*WITHOUT_EFFECT, "writable_args")
    check_options("guvectorize", target, options, "target, fastmath", accepted)
    if value := options.get("writable_args"):
        message = f"guvectorize cannot have writable_args={value!r}: leave it out"
        raise TypeError(message)
    if signature is None:
        signatures, signature = None, signatures
    if signature is None or callable(signature):
        message = "guvectorize needs core dimensions: @guvectorize('(n),(n)->()')"
        raise TypeError(message)
    core = Layout.parse(signature)
    several = isinstance(signatures, list | set | frozenset)
    types = signatures if several or signatures is None else [signatures]
    explicit = [parse_cores(each, core) for each in types or ()]

    def decorate(function: Any) -> Ufunc:
        own = getattr(function, "definition", None)
        if isinstance(own, CoreFunction):
            function = own.function
        plain = getattr(function, "py_func", function)  # of what Numba compiled
        return Ufunc(
            CoreFunction(plain, core, explicit, fastmath=bool(fastmath)), target
        )

    return decorate


Dtypes = tuple[np.dtype[Any], ...]


@final
@dataclass(frozen=True, slots=True, eq=False)  # a key of dicts: hashed as an object
class CoreSpecialisation:
    """One typing of a function of core arrays: what every device compiles.

    Parameters
    ----------
    function : callable
        The Python function, literals typed.
    arguments : tuple of Argument
        What it takes: arrays with any strides, and numbers.
    inputs, outputs : tuple of numpy.dtype
        The operands' dtypes.
    """

    function: Callable[..., Any]
    arguments: tuple[Argument, ...]
    inputs: Dtypes
    outputs: Dtypes


@final
class CoreFunction:
    """A Python function of core arrays, inputs first.

    Parameters
    ----------
    function : callable
        Plain Python.
    layout : Layout
        The core dimensions of its arguments.
    signatures : sequence of Types
        Tried in this order with safe casting; empty for one typing per exact dtypes.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.

    Raises
    ------
    TypeError
        It is no plain function of so many arguments.
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
                f"but {layout.text} has {len(layout.operands)} operands: first the "
                "inputs, then the outputs"
            )
        self.function, self.layout, self.fastmath = function, layout, fastmath
        self.signatures = tuple(signatures)
        self.name: str = function.__name__
        self.nin, self.nout = len(layout.inputs), len(layout.outputs)
        self.names, self.labels = names, names[: self.nin]
        self._lock = threading.RLock()  # guards the dict below: a typing is made once
        self._specialisations: dict[tuple[Dtypes, Dtypes], CoreSpecialisation] = {}

    def describe(self, ufunc: Ufunc) -> None:
        """Give a ufunc the function's name and docstring, and the core dimensions."""
        functools.update_wrapper(ufunc, self.function)
        vars(ufunc).update(
            __qualname__=ufunc.__qualname__.removesuffix(sources.INSIDE),
            __doc__=self.function.__doc__ or f"{self.name}({', '.join(self.names)})",
            signature=self.layout.text,
        )

    def call(
        self, ufunc: Ufunc, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        """Compute the function for every loop index, as :func:`calls.call` has it.

        Its keywords are ``out``, ``axes``, ``axis``, ``keepdims``, ``casting``,
        ``order``, ``dtype`` (of the results) and ``subok``, as those of
        :class:`numpy.ufunc`; new results have the inputs' result type, and nothing is
        in them before.
        """
        return calls.call(ufunc, args, keywords)

    def check(self, name: str, **_: Any) -> None:
        """Refuse the methods of ufuncs, as NumPy does those of generalized ones."""
        raise RuntimeError(
            f"{self.name}.{name} does not exist: a function of core arrays, "
            f"{self.layout.text}, can only be called"
        )

    def cpu_loops(self, ufunc: Ufunc) -> CpuCores:
        """Return the NumPy ufuncs made of compiled loops."""
        return CpuCores(self, parallel=ufunc.target == "parallel")

    def reduced(self, ufunc: Ufunc) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle a ufunc by the Python function and the options."""
        options = self.layout, self.signatures, self.fastmath, ufunc.target
        return sources.pickled(ufunc, _remake, self.function, *options)

    def filled(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a call's inputs, of which there are no defaults."""
        if len(args) < self.nin:
            raise TypeError(self.many(len(args), self.nout))
        return args

    def many(self, count: int, nout: int) -> str:
        """Return the text for a call with a wrong number of arguments."""
        takes = f"{self.nin} inputs and then up to {nout} outputs"
        return f"{self.name}() takes {takes}, not {count} arguments"

    @property
    def types(self) -> list[str]:
        """The explicit signatures, or the typings made so far."""
        rows = [tuple(dtype for dtype, _ in types) for types in self.signatures]
        if not rows:
            typings = dict.fromkeys(self._specialisations.values())
            rows = [(*each.inputs, *each.outputs) for each in typings]
        return [types_of(row[: self.nin], row[self.nin :]) for row in rows]

    @functools.cached_property
    def _counts(self) -> CountingParameters:
        return CountingParameters(self.function)

    def resolve(self, args: Sequence[Any]) -> Dtypes:
        """Return the dtypes of inputs, as :meth:`CountingParameters.resolve` does."""
        taken = [
            tuple(dtype for dtype, _ in types[: len(args)]) for types in self.signatures
        ]
        return self._counts.resolve(args, taken, self.name)

    def specialise(
        self,
        inputs: Dtypes,
        outputs: Sequence[np.dtype[Any] | None],
        dtype: Any = None,
        casting: str = "same_kind",
    ) -> CoreSpecialisation:
        """Return the typing for dtypes.

        Parameters
        ----------
        inputs : tuple of numpy.dtype
            The inputs'.
        outputs : sequence of numpy.dtype and None
            Those of the outputs that are given.
        dtype : dtype-like, optional
            That of the others; None: the inputs' result type. With signatures that of
            all results: those are looked through which give it.
        casting : str
            How that may be cast to the dtypes of the outputs that are given, and the
            inputs to a signature's that gives ``dtype``.

        Raises
        ------
        TypeError
            No signature fits, a dtype is not numeric, the function reads an array from
            outside, or an output cannot take the results.
        """
        native = tuple(dtype.newbyteorder("=") for dtype in inputs)
        if self.signatures:
            types = self._choose(native, dtype, casting)
        else:
            own = self._counts.working(native)
            working = own if dtype is None else np.dtype(dtype)
            self._check_outputs(working, outputs, casting)
            results = (working if d is None else d.newbyteorder("=") for d in outputs)
            types = tuple(
                (own_dtype, None if k < len(native) and not own else max(len(own), 1))
                for k, (own_dtype, own) in enumerate(
                    zip((*native, *results), self.layout.operands, strict=True)
                )
            )
        dtypes = tuple(dtype for dtype, _ in types)
        key = dtypes[: len(native)], dtypes[len(native) :]
        with self._lock:
            if key not in self._specialisations:
                self._specialisations[key] = self._make(types, *key)
            return self._specialisations[key]

    def _check_outputs(
        self,
        results: np.dtype[Any],
        outputs: Sequence[np.dtype[Any] | None],
        casting: str,
    ) -> None:
        """Refuse outputs to which results are not cast; the function would cut them."""
        can_cast: Any = np.can_cast  # checks the word itself
        for dtype in outputs:
            if dtype is not None and not can_cast(results, dtype, casting):
                raise TypeError(
                    f"Cannot cast gufunc {self.name!r} output from {results!r} to "
                    f"{dtype!r} with casting rule {casting!r}: pass out= of the "
                    "result's dtype, dtype= of what the function gives, or "
                    "casting='unsafe'"
                )

    def _choose(self, inputs: Dtypes, dtype: Any, casting: str) -> Types:
        """Return the first signature that takes the inputs safely.

        Where a dtype of the results is asked for, the first of those that give it will
        do that takes them by ``casting``.
        """
        able, rule = self.signatures, "safe"
        can_cast: Any = np.can_cast  # checks the word itself
        if dtype is not None:
            asked, rule = np.dtype(dtype), casting
            able = tuple(
                types
                for types in able
                if all(own == asked for own, _ in types[len(inputs) :])
            )
        for each in ("safe", rule):
            for types in able:
                pairs = zip(inputs, types, strict=False)  # the results' come after
                if all(can_cast(x, own, each) for x, (own, _) in pairs):
                    return types
        listed = "; ".join(
            ", ".join(str(own) for own, _ in types) for types in self.signatures
        )
        gives = "" if dtype is None else f"gives {asked}"
        takes = f"takes ({', '.join(map(str, inputs))}) with casting={rule!r}"
        flaw = " and ".join(filter(None, [gives, takes if able else ""]))
        raise TypeError(
            f"{self.name}: no signature {flaw}; it has {listed}. Cast the arguments, "
            "pass another casting= or dtype=, or add a signature"
        )

    def _make(
        self, types: Types, inputs: Dtypes, outputs: Dtypes
    ) -> CoreSpecialisation:
        for dtype, _ in types:
            if dtype.char not in SUPPORTED:
                raise TypeError(
                    f"{self.name}: dtype {dtype} is not supported; use bool, integers, "
                    "float32, float64, complex64 or complex128"
                )
        arguments = tuple(
            Argument(dtype, ndim, contiguous=False, writable=k >= len(inputs))
            for k, (dtype, ndim) in enumerate(types)
        )
        cores = dict(zip(self.names, self.layout.operands, strict=True))
        working = result_type(dtype for dtype, _ in types)

        def also(tree: ast.FunctionDef, scope: FunctionScope) -> None:
            WholeArrays(tree, scope, cores).generic_visit(tree)

        function = typed(self.function, working, also)
        return CoreSpecialisation(function, arguments, inputs, outputs)


def _remake(
    function: Callable[..., Any],
    layout: Layout,
    signatures: Any,
    fastmath: bool,
    target: str | None,
) -> Ufunc:
    return Ufunc(CoreFunction(function, layout, signatures, fastmath=fastmath), target)


# A function of core arrays on NumPy arrays: a real generalized ufunc for each typing.
#
# Broadcasting, ``out=``, casting, ``axes=``, ``keepdims=`` and overlap are NumPy's
# own.


@final
class CpuCores:
    """The NumPy ufuncs of one function of core arrays.

    Parameters
    ----------
    function : CoreFunction
        The function.
    parallel : bool
        Whether threads share the first loop dimension.
    """

    def __init__(self, function: CoreFunction, *, parallel: bool) -> None:
        self._function, self._parallel = function, parallel
        self._ufuncs: dict[CoreSpecialisation, np.ufunc] = {}

    def ufunc(self, typing: CoreSpecialisation) -> np.ufunc:
        """Return the NumPy ufunc whose one loop is this typing."""
        ufunc = self._ufuncs.get(typing)
        if ufunc is None:
            function = self._function
            loop = grid_code.inner_loop(
                typing.function,
                typing.arguments,
                function.layout.places,
                fastmath=function.fastmath,
            )
            ufunc = loops.register(
                loop,
                typing.inputs,
                typing.outputs,
                name=f"xdev:{function.name}",
                doc=function.function.__doc__ or "",
                identity=None,
                signature=function.layout.text,
            )
            ufunc = self._ufuncs.setdefault(typing, ufunc)
        return ufunc

    def __call__(
        self,
        args: Sequence[Any],
        outs: tuple[Any, ...] | None = None,
        *,
        signature: Signature | None = None,
        **keywords: Any,
    ) -> Any:
        """Compute the function of NumPy arrays and numbers.

        Parameters
        ----------
        args : sequence
            One operand an input.
        outs : tuple of arrays and None, optional
            Where the results go; returned themselves.
        signature : (inputs, outputs), optional
            The results' dtype where no array is given for them; with signatures that of
            all that they give.
        **keywords
            ``axes``, ``axis``, ``keepdims``, ``casting``, ``order`` and ``subok``, as
            in NumPy.

        Raises
        ------
        TypeError, ValueError
            As NumPy raises them, with the way out. Nothing was written.
        """
        function = self._function
        dtype = None if signature is None else signature[1][0]
        inputs = function.resolve(args)
        outputs = outs or (None,) * len(function.layout.outputs)
        dtypes = [getattr(out, "dtype", None) for out in outputs]
        casting = keywords.get("casting", "same_kind")
        typing = function.specialise(inputs, dtypes, dtype, casting)
        ufunc = self.ufunc(typing)
        if dtype is not None and function.signatures:  # else NumPy casts safely alone
            keywords["signature"] = (*typing.inputs, *typing.outputs)
        numbers = strong(args, inputs, function.name, function.labels)
        operands = [_apart(np.asanyarray(x), outputs) for x in numbers]
        loop: Shape = ()
        if not {"axes", "axis", "keepdims"} & keywords.keys():
            loop, outputs = self._pooled(operands, outputs, typing)
        try:
            there = all(out is not None for out in outputs)
            if self._parallel and there and loop and not keywords:
                return self._shared(ufunc, operands, outputs, loop)
            return ufunc(*operands, out=outputs, **keywords)
        except (TypeError, ValueError) as error:
            explain(error, outs)
            raise

    def _pooled(
        self, operands: list[Any], outputs: tuple[Any, ...], typing: CoreSpecialisation
    ) -> tuple[Shape, tuple[Any, ...]]:
        """Return the loop's shape and the outputs, large new ones from xdev's pool."""
        layout, name = self._function.layout, self._function.name
        shapes = [None if out is None else np.shape(out) for out in outputs]
        loop, results = layout.shapes([x.shape for x in operands], shapes, name)
        if any(type(x) is not np.ndarray for x in operands):
            return loop, outputs  # a subclass decides on its results
        return loop, tuple(
            memory.host_array(shape, dtype)
            if out is None and prod(shape) * dtype.itemsize >= POOLED
            else out
            for out, shape, dtype in zip(outputs, results, typing.outputs, strict=True)
        )

    def _shared(
        self,
        ufunc: np.ufunc,
        operands: list[Any],
        outputs: tuple[Any, ...],
        loop: Shape,
    ) -> Any:
        """Compute in threads, by slices of the first loop dimension."""
        layout = self._function.layout
        whole = [
            np.broadcast_to(x, loop + x.shape[x.ndim - len(own) :])
            for x, own in zip(operands, layout.inputs, strict=True)
        ]
        writes = [
            out[(None,) * (len(loop) + len(own) - out.ndim)]
            for out, own in zip(outputs, layout.outputs, strict=True)
        ]

        def piece(start: int, stop: int) -> None:
            part = tuple(out[start:stop] for out in writes)
            ufunc(*(x[start:stop] for x in whole), out=part)

        threads.run(piece, loop[0])
        return outputs if len(outputs) > 1 else outputs[0]


def _apart(x: Any, outs: tuple[Any, ...]) -> Any:
    """Return an operand, copied where an output overlaps it.

    NumPy does so, too, but not for an output that is the very same view: it takes the
    loop for one that reads an element before it writes it.
    """
    work: Any = 1  # what NumPy spends, too; the stubs know only 0 and -1
    for out in outs:
        if isinstance(out, np.ndarray) and np.may_share_memory(out, x, max_work=work):
            return x.copy(order="K")
    return x
