"""The seams of the facade: what a library and a place offer, what functions return."""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    overload,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import numpy as np

    from xdev.facade.cpu import Functions


Array = TypeVar("Array", bound=Any)  # the type that goes in comes out


DType: TypeAlias = Any


Shape: TypeAlias = tuple[int, ...]


Number: TypeAlias = "complex | np.generic"


Axes: TypeAlias = int | tuple[int, ...] | None


Norm: TypeAlias = Literal["backward", "ortho", "forward"]


class Library(Protocol):
    """An array library: its functions, by the standard's names, and its habits."""

    #: Whether two of its arrays may be on two devices.
    several: bool
    functions: Functions
    #: What :func:`xdev.namespace` returns.
    namespace: ModuleType
    #: Whether its data types are NumPy's.
    numpy_dtypes: bool
    #: The type of the devices whose arrays are all of this library, if there is one.
    device_type: str | None
    #: What says the type of a collection's chunks, and their device; None for arrays.
    chunk: Callable[[Any], tuple[type, object]] | None

    def bound(self, name: str, like: Any) -> Callable[..., Any]:
        """Return a function (``"sort"``, ``"linalg.svd"``) for where ``like`` is."""

    def device(self, x: Any) -> object:
        """Return what is equal for arrays that may meet in one call; None: any may."""

    def dtype(self, dtype: DType) -> DType:
        """Return the library's own name for a data type; None stays None."""

    def operand(self, value: Any, like: Any) -> Any:
        """Return a host scalar in a form that may meet ``like``; arrays stay."""

    def write(
        self,
        name: str,
        function: Callable[..., Any],
        values: list[Any],
        out: Any,
        **keywords: Any,
    ) -> Any:
        """Compute into ``out``, checked before anything is written; return it."""


class Place(Protocol):
    """A device that arrays are made on. ``dtype`` is in anybody's terms or None."""

    def empty(self, shape: Any, dtype: DType) -> Any:
        """Return an array of any content."""

    def zeros(self, shape: Any, dtype: DType) -> Any:
        """Return zeros."""

    def ones(self, shape: Any, dtype: DType) -> Any:
        """Return ones."""

    def full(self, shape: Any, value: Any, dtype: DType) -> Any:
        """Return an array of one value."""

    def empty_like(self, x: Any, dtype: DType) -> Any:
        """Return an array of the shape of ``x``, which is on this device."""

    def zeros_like(self, x: Any, dtype: DType) -> Any:
        """Likewise, of zeros."""

    def ones_like(self, x: Any, dtype: DType) -> Any:
        """Likewise, of ones."""

    def full_like(self, x: Any, value: Any, dtype: DType) -> Any:
        """Likewise, of one value."""

    def arange(self, start: Any, stop: Any, step: Any, dtype: DType) -> Any:
        """Return evenly spaced numbers; ``stop`` None: up to ``start``."""

    def linspace(
        self, start: Any, stop: Any, num: int, dtype: DType, endpoint: bool
    ) -> Any:
        """Return ``num`` evenly spaced numbers."""

    def eye(self, rows: int, columns: int, k: int, dtype: DType) -> Any:
        """Return a matrix with ones on a diagonal."""

    def asarray(self, obj: Any, dtype: DType, copy: bool | None) -> Any:
        """Return ``obj``, an array of this device or no array, as an array."""

    def fftfreq(self, n: int, d: float, dtype: DType) -> Any:
        """Return the frequencies of a Fourier transform [1/s]."""

    def rfftfreq(self, n: int, d: float, dtype: DType) -> Any:
        """Return those of a real one."""

    def from_dlpack(self, x: Any, copy: bool | None) -> Any:
        """Return an array that shares the memory of an exporter."""


class Typed(Protocol):
    """What has a data type: arrays of all libraries, and NumPy's scalars."""

    @property
    def dtype(self) -> DType:
        """The data type."""


Operand = TypeVar("Operand", bound=Typed)  # an Array, and no text, list or None


class Elementwise(Protocol):
    """What all elementwise functions have: the attributes of numpy.ufunc."""

    __name__: str
    nin: int
    nout: int
    nargs: int
    ntypes: int
    types: list[str]
    identity: Any
    signature: None
    reduce: Callable[..., Any]
    accumulate: Callable[..., Any]
    reduceat: Callable[..., Any]
    outer: Callable[..., Any]
    at: Callable[..., None]


class Unary(Elementwise, Protocol):
    """An elementwise function of one array; the result is of the array's type."""

    def __call__(
        self, x: Operand, /, out: Operand | None = None, **keywords: Any
    ) -> Operand:
        """Compute."""


class Binary(Elementwise, Protocol):
    """An elementwise function of two arrays, or of an array and a number.

    The result is of the array's type, of the first one's where there are two.
    """

    @overload
    def __call__(
        self, x1: Number, x2: Operand, /, out: Operand | None = None, **keywords: Any
    ) -> Operand: ...

    @overload
    def __call__(
        self,
        x1: Operand,
        x2: Typed | Number,
        /,
        out: Operand | None = None,
        **keywords: Any,
    ) -> Operand: ...


class UniqueAll(NamedTuple, Generic[Array]):
    """Of ``unique_all``."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple, Generic[Array]):
    """Of ``unique_counts``."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple, Generic[Array]):
    """Of ``unique_inverse``."""

    values: Array
    inverse_indices: Array


class Eig(NamedTuple, Generic[Array]):
    """Of ``linalg.eig`` and ``linalg.eigh``."""

    eigenvalues: Array
    eigenvectors: Array


class QR(NamedTuple, Generic[Array]):
    """Of ``linalg.qr``."""

    Q: Array
    R: Array


class Slogdet(NamedTuple, Generic[Array]):
    """Of ``linalg.slogdet``."""

    sign: Array
    logabsdet: Array


class SVD(NamedTuple, Generic[Array]):
    """Of ``linalg.svd``."""

    U: Array
    S: Array
    Vh: Array
