"""What type checkers are told of results: their data types, where NumPy's arrays go in.

Of arrays of other libraries the type is known, which has no data type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, overload

    import numpy as np
    from numpy.typing import NDArray

    from xdev.facade.backends import Array, HasDtype, Number, Operand
    from xdev.ufunc.ufuncs import Ufunc

    class Unary(Ufunc):  # type: ignore[misc]  # final, which these are not at run time
        """An elementwise function of one array; the result is of the array's type."""

        def __call__(
            self, x: Operand, /, out: Operand | None = None, **keywords: Any
        ) -> Operand:
            """Compute."""

    class Binary(Ufunc):  # type: ignore[misc]
        """An elementwise function of two arrays, or of an array and a number.

        The result is of the array's type, of the first one's where there are two.
        """

        @overload
        def __call__(
            self,
            x1: Number,
            x2: Operand,
            /,
            out: Operand | None = None,
            **keywords: Any,
        ) -> Operand: ...

        @overload
        def __call__(
            self,
            x1: Operand,
            x2: HasDtype | Number,
            /,
            out: Operand | None = None,
            **keywords: Any,
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
            self, x: Operand, /, out: Operand | None = None, **keywords: Any
        ) -> Operand: ...

        def __call__(self, x: Any, /, out: Any = None, **keywords: Any) -> Any:
            """Compute."""

    class BinaryTest(Binary):  # type: ignore[misc]
        """One whose result has bools."""

        @overload  # type: ignore[override]
        def __call__(
            self,
            x1: NDArray[Any],
            x2: HasDtype | Number,
            /,
            out: Any = None,
            **keywords: Any,
        ) -> NDArray[np.bool_]: ...

        @overload
        def __call__(
            self, x1: Number, x2: NDArray[Any], /, out: Any = None, **keywords: Any
        ) -> NDArray[np.bool_]: ...

        @overload
        def __call__(
            self,
            x1: Number,
            x2: Operand,
            /,
            out: Operand | None = None,
            **keywords: Any,
        ) -> Operand: ...

        @overload
        def __call__(
            self,
            x1: Operand,
            x2: HasDtype | Number,
            /,
            out: Operand | None = None,
            **keywords: Any,
        ) -> Operand: ...

        def __call__(
            self, x1: Any, x2: Any, /, out: Any = None, **keywords: Any
        ) -> Any:
            """Compute."""

    P = ParamSpec("P")
    Result_co = TypeVar("Result_co", bound=np.generic, covariant=True)
    Single: TypeAlias = NDArray[np.float32] | NDArray[np.complex64]
    Double: TypeAlias = NDArray[np.float64] | NDArray[np.complex128]
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
