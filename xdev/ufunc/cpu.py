"""A scalar function on NumPy arrays: one real NumPy ufunc for each of its typings.

Broadcasting, ``out=``, ``where=``, casting, overlap and the reductions are NumPy's own.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy import ndarray

from xdev import memory
from xdev._freed import is_freed, use_after_free
from xdev.compile import cpu as compiler, numpy_ufunc
from xdev.memory import hooks
from xdev.memory.arrays import large_array, transposed
from xdev.ufunc import layout
from xdev.ufunc.scalar import WEAK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.ufunc.scalar import Dtypes, ScalarFunction, Specialisation

POOLED = 64 * 1024  # results of so many bytes come from xdev's pool
NUMBERS = (bool, int, float, complex, np.generic)
WAYS = {
    " input ": "cast the arguments, or pass casting='unsafe'",
    "Cannot cast ufunc": "pass out= of the result's dtype, or casting='unsafe'",
    "non-broadcastable output": "pass out= of the broadcast shape, or leave it out",
    "read-only": "pass out= an array that may be written",
    "must be of ArrayType": "pass out= a NumPy array, or a tuple of them",
    "'out' tuple": "pass one array, or None, for each output",
    "could not be broadcast": "make the axes of inputs and out= match, or be 1",
}


@final
class _Tracking:
    """Whether small results come from the pool too: while anyone listens to it.

    Then no call is remembered, so that each goes the way that asks the pool.
    """

    def __init__(self) -> None:
        self.on = False
        self.loops: weakref.WeakSet[CpuLoops] = weakref.WeakSet()
        hooks.join(self)

    def watch(self, listeners: tuple[hooks.Listener, ...]) -> None:
        """Note who listens from now on."""
        self.on = bool(listeners)
        for loops in list(self.loops):
            loops.forget()

    def after_fork(self) -> None:
        """Keep what is known: who listened in the parent listens in the child."""


@final
class CpuLoops:
    """The NumPy ufuncs of one scalar function, made as its typings are.

    Attributes
    ----------
    exact : dict
        The ufuncs of one output by the dtypes of their inputs, for calls on NumPy
        arrays alone, each with the number of elements from which on results come from
        the pool, and their dtype.
    """

    def __init__(self, scalar: ScalarFunction, identity: int | str | None) -> None:
        self.scalar = scalar
        self.identity = identity
        self.exact: dict[Dtypes, tuple[np.ufunc, int, np.dtype[Any]]] = {}
        self._calls: dict[tuple[Any, ...], _Call] = {}
        self._ufuncs: dict[Specialisation, np.ufunc] = {}
        _TRACKING.loops.add(self)

    def forget(self) -> None:
        """Forget the calls, but no ufunc."""
        self.exact.clear()
        self._calls.clear()

    def ufunc(self, specialisation: Specialisation) -> np.ufunc:
        """Return the NumPy ufunc whose one loop is this typing."""
        made = self._ufuncs.get(specialisation)
        if made is None:
            loop = compiler.loop(
                specialisation.function,
                specialisation.inputs,
                specialisation.outputs,
                fastmath=self.scalar.fastmath,
            )
            made = numpy_ufunc.register(
                loop,
                specialisation.inputs,
                specialisation.outputs,
                name=f"xdev:{self.scalar.name}",
                doc=self.scalar.doc,
                identity=self.identity,
            )
            made = self._ufuncs.setdefault(specialisation, made)
        return made

    def __call__(
        self,
        args: Sequence[Any],
        out: tuple[Any, ...] | None = None,
        *,
        dtype: Any = None,
        **keywords: Any,
    ) -> Any:
        """Compute the function of NumPy arrays and numbers, as a ufunc does.

        Parameters
        ----------
        args : sequence
            One operand an input.
        out : tuple of arrays and None, optional
            Where the results go; returned themselves.
        dtype : dtype-like, optional
            The results' dtype; decides what is computed in, where it is another.
        **keywords
            ``where``, ``casting``, ``order`` and ``subok``, as in NumPy.

        Raises
        ------
        TypeError, ValueError
            As NumPy raises them, with the way out. Nothing was written.
        """
        inputs = self.scalar.resolve(args)
        if dtype is not None:
            specialisation = self.scalar.giving(inputs, np.dtype(dtype))
            keywords["signature"] = specialisation.types
        else:
            specialisation = self.scalar.specialise(inputs)
        ufunc = self.ufunc(specialisation)
        operands = strong(args, inputs)
        if dtype is None:
            self._learn(args, inputs, ufunc, specialisation.outputs)
        if out is None:
            out = _pooled(operands, specialisation.outputs, **keywords)
        if out is not None:
            keywords["out"] = out
        try:
            return ufunc(*operands, **keywords)
        except (TypeError, ValueError) as error:
            raise explained(error) from error

    def again(self, args: Sequence[Any], out: Any = None) -> Any:
        """Repeat a call that differs from an earlier one in values and shapes alone.

        Returns
        -------
        array, scalar, tuple or None
            The result; None: there was no such call.
        """
        kinds = [x.dtype if type(x) is ndarray else type(x) for x in args]
        call = self._calls.get(tuple(kinds))
        if call is None:
            return None
        if out is not None and (type(out) is not ndarray or len(call.outputs) > 1):
            return None
        if call.casts:
            args = list(args)
            for k, cast in call.casts:
                args[k] = cast(args[k])
        if out is None:
            size = 1
            for x in args:
                size *= x.size
            if size < call.few:
                return call.ufunc(*args)
            out = _plain(args, call) or _pooled(args, call.outputs)
            if out is None:
                return call.ufunc(*args)
        try:
            return call.ufunc(*args, out=out)
        except (TypeError, ValueError) as error:
            raise explained(error, out) from error

    def _learn(
        self, args: Sequence[Any], inputs: Dtypes, ufunc: np.ufunc, outputs: Dtypes
    ) -> None:
        """Remember a call on NumPy arrays and numbers."""
        if _TRACKING.on:
            return
        if not all(type(x) is ndarray or isinstance(x, NUMBERS) for x in args):
            return
        few = POOLED // max(dtype.itemsize for dtype in outputs)
        if len(outputs) == 1 and all(type(x) is ndarray for x in args):
            self.exact[inputs] = ufunc, few, outputs[0]
        casts = [(k, inputs[k].type) for k, x in enumerate(args) if type(x) in WEAK]
        casts += [(k, np.bool_) for k, x in enumerate(args) if type(x) is bool]
        key = tuple(x.dtype if type(x) is ndarray else type(x) for x in args)
        self._calls[key] = _Call(ufunc, casts, outputs, few)


_TRACKING = _Tracking()


@final
@dataclass(frozen=True, slots=True)
class _Call:
    """What a call needs: the ufunc, types for numbers, and when results are small."""

    ufunc: np.ufunc
    casts: list[tuple[int, Any]]
    outputs: Dtypes
    few: int


def strong(args: Sequence[Any], dtypes: Dtypes) -> list[Any]:
    """Return the operands with Python numbers in the dtypes that they resolved to."""
    return [
        dtype.type(x) if type(x) in WEAK else x
        for x, dtype in zip(args, dtypes, strict=True)
    ]


def explained(error: Exception, out: Any = None) -> Exception:
    """Return NumPy's error with the way out, as the built-in kind that it is."""
    if is_freed(out):
        return use_after_free(out, "out=")
    text = str(error)
    way = next((way for words, way in WAYS.items() if words in text), None)
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return error if way is None else kind(f"{text}: {way}")


