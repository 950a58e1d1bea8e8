# ruff: noqa: D102 - backends.Place says what each method does
"""CuPy as the facade's library on CUDA, and its arrays, on one GPU each.

Their memory is xdev's pool: CuPy allocates through it. Functions come from
array_api_compat's CuPy namespace; the table of :mod:`xdev.facade.cuda_differences`
mends the rest.
"""

from __future__ import annotations

import importlib
import inspect
import math
import operator
from functools import cache, partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional, native
from xdev.device import Device, registry
from xdev.device.choice import CPU
from xdev.device.copies import announce
from xdev.device.cuda import BACKEND
from xdev.facade import elementwise
from xdev.facade.backends import MAKERS, Library, Place, as_shape
from xdev.facade.clipping import NUMBERS
from xdev.facade.cpu import HOST
from xdev.facade.cuda_differences import fill, mended
from xdev.facade.dtype_names import to_numpy_dtype
from xdev.memory.arrays import array_maker
from xdev.memory.owners import mark_uses
from xdev.memory.reclamation import retrying
from xdev.memory.registry import pool
from xdev.memory.streams import live_streams

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from xdev.facade.protocols import Axes, DType


#: Functions, or rooms of them, whose libraries (cuFFT, cuBLAS, cuSOLVER) take memory of
#: the device past the pool.
OUTSIDE = ("fft.", "linalg.", "matmul", "tensordot", "vecdot")
#: What of them only launches kernels, or makes views.
WITHIN = frozenset((
    *("fft.fftshift", "fft.ifftshift", "linalg.cross", "linalg.diagonal"),
    *("linalg.outer", "linalg.trace", "linalg.vector_norm"),
))  # fmt: skip
_METHODS = "argmax argmin astype mean reshape squeeze take"
_FFT = "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftshift ifftshift"
#: CuPy's own, which do as the standard says: array_api_compat's frames are left out.
OWN = frozenset(
    [
        "broadcast_arrays",
        "meshgrid",
        "tensordot",
        "unique_all",
        "unique_counts",
        "unique_inverse",
        "unique_values",
        *(f"fft.{name}" for name in _FFT.split()),
    ]
)
#: Likewise the methods of its arrays, which are compiled: its functions of these names
#: hand their arguments on to them, in frames of Python.
METHODS = {name: name for name in _METHODS.split()} | {"permute_dims": "transpose"}
#: Reductions of elementwise functions, by the engine's kernels.
REDUCTIONS = {
    "all": elementwise.logical_and,
    "any": elementwise.logical_or,
    "max": elementwise.maximum,
    "min": elementwise.minimum,
    "prod": elementwise.multiply,
    "sum": elementwise.add,
}
#: What makes views alone: no work on the device.
VIEWS = frozenset((
    *("broadcast_arrays", "broadcast_to", "expand_dims", "flip", "matrix_transpose"),
    *("moveaxis", "permute_dims", "squeeze", "unstack", "linalg.diagonal"),
    "linalg.matrix_transpose",
))  # fmt: skip
#: CuPy's operators, which are compiled.
OPERATORS: dict[str, Callable[..., Any]] = {
    "matmul": operator.matmul,
    "matrix_transpose": operator.attrgetter("mT"),
}


