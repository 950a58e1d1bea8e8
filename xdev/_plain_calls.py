"""What stands in for the compiled tier: the same classes in Python.

A table of plans is replaced as a whole, never changed: threads may read and write it.
"""

from __future__ import annotations

import ctypes
import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, final

from numpy import ndarray, uint8

if TYPE_CHECKING:
    import collections.abc

    Extents = int | tuple[int, int, int]

T = TypeVar("T")
MOST = 16  # plans of one table: the oldest goes
STRAIGHT = 0x101  # NumPy's flags: C-contiguous, aligned


@final
class Plan:
    """How to do again what was done before.

    Parameters
    ----------
    kinds : tuple
        The data type of each operand that is a NumPy array, the type of each other one.
    nin : int
        How many of them are inputs.
    ufunc : callable
        Takes small operands.
    call : object
        ``call.large(operands)`` computes all others; ``call.explain(error, operands)``
        may raise an error of the ufunc's in better words.
    limit : float, optional
        Results of so many elements are large.
    strided : float, optional
        The same where arrays differ in shape, or one is not C-contiguous or aligned.
    """

    __slots__ = ("call", "kinds", "limit", "nin", "strided", "ufunc")

    def __init__(
        self,
        kinds: tuple[Any, ...],
        nin: int,
        ufunc: collections.abc.Callable[..., Any],
        call: Any,
        limit: float = 0,
        strided: float = 0,
    ) -> None:
        self.kinds, self.nin, self.ufunc, self.call = kinds, nin, ufunc, call
        self.limit, self.strided = limit, strided


@final
class Plans:
    """The plans of one function, which what computes learns and its calls follow."""

    __slots__ = ("_plans",)

    def __init__(self) -> None:
        self._plans: dict[tuple[Any, ...], Plan] = {}

    def learn(self, plan: Plan) -> None:
        """Follow a plan from now on."""
        plans = self._plans.copy()
        plans.pop(plan.kinds, None)  # as a key: float and float64's data type are equal
        self._plans = {plan.kinds: plan, **dict([*plans.items()][: MOST - 1])}

    def forget(self) -> None:
        """Follow none of them any longer."""
        self._plans = {}

    def match(self, operands: tuple[Any, ...]) -> tuple[Plan | None, bool]:
        """Return the plan for operands, and whether its ufunc is all that they need."""
        kinds: list[Any] = []
        shape, size, straight = None, 1, True
        for x in operands:
            if type(x) is not ndarray:
                kinds.append(type(x))
                continue
            kinds.append(x.dtype)
            straight = straight and x.flags.num & STRAIGHT == STRAIGHT
            if shape is None:
                shape, size = x.shape, x.size
            elif x.shape != shape:
                size, straight = size * x.size, False  # no result is larger
        plan = self._plans.get(tuple(kinds))
        if plan is None:
            return None, False
        return plan, size < (plan.limit if straight else plan.strided)


SLOT = 16  # bytes that an operand has in a kernel's parameter
LIMIT = 4096  # bytes of a kernel's parameter that every driver takes
LAUNCHES = 512  # plans of one table: with more layouts it starts afresh
# How a value gets into its slot. Of an integer, ``low`` is 64 less its bits.
ADDRESS, DOUBLE, FLOAT, SIGNED, UNSIGNED, BYTES = range(6)
FORMATS = {ADDRESS: "Q", DOUBLE: "d", FLOAT: "f", BYTES: "16s"}  # as struct has them
INTEGERS = {0: "q", 32: "i", 48: "h", 56: "b"}  # by ``low``; unsigned ones are capitals
# What a launch answers; errors of the driver are positive.
STARTED, NO_VALUE, OVERLAP, NEW_STREAM = 0, -1, -2, -3

#: What `connect` adds to.
_cuda: Any = SimpleNamespace(array=None, several_devices=False, several_streams=False)
_streams: set[int] = set()  # known ones
_readers: dict[type, Any] = {}


