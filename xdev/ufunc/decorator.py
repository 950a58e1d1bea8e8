"""``@vectorize``: its forms and its options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from xdev.ufunc.scalar import ScalarFunction
from xdev.ufunc.ufuncs import Ufunc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TARGETS = ("cpu", "parallel", "cuda", None)
# Numba's keywords that change nothing here: functions are always compiled whole.
WITHOUT_EFFECT = ("nopython", "cache", "boundscheck")


@overload
def vectorize(function: Callable[..., Any], /) -> Ufunc: ...
@overload
def vectorize(
    signatures: str | Iterable[Any] | None = None,
    /,
    *,
    target: str | None = None,
    identity: int | str | None = None,
    fastmath: bool = False,
    **options: bool,
) -> Callable[[Callable[..., Any]], Ufunc]: ...
def vectorize(
    function: Any = None,
    /,
    *,
    target: str | None = None,
    identity: int | str | None = None,
    fastmath: bool = False,
    **options: bool,
) -> Any:
    """Make a ufunc of a scalar Python function; it runs where its inputs live.

    Parameters
    ----------
    function : callable, or signatures
        A Python function of one or more numbers that returns a number, or a tuple of
        them for several outputs. Signatures in its place make a decorator: one, or a
        list, as Numba writes them (``"float32(float32, float32)"``); the first that
        takes the inputs by safe casts is used. Without any, each combination of input
        dtypes is compiled at its first call, and results have the inputs' result type.
    target : "cpu", "parallel", "cuda" or None
        Where arrays in host memory are computed: by default on the CPU; ``"cuda"``
        uploads them, computes and downloads. Arrays on a CUDA device are computed
        there.
    identity : 0, 1, "reorderable" or None
        What a reduction of nothing is; values are then folded in pairs. None:
        reductions take one axis at a time, one value after the other.
    fastmath : bool
        Whether floating point arithmetic may be reordered and contracted.
    **options
        Numba's ``nopython``, ``cache`` and ``boundscheck`` are accepted.

    Returns
    -------
    Ufunc
        The ufunc, or a decorator that makes one.

    Raises
    ------
    TypeError
        An option or a signature is wrong, or ``function`` takes no plain numbers.

    Examples
    --------
    >>> import numpy as np
    >>> @vectorize
    ... def clipped(x, top):
    ...     return top if x > top else 2 * x
    >>> clipped(np.asarray([1, 2, 3], dtype="float32"), 2.5)
    array([2. , 4. , 2.5], dtype=float32)
    """
    _check(target, identity, options)

    def decorate(plain: Any) -> Ufunc:
        plain = getattr(plain, "py_func", plain)  # of a function that Numba compiled
        if isinstance(plain, Ufunc) and isinstance(plain.definition, ScalarFunction):
            plain = plain.definition.function
        scalar = ScalarFunction(plain, explicit, fastmath=bool(fastmath))
        return Ufunc(scalar, target, identity)

    if function is None:
        explicit = []
        return decorate
    containers = (list, tuple, set, frozenset)
    if isinstance(function, (str, *containers)) or hasattr(function, "return_type"):
        from xdev.ufunc.signatures import parse

        several = function if isinstance(function, containers) else [function]
        explicit = [parse(signature) for signature in several]
        return decorate
    explicit = []
    return decorate(function)


def _check(
    target: str | None, identity: int | str | None, options: dict[str, bool]
) -> None:
    """Refuse options that do not exist, with those that do."""
    check_options("vectorize", target, options, "target, identity, fastmath")
    if identity is not None:
        from xdev.compile.loops import IDENTITIES

        if identity not in IDENTITIES:
            listed = ", ".join(map(repr, IDENTITIES))
            raise ValueError(
                f"vectorize cannot have identity={identity!r}: use one of {listed}"
            )


def check_options(
    name: str,
    target: str | None,
    options: dict[str, bool],
    others: str,
    accepted: tuple[str, ...] = WITHOUT_EFFECT,
) -> None:
    """Refuse a decorator's target and options that do not exist, with those that do."""
    if target not in TARGETS:
        listed = ", ".join(map(repr, TARGETS))
        raise ValueError(f"{name} has no target {target!r}: use one of {listed}")
    for option in options:
        if option not in accepted:
            valid = ", ".join((others, *accepted))
            raise TypeError(f"{name} has no option {option!r}; valid are {valid}")
    if not options.get("nopython", True):
        raise TypeError(f"{name} compiles functions whole: leave nopython=False out")
