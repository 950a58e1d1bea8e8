"""One typing of a scalar function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

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
