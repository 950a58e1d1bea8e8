"""``@guvectorize``: its forms and its options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdev.ufunc.decorator import TARGETS, WITHOUT_EFFECT
from xdev.ufunc.generalized import types
from xdev.ufunc.generalized.functions import CoreFunction
from xdev.ufunc.generalized.layouts import Layout
from xdev.ufunc.generalized.ufuncs import Generalized

if TYPE_CHECKING:
    from collections.abc import Callable


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
    if target not in TARGETS:
        listed = ", ".join(map(repr, TARGETS))
        message = f"guvectorize has no target {target!r}: use one of {listed}"
        raise ValueError(message)
    valid = (*WITHOUT_EFFECT, "writable_args")
    for option, value in options.items():
        if option not in valid:
            message = (
                f"guvectorize has no option {option!r}; valid are target, fastmath, "
                f"{', '.join(valid)}"
            )
            raise TypeError(message)
        if (option == "nopython" and not value) or (
            option == "writable_args" and value
        ):
            message = f"guvectorize cannot have {option}={value!r}: leave it out"
            raise TypeError(message)
    if signature is None:
        signatures, signature = None, signatures
    if signature is None or callable(signature):
        message = "guvectorize needs core dimensions: @guvectorize('(n),(n)->()')"
        raise TypeError(message)
    core = Layout.parse(signature)
    several = isinstance(signatures, list | set | frozenset)
    given = signatures if several or signatures is None else [signatures]
    explicit = [types.parse(each, core) for each in given or ()]

    def decorate(function: Any) -> Generalized:
        if isinstance(function, Generalized):
            function = function.core.function
        plain = getattr(function, "py_func", function)  # of what Numba compiled
        made = CoreFunction(plain, core, explicit, fastmath=bool(fastmath))
        return Generalized(made, target)

    return decorate
