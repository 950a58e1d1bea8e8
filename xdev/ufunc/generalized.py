"""``@guvectorize``: a generalized ufunc that runs where its inputs live."""

from __future__ import annotations

import functools
import re
import threading
from math import prod
from operator import index, is_not
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from xdev.compile.grid import Argument, Grid
from xdev.errors import quoted
from xdev.ufunc import kernels, sources
from xdev.ufunc.cpu import report_errors
from xdev.ufunc.cuda import Result, remember
from xdev.ufunc.cuda_operands import Array, Number, handed
from xdev.ufunc.dtypes import chosen, dtypes_of, parse_types, refuse_casts, types_of
from xdev.ufunc.grids import CUDA, HOST
from xdev.ufunc.layout import Shape, broadcast, collapse, picked, stretch
from xdev.ufunc.rewriting import WholeArrays
from xdev.ufunc.scalar import check_options
from xdev.ufunc.sources import CountingParameters
from xdev.ufunc.ufuncs import Definition, Ufunc

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Sequence

    from xdev.compile.formulas import Dtypes
    from xdev.ufunc.dtypes import Signature, Types
    from xdev.ufunc.sources import FunctionScope


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
        return Ufunc(CoreFunction(plain, core, explicit, bool(fastmath)), target)

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
                f"{signature}: operand {k} is ({','.join(own)}) in {layout.text}, so "
                f"that its type is an array of {max(len(own), 1)} axes"
            )
    return types


class CoreSpecialisation(NamedTuple):
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
        fastmath: bool,
    ) -> None:
        names = kernels.check_plain(function, "guvectorize", "def f(x, y, out)")
        self.nin, self.nout = nin, nout = len(layout.inputs), len(layout.outputs)
        if len(names) != nin + nout:
            raise TypeError(
                f"{function.__name__} has {len(names)} parameters, but {layout.text} "
                f"needs {nin + nout}: first {nin} inputs, then {nout} outputs"
            )
        indices = (", ".join("ijklmn"[: len(own)]) or "0" for own in layout.outputs)
        places = dict(zip(names[nin:], indices, strict=True))
        kernels.refuse_unwritten(function, places, unnamed=True)
        self.function, self.layout, self.fastmath = function, layout, fastmath
        #: The signatures by the dtypes of their inputs and outputs.
        self._types = {
            (dtypes_of(types[:nin]), dtypes_of(types[nin:])): types
            for types in signatures
        }
        self.name: str = function.__name__
        self.names, self.labels = names, names[:nin]
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

    def reduced(self, ufunc: Ufunc) -> sources.Reduced:
        """Pickle a ufunc by the Python function and the options."""
        options = self.layout, tuple(self._types.values()), self.fastmath
        return sources.pickled(ufunc, _remake, self.function, ufunc.target, *options)

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
        if self._types:
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
        pairs = zip(results, outputs, strict=True)
        casts = [("the result", own, y) for own, y in pairs if y is not None]
        refuse_casts(self.name, casts, casting)
        key = dtypes_of(types[: self.nin]), dtypes_of(types[self.nin :])
        if key not in self._specialisations:  # by identity, so the first one stays
            self._specialisations.setdefault(key, self._make(types, *key))
        return self._specialisations[key]

    def _make(
        self, types: Types, inputs: Dtypes, outputs: Dtypes
    ) -> CoreSpecialisation:
        for label, (dtype, _) in zip(self.names, types, strict=True):
            kernels.check_dtype(dtype, f"{self.name}: {label}")
        arguments = tuple(
            Argument(dtype, ndim, contiguous=False, writable=k >= len(inputs))
            for k, (dtype, ndim) in enumerate(types)
        )
        cores = dict(zip(self.names, self.layout.operands, strict=True))
        working = kernels.result_type(dtype for dtype, _ in types)

        def loops(tree: ast.FunctionDef, scope: FunctionScope) -> None:
            WholeArrays(tree, scope, cores).generic_visit(tree)

        function = kernels.typed(self.function, working, loops)
        return CoreSpecialisation(function, arguments, inputs, outputs)


def _remake(function: Any, target: str | None, *options: Any) -> Ufunc:
    return Ufunc(CoreFunction(function, *options), target)


