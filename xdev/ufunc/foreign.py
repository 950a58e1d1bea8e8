"""PyTorch's and JAX's arrays as arguments and results: the same memory, other types.

An adapter per library says what NumPy or CuPy array an argument is, and makes the
library's array of a result. Arrays that say all by ``__cuda_array_interface__`` alone
need none.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional, native
from xdev.device.cuda import BACKEND
from xdev.device.natives import natives
from xdev.device.streams import live_streams
from xdev.memory.arrays import record_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

LEGACY = 1  # the null stream's name in __cuda_array_interface__, where 0 means none

# Arrays that lend their memory by NumPy's protocol, as Warp's: arguments and outputs.
#
# Results beside them are NumPy's. On CUDA ``__cuda_array_interface__`` says all.


class Adapter:
    """One library's arrays: here those of any that lend their memory."""

    mutable = True

    def is_for(self, kind: type) -> bool:
        """Say whether a type is one of the library's arrays."""
        more = hasattr(kind, "__array_ufunc__") or hasattr(kind, "__array_namespace__")
        return hasattr(kind, "__array_interface__") and not more

    def on_cuda(self, x: Any) -> bool:
        """Say whether an array is on a CUDA device."""
        return hasattr(x, "__cuda_array_interface__")

    def to_native(self, x: Any, name: str) -> Any:  # noqa: ARG002 - nothing is refused
        """Return an array's memory as a NumPy or CuPy array, or refuse it."""
        return np.asarray(x)

    def stream(self, x: Any) -> int | None:  # noqa: ARG002 - of no array
        """Return the library's stream; None, not told: a call's work is waited for."""
        return None

    def begin_write(self, x: Any, name: str, label: str = "out") -> None:
        """Tell the library that an array is about to be written, or refuse that."""

    def from_native(self, array: Any, like: Any) -> Any:  # noqa: ARG002
        """Return a NumPy or CuPy result, which is nobody else's, as its own array.

        On CUDA the work that writes the result is queued on the current stream.
        """
        return array


@final
class TorchAdapter(Adapter):
    """PyTorch's tensors, dense ones; a view that it conjugates lazily is made real."""

    def is_for(self, kind: type) -> bool:
        """Say whether a type of PyTorch's is one of tensors."""
        return issubclass(kind, _optional.torch().Tensor)

    def on_cuda(self, x: Any) -> bool:
        """Ask the tensor."""
        return bool(x.is_cuda)

    def to_native(self, x: Any, name: str) -> Any:
        """Return a view; a tensor that records gradients must be detached first."""
        torch = _optional.torch()
        self._refuse_gradient(x, name)
        dense = x.layout is torch.strided and not x.is_nested
        if not (dense and (x.is_cpu or x.is_cuda)):
            layout = "nested" if x.is_nested else str(x.layout).removeprefix("torch.")
            raise TypeError(
                f"{name}() takes dense tensors on the CPU or on CUDA, not a {layout} "
                f"one on {str(x.device)!r}: convert it, x.to_dense() or x.to('cpu')"
            )
        plain = x.detach() if x.requires_grad else x
        if x.is_conj() or x.is_neg():
            plain = plain.resolve_conj().resolve_neg()
        try:
            if x.is_cuda:
                return _cupy_view(plain, _numpy_dtype(plain.dtype))
            if plain.dtype is torch.bfloat16:
                return plain.view(torch.int16).numpy().view(_numpy_dtype(plain.dtype))
            return plain.numpy()
        except (TypeError, ImportError) as error:
            raise TypeError(
                f"{name}(): NumPy has no dtype {x.dtype}: convert the tensor first"
            ) from error

    def stream(self, x: Any) -> int | None:
        """Return PyTorch's current stream on the tensor's device."""
        if not x.is_cuda:
            return None
        stream = _optional.torch().cuda.current_stream(x.device)
        return int(stream.cuda_stream) or LEGACY

    def begin_write(self, x: Any, name: str, label: str = "out") -> None:
        """Refuse views that are not memory of their own; gradients see the write."""
        self._refuse_gradient(x, name)
        steps = zip(x.shape, x.stride(), strict=True)
        if x.is_conj() or x.is_neg() or any(n > 1 and not step for n, step in steps):
            raise TypeError(
                f"{name}(): {label} is a view that is expanded, or lazily conjugated "
                "or negated: pass the tensor that it was made from, or a copy of it"
            )
        if not x.is_inference():  # autograd may have kept the old values
            _optional.torch().autograd.graph.increment_version(x)

    def from_native(self, array: Any, like: Any) -> Any:
        """Return a tensor of a result's memory."""
        torch = _optional.torch()
        # The one dtype here that is an extension's; no protocol between them has it.
        half = array.dtype.kind == "V"
        if isinstance(array, np.ndarray | np.generic):
            array = np.asarray(array)
            tensor = torch.from_numpy(array.view(np.int16) if half else array)
        else:
            self._keep(array, like)
            # -1: without order between streams. Who called sees to that.
            capsule = (array.view(np.int16) if half else array).__dlpack__(stream=-1)
            tensor = torch.from_dlpack(capsule)
        return tensor.view(torch.bfloat16) if half else tensor

    def _keep(self, array: Any, like: Any) -> None:
        """Keep a result's memory, once dropped, until PyTorch's stream is done."""
        stream = self.stream(like) if like.is_cuda else None
        here = _optional.cupy().cuda.get_current_stream().ptr
        if stream not in (None, here or LEGACY) and here not in live_streams.captured:
            with suppress(ValueError):  # the memory is not a pool's
                record_stream(array, stream)

    def _refuse_gradient(self, x: Any, name: str) -> None:
        if x.requires_grad and _optional.torch().is_grad_enabled():
            raise TypeError(
                f"{name}() got a tensor that requires a gradient, and none passes "
                "through it: pass x.detach(), or call it under torch.no_grad()"
            )


