"""What type checkers say of the facade: read by mypy, never run.

``T`` is any array type: one that has a ``dtype``. CuPy has no types, so a stand-in of
its name takes its place: what matters is a class that xdev does not know.
"""

from typing import Any, Protocol, TypeVar, assert_type

import numpy as np
from numpy.typing import NDArray

import xdev as xp


class Typed(Protocol):
    """What makes a type an array's."""

    @property
    def dtype(self) -> Any:
        """The data type."""


T = TypeVar("T", bound=Typed)
C = TypeVar("C", bound=Typed)


class cupy:  # noqa: N801 - stands in for the module
    """CuPy."""

    class ndarray:  # noqa: N801 - the class's name there
        """Its arrays."""

        dtype: Any


def elementwise(x: T) -> None:
    """Check the functions of one array, and ``out=``."""
    for function in (
        *(xp.abs, xp.acos, xp.acosh, xp.asin, xp.asinh, xp.atan, xp.atanh),
        *(xp.bitwise_invert, xp.ceil, xp.conj, xp.cos, xp.cosh, xp.exp, xp.expm1),
        *(xp.floor, xp.imag, xp.isfinite, xp.isinf, xp.isnan, xp.log, xp.log10),
        *(xp.log1p, xp.log2, xp.logical_not, xp.negative, xp.positive, xp.real),
        *(xp.reciprocal, xp.sign, xp.signbit, xp.sin, xp.sinh, xp.sqrt),
        *(xp.square, xp.tan, xp.tanh, xp.trunc),
    ):
        assert_type(function(x), T)
    assert_type(xp.round(x), T)
    assert_type(xp.sin(x, out=x), T)
    assert_type(xp.sin.nargs, int)
    assert_type(xp.add.types, list[str])
    xp.negative.at(x, [0])
    xp.add.reduce(x, axis=0)


def of_two(x: T) -> None:
    """Check the functions of two arrays, or one and a number, and ``out=``."""
    for function in (
        *(xp.add, xp.atan2, xp.bitwise_and, xp.bitwise_left_shift, xp.bitwise_or),
        *(xp.bitwise_right_shift, xp.bitwise_xor, xp.copysign, xp.divide),
        *(xp.equal, xp.floor_divide, xp.greater, xp.greater_equal, xp.hypot),
        *(xp.less, xp.less_equal, xp.logaddexp, xp.logical_and, xp.logical_or),
        *(xp.logical_xor, xp.maximum, xp.minimum, xp.multiply, xp.nextafter),
        *(xp.not_equal, xp.pow, xp.remainder, xp.subtract),
    ):
        assert_type(function(x, x), T)
    assert_type(xp.add(x, 1), T)
    assert_type(xp.add(1.0, x), T)
    assert_type(xp.multiply(2j, x, out=x), T)
    assert_type(xp.add(x, np.float32(1)), T)
    assert_type(xp.add(np.float32(1), x), T)


def same_type(x: T) -> None:
    """Check the functions that give one array of the type that went in."""
    assert_type(xp.all(x), T)
    assert_type(xp.any(x), T)
    assert_type(xp.argmax(x), T)
    assert_type(xp.argmin(x), T)
    assert_type(xp.argsort(x), T)
    assert_type(xp.astype(x, xp.float32), T)
    assert_type(xp.broadcast_to(x, (2, 3)), T)
    assert_type(xp.clip(x, 0, 1), T)
    assert_type(xp.concat([x, x]), T)
    assert_type(xp.count_nonzero(x), T)
    assert_type(xp.cumulative_prod(x), T)
    assert_type(xp.cumulative_sum(x), T)
    assert_type(xp.diff(x, prepend=x), T)
    assert_type(xp.empty_like(x), T)
    assert_type(xp.expand_dims(x, 0), T)
    assert_type(xp.flip(x), T)
    assert_type(xp.full_like(x, 1.0), T)
    assert_type(xp.isin(x, x), T)
    assert_type(xp.matmul(x, x), T)
    assert_type(xp.matrix_transpose(x), T)
    assert_type(xp.max(x, axis=0), T)
    assert_type(xp.mean(x, keepdims=True), T)
    assert_type(xp.min(x), T)
    assert_type(xp.moveaxis(x, 0, 1), T)
    assert_type(xp.ones_like(x), T)
    assert_type(xp.permute_dims(x, (1, 0)), T)
    assert_type(xp.prod(x), T)
    assert_type(xp.repeat(x, 2), T)
    assert_type(xp.reshape(x, (-1,)), T)
    assert_type(xp.roll(x, 1), T)
    assert_type(xp.searchsorted(x, x), T)
    assert_type(xp.sort(x, descending=True), T)
    assert_type(xp.squeeze(x, 0), T)
    assert_type(xp.stack([x, x]), T)
    assert_type(xp.std(x), T)
    assert_type(xp.sum(x, axis=(0, 1)), T)
    assert_type(xp.take(x, x), T)
    assert_type(xp.take_along_axis(x, x), T)
    assert_type(xp.tensordot(x, x), T)
    assert_type(xp.tile(x, (2,)), T)
    assert_type(xp.tril(x), T)
    assert_type(xp.triu(x), T)
    assert_type(xp.unique_values(x), T)
    assert_type(xp.var(x, correction=1), T)
    assert_type(xp.vecdot(x, x), T)
    assert_type(xp.zeros_like(x), T)


