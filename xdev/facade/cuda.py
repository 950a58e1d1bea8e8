# ruff: noqa: D102 - backends.Factory says what each method does
"""CuPy as the facade's library on CUDA, and its arrays, on one GPU each.

Their memory is xdev's pool: CuPy allocates through it. Functions come from
array_api_compat's CuPy namespace; ``MENDED`` has those that serve in the place of
what departs from the standard. What only a ``cupy.ndarray`` itself could mend, its
operators and methods, is listed in ``tests/conformance.toml``.
"""

from __future__ import annotations

import importlib
import inspect
import math
import operator
from functools import cache, partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional, native
from xdev.device import Device, registry
from xdev.device.choice import CPU
from xdev.device.copies import announce
from xdev.device.streams import live_streams
from xdev.facade import cuda_copies, cuda_libraries, cuda_searching, elementwise
from xdev.facade.backends import (
    FLOAT64,
    MAKERS,
    Factory,
    Library,
    as_shape,
    dtype_of_number,
    first_in,
    to_numpy_dtype,
)
from xdev.facade.cpu import (
    HOST,
    NUMPY,
    clip,
    diff,
    eig,
    eigvals,
    matrix_rank,
    part_of,
    pinv,
    qr,
)
from xdev.facade.cuda_launches import (
    FAR,
    INT64,
    LARGE,
    NONE,
    NUMBERS,
    ROUNDED,
    SPANS,
    assign,
    launched,
    quick,
    ramp,
)
from xdev.facade.dispatch import launches
from xdev.memory.arrays import array_maker, mark_uses
from xdev.memory.reclamation import retrying
from xdev.memory.registry import pool
from xdev.ufunc.cuda_methods import CudaMethods

if TYPE_CHECKING:
    from types import ModuleType

    from xdev.facade.backends import Axes, DType, Function


#: Functions, or rooms of them, whose libraries (cuFFT, cuBLAS, cuSOLVER) take memory of
#: the device past the pool.
OUTSIDE = ("fft.", "linalg.", "matmul", "tensordot", "vecdot")
#: Those of these rooms that take none.
INSIDE = {
    *("fft.fftshift", "fft.ifftshift"),
    *("linalg.cross", "linalg.diagonal", "linalg.trace", "linalg.vector_norm"),
}
_METHODS = "argmax argmin astype mean squeeze take"
#: Methods of CuPy's arrays, which are compiled: its functions of these names hand their
#: arguments on to them, in frames of Python.
METHODS = {name: name for name in _METHODS.split()} | {"permute_dims": "transpose"}
#: Functions whose results are views always: they queue no work, on no device or stream.
VIEWS = frozenset((
    "broadcast_arrays", "broadcast_to", "expand_dims", "flip", "linalg.diagonal",
    "matrix_transpose", "moveaxis", "permute_dims", "squeeze", "unstack",
))  # fmt: skip

#: Reductions of elementwise functions, by the engine's kernels.
REDUCTIONS = {
    "all": elementwise.logical_and,
    "any": elementwise.logical_or,
    "max": elementwise.maximum,
    "min": elementwise.minimum,
    "prod": elementwise.multiply,
    "sum": elementwise.add,
}
#: Sums of which the same kernels make more, of real numbers.
STATISTICS = {
    **{name: name for name in ("argmax", "argmin", "mean", "std", "var")},
    "count_nonzero": "count",
    "linalg.matrix_norm": "norm",
    "linalg.vector_norm": "norm",
}


#: Kernels of our own, for what they serve.
OWN = cuda_copies.COPIES | cuda_libraries.TRANSFORMS | cuda_searching.SEARCHES


def reduction(function: Any) -> Function:
    """Return a reduction along all axes, or some."""

    def reduce(
        x: Any, *, axis: Axes = None, dtype: DType = None, keepdims: bool = False
    ) -> Any:
        if keepdims:
            return function.reduce(x, axis, dtype, None, True)
        return function.reduce(x, axis, dtype)

    vars(reduce)["marks"] = True  # the engine does
    return reduce


