"""Where CuPy and array_api_compat's CuPy depart from the standard, and what we do.

What a function can mend is in :func:`mended`, each entry with its reason;
array_api_compat mends some of it as well, in more frames of Python, which calls on
small arrays notice. What only a ``cupy.ndarray`` itself could mend, its operators and
methods, is listed in ``tests/conformance.toml``.
"""

from __future__ import annotations

import inspect
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from xdev import _optional
from xdev.facade.clipping import clip
from xdev.facade.cpu import EPS, QR_MODES, complex_numbers, diagonal, diff, pinv, trace
from xdev.facade.protocols import QR, SVD, Eig, Slogdet
from xdev.ufunc.complaints import no_matrix, no_mode
from xdev.ufunc.expressions import selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.facade.protocols import Axes


def mended() -> dict[str, Callable[..., Any]]:
    """Return the functions that serve in CuPy's place, by the standard's names."""
    cupy = _optional.cupy()
    return {
        # no out=
        "real": written(cupy.real),
        "imag": written(cupy.imag),
        # the result must keep x's data type; array_api_compat's waits for the device
        "clip": clip,
        # is two launches of array_api_compat's and CuPy's where there are numbers
        "where": where,
        # refuses an array of counts
        "repeat": repeat,
        # takes no numbers but integers
        "isin": isin,
        # takes no number that is NumPy's
        "searchsorted": searchsorted,
        # has no keepdims=
        "count_nonzero": count_nonzero(),
        # takes 0-d arrays
        "nonzero": nonzero,
        # makes much of what is one subtraction
        "diff": diff,
        # call the correction ddof
        "std": std,
        "var": var,
        # have no descending=; are stable always
        "sort": sort,
        "argsort": argsort,
        # has the first two axes
        "linalg.diagonal": diagonal,
        "linalg.trace": trace,
        # is of whole arrays, unless axis= says other
        "linalg.matrix_norm": partial(cupy.linalg.norm, axis=(-2, -1)),
        # flattens
        "linalg.outer": outer,
        # its own of this name does not broadcast, the other takes vectors in a plane
        "linalg.cross": cross,
        # there is none; array_api_compat's copies what it conjugates, real numbers too
        "vecdot": vecdot,
        # have another default of rtol=, if any
        "linalg.matrix_rank": matrix_rank,
        "linalg.pinv": pinv,
        # is svd's
        "linalg.svdvals": partial(cupy.linalg.svd, compute_uv=False),
        # stacks do not broadcast; no columns are an error
        "linalg.solve": solve,
        # eigh, qr, slogdet and svd return plain tuples, and qr has more modes; cholesky
        # has no upper=; eig and eigvals may be real where the standard wants complex
        **decompositions(cupy.linalg),
    }


CHOOSE = selection("where", "condition", "x1", "x2")


def where(condition: Any, x1: Any, x2: Any) -> Any:
    """Choose by truth values; other conditions are CuPy's matter."""
    if condition.dtype == np.bool_:
        return CHOOSE(condition, x1, x2)
    return _optional.cupy().where(condition, x1, x2)


def sort(x: Any, *, axis: int, descending: bool, stable: bool) -> Any:  # noqa: ARG001 - it always is
    """Sort, equal elements in their order."""
    made = x.copy()
    made.sort(axis)
    return _optional.cupy().flip(made, axis) if descending else made


def argsort(x: Any, *, axis: int, descending: bool, stable: bool) -> Any:  # noqa: ARG001 - likewise
    """Return the order, of equal elements their own."""
    if not descending:
        return x.argsort(axis)
    # Flipped before and after, so that equal elements keep their order.
    flip = _optional.cupy().flip
    return x.shape[axis] - 1 - flip(flip(x, axis).argsort(axis), axis)


def nonzero(x: Any) -> Any:
    """Return the indices of what is not zero."""
    if not x.ndim:
        message = "xdev.nonzero: x is zero-dimensional: xdev.reshape(x, (1,)) is not"
        raise ValueError(message)
    return x.nonzero()