def chosen(condition: C, x: T) -> None:
    """Check that ``where`` gives arrays of the values' type."""
    assert_type(xp.where(condition, x, x), T)
    assert_type(xp.where(condition, x, 0.0), T)
    assert_type(xp.where(condition, 0.0, x), T)
    assert_type(xp.where(condition, x, np.float32(0)), T)
    assert_type(xp.where(condition, np.float32(0), x), T)
    assert_type(xp.where(condition, 1, 0), C)


def refused(x: T) -> None:
    """Check that what is no array is refused where an array or number belongs."""
    xp.sin(None)  # type: ignore[call-overload]
    xp.add(x, "a")  # type: ignore[call-overload]
    xp.add([1], x)  # type: ignore[call-overload]
    xp.add(1, 2)  # type: ignore[call-overload]
    xp.where(x, x, "a")  # type: ignore[call-overload]
    xp.where([True], x, x)  # type: ignore[call-overload]


def linalg(x: T) -> None:
    """Check linear algebra's."""
    assert_type(xp.linalg.cholesky(x), T)
    assert_type(xp.linalg.cross(x, x), T)
    assert_type(xp.linalg.det(x), T)
    assert_type(xp.linalg.diagonal(x), T)
    assert_type(xp.linalg.eigvals(x), T)
    assert_type(xp.linalg.eigvalsh(x), T)
    assert_type(xp.linalg.inv(x), T)
    assert_type(xp.linalg.matmul(x, x), T)
    assert_type(xp.linalg.matrix_norm(x), T)
    assert_type(xp.linalg.matrix_power(x, 2), T)
    assert_type(xp.linalg.matrix_rank(x), T)
    assert_type(xp.linalg.matrix_transpose(x), T)
    assert_type(xp.linalg.outer(x, x), T)
    assert_type(xp.linalg.pinv(x), T)
    assert_type(xp.linalg.solve(x, x), T)
    assert_type(xp.linalg.svdvals(x), T)
    assert_type(xp.linalg.tensordot(x, x, axes=1), T)
    assert_type(xp.linalg.trace(x), T)
    assert_type(xp.linalg.vecdot(x, x), T)
    assert_type(xp.linalg.vector_norm(x), T)


def fft(x: T) -> None:
    """Check the Fourier transforms'."""
    assert_type(xp.fft.fft(x), T)
    assert_type(xp.fft.fftn(x), T)
    assert_type(xp.fft.fftshift(x), T)
    assert_type(xp.fft.hfft(x), T)
    assert_type(xp.fft.ifft(x), T)
    assert_type(xp.fft.ifftn(x), T)
    assert_type(xp.fft.ifftshift(x), T)
    assert_type(xp.fft.ihfft(x), T)
    assert_type(xp.fft.irfft(x), T)
    assert_type(xp.fft.irfftn(x), T)
    assert_type(xp.fft.rfft(x), T)
    assert_type(xp.fft.rfftn(x), T)


