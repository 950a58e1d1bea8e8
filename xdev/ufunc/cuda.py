"""A scalar function on CUDA arrays: what ``numpy.ufunc.__call__`` is on the host."""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional, device, native
from xdev._plain_calls import BYTES
from xdev.compile import cubins, launch
from xdev.device.cuda import BACKEND
from xdev.errors import DeviceMismatchError, not_array, type_name
from xdev.memory.arrays import array_maker
from xdev.ufunc import cuda_operands, cuda_plan, foreign
from xdev.ufunc.cuda_operands import Array, Number, handed, read
from xdev.ufunc.foreign import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from xdev.ufunc.signatures import Signature, Specialisation

Operand = Array | Number


@final
class CudaLoops:
    """The CUDA kernels of one scalar function, and the calls to them.

    ``launches``, what calls like one before launch, is filled here.
    """

    def __init__(self, scalar: Any, launches: native.calls.Launches) -> None:
        self.scalar, self._launches = scalar, launches
        launches.nin = scalar.nin
        self._lock = threading.RLock()  # guards the making of kernels
        self._plans: dict[Any, cuda_plan.Plan] = {}
        self._kernels: dict[Any, Any] = {}

    def __call__(
        self,
        args: Sequence[Any],
        out: Any = None,
        *,
        where: Any = True,
        casting: str = "same_kind",
        signature: Signature | None = None,
        order: str = "K",
    ) -> Any:
        """Compute the function of arrays and numbers on their device.

        Arrays are CuPy's, Numba's or any exporter's of ``__cuda_array_interface__``.
        ``out`` is written in place, whoever owns it, and returned itself; new results
        are of the first array's library. Whatever is raised, nothing was written.
        """
        name, labels = self.scalar.name, self.scalar.labels
        inputs = [read(x, name, label) for x, label in zip(args, labels, strict=True)]
        outs = out if isinstance(out, tuple) else () if out is None else (out,)
        outputs = [None if x is None else written(x, name) for x in outs]
        mask = mask_of(where, name)
        key = (
            *(x.layout for x in inputs),
            *(x if x is None else (x.layout, x.address % 16) for x in outputs),
            mask if isinstance(mask, bool) else mask.layout,
            (len(outputs), casting, signature, order),
        )
        with placed(name, *inputs, *outputs, mask) as place:
            plan = self._plans.get((key, place))
            if plan is None:
                plan = self._plan(inputs, outputs, mask, casting, signature, order)
                cuda_plan.remember(self._plans, (key, place), plan)
            operands = *inputs, mask
            *rest, where = copied = [apart(x, outputs) for x in operands]
            if any(x is not y for x, y in zip(operands, copied, strict=True)):
                same = {"casting": casting, "order": order}
                return self(rest, out, where=where, signature=signature, **same)
            values = handed(inputs, plan.inputs, name, labels)
            results: list[Any] = [
                outputs[i] if made is None else new_array(made)
                for i, made in enumerate(plan.results)
            ]
            values += [x.address for x in (*results, mask) if isinstance(x, Array)]
            if plan.run is not None and mask is not False:
                plan.run(values)
            first = next((x.owner for x in inputs if isinstance(x, Array)), None)
            returned = tuple(
                y.owner if made is None else foreign.from_native(y.owner, first)
                for y, made in zip(results, plan.results, strict=True)
            )
        if len(returned) > 1:
            return returned
        if mask is True and (casting, signature, order) == ("same_kind", None, "K"):
            self._learn((*args, *(x for x in outs if x is not None)), returned[0], plan)
        return returned[0]

    def _learn(
        self, operands: tuple[Any, ...], result_array: Any, plan: cuda_plan.Plan
    ) -> None:
        """Have calls on such operands launch by the plan from now on."""
        native_array, result = _optional.cupy().ndarray, plan.results[0]
        kinds = {type(x) for x in operands if not isinstance(x, NUMBERS)}
        lifted = result is not None and type(result_array) is not native_array
        if plan.run is None or lifted or not kinds <= {native_array, *foreign.NUMBAS}:
            return
        encoders = [
            Number.encoder(dtype) if value.kind == BYTES else None
            for value, dtype in zip(plan.run.values, plan.inputs, strict=False)
        ]
        launch_plan = native.calls.LaunchPlan(
            plan.run,
            result and result.dtype,
            result and result.shape,
            None if result is None or result.straight else result.axes,
            tuple(encoders) if any(encoders) else (),
        )
        self._launches.learn(operands, launch_plan)

    def _plan(
        self,
        inputs: list[Operand],
        outputs: list[Array | None],
        mask: Array | bool,
        casting: str,
        signature: Signature | None,
        order: str,
    ) -> cuda_plan.Plan:
        require()
        name = self.scalar.name
        asked = self.scalar.resolve(
            [x.value if isinstance(x, Number) else x for x in inputs]
        )
        if signature is None:
            spec = self.scalar.specialise(asked)
        else:
            spec = self.scalar.giving(asked, signature)
        outputs = outputs or [None] * len(spec.outputs)
        casts = [
            (f"input {i}", own if isinstance(x, Number) and x.weak else x.dtype, to)
            for i, (x, own, to) in enumerate(
                zip(inputs, asked, spec.inputs, strict=True)
            )
        ]
        pairs = zip(outputs, spec.outputs, strict=True)
        casts += [("the result", own, y.dtype) for y, own in pairs if y is not None]
        can_cast: Any = np.can_cast  # checks the word itself
        for what, own, to in casts:
            if not can_cast(own, to, casting):
                raise TypeError(
                    f"{name}: {what} cannot be cast from {own} to {to} with "
                    f"casting={casting!r}: cast it first, pass an out of {own}, or "
                    "another casting"
                )
        masked = mask if isinstance(mask, Array) else None
        compiled = partial(self.kernel, spec)
        return cuda_plan.make(spec, inputs, outputs, masked, compiled, order)

    def kernel(self, spec: Specialisation, kernel: cubins.Template) -> Any:
        """Return a loaded kernel, compiled once."""
        capability = launch.capability(_optional.cupy().cuda.runtime.getDevice())
        key, fastmath = (spec, kernel, capability), self.scalar.fastmath
        with self._lock:
            if key not in self._kernels:
                parts = spec.types, kernel.entry, kernel.macros(), capability, fastmath
                make = partial(spec.cubin, kernel, capability, fastmath=fastmath)
                cubin = cubins.load_or_compile(
                    spec.digest, parts, spec.name, make, spec.unchanged
                )
                self._kernels[key] = launch.Kernel(*cubin)
            return self._kernels[key]


