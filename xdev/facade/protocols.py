"""The types of the facade: of arguments, ufuncs and results."""

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

    import numpy as np


Array = TypeVar("Array", bound=Any)  # the type that goes in comes out


DType: TypeAlias = Any


Shape: TypeAlias = tuple[int, ...]


Number: TypeAlias = "complex | np.generic"


Axes: TypeAlias = int | tuple[int, ...] | None


Norm: TypeAlias = Literal["backward", "ortho", "forward"]


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


class FloatInfo(NamedTuple):
    """Limits of a floating-point data type, as Python numbers: of ``finfo``."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType
