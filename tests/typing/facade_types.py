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
    for function in (
        *(xp.add, xp.atan2, xp.bitwise_and, xp.bitwise_left_shift, xp.bitwise_or),
        *(xp.bitwise_right_shift, xp.bitwise_xor, xp.copysign, xp.divide),
        *(xp.equal, xp.floor_divide, xp.greater, xp.greater_equal, xp.hypot),
        *(xp.less, xp.less_equal, xp.logaddexp, xp.logical_and, xp.logical_or),
        *(xp.logical_xor, xp.maximum, xp.minimum, xp.multiply, xp.nextafter),
        *(xp.not_equal, xp.pow, xp.remainder, xp.subtract),
    ):
        assert_type(function(x, x), T)
    for made in xp.add(x, 1), xp.add(1.0, x), xp.multiply(2j, x, out=x):
        assert_type(made, T)
    for made in xp.add(x, np.float32(1)), xp.add(np.float32(1), x):
        assert_type(made, T)


def same_type(x: T) -> None:
    for made in (
        *(xp.all(x), xp.any(x), xp.argmax(x), xp.argmin(x), xp.argsort(x)),
        *(xp.astype(x, xp.float32), xp.broadcast_to(x, (2, 3)), xp.clip(x, 0, 1)),
        *(xp.concat([x, x]), xp.count_nonzero(x), xp.cumulative_prod(x)),
        *(xp.cumulative_sum(x), xp.diff(x, prepend=x), xp.empty_like(x)),
        *(xp.expand_dims(x, 0), xp.flip(x), xp.full_like(x, 1.0), xp.isin(x, x)),
        *(xp.matmul(x, x), xp.matrix_transpose(x), xp.max(x, axis=0)),
        *(xp.mean(x, keepdims=True), xp.min(x), xp.moveaxis(x, 0, 1)),
        *(xp.ones_like(x), xp.permute_dims(x, (1, 0)), xp.prod(x), xp.repeat(x, 2)),
        *(xp.reshape(x, (-1,)), xp.roll(x, 1), xp.searchsorted(x, x)),
        *(xp.sort(x, descending=True), xp.squeeze(x, 0), xp.stack([x, x])),
        *(xp.std(x), xp.sum(x, axis=(0, 1)), xp.take(x, x)),
        *(xp.take_along_axis(x, x), xp.tensordot(x, x), xp.tile(x, (2,))),
        *(xp.tril(x), xp.triu(x), xp.unique_values(x), xp.var(x, correction=1)),
        *(xp.vecdot(x, x), xp.zeros_like(x)),
    ):
        assert_type(made, T)


def chosen(condition: C, x: T) -> None:
    """Check that ``where`` gives arrays of the values' type."""
    for number in 0.0, np.float32(0):
        assert_type(xp.where(condition, x, number), T)
        assert_type(xp.where(condition, number, x), T)
    assert_type(xp.where(condition, x, x), T)
    assert_type(xp.where(condition, 1, 0), C)


def refused(x: T) -> None:
    """Check that what is no array is refused where an array or number belongs."""
    xp.sin(None)  # type: ignore[type-var]
    xp.add(x, "a")  # type: ignore[call-overload]
    xp.add([1], x)  # type: ignore[call-overload]
    xp.add(1, 2)  # type: ignore[call-overload]
    xp.where(x, x, "a")  # type: ignore[call-overload]
    xp.where([True], x, x)  # type: ignore[call-overload]


def linalg(x: T) -> None:
    for made in (
        *(xp.linalg.cholesky(x), xp.linalg.cross(x, x), xp.linalg.det(x)),
        *(xp.linalg.diagonal(x), xp.linalg.eigvals(x), xp.linalg.eigvalsh(x)),
        *(xp.linalg.inv(x), xp.linalg.matmul(x, x), xp.linalg.matrix_norm(x)),
        *(xp.linalg.matrix_power(x, 2), xp.linalg.matrix_rank(x)),
        *(xp.linalg.matrix_transpose(x), xp.linalg.outer(x, x), xp.linalg.pinv(x)),
        *(xp.linalg.solve(x, x), xp.linalg.svdvals(x)),
        *(xp.linalg.tensordot(x, x, axes=1), xp.linalg.trace(x)),
        *(xp.linalg.vecdot(x, x), xp.linalg.vector_norm(x)),
    ):
        assert_type(made, T)


def fft(x: T) -> None:
    for made in (
        *(xp.fft.fft(x), xp.fft.fftn(x), xp.fft.fftshift(x), xp.fft.hfft(x)),
        *(xp.fft.ifft(x), xp.fft.ifftn(x), xp.fft.ifftshift(x), xp.fft.ihfft(x)),
        *(xp.fft.irfft(x), xp.fft.irfftn(x), xp.fft.rfft(x), xp.fft.rfftn(x)),
    ):
        assert_type(made, T)


def several(x: T) -> None:
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
    for made in (
        *(xp.arange(3), xp.asarray([1, 2]), xp.empty(3), xp.eye(3)),
        *(xp.from_dlpack(object()), xp.full(3, 1.0), xp.linspace(0.0, 1.0, 3)),
        *(xp.ones((2, 3), dtype=xp.float32, device="cpu"), xp.zeros(3)),
        *(xp.fft.fftfreq(3), xp.fft.rfftfreq(3)),
    ):
        assert_type(made, Any)
    assert_type(xp.broadcast_shapes((3, 1), (2,)), tuple[int | None, ...])
    assert_type(xp.can_cast(xp.int8, xp.int16), bool)
    assert_type(xp.finfo(xp.float32), Any)
    assert_type(xp.iinfo(xp.int8), Any)
    assert_type(xp.isdtype(xp.int8, "integral"), bool)
    assert_type(xp.result_type(xp.int8, 1), Any)
    assert_type(xp.__array_namespace_info__().capabilities(), dict[str, Any])


