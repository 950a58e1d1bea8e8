# ruff: noqa: D102 - backends.Factory says what each method does
"""NumPy as the facade's library, and its arrays, in memory from xdev's host pool."""

from __future__ import annotations

import importlib
import math
import operator
from functools import cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev._config import TRACKING
from xdev._freed import FREED, use_after_free
from xdev.facade.backends import (
    CLASSES,
    FLOAT32,
    FLOAT64,
    NAMED,
    PYTHON_SCALARS,
    Factory,
    Functions,
    Library,
    as_shape,
    ends_of,
    first_in,
    to_numpy_dtype,
)
from xdev.ufunc.argument_errors import held_elsewhere, no_matrix, no_mode, no_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.facade.backends import Axes, DType, Function

#: Arrays that NumPy made itself are copied into the pool from this size [B].
POOLED_FROM = 64 * 1024
#: Shapes of fewer elements, of the standard's data types, are smaller than that.
SMALL = POOLED_FROM // 16


@cache
def from_memory(name: str) -> Function:
    """Return a function of the pool's arrays."""
    # At the first array, not at import: `import xdev` loads NumPy only.
    return getattr(importlib.import_module("xdev.memory.arrays"), name)


def is_small(shape: Any, dtype: Any) -> bool:
    """Say whether NumPy allocates an array: it is small, and memory is not tracked.

    For an invalid shape or data type the answer may be either.
    """
    if (TRACKING.off or TRACKING.found_off()) and (
        dtype is None
        or (dtype in NAMED if type(dtype) is type else type(dtype) in CLASSES)
    ):
        if type(shape) is int:
            return shape < SMALL
        if type(shape) is tuple:
            try:
                return math.prod(shape) < SMALL
            except (TypeError, ValueError):  # its members are no numbers
                return False
    return False


def pooled(x: Any) -> Any:
    """Return a copy in the pool's memory of an array of NumPy's, if it is large."""
    if x.nbytes < POOLED_FROM:
        return x
    out = from_memory("host_array")(x.shape, x.dtype)
    np.copyto(out, x)
    return out


def bare(name: str) -> Function:
    """Return NumPy's function without its search for other libraries' arrays."""
    function = operator.attrgetter(name)(np)
    return getattr(function, "__wrapped__", function)


_add: Any = np.add.reduce
_arange: Any = np.arange
_empty_like, _linspace = bare("empty_like"), bare("linspace")
_numpys_count, _numpys_unique = bare("count_nonzero"), bare("unique")

_OF_HOST = np.ndarray, np.generic
REAL = frozenset({int, float})  # types of Python's numbers; bool is none of them
#: NumPy's own types; derived classes may override ufuncs.
_PLAIN = frozenset((np.ndarray, *np.sctypeDict.values()))


def namespace_of(x: Any) -> Any:
    """Return the module of an array or scalar: ``numpy``, or else ``cupy``."""
    if isinstance(x, _OF_HOST):
        return np
    from xdev import _optional  # `import xdev` does not need it

    return _optional.cupy()


def _into(result: Any, out: Any) -> Any:
    """Return a result, copied to ``out`` where there is one."""
    if out is None:
        return result
    namespace_of(out).copyto(out, result, casting="same_kind")
    return out


def clip(x: Any, lower: Any, upper: Any, out: Any = None) -> Any:
    """Limit ``x`` to [lower, upper] in its own data type; NaN stays NaN."""
    xp, kind = namespace_of(x), x.dtype.kind
    if kind != "f" or type(lower) not in REAL or type(upper) not in REAL:
        lower = _within(xp, lower, x.dtype, "ceil")
        upper = _within(xp, upper, x.dtype, "floor")
    if lower is None:  # and upper, too: a copy, of bools as well
        return xp.minimum(x, x if upper is None else upper, out=out)
    if upper is None:
        return xp.maximum(x, lower, out=out)
    if xp is np:
        if kind == "b":  # for which NumPy's has no loop
            return np.minimum(np.maximum(x, lower), upper, out=out)
        return x.clip(lower, upper, out)
    from xdev.facade.cuda_copies import LIMIT  # `import xdev` does not need it

    return LIMIT(x, lower, upper) if out is None else LIMIT(x, lower, upper, out=out)


