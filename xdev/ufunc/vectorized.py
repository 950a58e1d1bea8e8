"""What ``@vectorize`` makes: a ufunc that runs where its inputs live."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy import ndarray

from xdev._freed import refuse
from xdev.memory.arrays import host_array, large_array
from xdev.ufunc import hosted
from xdev.ufunc.cpu import CpuLoops, explained, strong
from xdev.ufunc.cuda import CudaLoops, is_cuda
from xdev.ufunc.scalar import WEAK, ScalarFunction, dtype_of, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KEYWORDS = ("out", "where", "casting", "order", "dtype", "subok")
NONE: tuple[Any, int, np.dtype[Any]] = None, 0, np.dtype("?")  # no such typing


@final
class Vectorized:
    """A scalar Python function as a ufunc: ``f(x, y, out=None, where=True, …)``.

    It takes what :class:`numpy.ufunc` takes. NumPy arrays are computed by a real NumPy
    ufunc, CUDA arrays of any library by one kernel launch on their device.

    Parameters
    ----------
    scalar : ScalarFunction
        The function with its typings.
    target : "cpu", "parallel", "cuda" or None
        Where arrays in host memory are computed; ``"cuda"`` uploads them and
        downloads the results.
    identity : 0, 1, "reorderable" or None
        What a reduction of nothing is; None: reductions take one axis at a time.
    """

    __name__: str
    __qualname__: str
    signature = None  # as that of every numpy.ufunc without core dimensions

    def __init__(
        self, scalar: ScalarFunction, target: str | None, identity: int | str | None
    ) -> None:
        functools.update_wrapper(self, scalar.function)
        self.scalar = scalar
        self.target = target
        self.identity = None if identity == "reorderable" else identity
        self.nin = scalar.nin
        self._cpu = CpuLoops(scalar, identity)
        self._cuda = CudaLoops(scalar)
        self._exact = self._cpu.exact
        self.__signature__ = _signature(scalar)

    def __call__(  # noqa: C901, PLR0911, PLR0912 - a frame more costs 60 ns
        self, *args: Any, out: Any = None, **keywords: Any
    ) -> Any:
        """Compute the function elementwise.

        Parameters
        ----------
        *args
            The inputs: arrays of one device that broadcast to one shape, and numbers;
            then, optionally, the outputs.
        out : array, or tuple of arrays and None, optional
            Where the results go: any shape that the inputs broadcast to, any strides,
            any library of the inputs' device. It is written in place.
        **keywords
            ``where``, ``casting``, ``order``, ``dtype`` and ``subok``, as those of
            :class:`numpy.ufunc`.

        Returns
        -------
        array or tuple of arrays
            ``out`` itself, or new arrays of the first array's library; NumPy scalars
            for numbers.

        Raises
        ------
        TypeError
            Wrong arguments, no typing for their dtypes, or a cast that is not allowed.
        ValueError
            Shapes that do not broadcast, or an ``out`` that cannot be written.
        DeviceMismatchError, UseAfterFreeError
            Arrays of two devices; a freed one. Whatever is raised, nothing was written.
        """
        # The quickest ways first, in this one frame: plain arrays of one device.
        if not keywords:
            if len(args) == 2:  # noqa: PLR2004 - binary, the commonest
                x, y = args
                if type(x) is ndarray and type(y) is ndarray:
                    ufunc, few, dtype = self._exact.get((x.dtype, y.dtype), NONE)
                    if ufunc is not None:
                        if out is None:
                            n, alike = x.size, (shape := x.shape) == y.shape
                            if n < few and (alike or n * y.size < few):
                                return ufunc(x, y)
                            if alike and x.flags.c_contiguous and y.flags.c_contiguous:
                                return ufunc(x, y, large_array(shape, dtype, n))
                        elif type(out) is ndarray:
                            try:
                                return ufunc(x, y, out)
                            except (TypeError, ValueError) as error:
                                raise explained(error, out) from error
                elif type(x) in _ON_CUDA and self.nin == 2:  # noqa: PLR2004
                    return self._cuda.fast(x, y, out)
            elif len(args) == 1:
                (x,) = args
                if type(x) is ndarray:
                    ufunc, few, dtype = self._exact.get((x.dtype,), NONE)
                    if ufunc is not None and out is None:
                        if x.size < few:
                            return ufunc(x)
                        if x.flags.c_contiguous:
                            return ufunc(x, large_array(x.shape, dtype, x.size))
                elif type(x) in _ON_CUDA and self.nin == 1:
                    return self._cuda.fast(x, out)
            elif len(args) == self.nin and type(args[0]) in _ON_CUDA:
                return self._cuda.fast(*args, out)
            if (
                len(args) == self.nin + 1
                and out is None
                and type(args[0]) in _ON_CUDA
                and self.scalar.nout == 1
            ):
                return self._cuda.fast(*args)  # out by position
            result = self._cpu.again(args, out)
            if result is not None:
                return result
        return self._general(args, out, keywords)

    def _general(self, args: Sequence[Any], out: Any, keywords: dict[str, Any]) -> Any:
        """Sort out the arguments, and send them to their device."""
        args, outs = self._bound(args, out)
        for keyword in keywords:
            if keyword not in KEYWORDS:
                message = (
                    f"{self.__name__}() has no keyword {keyword!r}; "
                    f"valid are {', '.join(KEYWORDS)}"
                )
                raise TypeError(message)
        operands = [*args, *(outs or ()), keywords.get("where", True)]
        refuse(self.__name__, *operands)
        if any(map(is_cuda, operands)):
            _remember(args)
            return self._cuda(args, outs, **hosted.for_cuda(self.__name__, keywords))
        if hosted.overriding(operands):
            return hosted.override(self, args, outs, keywords)
        args = hosted.operands(args, outs, self.__name__)
        if self.target == "cuda":
            cuda = hosted.for_cuda(self.__name__, keywords)
            return hosted.on_cuda(self._cuda, args, outs, cuda)
        return self._cpu(args, outs, **keywords)

    def _bound(
        self, args: Sequence[Any], out: Any
    ) -> tuple[Sequence[Any], tuple[Any, ...] | None]:
        """Return the inputs, and the outputs as a tuple, None without any."""
        nin, name, scalar = self.nin, self.__name__, self.scalar
        if len(args) < nin and scalar.defaults:
            missing = nin - len(args)
            args = (*args, *scalar.defaults[-missing:])
        if len(args) < nin:
            message = f"{name}() takes {nin} arguments, not {len(args)}"
            raise TypeError(message)
        args, positional = args[:nin], tuple(args[nin:])
        if positional and out is not None:
            message = f"{name}() takes {nin} arguments, and out once: by place or name"
            raise TypeError(message)
        outs = out if isinstance(out, tuple) else None if out is None else (out,)
        outs = outs or positional
        if not outs or all(x is None for x in outs):
            return args, None
        nout = scalar.nout or len(scalar.specialise(scalar.resolve(args)).outputs)
        if len(positional) < nout and positional:
            outs = (*positional, *[None] * (nout - len(positional)))
        if len(outs) != nout:
            message = f"{name}() has {nout} outputs, but out has {len(outs)}: pass one "
            raise TypeError(message + "array, or None, for each")
        return args, outs

    # Reductions and the other methods of a binary ufunc: on the CPU they are NumPy's.

    def reduce(
        self,
        array: Any,
        axis: int | tuple[int, ...] | None = 0,
        dtype: Any = None,
        out: Any = None,
        **keywords: Any,
    ) -> Any:
        """Reduce along one or more axes, as :meth:`numpy.ufunc.reduce` does."""
        ufunc, dtype = self._reduction("reduce", array, dtype, out)
        return ufunc.reduce(array, axis, dtype, out, **keywords)

    def accumulate(
        self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        """Accumulate along an axis, as :meth:`numpy.ufunc.accumulate` does."""
        ufunc, dtype = self._reduction("accumulate", array, dtype, out)
        if out is None and type(array) is ndarray:
            out = host_array(array.shape, dtype)
        return ufunc.accumulate(array, axis, dtype, out)

    def reduceat(
        self,
        array: Any,
        indices: Any,
        axis: int = 0,
        dtype: Any = None,
        out: Any = None,
    ) -> Any:
        """Reduce over slices, as :meth:`numpy.ufunc.reduceat` does."""
        ufunc, dtype = self._reduction("reduceat", array, dtype, out)
        return ufunc.reduceat(array, indices, axis, dtype, out)

    def outer(self, a: Any, b: Any, /, **keywords: Any) -> Any:
        """Apply to every pair of elements, as :meth:`numpy.ufunc.outer` does."""
        self._check_method("outer", a, b, keywords.get("out"))
        if type(a) not in WEAK:
            a = np.asanyarray(a)
            a = a.reshape(a.shape + (1,) * np.ndim(b))
        return self(a, b, **keywords)

    def at(self, a: Any, indices: Any, b: Any = None, /) -> None:
        """Work in place at indices, repeated ones too, as :meth:`numpy.ufunc.at`."""
        values = () if b is None else (b,)
        self._check_method("at", a, *values, nin=1 + len(values))
        operands = (a, *(x if type(x) in WEAK else np.asanyarray(x) for x in values))
        dtypes = resolve(operands)
        ufunc = self._cpu.ufunc(self.scalar.specialise(dtypes))
        ufunc.at(a, indices, *strong(operands, dtypes)[1:])

    def _reduction(
        self, method: str, array: Any, dtype: Any, out: Any
    ) -> tuple[np.ufunc, np.dtype[Any]]:
        """Return the ufunc whose typing takes its own results, and their dtype."""
        self._check_method(method, array, out)
        given = dtype_of(array) if dtype is None else np.dtype(dtype)
        made = self.scalar.specialise((given, given))
        if set(made.inputs) != set(made.outputs):
            (given, *_) = made.outputs
            made = self.scalar.specialise((given, given))
        return self._cpu.ufunc(made), made.outputs[0]

    def _check_method(self, method: str, *operands: Any, nin: int = 2) -> None:
        if self.nin != nin:
            takes = "one argument" if nin == 1 else "two arguments"
            message = (
                f"{self.__name__}.{method} needs a function of {takes}, "
                f"and {self.__name__} takes {self.nin}"
            )
            raise ValueError(message)
        refuse(f"{self.__name__}.{method}", *operands)
        if self.target == "cuda" or any(map(is_cuda, operands)):
            message = (
                f"{self.__name__}.{method} works on NumPy arrays with a ufunc whose "
                "target is not 'cuda': move the array with xdev.to_numpy(x), or use "
                "the reductions of xdev, such as xdev.sum, on the device"
            )
            raise TypeError(message)

    # What numpy.ufunc tells of itself.

    @property
    def nout(self) -> int:
        """The number of outputs."""
        if self.scalar.nout is None:
            for probe in "dlD":
                try:
                    self.scalar.specialise((np.dtype(probe),) * self.nin)
                    break
                except TypeError:
                    continue
        return self.scalar.nout or 1

    @property
    def nargs(self) -> int:
        """The number of inputs and outputs."""
        return self.nin + self.nout

    @property
    def types(self) -> list[str]:
        """The typings: the explicit signatures, or those made so far."""
        if self.scalar.signatures:
            pairs = self.scalar.signatures
            chars = (["".join(d.char for d in ds) for ds in pair] for pair in pairs)
            return [f"{read}->{written}" for read, written in chars]
        return [made.types for made in self.scalar.specialisations]

    @property
    def ntypes(self) -> int:
        """The number of typings."""
        return len(self.types)

    def __repr__(self) -> str:
        return f"<xdev ufunc {self.__name__!r}>"

    def __reduce__(self) -> str | tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle by reference where the name is this ufunc's, else by its parts."""
        own: str = self.__qualname__
        owner: Any = sys.modules.get(self.__module__)
        for part in own.split("."):
            owner = getattr(owner, part, None)
        if owner is self:
            return own
        scalar = self.scalar
        parts = scalar.function, scalar.signatures, scalar.fastmath
        return _rebuild, (*parts, self.target, self._cpu.identity)


def _rebuild(
    function: Callable[..., Any],
    signatures: Any,
    fastmath: bool,
    target: str | None,
    identity: int | str | None,
) -> Vectorized:
    scalar = ScalarFunction(function, signatures, fastmath=fastmath)
    return Vectorized(scalar, target, identity)


_ON_CUDA: set[type] = set()  # types whose every array is on a CUDA device


def _remember(args: Sequence[Any]) -> None:
    for x in args:
        if is_cuda(x) and type(x).__module__.partition(".")[0] in {"cupy", "numba"}:
            _ON_CUDA.add(type(x))


def _signature(scalar: ScalarFunction) -> inspect.Signature:
    """Return the signature of a call, as numpy.ufunc's."""
    only, named = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY
    own = inspect.signature(scalar.function).parameters.values()
    rest = {"out": None, "where": True, "casting": "same_kind", "order": "K"}
    rest |= {"dtype": None, "subok": True}
    return inspect.Signature(
        [
            *(p.replace(kind=only, annotation=inspect.Parameter.empty) for p in own),
            *(inspect.Parameter(k, named, default=v) for k, v in rest.items()),
        ]
    )