def require() -> None:
    """Start CUDA, or say why it cannot be used."""
    device.Device("cuda").require()


def written(x: Any, name: str) -> Array:
    """Return what an output is; its library is told that it is going to be written."""
    memory = read(x, name, "out=")
    foreign.begin_write(x, name)
    if not isinstance(memory, Array):
        message = f"{name}: out= is {not_array(x, 'pass an array on the device')}"
        raise TypeError(message)
    if not memory.writable:
        raise ValueError(f"{name}: out is read-only: pass an array that may be written")
    return memory


def mask_of(where: Any, name: str) -> Array | bool:
    """Return which elements are computed: all, none, or those that an array says."""
    if isinstance(where, bool):
        return where
    mask = read(where, name)
    dtype = mask.layout if isinstance(mask, Number) else mask.dtype
    if dtype != np.bool_:
        message = f"{name}: where must be bool, not {dtype}: pass where=mask != 0"
        raise TypeError(message)
    return bool(mask.value) if isinstance(mask, Number) else mask


def new_array(result: cuda_plan.Result) -> Array:
    """Return a new CuPy array; what the caller gets is made of it after the launch."""
    array = array_maker()(result.shape, result.dtype)
    if not result.straight:
        array = array.transpose(result.axes)
    return Array.of(array)


def apart(x: Any, outputs: Sequence[Array | None]) -> Any:
    """Return an operand, or a copy of it where an output would spoil it."""
    spoilt = isinstance(x, Array) and any(y and x.is_spoilt(y) for y in outputs)
    return Array.of(x.cupy().copy()) if spoilt else x


_HERE = nullcontext(0)  # no guard: there is one device, and it is current


def on_device(arrays: list[Array], name: str) -> AbstractContextManager[int]:
    """Make the arrays' device current; refuse arrays of two."""
    if BACKEND.count() == 1:
        return _HERE
    placed = [(x, index) for x in arrays if (index := x.device) is not None]
    first, place = placed[0] if placed else (None, BACKEND.current())
    for x, index in placed:
        if first is not None and index != place:
            raise DeviceMismatchError(
                f"{name} got arrays of two devices: {type_name(first.owner)} is on "
                f"cuda:{place}, {type_name(x.owner)} of shape {x.shape} on "
                f"cuda:{index}; move one with xdev.to_device(x, 'cuda:{place}')"
            )
    return _guard(place)


@contextmanager
def _guard(index: int) -> Iterator[int]:
    with _optional.cupy().cuda.Device(index):
        yield index


@contextmanager
def placed(name: str, *operands: Any) -> Iterator[int]:
    """Make the arrays' device current, and order launches with their streams."""
    arrays = [x for x in operands if isinstance(x, Array)]
    with on_device(arrays, name) as place, cuda_operands.ordered(arrays):
        yield place