def _cupy_view(x: Any, dtype: np.dtype[Any]) -> Any:
    cupy = _optional.cupy()
    size = dtype.itemsize
    steps = tuple(step * size for step in x.stride())
    ends = ((n - 1) * step for n, step in zip(x.shape, steps, strict=True))
    nbytes = sum(ends) + size if x.numel() else 0
    address = x.data_ptr() if nbytes else 0
    memory = cupy.cuda.UnownedMemory(address, nbytes, x, x.device.index)
    pointer = cupy.cuda.MemoryPointer(memory, 0)
    return cupy.ndarray(tuple(x.shape), dtype, pointer, steps)


@cache
def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    word = str(dtype).removeprefix("torch.")
    if word == "bfloat16":
        importlib.import_module("ml_dtypes")  # gives NumPy the name
    return np.dtype(word)


@final
class JaxAdapter(Adapter):
    """JAX's arrays, of one device: arguments, never outputs.

    On CUDA the host waits for JAX's work before a call, and for the call's own work.
    JAX has streams of its own, and memory that it uses again as soon as nobody refers
    to it; it can be told of work on others' streams neither before it frees an argument
    nor before it reads a result. (DLPack would have both sides order their streams; but
    JAX's newer runtime takes every imported array to be ready.)
    """

    mutable = False

    def is_for(self, kind: type) -> bool:
        """Say whether a type of JAX's is one of arrays, or of what stands for them."""
        jax = _optional.jax()
        return issubclass(kind, jax.Array | jax.core.Tracer)

    def on_cuda(self, x: Any) -> bool:
        """Ask the array, if it is one."""
        return not self._traced(x) and {d.platform for d in x.devices()} == {"gpu"}

    def to_native(self, x: Any, name: str) -> Any:
        """Return a view that cannot be written."""
        if self._traced(x):
            raise TypeError(
                f"{name}() cannot be traced by JAX: call it outside jax.jit and "
                "jax.grad, or through jax.pure_callback"
            )
        device, *others = x.devices()
        known = isinstance(x.dtype, np.dtype) and device.platform in {"cpu", "gpu"}
        if others or not known:
            raise TypeError(
                f"{name}() takes numbers on the CPU or on one CUDA device, not a "
                f"jax.Array of {x.dtype} on {len(others) + 1} {device.platform}: move "
                "it there with jax.device_put(x, device)"
            )
        if device.platform == "cpu":
            return np.asarray(x)
        cupy = _optional.cupy()
        if cupy.cuda.get_current_stream().ptr in live_streams.captured:
            raise TypeError(
                f"{name}() is being captured, and a graph has no part in the order of "
                "JAX's work: pass what cupy.from_dlpack(x) returned before"
            )
        x.block_until_ready()
        with cupy.cuda.Device(natives("jax").place(device)[1]):
            return cupy.from_dlpack(x)

    def begin_write(self, x: Any, name: str, label: str = "out") -> None:  # noqa: ARG002
        """Refuse, of any array."""
        raise TypeError(
            f"{name}(): {label} is a jax.Array, and JAX's arrays are immutable: leave "
            "out= away and take the result, which is a jax.Array too"
        )

    def from_native(self, array: Any, like: Any) -> Any:
        """Return a result as an array on the device of ``like``, once it is computed.

        It is in C's order, the only one that all of JAX's parts agree on.
        """
        jax = _optional.jax()
        (device,) = like.devices()
        if isinstance(array, np.ndarray | np.generic):
            return jax.device_put(np.asarray(array), device, may_alias=True)
        cupy = _optional.cupy()
        array = cupy.ascontiguousarray(array).reshape(array.shape)
        cupy.cuda.get_current_stream().synchronize()
        return jax.device_put(jax.dlpack.from_dlpack(array), device, may_alias=True)

    def _traced(self, x: Any) -> bool:
        return isinstance(x, _optional.jax().core.Tracer)


LENDER = Adapter()
#: By the top-level module of the library's types.
ADAPTERS = {"torch": TorchAdapter(), "jax": JaxAdapter(), "jaxlib": JaxAdapter()}
_known: dict[type, Adapter | None] = {}  # by exact type


