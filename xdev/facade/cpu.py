"""NumPy as the facade's library on the CPU, and where it departs from the standard."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev._freed import FREED, use_after_free
from xdev.facade import host_sorting
from xdev.facade.clipping import clip
from xdev.facade.dtype_names import to_numpy_dtype
from xdev.facade.host_memory import pooled
from xdev.facade.pseudoinverses import pinv
from xdev.ufunc.complaints import (
    misfit,
    no_matrix,
    no_mode,
    read_only,
    wrong_dtype,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from xdev.facade.protocols import Axes, DType


# The one object of each: comparing by identity is enough, and quicker.
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
COMPLEX64, COMPLEX128 = np.dtype(np.complex64), np.dtype(np.complex128)


def bare(name: str) -> Callable[..., Any]:
    """Return NumPy's function without its search for other libraries' arrays.

    For arguments that are known to be plain NumPy arrays; the search takes 0.1 us.
    """
    found: Callable[..., Any] = operator.attrgetter(name)(np)
    return getattr(found, "__wrapped__", found)


# From NumPy 2.5 on eigenvalues are complex always.
REAL_EIGENVALUES = np.lib.NumpyVersion(np.__version__) < "2.5.0"
_eig = bare("linalg.eig")
_eigvals = bare("linalg.eigvals")
#: Of ``qr``: NumPy's and CuPy's others give other results, or are old names.
QR_MODES = "reduced", "complete"
#: What is not of a derived class, whose way with ufuncs NumPy has to take.
_PLAIN = frozenset((np.ndarray, *np.sctypeDict.values()))


def _into(
    result: Any,
    out: Any,
    *,
    where: Any = True,
    casting: Any = "same_kind",
    **_: Any,
) -> Any:
    """Give a result, or copy it to ``out`` where there is one."""
    if out is None:
        return result
    np.copyto(out, result, casting=casting, where=where)
    return out


def _round(x: Any, out: Any = None, **keywords: Any) -> Any:
    if keywords:
        return (np.positive if x.dtype.kind in "iu" else np.rint)(
            x, out=out, **keywords
        )
    result = x.round(0, out)
    return result if out is None else out  # of a scalar it returns another


def _real(x: Any, out: Any = None) -> Any:
    if x.dtype in FREED:  # an attribute of all data types
        raise use_after_free(x, "xdev.real: x")
    return _into(x.real, out)


def _imag(x: Any, out: Any = None) -> Any:
    if x.dtype in FREED:
        raise use_after_free(x, "xdev.imag: x")
    return _into(x.imag, out)


def _complex(name: str, mend: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return NumPy's ufunc, mended where it computes complex numbers."""
    ufunc: np.ufunc = getattr(np, name)

    def function(x: Any, out: Any = None, **keywords: Any) -> Any:
        taken = x.dtype
        if keywords:
            dtype, signature = keywords.get("dtype"), keywords.get("signature")
            if dtype is not None and signature is not None:
                return ufunc(x, out=out, **keywords)  # which NumPy refuses
            loop = (None, dtype) if signature is None else signature
            rule = keywords.get("casting", "same_kind")
            taken, _ = ufunc.resolve_dtypes((taken, None), signature=loop, casting=rule)
        if taken.kind == "c" and type(x) in _PLAIN:
            return _into(mend(x.astype(taken)), out, **keywords)
        return ufunc(x, out=out, **keywords)

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


def _sort(x: Any, *, axis: int, descending: bool, stable: bool) -> Any:
    if not descending:
        return _sorted(x, axis, stable)
    # Flipped before and after, so that equal elements keep their order.
    return np.flip(_sorted(np.flip(x, axis), axis, stable), axis)


def _sorted(x: Any, axis: int, stable: bool) -> Any:
    if type(x) is np.ndarray:
        return host_sorting.sort(x, axis, stable)
    return np.sort(x, axis=axis, stable=stable)


def _argsort(x: Any, *, axis: int, descending: bool, stable: bool) -> Any:
    if not descending:
        return _ordered(x, axis, stable)
    order = _ordered(np.flip(x, axis), axis, stable)
    return x.shape[axis] - 1 - np.flip(order, axis)


def _ordered(x: Any, axis: int, stable: bool) -> Any:
    if type(x) is np.ndarray:
        return host_sorting.argsort(x, axis, stable)
    return np.argsort(x, axis=axis, stable=stable)


def _count_nonzero(x: Any, *, axis: Axes, keepdims: bool) -> Any:
    return np.asarray(np.count_nonzero(x, axis=axis, keepdims=keepdims))[()]


def _unique_values(x: Any) -> Any:
    return np.unique(x, equal_nan=False)


def _complex_eig(x: Any) -> Any:
    result = values, vectors = _eig(x)
    if values.dtype.kind == "c":
        return result
    kind = COMPLEX64 if values.dtype is FLOAT32 else COMPLEX128
    return type(result)(values.astype(kind), vectors.astype(kind))


def _complex_eigvals(x: Any) -> Any:
    values = _eigvals(x)
    if values.dtype.kind == "c":
        return values
    return values.astype(COMPLEX64 if values.dtype is FLOAT32 else COMPLEX128)


complex_eig = _complex_eig if REAL_EIGENVALUES else _eig
complex_eigvals = _complex_eigvals if REAL_EIGENVALUES else _eigvals


