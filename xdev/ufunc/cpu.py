"""A scalar function on NumPy arrays: one real NumPy ufunc for each of its typings.

Broadcasting, ``out=``, ``where=``, casting, overlap and the reductions are NumPy's own.
Several threads share large calls, as they do those of the facade's functions.
"""

from __future__ import annotations

import sys
import warnings
from functools import reduce
from math import prod
from operator import or_
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy import ndarray

from xdev import _config, native
from xdev.compile import digests, loops as code, threads
from xdev.compile.formulas import BITS, Dtypes, is_bfloat16
from xdev.compile.threads import LINE, PYTHON_PIECES
from xdev.errors import users_level
from xdev.memory import hooks
from xdev.ufunc import argument_errors, layout
from xdev.ufunc.dtypes import WEAK, dtype_of, fits, misfit, resolve, strong
from xdev.ufunc.foreign import NUMBERS
from xdev.ufunc.layout import POOLED
from xdev.ufunc.ufuncs import kinds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdev._plain_calls import Plans
    from xdev.ufunc.dtypes import Signature, Specialisation
    from xdev.ufunc.scalar import ScalarFunction

REFUSALS = TypeError, ValueError, OverflowError
SHORT = 32  # elements of a row that are too few for one call of the inner loop


@final
class CpuLoops:
    """The NumPy ufuncs of one scalar function; ``plans`` remember its calls."""

    def __init__(
        self, scalar: ScalarFunction, identity: int | str | None, plans: Plans
    ) -> None:
        self.scalar = scalar
        self.identity = identity
        self._plans = plans
        self._made: dict[Specialisation, Loop] = {}
        #: Whether small results come from the pool too: while anyone listens to it.
        #: Then no call is remembered, so that each goes the way that asks the pool.
        self.tracked = False
        hooks.join(self)

    def watch(self, listeners: tuple[hooks.Listener, ...]) -> None:
        """Note who listens from now on, and forget the calls, but no ufunc."""
        self.tracked = bool(listeners)
        self._plans.forget()

    def after_fork(self) -> None:
        """Keep what is known: who listened in the parent listens in the child."""

    def loop(self, specialisation: Specialisation) -> Loop:
        """Return the NumPy ufunc whose one loop is this typing."""
        made = self._made.get(specialisation)
        if made is None:
            types = specialisation.inputs, specialisation.outputs
            identity = self.identity
            options: Any = {"fastmath": self.scalar.fastmath}
            options["reorderable"] = identity is not None  # as NumPy has it

            def make() -> tuple[bytes, str]:
                from xdev.compile import compilers  # not where the code is on disk

                return compilers.loop(specialisation.function, *types, **options)

            parts = specialisation.types, *options.values()
            digest, name = specialisation.digest, specialisation.name
            loop = digests.load_loop(
                digest, parts, name, make, specialisation.unchanged
            )
            name, doc = f"xdev:{self.scalar.name}", self.scalar.doc
            ufunc = code.register(loop, *types, name=name, doc=doc, identity=identity)
            made = self._made.setdefault(specialisation, Loop(ufunc, loop, *types))
        return made

    def at(self, a: Any, indices: Any, *values: Any) -> None:
        """Work in place at indices, as :meth:`numpy.ufunc.at` does."""
        values = tuple(x if type(x) in WEAK else np.asanyarray(x) for x in values)
        name = f"{self.scalar.name}.at"
        dtypes = resolve((a, *values), name)
        ufunc = self.loop(self.scalar.specialise(dtypes)).ufunc
        labels = self.scalar.labels[1:]
        ufunc.at(a, indices, *strong(values, dtypes[1:], name, labels))

    def reduce(self, array: Any, axis: Any, dtype: Any, out: Any) -> Any:
        """Reduce as :meth:`numpy.ufunc.reduce` does."""
        return self.fold("reduce", (array,), axis, dtype, out)

    def fold(
        self,
        name: str,
        inputs: tuple[Any, ...],
        axis: Any,
        dtype: Any,
        out: Any,
        **keywords: Any,
    ) -> Any:
        """Do what a folding method of :class:`numpy.ufunc` does."""
        array, scalar = inputs[0], self.scalar
        target = out.dtype if isinstance(out, ndarray) else None
        typing = scalar.folding(dtype_of(array), target, dtype)
        dtype = typing.outputs[0]
        if name == "accumulate" and out is None and type(array) is ndarray:
            outs = layout.pooled((array,), (dtype,), least=0)
            out = outs and outs[0]
        call = getattr(self.loop(typing).ufunc, name)
        try:
            return call(*inputs, axis, dtype, out, **keywords)
        except (TypeError, ValueError) as error:
            for case in argument_errors.REFUSED:
                if case in str(error) and argument_errors.raised_by_numpy(error):
                    raise argument_errors.reduction_error(case, scalar.name) from error
            argument_errors.explain(error)
            raise
        except OverflowError as error:
            initial = (keywords.get("initial"),), (dtype,)
            refusal = misfit(*initial, f"{scalar.name}.reduce", ("initial",))
            raise refusal or error from None

    def __call__(
        self,
        args: Sequence[Any],
        out: tuple[Any, ...] | None = None,
        *,
        signature: Signature | None = None,
        **keywords: Any,
    ) -> Any:
        """Compute the function of NumPy arrays and numbers, as a ufunc does.

        ``signature`` are the dtypes that are asked for. Where an error is raised
        nothing was written.
        """
        inputs = self.scalar.resolve(args)
        if signature is not None:
            specialisation = self.scalar.giving(inputs, signature)
            taken = specialisation.inputs
            keywords["signature"] = (*taken, *specialisation.outputs)
            each = zip(args, inputs, taken, strict=True)  # numbers are cast but once
            inputs = tuple(to if fits(x, to) else own for x, own, to in each)
        else:
            specialisation = self.scalar.specialise(inputs)
        if signature is not None or not _numpy_agrees(args, inputs):
            args = strong(args, inputs, self.scalar.name, self.scalar.labels)
        loop, operands = self.loop(specialisation), (*args, *(out or ()))
        plain = all(type(x) is ndarray or isinstance(x, NUMBERS) for x in args)
        plain = plain and all(type(x) is ndarray for x in out or ())
        if keywords or self.tracked or not plain:
            if out is None:
                least = 1 if self.tracked else POOLED
                out = layout.pooled(args, loop.outputs, least=least, **keywords)
            try:
                outs = out or (None,) * len(loop.outputs)
                return loop.ufunc(*args, out=outs, **keywords)
            except REFUSALS as error:
                self.explain(error, operands, loop.inputs)
                raise
        call = _Call(self, loop, kinds_of(operands))
        self._plans.learn(call.plan)
        if self.tracked:  # another thread began to listen meanwhile
            self._plans.forget()
        return call.compute(args, out, layout.bound(args))

    def explain(
        self, error: Exception, operands: Sequence[Any], inputs: Dtypes
    ) -> None:
        """Raise NumPy's error for a call with the way out, if it has one."""
        nin, name, labels = len(inputs), self.scalar.name, self.scalar.labels
        if not isinstance(error, ValueError):
            refusal = misfit(operands[:nin], inputs, name, labels)
            if refusal is not None:
                raise refusal from error
        argument_errors.explain(error)


