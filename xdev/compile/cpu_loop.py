"""The inner loop of a NumPy ufunc, emitted as LLVM instructions.

There is one loop for each way that operands commonly lie in memory: all contiguous,
all but one contiguous and that one a scalar, a reduction into one value, and any
strides. All but the last have constant strides. The contiguous ones run only where
no store can change what a later iteration loads; they say so to LLVM by alias scopes.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, final

from xdev import _optional
from xdev.compile.cpu_math import linking

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

REGISTER = 64  # bytes of the largest one: on the stack it may not straddle cache lines
FLAGS = 0x1F  # every floating point exception, as feclearexcept numbers them
LINE = 64  # bytes of a cache line
MAX_SCALAR_CASES = 3  # of so many inputs, each may be a scalar; code size grows with it


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
    """

    function: Any
    inputs: list[Operand]
    outputs: list[Operand]
    branches: bool
    light: bool = False
    signatures: dict[Any, Any] = field(default_factory=dict)
    library: Any = None  # the function's code, its mathematics vectorized

    def resolve(self, typing: Any) -> None:
        """Compile every function that an iteration calls."""
        self._resolve(typing, self.function, tuple(o.computed for o in self.inputs))
        for operand in self.inputs + self.outputs:
            if operand.widen is not None:
                self._resolve(typing, operand.widen, (operand.stored,))
                self._resolve(typing, operand.narrow, (operand.computed,))
        compiled = self.function.overloads[self.signatures[self.function][1].args]
        self.library = linking.vectorized(compiled.library)

    def _resolve(self, typing: Any, function: Any, args: tuple[Any, ...]) -> None:
        kind = _optional.numba().core.types.Dispatcher(function)
        self.signatures[function] = kind, kind.get_call_type(typing, args, {})

    def call(
        self, context: Any, builder: Any, function: Any, args: Sequence[Any]
    ) -> Any:
        """Emit a call of one of the resolved functions."""
        kind, signature = self.signatures[function]
        if function is not self.function:
            return context.get_function(kind, signature)(builder, args)
        context.add_linking_libs([self.library])
        compiled = function.overloads[signature.args]
        status, result = context.call_internal_no_propagate(
            builder, compiled.fndesc, signature, args
        )
        wrong = _undefined(context, builder, signature.return_type)
        return builder.select(status.is_error, wrong, result)

    def apply(self, context: Any, builder: Any, values: Sequence[Any]) -> list[Any]:
        """Emit the scalar function on loaded values; return what is to be stored."""
        widened = [
            value if o.widen is None else self.call(context, builder, o.widen, (value,))
            for o, value in zip(self.inputs, values, strict=True)
        ]
        result = self.call(context, builder, self.function, widened)
        kind = self.signatures[self.function][1].return_type
        if isinstance(kind, _optional.numba().core.types.BaseTuple):
            parts = _optional.numba().core.cgutils.unpack_tuple(builder, result)
            kinds = list(kind)
        else:
            parts, kinds = [result], [kind]
        given = []
        for o, part, source in zip(self.outputs, parts, kinds, strict=True):
            value = context.cast(builder, part, source, o.computed)
            if o.narrow is not None:
                value = self.call(context, builder, o.narrow, (value,))
            given.append(value)
        return given


def emit(
    context: Any,
    builder: Any,
    body: Body,
    arguments: Sequence[Any],
) -> None:
    """Emit every case of the loop, the fast ones first, and the choice between them.

    Parameters
    ----------
    context, builder : Numba's target context, LLVM's instruction builder
        Where to.
    body : Body
        What one iteration does; resolved.
    arguments : sequence of three LLVM values
        NumPy's ``args``, ``dimensions`` and ``steps``.
    """
    builder.function.attributes.update([f"alignstack({REGISTER})"])
    nin, operands = len(body.inputs), body.inputs + body.outputs
    loop = _Loop(context, builder, body, *arguments)
    sizes = [operand.itemsize for operand in operands]
    cases = [sizes]
    if 1 < nin <= MAX_SCALAR_CASES:
        cases += [[0 if k == j else s for k, s in enumerate(sizes)] for j in range(nin)]
    done = builder.append_basic_block("done")
    for case in cases:
        with builder.if_then(loop.has_strides(case)), builder.if_then(loop.apart(case)):
            loop.elementwise([loop.constant(stride) for stride in case], apart=True)
            builder.branch(done)
    if nin == 2 and len(operands) == 3 and operands[0] == operands[2]:  # noqa: PLR2004
        with builder.if_then(loop.is_reduction()):
            loop.reduce()
            builder.branch(done)
    loop.elementwise(loop.strides, apart=False)
    builder.branch(done)
    builder.position_at_end(done)
    if body.branches:
        loop.clear_exceptions()