def numpys(x: NDArray[np.float64]) -> None:
    """Check that NumPy's arrays keep their data type and shape."""
    assert_type(xp.add(x, x), NDArray[np.float64])
    assert_type(xp.add(x, 1), NDArray[np.float64])
    assert_type(xp.add(x, np.float32(1)), NDArray[np.float64])
    assert_type(xp.add(np.float64(1), x), NDArray[np.float64])
    assert_type(xp.where(x > 0, x, 0.0), NDArray[np.float64])
    assert_type(xp.linalg.svd(x).S, NDArray[np.float64])
    assert_type(xp.unique_all(x).values, NDArray[np.float64])
    assert_type(xp.unique_all(x).indices, NDArray[np.intp])
    assert_type(xp.unique_counts(x).counts, NDArray[np.intp])
    assert_type(xp.unique_inverse(x).inverse_indices, NDArray[np.intp])
    assert_type(x[xp.unique_inverse(x).inverse_indices], NDArray[np.float64])


def data_types(
    x: NDArray[np.float64],
    y: NDArray[np.float32],
    z: NDArray[np.complex64],
    u: NDArray[np.complex128],
) -> None:
    """Check that the data type of a NumPy array's result is known."""
    assert_type(xp.equal(2.0, x), NDArray[np.bool_])
    assert_type(xp.less(x, y), NDArray[np.bool_])
    assert_type(xp.less(x, 1), NDArray[np.bool_])
    assert_type(xp.isnan(x), NDArray[np.bool_])
    assert_type(xp.any(x, axis=0), NDArray[np.bool_])
    assert_type(xp.isin(x, [1.0]), NDArray[np.bool_])
    assert_type(xp.argsort(x, descending=True), NDArray[np.intp])
    assert_type(xp.argmax(x, 0), NDArray[np.intp])
    assert_type(xp.searchsorted(x, x), NDArray[np.intp])
    assert_type(xp.nonzero(x), tuple[NDArray[np.intp], ...])
    assert_type(xp.astype(x, xp.float32), NDArray[np.float32])
    assert_type(xp.astype(x, np.dtype(np.int8)), NDArray[np.int8])
    assert_type(xp.astype(x, "int8"), NDArray[Any])
    assert_type(xp.fft.rfft(x), NDArray[np.complex128])
    assert_type(xp.fft.rfft(y, 8, axis=0), NDArray[np.complex64])
    assert_type(xp.fft.fftn(z), NDArray[np.complex64])
    assert_type(xp.fft.irfft(z), NDArray[np.float32])
    assert_type(xp.fft.irfftn(xp.fft.rfftn(x)), NDArray[np.float64])
    assert_type(x[xp.argsort(x)], NDArray[np.float64])
    assert_type(x[xp.less(x, 0)], NDArray[np.float64])
    spectrum: NDArray[np.complex128] = xp.fft.rfft(x)
    assert_type(spectrum, NDArray[np.complex128])
    xp.argsort(x, decending=True)  # type: ignore[call-overload]

    for function in xp.abs, xp.imag, xp.real:
        assert_type(function(z), NDArray[np.float32])
        assert_type(function(u, out=x), NDArray[np.float64])
        assert_type(function(y), NDArray[np.float32])
    for single in (
        *(xp.linalg.vector_norm(z, axis=0), xp.linalg.matrix_norm(z, ord="nuc")),
        *(xp.linalg.svdvals(z), xp.linalg.eigvalsh(y), xp.linalg.svd(z).S),
        *(xp.linalg.eigh(z).eigenvalues, xp.linalg.slogdet(z).logabsdet),
    ):
        assert_type(single, NDArray[np.float32])
    for double in (
        *(xp.linalg.vector_norm(u), xp.linalg.matrix_norm(u), xp.linalg.svdvals(u)),
        *(xp.std(u, axis=0), xp.var(u, correction=1)),
        *(xp.linalg.eigvalsh(u), xp.linalg.eigh(x).eigenvectors, xp.linalg.svd(u).S),
        *(xp.linalg.eigh(u).eigenvalues, xp.linalg.slogdet(u).logabsdet),
    ):
        assert_type(double, NDArray[np.float64])
    assert_type(xp.linalg.eigh(z).eigenvectors, NDArray[np.complex64])
    assert_type(xp.linalg.eig(x).eigenvalues, NDArray[np.complex128])
    assert_type(xp.linalg.eigvals(y), NDArray[np.complex64])
    assert_type(xp.linalg.matrix_rank(u), NDArray[np.intp])
    assert_type(xp.isfinite(u), NDArray[np.bool_])


def cupys(x: cupy.ndarray) -> None:
    for made in xp.add(x, x), xp.equal(2.0, x), xp.sum(x, axis=0), xp.linalg.svd(x).S:
        assert_type(made, cupy.ndarray)
    for made in xp.abs(x), xp.linalg.vector_norm(x), xp.linalg.eigh(x).eigenvalues:
        assert_type(made, cupy.ndarray)
