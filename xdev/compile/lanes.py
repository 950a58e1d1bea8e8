"""The lanes of a SIMD register, and functions of so many lanes as LLVM modules.

Each operator of :class:`Lanes` emits one LLVM instruction. One expression serves a
single element and any number of them side by side, in float32 and float64, with the
same result to the last bit: nothing is fused or reordered but by :meth:`Lanes.fma`.
"""

from __future__ import annotations

from functools import cache, reduce
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from xdev import _optional
from xdev.compile.formulas import called

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Kind(NamedTuple):
    """A kind of floating point numbers.

    Parameters
    ----------
    width, mantissa : int
        Bits in all, and of the fraction.
    bias : int
        What is added to an exponent.
    """

    width: int
    mantissa: int
    bias: int

    @property
    def rounding(self) -> float:
        """Return the number in whose sum a small number is rounded to an integer.

        The integer stands in the lowest bits of the sum.
        """
        return 1.5 * 2.0**self.mantissa

    @property
    def sign(self) -> int:
        """Return the bits of -0.0."""
        return 1 << (self.width - 1)

    @property
    def infinity(self) -> int:
        """Return the bits of infinity."""
        return (2 * self.bias + 1) << self.mantissa

    def encoded(self, number: float) -> int:
        """Return the bits of a number."""
        return int(np.array(number, f"f{self.width // 8}").view(f"u{self.width // 8}"))

    @property
    def type(self) -> Any:
        """Return LLVM's type."""
        ir = _optional.llvm_ir()
        return ir.FloatType() if self.width == 32 else ir.DoubleType()  # noqa: PLR2004


FLOAT32 = Kind(32, 23, 127)
FLOAT64 = Kind(64, 52, 1023)


def _operator(name: str, *condition: str) -> Callable[[Lanes, Lanes | float], Lanes]:
    """Return an operator of two operands, by LLVM's instruction and its condition."""

    def operation(self: Lanes, other: Lanes | float) -> Lanes:
        emit = getattr(self.builder, name)
        return self._new(emit(*condition, self.value, self._lift(other)))

    return operation


def _arithmetic(name: str) -> Callable[[Lanes, Lanes | float], Lanes]:
    """Return one of numbers, or of their bits."""
    floating, integral = _operator(f"f{name}"), _operator(name)

    def operation(self: Lanes, other: Lanes | float) -> Lanes:
        element = getattr(self.value.type, "element", self.value.type)
        return (floating if element == self.kind.type else integral)(self, other)

    return operation


@final
class Lanes:
    """One value for each lane: floating point numbers, their bits, or conditions.

    Python numbers among the operands are constants of the other operand's type.
    Bits are unsigned integers, which wrap around; they are what is compared.

    Parameters
    ----------
    builder : llvmlite's IRBuilder
        Where the instructions go.
    value : llvmlite's value
        A scalar, or a vector.
    kind : Kind
        What the numbers are, or those whose bits these are.
    """

    __slots__ = ("builder", "kind", "value")

    def __init__(self, builder: Any, value: Any, kind: Kind) -> None:
        self.builder, self.value, self.kind = builder, value, kind

    @property
    def count(self) -> int:
        """Return the number of lanes."""
        return getattr(self.value.type, "count", 1)

    __add__, __sub__ = _arithmetic("add"), _arithmetic("sub")
    __mul__, __truediv__ = _arithmetic("mul"), _arithmetic("div")
    __and__, __or__, __xor__ = map(_operator, ("and_", "or_", "xor"))
    __lshift__, __rshift__ = map(_operator, ("shl", "lshr"))
    __lt__, __ge__ = (_operator("icmp_unsigned", sign) for sign in ("<", ">="))

    def __rsub__(self, other: float) -> Lanes:
        return self._constant(other) - self

    def __rtruediv__(self, other: float) -> Lanes:
        return self._constant(other) / self

    def beyond(self, limit: float) -> Lanes:
        """Say which numbers are further from zero than a limit, on its side of zero.

        Infinity is, nan is not. Comparing numbers themselves would report nan as an
        invalid operand, so that bits are compared.
        """
        size = self.kind.infinity - self.kind.encoded(abs(limit))
        return self.bits - (self.kind.encoded(limit) + 1) < size

    def smaller(self, limit: float) -> Lanes:
        """Say which numbers are nearer to zero than a limit."""
        return self.magnitude.bits < self.kind.encoded(limit)

    def fma(self, factor: Lanes | float, summand: Lanes | float) -> Lanes:
        """Return ``self * factor + summand``, rounded once."""
        vector = f"v{self.count}" if self.count > 1 else ""
        name, kind = f"llvm.fma.{vector}f{self.kind.width}", self.value.type
        operands = self.value, self._lift(factor), self._lift(summand)
        return self._new(called(self.builder, name, kind, *operands))

    def polynomial(self, coefficients: Sequence[float]) -> Lanes:
        """Return the polynomial of these values; coefficients rise in power."""
        *lower, highest = coefficients
        start = self._constant(highest)
        return reduce(lambda sum_, c: sum_.fma(self, c), reversed(lower), start)

    def unless(self, condition: Lanes, other: Lanes | float) -> Lanes:
        """Return these values, but the others where the condition holds."""
        b = self.builder
        return self._new(b.select(condition.value, self._lift(other), self.value))

    @property
    def bits(self) -> Lanes:
        """Return the bits of the numbers."""
        ir = _optional.llvm_ir()
        return self._cast("bitcast", ir.IntType(self.kind.width), self.kind)

    @property
    def number(self) -> Lanes:
        """Return the numbers of the bits."""
        return self._cast("bitcast", self.kind.type, self.kind)

    @property
    def magnitude(self) -> Lanes:
        """Return the absolute values."""
        return (self.bits & (self.kind.sign - 1)).number

    @property
    def sign(self) -> Lanes:
        """Return the bits of the signs alone."""
        return self.bits & self.kind.sign

    def signed(self, sign: Lanes) -> Lanes:
        """Return the numbers with their sign turned where a bit of a sign is set."""
        return (self.bits ^ sign).number

    def widened(self) -> Lanes:
        """Return float32 numbers as float64."""
        return self._cast("fpext", FLOAT64.type, FLOAT64)

    def narrowed(self) -> Lanes:
        """Return float64 numbers rounded to float32."""
        return self._cast("fptrunc", FLOAT32.type, FLOAT32)

    def _cast(self, name: str, element: Any, kind: Kind) -> Lanes:
        value = getattr(self.builder, name)(self.value, shape(element, self.count))
        return Lanes(self.builder, value, kind)

    def _new(self, value: Any) -> Lanes:
        return Lanes(self.builder, value, self.kind)

    def _constant(self, number: float) -> Lanes:
        ir, llvm_type = _optional.llvm_ir(), self.value.type
        every: Any = number if self.count == 1 else [number] * self.count
        return self._new(ir.Constant(llvm_type, every))

    def _lift(self, other: Lanes | float) -> Any:
        return other.value if isinstance(other, Lanes) else self._constant(other).value