class Loop(NamedTuple):
    """A NumPy ufunc of one inner loop, and that loop's address and data types."""

    ufunc: np.ufunc
    address: int
    inputs: Dtypes
    outputs: Dtypes


@final
class _Call:
    """A call that was made before; several threads share it where that is worth it."""

    def __init__(self, loops: CpuLoops, loop: Loop, kinds: tuple[Any, ...]) -> None:
        self._loops, self._loop, self._cost = loops, loop, threads.CostModel()
        self.plan = native.calls.Plan(kinds, len(loop.inputs), loop.ufunc, self)
        # Smaller results are not the pool's.
        self._few = POOLED // max(dtype.itemsize for dtype in loop.outputs)

    def large(self, operands: tuple[Any, ...]) -> Any:
        """Compute operands that are not surely small."""
        args, outs = operands[: self.plan.nin], operands[self.plan.nin :]
        return self.compute(args, outs or None, layout.bound(operands))

    def explain(self, error: Exception, operands: Sequence[Any]) -> None:
        """Raise NumPy's error for a call with the way out, if it has one."""
        self._loops.explain(error, operands, self._loop.inputs)

    def compute(
        self, args: Sequence[Any], out: tuple[Any, ...] | None, size: int
    ) -> Any:
        """Compute, into new arrays where results of ``size`` elements are large."""
        cost, loop = self._cost, self._loop
        try:
            if out is not None:
                size = max(x.size for x in out)  # NumPy refuses others
            elif (spread := size >= cost.threshold > 0) or size >= self._few:
                # Threads write into results that are all there.
                out = layout.pooled(args, loop.outputs, least=0 if spread else POOLED)
            if cost.is_worth_threads(size) and out is not None:
                walk = self._walk(args, out)
                if walk is not None:
                    return self._spread(walk, out)
            start = perf_counter()
            result = loop.ufunc(*args, **({} if out is None else {"out": out}))
        except REFUSALS as error:
            self.explain(error, (*args, *(out or ())))
            raise
        else:
            if size >= cost.small:
                first = result[0] if type(result) is tuple else result
                cost.add_serial(perf_counter() - start, getattr(first, "size", 0))
            return result
        finally:
            makes = len(self.plan.kinds) == self.plan.nin  # its results itself
            limit = min(cost.small, self._few) if makes else cost.small
            self.plan.limit = self.plan.strided = limit

    def _walk(self, inputs: Sequence[Any], outs: Sequence[Any]) -> Any:
        """Return NumPy's iterator over operands that the inner loop reads as they lie.

        None: NumPy alone can compute these, or refuse them.
        """
        dtypes = (*self._loop.inputs, *self._loop.outputs)
        arrays = [
            x if type(x) is ndarray else _number(x, dtype)
            for x, dtype in zip((*inputs, *outs), dtypes, strict=True)
        ]
        if any(x is None for x in arrays) or not all(map(_has_own_places, outs)):
            return None
        plain = "aligned", "overlap_assume_elementwise"
        how: list[Any] = [("readonly", *plain)] * len(inputs)
        how += [("writeonly", "no_broadcast", *plain)] * len(outs)
        nditer: Any = np.nditer
        try:
            return nditer(arrays, ["copy_if_overlap"], how, dtypes, casting="no")
        except (TypeError, ValueError):
            return None

    def _spread(self, walk: Any, outs: tuple[Any, ...]) -> Any:
        """Compute ranges of the result, and tell of floating point errors then."""
        start = perf_counter()
        with walk:  # at whose end copies of outputs are written back
            shape = walk.itviews[0].shape
            axes = [*range(len(shape))]
            if shape and shape[-1] < SHORT:
                axes.append(axes.pop(int(np.argmax(shape))))
            views = [x.transpose(axes) for x in walk.itviews]
            loop, grain = self._loop.address, self._cost.grain
            shape, places = views[0].shape, [x.ctypes.data for x in views]
            steps = [*zip(*(x.strides for x in views), strict=True)]
            exceptions = threads.elements(
                loop, shape, places, steps, prod(shape), grain=grain
            )
            del views
        self._cost.add_parallel(perf_counter() - start, outs[0].size)
        report_errors(self._loop.ufunc.__name__, exceptions)
        return outs if len(outs) > 1 else outs[0]


