"""``@vectorize``: a scalar Python function, and its one typing for input dtypes.

What is decided here (the dtypes of literals and results) holds on every device.
"""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property, partial
from threading import RLock
from typing import TYPE_CHECKING, Any, final, overload

import numpy as np

from xdev.compile import digests
from xdev.compile.formulas import Dtypes, is_half
from xdev.errors import quoted
from xdev.ufunc import foreign, sources
from xdev.ufunc.dtypes import Specialisation, check, chosen, parse, types_of
from xdev.ufunc.kinds import Rules, is_dtype, weak
from xdev.ufunc.ufuncs import Definition, Ufunc, of_a_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import FunctionType

    from xdev.ufunc.cpu import CpuLoops
    from xdev.ufunc.dtypes import Signature
    from xdev.ufunc.kinds import Called


@final
class ScalarFunction(Definition):
    """A scalar Python function with its typings, each made once.

    Signatures are pairs of inputs and outputs, tried in their order with safe casting;
    without outputs these are inferred; without any, each combination of input dtypes is
    a typing. One that stands ``inside``, called by a ufunc, needs no parameter.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        signatures: Sequence[tuple[Dtypes, Dtypes]] = (),
        *,
        fastmath: bool = False,
        inside: bool = False,
    ) -> None:
        self.labels = sources.positional(
            function,
            f"{'a ufunc calls' if inside else 'vectorize needs'} Python functions with "
            "positional parameters (no *args, **kwargs or keyword-only ones)",
            "a ufunc cannot do per element: return math.nan, or check the arrays "
            "before the call",
            least=0 if inside else 1,
        )
        self.nin, self.defaults = len(self.labels), function.__defaults__ or ()
        self.function = function
        self.name: str = function.__name__
        self.doc: str = inspect.getdoc(function) or ""
        self.signatures = tuple(signatures)
        self.fastmath = fastmath
        #: The number of outputs, None until it is known.
        self.nout = (len(signatures[0][1]) or None) if signatures else None
        self._lock = RLock()  # guards the dict below: a typing is made once
        self._specialisations: dict[Dtypes, Specialisation] = {}
        self._device_functions: dict[Any, Any] = {}
        #: The plain functions that are called while it is typed.
        self.called: dict[FunctionType, ScalarFunction] = {}
        for inputs, _ in self.signatures:
            if len(inputs) != self.nin:
                raise TypeError(
                    f"{self.name} takes {self.nin} arguments, but a signature has "
                    f"{len(inputs)}: ({', '.join(map(str, inputs))})"
                )

    def describe(self, ufunc: Ufunc) -> None:
        """Give a ufunc the function's name, docstring and signature."""
        own = inspect.signature(self.function).parameters
        signature = of_a_call(own.values())
        sources.describe(ufunc, self.function, signature, __signature__=signature)

    def check(self, name: str, **operands: Any) -> None:
        """Refuse nothing: arrays of all libraries may meet on one device."""

    def cpu_loops(self, ufunc: Ufunc) -> CpuLoops:
        """Return the NumPy ufuncs made of compiled loops."""
        from xdev.ufunc.cpu import CpuLoops

        return CpuLoops(self, ufunc._identity, ufunc.plans)  # noqa: SLF001 - its own

    def reduced(self, ufunc: Ufunc) -> sources.Reduced:
        """Pickle a ufunc by the Python function and the options."""
        options = ufunc.target, ufunc._identity  # noqa: SLF001 - its own
        parts = self.function, self.signatures, self.fastmath, *options
        return sources.pickled(ufunc, _remake, *parts)

    def outputs(self, args: Sequence[Any] = ()) -> int:
        """Return the number of outputs, typed for some inputs where it never was."""
        if args:
            natives = [foreign.to_native(x, self.name) for x in args]
            return len(self.specialise(self.resolve(natives)).outputs)
        if self.nout is None:
            probes = [inputs for inputs, _ in self.signatures]
            for inputs in probes or [(np.dtype(char),) * self.nin for char in "dlD"]:
                try:
                    self.specialise(inputs)
                    break
                except TypeError:
                    continue
        return self.nout or 1

    @property
    def types(self) -> list[str]:
        """The explicit signatures, or the typings made so far."""
        if self.signatures:
            return [
                types_of(inputs, outputs or self.specialise(inputs).outputs)
                for inputs, outputs in self.signatures
            ]
        typings = dict.fromkeys(self._specialisations.values())  # each once
        return [each.types for each in typings]

    def resolve(self, args: Sequence[Any]) -> Dtypes:
        """Return each argument's dtype, as :meth:`CountingParameters.resolve` does."""
        return self.counts.resolve(args, [i for i, _ in self.signatures], self.name)

    @cached_property
    def counts(self) -> sources.CountingParameters:
        """The parameters that count: ends of ``range``, and indices."""
        return sources.CountingParameters(self.function)

    def specialise(self, inputs: Dtypes) -> Specialisation:
        """Return the typing for exactly these input dtypes, one an argument."""
        typing = self._specialisations.get(inputs)
        if typing is None:
            with self._lock:
                typing = self._specialisations.get(inputs)
                if typing is None:
                    typing = self._specialisations[inputs] = self._make(inputs)
        return typing

    def giving(self, inputs: Dtypes, signature: Signature) -> Specialisation:
        """Return the typing that a call asks for by ``dtype=`` or ``signature=``.

        It is the inputs' own, or that of the inputs which the signature has, where that
        gives the results asked for; else, where it has none, that of inputs cast to the
        results' dtype. None in a signature is any.
        """
        taken, results = signature
        pairs = zip(taken, inputs, strict=True)
        own = self.specialise(tuple(b if a is None else a for a, b in pairs))
        if own.fits(signature):
            return own
        outputs = {dtype for dtype in results if dtype is not None}
        if taken == (None,) * self.nin and len(outputs) == 1:
            (output,) = outputs
            typing = self.specialise((output,) * self.nin)
            if typing.fits(signature):
                return typing
        asked = ", ".join("any" if dtype is None else str(dtype) for dtype in results)
        raise TypeError(
            f"{self.name} has no typing with a result of {asked}: of "
            f"({', '.join(map(str, own.inputs))}) it gives "
            f"{', '.join(map(str, own.outputs))}. Cast the result with astype"
        )

    def folding(
        self, array: np.dtype[Any], out: np.dtype[Any] | None, dtype: Any
    ) -> Specialisation:
        """Return the typing of a fold, which takes its own results.

        ``out`` counts as a first value does; ``dtype`` is what to fold in instead.
        """
        if dtype is not None:
            operand = np.dtype(dtype)
        else:
            check(array, self.name)  # before NumPy says that nothing is common to both
            operand = array if out is None else np.result_type(out, array)
        typing = self.specialise((operand, operand))
        if set(typing.inputs) != set(typing.outputs):
            (result, *_) = typing.outputs
            typing = self.specialise((result, result))
        return typing

    def _make(self, inputs: Dtypes) -> Specialisation:
        for dtype in inputs:
            check(dtype, self.name)
        native = tuple(np.dtype(d.name) for d in inputs)  # longlong's is int64's
        if len(native) != self.nin:
            message = f"{self.name} takes {self.nin} arguments, not {len(native)}"
            raise TypeError(message)
        if native != inputs:
            return self.specialise(native)
        taken: Dtypes = native
        outputs: Dtypes = ()
        if self.signatures:
            taken, outputs = chosen(self.name, self.signatures, native)
        if taken != native:
            return self.specialise(taken)
        # Outside values may change between typing and compiling: both take these.
        code, outside = self.function.__code__, sources.outside(self.function)
        sources.refuse_arrays(self.function, outside)
        if any(map(is_half, (*taken, *outputs))):
            for called in _digested(self.function)[1]:
                sources.refuse_neighbours(called)
        function = sources.rebuilt(self.function, code, outside)
        rules = Rules(taken, outputs, working=self.counts.working(taken))
        inferred, digest = self._typing(function, rules)
        outputs = outputs or inferred
        if self.nout is None:
            self.nout = len(outputs)
        if not len(inferred) == len(outputs) == self.nout:
            message = f"{self.name} returns {len(inferred)} values, not {self.nout}"
            raise TypeError(message)
        make = cache(lambda: self._typed(function, rules)[0])
        unchanged = partial(_has, function, rules, digest)
        return Specialisation(self.name, taken, outputs, digest, None, make, unchanged)

    def _typing(
        self, function: Callable[..., Any], rules: Rules
    ) -> tuple[Dtypes, str | None]:
        """Return the results' dtypes, and the digest, None: it is not kept on disk."""
        own = _digested(function)[0]
        digest = own and digests.joined(own, rules.words)
        unchanged = cache(partial(_has, function, rules, digest))

        def infer() -> tuple[bytes, str]:
            from xdev.compile import compilers

            typed, returned = self._typed(function, rules)
            outputs = rules.outputs(returned, compilers.infer(typed, rules.inputs))
            return " ".join(dtype.name for dtype in outputs).encode(), ""

        parts = [dtype.name for dtype in rules.inputs], rules.words
        names, _ = digests.load_or_compile(
            "typings", own, parts, self.name, infer, unchanged
        )
        outputs = tuple(map(np.dtype, names.decode().split()))
        return outputs, digest if unchanged() else None

    def _typed(self, function: Any, rules: Rules) -> tuple[Callable[..., Any], Any]:
        """Return the function with typed literals and the ufuncs inside it compiled."""
        # No process needs these that finds all on disk.
        from xdev.ufunc import rewriting

        with _entered(self, rules) as called:
            replace = partial(replacement, working=rules.working)
            return rewriting.typed(function, rules, replace, called=called)

    def returned(self, rules: Rules) -> Any:
        """Return the kind of what compiled code gets from this function."""
        from xdev.ufunc import rewriting

        with _entered(self, rules) as called:
            return rewriting.returned(self.function, rules, called)

    def device_function(self, rules: Rules) -> Any:
        """Return what compiled code calls for this function, literals typed."""
        from xdev.compile import compilers

        digest = _digested(self.function)[0]
        key = rules.inputs, rules.working, rules.words, digest
        if key not in self._device_functions:
            outside = sources.outside(self.function)
            sources.refuse_arrays(self.function, outside)
            plain, _ = self._typed(self.function, rules)
            self._device_functions[key] = compilers.device_function(plain)
        return self._device_functions[key]


