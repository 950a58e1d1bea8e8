"""One typing of a scalar function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.ufunc.inputs import check

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdev.ufunc.scalar import ScalarFunction
    from xdev.ufunc.signatures import Signature

    Dtypes = tuple[np.dtype[Any], ...]


@final
class Specialisation:
    """One typing of a scalar function: what every device compiles.

    A scalar function makes each once, so it is equal to itself alone.

    Parameters
    ----------
    name : str
        The function's name.
    inputs, outputs : tuple of numpy.dtype
        What the inner loop reads and writes, in native byte order. What the
        function returns is cast to ``outputs``.
    digest : str or None
        Names the function's code on disk; None: it is not kept there.
    made : callable
        Returns ``function``.
    unchanged : callable
        Says whether ``function``, with all that it calls, still has the digest.
    """

    __slots__ = ("digest", "inputs", "made", "name", "outputs", "unchanged")

    def __init__(
        self,
        name: str,
        inputs: Dtypes,
        outputs: Dtypes,
        digest: str | None,
        made: Callable[[], Callable[..., Any]],
        unchanged: Callable[[], bool],
    ) -> None:
        self.name, self.inputs, self.outputs = name, inputs, outputs
        self.digest, self.made, self.unchanged = digest, made, unchanged

    @property
    def function(self) -> Callable[..., Any]:
        """The Python function to compile: literals typed, other ufuncs resolved.

        It takes ``inputs``, but float32 where an input is float16. It is made when a
        compiler asks for it, which needs the source and loads Numba.
        """
        return self.made()

    @property
    def types(self) -> str:
        """Return the types as NumPy writes them, as in ``"ff->f"``."""
        read, written = (
            "".join(d.char for d in ds) for ds in (self.inputs, self.outputs)
        )
        return f"{read}->{written}"

    def fits(self, signature: Signature) -> bool:
        """Say whether a call asks for it; a single output's dtype is that of all."""
        taken, given = signature
        if len(given) == 1:
            given *= len(self.outputs)
        asked, own = (*taken, *given), (*self.inputs, *self.outputs)
        return len(asked) == len(own) and all(
            one is None or one == other for one, other in zip(asked, own, strict=True)
        )


def folding(
    scalar: ScalarFunction,
    array: np.dtype[Any],
    out: np.dtype[Any] | None,
    dtype: Any,
) -> Specialisation:
    """Return the typing of a fold, which takes its own results.

    Parameters
    ----------
    scalar : ScalarFunction
        The function.
    array : numpy.dtype
        The array's.
    out : numpy.dtype or None
        That of where the results go, which counts as a first value does.
    dtype : dtype-like or None
        What to fold in instead.

    Raises
    ------
    TypeError
        The function has no typing for them.
    """
    if dtype is not None:
        given = np.dtype(dtype)
    else:
        check(array, scalar.name)  # before NumPy says that nothing is common to both
        given = array if out is None else np.result_type(out, array)
    made = scalar.specialise((given, given))
    if set(made.inputs) != set(made.outputs):
        (result, *_) = made.outputs
        made = scalar.specialise((result, result))
    return made
