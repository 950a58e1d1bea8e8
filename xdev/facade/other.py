# ruff: noqa: D102 - backends.Factory says what each method does
"""Any array API library and its arrays; fake devices', NumPy's with CuPy's rules."""

from __future__ import annotations

import importlib
import math
import operator
from functools import partial
from typing import TYPE_CHECKING, Any, final

import array_api_compat
import numpy as np

from xdev.device import Device, device_of
from xdev.device.choice import CPU
from xdev.device.copies import announce, guards
from xdev.device.fake import make_room
from xdev.device.fake_arrays import FakeArray, fake, run, strict
from xdev.device.registry import backend
from xdev.facade.backends import (
    FLOAT64,
    HOST_SCALARS,
    MAKERS,
    Factory,
    Library,
    as_shape,
    dtype_of_number,
    first_in,
    to_library_dtype,
    to_numpy_dtype,
)
from xdev.facade.cpu import HOST, NUMPY, cutoff
from xdev.facade.dispatch import backend_of, library_named
from xdev.memory.arrays import size_of
from xdev.transfer.copies import dtype_of
from xdev.ufunc.argument_errors import check_out, never_written

if TYPE_CHECKING:
    from types import ModuleType

    from xdev.facade.backends import DType, Function


def _unique_all(x: Any) -> Any:
    xp = importlib.import_module("array_api_compat.torch")
    strict = importlib.import_module("array_api_compat.common._aliases")
    values, inverse, counts = xp.unique(x, return_inverse=True, return_counts=True)
    places = xp.arange(x.numel(), device=x.device)
    first = xp.full(values.shape, x.numel(), dtype=places.dtype, device=x.device)
    first = first.scatter_reduce(0, inverse.reshape(-1), places, "amin")
    return strict.UniqueAllResult(values, first, inverse, counts)


def _isin(x1: Any, x2: Any, *, invert: bool) -> Any:
    xp = importlib.import_module("array_api_strict")
    result = xp.isin(x1, x2)
    return xp.logical_not(result) if invert else result


def _matrix_rank(x: Any, *, rtol: Any) -> Any:
    xp = array_api_compat.array_namespace(x)
    sizes = xp.linalg.svd(x, full_matrices=False)[1]
    return xp.count_nonzero(sizes > cutoff(xp, sizes, x.shape, rtol), axis=-1)


#: By the namespace's name and the standard's, with the reason.
MENDED: dict[tuple[str, str], Function] = {
    # counts, but does not say where
    ("array_api_compat.torch", "unique_all"): _unique_all,
    ("array_api_strict", "isin"): _isin,  # does not look at invert
    ("jax.numpy", "linalg.matrix_rank"): _matrix_rank,  # has an absolute rtol
}


@final
class StandardLibrary(Library):
    """Any array API library, through its (or array_api_compat's) namespace."""

    numpy_dtypes = False

    def __init__(self, namespace: ModuleType) -> None:
        super().__init__(namespace, self._find)

    def _find(self, name: str) -> Function:
        try:
            own = MENDED.get((self.namespace.__name__, name))
            return own or operator.attrgetter(name)(self.namespace)
        except AttributeError as error:
            message = f"{self.namespace.__name__} has no function {name!r}"
            raise NotImplementedError(message) from error

    def device(self, x: Any) -> object:
        """Return the library's device object; None for what is on no single one."""
        native = array_api_compat.device(x)
        # JAX: traced arrays have none, those spread over several have a sharding.
        return None if hasattr(native, "device_set") else native

    def factory(self, x: Any) -> Factory:
        """Return the factory of an array's device."""
        return OtherFactory(self, self.device(x))

    def dtype(self, dtype: DType) -> DType:
        """Return the library's data type for anybody's."""
        return None if dtype is None else to_library_dtype(dtype, self.namespace)

    def operand(self, value: Any, like: Any) -> Any:
        """Put NumPy's scalars beside ``like``, data type kept."""
        if type(value) in HOST_SCALARS or type(value) is np.ndarray:
            return self.namespace.asarray(
                value.item(), dtype=self.dtype(value.dtype), device=self.device(like)
            )
        return value

    def write(
        self, name: str, function: Function, values: list[Any], out: Any, **_: Any
    ) -> Any:
        """Compute, check, then write: few of these libraries have ``out=``."""
        if self.namespace.__name__ == "jax.numpy":
            raise never_written(name, out, "JAX's arrays are immutable")
        result = function(*values)
        wanted, own = to_numpy_dtype(result.dtype), to_numpy_dtype(out.dtype)
        check_out(name, out, result.shape, wanted, own)
        out[...] = self.bound("astype", out)(result, out.dtype, copy=False)
        return out