# Core dimensions: ``"(n),(n)->()"``, and the shapes that they stand for.
NAME = r"\s*(?:[A-Za-z_]\w*|[1-9]\d*)\s*"
OPERAND = rf"\s*\(\s*(?:{NAME}(?:,{NAME})*)?\)\s*"
WHOLE = re.compile(rf"({OPERAND}(?:,{OPERAND})*)->({OPERAND}(?:,{OPERAND})*)")


class Layout(NamedTuple):
    """The core dimensions of each operand, by name; a number is a fixed length."""

    text: str
    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, text: object) -> Layout:
        """Read a signature.

        Examples
        --------
        >>> Layout.parse("(m,n),(n)->(m)").inputs
        (('m', 'n'), ('n',))
        """
        match = WHOLE.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise TypeError(
                f"{quoted(text)} is not a layout of core dimensions: write one pair of "
                "brackets an operand, '(m,n),(n)->(m)'"
            )
        inputs, outputs = (
            tuple(
                tuple(name.strip() for name in operand.split(",") if name.strip())
                for operand in re.findall(r"\(([^()]*)\)", part)
            )
            for part in match.groups()
        )
        return cls(match[0].strip(), inputs, outputs)

    @property
    def operands(self) -> tuple[tuple[str, ...], ...]:
        """The names of all operands' core dimensions."""
        return self.inputs + self.outputs

    def shapes(
        self, inputs: Sequence[Shape], outputs: Sequence[Shape | None], name: str
    ) -> tuple[Shape, list[Shape]]:
        """Return the loop shape, and the shape of every output."""
        names = (n for own in self.operands for n in own)
        lengths: dict[str, int] = {n: int(n) for n in names if n.isdigit()}
        reads: list[Shape] = []
        writes: list[Shape] = []
        for k, (shape, own) in enumerate(
            zip((*inputs, *outputs), self.operands, strict=True)
        ):
            if shape is None:
                continue
            split = max(len(shape) - len(own), 0)
            (writes if k >= len(inputs) else reads).append(shape[:split])
            core = zip(own, shape[split:], strict=False)
            fit = all(lengths.setdefault(d, n) == n for d, n in core)
            if len(shape) < len(own) or not fit:
                known = [f"{d} is {n}" for d, n in lengths.items() if not d.isdigit()]
                where = f", where {', '.join(known)}" if known else ""
                raise ValueError(
                    f"{name}: operand {k} of shape {shape} does not fit its core "
                    f"dimensions ({','.join(own)}) in {self.text}{where}"
                )
        unknown = [n for own in self.outputs for n in own if n not in lengths]
        if unknown:
            raise ValueError(
                f"{name}: no input has the core dimension {unknown[0]} of {self.text}: "
                "pass out= of the length that it shall have"
            )
        # Unlike other ufuncs' outputs, these may lack leading dimensions of length 1.
        most = max(map(len, reads), default=0)
        if any(self.operands):
            writes = [(1,) * (most - len(shape)) + shape for shape in writes]
        loop = broadcast(reads, writes, name)
        return loop, [loop + tuple(lengths[n] for n in own) for own in self.outputs]

    def keeping(self, name: str, keepdims: bool) -> Layout:
        """Return the layout that ``keepdims=`` says: outputs as inputs, of length 1."""
        if not isinstance(keepdims, bool | np.bool_):
            raise TypeError(f"{name}: keepdims must be a bool, not {quoted(keepdims)}")
        counts = {len(own) for own in self.inputs}
        if keepdims and (any(self.outputs) or len(counts) > 1 or 0 in counts):
            raise TypeError(
                f"{name}: keepdims needs inputs of as many core dimensions each, and "
                f"outputs without any, not {self.text}"
            )
        kept = (("1",) * len(self.inputs[0]),) * len(self.outputs)
        return self._replace(outputs=kept) if keepdims else self

    def axes(self, name: str, axis: Any) -> list[Shape]:
        """Return the axes of each operand's core dimensions, as ``axis=`` says."""
        counts = [len(own) for own in self.operands]
        if axis is None:
            return [tuple(range(-count, 0)) for count in counts]
        if max(counts) != 1:
            message = f"{name}: axis needs one core dimension: move several with "
            raise TypeError(message + "xdev.moveaxis")
        return [(index(axis),) * count for count in counts]