def connect(
    launch: int,
    stream: int,
    device: int,
    use: int,
    array: type,
    new: collections.abc.Callable[..., Any],
    mark: collections.abc.Callable[..., Any],
    several: bool,
    of_stream: int = 0,  # noqa: ARG001 - the compiled tier asks it
    start: collections.abc.Callable[..., Any] | None = None,
) -> None:
    """Say how kernels are launched.

    By addresses: the driver's ``cuLaunchKernel``; CuPy's functions that return the
    current stream and device, and that make a device current (the last two take one
    more number, without meaning); ``of_stream``, a C function that says whether the
    block at an address is a stream's, so that nothing has to be marked, or 0.

    By value: the type of CuPy's arrays, ``new(shape, dtype)`` that makes one, ``mark``,
    which takes a call's operands once there are several streams, whether there are
    several devices, and ``start``, CuPy's function that calls the driver's and raises
    its errors: ctypes takes 1.3 µs more.
    """
    number, word = ctypes.c_uint, ctypes.c_void_p
    kinds = word, *[number] * 7, word, word, word
    _cuda.array, _cuda.new, _cuda.mark = array, new, mark
    _cuda.several_devices = several
    _cuda.launch = start or ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(launch)
    _cuda.stream = ctypes.PYFUNCTYPE(ctypes.c_ssize_t)(stream)
    _cuda.device = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int)(device)
    _cuda.use = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_int, ctypes.c_int)(use)


def use_several_streams(several: bool = True) -> None:
    """Have the operands of each call marked from now on."""
    _cuda.several_streams = several


def know_stream() -> None:
    """Let calls on the current stream launch by their plans: who owns memory saw it."""
    _streams.add(_cuda.stream())


def forget_stream(stream: int) -> None:
    """Have calls on a stream go the general way again: its handle may come back."""
    _streams.discard(stream)


def make_arrays_of(kind: Any) -> collections.abc.Callable[..., Any]:
    """Return ``make(shape, dtype, order="C", memory=None)``, a maker of CuPy arrays."""

    def make(shape: Any, dtype: Any, order: str = "C", memory: Any = None) -> Any:
        return kind(shape, dtype, memory, None, order)

    return make


def are_of_current_stream(operands: collections.abc.Iterable[Any]) -> bool:  # noqa: ARG001
    """Say whether there are arrays, and all lie in blocks of the current stream."""
    return False  # the compiled tier's pool knows


def read_by(kind: type, reader: collections.abc.Callable[[Any], Any]) -> None:
    """Let calls take arrays of another type than CuPy's.

    ``reader(x)`` returns an array's address, its device's index, its data type, shape
    and strides; None where the call has to go the general way.
    """
    _readers[kind] = reader


def extents(shape: Extents) -> tuple[int, int, int]:
    """Return the three extents of blocks or threads."""
    return (shape, 1, 1) if isinstance(shape, int) else shape


def _format(value: Any) -> str:
    """Return the format of a slot."""
    letter = FORMATS.get(value.kind) or INTEGERS[value.low]
    letter = letter.upper() if value.kind == UNSIGNED else letter
    return f"{letter}{SLOT - struct.calcsize('=' + letter)}x"