def _numpy_agrees(args: Sequence[Any], dtypes: Dtypes) -> bool:
    """Say whether NumPy takes Python numbers for the dtypes that they resolved to.

    By itself, and beside bools, it takes an int for int64, whatever a signature says;
    and beside bfloat16 it knows no weak numbers.
    """
    if any(map(is_bfloat16, dtypes)):
        return False
    pairs = [*zip(args, dtypes, strict=True)]
    if any(type(x) not in WEAK and dtype.kind != "b" for x, dtype in pairs):
        return True
    return all(d == np.dtype(type(x)) for x, d in pairs if type(x) in WEAK)


def _has_own_places(x: np.ndarray[Any, Any]) -> bool:
    """Say whether each element surely has a place of its own, none beside another."""
    reach = x.itemsize
    for stride, extent in sorted(zip(map(abs, x.strides), x.shape, strict=True)):
        if extent > 1:
            if stride < reach:
                return False
            reach += stride * (extent - 1)
    return True


def _number(x: Any, dtype: np.dtype[Any]) -> ndarray[Any, Any] | None:
    """Return a number as the inner loop reads it, None where NumPy has to judge it."""
    if isinstance(x, np.generic | ndarray):  # subclasses have ways of their own
        plain = isinstance(x, np.generic) and x.dtype == dtype
        return np.asarray(x) if plain else None
    try:
        with np.errstate(over="raise"):
            return np.asarray(dtype.type(x))
    except (TypeError, ValueError, ArithmeticError):
        return None


