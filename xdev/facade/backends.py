"""The seams of the facade: libraries' functions, data types, factories of arrays."""

from __future__ import annotations

import operator
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from xdev.device.choice import names_device
from xdev.errors import quoted
from xdev.ufunc.argument_errors import check_out

if TYPE_CHECKING:  # protocols and named tuples take long to make
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType
    from typing import (
        Concatenate,
        Generic,
        Literal,
        NamedTuple,
        ParamSpec,
        Protocol,
        TypeAlias,
        TypeVar,
        overload,
    )

    from numpy.typing import NDArray

    from xdev.ufunc.ufuncs import Ufunc

    Array = TypeVar("Array", bound=Any)  # the type that goes in comes out

    DType: TypeAlias = Any
    Function: TypeAlias = Callable[..., Any]
    Shape: TypeAlias = tuple[int, ...]
    ShapeLike: TypeAlias = int | Shape
    Number: TypeAlias = "complex | np.generic"
    Axes: TypeAlias = int | tuple[int, ...] | None
    Lengths: TypeAlias = Sequence[int] | None  # along several axes; or these axes
    Norm: TypeAlias = Literal["backward", "ortho", "forward"]

    class HasDtype(Protocol):
        """What has a data type: arrays of all libraries, and NumPy's scalars."""

        @property
        def dtype(self) -> DType:
            """The data type."""

    Operand = TypeVar("Operand", bound=HasDtype)  # an Array, and no text, list or None
    Out: TypeAlias = Operand | None
    Beside: TypeAlias = "HasDtype | Number"  # what an operand may meet

    F32: TypeAlias = NDArray[np.float32]
    F64: TypeAlias = NDArray[np.float64]
    C64: TypeAlias = NDArray[np.complex64]
    C128: TypeAlias = NDArray[np.complex128]
    Single: TypeAlias = F32 | C64
    Double: TypeAlias = F64 | C128

    Integers = TypeVar("Integers")  # an array of the same library as another's
    Values = TypeVar("Values")  # likewise

    class UniqueAll(NamedTuple, Generic[Array, Integers]):
        """Of ``unique_all``."""

        values: Array
        indices: Integers
        inverse_indices: Integers
        counts: Integers

    class UniqueCounts(NamedTuple, Generic[Array, Integers]):
        """Of ``unique_counts``."""

        values: Array
        counts: Integers

    class UniqueInverse(NamedTuple, Generic[Array, Integers]):
        """Of ``unique_inverse``."""

        values: Array
        inverse_indices: Integers

    class Eig(NamedTuple, Generic[Values, Array]):
        """Of ``linalg.eig`` and ``linalg.eigh``."""

        eigenvalues: Values
        eigenvectors: Array

    class QR(NamedTuple, Generic[Array]):
        """Of ``linalg.qr``."""

        Q: Array
        R: Array

    class Slogdet(NamedTuple, Generic[Array, Values]):
        """Of ``linalg.slogdet``."""

        sign: Array
        logabsdet: Values

    class SVD(NamedTuple, Generic[Array, Values]):
        """Of ``linalg.svd``."""

        U: Array
        S: Values
        Vh: Array

    # What type checkers are told of results: their data types, where NumPy's arrays go
    # in. Of arrays of other libraries the type is known, which has no data type.

    class Unary(Ufunc):  # type: ignore[misc]  # final, which these are not at run time
        """An elementwise function of one array; the result is of the array's type."""

        def __call__(
            self, x: Operand, /, out: Out[Operand] = None, **keywords: Any
        ) -> Operand:
            """Compute."""

    class UnaryReal(Unary):  # type: ignore[misc]
        """One whose result has real numbers."""

        @overload
        def __call__(
            self, x: C64, /, out: F32 | None = None, **keywords: Any
        ) -> F32: ...

        @overload
        def __call__(
            self, x: C128, /, out: F64 | None = None, **keywords: Any
        ) -> F64: ...

        @overload
        def __call__(
            self, x: Operand, /, out: Out[Operand] = None, **keywords: Any
        ) -> Operand: ...

        def __call__(self, x: Any, /, out: Any = None, **keywords: Any) -> Any:
            """Compute."""

    class Binary(Ufunc):  # type: ignore[misc]
        """An elementwise function of two arrays, or of an array and a number.

        The result is of the array's type, of the first one's where there are two.
        """

        @overload
        def __call__(
            self, x1: Number, x2: Operand, /, out: Out[Operand] = None, **keywords: Any
        ) -> Operand: ...

        @overload
        def __call__(
            self, x1: Operand, x2: Beside, /, out: Out[Operand] = None, **keywords: Any
        ) -> Operand: ...

        def __call__(
            self, x1: Any, x2: Any, /, out: Any = None, **keywords: Any
        ) -> Any:
            """Compute."""

    class UnaryTest(Unary):  # type: ignore[misc]
        """One whose result has bools."""

        @overload
        def __call__(
            self, x: NDArray[Any], /, out: Any = None, **keywords: Any
        ) -> NDArray[np.bool_]: ...

        @overload
        def __call__(
            self, x: Operand, /, out: Out[Operand] = None, **keywords: Any
        ) -> Operand: ...

        def __call__(self, x: Any, /, out: Any = None, **keywords: Any) -> Any:
            """Compute."""

    class BinaryTest(Binary):  # type: ignore[misc]
        """One whose result has bools."""

        @overload  # type: ignore[override]
        def __call__(
            self, x1: NDArray[Any], x2: Beside, /, out: Any = None, **keywords: Any
        ) -> NDArray[np.bool_]: ...

        @overload
        def __call__(
            self, x1: Number, x2: NDArray[Any], /, out: Any = None, **keywords: Any
        ) -> NDArray[np.bool_]: ...

        @overload
        def __call__(
            self, x1: Number, x2: Operand, /, out: Out[Operand] = None, **keywords: Any
        ) -> Operand: ...

        @overload
        def __call__(
            self, x1: Operand, x2: Beside, /, out: Out[Operand] = None, **keywords: Any
        ) -> Operand: ...

        def __call__(
            self, x1: Any, x2: Any, /, out: Any = None, **keywords: Any
        ) -> Any:
            """Compute."""

    P = ParamSpec("P")
    Result_co = TypeVar("Result_co", bound=np.generic, covariant=True)
    OfFirst: TypeAlias = Callable[Concatenate[Array, P], Array]

    class Gives(Protocol[P, Result_co]):
        """A function whose result has one data type, whatever that of the array."""

        @overload
        def __call__(
            self, x: NDArray[Any], /, *args: P.args, **kwargs: P.kwargs
        ) -> NDArray[Result_co]: ...

        @overload
        def __call__(
            self, x: Operand, /, *args: P.args, **kwargs: P.kwargs
        ) -> Operand: ...

    One_co = TypeVar("One_co", bound=np.generic, covariant=True)
    Two_co = TypeVar("Two_co", bound=np.generic, covariant=True)

    class Precise(Protocol[P, One_co, Two_co]):
        """A function whose result has the precision of the array."""

        @overload
        def __call__(
            self, x: Single, /, *args: P.args, **kwargs: P.kwargs
        ) -> NDArray[One_co]: ...

        @overload
        def __call__(
            self, x: Double, /, *args: P.args, **kwargs: P.kwargs
        ) -> NDArray[Two_co]: ...

        @overload
        def __call__(
            self, x: Operand, /, *args: P.args, **kwargs: P.kwargs
        ) -> Operand: ...


