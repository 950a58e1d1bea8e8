"""Arithmetic on the lanes of a SIMD register, written as Python expressions.

Each operator emits one LLVM instruction. One expression serves a single element and
any number of them side by side, in float32 and float64, with the same result to the
last bit: nothing is fused or reordered but by :meth:`Lanes.fma`.
"""

from __future__ import annotations

from functools import reduce
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
    def suffix(self) -> str:
        """Return the name in LLVM's intrinsics."""
        return f"f{self.width}"

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
    def one(self) -> int:
        """Return the bits of 1.0."""
        return self.bias << self.mantissa

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


def _operator(name: str) -> Callable[[Lanes, Lanes | float], Lanes]:
    """Return an operator of two operands, by the name of LLVM's instruction."""

    def operation(self: Lanes, other: Lanes | float) -> Lanes:
        emit = getattr(self.builder, name)
        return self._new(emit(self.value, self._lift(other)))

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

    def __lt__(self, other: Lanes | int) -> Lanes:
        return self._new(self.builder.icmp_unsigned("<", self.value, self._lift(other)))

    def __ge__(self, other: Lanes | int) -> Lanes:
        emit = self.builder.icmp_unsigned
        return self._new(emit(">=", self.value, self._lift(other)))

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
        name, kind = f"llvm.fma.{vector}{self.kind.suffix}", self.value.type
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
        llvm_type = shape(element, self.count)
        value = getattr(self.builder, name)(self.value, llvm_type)
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