# Floating point errors of a computation in parts, told once as NumPy tells them.

# In NumPy's order: np.errstate's names, the words of NumPy's messages, their numbers.
ERRORS = (
    ("divide", "divide by zero", 1),
    ("over", "overflow", 2),
    ("under", "underflow", 4),
    ("invalid", "invalid value", 8),
)


def report_errors(name: str, exceptions: int) -> None:
    """Do what the caller's ``np.errstate`` says to what ``fetestexcept`` returned."""
    met = [error for error, bit in zip(ERRORS, BITS, strict=True) if exceptions & bit]
    settings: Any = np.geterr()
    caller: Any = np.geterrcall()
    for kind, words, _ in met:
        setting, text = settings[kind], f"{words} encountered in {name}"
        if setting == "raise":
            raise FloatingPointError(text)
        if setting == "warn":
            warnings.warn(text, RuntimeWarning, stacklevel=users_level())
        elif setting == "call":
            caller(words, sum(number for *_, number in met))
        elif setting in ("print", "log"):
            stream = sys.stderr if setting == "print" else caller
            stream.write(f"Warning: {text}\n")


# NumPy's functions on large arrays, in several threads: a call for each part.
#
# The parts of a result lie along one axis of it. What is elementwise has the same bits
# as in one call; sums of all elements are made of sums of a fixed size, so that their
# bits depend on nothing but the values.

#: How often the time that is worth threads without Python, for which each part is some
#: calls of Python's.
TIMES = 8
#: New results of so many bytes come from the pool, where no page has to be made: those
#: of fewer cost NumPy less than the pool.
LARGE = 4 << 20
FLAGS = {number: bit for (*_, number), bit in zip(ERRORS, BITS, strict=True)}