def gives_indices(function: OfFirst[Array, P]) -> Gives[P, np.intp]:
    """Tell type checkers that the result has indices; return the function itself."""
    return cast("Gives[P, np.intp]", function)


def gives_bools(function: OfFirst[Array, P]) -> Gives[P, np.bool_]:
    """Tell type checkers that the result has bools."""
    return cast("Gives[P, np.bool_]", function)


def gives_real(function: OfFirst[Array, P]) -> Precise[P, np.float32, np.float64]:
    """Tell type checkers that the result has real numbers."""
    return cast("Precise[P, np.float32, np.float64]", function)


def gives_complex(
    function: OfFirst[Array, P],
) -> Precise[P, np.complex64, np.complex128]:
    """Tell type checkers that the result has complex numbers."""
    return cast("Precise[P, np.complex64, np.complex128]", function)


NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip


#: Types of numbers that are on no device.
PYTHON_SCALARS = frozenset({bool, int, float, complex})
#: NumPy's scalars: on the host, and welcome beside arrays of every device.
HOST_SCALARS = frozenset(
    scalar
    for scalar in np.sctypeDict.values()
    if issubclass(scalar, np.number | np.bool)
)
#: Data types by the names and types that calls pass most: numpy.dtype() takes longer.
NAMED: dict[Any, np.dtype[Any]] = {
    key: np.dtype(name) for name in NAMES for key in (name, np.dtype(name).type)
}