# Which functions are being typed, one inside the other.
_calling: ContextVar[tuple[ScalarFunction, ...]] = ContextVar("calling", default=())


@contextmanager
def _entered(scalar: ScalarFunction, rules: Rules) -> Iterator[Any]:
    """Return what tells of calls in a function; one that calls itself is refused."""
    calling = _calling.get()
    if scalar in calling:
        raise TypeError(f"{scalar.name} calls itself: write the recursion as a loop")
    token = _calling.set((*calling, scalar))
    try:
        yield partial(_called, bounded=rules.bounded)
    finally:
        _calling.reset(token)


def within(value: object) -> ScalarFunction | None:
    """Return what a ufunc, or a plain function, is where a ufunc calls it."""
    scalar = getattr(value, "definition", None)
    if isinstance(scalar, ScalarFunction):
        return scalar
    if not sources.is_plain(value):
        return None
    outermost = _calling.get()[:1]  # the one being typed keeps the plain functions
    known = outermost[0].called if outermost else {}
    return known.get(value) or known.setdefault(
        value, ScalarFunction(value, inside=True)
    )


def _remake(function: Any, signatures: Any, fastmath: bool, *options: Any) -> Ufunc:
    return Ufunc(ScalarFunction(function, signatures, fastmath=fastmath), *options)


