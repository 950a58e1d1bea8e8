"""The function of a generalized ufunc, typed for the operands of a call."""

from __future__ import annotations

import ast
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.compile.grid import Argument
from xdev.ufunc import sources
from xdev.ufunc.inputs import Counts
from xdev.ufunc.kernels.arguments import SUPPORTED, result_type
from xdev.ufunc.kernels.functions import check_plain, typed
from xdev.ufunc.sources import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from xdev.ufunc.generalized.layouts import Layout
    from xdev.ufunc.signatures import Types

# Assignments to whole arrays in a function of core arrays, written as loops.
#
# For ``out[:] = (x - m) / 2`` compilers ask for new memory, which compiled loops do
# not have: they cannot know that ``x`` and ``out`` have one shape, as the layout
# says.

COMPARISONS = ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq
OF_ELEMENTS = np.where, np.clip  # beside ufuncs


@final
class WholeArrays(ast.NodeTransformer):
    """Rewrites ``out[:] = x`` to ``for k in range(out.shape[0]): out[k] = x[k]``.

    Parameters
    ----------
    function : callable
        The function whose source is rewritten.
    dimensions : mapping of str to tuple of str
        The core dimensions of each parameter.
    """

    def __init__(
        self, function: Callable[..., Any], dimensions: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._outside, self._dimensions = sources.outside(function), dimensions

    def __call__(self, tree: ast.FunctionDef) -> dict[str, Any]:
        """Rewrite a function; return the values of the names that it now reads."""
        nodes = [*ast.walk(tree)]
        names = {node for node in nodes if isinstance(node, ast.Name)}
        # x += y writes into the array, and binds no name anew.
        names -= {node.target for node in nodes if isinstance(node, ast.AugAssign)}
        anew = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
        self._arrays = {k: v for k, v in self._dimensions.items() if k not in anew}
        self._scope = Scope(tree, self._outside)
        self.generic_visit(tree)
        return self._scope.constants

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Leave functions inside alone, whose parameters are others."""
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Write a loop where a whole array is assigned from others."""
        target = node.targets[0]
        if not isinstance(target, ast.Subscript) or len(node.targets) > 1:
            return node
        return self._loop(node, target)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Write a loop where something is added to a whole array."""
        return self._loop(node, node.target)

    def _loop(self, node: ast.Assign | ast.AugAssign, target: ast.expr) -> Any:
        if not (own := self.whole(target)):
            return node
        each = _Element(self, own)
        value = each.of(node.value)
        if isinstance(node, ast.Assign) and not each.reads:
            return node  # a number, of which compilers fill the array
        element = each.at(target, own, ast.Store())
        loop: ast.stmt = (
            ast.Assign([element], value)
            if isinstance(node, ast.Assign)
            else ast.AugAssign(element, node.op, value)
        )
        for axis in reversed(range(len(own))):
            shape = ast.Attribute(_name(target), "shape", ast.Load())
            length = ast.Subscript(shape, ast.Constant(axis), ast.Load())
            counted = self._scope.name(target, "range", range)  # as RANGE has it
            ranged = ast.Call(counted, [length], [])
            loop = ast.For(ast.Name(each.axes[axis], ast.Store()), ranged, [loop], [])
        return [ast.copy_location(made, node) for made in (*each.before, loop)]

    def whole(self, node: ast.expr) -> tuple[str, ...]:
        """Return the dimensions of a parameter all of which is there, else none."""
        name = node
        if isinstance(node, ast.Subscript):
            name, index = node.value, node.slice
            each = index.elts if isinstance(index, ast.Tuple) else [index]
            if any(ast.unparse(one) not in {":", "..."} for one in each):
                return ()
        return self._arrays.get(name.id, ()) if isinstance(name, ast.Name) else ()

    def of_elements(self, node: ast.Call) -> bool:
        """Say whether a call gives for elements what it gives for arrays."""
        function = self._scope.static(node.func)
        known = isinstance(function, np.ufunc) or any(
            function is one for one in OF_ELEMENTS
        )
        return (known or self._scope.builtin(node.func) == "abs") and not (
            node.keywords or any(isinstance(one, ast.Starred) for one in node.args)
        )


@final
class _Element:
    """The element of an expression of whole arrays, at the indices of a loop."""

    def __init__(self, arrays: WholeArrays, dimensions: tuple[str, ...]) -> None:
        self._arrays, self._dimensions = arrays, dimensions
        self.axes = [f"xdev_axis_{k}" for k in range(len(dimensions))]
        #: What is computed before the loop, and whether an array is read in it.
        self.before: list[ast.stmt] = []
        self.reads = False

    def of(self, node: ast.expr) -> ast.expr:
        """Return the element of an expression; what is no array's stays as it is."""
        own = self._arrays.whole(node)
        if own and self._dimensions[-len(own) :] == own:  # as NumPy broadcasts
            self.reads = True
            return self.at(node, own, ast.Load())
        match node:
            case ast.BinOp(left, op, right) if not isinstance(op, ast.MatMult):
                node = ast.BinOp(self.of(left), op, self.of(right))
            case ast.UnaryOp(op, operand) if not isinstance(op, ast.Not):
                node = ast.UnaryOp(op, self.of(operand))
            case ast.Compare(left, [op], [right]) if isinstance(op, COMPARISONS):
                node = ast.Compare(self.of(left), [op], [self.of(right)])
            case ast.Call() if self._arrays.of_elements(node):
                node = ast.Call(node.func, [self.of(one) for one in node.args], [])
            case ast.Constant() | ast.Name():
                pass
            case _:
                node = self._before(node)
        return node

    def _before(self, node: ast.expr) -> ast.Name:
        """Return the name of what is computed before the loop."""
        name = f"xdev_value_{len(self.before)}"
        self.before.append(ast.Assign([ast.Name(name, ast.Store())], node))
        return ast.Name(name, ast.Load())

    def at(
        self, node: ast.expr, own: tuple[str, ...], context: ast.expr_context
    ) -> ast.Subscript:
        """Return the element of an array of these dimensions."""
        axes: list[ast.expr] = [
            ast.Name(name, ast.Load()) for name in self.axes[-len(own) :]
        ]
        index = axes[0] if len(axes) == 1 else ast.Tuple(axes, ast.Load())
        return ast.Subscript(_name(node), index, context)


def _name(node: ast.expr) -> ast.Name:
    """Return the array's name in ``x``, or in ``x[:]``."""
    name = node.value if isinstance(node, ast.Subscript) else node
    return ast.Name(ast.unparse(name), ast.Load())


Dtypes = tuple[np.dtype[Any], ...]


@final
@dataclass(frozen=True, slots=True, eq=False)  # a key of dicts: hashed as an object
class Specialisation:
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
        self._made: dict[tuple[Dtypes, Dtypes], Specialisation] = {}

    def filled(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a call's inputs, of which there are no defaults.

        Raises
        ------
        TypeError
            They are too few.
        """
        if len(args) < self.nin:
            raise TypeError(self.many(len(args), self.nout))
        return args

    def many(self, given: int, nout: int) -> str:
        """Return the text for a call with a wrong number of arguments."""
        takes = f"{self.nin} inputs and then up to {nout} outputs"
        return f"{self.name}() takes {takes}, not {given} arguments"

    @property
    def made(self) -> tuple[Specialisation, ...]:
        """The typings made so far."""
        return tuple(dict.fromkeys(self._made.values()))

    @cached_property
    def _counts(self) -> Counts:
        return Counts(self.function)

    def resolve(self, args: Sequence[Any]) -> Dtypes:
        """Return the dtypes of inputs, as :meth:`Counts.resolve` does."""
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
    ) -> Specialisation:
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
            given = (working if d is None else d.newbyteorder("=") for d in outputs)
            types = tuple(
                (own_dtype, None if k < len(native) and not own else max(len(own), 1))
                for k, (own_dtype, own) in enumerate(
                    zip((*native, *given), self.layout.operands, strict=True)
                )
            )
        dtypes = tuple(dtype for dtype, _ in types)
        key = dtypes[: len(native)], dtypes[len(native) :]
        with self._lock:
            if key not in self._made:
                self._made[key] = self._make(types, *key)
            return self._made[key]

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
        taken = f"takes ({', '.join(map(str, inputs))})"
        if dtype is None:
            flaw, way = f"{taken} safely", "Cast the arguments"
        elif able:
            flaw = f"that gives {asked} {taken} with casting={casting!r}"
            way = "Cast the arguments, pass casting='unsafe'"
        else:
            flaw, way = f"gives {asked}", "Leave out dtype="
        message = f"{self.name}: no signature {flaw}; it has {listed}. {way}, or "
        raise TypeError(message + "add a signature")

    def _make(self, types: Types, inputs: Dtypes, outputs: Dtypes) -> Specialisation:
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
        whole = WholeArrays(
            self.function, dict(zip(self.names, self.layout.operands, strict=True))
        )
        kinds = dict(zip(self.names, arguments, strict=True))
        working = result_type(dtype for dtype, _ in types)
        function = typed(self.function, kinds, working, whole)
        return Specialisation(function, arguments, inputs, outputs)