def several(x: T) -> None:
    """Check the functions that give several arrays."""
    assert_type(xp.broadcast_arrays(x, x), tuple[T, ...])
    assert_type(xp.meshgrid(x, x), tuple[T, ...])
    assert_type(xp.nonzero(x), tuple[T, ...])
    assert_type(xp.unstack(x), tuple[T, ...])
    assert_type(xp.unique_all(x).inverse_indices, T)
    assert_type(xp.unique_counts(x).counts, T)
    assert_type(xp.unique_inverse(x).values, T)
    values, vectors = xp.linalg.eig(x)
    assert_type(values, T)
    assert_type(vectors, T)
    assert_type(xp.linalg.eigh(x).eigenvectors, T)
    assert_type(xp.linalg.qr(x).Q, T)
    assert_type(xp.linalg.slogdet(x).logabsdet, T)
    assert_type(xp.linalg.svd(x).Vh, T)


def no_array_goes_in() -> None:
    """Check what makes arrays of a device's library, so Any, and what tells facts."""
    assert_type(xp.arange(3), Any)
    assert_type(xp.asarray([1, 2]), Any)
    assert_type(xp.empty(3), Any)
    assert_type(xp.eye(3), Any)
    assert_type(xp.from_dlpack(object()), Any)
    assert_type(xp.full(3, 1.0), Any)
    assert_type(xp.linspace(0.0, 1.0, 3), Any)
    assert_type(xp.ones((2, 3), dtype=xp.float32, device="cpu"), Any)
    assert_type(xp.zeros(3), Any)
    assert_type(xp.fft.fftfreq(3), Any)
    assert_type(xp.fft.rfftfreq(3), Any)
    assert_type(xp.broadcast_shapes((3, 1), (2,)), tuple[int | None, ...])
    assert_type(xp.can_cast(xp.int8, xp.int16), bool)
    assert_type(xp.finfo(xp.float32), Any)
    assert_type(xp.iinfo(xp.int8), Any)
    assert_type(xp.isdtype(xp.int8, "integral"), bool)
    assert_type(xp.result_type(xp.int8, 1), Any)
    assert_type(xp.__array_namespace_info__().capabilities(), dict[str, Any])


def numpys(x: NDArray[np.float64]) -> None:
    """Check that NumPy's arrays keep their data type where the function does."""
    assert_type(xp.where(x > 0, x, 0.0), NDArray[np.float64])
    assert_type(xp.sum(x, axis=0), NDArray[np.float64])
    assert_type(xp.unstack(x), tuple[NDArray[np.float64], ...])
    assert_type(xp.linalg.svd(x).S, NDArray[np.float64])
    assert_type(xp.nonzero(x), tuple[NDArray[np.intp], ...])
    assert_type(xp.isin(x, [1.0]), NDArray[np.bool_])


def other_data_types(x: NDArray[np.float64]) -> None:
    """Check that results of NumPy's arrays fit where another data type is wanted."""
    for function in (xp.sin, xp.isnan, xp.any, xp.argsort, xp.argmax, xp.fft.rfft):
        assert_type(function(x), NDArray[Any])
    assert_type(xp.add(x, np.float32(1)), NDArray[Any])
    assert_type(xp.less(2.0, x), NDArray[Any])
    assert_type(xp.searchsorted(x, x), NDArray[Any])
    assert_type(xp.astype(x, xp.float32), NDArray[Any])
    spectrum: NDArray[np.complex128] = xp.fft.rfft(x)
    assert_type(spectrum, NDArray[np.complex128])
    x = x[xp.argsort(x)] + x[xp.less(x, 0)]
    xp.argsort(x, decending=True)  # type: ignore[call-overload]


def cupys(x: cupy.ndarray) -> None:
    """Check CuPy's."""
    assert_type(xp.add(x, x), cupy.ndarray)
    assert_type(xp.add(x, 1), cupy.ndarray)
    assert_type(xp.equal(2.0, x), cupy.ndarray)
    assert_type(xp.sum(x, axis=0), cupy.ndarray)
    assert_type(xp.unstack(x), tuple[cupy.ndarray, ...])
    assert_type(xp.linalg.svd(x).S, cupy.ndarray)