def count_nonzero() -> Callable[..., Any]:
    """Return ``count_nonzero`` as CuPy has it, but with ``keepdims=``.

    Its reductions are made by ``create_reduction_func``, which has no public name.
    """
    create = _optional.cupy()._core.create_reduction_func  # noqa: SLF001 - see above
    loops = tuple(f"{char}->l" for char in "?bBhHiIlLqQefdFD")
    steps = ("in0 != type_in0_raw(0)", "a + b", "out0 = a", None)
    made: Callable[..., Any] = create("xdev_count_nonzero", loops, steps, 0)
    return made


def repeat(x: Any, repeats: Any, *, axis: int | None) -> Any:
    """Repeat elements, each as often as its count says; counts may be an array."""
    if type(repeats) is int:
        return x.repeat(repeats, axis)
    cupy = _optional.cupy()
    if not isinstance(repeats, cupy.ndarray):
        return x.repeat(repeats, axis)
    if axis is None:
        x, axis = x.ravel(), 0
    ends = cupy.cumsum(cupy.broadcast_to(repeats, (x.shape[axis],)))
    total = int(ends[-1]) if ends.size else 0  # the result's shape: the host must wait
    source = cupy.searchsorted(ends, cupy.arange(total), side="right")
    return cupy.take(x, source, axis=axis)


def isin(x1: Any, x2: Any, *, invert: bool = False) -> Any:
    """Say of each element whether it is in the other; either may be a number."""
    cupy = _optional.cupy()
    return cupy.isin(cupy.asarray(x1), cupy.asarray(x2), False, invert)


def searchsorted(x1: Any, x2: Any, *, side: Any = "left", sorter: Any = None) -> Any:
    """Return where elements belong; a number may be looked for."""
    cupy = _optional.cupy()
    values = x2 if isinstance(x2, cupy.ndarray) else cupy.asarray(x2)
    return cupy.searchsorted(x1, values, side, sorter)


def decompositions(linalg: Any) -> dict[str, Callable[..., Any]]:
    """Return them by name, made of those of ``cupy.linalg``."""

    def cholesky(x: Any, *, upper: bool = False) -> Any:
        lower = linalg.cholesky(x)
        return lower.mT.conj() if upper else lower

    def qr(x: Any, *, mode: str = "reduced") -> Any:
        if mode not in QR_MODES:
            raise no_mode(mode)
        return linalg.qr(x, mode)

    return {
        "linalg.cholesky": cholesky,
        "linalg.eig": _named(Eig, lambda x: map(complex_numbers, linalg.eig(x))),
        "linalg.eigh": _named(Eig, linalg.eigh),
        "linalg.eigvals": lambda x: complex_numbers(linalg.eigvals(x)),
        "linalg.qr": _named(QR, qr),
        "linalg.slogdet": _named(Slogdet, linalg.slogdet),
        "linalg.svd": _named(SVD, linalg.svd),
    }