def statistic(name: str, own: Function) -> Function:
    """Return such a function; ``own`` is CuPy's, for what the kernels do not serve."""
    add: Any = elementwise.add
    fold = CudaMethods(add._cuda, 0, STATISTICS[name])  # noqa: SLF001

    matrix = name == "linalg.matrix_norm"
    least, plain = (2, "fro") if matrix else (0, 2)

    def reduce(
        x: Any, *, keepdims: bool = False, ord: Any = plain, **options: Any
    ) -> Any:
        asked = {"axis": (-2, -1), **options} if matrix else options
        if ord == plain and not keepdims:
            made = fold.again(x, **asked)
            if made is not NotImplemented:
                return made
        serves = x.dtype.kind != "c" or name == "count_nonzero"
        if name.startswith("arg"):  # of all elements the place counts rows of them
            rows = options.get("axis") is None and not x._c_contiguous  # noqa: SLF001
            serves = serves and x.size > 0 and not rows
        if ord == plain and serves and x.ndim >= least:
            return fold.reduce(x, keepdims=keepdims, **asked)
        ways = {"ord": ord} if name.startswith("linalg.") else {}
        return own(x, keepdims=keepdims, **ways, **options)

    vars(reduce)["marks"] = True  # the engine does
    return reduce


def with_room(name: str, function: Function) -> Function:
    """Let a function that takes memory past the pool try again once there is some."""
    outside = name.startswith(OUTSIDE) and name not in INSIDE
    return retrying(function, partial(pool, "cuda")) if outside else function


@final
class CuPyLibrary(Library):
    """CuPy: NumPy's data types, ufuncs with ``out=``, one device or several.

    With more than one GPU visible, each call runs with the arrays' device current:
    CuPy puts results on the current device, wherever the arguments are.
    """

    device_type = "cuda"

    def __init__(self) -> None:
        super().__init__(_optional.cupy(), self._find)
        self.multi_device = registry.backend("cuda").count() > 1
        self._current_device = self.namespace.cuda.runtime.getDevice
        reductions = {name: reduction(f) for name, f in REDUCTIONS.items()}
        self._known = {**reductions, **MENDED}
        launched = {"where": cuda_copies.CHOOSE, "clip": cuda_copies.LIMIT}
        launches[self.namespace.ndarray] = {k: f.launches for k, f in launched.items()}
        live_streams.when_several.append(self._mark_uses)

    def bound(self, name: str, like: Any) -> Function:
        """Return CuPy's function, run where ``like`` is."""
        function: Function = self.functions[name]
        if not self.multi_device or name in VIEWS:
            return function
        here = like.data.device_id == self._current_device()
        return function if here else guarded(function, like.device)

    def _find(self, name: str) -> Function:
        if name in self._known:
            function = self._known[name]
        elif name in METHODS:
            method = getattr(self.namespace.ndarray, METHODS[name])
            function = inspect.unwrap(method)  # not what the bridge of operators set
        elif name.startswith("fft."):  # as the standard says, without more frames
            function = cuda_libraries.of_views(
                operator.attrgetter(name)(self.namespace)
            )
        else:
            standard = importlib.import_module("array_api_compat.cupy")
            function = operator.attrgetter(name)(standard)
        if name in STATISTICS:
            function = statistic(name, marking(function))
        elif name in OWN:
            function = quick(OWN[name], function)
        self.keep(name, with_room(name, function))
        return self.functions[name]

    def keep(self, name: str, function: Function) -> None:
        """Have a function under a name; where there are several streams it marks."""
        self.functions[name] = function  # from here on another thread marks it, or we
        if live_streams.several and name not in VIEWS:
            self.functions[name] = marking(function)

    def _mark_uses(self) -> None:
        """Have the functions mark their arguments: several streams are in use."""
        for name in self.functions.keys() - VIEWS:
            self.functions[name] = marking(self.functions[name])

    def device(self, x: Any) -> int | None:
        """Return the device's number, or None where there is one device."""
        return int(x.data.device_id) if self.multi_device else None

    def write(
        self, name: str, function: Function, values: list[Any], out: Any, **options: Any
    ) -> Any:
        """Compute into ``out``; its casting is checked by CuPy, before it computes."""
        if not live_streams.several:  # then no pool may have seen the stream
            mark_uses((*values, out), self.device(out))
        return super().write(name, function, values, out, **options)