@final
class FakeLibrary(Library):
    """NumPy's data types, ufuncs with ``out=``, two devices."""

    device_type = "fake"

    def __init__(self) -> None:
        super().__init__(
            fake, lambda name: strict(f"xdev.{name}", NUMPY.bound(name, None))
        )

    def device(self, x: Any) -> int:
        """Return the device's number."""
        return int(x.device.index)


def library(namespace: ModuleType) -> Library:
    """Return the library object of a namespace; that of fake arrays is xdev."""
    own = namespace.__name__ == "xdev"
    return FakeLibrary() if own else StandardLibrary(namespace)


#: The namespaces that serve the arrays of :attr:`xdev.Device.library`.
_NAMESPACES = {
    "array_api_strict": "array_api_strict",
    "jax": "jax.numpy",
    "torch": "array_api_compat.torch",
}


@final
class OtherFactory(Factory):
    """One device of an array API library."""

    def __init__(self, library: Library, device: Any) -> None:
        self.library, self.device = library, device
        self.xp: Any = library.namespace
        for name in set(MAKERS).difference(vars(OtherFactory)):
            setattr(self, name, partial(self._make, name))

    def _make(self, name: str, *args: Any) -> Any:
        """Call the library's function, which has the same name and arguments."""
        *values, dtype = args
        return getattr(self.xp, name)(*values, **self._with(dtype))

    def _with(self, dtype: DType) -> dict[str, Any]:
        return {"dtype": self.library.dtype(dtype), "device": self.device}

    def linspace(self, *span: Any, dtype: DType, endpoint: bool) -> Any:
        return self.xp.linspace(*span, endpoint=endpoint, **self._with(dtype))

    def eye(self, rows: int, columns: int, k: int, dtype: DType) -> Any:
        make = self.library.bound("eye", None)
        return make(rows, columns, k=k, **self._with(dtype))

    def asarray(self, obj: Any, dtype: DType, copy: bool | None) -> Any:
        array = self.xp.asarray(obj, copy=copy, **self._with(dtype))
        if guards.get() and array.ndim and not hasattr(obj, "shape"):
            there = device_of(array)
            if there.type != "cpu":
                announce(CPU, there, math.prod(array.shape) * dtype_of(array).itemsize)
        return array

    def frequencies(self, name: str, n: int, d: float, dtype: DType) -> Any:
        return getattr(self.xp.fft, name)(n, d=d, **self._with(dtype))

    def from_dlpack(self, x: Any, copy: bool | None) -> Any:
        return self.xp.from_dlpack(x, device=self.device, copy=copy)


def factory(device: Device) -> Any:
    """Return the factory of a device for the arrays of its library."""
    if device.library == "dask":
        return backend_of("dask").CollectionFactory(device)
    if device.library is None and device.type == "fake":
        return FakeFactory(device.index)
    own = _NAMESPACES.get(str(device.library)) or backend(device.type).libraries[0]
    return OtherFactory(library_named(importlib.import_module(own)), device.native)


SHAPED = ("empty", "zeros", "ones", "full")  # makers whose first argument is a shape


@final
class FakeFactory(Factory):
    """One fake device."""

    def __init__(self, index: int) -> None:
        self.device = Device(f"fake:{index}")
        for name in set(MAKERS).difference(vars(FakeFactory)):
            setattr(self, name, partial(self._make, name, getattr(HOST, name)))

    def _make(self, name: str, make: Function, *args: Any, **options: Any) -> Any:
        """Make an array, if the device has room for it; sizes are the host's."""
        if name in SHAPED:
            shape, *value, dtype = as_shape(args[0]), *args[1:]
            if dtype is None:
                dtype = dtype_of_number(value[0]) if value else FLOAT64
            make_room(size_of(shape, to_numpy_dtype(dtype)), self.device.index)
            args = shape, *value, dtype
        elif name == "linspace":
            operator.index(args[2])
        return run(f"xdev.{name}", make, *args, on=self.device, **options)

    def asarray(self, obj: Any, dtype: DType, copy: bool | None) -> Any:
        if copy is False and not isinstance(obj, FakeArray):
            raise ValueError(
                f"xdev.asarray: copy=False, but a host object must be copied to "
                f"{self.device}: leave copy= out"
            )
        if first_in(obj, lambda x: isinstance(x, FakeArray)) is not None:
            make = partial(HOST.asarray, dtype=dtype, copy=copy)
            return run("xdev.asarray", make, obj, on=self.device)
        array = FakeArray(HOST.asarray(obj, dtype, copy=True), self.device)
        if array.ndim:  # one number goes with a launch
            announce(CPU, self.device, array.nbytes)
        return array

    def from_dlpack(self, x: Any, copy: bool | None) -> Any:
        if isinstance(x, FakeArray):
            return x.copy() if copy else x[...]
        return FakeArray(np.from_dlpack(x, copy=True), self.device)