def _digested(function: Any) -> tuple[str | None, list[Any]]:
    """Return a function's digest, and all functions whose literals are typed."""
    reached = [function]

    def within_ufunc(value: object) -> object:
        scalar = getattr(value, "definition", None)
        if isinstance(scalar, ScalarFunction):
            return scalar.function, bool(scalar.signatures)
        if sources.is_plain(value):
            reached.append(value)
        return sources.numpys(value)

    return digests.digest(function, within_ufunc), reached


def _has(function: Any, rules: Rules, digest: str | None) -> bool:
    """Say whether a function still has a digest, and the sources of what it calls.

    Without a source, literals keep types that they lose where there is one.
    """
    own, reached = _digested(function)
    return (
        own is not None
        and digests.joined(own, rules.words) == digest
        and all(sources.find(each.__code__) for each in reached)
    )


def replacement(value: object, working: np.dtype[Any]) -> object:
    """Return what compiled code calls for a ufunc or a plain function; others stay."""
    scalar = within(value)
    return scalar.device_function(Rules((), working=working)) if scalar else value


def _called(
    value: object, kinds: tuple[Any, ...], *, bounded: bool
) -> tuple[Called, Callable[[], Any]] | None:
    """Return what a ufunc is and gives inside another, as :class:`Flow` takes it."""
    scalar = within(value)
    if scalar is None or scalar.signatures:
        return None
    kinds = scalar.filled(kinds)
    if not all(is_dtype(kind) or weak(kind) for kind in kinds):
        return None
    strong = [kind for kind in kinds if is_dtype(kind)]
    inputs = tuple(
        np.result_type(*strong, number(0)) if (number := weak(kind)) else kind
        for kind in kinds
    )
    working = scalar.counts.working(inputs)
    rules = Rules(inputs, working=working, bounded=bounded)
    return (inputs, scalar.returned(rules)), partial(scalar.device_function, rules)


