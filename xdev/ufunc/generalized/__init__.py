"""``@guvectorize``: a generalized ufunc that runs where its inputs live."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, final

from xdev.ufunc import calls, dask, sources
from xdev.ufunc.decorator import WITHOUT_EFFECT, check_options
from xdev.ufunc.generalized.functions import CoreFunction
from xdev.ufunc.generalized.layouts import Layout
from xdev.ufunc.generalized.loops import CpuCores, CudaCores
from xdev.ufunc.signatures import parse_cores

if TYPE_CHECKING:
    from collections.abc import Callable

KEYWORDS = ("out", "axes", "axis", "keepdims", "casting", "order", "dtype", "subok")
ON_CUDA = frozenset(("axes", "axis", "keepdims", "casting", "signature"))


def _for_cuda(ufunc: Generalized, keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords that CUDA has; the others have no meaning there."""
    if keywords.get("order", "K") not in {"K", "C", "A"}:
        order = keywords["order"]
        raise TypeError(f"{ufunc.__name__}() cannot lay out results as order={order!r}")
    keywords = calls.read(ufunc, keywords)
    return {k: v for k, v in keywords.items() if k in ON_CUDA}


WAY = calls.Way(KEYWORDS, dask.call_generalized, _for_cuda)


@final
class Generalized:
    """A function of core arrays as a generalized ufunc: ``f(x, y, out=None, …)``.

    NumPy arrays are computed by a real NumPy ufunc, CUDA arrays of any library by one
    kernel launch on their device.

    Parameters
    ----------
    function : CoreFunction
        The function with its typings.
    target : "cpu", "parallel", "cuda" or None
        Where arrays in host memory are computed; ``"cuda"`` uploads them and
        downloads the results.
    """

    __name__: str
    __qualname__: str

    def __init__(self, function: CoreFunction, target: str | None) -> None:
        functools.update_wrapper(self, function.function)
        self.__qualname__ = self.__qualname__.removesuffix(sources.INSIDE)
        self.definition, self.target = function, target
        names = function.function.__code__.co_varnames[: len(function.layout.operands)]
        self.__doc__ = self.__doc__ or f"{self.__name__}({', '.join(names)})"
        self._cpu = CpuCores(function, parallel=target == "parallel")
        self._cuda = CudaCores(function)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Compute the function for every loop index.

        Parameters
        ----------
        *args
            The inputs: arrays of one device whose loop dimensions broadcast, and
            numbers; then, optionally, the outputs.
        out : array, or tuple of arrays and None, optional
            Where the results go, of any library of the inputs' device. It is written in
            place. A new one has the inputs' result type, and nothing is in it before.
            ``...`` makes arrays of what would be scalars.
        **keywords
            ``axes``, ``axis``, ``keepdims``, ``casting``, ``order``, ``dtype`` (of the
            results) and ``subok``, as those of :class:`numpy.ufunc`.

        Returns
        -------
        array or tuple of arrays
            ``out`` itself, or new arrays of the first array's library.

        Raises
        ------
        TypeError
            Wrong arguments, no typing for their dtypes, or a cast that is not allowed.
        ValueError
            Shapes that do not fit, or an ``out`` that cannot be written.
        DeviceMismatchError, UseAfterFreeError
            Arrays of two devices; a freed one. Whatever is raised, nothing was written.
        """
        return calls.call(self, args, keywords, WAY)

    # What numpy.ufunc tells of itself.

    @property
    def nin(self) -> int:
        """The number of inputs."""
        return self.definition.nin

    @property
    def nout(self) -> int:
        """The number of outputs."""
        return self.definition.nout

    @property
    def nargs(self) -> int:
        """The number of inputs and outputs."""
        return self.nin + self.nout

    @property
    def signature(self) -> str:
        """The core dimensions."""
        return self.definition.layout.text

    @property
    def types(self) -> list[str]:
        """The typings: the explicit signatures, or those made so far."""
        nin = self.nin
        if self.definition.signatures:
            rows = [[d.char for d, _ in types] for types in self.definition.signatures]
        else:
            rows = [
                [d.char for d in (*m.inputs, *m.outputs)] for m in self.definition.made
            ]
        return [f"{''.join(row[:nin])}->{''.join(row[nin:])}" for row in rows]

    @property
    def ntypes(self) -> int:
        """The number of typings."""
        return len(self.types)

    def __repr__(self) -> str:
        return f"<xdev gufunc {self.__name__!r} {self.signature}>"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle by the Python function and the options."""
        core = self.definition
        function = sources.parts(self, core.function)
        parts = *function, core.layout, core.signatures, core.fastmath
        return _rebuild, (*parts, self.target)