def _within(xp: Any, bound: Any, dtype: np.dtype[Any], inwards: str) -> Any:
    """Return a bound in a data type, saturated where that is an integer type.

    ``inwards`` is the function, of ``math`` and of ``xp``, that rounds it then.
    """
    whole = dtype.kind in "iu"
    least, most = ends_of(dtype) if whole else (-math.inf, math.inf)
    if bound is None or (type(bound) is int and least <= bound <= most):
        return bound
    if dtype.kind != "c" and np.iscomplexobj(bound):
        message = f"xdev.clip: a bound is complex, and x is {dtype}: give real numbers"
        raise TypeError(message)
    if not np.isscalar(bound):
        return _saturated(xp, bound, dtype, inwards) if whole else bound.astype(dtype)
    if not whole:
        return bound if type(bound) in REAL else dtype.type(bound)
    if isinstance(bound, np.generic):
        bound = bound.item()  # float16 would overflow beside the type's ends
    if bound != bound:  # noqa: PLR0124 - NaN
        message = "a bound is NaN, which limits no integers: leave it out"
        raise ValueError(f"xdev.clip: {message}")
    return getattr(math, inwards)(min(max(bound, least), most))


def _saturated(xp: Any, bound: Any, dtype: np.dtype[Any], inwards: str) -> Any:
    """Return an array of bounds in an integer type."""
    if np.can_cast(bound.dtype, dtype):
        return bound.astype(dtype)
    least, most = ends_of(dtype)
    if bound.dtype.kind != "f":
        first, last = ends_of(bound.dtype)
        return xp.clip(bound, max(least, first), min(most, last)).astype(dtype)
    free = -math.inf if inwards == "ceil" else math.inf
    bound = xp.where(xp.isnan(bound), free, bound.astype(np.float64))
    bound, top = getattr(xp, inwards)(bound), float(most)
    # Where the type has 64 bits, top is 2^63 or 2^64: one too many.
    inside = xp.clip(bound, least, top if top <= most else math.nextafter(top, 0))
    whole = xp.where(bound >= top, dtype.type(most), inside.astype(dtype))
    return whole.astype(dtype, copy=False)


def _round(x: Any, out: Any = None, **keywords: Any) -> Any:
    ufunc = np.positive if x.dtype.kind in "iu" else np.rint
    return ufunc(x, out=out, **keywords)


def part_of(name: str) -> Function:
    """Return the function that gives the real or the imaginary part."""

    def part(x: Any, out: Any = None) -> Any:
        if x.dtype in FREED:  # an attribute of all data types
            raise use_after_free(x, f"xdev.{name}: x")
        return _into(getattr(x, name), out)

    return part


def _complex(name: str, mend: Callable[[Any], Any]) -> Function:
    """Return NumPy's ufunc, mended for complex numbers."""
    ufunc: np.ufunc = getattr(np, name)

    def function(x: Any, out: Any = None, **keywords: Any) -> Any:
        if type(x) not in _PLAIN or x.dtype.kind != "c":
            return ufunc(x, out=out, **keywords)
        if not keywords:
            return _into(mend(x), out)
        with np.errstate(all="ignore"):  # NumPy tells, of what it computes
            mended = mend(x)
        result = np.asarray(ufunc(x, out=out, **keywords))
        np.copyto(result, mended, "unsafe", where=keywords.get("where", True))
        return result[()] if out is None else out

    return function


def _expm1(x: Any) -> Any:
    with np.errstate(invalid="ignore", over="ignore"):
        special = ~np.isfinite(x) | (x == 0)
        return np.where(special, np.exp(x) - 1, np.expm1(x))[()]


def _log1p(x: Any) -> Any:
    result = np.array(np.log1p(x))
    near = (np.abs(x.real) < 0.5) & (np.abs(x.imag) < 0.5)  # noqa: PLR2004 - 1/2
    a, b = x.real[near], x.imag[near]
    result.real[near] = np.log1p(a * (2 + a) + b * b) / 2
    return result[()]