def _plain(operands: Sequence[Any], call: _Call) -> tuple[Any] | None:
    """Return one large result where its layout is plain: all arrays alike, in C order.

    Operands are NumPy's own arrays and numbers.
    """
    like: Any = None
    for x in operands:
        if type(x) is ndarray:
            if not x.flags.c_contiguous or (like is not None and x.shape != like.shape):
                return None
            like = x
    if like is None or like.size < call.few or len(call.outputs) > 1:
        return None
    return (large_array(like.shape, call.outputs[0], like.size),)


def _pooled(
    operands: Sequence[Any],
    outputs: Dtypes,
    *,
    where: Any = True,
    order: str = "K",
    **_: Any,
) -> tuple[Any, ...] | None:
    """Return large results from xdev's pool, in the layout that NumPy would choose."""
    arrays = [x for x in operands if isinstance(x, ndarray)]
    if isinstance(where, ndarray):
        arrays.append(where)
    if not arrays or any(type(x) is not ndarray for x in arrays):
        return None  # NumPy scalars; or a subclass, which decides on its results
    shape, size = arrays[0].shape, arrays[0].size
    if any(x.shape != shape for x in arrays):
        try:
            whole = np.broadcast(*arrays)
        except ValueError:
            return None  # NumPy words the refusal
        shape, size = whole.shape, whole.size
    least = 1 if _TRACKING.on else POOLED
    large = [size * dtype.itemsize >= least for dtype in outputs]
    if not shape or not any(large):
        return None
    pairs = zip(large, outputs, strict=True)
    return tuple(_array(arrays, shape, d, order) if big else None for big, d in pairs)


def _array(
    arrays: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any], order: str
) -> Any:
    if order == "K" and not all(x.flags.c_contiguous for x in arrays):
        axes = layout.axes([layout.strides(x, shape) for x in arrays])
        made = memory.host_array(tuple(shape[axis] for axis in axes), dtype)
        return transposed(made, sorted(range(len(axes)), key=axes.__getitem__))
    fortran = order == "F" or (order == "A" and all(x.flags.fnc for x in arrays))
    return memory.host_array(shape, dtype, order="F" if fortran else "C")
