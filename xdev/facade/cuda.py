"""CuPy as the facade's library on CUDA.

Functions come from array_api_compat's CuPy namespace; the table of
:mod:`xdev.facade.cuda_differences` mends the rest.
"""

from __future__ import annotations

import importlib
import inspect
import operator
from functools import cache, partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev.device import registry
from xdev.device.cuda import BACKEND
from xdev.facade import elementwise
from xdev.facade.cpu import Functions, result_dtype, result_shape
from xdev.facade.cuda_differences import mended
from xdev.facade.dtype_names import to_numpy_dtype
from xdev.memory.owners import mark_uses
from xdev.memory.reclamation import retrying
from xdev.memory.registry import pool
from xdev.memory.streams import live_streams
from xdev.ufunc.complaints import misfit, wrong_dtype

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from xdev.facade.protocols import Axes, DType


#: Functions, or rooms of them, whose libraries (cuFFT, cuBLAS, cuSOLVER) take memory of
#: the device past the pool.
OUTSIDE = ("fft.", "linalg.", "matmul", "tensordot", "vecdot")
#: What of them only launches kernels, or makes views.
WITHIN = frozenset(
    [
        "fft.fftshift",
        "fft.ifftshift",
        "linalg.cross",
        "linalg.diagonal",
        "linalg.outer",
        "linalg.trace",
        "linalg.vector_norm",
    ]
)
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
class CuPyLibrary:
    """CuPy: NumPy's data types, ufuncs with ``out=``, one device or several.

    With more than one GPU visible, each call runs with the arrays' device current:
    CuPy puts results on the current device, wherever the arguments are.
    """

    __slots__ = ("_known", "functions", "namespace", "several", "standard")
    numpy_dtypes = True
    device_type: str | None = "cuda"
    chunk: Callable[[Any], tuple[type, object]] | None = None

    def __init__(self) -> None:
        self.namespace: ModuleType = _optional.cupy()
        self.standard = importlib.import_module("array_api_compat.cupy")
        self.several = registry.backend("cuda").count() > 1
        reductions = {name: _reduction(f) for name, f in REDUCTIONS.items()}
        self._known = {**OPERATORS, **reductions, **mended()}
        self.functions = Functions(self._find)
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
            found = _bare(operator.attrgetter(name)(self.standard), self.namespace)
        found = with_room(name, found)
        self.functions[name] = found  # from here on another thread marks it, or we do
        if live_streams.several:
            self.functions[name] = marking(found)
        return self.functions[name]

    def _mark_uses(self) -> None:
        """Have the functions mark their arguments: several streams are in use."""
        for name, function in list(self.functions.items()):
            self.functions[name] = marking(function)

    def device(self, x: Any) -> int | None:
        """Return the device's number, or None where there is one device."""
        return int(x.device.id) if self.several else None

    def dtype(self, dtype: DType) -> DType:
        """Return NumPy's data type for anybody's: CuPy has the same."""
        return None if dtype is None else to_numpy_dtype(dtype)

    def operand(self, value: Any, like: Any) -> Any:  # noqa: ARG002
        """Return 0-d host arrays as scalars, which CuPy takes by value."""
        return value[()] if type(value) is np.ndarray else value

    def _wanted(self, function: Callable[..., Any], values: list[Any], out: Any) -> Any:
        """Return the data type of a result, asked with arrays made beside ``out``."""
        asked = guarded(result_dtype, out.device) if self.several else result_dtype
        return asked(self.namespace, function, values)

    def write(
        self,
        name: str,
        function: Callable[..., Any],
        values: list[Any],
        out: Any,
        **keywords: Any,
    ) -> Any:
        """Compute into ``out``; its casting is checked by CuPy, before it computes."""
        shape = result_shape(values)
        if out.shape != shape:
            wanted = self._wanted(function, values, out)
            raise misfit(name, out, shape, wanted)
        if not live_streams.several:  # then no pool may have seen the stream
            mark_uses((*values, out), self.device(out))
        try:
            return function(*values, out=out, **keywords)
        except TypeError:
            self.refuse(name, function, values, out)
            raise

    def refuse(
        self, name: str, function: Callable[..., Any], values: list[Any], out: Any
    ) -> None:
        """Raise what is wrong with an ``out`` of the result's shape, if anything is."""
        wanted = self._wanted(function, values, out)
        if not np.can_cast(wanted, out.dtype, "same_kind"):
            raise wrong_dtype(name, out, out.shape, wanted)


def guarded(function: Callable[..., Any], device: Any) -> Callable[..., Any]:
    """Return a function that runs with a CuPy device current."""

    def on_device(*args: Any, **options: Any) -> Any:
        if BACKEND.current() == device.id:  # to ask is quicker than to switch
            return function(*args, **options)
        with device:
            return function(*args, **options)

    return on_device


def marking(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose arrays' blocks stay until the current stream used them.

    Without it an array of another stream, dropped after the call, would be handed out
    again there before the work here is done. A function that marks is itself.
    """
    if hasattr(function, "marks"):
        return function

    def on_stream(*args: Any, **options: Any) -> Any:
        mark_uses((*args, *options.values()))
        return function(*args, **options)

    vars(on_stream)["marks"] = True
    return on_stream


@cache
def library() -> CuPyLibrary:
    """Return the one library object of CuPy."""
    return CuPyLibrary()
