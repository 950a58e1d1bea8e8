"""``@kernel`` and what it makes."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, final, overload

from xdev._freed import refuse
from xdev.ufunc import fake
from xdev.ufunc.cuda_operands import is_cuda
from xdev.ufunc.kernels.cpu import CpuKernels
from xdev.ufunc.kernels.cuda import CudaKernels
from xdev.ufunc.kernels.extents import Extents
from xdev.ufunc.kernels.functions import KernelFunction

if TYPE_CHECKING:
    from collections.abc import Callable


@overload
def kernel(function: Callable[..., Any], /, *, fastmath: bool = ...) -> Kernel: ...
@overload
def kernel(*, fastmath: bool = ...) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(function: Any = None, /, *, fastmath: bool = False) -> Any:
    """Make a kernel of a function of indices and arrays; it runs where they live.

    ``k[n](x, out)`` calls ``function(i, x, out)`` for each ``i`` from 0 to ``n - 1``,
    all at once: in threads on the CPU, one thread each on CUDA, on the current stream.
    Two and three extents, ``k[h, w](…)``, give as many indices.

    Parameters
    ----------
    function : callable
        Plain Python: one to three indices (int64), then arrays and numbers. It reads
        and writes array elements, and returns nothing. Arrays may have any strides and
        be views. It may call :mod:`xdev.atomic`, ufuncs of ``@vectorize`` and plain
        functions. Floats written in it, and Python's floats among the arguments, have
        the result type of the floating arrays, as in NEP 50; ints are int64.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.

    Returns
    -------
    Kernel
        ``k[extents](*arguments)`` runs it; ``k[extents, block]``, with the extents as
        a tuple, also fixes the shape of CUDA's blocks.

    Raises
    ------
    TypeError
        It is no such function.

    Examples
    --------
    >>> import numpy as np
    >>> @kernel
    ... def add(i, x, y, out):
    ...     out[i] = x[i] + y[i]
    >>> x, out = np.arange(5), np.zeros(5, dtype="int64")
    >>> add[5](x, x, out)
    >>> out
    array([0, 2, 4, 6, 8])
    """
    if function is None:
        return functools.partial(kernel, fastmath=fastmath)
    plain = function.function if isinstance(function, Kernel) else function
    plain = getattr(plain, "py_func", plain)  # of a function that Numba compiled
    return Kernel(KernelFunction(plain, fastmath=bool(fastmath)))


@final
class Kernel:
    """A function that runs for every point of a grid: ``k[extents](*arguments)``.

    Parameters
    ----------
    typed : KernelFunction
        The function.
    """

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]

    def __init__(self, typed: KernelFunction) -> None:
        functools.update_wrapper(self, typed.function)
        self.function = typed.function
        self._name, self._fastmath = typed.name, typed.fastmath
        self._cpu, self._cuda = CpuKernels(typed), CudaKernels(typed)

    def __getitem__(self, key: Any) -> Callable[..., None]:
        """Return what runs it for extents: an int, or one to three in a tuple.

        With a block for CUDA, the extents are a tuple: ``k[(n,), 256]``.

        Raises
        ------
        TypeError, ValueError
            They are no such.
        """
        return functools.partial(self._run, Extents.read(key, self._name))

    def __call__(self, *_: Any) -> None:
        """Refuse a call without extents."""
        message = (
            f"{self._name} is a kernel: say for how many points it runs, "
            f"{self._name}[n](…)"
        )
        raise TypeError(message)

    def __repr__(self) -> str:
        return f"<xdev kernel {self._name!r}>"

    def __reduce__(self) -> Any:
        """Pickle by reference where the name is this kernel's, else by its parts."""
        own: str = self.__qualname__
        owner: Any = sys.modules.get(self.__module__)
        for part in own.split("."):
            owner = getattr(owner, part, None)
        return own if owner is self else (_rebuild, (self.function, self._fastmath))

    def _run(self, extents: Extents, *args: Any) -> None:
        """Run it where its arguments are."""
        if any(map(is_cuda, args)):
            self._cuda(extents, args)
        elif any(map(fake.is_fake, args)):
            fake.call(
                lambda numbers, _: self._cpu(extents, numbers),
                self._name,
                args,
                None,
                {},
            )
        else:
            refuse(self._name, *args)
            self._cpu(extents, args)


def _rebuild(function: Callable[..., Any], fastmath: bool) -> Kernel:
    return Kernel(KernelFunction(function, fastmath=fastmath))