class Launch:
    """A kernel with one struct as its parameter, and all of a launch but the values.

    Parameters
    ----------
    kernel : object
        The kernel: its ``handle``.
    blocks, threads : int or (int, int, int)
        The shape of the launch: along x, or along x, y and z.
    parameter : bytes
        The struct: a slot of 16 bytes for each value, and before and after them what
        stays.
    values : tuple
        How each value gets into its slot: ``kind`` is an address or what number it is.
        An address strictly between the distances ``low`` and ``high`` from the output's
        overlaps it, but where ``same`` says that it may be the output itself.
    output : int, optional
        Which value is the output that inputs, those before it, must not overlap.
    first : int
        Where in the struct the first slot is [B], a multiple of 16.
    lanes : int
        How many neighbours a thread of the template ``rows`` computes, where the launch
        is for any number of elements of C-contiguous arrays of one shape whose offsets
        fit 32 bits. The values' ``itemsize`` then says where they overlap.
    size : int
        How many there are where nobody says.
    """

    def __init__(
        self,
        kernel: Any,
        blocks: Extents,
        threads: Extents,
        parameter: bytes,
        values: tuple[Any, ...],
        output: int | None = None,
        *,
        first: int = 0,
        lanes: int = 0,
        size: int = 0,  # noqa: ARG002 - the parameter has it
    ) -> None:
        self.kernel, self.values, self.lanes = kernel, values, lanes
        if len(parameter) > LIMIT:
            raise ValueError("a kernel's parameter is too large")
        tail = parameter[first + SLOT * len(values) :]
        form = f"={first}s{''.join(map(_format, values))}{len(tail)}s"
        self._pack = struct.Struct(form).pack
        self._head, self._tail = parameter[:first], tail
        self._output = len(values) if output is None else output
        self._call = int(kernel.handle), *extents(blocks), *extents(threads), 0
        self._floats = [k for k, x in enumerate(values) if x.kind == FLOAT]
        self._inputs = [
            (k, x.low, x.high, x.same)
            for k, x in enumerate(values)
            if k < self._output < len(values) and x.kind == ADDRESS
        ]

    def start(self, values: collections.abc.Sequence[Any]) -> int:
        """Launch on the current stream, with addresses and numbers.

        There is a value for each slot; those that go as bytes are 16 of them. Return 0,
        an error of the driver, or one of ``NO_VALUE`` (a value does not fit),
        ``OVERLAP`` (an input overlaps the output), ``NEW_STREAM`` (the current one is
        not known): then nothing was launched.
        """
        try:
            if self._floats:  # those that a float does not hold are infinite
                values = [*values]
                for k in self._floats:
                    values[k] = ctypes.c_float(values[k]).value
            parameter = self._pack(self._head, *values, self._tail)
        except (struct.error, OverflowError, TypeError):
            return NO_VALUE
        for k, low, high, same in self._inputs:
            distance = values[k] - values[self._output]
            if low < distance < high and (distance or not same):
                return OVERLAP
        stream = _cuda.stream()
        if stream not in _streams:
            return NEW_STREAM
        place = ctypes.c_char_p(parameter)  # the driver takes where its address is
        try:
            return _cuda.launch(*self._call, stream, ctypes.addressof(place), 0) or 0
        except RuntimeError as error:
            return error.status  # type: ignore[attr-defined, no-any-return] # CuPy's


class LaunchPlan(NamedTuple):
    """How to do a call on CUDA arrays again.

    Parameters
    ----------
    run : Launch
        The launch, of the operands' values and, with a ``dtype``, the result's.
    dtype, shape : optional
        Of the result to make, in memory's order; with lanes the shape is the arrays'.
    axes : tuple of int, optional
        The axes that put it in the caller's order.
    encoders : tuple, optional
        What makes 16 bytes of each operand, None for those that the launch converts.
    scratch : int
        Memory that the launch needs besides; its address is the last value [B].
    """

    run: Launch
    dtype: Any = None
    shape: Any = None
    axes: tuple[int, ...] | None = None
    encoders: tuple[Any, ...] = ()
    scratch: int = 0