def _tanh(x: Any) -> Any:
    result = np.array(np.tanh(x))
    special = np.isinf(x.real) & np.isfinite(x.imag)
    result.imag[special] = np.copysign(0, x.imag)[special]
    return result[()]


def _count_nonzero(x: Any, *, axis: Axes, keepdims: bool) -> Any:
    count: Any = _numpys_count(x, axis, keepdims=keepdims)
    return np.intp(count) if type(count) is int else count


@cache
def named_result(name: str) -> Any:
    """Return the type of what NumPy's function returns, which takes long to load."""
    return type(operator.attrgetter(name)(np)(np.empty((0, 0))))


def eig(x: Any) -> Any:
    """Return the eigenvalues and eigenvectors of NumPy's or CuPy's arrays, complex."""
    results = namespace_of(x).linalg.eig(x)
    return named_result("linalg.eig")(*map(_complex_numbers, results))


def eigvals(x: Any) -> Any:
    """Return the eigenvalues, complex."""
    return _complex_numbers(namespace_of(x).linalg.eigvals(x))


def _complex_numbers(x: Any) -> Any:
    """Return numbers as complex ones: until NumPy 2.5, eigenvalues may be real."""
    kind = x.dtype
    return x if kind.kind == "c" else x.astype(np.result_type(kind, np.complex64))


def matrix_rank(
    x: Any, *, rtol: Any = None, svdvals: Function = np.linalg.svdvals
) -> Any:
    """Return the number of singular values that count as more than 0."""
    if x.ndim < 2:  # noqa: PLR2004 - a matrix
        raise no_matrix("linalg.matrix_rank", x)
    xp = namespace_of(x)
    sizes = svdvals(x)
    return xp.count_nonzero(sizes > cutoff(xp, sizes, x.shape, rtol), axis=-1)


def qr(x: Any, *, mode: str) -> Any:
    """Return the factors, in one of the standard's modes."""
    if mode not in ("reduced", "complete"):  # others have other results, or old names
        raise no_mode(mode)
    return named_result("linalg.qr")(*namespace_of(x).linalg.qr(x, mode))


def cutoff(xp: Any, sizes: Any, shape: tuple[int, ...], rtol: Any) -> Any:
    """Return up to which size singular values, the largest first, count as 0."""
    if rtol is None:
        rtol = max(shape[-2:]) * float(np.finfo(sizes.dtype).eps)
    elif type(rtol) not in (int, float):
        rtol = xp.asarray(rtol)[..., None]
    return sizes[..., :1] * rtol


def pinv(x: Any, *, rtol: Any = None, svd: Function = np.linalg.svd) -> Any:
    """Return the Moore-Penrose inverse of matrices."""
    if x.ndim < 2:  # noqa: PLR2004 - a matrix's
        raise no_matrix("linalg.pinv", x)
    xp = namespace_of(x)
    u, s, vh = svd(x.conj(), full_matrices=False)
    s[s <= cutoff(xp, s, x.shape, rtol)] = math.inf
    return xp.matmul(vh.mT, xp.multiply((1 / s)[..., None], u.mT))


def diff(x: Any, *, axis: int, n: int, **ends: Any) -> Any:
    """Return NumPy's or CuPy's differences, which loop over ``n``."""
    if hasattr(n, "__index__"):  # past the axis's end nothing is left to subtract
        n = operator.index(n)
        extents = (max((1, *np.shape(y))) for y in (x, *ends.values()))
        n = min(n, sum(extents))
    return namespace_of(x).diff(x, n, axis, **ends)


def _triangle(name: str) -> Function:
    numpys = bare(name)
    return lambda x, *, k: pooled(numpys(x, k))


# Stable sorting. NumPy's stable kind is some ten times slower than its quick one, which
# has SIMD instructions and is mended here where it is not stable.