#: The classes of NumPy's data types of the standard, and of scalars' classes.
CLASSES = frozenset(type(np.dtype(name)) for name in NAMES) | {type}


def is_numpys(dtype: Any) -> bool:
    """Say whether a data type is NumPy's own, or a name or type that NumPy reads."""
    return isinstance(dtype, np.dtype | str | type)


def to_numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return NumPy's data type for a data type of any library."""
    if isinstance(dtype, np.dtype):
        return dtype
    try:
        if (named := NAMED.get(dtype)) is not None:
            return named
        return np.dtype(dtype if is_numpys(dtype) else _name(dtype))
    except (SyntaxError, TypeError, ValueError) as error:  # of NumPy's, for a text
        raise unknown(dtype, "NumPy") from error


def to_library_dtype(dtype: Any, namespace: ModuleType) -> Any:
    """Return a namespace's data type for a data type of any library."""
    if type(dtype) is type(namespace.float32) and not isinstance(dtype, type):
        return dtype
    try:
        name = np.dtype(dtype).name if is_numpys(dtype) else _name(dtype)
        return getattr(namespace, name)
    except (AttributeError, SyntaxError, TypeError, ValueError) as error:
        raise unknown(dtype, namespace.__name__) from error


def has_dtype(thing: Any) -> bool:
    """Say whether an object is an array or scalar, which has a data type."""
    # Not a class: numpy.float32.dtype is a descriptor.
    return hasattr(thing, "dtype") and not isinstance(thing, type)


def numpy_dtype_of(thing: Any) -> np.dtype[Any]:
    """Return NumPy's data type for an array, or for a data type of any library."""
    return to_numpy_dtype(thing.dtype if has_dtype(thing) else thing)