def _named(kind: type, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose results have names."""
    return lambda x, **options: tuple.__new__(kind, function(x, **options))


THREE = 3, 3  # the sizes of two vectors


def solve(a: Any, b: Any) -> Any:
    """Solve stacks of linear equations; the stacks broadcast.

    Parameters
    ----------
    a : cupy.ndarray, shape (..., M, M)
        The matrices.
    b : cupy.ndarray, shape (M,) or (..., M, K)
        The right-hand sides.

    Returns
    -------
    cupy.ndarray, shape (..., M) or (..., M, K)
        The unknowns.
    """
    cupy = _optional.cupy()
    if a.ndim == 2 and b.ndim <= 2 and b.size:  # noqa: PLR2004 - one matrix
        return cupy.linalg.solve(a, b)
    left, right = a.shape, b.shape
    if len(right) > 1 < len(left) and (left[:-2] != right[:-2] or not right[-1]):
        stack = np.broadcast_shapes(left[:-2], right[:-2])
        if left[-2] == left[-1] == right[-2] and not right[-1]:  # CuPy divides by K
            kind = np.result_type(a.dtype, b.dtype, np.float32)
            return cupy.empty(stack + right[-2:], kind)
        a = cupy.broadcast_to(a, stack + left[-2:])
        b = cupy.broadcast_to(b, stack + right[-2:])
    return cupy.linalg.solve(a, b)


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
    # The method, not the function: real numbers are not copied.
    return (x1.conj()[..., None, :] @ x2[..., None])[..., 0, 0]


def outer(x1: Any, x2: Any) -> Any:
    """Return the products of every pair of elements."""
    if not x1.ndim == x2.ndim == 1:
        raise ValueError(
            f"xdev.linalg.outer: x1 and x2 are {x1.ndim}-D and {x2.ndim}-D, and must "
            f"be 1-D: xdev.reshape(x, (-1,)) is"
        )
    return x1.reshape(-1, 1) * x2


def cross(x1: Any, x2: Any, *, axis: int) -> Any:
    """Return the cross products of vectors in three dimensions."""
    try:
        sizes = x1.shape[axis], x2.shape[axis]
    except IndexError:
        sizes = THREE  # CuPy says which axis there is not
    if sizes != THREE:
        raise ValueError(
            f"xdev.linalg.cross: x1 and x2 have sizes {sizes[0]} and {sizes[1]} along "
            f"axis {axis}, and must have 3: join zeros to vectors in a plane with "
            f"xdev.concat"
        )
    return _optional.cupy().cross(x1, x2, axis=axis)


def matrix_rank(x: Any, *, rtol: Any) -> Any:
    """Return the number of singular values that count as more than 0."""
    cupy = _optional.cupy()
    if x.ndim < 2:  # noqa: PLR2004 - a matrix's
        raise no_matrix("linalg.matrix_rank", x)
    values = cupy.linalg.svd(x, compute_uv=False)
    if rtol is None:
        least = max(x.shape[-2:]) * EPS[values.dtype]
    else:
        least = cupy.asarray(rtol)[..., None]
    # The first is the largest; a maximum of none would be an error.
    above = values > values[..., :1] * least
    return cupy.count_nonzero(above, axis=-1)


LARGE = 1 << 16  # elements, from which on two more launches are worth it


AT_ONCE = 1 << 24  # elements whose deviations take memory together


def std(x: Any, *, axis: Axes, correction: float, keepdims: bool) -> Any:
    """Return the standard deviation."""
    whole = _of_all(x, axis, correction, keepdims)
    if whole is None:
        return _own(x, "std")(axis, None, None, correction, keepdims)
    return whole**0.5


def var(x: Any, *, axis: Axes, correction: float, keepdims: bool) -> Any:
    """Return the variance."""
    whole = _of_all(x, axis, correction, keepdims)
    if whole is None:
        return _own(x, "var")(axis, None, None, correction, keepdims)
    return whole


def _own(x: Any, name: str) -> Any:
    """Return CuPy's method of an array, not what the bridge of operators set there."""
    return partial(inspect.unwrap(getattr(type(x), name)), x)


def _of_all(x: Any, axis: Axes, correction: float, keepdims: bool) -> Any:
    """Return the variance of all elements in two passes; None where CuPy's will do."""
    if axis is not None or x.size < LARGE:
        return None
    freedom = x.size - correction
    if x.dtype.char not in "fd" or freedom <= 0 or not x.flags.forc:
        return None
    flat = x.ravel("K")
    mean, total = _own(flat, "mean")(), 0
    for start in range(0, flat.size, AT_ONCE):
        deviation = flat[start : start + AT_ONCE] - mean
        deviation *= deviation
        total = total + _own(deviation, "sum")()
    found = total / x.dtype.type(freedom)
    return found.reshape((1,) * x.ndim) if keepdims else found


def written(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function that returns a view ``out=``; the cast is checked by the copy."""

    def with_out(x: Any, out: Any = None) -> Any:
        result = function(x)
        if out is None:
            return result
        _optional.cupy().copyto(out, result, casting="same_kind")
        return out

    return with_out


def fill(out: Any, value: Any) -> None:
    """Fill an array of CuPy's with a NumPy scalar of its data type.

    One launch or one clearing of memory, nothing is uploaded.

    Parameters
    ----------
    out : cupy.ndarray
        Any shape.
    value : numpy scalar
        Of ``out``'s data type; -0.0 and complex numbers with such parts stay so.
    """
    if value == 0 and any(value.tobytes()):
        _kernel()(value, out)
    else:
        out.fill(value)


@cache
def _kernel() -> Any:
    make = _optional.cupy().ElementwiseKernel
    return make("T value", "T out", "out = value", "xdev_fill")
