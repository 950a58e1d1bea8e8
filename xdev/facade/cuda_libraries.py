"""Fourier transforms and linear algebra of CUDA arrays.

By cuFFT, cuBLAS and cuSOLVER, where the way there by CuPy is long or takes the slower
of their routines; by the engine's products and sums.
"""

from __future__ import annotations

import importlib
from functools import cache, lru_cache
from itertools import chain
from math import isfinite, prod, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xdev import _optional
from xdev.facade import elementwise
from xdev.facade.cpu import named_result
from xdev.facade.cuda_copies import tril, triu
from xdev.facade.cuda_launches import (
    FAR,
    LARGE,
    PLANS,
    WORD,
    assign,
    new,
    quick,
    straight,
)

if TYPE_CHECKING:
    from xdev.facade.backends import DType, Function

Shape = tuple[int, ...]


class Transform(NamedTuple):
    """How cuFFT transforms contiguous arrays of one layout."""

    plan: tuple[Any, ...]  # arguments of CuPy's PlanNd
    direction: int
    shape: Shape  # of the result
    dtype: Any
    factor: float | None  # of the result
    moved: int | None  # an axis that changes places with the last one, there and back


FORWARD, INVERSE = -1, 1
#: cuFFT's types by kinds of transforms: complex numbers to such, real ones to complex
#: ones, and back.
TYPES = {
    "c2c": {"F": 0x29, "D": 0x69},
    "r2c": {"f": 0x2A, "d": 0x6A},
    "c2r": {"F": 0x2C, "D": 0x6C},
}
DIMENSIONS = 3  # of a plan, at most
#: Where the factor goes, and where it goes in a transform the other way.
NORMS = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