# The decorator: its forms and its options.

TARGETS = ("cpu", "parallel", "cuda", None)
# Numba's keywords that change nothing here: functions are always compiled whole.
WITHOUT_EFFECT = ("nopython", "cache", "boundscheck")


@overload
def vectorize(function: Callable[..., Any], /) -> Ufunc: ...
@overload
def vectorize(
    signatures: str | Iterable[Any] | None = None,
    /,
    *,
    target: str | None = None,
    identity: int | str | None = None,
    fastmath: bool = False,
    **options: bool,
) -> Callable[[Callable[..., Any]], Ufunc]: ...
def vectorize(
    function: Any = None,
    /,
    *,
    target: str | None = None,
    identity: int | str | None = None,
    fastmath: bool = False,
    **options: bool,
) -> Any:
    """Make a ufunc of a scalar Python function; it runs where its inputs live.

    Parameters
    ----------
    function : callable, or signatures
        A Python function of one or more numbers that returns a number, or a tuple of
        them for several outputs. Signatures in its place make a decorator: one, or a
        list, as Numba writes them (``"float32(float32, float32)"``); the first that
        takes the inputs by safe casts is used. Without any, each combination of input
        dtypes is compiled at its first call, and results have the inputs' result type.
    target : "cpu", "parallel", "cuda" or None
        Where arrays in host memory are computed: by default on the CPU; ``"cuda"``
        uploads them, computes and downloads. Arrays on a CUDA device are computed
        there.
    identity : 0, 1, "reorderable" or None
        What a reduction of nothing is; values are then folded in pairs. None:
        reductions take one axis at a time, one value after the other.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.
    **options
        Numba's ``nopython``, ``cache`` and ``boundscheck`` are accepted.

    Returns
    -------
    Ufunc
        The ufunc, or a decorator that makes one.

    Raises
    ------
    TypeError
        An option or a signature is wrong, or ``function`` takes no plain numbers.

    Examples
    --------
    >>> import numpy as np
    >>> @vectorize
    ... def clipped(x, top):
    ...     return top if x > top else 2 * x
    >>> clipped(np.asarray([1, 2, 3], dtype="float32"), 2.5)
    array([2. , 4. , 2.5], dtype=float32)
    """
    check_options("vectorize", target, options, "target, identity, fastmath")
    if identity is not None:
        from xdev.compile.loops import IDENTITIES

        if identity not in IDENTITIES:
            listed = ", ".join(map(repr, IDENTITIES))
            raise ValueError(
                f"vectorize cannot have identity={quoted(identity)}: use one of "
                f"{listed}"
            )

    def decorate(plain: Any) -> Ufunc:
        plain = sources.undecorated(plain, ScalarFunction)
        scalar = ScalarFunction(plain, explicit, fastmath=bool(fastmath))
        return Ufunc(scalar, target, identity)

    explicit, containers = [], (list, tuple, set, frozenset)
    if isinstance(function, (str, *containers)) or hasattr(function, "return_type"):
        several = function if isinstance(function, containers) else [function]
        explicit, function = [parse(signature) for signature in several], None
    return decorate if function is None else decorate(function)


def check_options(
    name: str, target: str | None, options: dict[str, bool], others: str
) -> None:
    """Refuse a decorator's target and options that do not exist, with those that do."""
    if target not in TARGETS:
        listed = ", ".join(map(repr, TARGETS))
        raise ValueError(f"{name} has no target {quoted(target)}: use one of {listed}")
    for option in options:
        if option not in WITHOUT_EFFECT:
            valid = ", ".join((others, *WITHOUT_EFFECT))
            raise TypeError(f"{name} has no option {option!r}; valid are {valid}")
    if not options.get("nopython", True):
        raise TypeError(f"{name} compiles functions whole: leave nopython=False out")
