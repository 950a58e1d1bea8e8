"""Any array API library, and where some depart from the standard."""

from __future__ import annotations

import importlib
import operator
from typing import TYPE_CHECKING, Any, final

import array_api_compat
import numpy as np

from xdev import _optional
from xdev.facade.cpu import Functions
from xdev.facade.dispatch import HOST_SCALARS
from xdev.facade.dtype_names import to_library_dtype, to_numpy_dtype
from xdev.ufunc.complaints import misfit, never_written, wrong_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from xdev.facade.protocols import DType


def _unique_all(x: Any) -> Any:
    xp = importlib.import_module("array_api_compat.torch")
    strict = importlib.import_module("array_api_compat.common._aliases")
    values, inverse, counts = xp.unique(x, return_inverse=True, return_counts=True)
    places = xp.arange(x.numel(), device=x.device)
    first = xp.full(values.shape, x.numel(), dtype=places.dtype, device=x.device)
    first = first.scatter_reduce(0, inverse.reshape(-1), places, "amin")
    return strict.UniqueAllResult(values, first, inverse, counts)


def _torch_limits(name: str) -> Callable[..., Any]:
    def limits(type: Any) -> Any:
        return getattr(_optional.torch(), name)(getattr(type, "dtype", type))

    return limits


def _isin(x1: Any, x2: Any, *, invert: bool) -> Any:
    xp = importlib.import_module("array_api_strict")
    found = xp.isin(x1, x2)
    return xp.logical_not(found) if invert else found


def _matrix_rank(x: Any, *, rtol: Any) -> Any:
    xp = array_api_compat.array_namespace(x)
    sizes = xp.linalg.svd(x, full_matrices=False)[1]
    if rtol is None:
        rtol = max(x.shape[-2:]) * xp.finfo(sizes.dtype).eps
    # The first is the largest; a maximum of none would be an error.
    least = sizes[..., :1] * xp.asarray(rtol)[..., None]
    return xp.count_nonzero(sizes > least, axis=-1)


#: By the namespace's name and the standard's, with the reason.
MENDED: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "array_api_compat.torch": {
        # Of another kind of dtype array_api_compat asks for its dtype.
        "finfo": _torch_limits("finfo"),
        "iinfo": _torch_limits("iinfo"),
        "unique_all": _unique_all,  # PyTorch counts, but does not say where
    },
    "array_api_strict": {
        "isin": _isin,  # does not look at invert
    },
    "jax.numpy": {
        "linalg.matrix_rank": _matrix_rank,  # takes rtol for an absolute size
    },
}

#: By the namespace's name: why nothing can be written to the library's arrays.
IMMUTABLE: Mapping[str, str] = {"jax.numpy": "JAX's arrays are immutable"}


@final
class StandardLibrary:
    """Any array API library, through its (or array_api_compat's) namespace."""

    __slots__ = ("functions", "namespace")
    numpy_dtypes = False
    device_type: str | None = None
    several = True
    chunk: Callable[[Any], tuple[type, object]] | None = None

    def __init__(self, namespace: ModuleType) -> None:
        self.namespace = namespace
        mended = MENDED.get(namespace.__name__, {})
        self.functions = Functions(self._find, mended)

    def bound(self, name: str, like: Any) -> Callable[..., Any]:  # noqa: ARG002
        """Return the library's function of that name."""
        return self.functions[name]

    def _find(self, name: str) -> Callable[..., Any]:
        try:
            return operator.attrgetter(name)(self.namespace)
        except AttributeError as error:
            message = f"{self.namespace.__name__} has no function {name!r}"
            raise NotImplementedError(message) from error

    def device(self, x: Any) -> object:
        """Return the library's device object; None for what is on no single one."""
        native = array_api_compat.device(x)
        # JAX: traced arrays have none, those spread over several have a sharding.
        return None if hasattr(native, "device_set") else native

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
        self,
        name: str,
        function: Callable[..., Any],
        values: list[Any],
        out: Any,
        **keywords: Any,  # noqa: ARG002 - none of theirs has any
    ) -> Any:
        """Compute, check, then write: few of these libraries have ``out=``."""
        if self.namespace.__name__ in IMMUTABLE:
            raise never_written(name, out, IMMUTABLE[self.namespace.__name__])
        result = function(*values)
        if result.shape != out.shape:
            raise misfit(name, out, result.shape, result.dtype)
        wanted, given = to_numpy_dtype(result.dtype), to_numpy_dtype(out.dtype)
        if not np.can_cast(wanted, given, "same_kind"):
            raise wrong_dtype(name, out, result.shape, result.dtype)
        out[...] = self.bound("astype", out)(result, out.dtype, copy=False)
        return out
