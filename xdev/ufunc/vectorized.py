"""What ``@vectorize`` makes: a ufunc that runs where its inputs live."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy import ndarray

from xdev import native
from xdev.ufunc import (
    dask,
    fake,
    foreign,
    hosted,
    overrides,
    parameters,
    pickling,
    results,
)
from xdev.ufunc.inputs import WEAK, is_collection, refuse
from xdev.ufunc.on_cuda import ALWAYS, is_cuda
from xdev.ufunc.scalar import ScalarFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.ufunc.cpu import CpuLoops
    from xdev.ufunc.cuda import CudaLoops
    from xdev.ufunc.cuda_methods import CudaMethods

ABSENT: Any = np._NoValue  # noqa: SLF001 - NumPy's own default
FIXED = frozenset(("identity", "nin", "signature"))
KEYWORDS = ("out", "where", "casting", "order", "dtype", "signature", "sig", "subok")


@final
class Vectorized(native.Callable):
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
    nin: int
    identity: int | str | None
    signature = None  # as that of every numpy.ufunc without core dimensions

    def __init__(
        self, scalar: ScalarFunction, target: str | None, identity: int | str | None
    ) -> None:
        functools.update_wrapper(self, scalar.function)
        self.__qualname__ = self.__qualname__.removesuffix(pickling.INSIDE)
        self.scalar = scalar
        self.target = target
        given = None if identity == "reorderable" else identity
        vars(self).update(nin=scalar.nin, identity=given)
        self._identity = identity
        self.__signature__ = parameters.of_a_call(scalar.function)
        self.__doc__ = self.__doc__ or f"{self.__name__}{self.__signature__}"

    def _call(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Compute the function elementwise: what a call does that no plan is for.

        Parameters
        ----------
        *args
            The inputs: arrays of one device that broadcast to one shape, and numbers;
            then, optionally, the outputs.
        out : array, or tuple of arrays and None, optional
            Where the results go: any shape that the inputs broadcast to, any strides,
            any library of the inputs' device. It is written in place. Beside
            ``where=``, None says that new results may hold anything elsewhere; ``...``
            makes arrays of what would be scalars.
        **keywords
            ``where``, ``casting``, ``order``, ``dtype``, ``signature`` and ``subok``,
            as those of :class:`numpy.ufunc`.

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
        given = "out" in keywords
        out = keywords.pop("out", None)
        if out is ...:
            return results.arrays(self(*args, out=None, **keywords))
        if not keywords and args:  # CUDA's plans, until they are native, too
            kind, extra = type(args[0]), len(args) - self.nin
            if kind is not ndarray and (
                kind in ALWAYS or not ALWAYS.isdisjoint(map(type, args))
            ):
                single = self.scalar.nout == 1 and type(out) is not tuple
                if not extra and (out is None or single):
                    return self._cuda.fast(args, out)
                if extra == 1 and out is None and single:
                    return self._cuda.fast(args[:-1], args[-1])
        if not keywords and len(args) < self.nin:
            filled = self.scalar.filled(args)
            if len(filled) > len(args):
                return self(*filled, **({"out": out} if given else {}))
        result = self._general(args, out, keywords)
        if not given and all(x is None for x in args[self.nin :]):
            hosted.tell_unwritten(keywords)
        return result

    def _general(  # noqa: PLR0911 - one for each kind of arrays
        self, args: tuple[Any, ...], out: Any, keywords: dict[str, Any]
    ) -> Any:
        """Sort out the arguments, and send them to their device."""
        for keyword in keywords:
            if keyword not in KEYWORDS:
                raise parameters.unknown(self.scalar.function, keyword, KEYWORDS)
        args, outs = self._bound(args, out)
        operands = [*args, *(outs or ()), keywords.get("where", True)]
        labels = self.scalar.labels
        refuse(self.__name__, labels, operands, len(outs or ()))
        if any(map(is_collection, operands)):
            return dask.call(self, args, outs, keywords)
        if any(map(is_cuda, operands)):
            return self._cuda(args, outs, **hosted.for_cuda(self, keywords))
        if foreign.any_of(operands):
            keywords["out"] = outs
            return foreign.on_host(self, self.__name__, args, keywords, outs or ())
        if any(map(fake.is_fake, operands)):
            there = hosted.for_cuda(self, keywords)
            return hosted.on_fake(self._cpu, self.__name__, args, outs, there, labels)
        if any(map(overrides.overrides, operands)):
            if "sig" in keywords:
                keywords["signature"] = keywords.pop("sig")
            return overrides.ask(self, "__call__", args, outs or (), keywords)
        plain = hosted.operands(args, outs, self.__name__, labels)
        if self.target == "cuda":
            cuda = hosted.for_cuda(self, keywords)
            return hosted.on_cuda(self._cuda, plain, outs, cuda)
        return self._cpu(plain, outs, **hosted.read(self, keywords))

    def _bound(
        self, args: tuple[Any, ...], out: Any
    ) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
        """Return the inputs, and the outputs as a tuple, None without any."""
        nin, name, scalar = self.nin, self.__name__, self.scalar
        args = scalar.filled(args)
        args, positional = args[:nin], tuple(args[nin:])
        if positional and out is not None:
            message = f"{name}() takes {nin} arguments, and out once: positionally or "
            raise TypeError(message + "by keyword")
        outs = out if isinstance(out, tuple) else None if out is None else (out,)
        outs = positional if outs is None else outs
        if not isinstance(out, tuple) and all(x is None for x in outs):
            return args, None
        nout = scalar.nout
        if nout is None:  # never typed yet
            natives = [foreign.native(x, name) for x in args]
            nout = len(scalar.specialise(scalar.resolve(natives)).outputs)
        if len(positional) > nout:
            given = nin + len(positional)
            raise TypeError(scalar.many(given, nout))
        if len(positional) < nout and positional:
            outs = (*positional, *[None] * (nout - len(positional)))
        if len(outs) != nout:
            message = f"{name}() has {nout} outputs, but out has {len(outs)}: pass one "
            wrong = ValueError if isinstance(out, tuple) else TypeError  # as NumPy's
            raise wrong(message + "array, or None, for each")
        return args, None if all(x is None for x in outs) else outs

    # Reductions and the other methods: on the CPU they are NumPy's.

    def reduce(
        self,
        array: Any,
        axis: int | tuple[int, ...] | None = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = ABSENT,
        initial: Any = ABSENT,
        where: Any = ABSENT,
    ) -> Any:
        """Reduce along one or more axes, as :meth:`numpy.ufunc.reduce` does."""
        if out is None and keepdims is initial is where is ABSENT:
            if type(array) is np.ndarray and self.target != "cuda":
                self._check_method("reduce", array)
                return self._cpu.reduce(array, axis, dtype, None)
            if type(array) in ALWAYS:
                made = self._cuda_methods.reduce.again(array, axis, dtype)
                if made is not None:
                    return made
        given = {"keepdims": keepdims, "initial": initial, "where": where}
        options = {name: value for name, value in given.items() if value is not ABSENT}
        return self._reduce(array, axis, dtype, out, **options)

    @overrides.method(out=3)
    def _reduce(
        self, array: Any, axis: Any, dtype: Any, out: Any, **keywords: Any
    ) -> Any:
        there = self._on_cuda("reduce", array, out, keywords.get("where"))
        if there:
            call = self._cuda_methods.reduce
            return there(call, array, out, axis=axis, dtype=dtype, **keywords)
        return self._cpu.reduce(array, axis, dtype, out, **keywords)

    @overrides.method(out=3)
    def accumulate(
        self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        """Accumulate along an axis, as :meth:`numpy.ufunc.accumulate` does."""
        there = self._on_cuda("accumulate", array, out)
        if there:
            call = self._cuda_methods.accumulate
            return there(call, array, out, axis=axis, dtype=dtype)
        return self._cpu.accumulate(array, axis, dtype, out)

    @overrides.method(out=4)
    def reduceat(
        self,
        array: Any,
        indices: Any,
        axis: int = 0,
        dtype: Any = None,
        out: Any = None,
    ) -> Any:
        """Reduce over slices, as :meth:`numpy.ufunc.reduceat` does."""
        there = self._on_cuda("reduceat", array, out)
        if there:
            call = self._cuda_methods.reduceat
            return there(call, array, out, indices=indices, axis=axis, dtype=dtype)
        return self._cpu.reduceat(array, indices, axis, dtype, out)

    @overrides.method(out=2)
    def outer(self, a: Any, b: Any, /, **keywords: Any) -> Any:
        """Apply to every pair of elements, as :meth:`numpy.ufunc.outer` does."""
        self._check_method("outer", a, b, keywords.get("out"))
        if isinstance(a, np.matrix) or isinstance(b, np.matrix):
            message = f"{self.__name__}.outer takes no numpy.matrix, which cannot have "
            raise TypeError(message + "more than two axes: pass numpy.asarray(x)")
        if is_cuda(a) or is_cuda(b):
            outs, cuda = keywords.get("out"), hosted.for_cuda(self, keywords)
            made = self._cuda_methods.outer(a, b, outs, cuda)
            if "out" not in keywords:
                hosted.tell_unwritten(keywords)
            return made
        if type(a) not in WEAK:
            a = np.asanyarray(a)
            a = a.reshape(a.shape + (1,) * np.ndim(b))
        return self(a, b, **keywords)

    @overrides.method(out=0)
    def at(self, a: Any, indices: Any, b: Any = None, /) -> None:
        """Work in place at indices, repeated ones too, as :meth:`numpy.ufunc.at`."""
        values = () if b is None else (b,)
        self._check_method("at", a, *values, nin=1 + len(values))
        if is_cuda(a):
            return self._cuda_methods.at(a, indices, b)
        return self._cpu.at(a, indices, *values)

    # Each device's half is loaded where it is used; the first of several threads wins.

    @functools.cached_property
    def _cpu(self) -> CpuLoops:
        from xdev.ufunc.cpu import CpuLoops

        own = CpuLoops(self.scalar, self._identity, self.plans)
        made: CpuLoops = self.__dict__.setdefault("_cpu", own)
        return made

    @functools.cached_property
    def _cuda(self) -> CudaLoops:
        from xdev.ufunc.cuda import CudaLoops

        own = CudaLoops(self.scalar, functools.partial(dask.call, self))
        made: CudaLoops = self.__dict__.setdefault("_cuda", own)
        return made

    @functools.cached_property
    def _cuda_methods(self) -> CudaMethods:
        from xdev.ufunc.cuda_methods import CudaMethods

        return CudaMethods(self._cuda, self._identity)

    def _on_cuda(self, method: str, *operands: Any) -> Callable[..., Any] | None:
        """Return how to call a CUDA method, None where the operands are the host's."""
        self._check_method(method, *operands)
        if any(map(is_cuda, operands)):
            return hosted.there
        return hosted.round_trip if self.target == "cuda" else None

    def _check_method(self, method: str, *operands: Any, nin: int = 2) -> None:
        if self.nin != nin:
            takes = "one argument" if nin == 1 else "two arguments"
            message = (
                f"{self.__name__}.{method} needs a function of {takes}, "
                f"and {self.__name__} takes {self.nin}"
            )
            raise ValueError(message)
        refuse(f"{self.__name__}.{method}", overrides.VALUES[method], operands)

    # What numpy.ufunc tells of itself.

    @property
    def nout(self) -> int:
        """The number of outputs."""
        if self.scalar.nout is None:
            probes = [inputs for inputs, _ in self.scalar.signatures]
            for inputs in probes or [(np.dtype(char),) * self.nin for char in "dlD"]:
                try:
                    self.scalar.specialise(inputs)
                    break
                except TypeError:
                    continue
        return self.scalar.nout or 1

    @property
    def reorderable(self) -> bool:
        """Whether a reduction may take its elements in any order."""
        return self._identity is not None

    @property
    def nargs(self) -> int:
        """The number of inputs and outputs."""
        return self.nin + self.nout

    @property
    def types(self) -> list[str]:
        """The typings: the explicit signatures, or those made so far."""
        if self.scalar.signatures:
            return [
                f"{''.join(d.char for d in inputs)}->{''.join(d.char for d in outputs)}"
                if outputs
                else self.scalar.specialise(inputs).types
                for inputs, outputs in self.scalar.signatures
            ]
        return [made.types for made in self.scalar.specialisations]

    @property
    def ntypes(self) -> int:
        """The number of typings."""
        return len(self.types)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute that is not one of :class:`numpy.ufunc`'s."""
        if name in FIXED:  # those without a property, which are read at each call
            message = f"attribute {name!r} of ufunc {self.__name__!r} is not writable"
            raise AttributeError(message)
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<xdev ufunc {self.__name__!r}>"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle by the Python function and the options."""
        scalar = self.scalar
        function = pickling.parts(self, scalar.function)
        parts = *function, scalar.signatures, scalar.fastmath
        return _rebuild, (*parts, self.target, self._identity)


def _rebuild(
    function: Callable[..., Any],
    excerpt: Any,
    signatures: Any,
    fastmath: bool,
    *options: Any,
) -> Vectorized:
    found = pickling.owner(function, excerpt)
    if isinstance(found, Vectorized):
        return found
    scalar = ScalarFunction(function, signatures, fastmath=fastmath)
    return Vectorized(scalar, *options)
