"""One typing of a scalar function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from xdev.compile import elementwise
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
    recipe : callable, optional
        ``recipe(kernel, capability, fastmath)`` compiles a kernel for CUDA: its cubin
        and name. By default ``function`` is compiled.
    made : callable, optional
        Returns ``function``.
    unchanged : callable, optional
        Says whether ``function``, with all that it calls, still has the digest.
    """

    __slots__ = ("digest", "inputs", "made", "name", "outputs", "recipe", "unchanged")

    def __init__(
        self,
        name: str,
        inputs: Dtypes,
        outputs: Dtypes,
        digest: str | None,
        recipe: Callable[..., tuple[bytes, str]] | None = None,
        made: Callable[[], Callable[..., Any]] | None = None,
        unchanged: Callable[[], bool] = lambda: True,
    ) -> None:
        self.name, self.inputs, self.outputs = name, inputs, outputs
        self.digest, self.recipe = digest, recipe
        self.made, self.unchanged = made, unchanged

    @property
    def function(self) -> Callable[..., Any]:
        """The Python function to compile: literals typed, other ufuncs resolved.

        It takes ``inputs``, but float32 where an input is float16. It is made when a
        compiler asks for it, which needs the source and loads Numba.
        """
        assert self.made is not None  # noqa: S101 - it has no recipe
        return self.made()

    def cubin(
        self,
        kernel: elementwise.Template,
        capability: tuple[int, int],
        *,
        fastmath: bool,
    ) -> tuple[bytes, str]:
        """Compile a kernel: its cubin and name."""
        if self.recipe is not None:
            return self.recipe(kernel, capability, fastmath)
        from xdev.compile import elementwise  # not where CPUs are all there is

        types = self.inputs, self.outputs
        return elementwise.cubin(
            kernel, self.function, *types, capability, fastmath=fastmath
        )

    @property
    def types(self) -> str:
        """Return the types as NumPy writes them, as in ``"ff->f"``."""
        return types_of(self.inputs, self.outputs)

    def fits(self, signature: Signature) -> bool:
        """Say whether a call asks for it; a single output's dtype is that of all."""
        taken, given = signature
        if len(given) == 1:
            given *= len(self.outputs)
        asked, own = (*taken, *given), (*self.inputs, *self.outputs)
        return len(asked) == len(own) and all(
            one is None or one == other for one, other in zip(asked, own, strict=True)
        )


def types_of(inputs: Dtypes, outputs: Dtypes) -> str:
    """Return dtypes as NumPy writes a typing."""
    return "->".join("".join(d.char for d in each) for each in (inputs, outputs))