# Calls: a kernel whose points are the loop indices, on every device.

#: What a call with operands of some layouts does: the function's typing; how to make
#: results that are not given; and what computes them of addresses and numbers, None
#: where there are no loop indices, or operands are of other dtypes.
CorePlan = tuple[CoreSpecialisation, list[Result], Any]


@final
class CoreLoops:
    """A function of core arrays, on the arrays of one kind of device.

    Where ``shared``, threads of the CPU share the loop indices.
    """

    def __init__(
        self, function: CoreFunction, grids: Any, *, shared: bool = True
    ) -> None:
        self._function, self._grids, self._shared = function, grids, shared
        self._lock = threading.Lock()  # guards what is compiled: each is made once
        self._machines: dict[Any, Any] = {}
        self._plans: dict[Any, CorePlan] = {}

    def __call__(
        self,
        args: Sequence[Any],
        outs: tuple[Any, ...] | None = None,
        *,
        subok: bool = True,
        **options: Any,
    ) -> Any:
        """Compute the function of arrays and numbers on their device."""
        function, grids, name = self._function, self._grids, self._function.name
        named = zip(args, function.labels, strict=True)
        inputs = [grids.operand(x, name, label) for x, label in named]
        owners = outs or (None,) * function.nout
        outputs = [None if x is None else grids.written(x, name) for x in owners]
        arrays = [x for x in (*inputs, *outputs) if isinstance(x, Array)]
        given = tuple(x.owner for x in inputs if isinstance(x, Array))
        with grids.on_device(arrays, name) as place, grids.ordered(arrays):
            results = self._compute(place, inputs, outputs, options)
        whole = tuple(
            grids.returned(y.owner, given, function, k, subok) if x is None else x
            for k, (x, y) in enumerate(zip(owners, results, strict=True))
        )
        return whole if len(whole) > 1 else whole[0]

    def _compute(
        self,
        place: Any,
        inputs: Sequence[Array | Number],
        outputs: Sequence[Array | None],
        options: dict[str, Any],
    ) -> list[Array]:
        """Compute, after the results that nobody gave are made; return them all."""
        function, grids = self._function, self._grids
        layouts = (x and x.layout for x in (*inputs, *outputs))
        key = place, repr(options), *layouts
        plan = self._plans.get(key) or remember(
            self._plans, key, self._plan(place, inputs, outputs, **options)
        )
        (typing, new, run), outs = plan, [y for y in outputs if y is not None]
        # An output may be an input: a point may read what others write.
        ready = [
            grids.copied(x, dtype)
            if isinstance(x, Array) and (not _fits(x, dtype) or any(map(x.meets, outs)))
            else x
            for x, dtype in zip(inputs, typing.inputs, strict=True)
        ]
        targets = [
            y
            if y is None or _fits(y, dtype)
            else grids.made(Result.like(y.shape, [], dtype, "C"))
            for y, dtype in zip(outputs, typing.outputs, strict=True)
        ]
        if any(map(is_not, (*ready, *targets), (*inputs, *outputs))):
            results = self._compute(place, ready, targets, options)
            for y, result in zip(outputs, results, strict=True):
                if y is not None and result.owner is not y.owner:
                    grids.assign(y, result)
            return results
        results = [
            grids.made(result) if y is None else y
            for y, result in zip(outputs, new, strict=True)
        ]
        if run is not None:
            dtypes = (*typing.inputs, *typing.outputs)
            operands, name = [*inputs, *results], function.name
            report = run(handed(operands, dtypes, name, function.names))
            if report and report[0]:
                report_errors(f"xdev:{name}", report[0])
        return results

    def _plan(
        self,
        place: Any,
        inputs: Sequence[Array | Number],
        outputs: Sequence[Array | None],
        *,
        signature: Signature | None = None,
        casting: str = "same_kind",
        order: Any = "K",
        axis: Any = None,
        keepdims: bool = False,
    ) -> CorePlan:
        """Find the typing and the shapes, and compile."""
        function, nin, name = self._function, len(inputs), self._function.name
        layout = function.layout.keeping(name, keepdims)
        core_axes = layout.axes(name, axis)
        np.asarray((), order=order)  # which refuses others than NumPy's
        can_cast: Any = np.can_cast
        can_cast("?", "?", casting)  # likewise
        typing = function.specialise(
            function.resolve([x.owner if isinstance(x, Number) else x for x in inputs]),
            [None if y is None else y.dtype for y in outputs],
            None if signature is None else signature[1][0],
            casting,
        )
        reads = [
            self._turned(x, own) if isinstance(x, Array) else x
            for x, own in zip(inputs, core_axes, strict=False)
        ]
        written = [
            None if y is None else self._turned(y, own).shape
            for y, own in zip(outputs, core_axes[nin:], strict=True)
        ]
        shapes = [x.shape if isinstance(x, Array) else () for x in reads]
        loop, shapes = layout.shapes(shapes, written, name)
        results, writes = [], []
        for y, own, shape, dtype in zip(
            outputs, core_axes[nin:], shapes, typing.outputs, strict=True
        ):
            placing = self._order(own, len(shape))
            placed = tuple(shape[placing.index(k)] for k in range(len(shape)))
            result = Result.like(placed, [], dtype, order)
            results.append(result)
            writes.append(self._turned(y or result.laid, own))
        run, operands = None, [*reads, *writes]
        dtypes = (*typing.inputs, *typing.outputs)
        if prod(loop) and all(
            isinstance(x, Number) or x.dtype == dtype
            for x, dtype in zip(operands, dtypes, strict=True)
        ):
            run = self._run(place, typing, layout, loop, operands)
        return typing, results, run

    def _order(self, own: Shape, ndim: int) -> Shape:
        """Return the axes of an operand, those of its core dimensions last."""
        last = normalize_axis_tuple(own, ndim, self._function.name)
        return (*(axis for axis in range(ndim) if axis not in last), *last)

    def _turned(self, x: Array, own: Shape) -> Array:
        """Return an array with its core dimensions last."""
        order = self._order(own, len(x.shape))
        return x.laid_out(picked(x.shape, order), picked(x.strides, order))

    def _run(
        self,
        place: Any,
        typing: CoreSpecialisation,
        layout: Layout,
        loop: Shape,
        operands: list[Any],
    ) -> Any:
        """Return what computes for every loop index, of operands with cores last."""
        function, grids = self._function, self._grids
        splits = [
            len(x.shape) - len(own) if isinstance(x, Array) else 0
            for x, own in zip(operands, layout.operands, strict=True)
        ]
        outer = [
            stretch(x.shape[:at], x.strides[:at], loop)
            for x, at in zip(operands, splits, strict=True)
            if isinstance(x, Array)
        ]
        # Outputs first: theirs is the order of the loop dimensions.
        count = function.nout
        extents, steps = collapse(loop, outer[-count:] + outer[:-count])
        following = iter(steps[count:] + steps[:count])
        cores = list(typing.arguments)
        for k, (x, at, core) in enumerate(zip(operands, splits, cores, strict=True)):
            if isinstance(x, Number):
                continue
            shape, strides = x.shape[at:], x.strides[at:]
            if core.ndim and not function.layout.operands[k]:  # one element
                shape, strides = (1,), (core.dtype.itemsize,)
            contiguous = core.ndim is not None and x.laid_out(shape, strides).contiguous
            cores[k] = core._replace(contiguous=contiguous)
            operands[k] = x.laid_out(extents + shape, next(following) + strides)
        points = grids.points(extents, function.name)
        kinds = tuple(
            Argument(core.dtype, len(x.shape) if isinstance(x, Array) else None)
            for x, core in zip(operands, cores, strict=True)
        )
        narrow = points.narrow([x for x in operands if isinstance(x, Array)])
        key = place, typing, kinds, *cores, narrow
        with self._lock:
            if key not in self._machines:
                own, fastmath = typing.function, function.fastmath
                grid = Grid(own, points.dimensions, kinds, fastmath, cores=tuple(cores))
                self._machines[key] = grids.compiled(grid, narrow=narrow)
        return grids.run(
            self._machines[key], kinds, points, operands, shared=self._shared
        )


def _fits(x: Array, dtype: np.dtype[Any]) -> bool:
    return x.dtype == dtype and x.aligned