def of(kind: type) -> Adapter | None:
    """Return the adapter of a type's arrays; None: it needs none."""
    try:
        return _known[kind]
    except KeyError:
        pass
    libraries = {base.__module__.partition(".")[0] for base in kind.__mro__}
    own = [ADAPTERS[library] for library in libraries & ADAPTERS.keys()] or [LENDER]
    return _known.setdefault(kind, own[0] if own[0].is_for(kind) else None)


def any_of(operands: Iterable[Any]) -> bool:
    """Say whether one of them is a library's with an adapter."""
    return any(of(type(x)) is not None for x in operands)


def to_native(x: Any, name: str) -> Any:
    """Return the NumPy or CuPy array of an argument's memory; others as they came."""
    adapter = of(type(x))
    return x if adapter is None else adapter.to_native(x, name)


def begin_write(x: Any, name: str) -> None:
    """Tell the library of an output that it is about to be written."""
    adapter = of(type(x))
    if adapter is not None:
        adapter.begin_write(x, name)


def from_native(array: Any, like: Any) -> Any:
    """Return a NumPy or CuPy result as an array of another's library, without a copy.

    Examples
    --------
    >>> from_native(np.ones(2), np.zeros(3))
    array([1., 1.])
    """
    adapter = of(type(like))
    if adapter is not None:
        return adapter.from_native(array, like)
    if type(like).__module__.startswith("numba."):
        interface = array.__cuda_array_interface__
        cuda = _optional.numba_cuda()
        return cuda.from_cuda_array_interface(interface, owner=array, sync=False)
    return array


def on_host(
    call: Callable[..., Any],
    name: str,
    args: Sequence[Any],
    keywords: dict[str, Any],
    written: Sequence[Any],
) -> Any:
    """Call a function on what its arguments in host memory are to NumPy.

    ``written`` are those that it writes. An argument that it returns comes back as it
    came; other arrays are of the first array's library.
    """
    views: dict[int, tuple[Any, Any]] = {}  # by identity: as NumPy's, as they came

    def read(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(map(read, x))
        view = to_native(x, name)
        views[id(view)] = view, x
        return view

    inputs = [read(x) for x in args]
    pairs = zip(args, inputs, strict=True)
    first = next((x for x, y in pairs if isinstance(y, np.ndarray)), None)
    keywords = {key: read(x) for key, x in keywords.items()}
    for x in written:
        begin_write(x, name)

    def back(result: Any) -> Any:
        if isinstance(result, tuple):
            return tuple(map(back, result))
        if id(result) in views:
            return views[id(result)][1]
        return None if result is None else from_native(result, first)

    return back(call(*inputs, **keywords))


# Which arguments of a ufunc are arrays on a CUDA device.

NUMBERS = (bool, int, float, complex, np.generic)
ALWAYS: set[type] = set()  # types whose every array is on a CUDA device, once seen


def is_cuda(x: Any) -> bool:
    """Say whether ``x`` is an array on a CUDA device, of any library."""
    cls = type(x)
    if cls in ALWAYS:
        return True
    if cls is np.ndarray or issubclass(cls, NUMBERS):
        return False
    adapter = of(cls)
    if adapter is not None:
        return adapter.on_cuda(x)
    if not hasattr(cls, "__cuda_array_interface__"):
        return False
    if cls.__module__.partition(".")[0] in {"cupy", "numba"}:
        ALWAYS.add(cls)
        return True
    return hasattr(x, "__cuda_array_interface__")


# Numba's device arrays, read by their attributes.
#
# Their ``__cuda_array_interface__`` says the same, but takes them 10 µs to make.

NUMBAS: set[type] = set()  # the type of Numba's device arrays, once one was seen


def is_numbas(kind: type) -> bool:
    """Say whether a type is that of Numba's device arrays."""
    if kind in NUMBAS:
        return True
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name != "numba.cuda.cudadrv.devicearray.DeviceNDArray":
        return False
    NUMBAS.add(kind)
    native.calls.read_by(kind, _numbas_layout)
    return True


def _numbas_layout(x: Any) -> tuple[Any, ...] | None:
    """Return all that a launch depends on; None where streams are to be ordered."""
    stream, current = numbas_stream(x), LEGACY
    if stream is not None and live_streams.several:
        current = _optional.cupy().cuda.get_current_stream().ptr or LEGACY
    place = numbas_address(x)
    device = BACKEND.index_of_pointer(place) if BACKEND.count() > 1 else 0
    if stream not in (None, current) or device is None:
        return None
    return place, device, x.dtype, x.shape, x.strides


def numbas_address(x: Any) -> int:
    """Return where an array begins; 0 for some that are empty."""
    return int(x.device_ctypes_pointer.value or 0)


def numbas_stream(x: Any) -> int | None:
    """Return the stream that an array is bound to, None without one."""
    return (int(x.stream) or LEGACY) if x.stream else None
