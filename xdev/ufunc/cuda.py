"""A scalar function on CUDA arrays: what ``numpy.ufunc.__call__`` is on the host."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional, device
from xdev.compile import elementwise, launch
from xdev.errors import DeviceMismatchError
from xdev.memory.device_arrays import array_maker
from xdev.ufunc import cuda_fast, cuda_plan, cuda_streams
from xdev.ufunc.cuda_operands import Array, Number, is_cuda, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from xdev.ufunc.scalar import ScalarFunction, Specialisation

__all__ = ["CudaLoops", "is_cuda"]

PLANS = 512  # kept for each function; a program with more layouts starts afresh
Operand = Array | Number


@final
class CudaLoops:
    """The CUDA kernels of one scalar function, and the calls to them.

    Parameters
    ----------
    scalar : ScalarFunction
        The function with its typings.

    Attributes
    ----------
    fast : callable
        ``fast(*inputs, out)``: the same as a call without keywords, and the quickest
        way where all are contiguous CuPy arrays of one shape.
    """

    def __init__(self, scalar: ScalarFunction) -> None:
        self.scalar = scalar
        self._lock = threading.RLock()  # guards the making of plans and kernels
        self._plans: dict[Any, cuda_plan.Plan] = {}
        self._kernels: dict[Any, Any] = {}
        self._table: cuda_fast.Table = {}
        self.fast: Callable[..., Any] = self._first

    def _first(self, *operands: Any) -> Any:
        """Make the fast path at the first call: CUDA is not touched before."""
        require()
        self.fast = cuda_fast.path(self, self._table, self.scalar.nin)
        return self.fast(*operands)

    def __call__(
        self,
        args: Sequence[Any],
        out: Any = None,
        *,
        where: Any = True,
        casting: str = "same_kind",
        dtype: Any = None,
    ) -> Any:
        """Compute the function of arrays and numbers on their device.

        Parameters
        ----------
        args : sequence
            CuPy arrays, Numba device arrays, exporters of
            ``__cuda_array_interface__``, all on one device; Python and NumPy numbers.
        out : array, or tuple of arrays and None
            Where results go; written in place, whoever owns it, and returned itself.
        where : bool or array of bool
            Which elements are computed.
        casting : str
            What casts of inputs to the loop, and of results to ``out``, are allowed.
        dtype : dtype-like
            What to compute in, in place of the inputs' own dtypes.

        Returns
        -------
        array or tuple of arrays
            ``out``, or arrays of the first array argument's library: Numba device
            arrays for one of those, else CuPy arrays.

        Raises
        ------
        TypeError
            A wrong number of arguments, no typing, or a cast that is not allowed.
        ValueError
            Shapes that do not broadcast, or an ``out`` that cannot be written.
        DeviceMismatchError
            Arrays of two devices. Whatever is raised, nothing was written.
        """
        name = self.scalar.name
        if len(args) != self.scalar.nin:
            message = f"{name} takes {self.scalar.nin} arguments, not {len(args)}"
            raise TypeError(message)
        inputs = [read(x, name) for x in args]
        given = out if isinstance(out, tuple) else () if out is None else (out,)
        outputs = [None if x is None else _output(x, name) for x in given]
        mask = _mask(where, name)
        arrays = [x for x in (*inputs, *outputs, mask) if isinstance(x, Array)]
        key = (
            *(x.layout for x in inputs),
            *(x if x is None else x.layout for x in outputs),
            mask if isinstance(mask, bool) else mask.layout,
            (len(outputs), casting, dtype),
        )
        with _on_device(arrays, name) as place:
            plan = self._plans.get((key, place))
            if plan is None:
                plan = self._plan(inputs, outputs, mask, casting, dtype)
                self._keep((key, place), plan)
            with cuda_streams.ordered(arrays) as stream:
                copied = _apart(plan, inputs, outputs, mask)
                if copied is not None:
                    *rest, where = copied
                    return self(rest, out, where=where, casting=casting, dtype=dtype)
                results = self._run(plan, inputs, outputs, mask, stream)
        made = tuple(
            x.owner if i >= len(given) or given[i] is None else given[i]
            for i, x in enumerate(results)
        )
        if len(made) > 1:
            return made
        if mask is True and casting == "same_kind" and dtype is None:
            cuda_fast.learn(self._table, args, made[0], plan)
        return made[0]

    def _plan(
        self,
        inputs: list[Operand],
        outputs: list[Array | None],
        mask: Array | bool,
        casting: str,
        dtype: Any,
    ) -> cuda_plan.Plan:
        require()
        name = self.scalar.name
        asked = self.scalar.resolve(
            [x.value if isinstance(x, Number) else x for x in inputs]
        )
        if dtype is not None:
            asked = (np.dtype(dtype),) * len(inputs)
        spec = self.scalar.specialise(asked)
        if len(outputs) not in (0, len(spec.outputs)):
            message = (
                f"{name} has {len(spec.outputs)} outputs, but out has {len(outputs)}"
            )
            raise TypeError(message)
        can_cast: Callable[[Any, Any, str], bool] = np.can_cast  # type: ignore[assignment] # checks the word itself
        for i, (x, to) in enumerate(zip(inputs, spec.inputs, strict=True)):
            weak = isinstance(x, Number) and x.weak
            if not weak and not can_cast(x.dtype, to, casting):
                message = (
                    f"{name}: input {i} cannot be cast from {x.dtype} to {to} with "
                    f"casting={casting!r}: cast it first, or pass another casting"
                )
                raise TypeError(message)
        outputs = outputs or [None] * len(spec.outputs)
        for y, made in zip(outputs, spec.outputs, strict=True):
            if y is not None and not can_cast(made, y.dtype, casting):
                message = (
                    f"{name}: its result of {made} cannot be cast to out's {y.dtype} "
                    f"with casting={casting!r}: pass an out of {made}, or "
                    "casting='unsafe'"
                )
                raise TypeError(message)
        masked = None if isinstance(mask, bool) else mask

        def compiled(kernel: elementwise.Elementwise) -> Any:
            return self._kernel(spec, kernel)

        return cuda_plan.make(spec, inputs, outputs, masked, compiled)

    def _kernel(self, spec: Specialisation, kernel: elementwise.Elementwise) -> Any:
        """Return a loaded kernel, compiled once."""
        current = _optional.cupy().cuda.runtime.getDevice()
        key = spec, kernel, launch.capability(current)
        with self._lock:
            if key not in self._kernels:
                cubin, entry = elementwise.cubin(
                    kernel,
                    spec.function,
                    spec.inputs,
                    spec.outputs,
                    key[2],
                    fastmath=self.scalar.fastmath,
                )
                self._kernels[key] = launch.load(cubin, entry)
            return self._kernels[key]

    def _keep(self, key: Any, plan: cuda_plan.Plan) -> None:
        with self._lock:
            if len(self._plans) >= PLANS:
                self._plans.clear()
                self._table.clear()
            self._plans[key] = plan

    def _run(
        self,
        plan: cuda_plan.Plan,
        inputs: list[Operand],
        outputs: list[Array | None],
        mask: Array | bool,
        stream: int,
    ) -> list[Array]:
        """Launch, after the results that nobody gave are made; return them all."""
        values: list[Any] = [
            x.address if isinstance(x, Array) else x.cast(to)
            for x, to in zip(inputs, plan.inputs, strict=True)
        ]
        outputs = outputs or [None] * len(plan.results)
        first = next((x.owner for x in inputs if isinstance(x, Array)), None)
        results = [
            _make(result, first) if isinstance(result, cuda_plan.Result) else result
            for result in (x or r for x, r in zip(outputs, plan.results, strict=True))
            if result is not None
        ]
        values += [x.address for x in results]
        if isinstance(mask, Array):
            values.append(mask.address)
        if plan.run is not None and mask is not False:
            plan.run(stream, values)
        return results


def require() -> None:
    """Start CUDA, or say why it cannot be used."""
    device.Device("cuda").require()


def _output(x: Any, name: str) -> Array:
    found = read(x, name)
    if isinstance(found, Number):
        message = f"{name}: out must be an array, not {type(x).__name__}"
        raise TypeError(message)
    if not found.writable:
        message = f"{name}: out is read-only: pass an array that may be written"
        raise ValueError(message)
    return found


def _mask(where: Any, name: str) -> Array | bool:
    if isinstance(where, bool):
        return where
    found = read(where, name)
    dtype = found.layout if isinstance(found, Number) else found.dtype
    if dtype != np.bool_:
        message = f"{name}: where must be bool, not {dtype}: pass where=mask != 0"
        raise TypeError(message)
    return bool(found.value) if isinstance(found, Number) else found


def _make(result: cuda_plan.Result, first: Any) -> Array:
    """Return a new array of the library of the first array argument."""
    made = array_maker()(result.shape, result.dtype)
    if result.axes != tuple(range(len(result.axes))):
        made = made.transpose(result.axes)
    owner = made
    if type(first).__module__.startswith("numba."):
        interface = made.__cuda_array_interface__
        cuda = _optional.numba_cuda()
        owner = cuda.from_cuda_array_interface(interface, owner=made, sync=False)
    return Array(owner, made.data.ptr, made.shape, made.strides, made.dtype)


def _apart(
    plan: cuda_plan.Plan,
    inputs: list[Operand],
    outputs: list[Array | None],
    mask: Array | bool,
) -> list[Any] | None:
    """Return the arguments with copies of those that an output would spoil.

    An input that lies exactly where an output does is read before it is written, and
    stays. None where nothing needs a copy.
    """
    operands = [*inputs, mask]
    spoilt = [
        isinstance(x, Array)
        and (x.address, x.layout) != (y.address, y.layout)
        # and they meet:
        and below.meets(above, x.address - y.address)
        for y, below in zip(outputs, plan.written, strict=False)
        if y is not None
        for x, above in zip(operands, plan.read, strict=False)
    ]
    if not any(spoilt):
        return None
    return [
        x.cupy().copy()
        if isinstance(x, Array) and any(spoilt[i :: len(operands)])
        else getattr(x, "owner", x)
        for i, x in enumerate(operands)
    ]


class _Here:
    """No guard: there is one device, and it is current."""

    def __enter__(self) -> int:
        return 0

    def __exit__(self, *_: object) -> None:
        pass


_HERE = _Here()


def _on_device(arrays: list[Array], name: str) -> AbstractContextManager[int]:
    """Make the arrays' device current; refuse arrays of two."""
    if cuda_fast.devices() == 1 or not arrays:
        return _HERE
    found = [x.device for x in arrays]
    for x, index in zip(arrays, found, strict=True):
        if index != found[0]:
            message = (
                f"{name} got arrays of two devices: {type(arrays[0].owner).__name__} "
                f"of shape {arrays[0].shape} is on cuda:{found[0]}, "
                f"{type(x.owner).__name__} of shape {x.shape} is on cuda:{index}; move "
                f"one with xdev.to_device(x, 'cuda:{found[0]}')"
            )
            raise DeviceMismatchError(message)
    return _guard(found[0])


@contextmanager
def _guard(index: int) -> Iterator[int]:
    with _optional.cupy().cuda.Device(index):
        yield index
