"""A scalar function on NumPy arrays: one real NumPy ufunc for each of its typings.

Broadcasting, ``out=``, ``where=``, casting, overlap and the reductions are NumPy's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy import ndarray

from xdev import native
from xdev.compile import loops as code
from xdev.compile.halves import is_bfloat16
from xdev.memory import hooks
from xdev.ufunc import argument_errors, layout
from xdev.ufunc.cpu_threads import MANY, Threaded
from xdev.ufunc.foreign import NUMBERS
from xdev.ufunc.inputs import dtype_of, fits, misfit, resolve, strong
from xdev.ufunc.layout import POOLED
from xdev.ufunc.sources import WEAK
from xdev.ufunc.ufuncs import kinds_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev._plain_calls import Plans
    from xdev.ufunc.inputs import Dtypes
    from xdev.ufunc.scalar import ScalarFunction
    from xdev.ufunc.signatures import Signature, Specialisation

REFUSALS = TypeError, ValueError, OverflowError


@final
class CpuLoops:
    """The NumPy ufuncs of one scalar function, made as its typings are.

    Parameters
    ----------
    scalar : ScalarFunction
        The function with its typings.
    identity : 0, 1, "reorderable" or None
        What a reduction of nothing is.
    plans : Plans
        Those of the function's calls: where calls are remembered.
    """

    def __init__(
        self, scalar: ScalarFunction, identity: int | str | None, plans: Plans
    ) -> None:
        self.scalar = scalar
        self.identity = identity
        self._plans = plans
        self._made: dict[Specialisation, Threaded] = {}
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

    def threaded(self, specialisation: Specialisation) -> Threaded:
        """Return the NumPy ufunc whose one loop is this typing."""
        threaded = self._made.get(specialisation)
        if threaded is None:
            types = specialisation.inputs, specialisation.outputs
            fastmath, identity = self.scalar.fastmath, self.identity
            reorderable = identity is not None  # as NumPy has it

            def make() -> tuple[bytes, str]:
                from xdev.compile import cpu  # not where the code is on disk

                return cpu.loop(
                    specialisation.function,
                    *types,
                    fastmath=fastmath,
                    reorderable=reorderable,
                )

            parts = specialisation.types, fastmath, reorderable
            digest, name = specialisation.digest, specialisation.name
            loop = code.load_or_compile(
                digest, parts, name, make, specialisation.unchanged
            )
            name, doc = f"xdev:{self.scalar.name}", self.scalar.doc
            ufunc = code.register(loop, *types, name=name, doc=doc, identity=identity)
            threaded = Threaded(ufunc, loop, (*types[0], *types[1]))
            threaded = self._made.setdefault(specialisation, threaded)
        return threaded

    def at(self, a: Any, indices: Any, *values: Any) -> None:
        """Work in place at indices, as :meth:`numpy.ufunc.at` does."""
        values = tuple(x if type(x) in WEAK else np.asanyarray(x) for x in values)
        name = f"{self.scalar.name}.at"
        dtypes = resolve((a, *values), name)
        run = self.threaded(self.scalar.specialise(dtypes))
        labels = self.scalar.labels[1:]
        run.at(a, indices, *strong(values, dtypes[1:], name, labels))

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
        call = getattr(self.threaded(typing).ufunc, name)
        try:
            return call(*inputs, axis, dtype, out, **keywords)
        except (TypeError, ValueError) as error:
            for case in argument_errors.REFUSED:
                if case in str(error) and argument_errors.raised_by_numpy(error):
                    raise argument_errors.reduction_error(case, scalar.name) from error
            argument_errors.explain(error, (out,))
            raise
        except OverflowError as error:
            initial = (keywords.get("initial"),), (dtype,)
            refusal = misfit(*initial, f"{scalar.name}.reduce", ("initial",))
            if refusal is not None:
                raise refusal from error
            raise

    def __call__(
        self,
        args: Sequence[Any],
        out: tuple[Any, ...] | None = None,
        *,
        signature: Signature | None = None,
        **keywords: Any,
    ) -> Any:
        """Compute the function of NumPy arrays and numbers, as a ufunc does.

        Parameters
        ----------
        args : sequence
            One operand an input.
        out : tuple of arrays and None, optional
            Where the results go; returned themselves.
        signature : (inputs, outputs), optional
            The dtypes that are asked for.
        **keywords
            ``where``, ``casting``, ``order`` and ``subok``, as in NumPy.

        Raises
        ------
        TypeError, ValueError, OverflowError
            As NumPy raises them, with the way out. Nothing was written.
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
        run, operands = self.threaded(specialisation), (*args, *(out or ()))
        if (
            keywords
            or self.tracked
            or not all(type(x) is ndarray or isinstance(x, NUMBERS) for x in args)
            or not all(type(x) is ndarray for x in out or ())
        ):
            if out is None:
                least = 1 if self.tracked else POOLED
                out = layout.pooled(args, run.outputs, least=least, **keywords)
            try:
                return run.ufunc(*args, out=out or (None,) * run.ufunc.nout, **keywords)
            except REFUSALS as error:
                self.explain(error, operands, run.inputs)
                raise
        call = _Call(self, run, kinds_of(operands))
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
        argument_errors.explain(error, operands[nin:])


