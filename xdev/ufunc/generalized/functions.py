"""The function of a generalized ufunc, typed for the operands of a call."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.compile.grid import Argument
from xdev.ufunc.inputs import Counts
from xdev.ufunc.kernels.arguments import SUPPORTED, result_type
from xdev.ufunc.kernels.functions import check_plain, typed
from xdev.ufunc.rewriting import WholeArrays

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Sequence

    from xdev.ufunc.generalized.layouts import Layout
    from xdev.ufunc.signatures import Types
    from xdev.ufunc.sources import Scope

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
        cores = dict(zip(self.names, self.layout.operands, strict=True))
        kinds = dict(zip(self.names, arguments, strict=True))
        working = result_type(dtype for dtype, _ in types)

        def also(tree: ast.FunctionDef, scope: Scope) -> None:
            WholeArrays(tree, scope, cores).generic_visit(tree)

        function = typed(self.function, kinds, working, also)
        return Specialisation(function, arguments, inputs, outputs)