FEW = 512  # elements, which the stable kind sorts as quickly
SHORT = 64  # elements of a line that are too few for SIMD
MOST = 2**31  # elements: of fewer a run's number and an index fit in 64 bits
QUICK = frozenset("ilqILQfd")  # data types whose quick kind is worth it
NUMBERS = QUICK | frozenset("?bBhHe")
UINT64 = np.dtype(np.uint64)


def _is_quick(x: Any, axis: Any) -> bool:
    """Say whether the quick kind pays; NumPy refuses what is no axis."""
    if not FEW <= x.size < MOST or x.dtype.char not in QUICK:
        return False
    right = type(x) is np.ndarray and type(axis) is int and -x.ndim <= axis < x.ndim
    return right and x.shape[axis] >= SHORT


def sort(x: Any, *, axis: Any, descending: bool, stable: bool) -> Any:
    """Return a sorted copy; only without ``stable`` zeros and NaN may change signs."""
    if descending:  # flipped before and after
        flipped = np.flip(x, axis)
        return np.flip(sort(flipped, axis=axis, descending=False, stable=stable), axis)
    result, quick = x.copy("K"), _is_quick(x, axis)
    # The quick kind of halves puts -0.0 before negative numbers on some processors.
    result.sort(axis, stable=not quick)
    if quick and stable and x.dtype.kind == "f":
        _restore(result.swapaxes(axis, -1), x.swapaxes(axis, -1))
    return result


def _restore(ordered: Any, x: Any) -> None:
    """Put those bits back that the quick kind may change: of zeros and of NaN."""
    zeros = ordered == 0
    if zeros.any():
        ordered[zeros] = x[x == 0]
    if np.isnan(ordered[..., -1]).any():
        ordered[np.isnan(ordered)] = x[np.isnan(x)]


def argsort(x: Any, *, axis: Any, descending: bool, stable: bool) -> Any:
    """Return the indices that NumPy's stable kind gives; without it, some that sort."""
    if descending:
        flipped = np.flip(x, axis)
        order = argsort(flipped, axis=axis, descending=False, stable=stable)
        return x.shape[axis] - 1 - np.flip(order, axis)
    if not _is_quick(x, axis):
        return x.argsort(axis, stable=True)
    order = x.argsort(axis)
    if stable:
        ordered = x[order] if x.ndim == 1 else np.take_along_axis(x, order, axis)
        _order_ties(order.swapaxes(axis, -1), ordered.swapaxes(axis, -1))
    return order


def _order_ties(order: Any, ordered: Any) -> None:
    """Put the indices of equal elements, which are neighbours, in ascending order."""
    before, after = ordered[..., :-1], ordered[..., 1:]
    tied = before == after
    if ordered.dtype.kind == "f":
        tied |= np.isnan(before)  # then all that come after are NaN, too
    if not tied.any():
        return
    # Sorted by the number of its run, then by itself: an index stays in its run.
    keys = np.zeros(order.shape, UINT64)
    np.cumsum(~tied, axis=-1, out=keys[..., 1:])
    bits = UINT64.type((order.shape[-1] - 1).bit_length())
    keys <<= bits
    keys |= order.view(UINT64)
    keys.sort(-1)
    keys &= (UINT64.type(1) << bits) - UINT64.type(1)
    order[...] = keys.view(np.intp)


def unique_values(x: Any) -> Any:
    """Return the distinct values, in ascending order."""
    if x.dtype.char not in NUMBERS:
        return _numpys_unique(x, equal_nan=False)
    # NumPy puts some into a hash table, which takes up to 300 times as long.
    ordered = sort(x.ravel(), axis=0, descending=False, stable=False)
    changes = np.ones(ordered.shape, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=changes[1:])
    return ordered[changes]


def _meshgrid(*arrays: Any, indexing: Any) -> Any:
    views = np.meshgrid(*arrays, indexing=indexing, copy=False)
    return tuple(_into(x, HOST.empty(x.shape, x.dtype)) for x in views)