def _matrix_rank(x: Any, *, rtol: Any) -> Any:
    if x.ndim < 2:  # noqa: PLR2004 - a matrix
        raise no_matrix("linalg.matrix_rank", x)
    return np.linalg.matrix_rank(x, rtol=rtol)


def _qr(x: Any, *, mode: str) -> Any:
    if mode not in QR_MODES:
        raise no_mode(mode)
    return np.linalg.qr(x, mode)  # type: ignore[call-overload]


def _tril(x: Any, *, k: int) -> Any:
    return pooled(np.tril(x, k=k))


def _triu(x: Any, *, k: int) -> Any:
    return pooled(np.triu(x, k=k))


def _meshgrid(*arrays: Any, indexing: Any) -> Any:
    return tuple(map(pooled, np.meshgrid(*arrays, indexing=indexing)))


#: Where NumPy departs from the standard, each with the reason.
MENDED: dict[str, Callable[..., Any]] = {
    "clip": clip,  # the result must keep x's data type
    "round": _round,  # numpy.round is no ufunc; the method takes out=
    "real": _real,  # has no out=
    "imag": _imag,  # has no out=
    "expm1": _complex(
        "expm1", _expm1
    ),  # complex infinities, NaN and signed zeros differ
    "log1p": _complex(
        "log1p", _log1p
    ),  # of complex numbers is log(1 + x), inexact near 0
    "tanh": _complex("tanh", _tanh),  # complex infinities get the wrong sign of zero
    "tril": _tril,  # creation functions come from the pool
    "triu": _triu,  # likewise
    "meshgrid": _meshgrid,  # likewise
    "sort": _sort,  # has no descending=
    "argsort": _argsort,  # has no descending=
    "count_nonzero": _count_nonzero,  # returns a Python int
    "unique_values": _unique_values,  # has the order of a hash table
    "linalg.eig": complex_eig,  # may be real where all imaginary parts are 0
    "linalg.eigvals": complex_eigvals,  # likewise
    "linalg.matrix_rank": _matrix_rank,  # accepts vectors
    "linalg.pinv": pinv,  # has no default of rtol for integers
    "linalg.qr": _qr,  # has more modes
}


class Functions(dict[str, Any]):
    """Functions by name, each found at its first use: ``numpy.fft`` loads late.

    Parameters
    ----------
    find : callable
        Gives the function of a name.
    known : mapping, optional
        Those that are found already.
    """

    __slots__ = ("_find",)

    def __init__(
        self,
        find: Callable[[str], Callable[..., Any]],
        known: Mapping[str, Callable[..., Any]] = {},
    ) -> None:
        super().__init__(known)
        self._find = find

    def __missing__(self, name: str) -> Any:
        # What is there by now counts: CuPy's functions may be marked meanwhile.
        return self.setdefault(name, self._find(name))


@final
class NumPyLibrary:
    """NumPy: one device, its own data types, ufuncs with ``out=``."""

    __slots__ = ("functions", "namespace")
    numpy_dtypes = True
    device_type: str | None = "cpu"
    several = False
    chunk: Callable[[Any], tuple[type, object]] | None = None

    def __init__(self) -> None:
        self.namespace: ModuleType = np
        self.functions = Functions(lambda name: operator.attrgetter(name)(np), MENDED)

    def bound(self, name: str, like: Any) -> Callable[..., Any]:  # noqa: ARG002
        """Return NumPy's function, mended where it departs from the standard."""
        return self.functions[name]

    def device(self, x: Any) -> object:  # noqa: ARG002
        """Return None: there is one host."""
        return None

    def dtype(self, dtype: DType) -> DType:
        """Return NumPy's data type for anybody's."""
        return None if dtype is None else to_numpy_dtype(dtype)

    def operand(self, value: Any, like: Any) -> Any:  # noqa: ARG002
        """Return the value: NumPy takes numbers of all kinds."""
        return value

    def write(
        self,
        name: str,
        function: Callable[..., Any],
        values: list[Any],
        out: Any,
        **keywords: Any,
    ) -> Any:
        """Compute into ``out``; its casting is checked by NumPy, before it computes."""
        shape = result_shape([*values, keywords.get("where")])
        if out.shape != shape:
            raise misfit(name, out, shape, result_dtype(np, function, values))
        try:
            return function(*values, out=out, **keywords)
        except (TypeError, ValueError):
            self.refuse(name, function, values, out)
            raise

    def refuse(
        self, name: str, function: Callable[..., Any], values: list[Any], out: Any
    ) -> None:
        """Raise what is wrong with an ``out`` of the result's shape, if anything is."""
        wanted = result_dtype(np, function, values)
        if not out.flags.writeable:
            raise read_only(name, out, wanted)
        if not np.can_cast(wanted, out.dtype, "same_kind"):
            raise wrong_dtype(name, out, out.shape, wanted)


def result_shape(values: list[Any]) -> tuple[int, ...]:
    """Return the shape that the arguments broadcast to; numbers have shape ()."""
    first, *rest = (getattr(value, "shape", ()) for value in values)
    if all(shape in (first, ()) for shape in rest):
        return tuple(first)
    return np.broadcast_shapes(first, *rest)


def result_dtype(xp: Any, function: Callable[..., Any], values: list[Any]) -> Any:
    """Return the data type a function gives, asked with arrays of size 0."""
    samples = [
        xp.empty(0, value.dtype) if hasattr(value, "dtype") else value
        for value in values
    ]
    with np.errstate(all="ignore"):  # a number may overflow even beside them
        return function(*samples).dtype


NUMPY = NumPyLibrary()