@lru_cache(maxsize=PLANS)
def _planned(
    kind: str,
    shape: Shape,
    char: str,
    axes: Shape,
    lengths: Shape,
    direction: int,
    norm: str,
    direct: bool,
) -> Transform | None:
    """Plan a transform along axes that are neighbours and reach one end of the shape.

    Or along one axis: if not ``direct``, in a copy in which it is the last. None: CuPy
    serves.
    """
    ndim, count, moved = len(shape), len(axes), None
    known = norm in NORMS and char in TYPES[kind] and 0 < count <= DIMENSIONS
    if not known or not -ndim <= min(axes) <= max(axes) < ndim:
        return None
    axes = tuple(axis % ndim for axis in axes)
    first, stop = axes[0], axes[0] + count
    if count == 1 and stop < ndim and (first or not direct):
        moved, sizes = first, list(shape)
        sizes[first], sizes[-1] = sizes[-1], sizes[first]
        shape, axes, first, stop = tuple(sizes), (ndim - 1,), ndim - 1, ndim
    if axes != tuple(range(first, stop)) or (first and stop != ndim):
        return None
    sizes = list(shape[first:stop])
    back = kind == "c2r"
    natural = [*sizes[:-1], 2 * (sizes[-1] - 1)] if back else sizes
    wanted, result = [*lengths] or natural, [*sizes]  # of the transform
    if kind == "r2c":
        result[-1] = sizes[-1] // 2 + 1
    elif back:
        result[-1] = wanted[-1]
    halved = [*wanted[:-1], wanted[-1] // 2 + 1]
    if (halved if back else wanted) != sizes:
        return None
    out = (*shape[:first], *result, *shape[stop:])
    far = prod(shape) >= FAR or prod(out) >= FAR  # cuFFT counts in 32 bits
    if far or 0 in (*shape, *out):
        return None
    factor, batch = 1 / prod(wanted), prod(shape) // prod(sizes)
    if norm == "ortho":
        factor = sqrt(factor)
    elif (norm == "backward") is (direction == FORWARD):
        factor = 1
    layouts = (
        (tuple(n), *((1, prod(n)) if stop == ndim else (batch, 1)))
        for n in (sizes, result)
    )
    rest = TYPES[kind][char], batch, "C", stop - 1, result[-1]
    plan = (tuple(wanted), *chain(*layouts), *rest)
    swap = {"r2c": str.upper, "c2r": str.lower}.get(kind, str)
    scaled = None if factor == 1 else factor
    return Transform(plan, direction, out, np.dtype(swap(char)), scaled, moved)


@cache
def _cufft() -> tuple[Any, Any]:
    cupy = _optional.cupy()
    return cupy.fft.config, cupy.cuda.cufft


def _along(
    x: Any,
    kind: str,
    direction: int,
    axes: Any,
    lengths: Any,
    norm: Any,
    copy: bool = True,
) -> Any:
    """Transform along axes, of those lengths if any; or leave it to CuPy.

    Without ``copy`` x may be spoilt. A plan is of a thread, device and stream, since it
    has work space; they are kept where CuPy keeps its own, by ``cupy.fft.config``.
    """
    if any(type(n) is not int for n in (*axes, *lengths)) or type(norm) is not str:
        return NotImplemented
    whole = x._c_contiguous and not x.data.ptr % WORD  # noqa: SLF001
    # From some size on, a copy takes less than steps from line to line.
    direct, char = whole and x.nbytes < LARGE, x.dtype.char
    how = _planned(kind, x.shape, char, axes, lengths, direction, norm, direct)
    config, cufft = _cufft()
    asked = cufft.get_current_plan() or config.get_current_callback_manager()
    if how is None or asked or config.use_multi_gpus:  # which CuPy follows
        return NotImplemented
    if how.moved is not None:
        x = x.swapaxes(how.moved, -1)
    if not x._c_contiguous:  # noqa: SLF001
        x = straight(x)
    elif not whole or (kind == "c2r" and copy):  # cuFFT spoils what it reads
        x = assign(new(x.shape, x.dtype), x)
    plans = config.get_plan_cache()
    key = (*how.plan, _optional.cupy().cuda.get_current_stream().ptr)
    plan = plans.get(key)
    if plan is None:
        plan = plans[key] = cufft.PlanNd(*how.plan)
    out = new(how.shape, how.dtype)
    plan.fft(x, out, how.direction)
    if how.factor is not None:
        parts, char = out, how.dtype.char
        if char in "FD":  # real and imaginary ones, by the same number
            parts = type(x)((2 * out.size,), char.lower(), out.data)
        elementwise.multiply(parts, how.factor, out=parts)
    return out if how.moved is None else out.swapaxes(how.moved, -1)


def _one(kind: str, direction: int) -> Function:
    def along(x: Any, *, n: Any = None, axis: Any = -1, norm: Any = "backward") -> Any:
        lengths = () if n is None else (n,)
        return _along(x, kind, direction, (axis,), lengths, norm)

    return along


def _several(kind: str, direction: int) -> Function:
    def along(
        x: Any, *, s: Any = None, axes: Any = None, norm: Any = "backward"
    ) -> Any:
        if axes is None and s is None:
            axes = range(x.ndim)
        lists = tuple, list, range
        if not isinstance(axes, lists) or not isinstance(s, tuple | list | type(None)):
            return NotImplemented
        if s is not None and len(s) != len(axes):
            return NotImplemented
        return _along(x, kind, direction, tuple(axes), tuple(s or ()), norm)

    return along


def hfft(x: Any, *, n: Any = None, axis: Any = -1, norm: Any = "backward") -> Any:
    """Transform a half, of a Hermitian whole, to real numbers."""
    lengths = () if n is None else (n,)
    swapped = NORMS.get(norm)
    return _along(
        x.conj(), "c2r", INVERSE, (axis,), lengths, swapped, x.dtype.kind != "c"
    )


def ihfft(x: Any, *, n: Any = None, axis: Any = -1, norm: Any = "backward") -> Any:
    """Transform real numbers to the half of a Hermitian whole."""
    lengths = () if n is None else (n,)
    out = _along(x, "r2c", FORWARD, (axis,), lengths, NORMS.get(norm))
    return out if out is NotImplemented else elementwise.conj(out, out=out)


#: By the standard's names; NotImplemented of one of them leaves the call to CuPy.
TRANSFORMS: dict[str, Function] = {
    "fft.fft": _one("c2c", FORWARD),
    "fft.fftn": _several("c2c", FORWARD),
    "fft.hfft": hfft,
    "fft.ifft": _one("c2c", INVERSE),
    "fft.ifftn": _several("c2c", INVERSE),
    "fft.ihfft": ihfft,
    "fft.irfft": _one("c2r", INVERSE),
    "fft.irfftn": _several("c2r", INVERSE),
    "fft.rfft": _one("r2c", FORWARD),
    "fft.rfftn": _several("r2c", FORWARD),
}


def of_views(function: Function) -> Function:
    """Hand contiguous views to CuPy's function, which copies views, as whole arrays."""
    ndarray = _optional.cupy().ndarray

    def serve(x: Any, **options: Any) -> Any:
        # cuFFT wants real numbers aligned as complex ones are.
        if x.base is not None and x._c_contiguous and not x.data.ptr % WORD:  # noqa: SLF001
            x = ndarray(x.shape, x.dtype, x.data)
        # CuPy takes lengths that are the shape for those of its axes in order; a list
        # is no shape.
        if options.get("s") is not None:
            options["s"] = [*options["s"]]
        return function(x, **options)

    return serve


NUMBERS = "fdFD"  # characters of the data types that cuBLAS and cuSOLVER have
#: A one and a zero on the host, their addresses, and the letters of routines' names.
FACTORS = {kind: np.array([1, 0], kind) for kind in NUMBERS}
ADDRESSES = {kind: factors.ctypes.data for kind, factors in FACTORS.items()}
LETTERS = dict(zip(NUMBERS, "sdcz", strict=True))


def _read(x: Any) -> tuple[int, int] | None:
    """Return how cuBLAS, which counts along columns, reads a matrix, and its pitch.

    0: as it lies, which is the transpose of an array in C's order; 1: transposed.
    """
    if x._c_contiguous:  # noqa: SLF001
        return 0, x.shape[1]
    return (1, x.shape[0]) if x._f_contiguous else None  # noqa: SLF001


def matmul(x1: Any, x2: Any) -> Any:
    """Return the product; of two matrices by cuBLAS at once."""
    kind = x1.dtype.char
    if not x1.ndim == x2.ndim == 2 or kind != x2.dtype.char or kind not in NUMBERS:  # noqa: PLR2004 - matrices
        return x1 @ x2
    (m, k), (rows, n), read1, read2 = x1.shape, x2.shape, _read(x1), _read(x2)
    routines, serves = _blas()
    if k != rows or not m * n * k or not (read1 and read2 and serves(x1.dtype)):
        return x1 @ x2
    out, one = new((m, n), x1.dtype), ADDRESSES[kind]
    handle = _optional.cupy().cuda.device.get_cublas_handle()
    (by, width), (first, length), zero = read1, read2, one + x1.itemsize
    arrays = x2.data.ptr, length, x1.data.ptr, width, zero, out.data.ptr, n
    routines[kind](handle, first, by, n, m, k, one, *arrays)
    return out


@cache
def _blas() -> tuple[dict[str, Function], Function]:
    """Return cuBLAS's products, and what says whether CuPy asks for these alone."""
    cublas = importlib.import_module("cupy_backends.cuda.libs.cublas")
    settings = importlib.import_module("cupy._core._routines_linalg")
    asked, plain = settings.get_compute_type, settings.COMPUTE_TYPE_DEFAULT
    products = {kind: getattr(cublas, f"{LETTERS[kind]}gemm") for kind in NUMBERS}
    return products, lambda dtype: asked(dtype) == plain


def tensordot(x1: Any, x2: Any, *, axes: Any) -> Any:
    """Return the sums of products over axes; of two matrices, their product."""
    matrices = x1.ndim == x2.ndim == 2 and x1.shape[1] == x2.shape[0]  # noqa: PLR2004
    if matrices and type(axes) is int and axes == 1:
        return matmul(x1, x2)
    return _optional.cupy().tensordot(x1, x2, axes)


def matrix_power(x: Any, n: Any) -> Any:
    """Return a product of so many matrices, by as many products as n has bits."""
    if type(n) is not int or n < 2 or x.ndim != 2 or x.shape[0] != x.shape[1]:  # noqa: PLR2004 - matrices
        return _optional.cupy().linalg.matrix_power(x, n)
    out = None
    while True:
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        if not n:
            return out
        x = matmul(x, x)


LOWER = 0  # cuBLAS's name of a triangle: CUBLAS_FILL_MODE_LOWER


def cholesky(x: Any, *, upper: bool) -> Any:
    """Return triangular factors; of one matrix by the triangle that cuSOLVER prefers.

    Its routine takes less than half as long with the lower one in Fortran's order (the
    upper one in C's) as with the other, which CuPy asks for.
    """
    cupy, kind = _optional.cupy(), x.dtype.char
    if kind not in NUMBERS or x.ndim != 2 or not x.size or x.shape[0] != x.shape[1]:  # noqa: PLR2004 - a matrix
        factors = cupy.linalg.cholesky(x)
        return factors.mT.conj() if upper else factors
    routines = importlib.import_module("cupy_backends.cuda.libs.cusolver")
    name = LETTERS[kind] + "potrf"
    size, factorize = (getattr(routines, name + end) for end in ("_bufferSize", ""))
    factor, info = x.astype(kind, "C" if upper else "F"), cupy.empty(1, np.int32)
    matrix = cupy.cuda.Device().cusolver_handle, LOWER, len(x), factor.data.ptr, len(x)
    work = cupy.empty(size(*matrix), kind)
    factorize(*matrix, work.data.ptr, work.size, info.data.ptr)
    if importlib.import_module("cupyx").geterr()["linalg"] == "raise" and int(info[0]):
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    keep, own = (triu, cupy.triu) if upper else (tril, cupy.tril)
    return quick(keep, own)(factor, k=0)


def solve(a: Any, b: Any) -> Any:
    """Solve stacks of linear equations, (..., M, M) and (M,) or (..., M, K)."""
    cupy = _optional.cupy()
    left, right = a.shape, b.shape
    if len(right) > 1 < len(left) and (left[:-2] != right[:-2] or not right[-1]):
        stack = np.broadcast_shapes(left[:-2], right[:-2])
        if left[-2] == left[-1] == right[-2] and not right[-1]:  # CuPy divides by K
            kind = np.result_type(a.dtype, b.dtype, np.float32)
            return cupy.empty(stack + right[-2:], kind)
        a = cupy.broadcast_to(a, stack + left[-2:])
        b = cupy.broadcast_to(b, stack + right[-2:])
    return cupy.linalg.solve(a, b)


#: Data types that hold products of such numbers exactly.
WIDER = {"f": np.float64, "F": np.complex128}


def _squared(x: Any) -> tuple[Any, Any] | None:
    """Return a matrix of float32 in float64, and its columns' products with each other.

    Its eigenvalues are the squares of singular values, which float64 holds to twice as
    many digits as float32 has. None of other arrays, and where something is not finite.
    """
    wider = WIDER.get(x.dtype.char)
    if wider is None or x.ndim != 2 or not x.size:  # noqa: PLR2004 - a matrix
        return None
    wide = x.astype(wider)
    squared = wide.mT.conj() @ wide
    return (wide, squared) if isfinite(squared.trace().real) else None


def svd(x: Any, *, full_matrices: bool = True) -> Any:
    """Return singular values and vectors, of float32 by a QR factorization in float64.

    The eigenvectors V of the squared matrix make the columns of x V orthogonal, and as
    long as the singular values; its QR factorization orthogonalizes the short ones too.
    CuPy's serves where they did not.
    """
    cupy, result = _optional.cupy(), named_result("linalg.svd")
    if x.ndim == 2 and x.shape[0] < x.shape[1]:  # noqa: PLR2004 - a matrix
        v, values, uh = svd(x.mT.conj(), full_matrices=full_matrices)
        return result(uh.mT.conj(), values, v.mT.conj())
    squares = _squared(x)
    if squares is not None:
        wide, squared = squares
        v = cupy.linalg.eigh(squared)[1][:, ::-1]
        u, rest = cupy.linalg.qr(wide @ v, "complete" if full_matrices else "reduced")
        lengths, above = rest.diagonal().real, quick(triu, cupy.triu)(rest, k=1)
        strays = abs(v.mT.conj() @ v - cupy.eye(len(v))).max()
        eps = float(np.finfo(x.dtype).eps)
        if strays <= eps and abs(above).max() <= eps * abs(lengths).max():
            u[:, : len(v)] *= cupy.copysign(1, lengths)
            values = -cupy.sort(-abs(lengths))
            real = values.astype(x.dtype.char.lower())
            return result(u.astype(x.dtype), real, v.mT.conj().astype(x.dtype))
    return result(*cupy.linalg.svd(x, full_matrices))


def svdvals(x: Any) -> Any:
    """Return singular values, the largest first."""
    cupy = _optional.cupy()
    if x.ndim == 2 and x.shape[0] < x.shape[1]:  # noqa: PLR2004 - a matrix
        x = x.mT
    squares = _squared(x)
    if squares is None:
        return cupy.linalg.svd(x, compute_uv=False)
    values = cupy.linalg.eigvalsh(squares[1])[::-1]
    return cupy.sqrt(cupy.maximum(values, 0)).astype(x.dtype.char.lower())


def diagonal(x: Any, *, offset: int) -> Any:
    """Return the diagonals of matrices."""
    return x.diagonal(offset, -2, -1)


def trace(x: Any, *, offset: int, dtype: DType) -> Any:
    """Return the sums of diagonals, by one launch."""
    add: Any = elementwise.add
    if x.ndim != 2 or offset:  # noqa: PLR2004
        return add.reduce(diagonal(x, offset=offset), -1, dtype)
    # The same view, in a quarter of the time that CuPy's method takes.
    view = type(x)(min(x.shape), x.dtype, x.data, (sum(x.strides),))
    return add.reduce(view, -1, dtype)


def vecdot(x1: Any, x2: Any, *, axis: int) -> Any:
    """Return the dot products of vectors, the first conjugated."""
    if axis != -1:
        move = _optional.cupy().moveaxis  # refuses an axis that there is not
        x1, x2 = move(x1, axis, -1), move(x2, axis, -1)
    one, other = x1.shape, x2.shape
    if not one or not other or one[-1] != other[-1]:
        raise ValueError(
            f"xdev.vecdot: x1 and x2 have shapes {one} and {other}, axis {axis} being "
            f"the last: give vectors of one size along it"
        )
    dtype, x1 = np.result_type(x1, x2), x1.conj()  # real numbers are not copied
    if one != other or dtype == np.float16:  # there the products are too many, or round
        return (x1[..., None, :] @ x2[..., None])[..., 0, 0]
    add: Any = elementwise.add
    return add.reduce(elementwise.multiply(x1, x2), -1, dtype)


def outer(x1: Any, x2: Any) -> Any:
    """Return the products of every pair of elements."""
    if not x1.ndim == x2.ndim == 1:
        raise ValueError(
            f"xdev.linalg.outer: x1 and x2 are {x1.ndim}-D and {x2.ndim}-D, and must "
            f"be 1-D: xdev.reshape(x, (-1,)) is"
        )
    return elementwise.multiply(x1.reshape(-1, 1), x2)


def cross(x1: Any, x2: Any, *, axis: int) -> Any:
    """Return the cross products of vectors in three dimensions."""
    if not x1.shape[axis:][:1] == x2.shape[axis:][:1] == (3,):
        raise ValueError(
            f"xdev.linalg.cross: x1 and x2 have shapes {x1.shape} and {x2.shape}, and "
            f"must have 3 elements along axis {axis}: join zeros to vectors in a plane "
            f"with xdev.concat"
        )
    return _optional.cupy().cross(x1, x2, axis=axis)
