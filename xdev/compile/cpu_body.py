"""What one iteration of a CPU loop does: a scalar function between operands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, final

from xdev import _optional
from xdev.compile import subroutines
from xdev.compile.cpu_math import linking
from xdev.compile.cpu_math.linking import CALLED, SYMBOLS
from xdev.compile.cpu_memory import ALONE, LINE

if TYPE_CHECKING:
    from collections.abc import Sequence

# How much work a compiled scalar function is, by its instructions.

ASSIGNED = re.compile(r"\s+(%[\w.]+) = (?:tail )?(.*)")
VALUE = re.compile(r"%[\w.]+")
DIVISION = re.compile(r"[fsu](div|rem) ")
ROOT = re.compile(r"sqrtf?|llvm\.sqrt\.f\d+")
# By instructions to which NaN is an invalid value, in SIMD code at least.
COMPARISON = re.compile(r" fcmp (?:\w+ )*?[ou][lg][te] ")
# In simple instructions, of which a processor does several at once.
DIVIDING, ROOTING, CALLING = 8, 16, 100


class Work(NamedTuple):
    """What a function costs.

    Attributes
    ----------
    amount : int
        In simple instructions.
    branches : bool
        Whether there are conditions, or loops, that are no instruction.
    parameters : bool
        Whether there is costly work on the inputs behind the first alone, as in
        ``x * exp(a)``: a loop in which these are numbers does it once.
    compares : bool
        Whether floats are compared by size.
    """

    amount: int = 0
    branches: bool = False
    parameters: bool = False
    compares: bool = False


NONE = Work()


def work_of(compiled: Any) -> Work:
    """Return the work of a function that Numba compiled (its ``CompileResult``)."""
    module = compiled.library._final_module  # noqa: SLF001
    made = module.get_function(compiled.fndesc.llvm_func_name)
    text = str(made)
    name = f"%arg.{compiled.fndesc.args[0]}"
    arguments = {value for value in VALUE.findall(text) if value.startswith("%arg.")}
    first = {x for x in arguments if x == name or x.startswith(f"{name}.")}
    others = arguments - first
    amount, parameters = 0, False
    for result, operation in ASSIGNED.findall(text):
        cost = _cost(operation)
        amount += cost
        used = set(VALUE.findall(operation))
        if used & first:
            first.add(result)
        elif used & others:
            others.add(result)
            parameters = parameters or cost > 1
    compares = COMPARISON.search(text) is not None
    return Work(amount, len(list(made.blocks)) > 1, parameters, compares)


def _cost(operation: str) -> int:
    if DIVISION.match(operation):
        return DIVIDING
    for called in CALLED.findall(operation):
        if ROOT.fullmatch(called):
            return ROOTING
        if called in SYMBOLS or not called.startswith("llvm."):
            return CALLING
    return 1


UNROLLED = 8  # elements that an iteration takes of a loop that goes one by one
COPYING = 4  # simple instructions that copying an element is worth


@final
@dataclass(frozen=True, slots=True)
class Operand:
    """One operand: how it is stored, what it is computed as, how one becomes the other.

    ``widen`` and ``narrow`` are jitted functions between the two, None where they are
    the same type.
    """

    stored: Any
    computed: Any
    itemsize: int
    widen: Any = None
    narrow: Any = None


@final
@dataclass(slots=True)
class Body:
    """What one iteration does: a jitted scalar function between operands.

    Parameters
    ----------
    function : Dispatcher
        The scalar function.
    inputs, outputs : list of Operand
        What is loaded and stored.
    branches : bool
        Whether the function has conditions. SIMD code computes both sides, so that
        ``log(x) if x > 0 else 0`` would have NumPy warn of a logarithm not taken:
        the loop clears the exceptions of such a function.
    light : bool
        Whether it takes less time than loading and storing do.
    work : Work
        What the function costs.
    """

    function: Any
    inputs: list[Operand]
    outputs: list[Operand]
    branches: bool
    light: bool = False
    work: Work = NONE
    signatures: dict[Any, Any] = field(default_factory=dict)
    library: Any = None  # the function's code, its mathematics vectorized

    @property
    def operands(self) -> list[Operand]:
        """Return the inputs, then the outputs, as NumPy has them."""
        return self.inputs + self.outputs

    def resolve(self, typing: Any) -> None:
        """Compile every function that an iteration calls."""
        self._resolve(typing, self.function, tuple(o.computed for o in self.inputs))
        for operand in self.operands:
            if operand.widen is not None:
                self._resolve(typing, operand.widen, (operand.stored,))
                self._resolve(typing, operand.narrow, (operand.computed,))
        compiled = self.function.overloads[self.signatures[self.function][1].args]
        self.library = linking.vectorized(compiled.library)
        self.light = self.light and self.library is compiled.library

    @property
    def dear(self) -> bool:
        """Return whether an iteration takes longer than copying its elements does."""
        work = self.work
        return work.branches or work.amount > COPYING * len(self.operands)

    def advice(self, *, apart: bool) -> dict[str, int | bool | None]:
        """Return what LLVM should know of the loop over elements.

        One that waits for memory does one cache line an iteration: two vectors of half
        a cache line, of which every other one lies in two lines where an array is not
        aligned. More and larger ones cost up to a fifth from the second level of caches
        on. One that goes element by element is no SIMD code.
        """
        if apart:
            if not self.light:
                return {}
            lanes = LINE // 2 // max(operand.itemsize for operand in self.operands)
            return {"vectorize.width": max(lanes, 1), "interleave.count": 2}
        if self.dear:
            return ALONE
        return {"vectorize.enable": False, "unroll.count": UNROLLED}

    def _resolve(self, typing: Any, function: Any, args: tuple[Any, ...]) -> None:
        kind = _optional.numba().core.types.Dispatcher(function)
        self.signatures[function] = kind, kind.get_call_type(typing, args, {})

    def call(
        self, context: Any, builder: Any, function: Any, args: Sequence[Any]
    ) -> Any:
        """Emit a call of one of the resolved functions."""
        _, signature = self.signatures[function]
        compiled = function.overloads[signature.args]
        own = function is self.function
        context.add_linking_libs([self.library if own else compiled.library])
        # A loop has nobody to report to, so what a function reports goes no further.
        status, result = context.call_internal_no_propagate(
            builder, compiled.fndesc, signature, args
        )
        if not own:  # conversions report nothing
            return result
        wrong = subroutines.undefined(context, builder, signature.return_type)
        return builder.select(status.is_error, wrong, result)

    def compute(self, context: Any, builder: Any, values: Sequence[Any]) -> list[Any]:
        """Emit the scalar function, between the types that are computed with."""
        result = self.call(context, builder, self.function, values)
        kind = self.signatures[self.function][1].return_type
        if isinstance(kind, _optional.numba().core.types.BaseTuple):
            parts = _optional.numba().core.cgutils.unpack_tuple(builder, result)
            kinds = list(kind)
        else:
            parts, kinds = [result], [kind]
        return [
            context.cast(builder, part, source, o.computed)
            for o, part, source in zip(self.outputs, parts, kinds, strict=True)
        ]

    def apply(self, context: Any, builder: Any, values: Sequence[Any]) -> list[Any]:
        """Emit the scalar function on loaded values; return what is to be stored."""
        widened = [
            self.widened(context, builder, o, value)
            for o, value in zip(self.inputs, values, strict=True)
        ]
        results = self.compute(context, builder, widened)
        return [
            self.narrowed(context, builder, o, value)
            for o, value in zip(self.outputs, results, strict=True)
        ]

    def widened(self, context: Any, builder: Any, operand: Operand, value: Any) -> Any:
        """Emit what makes a loaded value one to compute with."""
        if operand.widen is None:
            return value
        return self.call(context, builder, operand.widen, (value,))

    def narrowed(self, context: Any, builder: Any, operand: Operand, value: Any) -> Any:
        """Emit what makes a computed value one to store."""
        if operand.narrow is None:
            return value
        return self.call(context, builder, operand.narrow, (value,))