@final
class _Call:
    """A call that was made before: what computes, and of which data types.

    Parameters
    ----------
    loops : CpuLoops
        The function's.
    run : Threaded
        What computes.
    kinds : tuple
        The operands' dtypes and types, as a plan has them.
    """

    __slots__ = ("few", "loops", "nin", "plan", "run", "small")

    def __init__(self, loops: CpuLoops, run: Threaded, kinds: tuple[Any, ...]) -> None:
        self.loops, self.run, self.nin = loops, run, loops.scalar.nin
        self.plan = native.calls.Plan(kinds, self.nin, run.ufunc, self)
        # Smaller results are not the pool's.
        self.few = POOLED // max(dtype.itemsize for dtype in run.outputs)
        self.small = 0  # smaller calls need no more than NumPy's ufunc

    def large(self, operands: tuple[Any, ...]) -> Any:
        """Compute operands that are not surely small."""
        nin, size = self.nin, layout.bound(operands)
        if size >= self.small or (size >= self.few and len(operands) == nin):
            return self.compute(operands[:nin], operands[nin:] or None, size)
        try:
            if size >= MANY:
                return self.run.alone(operands, None)
            return self.run.ufunc(*operands)
        except REFUSALS as error:
            self.explain(error, operands)
            raise

    def explain(self, error: Exception, operands: Sequence[Any]) -> None:
        """Raise NumPy's error for a call with the way out, if it has one."""
        self.loops.explain(error, operands, self.run.inputs)

    def compute(
        self, args: Sequence[Any], out: tuple[Any, ...] | None, size: int
    ) -> Any:
        """Compute, into new arrays where the results are large."""
        run = self.run
        try:
            if out is None:
                # Threads write into results that are all there.
                spread = size >= run.cost.threshold > 0
                if spread or size >= self.few:
                    least = 0 if spread else POOLED
                    out = layout.pooled(args, run.outputs, least=least)
            else:
                size = max(x.size for x in out)  # NumPy refuses others
            if size < self.small and out is not None:
                return run.alone(args, out)
            return run(args, out, size)
        except REFUSALS as error:
            self.explain(error, (*args, *(out or ())))
            raise
        finally:
            self.small = run.cost.small
            makes = len(self.plan.kinds) == self.nin  # its results itself
            self.plan.limit = min(self.small, self.few) if makes else self.small
            self.plan.strided = min(self.plan.limit, MANY)


def _numpy_agrees(args: Sequence[Any], dtypes: Dtypes) -> bool:
    """Say whether NumPy takes Python numbers for the dtypes that they resolved to.

    By itself it takes an int for int64, whatever a signature says; and beside bfloat16
    it knows no weak numbers.
    """
    if any(map(is_bfloat16, dtypes)):
        return False
    return not all(type(x) in WEAK for x in args) or dtypes == tuple(
        np.dtype(type(x)) for x in args
    )
