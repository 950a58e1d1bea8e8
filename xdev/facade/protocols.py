"""The seams of the facade: what a library and a place must offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

Array = TypeVar("Array")
DType: TypeAlias = Any
Shape: TypeAlias = tuple[int, ...]
Axes: TypeAlias = int | tuple[int, ...] | None


class Library(Protocol):
    """An array library: its functions, by the standard's names, and its habits."""

    #: What :func:`xdev.namespace` returns.
    namespace: ModuleType
    #: Whether its data types are NumPy's.
    numpy_dtypes: bool

    def bound(self, name: str, like: Any) -> Callable[..., Any]:
        """Return a function (``"sort"``, ``"linalg.svd"``) for where ``like`` is."""

    def device(self, x: Any) -> object:
        """Return what is equal for arrays that may meet in one call."""

    def dtype(self, dtype: DType) -> DType:
        """Return the library's own name for a data type; None stays None."""

    def operand(self, value: Any, like: Any) -> Any:
        """Return a host scalar in a form that may meet ``like``; arrays stay."""

    def write(
        self, name: str, function: Callable[..., Any], values: list[Any], out: Any
    ) -> Any:
        """Compute into ``out``, checked before anything is written; return it."""


class Place(Protocol):
    """A device that arrays are made on. ``dtype`` is in anybody's terms or None."""

    def empty(self, shape: Any, dtype: DType) -> Any: ...
    def zeros(self, shape: Any, dtype: DType) -> Any: ...
    def ones(self, shape: Any, dtype: DType) -> Any: ...
    def full(self, shape: Any, value: Any, dtype: DType) -> Any: ...
    def empty_like(self, x: Any, dtype: DType) -> Any: ...
    def zeros_like(self, x: Any, dtype: DType) -> Any: ...
    def ones_like(self, x: Any, dtype: DType) -> Any: ...
    def full_like(self, x: Any, value: Any, dtype: DType) -> Any: ...
    def arange(self, start: Any, stop: Any, step: Any, dtype: DType) -> Any: ...
    def linspace(
        self, start: Any, stop: Any, num: int, dtype: DType, endpoint: bool
    ) -> Any: ...
    def eye(self, rows: int, columns: int, k: int, dtype: DType) -> Any: ...
    def asarray(self, obj: Any, dtype: DType, copy: bool | None) -> Any: ...
    def fftfreq(self, n: int, d: float, dtype: DType) -> Any: ...
    def rfftfreq(self, n: int, d: float, dtype: DType) -> Any: ...
    def info(self) -> Any: ...