def guarded(function: Function, device: Any) -> Function:
    """Return a function that runs with a CuPy device current."""
    current, index = _optional.cupy().cuda.runtime.getDevice, device.id

    def on_device(*args: Any, **options: Any) -> Any:
        if current() == index:  # to ask is quicker than to switch
            return function(*args, **options)
        with device:
            return function(*args, **options)

    return on_device


def marking(function: Function) -> Function:
    """Return a function whose arrays' blocks stay until the current stream used them.

    Without it an array of another stream, dropped after the call, would be handed out
    again there before the work here is done. A function that marks is itself.
    """
    if hasattr(function, "marks"):
        return function

    are_of_current_stream = native.calls.are_of_current_stream

    def on_stream(*args: Any, **options: Any) -> Any:
        if options or not are_of_current_stream(args):
            mark_uses((*args, *options.values()))
        return function(*args, **options)

    vars(on_stream)["marks"] = True
    return on_stream


@cache
def library(_: ModuleType | None = None) -> CuPyLibrary:
    """Return the one library object of CuPy, whichever namespace it is asked by."""
    return CuPyLibrary()


#: More elements than any device holds: beyond, CuPy's own count of bytes overflows.
TOO_MANY = 2**59


@final
class CudaFactory(Factory):
    """One GPU."""

    def __init__(self, index: int) -> None:
        self.namespace = self.cupy = cupy = _optional.cupy()
        self.ndarray, self._device = cupy.ndarray, Device(f"cuda:{index}")
        self._index = index
        self._make = array_maker()
        if registry.backend("cuda").count() > 1:
            device = cupy.cuda.Device(index)
            for name in MAKERS:
                setattr(self, name, guarded(getattr(self, name), device))

    def empty(self, shape: Any, dtype: DType, order: str = "C") -> Any:
        dtype = FLOAT64 if dtype is None else to_numpy_dtype(dtype)
        try:
            count = shape if type(shape) is int else math.prod(shape)
        except TypeError:
            shape = as_shape(shape)
            count = math.prod(shape)
        if count >= TOO_MANY:
            message = f"shape {shape} overflows: no device holds {count:,} elements"
            raise ValueError(message)
        return self._make(shape, dtype, order)  # refuses negatives

    def zeros(self, shape: Any, dtype: DType) -> Any:
        out = self.empty(shape, dtype)
        out.data.memset_async(0, out.nbytes)
        return out

    def zeros_like(self, x: Any, dtype: DType) -> Any:
        out = self.empty_like(x, dtype)
        out.data.memset_async(0, out.nbytes)
        return out

    def full(self, shape: Any, value: Any, dtype: DType) -> Any:
        kind = dtype_of_number(value) if dtype is None else to_numpy_dtype(dtype)
        types, least, most = SPANS.get(kind, NONE)
        try:
            size = math.prod(shape) if type(shape) is tuple else shape
        except TypeError:  # which the making of the array explains
            size = None
        small = type(size) is int and 0 < size * kind.itemsize < LARGE
        # In large ones the engine writes wider words.
        if small and type(value) in types and least <= value <= most:
            key = "ramp", shape, kind, False, 0, 0, 1, FAR, self._index
            out = launched(ramp, (value, -0.0 if float in types else 0, value), key)
            if out is not NotImplemented:
                return out
        return self.filled(self.empty(shape, kind), value)

    def full_like(self, x: Any, value: Any, dtype: DType) -> Any:
        if x._c_contiguous:  # noqa: SLF001
            return self.full(x.shape, value, x.dtype if dtype is None else dtype)
        return self.filled(self.empty_like(x, dtype), value)

    def eye(self, rows: int, columns: int, k: int, dtype: DType) -> Any:
        kind = FLOAT64 if dtype is None else to_numpy_dtype(dtype)
        small = 0 < rows * columns * kind.itemsize < LARGE
        if kind not in SPANS or not (-rows < k < columns and small):
            return super().eye(rows, columns, k, dtype)
        places = k if k >= 0 else -k * columns, (columns - k) * columns, columns + 1
        key = "ramp", (rows, columns), kind, False, *places, FAR, self._index
        return launched(ramp, (0, 0, 1), key)

    def empty_like(self, x: Any, dtype: DType) -> Any:
        kind = x.dtype if dtype is None else to_numpy_dtype(dtype)
        # To make its flags' object takes as long as to make an array.
        if x._c_contiguous:  # noqa: SLF001
            return self._make(x.shape, kind, "C")
        return self.empty(x.shape, kind, "F" if x._f_contiguous else "C")  # noqa: SLF001

    def filled(self, out: Any, value: Any) -> Any:
        if isinstance(value, self.ndarray):
            out[...] = value
            return out
        host = (
            np.asarray(value).astype(out.dtype)
            if hasattr(value, "dtype")
            else np.asarray(value, dtype=out.dtype)  # refuses what does not fit
        )
        return assign(out, host[()])

    def _uploaded(self, host: Any) -> Any:
        """Copy a host array to the device; one number goes with the launch."""
        if host.ndim:
            announce(CPU, self._device, host.nbytes)
            return self.cupy.asarray(host)
        return self.filled(self.empty((), host.dtype.newbyteorder("=")), host)

    def arange(self, start: Any, stop: Any, step: Any, dtype: DType) -> Any:
        if stop is None:
            start, stop = 0, start
        types = {type(start), type(stop), type(step)}
        natural = FLOAT64 if float in types else INT64
        kind = natural if dtype is None else to_numpy_dtype(dtype)
        served, least, most = SPANS.get(kind, NONE)
        if types <= served and kind.char in "ilfd":
            size, after = math.ceil((stop - start) / step), start + step
            if 0 < size < FAR and least <= start <= most and least <= after <= most:
                key = "ramp", size, kind, True, 1, 2, 1, FAR, self._index
                return launched(ramp, (start, after, after), key)
        return self.cupy.arange(start, stop, step, None if dtype is None else kind)

    def linspace(
        self, x: Any, y: Any, num: int, *, dtype: DType, endpoint: bool
    ) -> Any:
        kind = FLOAT64 if dtype is None else to_numpy_dtype(dtype)
        real = type(x) in NUMBERS and type(y) in NUMBERS and kind in ROUNDED
        if real and type(num) is int and 0 < num < FAR:
            first, last, parts = float(x), float(y), num - 1 if endpoint else num
            step = (last - first) / (parts or 1)
            if math.isfinite(step) and (step or first == last):
                key = "ramp", num, kind, False, parts or num, num, num, FAR, self._index
                return launched(ramp, (first, step, last), key)
        return self.cupy.linspace(x, y, num, endpoint, False, NUMPY.dtype(dtype))

    def frequencies(self, name: str, n: int, d: float, dtype: DType) -> Any:
        kind, unit = FLOAT64 if dtype is None else to_numpy_dtype(dtype), 1 / (n * d)
        if kind not in ROUNDED or not isinstance(unit, float | np.floating) or n >= FAR:
            return super().frequencies(name, n, d, dtype)
        size, turn = (n, (n + 1) // 2) if name == "fftfreq" else (n // 2 + 1, n)
        key = "ramp", size, kind, False, 0, 0, 1, turn, self._index
        # Any number is itself plus -0.0.
        return launched(ramp, (-0.0, float(unit), 0.0), key)

    def asarray(self, obj: Any, dtype: DType, copy: bool | None) -> Any:
        kind = None if dtype is None else to_numpy_dtype(dtype)
        if isinstance(obj, self.ndarray):
            if not copy and (kind is None or kind == obj.dtype):
                return obj
        elif hasattr(obj, "__cuda_array_interface__"):
            obj = self.cupy.asarray(obj)
        elif copy is False:
            raise ValueError(
                "xdev.asarray: copy=False, but a host object must be copied to "
                "CUDA: leave copy= out"
            )
        elif first_in(obj, lambda x: isinstance(x, self.ndarray)) is not None:
            return self.cupy.asarray(obj, dtype=kind)
        else:
            return self._uploaded(HOST.asarray(obj, kind, copy=None))
        if copy is False and kind is not None and kind != obj.dtype:
            raise ValueError(
                f"xdev.asarray: copy=False, but {obj.dtype} must be copied to become "
                f"{kind}: leave copy= out"
            )
        kind = obj.dtype if kind is None else kind
        array = cuda_copies.astype(obj, kind, bool(copy))
        return obj.astype(kind, copy=bool(copy)) if array is NotImplemented else array

    def from_dlpack(self, x: Any, copy: bool | None) -> Any:
        # CuPy asks the exporter for the copy, and refuses as an exporter to make one.
        if copy is False:
            return self.cupy.from_dlpack(x, copy=False)
        array = self.cupy.from_dlpack(x)
        return array.copy() if copy else array


BACKWARDS, WHOLE = slice(None, None, -1), slice(None)


def flip(x: Any, *, axis: Axes = None) -> Any:
    """Reverse axes; all, or one, in two thirds of the time that CuPy takes."""
    if axis is None:
        return x[(BACKWARDS,) * x.ndim]
    if type(axis) is int and -x.ndim <= axis < x.ndim:
        return x[(*(WHOLE,) * (axis % x.ndim), BACKWARDS)]
    return _optional.cupy().flip(x, axis)


def expand_dims(x: Any, axis: Any) -> Any:
    """Insert axes; one, in half of the time that CuPy takes."""
    if type(axis) is not int or not -x.ndim - 1 <= axis <= x.ndim:
        return _optional.cupy().expand_dims(x, axis)
    shape = [*x.shape]
    shape.insert(axis % (x.ndim + 1), 1)
    return x.reshape(shape)


def where(condition: Any, x1: Any, x2: Any) -> Any:
    """Choose by truth values; other conditions are CuPy's matter."""
    if condition.dtype == np.bool_:
        return cuda_copies.CHOOSE(condition, x1, x2)
    return _optional.cupy().where(condition, x1, x2)


def nonzero(x: Any) -> Any:
    """Return the indices of what is not zero."""
    if not x.ndim:
        message = "xdev.nonzero: x is zero-dimensional: xdev.reshape(x, (1,)) is not"
        raise ValueError(message)
    return x.nonzero()


def repeat(x: Any, repeats: Any, *, axis: int | None) -> Any:
    """Repeat elements, each as often as its count says; counts may be an array."""
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
    return cupy.searchsorted(x1, cupy.asarray(x2), side, sorter)


#: The functions that serve in CuPy's place, by the standard's names. array_api_compat
#: mends some of it as well, in more frames of Python, which small calls notice.
MENDED: dict[str, Function] = {
    # take more frames
    "expand_dims": expand_dims,
    "broadcast_arrays": lambda *arrays: _optional.cupy().broadcast(*arrays).values,
    # is a property, which is compiled
    "matrix_transpose": operator.attrgetter("mT"),
    # no out=
    "real": part_of("real"),
    "imag": part_of("imag"),
    # looks at every axis
    "flip": flip,
    # copies a transpose at a third of the memory's speed
    "reshape": cuda_copies.reshape,
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
    # takes 0-d arrays
    "nonzero": nonzero,
    # counts to n
    "diff": diff,
    # has the first two axes
    "linalg.diagonal": cuda_libraries.diagonal,
    "linalg.trace": cuda_libraries.trace,
    # flattens
    "linalg.outer": cuda_libraries.outer,
    # its own of this name does not broadcast, the other takes vectors in a plane
    "linalg.cross": cuda_libraries.cross,
    # there is none; array_api_compat's copies what it conjugates, real numbers too
    "vecdot": cuda_libraries.vecdot,
    # have another default of rtol=, if any
    "linalg.matrix_rank": partial(matrix_rank, svdvals=cuda_libraries.svdvals),
    "linalg.pinv": partial(pinv, svd=cuda_libraries.svd),
    # take longer
    "matmul": cuda_libraries.matmul,
    "tensordot": cuda_libraries.tensordot,
    "linalg.matrix_power": cuda_libraries.matrix_power,
    # stacks do not broadcast; no columns are an error
    "linalg.solve": cuda_libraries.solve,
    # may be real where the standard wants complex numbers
    "linalg.eig": eig,
    "linalg.eigvals": eigvals,
    # has more modes
    "linalg.qr": qr,
    # takes twice as long
    "linalg.cholesky": cuda_libraries.cholesky,
    # take longer, and are less exact
    "linalg.svd": cuda_libraries.svd,
    "linalg.svdvals": cuda_libraries.svdvals,
}