@cache
def ends_of(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and the largest integer of a data type."""
    if dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def unknown(dtype: Any, library: str) -> TypeError:
    """Return the error for a data type that a library does not have."""
    names = ", ".join(f"xdev.{name}" for name in NAMES)
    text = f"{quoted(dtype)} is not a data type of {library}: use one of {names}"
    if type(dtype) is int:
        text += "; the extents of a shape go in one tuple, as in xdev.zeros((2, 3))"
    elif type(dtype) is str and names_device(dtype):
        text = f"{dtype!r} is a device and no data type: give device={dtype!r}"
    return TypeError(text)


def _name(dtype: Any) -> str:
    # "torch.float32", "array_api_strict.float32": the name comes last everywhere.
    return str(dtype).rpartition(".")[2]


# NumPy has one object of each, so that `is` compares them, which is quicker.
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


class Functions(dict[str, Any]):
    """Functions by name, each found at its first use: ``numpy.fft`` loads late."""

    __slots__ = ("_find",)

    def __init__(
        self, find: Callable[[str], Function], functions: Mapping[str, Function] = {}
    ) -> None:
        super().__init__(functions)
        self._find = find

    def __missing__(self, name: str) -> Any:
        # What is there by now counts: CuPy's functions may be marked meanwhile.
        return self.setdefault(name, self._find(name))


class Library:
    """An array library: functions by the standard's names, and its arrays' traits.

    ``find`` gives the function of a name; ``mended`` ones serve in its place.
    """

    #: The type of the devices whose arrays are all of this library, if there is one.
    device_type: str | None = None
    #: Whether its data types are NumPy's.
    numpy_dtypes = True
    #: Whether two of its arrays may be on two devices.
    multi_device = True
    #: What says the type of a collection's chunks, and their device; None for arrays.
    chunk: Callable[[Any], tuple[type, object]] | None = None
    #: NumPy's own, whose data types results have.
    model: Library
    if TYPE_CHECKING:
        #: Of an array of a library without a type of device: where it is.
        factory: Callable[[Any], Factory]

    def __init__(
        self,
        namespace: ModuleType,
        find: Callable[[str], Function],
        mended: Mapping[str, Function] = {},
    ) -> None:
        self.namespace, self.functions = namespace, Functions(find, mended)

    def bound(self, name: str, like: Any) -> Function:  # noqa: ARG002
        """Return a function (``"sort"``, ``"linalg.svd"``) for where ``like`` is."""
        return self.functions[name]

    def keep(self, name: str, function: Function) -> None:
        """Have a function under a name from now on."""
        self.functions[name] = function

    def device(self, x: Any) -> object:  # noqa: ARG002
        """Return a key that the arrays of a call must share; None: ``x`` need not."""
        return None

    def dtype(self, dtype: DType) -> DType:
        """Return the library's own name for a data type; None stays None."""
        return None if dtype is None else to_numpy_dtype(dtype)

    def operand(self, value: Any, like: Any) -> Any:  # noqa: ARG002
        """Return a host scalar as it goes beside ``like``, and arrays as they are."""
        return value[()] if type(value) is np.ndarray and not value.ndim else value

    def write(
        self, name: str, function: Function, values: list[Any], out: Any, **options: Any
    ) -> Any:
        """Compute into ``out``, checked before anything is written; return it."""
        shape = result_shape([*values, options.get("where")])
        if out.shape != shape:
            self.refuse(name, values, out, shape)
        try:
            return function(*values, out=out, **options)
        except (TypeError, ValueError):
            self.refuse(name, values, out, shape)
            raise

    def refuse(self, name: str, values: list[Any], out: Any, shape: Shape) -> None:
        """Raise what is wrong with an ``out``, if anything is."""
        # The data type is NumPy's, of results of arrays of size 0.
        samples = [np.empty(0, x.dtype) if hasattr(x, "dtype") else x for x in values]
        with np.errstate(all="ignore"):  # a number may overflow even beside them
            dtype = self.model.functions[name](*samples).dtype
        check_out(name, out, shape, dtype)


def result_shape(values: list[Any]) -> tuple[int, ...]:
    """Return the shape that the arguments broadcast to; numbers have shape ()."""
    first, *rest = (getattr(value, "shape", ()) for value in values)
    if all(shape in (first, ()) for shape in rest):
        return tuple(first)
    return np.broadcast_shapes(first, *rest)


#: The functions that make arrays: each is a method of a factory.
MAKERS = (
    *("empty", "zeros", "ones", "full", "arange", "linspace", "eye", "asarray"),
    *("empty_like", "zeros_like", "ones_like", "full_like", "from_dlpack"),
    "frequencies",
)


class Factory:
    """What makes arrays on one device. ``dtype`` is any library's, or None.

    The array that a ``_like`` function takes is on this device. A factory of arrays
    with memory of their own defines ``empty`` and ``filled``, which others here use.
    """

    if TYPE_CHECKING:
        #: The library's, of whose ``fft`` frequencies are.
        namespace: Any
        #: Of a shape, a dtype and, for memory, an order: an array of any content.
        empty: Function
        #: Of start, stop, step and dtype: evenly spaced numbers.
        arange: Function
        #: Of start, stop, num, dtype and endpoint: likewise.
        linspace: Function
        #: Of an array of this device or no array, dtype and copy: an array.
        asarray: Function
        #: Of an exporter and copy: an array that shares its memory.
        from_dlpack: Function
        #: Of an array and a value: the array, full of it.
        filled: Function

    def zeros(self, shape: Any, dtype: DType) -> Any:
        """Return zeros."""
        return self.full(shape, 0, FLOAT64 if dtype is None else dtype)

    def ones(self, shape: Any, dtype: DType) -> Any:
        """Return ones."""
        return self.full(shape, 1, FLOAT64 if dtype is None else dtype)

    def full(self, shape: Any, value: Any, dtype: DType) -> Any:
        """Return an array of one value."""
        kind = dtype_of_number(value) if dtype is None else dtype
        return self.filled(self.empty(shape, kind), value)

    def empty_like(self, x: Any, dtype: DType) -> Any:
        """Return an array of any content."""
        kind = x.dtype if dtype is None else dtype
        return self.empty(x.shape, kind, "F" if x.flags.fnc else "C")

    def zeros_like(self, x: Any, dtype: DType) -> Any:
        """Return zeros."""
        return self.full_like(x, 0, dtype)

    def ones_like(self, x: Any, dtype: DType) -> Any:
        """Return ones."""
        return self.full_like(x, 1, dtype)

    def full_like(self, x: Any, value: Any, dtype: DType) -> Any:
        """Return an array of one value."""
        return self.filled(self.empty_like(x, dtype), value)

    def eye(self, rows: int, columns: int, k: int, dtype: DType) -> Any:
        """Return a matrix with ones on a diagonal."""
        out = self.zeros((rows, columns), dtype)
        if -rows < k < columns:
            first = k if k >= 0 else -k * columns
            last = (columns - k) * columns  # where the diagonal leaves the matrix
            out.ravel()[first : last : columns + 1] = 1
        return out

    def frequencies(self, name: str, n: int, d: float, dtype: DType) -> Any:
        """Return those of a Fourier transform [1/s]: ``fftfreq``, ``rfftfreq``."""
        return self.asarray(getattr(self.namespace.fft, name)(n, d), dtype, copy=True)


def as_shape(shape: Any) -> Shape:
    """Return a shape, given as an integer or a sequence of them, as a tuple."""
    try:
        if isinstance(shape, tuple | list):
            return tuple(operator.index(extent) for extent in shape)
        return (operator.index(shape),)
    except TypeError as error:
        raise TypeError(
            f"{quoted(shape)} is not a shape: give a whole number or a tuple of them, "
            f"int(n) for an array n"
        ) from error


def dtype_of_number(value: Any) -> Any:
    """Return the data type of an array that is filled with a number."""
    if type(value) is float:
        return FLOAT64
    dtype = getattr(value, "dtype", None) or np.asarray(value).dtype
    if getattr(dtype, "hasobject", False):
        raise OverflowError(
            f"xdev.full: fill_value is an integer of {value.bit_length()} bits, which "
            f"no integer data type holds: give dtype=xdev.float64"
        )
    return dtype


def first_in(nested: Any, accepts: Callable[[Any], bool]) -> Any:
    """Return the first value that is accepted in nested sequences, or None."""
    # Each is looked through once: a list may contain itself.
    seen, rest = set[int](), [nested]
    while rest:
        x = rest.pop()
        if not isinstance(x, list | tuple):
            if accepts(x):
                return x
        elif id(x) not in seen:
            seen.add(id(x))
            rest.extend(reversed(x))
    return None