def _rebuild(
    function: Callable[..., Any],
    excerpt: Any,
    layout: Any,
    signatures: Any,
    fastmath: bool,
    target: str | None,
) -> Generalized:
    found = sources.owner(function, excerpt)
    if isinstance(found, Generalized):
        return found
    core = CoreFunction(function, layout, signatures, fastmath=fastmath)
    return Generalized(core, target)


# ``@guvectorize``: its forms and its options.


def guvectorize(
    signatures: Any = None,
    /,
    signature: str | None = None,
    *,
    target: str | None = None,
    fastmath: bool = False,
    **options: bool,
) -> Callable[[Callable[..., Any]], Generalized]:
    """Make a generalized ufunc of a function of arrays; it runs where its inputs live.

    Parameters
    ----------
    signatures : str, or list of signatures
        The core dimensions of inputs and outputs, ``"(m,n),(n)->(m)"``; the others are
        loop dimensions, which broadcast. Types may come before them, as Numba writes
        them: ``["void(float32[:,:], float32[:], float32[:])"]``.
    signature : str, optional
        The core dimensions, where types come first, or by its name.
    target : "cpu", "parallel", "cuda" or None
        Where arrays in host memory are computed: by default on the CPU, with
        ``"parallel"`` in threads that share the first loop dimension of a call with
        ``out=``; ``"cuda"`` uploads them, computes and downloads. Arrays on a CUDA
        device are computed there.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.
    **options
        Numba's ``nopython``, ``cache``, ``boundscheck`` and ``writable_args=()`` are
        accepted.

    Returns
    -------
    callable
        A decorator. The function takes the core arrays, then the outputs, into which it
        writes: an input without core dimensions is a number, an output without is an
        array of one element, ``out[0] = …``. Without types, results have the inputs'
        result type.

    Raises
    ------
    TypeError, ValueError
        An option, a signature or the function is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> @guvectorize("(n),(n)->()")
    ... def dot(x, y, out):
    ...     out[0] = 0
    ...     for i in range(x.shape[0]):
    ...         out[0] += x[i] * y[i]
    >>> dot(np.arange(6.0).reshape(2, 3), np.asarray([1.0, 10.0, 100.0]))
    array([210., 543.])
    """
    accepted = (*WITHOUT_EFFECT, "writable_args")
    check_options("guvectorize", target, options, "target, fastmath", accepted)
    if value := options.get("writable_args"):
        message = f"guvectorize cannot have writable_args={value!r}: leave it out"
        raise TypeError(message)
    if signature is None:
        signatures, signature = None, signatures
    if signature is None or callable(signature):
        message = "guvectorize needs core dimensions: @guvectorize('(n),(n)->()')"
        raise TypeError(message)
    core = Layout.parse(signature)
    several = isinstance(signatures, list | set | frozenset)
    given = signatures if several or signatures is None else [signatures]
    explicit = [parse_cores(each, core) for each in given or ()]

    def decorate(function: Any) -> Generalized:
        if isinstance(function, Generalized):
            function = function.definition.function
        plain = getattr(function, "py_func", function)  # of what Numba compiled
        made = CoreFunction(plain, core, explicit, fastmath=bool(fastmath))
        return Generalized(made, target)

    return decorate