def _undefined(context: Any, builder: Any, kind: Any) -> Any:
    """Return what an element is whose complex division is by zero: NaN, or zero."""
    numba = _optional.numba()
    types, cgutils = numba.core.types, numba.core.cgutils
    if isinstance(kind, types.BaseTuple):
        parts = [_undefined(context, builder, part) for part in kind]
        return context.make_tuple(builder, kind, parts)
    if isinstance(kind, types.Float):
        return context.get_constant(kind, float("nan"))
    if isinstance(kind, types.Complex):
        return context.get_constant(kind, complex("nan+nanj"))
    return cgutils.get_null_value(context.get_value_type(kind))


@final
class _Loop:
    """The operands of one call of the loop, and the instructions over them."""

    def __init__(
        self,
        context: Any,
        builder: Any,
        body: Body,
        args: Any,
        dimensions: Any,
        steps: Any,
    ) -> None:
        numba = _optional.numba()
        self.context, self.builder, self.body = context, builder, body
        self.cgutils = numba.core.cgutils
        self.operands = body.inputs + body.outputs
        self.intp = context.get_value_type(numba.core.types.intp)
        pointer = self.cgutils.voidptr_t
        every = range(len(self.operands))
        self.loops = 0
        self.count = self._word(dimensions, self.intp, 0)
        self.pointers = [self._word(args, pointer, k) for k in every]
        self.strides = [self._word(steps, self.intp, k) for k in every]
        metadata = builder.module.add_metadata
        domain = metadata(["xdev"])
        self.read = metadata([metadata(["xdev inputs", domain])])
        self.written = metadata([metadata(["xdev outputs", domain])])

    def constant(self, value: int) -> Any:
        """Return a constant of pointer size."""
        return self.intp(value)

    def has_strides(self, case: Sequence[int]) -> Any:
        """Return whether the strides are those of a case."""
        equal = [
            self.builder.icmp_signed("==", stride, self.intp(constant))
            for stride, constant in zip(self.strides, case, strict=True)
        ]
        return self._all(equal)

    def apart(self, case: Sequence[int]) -> Any:
        """Return whether no store of one iteration touches what another loads.

        An output may be an input exactly, but only a single one: its value depends
        on every load, so that no load can move behind the store.
        """
        b = self.builder
        starts = [b.ptrtoint(pointer, self.intp) for pointer in self.pointers]
        ends = [
            b.add(
                start,
                b.mul(self.count, self.intp(stride))
                if stride
                else self.intp(o.itemsize),
            )
            for start, stride, o in zip(starts, case, self.operands, strict=True)
        ]
        nin = len(self.body.inputs)
        tests = []
        for out in range(nin, len(starts)):
            for k in range(out):
                test = b.or_(
                    b.icmp_unsigned("<=", ends[k], starts[out]),
                    b.icmp_unsigned("<=", ends[out], starts[k]),
                )
                if case[k] == case[out] and len(starts) == nin + 1:
                    test = b.or_(test, b.icmp_unsigned("==", starts[k], starts[out]))
                tests.append(test)
        return self._all(tests)

    def is_reduction(self) -> Any:
        """Return whether the output and the first input are one and the same value."""
        b, zero = self.builder, self.intp(0)
        return self._all(
            [
                b.icmp_unsigned("==", self.pointers[0], self.pointers[2]),
                b.icmp_signed("==", self.strides[0], zero),
                b.icmp_signed("==", self.strides[2], zero),
            ]
        )

    def elementwise(self, strides: Sequence[Any], *, apart: bool) -> None:
        """Emit the loop that loads, computes and stores at given strides."""
        nin = len(self.body.inputs)
        with self.cgutils.for_range(self.builder, self.count, intp=self.intp) as loop:
            at = [self._at(k, loop.index, strides[k]) for k in range(len(strides))]
            values = [self._load(k, at[k], apart=apart) for k in range(nin)]
            results = self.body.apply(self.context, self.builder, values)
            for k, result in enumerate(results, nin):
                self._store(k, at[k], result, apart=apart)
            body = self.builder.block
        if apart and self.body.light:
            body.terminator.set_metadata("llvm.loop", self._streaming())

    def _streaming(self) -> Any:
        """Advise LLVM of a loop that waits for memory: one cache line an iteration.

        That is two vectors of half a cache line, of which every other one lies in two
        lines where an array is not aligned. More and larger ones cost up to a fifth
        from the second level of caches on.
        """
        metadata, ir = self.builder.module.add_metadata, self.cgutils.ir
        lanes = LINE // 2 // max(operand.itemsize for operand in self.operands)
        advice = {"vectorize.width": max(lanes, 1), "interleave.count": 2}
        parts = [
            metadata([f"llvm.loop.{what}", ir.Constant(ir.IntType(32), number)])
            for what, number in advice.items()
        ]
        self.loops += 1
        loop = metadata([metadata([f"xdev loop {self.loops}"])])
        loop.operands = (loop, *parts)  # LLVM wants a loop's first operand to be itself
        return loop

    def reduce(self) -> None:
        """Emit the loop that keeps the running result in a register."""
        b = self.builder
        value = self._load(0, self._at(0, self.intp(0), self.intp(0)))
        running = self.cgutils.alloca_once_value(b, value)
        with self.cgutils.for_range(b, self.count, intp=self.intp) as loop:
            other = self._load(1, self._at(1, loop.index, self.strides[1]))
            (result,) = self.body.apply(self.context, b, [b.load(running), other])
            b.store(result, running)
        self._store(2, self._at(2, self.intp(0), self.intp(0)), b.load(running))

    def clear_exceptions(self) -> None:
        """Emit a call of C's ``feclearexcept``."""
        ir, b = self.cgutils.ir, self.builder
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32)])
        clear = self.cgutils.get_or_insert_function(b.module, kind, "feclearexcept")
        b.call(clear, [ir.IntType(32)(FLAGS)])

    def _all(self, conditions: Sequence[Any]) -> Any:
        return reduce(self.builder.and_, conditions)

    def _word(self, pointer: Any, kind: Any, index: int) -> Any:
        typed = self.builder.bitcast(pointer, kind.as_pointer())
        return self.builder.load(self.cgutils.gep_inbounds(self.builder, typed, index))

    def _at(self, k: int, index: Any, stride: Any) -> Any:
        b = self.builder
        model = self.context.data_model_manager[self.operands[k].stored]
        pointer = b.gep(self.pointers[k], [b.mul(index, stride)], inbounds=True)
        return b.bitcast(pointer, model.get_data_type().as_pointer())

    def _load(self, k: int, pointer: Any, *, apart: bool = False) -> Any:
        model = self.context.data_model_manager[self.operands[k].stored]
        with self._marked("load", apart, self.read, self.written):
            return model.load_from_data_pointer(self.builder, pointer)

    def _store(self, k: int, pointer: Any, value: Any, *, apart: bool = False) -> None:
        kind = self.operands[k].stored
        with self._marked("store", apart, self.written, self.read):
            self.context.pack_value(self.builder, kind, value, pointer)

    @contextmanager
    def _marked(self, what: str, apart: bool, own: Any, other: Any) -> Iterator[None]:
        """Mark loads or stores emitted inside: they meet none of the other scope."""
        block = self.builder.block
        before = len(block.instructions)
        yield
        for instruction in block.instructions[before:]:
            if apart and instruction.opname == what:
                instruction.set_metadata("alias.scope", own)
                instruction.set_metadata("noalias", other)