#: Where NumPy departs from the standard, each with the reason.
MENDED: dict[str, Function] = {
    "clip": clip,  # the result must keep x's data type
    "round": _round,  # numpy.round is no ufunc
    "real": part_of("real"),  # has no out=
    "imag": part_of("imag"),  # has no out=
    # complex infinities, NaN and signed zeros differ
    "expm1": _complex("expm1", _expm1),
    # of complex numbers is log(1 + x), inexact near 0
    "log1p": _complex("log1p", _log1p),
    "tanh": _complex("tanh", _tanh),  # complex infinities get the wrong sign of zero
    "diff": diff,  # counts to n
    "tril": _triangle("tril"),  # creation functions come from the pool
    "triu": _triangle("triu"),  # likewise
    "meshgrid": _meshgrid,  # its copies are not of the pool
    "sort": sort,  # has no descending=
    "argsort": argsort,  # has no descending=
    "count_nonzero": _count_nonzero,  # returns a Python int
    "unique_values": unique_values,  # has the order of a hash table
    "linalg.eig": eig,  # may be real where all imaginary parts are 0
    "linalg.eigvals": eigvals,  # likewise
    "linalg.matrix_rank": matrix_rank,  # accepts vectors
    "linalg.pinv": pinv,  # has no default of rtol for integers
    "linalg.qr": qr,  # has more modes
}


def folded_count(x: Any, axis: Axes) -> int:
    """Return how many elements are reduced to one; 0 where NumPy must look."""
    if x.dtype not in (FLOAT64, FLOAT32):
        return 0
    if axis is None:
        return x.size
    if type(axis) is int and -x.ndim <= axis < x.ndim:
        return x.shape[axis]
    return 0


def _mean(x: Any, *, axis: Axes, keepdims: bool) -> Any:
    count = folded_count(x, axis)
    if not count:
        return np.mean(x, axis=axis, keepdims=keepdims)
    return _add(x, axis, None, None, keepdims) / count


def variance(x: Any, *, axis: Axes, correction: float, keepdims: bool) -> Any:
    """Return the variance of NumPy's arrays, of floats without its detours."""
    count = folded_count(x, axis)
    if not count or count <= correction:
        return np.var(x, axis=axis, correction=correction, keepdims=keepdims)
    distances = x - _add(x, axis, None, None, True) / count
    distances *= distances
    return _add(distances, axis, None, None, keepdims) / (count - correction)


#: Functions of NumPy's own arrays, not of derived classes: those that NumPy's functions
#: of these names call in the end, and quicker ones for small arrays.
OF_ARRAYS = Functions(
    lambda name: MENDED.get(name) or bare(name),
    {
        "all": np.logical_and.reduce,
        "any": np.logical_or.reduce,
        "max": np.maximum.reduce,
        "min": np.minimum.reduce,
        "prod": np.multiply.reduce,
        "sum": np.add.reduce,
        "mean": _mean,
        "std": lambda x, **options: np.sqrt(variance(x, **options)),
        "var": variance,
        "argmax": np.ndarray.argmax,
        "argmin": np.ndarray.argmin,
        "matrix_transpose": operator.attrgetter("mT"),
        "nonzero": np.ndarray.nonzero,
        "permute_dims": np.ndarray.transpose,
        "repeat": lambda x, repeats, *, axis: x.repeat(repeats, axis),
        "reshape": np.ndarray.reshape,
        "searchsorted": np.ndarray.searchsorted,
        "squeeze": np.ndarray.squeeze,
        "take": np.ndarray.take,
    },
)


@final
class NumPyLibrary(Library):
    """NumPy: one device, its own data types, ufuncs with ``out=``."""

    device_type = "cpu"
    multi_device = False

    def __init__(self) -> None:
        super().__init__(np, lambda name: operator.attrgetter(name)(np), MENDED)

    def operand(self, value: Any, like: Any) -> Any:  # noqa: ARG002
        """Return the value: NumPy takes numbers of all kinds."""
        return value


NUMPY = Library.model = NumPyLibrary()