@final
class Launches:
    """The launches of one function, by all that they depend on.

    Called with operands, it launches and returns the result, or the last operand;
    NotImplemented where no plan is for them, or the launch is refused.

    Parameters
    ----------
    nin : int
        Of operands from this one on the alignment matters.
    """

    __slots__ = ("known", "nin")

    def __init__(self, nin: int = 0) -> None:
        self.nin = nin
        self.known: dict[Any, LaunchPlan] = {}

    def learn(self, operands: tuple[Any, ...], plan: LaunchPlan) -> None:
        """Follow a plan for such operands from now on."""
        key, _ = self._read(operands)
        if key is not None:
            if len(self.known) >= LAUNCHES:
                self.known.clear()
            self.known[key] = plan

    def forget(self) -> None:
        """Follow none of them any longer."""
        self.known.clear()

    def _read(self, operands: tuple[Any, ...]) -> tuple[Any, list[Any]]:
        """Return what a plan for the operands depends on, and the values.

        The first is None where arrays are of two devices.
        """
        key: list[Any] = []
        values: list[Any] = []
        array, nin, several = _cuda.array, self.nin, _cuda.several_devices
        device = None
        for k, x in enumerate(operands):
            kind = type(x)
            if kind is array:
                data = x.data
                address = data.ptr
                there = data.device_id if several else None
                steps = x._c_contiguous or x.strides  # noqa: SLF001
                key += x.dtype, x.shape, steps, k < nin or address & 15
            elif kind in _readers:
                place = _readers[kind](x)
                if place is None:
                    return None, values
                address, there, *rest = place
                key += kind, *rest, address & 15
            else:
                key.append(kind)
                values.append(x)
                continue
            values.append(address)
            if several:
                if device is not None and there != device:
                    return None, values
                device = there
        return (*key, device), values

    def __call__(self, *operands: Any) -> Any:
        """Launch for operands."""
        key, values = self._read(operands)
        plan = self.known.get(key)
        if plan is None:
            return NotImplemented
        device = key[-1]
        if device is None or device == (current := _cuda.device(0)):
            return self._follow(plan, operands, values)
        _cuda.use(device, 0)
        try:
            return self._follow(plan, operands, values)
        finally:
            _cuda.use(current, 0)

    def _follow(
        self, plan: LaunchPlan, operands: tuple[Any, ...], values: list[Any]
    ) -> Any:
        run, dtype, shape, axes, encoders, scratch = plan
        if _cuda.several_streams:
            _cuda.mark(operands)
        try:
            for k, encode in enumerate(encoders):
                if encode is not None:
                    values[k] = encode(values[k])
        except (OverflowError, TypeError, ValueError):
            return NotImplemented
        result = operands[-1]
        if dtype is not None:
            result = _cuda.new(shape, dtype)
            if axes is not None:
                result = result.transpose(axes)
            values.append(result.data.ptr)
        if scratch:
            held = _cuda.new((scratch,), uint8)
            values.append(held.data.ptr)
        return NotImplemented if run.start(values) else result


class Callable:
    """A function whose calls go by a plan, where there is one, else the general way.

    That is the subclass's ``_call(args, keywords)``.
    """

    plans: Plans
    launches: Launches

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Make it with tables of its own, without plans."""
        self = object.__new__(cls)
        self.plans, self.launches = Plans(), Launches()
        return self

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Compute; inputs go by place, ``out=`` may."""
        operands = args
        if keywords:
            if len(keywords) > 1 or "out" not in keywords:
                return self._call(args, keywords)
            operands = (*args, keywords["out"])
        launches = self.launches
        if launches.known and (not keywords or len(args) == launches.nin):
            inputs = args if keywords and operands[-1] is None else operands
            result = launches(*inputs)
            if result is not NotImplemented:
                return result
        plan, is_small = self.plans.match(operands)
        if plan is None or (keywords and len(args) != plan.nin):
            return self._call(args, keywords)
        if not is_small:
            return plan.call.large(operands)
        try:
            return plan.ufunc(*operands)
        except (TypeError, ValueError, OverflowError) as error:
            plan.call.explain(error, operands)
            raise

    def _call(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        raise NotImplementedError


def direct(kind: type[T]) -> type[T]:
    """Return a class of :class:`Callable`'s whose calls are quick: here the class."""
    return kind