@final
class Chunked:
    """A NumPy ufunc of one result dtype that computes parts in several threads."""

    def __init__(self, ufunc: np.ufunc, dtype: np.dtype[Any]) -> None:
        self._ufunc, self._dtype = ufunc, dtype
        self._cost = cost_model()

    @classmethod
    def of(cls, ufunc: np.ufunc, kinds: Sequence[Any]) -> Chunked | None:
        """Return it for operands of kinds as a plan names them, if NumPy takes them."""
        weak = int, float, complex
        inputs = [kind if kind in weak else np.dtype(kind) for kind in kinds]
        try:
            return cls(ufunc, ufunc.resolve_dtypes((*inputs[: ufunc.nin], None))[-1])
        except TypeError:
            return None

    @property
    def limit(self) -> int:
        """So many elements or more are worth a look at the time that they take."""
        return min(self._cost.small, LARGE // self._dtype.itemsize)

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        """Compute the ufunc of NumPy's own arrays and numbers."""
        start, cost, views = perf_counter(), self._cost, None
        if out is None:
            spread = layout.bound(operands) >= cost.threshold > 0
            least = 0 if spread else LARGE
            pooled = layout.pooled(operands, (self._dtype,), least=least)
            out = pooled and pooled[0]
        if out is not None and cost.is_worth_threads(out.size):
            views = self._views(operands, out)
        errors = Errors()

        def compute(*views: Any) -> Any:
            *inputs, part = views
            with errors.noted():
                return self._ufunc(*inputs, out=part)

        if views is None:
            result = compute(*operands, out)
            cost.add_serial(perf_counter() - start, result.size)
        else:
            share(compute, views, cost.grain)
            result = out
            cost.add_parallel(perf_counter() - start, out.size)
        errors.tell(self._ufunc.__name__)
        return result

    def _views(self, operands: Sequence[Any], out: Any) -> list[Any] | None:
        """Return operands and output alike in shape; None where NumPy must see all."""
        if type(out) is not ndarray or out.dtype != self._dtype:
            return None
        if not out.flags.writeable or not _has_own_places(out):
            return None
        # Backwards NumPy's loops may have other bits than forwards; one element, as
        # parts may be wide, has no direction.
        arrays = [x for x in (*operands, out) if type(x) is ndarray]
        if any(step < 0 for x in arrays for step in x.strides):
            return None
        place = out.__array_interface__
        others = (x for x in arrays if x.__array_interface__ != place)
        if any(np.may_share_memory(x, out) for x in others):
            return None
        spread = [
            np.broadcast_to(x, out.shape) if type(x) is ndarray and x.ndim else x
            for x in operands
        ]
        return [*spread, out]


@final
class Errors:
    """Floating point errors of a computation in parts, told once as NumPy does."""

    def __init__(self) -> None:
        self._bits: list[int] = []

    def noted(self) -> np.errstate:
        """Return the context of a part, in whatever thread."""

        def note(_: str, numbers: int) -> None:
            self.add(sum(bit for number, bit in FLAGS.items() if numbers & number))

        return np.errstate(all="call", call=note)

    def add(self, exceptions: int) -> None:
        """Take in what ``fetestexcept`` told of a part."""
        self._bits.append(exceptions)

    def tell(self, name: str) -> None:
        """Do what the caller's ``np.errstate`` says."""
        if self._bits:
            report_errors(name, reduce(or_, self._bits))


def cost_model() -> threads.CostModel:
    """Return one that knows what parts cost, each some calls of Python's."""
    return threads.CostModel(TIMES, slower=0.9)


def share(
    part: Callable[..., object],
    views: Sequence[Any],
    grain: int,
    whole: Sequence[int] = (),
) -> None:
    """Call a function on parts of an output and of its inputs, in several threads.

    The last view is the output, whose memory is divided; the other arrays have its
    shape, but along axes where it has one element, and ``whole``, which are not
    divided. So many elements as ``grain`` or more are worth a part of their own.
    """
    arrays = [x for x in views if type(x) is ndarray and x.ndim]
    if not whole and len({x.shape for x in arrays}) == 1:
        if all(x.flags.f_contiguous for x in arrays):
            views = [x.T if type(x) is ndarray else x for x in views]
            arrays = [x.T for x in arrays]
        if all(x.flags.c_contiguous for x in arrays):
            views = [
                x.reshape(-1) if type(x) is ndarray and x.ndim else x for x in views
            ]
    out = views[-1]
    # Along the outermost axis in memory that has parts enough.
    axes = [k for k, extent in enumerate(out.shape) if extent > 1 and k not in whole]
    if not axes:
        part(*views)
        return
    axes.sort(key=lambda axis: -abs(out.strides[axis]))
    enough = PYTHON_PIECES * _config.num_threads()
    enough = min(enough, max(out.shape[axis] for axis in axes))
    axis = next(axis for axis in axes if out.shape[axis] >= enough)
    before = (slice(None),) * axis

    def work(start: int, stop: int) -> None:
        at = (*before, slice(start, stop))
        part(*[x[at] if type(x) is ndarray and x.ndim else x for x in views])

    rows = out.shape[axis]
    least = max(1, grain * rows // out.size)
    if axis != axes[-1]:
        threads.run(work, rows, grain=least)
        return
    # NumPy has other loops for elements that lie alone: none does, the last neither.
    end = rows - 1
    least = -(-least // LINE) * LINE
    threads.run(lambda i, k: work(i, rows if k == end else k), end, grain=least)