@final
class HostFactory(Factory):
    """The host."""

    namespace = np

    def empty(self, shape: Any, dtype: DType, order: str = "C") -> Any:
        try:
            if is_small(shape, dtype):
                return np.empty(shape, dtype, order)  # type: ignore[call-overload]
        except (TypeError, ValueError):
            pass  # said better below
        kind = np.dtype(np.float64) if dtype is None else to_numpy_dtype(dtype)
        if kind.hasobject:  # pointers must start as None, not as old memory
            return np.empty(shape, kind)
        return from_memory("host_array")(as_shape(shape), kind, order)

    def zeros(self, shape: Any, dtype: DType) -> Any:
        return self._cleared(self.empty(shape, dtype))

    def zeros_like(self, x: Any, dtype: DType) -> Any:
        return self._cleared(self.empty_like(x, dtype))

    def _cleared(self, out: Any) -> Any:
        if out.nbytes < POOLED_FROM or out.dtype.hasobject:
            out[...] = np.zeros((), out.dtype)  # of texts, bytes and records no number
            return out
        return from_memory("cleared")(out)

    def filled(self, out: Any, value: Any) -> Any:
        # An array of a device does not come unasked.
        out.fill(value if type(value) in PYTHON_SCALARS else np.asarray(value))
        return out

    def empty_like(self, x: Any, dtype: DType) -> Any:
        if dtype is None and TRACKING.off and x.nbytes < POOLED_FROM:
            return _empty_like(x, None, "K", False)
        return super().empty_like(x, dtype)

    def arange(self, start: Any, stop: Any, step: Any, dtype: DType) -> Any:
        array = _arange(start, stop, step, NUMPY.dtype(dtype))
        if dtype is None and array.dtype.hasobject:
            raise _of_no_dtype(start, stop, step)
        first, last = (0, start) if stop is None else (start, stop)
        whole = type(first) is type(last) is type(step) is int
        if whole and not array.size and range(first, last, step):  # NumPy miscounts
            message = f"from {first} to {last} is a range longer than any memory"
            raise ValueError(f"xdev.arange: {message}: use a larger step")
        return pooled(array)

    def linspace(
        self, start: Any, stop: Any, num: int, *, dtype: DType, endpoint: bool
    ) -> Any:
        dtype = NUMPY.dtype(dtype)
        return pooled(_linspace(start, stop, num, endpoint, False, dtype))

    def asarray(self, obj: Any, dtype: DType, copy: bool | None) -> Any:
        kind = None if dtype is None else to_numpy_dtype(dtype)
        if isinstance(obj, np.ndarray):
            same = kind is None or kind == obj.dtype
            if not copy and (same or copy is False):
                return np.asarray(obj, dtype=kind, copy=copy)
            out = self.empty_like(obj, kind)
            np.copyto(out, obj, casting="unsafe")
            return out
        try:
            array = np.array(obj, dtype=kind, copy=copy)
        except (TypeError, ValueError) as error:
            other = first_in(
                obj, lambda x: hasattr(x, "__dlpack__") and not isinstance(x, _OF_HOST)
            )
            refusal = no_values(obj) or held_elsewhere(other)
            if refusal is None:
                raise
            raise refusal from error
        if array.dtype in FREED:
            raise use_after_free(array, "xdev.asarray: what makes an array")
        if array.dtype.hasobject and kind is None:
            message = (
                f"xdev.asarray: a {type(obj).__name__} has no data type of the "
                f"standard: give numbers that fit one, or dtype="
            )
            raise no_values(obj) or TypeError(message)
        return pooled(array) if array.base is None else array

    def from_dlpack(self, x: Any, copy: bool | None) -> Any:
        array = np.from_dlpack(x, copy=copy)
        return pooled(array) if copy else array


HOST = HostFactory()


def _of_no_dtype(*numbers: Any) -> Exception:
    """Return the error for a range of numbers that are none of NumPy's."""
    usual = all(isinstance(x, int | float | np.generic | None) for x in numbers)
    kind = OverflowError if usual else TypeError
    return kind("xdev.arange: no data type holds the numbers: give dtype=xdev.float64")