def with_room(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function that takes memory past the pool try again once there is some."""
    if name in WITHIN or not name.startswith(OUTSIDE):
        return function
    return retrying(function, partial(pool, "cuda"))


def _reduction(function: Any) -> Callable[..., Any]:
    """Return a reduction along all axes, or some."""

    def reduce(
        x: Any, *, axis: Axes = None, dtype: DType = None, keepdims: bool = False
    ) -> Any:
        if keepdims:
            return function.reduce(x, axis, dtype, None, True)
        return function.reduce(x, axis, dtype)

    vars(reduce)["marks"] = True  # the engine does
    return reduce


def _bare(function: Callable[..., Any], cupy: ModuleType) -> Callable[..., Any]:
    """Return array_api_compat's function without its frame that adds ``xp=cupy``."""
    inner = getattr(function, "__wrapped__", None)
    if inner is None or "xp" not in inspect.signature(inner).parameters:
        return function
    return partial(inner, xp=cupy)


@final
class CuPyLibrary(Library):
    """CuPy: NumPy's data types, ufuncs with ``out=``, one device or several.

    With more than one GPU visible, each call runs with the arrays' device current:
    CuPy puts results on the current device, wherever the arguments are.
    """

    device_type = "cuda"

    def __init__(self) -> None:
        super().__init__(_optional.cupy(), self._find)
        self.several = registry.backend("cuda").count() > 1
        reductions = {name: _reduction(f) for name, f in REDUCTIONS.items()}
        self._known = {**OPERATORS, **reductions, **mended()}
        live_streams.when_several.append(self._mark_uses)

    def bound(self, name: str, like: Any) -> Callable[..., Any]:
        """Return CuPy's function, run where ``like`` is."""
        found: Callable[..., Any] = self.functions[name]
        if self.several and like.data.device_id != BACKEND.current():
            return guarded(found, like.device)
        return found

    def _find(self, name: str) -> Callable[..., Any]:
        if name in self._known:
            found = self._known[name]
        elif name in METHODS:
            method = getattr(self.namespace.ndarray, METHODS[name])
            found = inspect.unwrap(method)  # not what the bridge of operators set
        elif name in OWN:
            found = operator.attrgetter(name)(self.namespace)
        else:
            standard = importlib.import_module("array_api_compat.cupy")
            found = _bare(operator.attrgetter(name)(standard), self.namespace)
        self.keep(name, with_room(name, found))
        return self.functions[name]

    def keep(self, name: str, function: Callable[..., Any]) -> None:
        """Have a function under a name; where there are several streams it marks."""
        self.functions[name] = function  # from here on another thread marks it, or we
        if live_streams.several:
            self.functions[name] = marking(name, function)

    def _mark_uses(self) -> None:
        """Have the functions mark their arguments: several streams are in use."""
        for name, function in list(self.functions.items()):
            self.functions[name] = marking(name, function)

    def device(self, x: Any) -> int | None:
        """Return the device's number, or None where there is one device."""
        return int(x.device.id) if self.several else None

    def write(
        self,
        name: str,
        function: Callable[..., Any],
        values: list[Any],
        out: Any,
        **keywords: Any,
    ) -> Any:
        """Compute into ``out``; its casting is checked by CuPy, before it computes."""
        if not live_streams.several:  # then no pool may have seen the stream
            mark_uses((*values, out), self.device(out))
        return super().write(name, function, values, out, **keywords)

    def wanted(
        self, name: str, function: Callable[..., Any], values: list[Any], out: Any
    ) -> Any:
        """Return the data type of a result, asked with arrays made beside ``out``."""
        asked = super().wanted
        if self.several:
            asked = guarded(asked, out.device)
        return asked(name, function, values, out)


def guarded(function: Callable[..., Any], device: Any) -> Callable[..., Any]:
    """Return a function that runs with a CuPy device current."""

    def on_device(*args: Any, **options: Any) -> Any:
        if BACKEND.current() == device.id:  # to ask is quicker than to switch
            return function(*args, **options)
        with device:
            return function(*args, **options)

    return on_device


def marking(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose arrays' blocks stay until the current stream used them.

    Without it an array of another stream, dropped after the call, would be handed out
    again there before the work here is done. A function that marks, or does no work, is
    itself.
    """
    if name in VIEWS or hasattr(function, "marks"):
        return function

    are_of_current_stream = native.calls.are_of_current_stream

    def on_stream(*args: Any, **options: Any) -> Any:
        if options or not are_of_current_stream(args):
            mark_uses((*args, *options.values()))
        return function(*args, **options)

    vars(on_stream)["marks"] = True
    return on_stream


@cache
def library(_: ModuleType | None = None) -> CuPyLibrary:
    """Return the one library object of CuPy, whichever namespace it is asked by."""
    return CuPyLibrary()


#: These very objects, as small integers are.
ZERO, ONE = 0, 1
#: More elements than any device holds: beyond, CuPy's own count of bytes overflows.
TOO_MANY = 2**59
#: Data types that CuPy takes as they are, and more quickly than their ``numpy.dtype``.
CUPYS = frozenset(np.dtype(char).type for char in "?bhilBHILefdFD")


@final
class CudaPlace(Place):
    """One GPU.

    Parameters
    ----------
    index : int
        CuPy's number of it.
    """

    def __init__(self, index: int) -> None:
        self.cupy = cupy = _optional.cupy()
        self.ndarray, self._device = cupy.ndarray, Device(f"cuda:{index}")
        self._make = array_maker()
        if registry.backend("cuda").count() > 1:
            device = cupy.cuda.Device(index)
            for name in MAKERS:
                setattr(self, name, guarded(getattr(self, name), device))

    def empty(self, shape: Any, dtype: DType, order: str = "C") -> Any:
        if dtype is None:
            dtype = np.float64
        elif type(dtype) is not type or dtype not in CUPYS:
            dtype = to_numpy_dtype(dtype)
        try:
            count = shape if type(shape) is int else math.prod(shape)
        except TypeError:
            shape = as_shape(shape)
            count = math.prod(shape)
        if count >= TOO_MANY:
            message = f"shape {shape} overflows: no device holds {count:,} elements"
            raise ValueError(message)
        return self._make(shape, dtype, order)  # refuses negatives

    def filled(self, out: Any, value: Any) -> Any:
        if isinstance(value, self.ndarray):
            out[...] = value
            return out
        if value is ZERO:
            out.data.memset_async(0, out.nbytes)
            return out
        if value is ONE:
            out.fill(1)
            return out
        host = (
            np.asarray(value).astype(out.dtype)
            if hasattr(value, "dtype")
            else np.asarray(value, dtype=out.dtype)  # refuses what does not fit
        )
        fill(out, host[()])
        return out

    def _uploaded(self, host: Any) -> Any:
        """Copy a host array to the device; one number goes with the launch."""
        if host.ndim:
            announce(CPU, self._device, host.nbytes)
            return self.cupy.asarray(host)
        return self.filled(self.empty((), host.dtype), host)

    def arange(self, start: Any, stop: Any, step: Any, dtype: DType) -> Any:
        if stop is None:
            start, stop = 0, start
        kinds = {type(start), type(stop), type(step)}
        kind: Any = None
        if dtype is not None:
            kind = to_numpy_dtype(dtype)
        elif kinds <= NUMBERS:  # CuPy would ask numpy.dtype of each
            kind = np.float64 if float in kinds else np.int64
        return self.cupy.arange(start, stop, step, kind)

    def linspace(
        self, start: Any, stop: Any, num: int, dtype: DType, endpoint: bool
    ) -> Any:
        kind = None if dtype is None else to_numpy_dtype(dtype)
        return self.cupy.linspace(start, stop, num, endpoint, False, kind)

    def asarray(self, obj: Any, dtype: DType, copy: bool | None) -> Any:
        kind = None if dtype is None else to_numpy_dtype(dtype)
        if isinstance(obj, self.ndarray):
            if not copy and (kind is None or kind == obj.dtype):
                return obj
        elif hasattr(obj, "__cuda_array_interface__"):
            obj = self.cupy.asarray(obj)
        elif copy is False:
            raise ValueError(
                "xdev.asarray: copy=False, but a host object must be copied to "
                "CUDA: leave copy= out"
            )
        elif isinstance(obj, list | tuple) and obj and _has(obj, self.ndarray):
            return self.cupy.asarray(obj, dtype=kind)
        else:
            return self._uploaded(HOST.asarray(obj, kind, copy=None))
        if copy is False and kind is not None and kind != obj.dtype:
            raise ValueError(
                f"xdev.asarray: copy=False, but {obj.dtype} must be copied to become "
                f"{kind}: leave copy= out"
            )
        return obj.astype(obj.dtype if kind is None else kind, copy=bool(copy))

    def from_dlpack(self, x: Any, copy: bool | None) -> Any:
        # CuPy asks the exporter for the copy, and refuses as an exporter to make one.
        if copy is False:
            return self.cupy.from_dlpack(x, copy=False)
        made = self.cupy.from_dlpack(x)
        return made.copy() if copy else made


def _has(nested: Any, kind: type) -> bool:
    """Say whether a nested sequence holds a value of a type."""
    if isinstance(nested, list | tuple):
        return any(_has(part, kind) for part in nested)
    return isinstance(nested, kind)