def shape(element: Any, count: int) -> Any:
    """Return LLVM's type of so many lanes."""
    return element if count == 1 else _optional.llvm_ir().VectorType(element, count)


# One function as LLVM functions, one for each number of lanes.
#
# The function of one lane names those of several as its vector variants, so that LLVM's
# loop vectorizer calls them. Arguments that an implementation does not take, and which
# are rare, go to the C library; their neighbours are then computed one by one, too.

LANES = {FLOAT32: (1, 4, 8, 16), FLOAT64: (1, 2, 4, 8)}
PURE = "noinline", "nounwind", "readnone", "willreturn"


def symbol(name: str, kind: Kind, lanes: int = 1) -> str:
    """Return the name in LLVM's text of a function of so many lanes."""
    return f"xdev.{name}.f{kind.width}" + (f".{lanes}" if lanes > 1 else "")


@cache
def module_text(name: str, kind: Kind, value: Any, rare: Any) -> str:
    """Return the LLVM module that defines a function for every number of lanes.

    ``value`` returns the result of :class:`Lanes`, ``rare`` says which of them the C
    library computes; None: there are none.
    """
    ir = _optional.llvm_ir()
    module, arity = ir.Module(name), value.__code__.co_argcount

    def declared(symbol: str, lanes: int) -> Any:
        kinds = [shape(kind.type, lanes)] * arity
        return ir.Function(module, ir.FunctionType(kinds[0], kinds), symbol)

    scalar, *others = (declared(symbol(name, kind, n), n) for n in LANES[kind])
    mangled = ",".join(
        f"_ZGV_LLVM_N{n}{'v' * arity}_{scalar.name}({other.name})"
        for n, other in zip(LANES[kind][1:], others, strict=True)
    )
    scalar.attributes.update([f'"vector-function-abi-variant"="{mangled}"'])
    for lanes, function in zip(LANES[kind], (scalar, *others), strict=True):
        # It is there, called or not, until the vectorizer has run.
        function.linkage = "weak_odr"
        function.attributes.update(PURE)
        builder = ir.IRBuilder(function.append_basic_block())
        x = [Lanes(builder, argument, kind) for argument in function.args]
        if rare is not None:
            if lanes == 1:
                careful = declared(name + ("f" if kind is FLOAT32 else ""), 1)
            else:
                careful = declared(f"{function.name}.careful", lanes)
                _call_each(careful, scalar, lanes)
            with builder.if_then(_any(builder, rare(*x)), likely=False):
                builder.ret(builder.call(careful, function.args))
        builder.ret(value(*x).value)
    return str(module)


def _call_each(function: Any, scalar: Any, lanes: int) -> None:
    """Define a function that calls another one for each lane.

    It is not ``readnone``, since the C library sets ``errno`` at times, and not
    optimised: LLVM would make it call those that call it.
    """
    ir = _optional.llvm_ir()
    function.linkage = "internal"
    function.attributes.update(("cold", "noinline", "nounwind", "optnone"))
    b = ir.IRBuilder(function.append_basic_block())
    result = ir.Constant(function.ftype.return_type, ir.Undefined)
    for lane in map(ir.IntType(32), range(lanes)):
        values = [b.extract_element(argument, lane) for argument in function.args]
        result = b.insert_element(result, b.call(scalar, values), lane)
    b.ret(result)


def _any(builder: Any, condition: Lanes) -> Any:
    """Return whether a condition holds in any lane."""
    if condition.count == 1:
        return condition.value
    mask = _optional.llvm_ir().IntType(condition.count)
    return builder.icmp_unsigned("!=", builder.bitcast(condition.value, mask), mask(0))
