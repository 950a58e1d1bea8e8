"""By what rules a function is typed: those of NumPy, or a signature's."""

from __future__ import annotations

from typing import Any, final

import numpy as np

Dtypes = tuple[np.dtype[Any], ...]
WIDEST = np.dtype(np.uint64)
NATIVE = np.dtype(np.int64)  # the integers that compilers compute in


@final
class Rules:
    """How a function's integers meet.

    Parameters
    ----------
    inputs, outputs : tuple of numpy.dtype
        The function's, its results where a signature has them.
    working : numpy.dtype, optional
        Instead of the inputs' result type.
    bounded : bool, optional
        Instead of what follows from the dtypes: whether integers have NumPy's dtypes,
        into which literals must fit. A signature means Numba's integers.
    """

    __slots__ = ("bounded", "inputs", "mixed", "working")

    def __init__(
        self,
        inputs: Dtypes,
        outputs: Dtypes = (),
        *,
        working: np.dtype[Any] | None = None,
        bounded: bool | None = None,
    ) -> None:
        self.inputs = inputs
        self.working = np.result_type(*inputs) if working is None else working
        #: Whether uint64 meets signed integers.
        self.mixed = _mixed(inputs, outputs)
        self.bounded = not outputs if bounded is None else bounded

    @property
    def numpys(self) -> bool:
        """Return whether compilers' integers are not what is meant."""
        return bool(self.inputs) and (self.bounded or self.mixed)

    @property
    def needs_source(self) -> bool:
        """Return whether compilers' integers would give other numbers than NumPy's.

        Of bools they would give integers.
        """
        integers = {dtype for dtype in self.inputs if dtype.kind in "iu"}
        bools = self.working.kind == "b"
        return self.numpys and (bools or bool(integers - {NATIVE}))

    @property
    def words(self) -> tuple[bool, bool]:
        """Return what a key on disk has of them, beside the inputs."""
        return self.mixed, self.bounded


def _mixed(inputs: Dtypes, outputs: Dtypes = ()) -> bool:
    """Say whether a function's integers have no common dtype.

    Parameters
    ----------
    inputs, outputs : tuple of numpy.dtype
        The inputs, and the results where a signature has them: integers among these
        say that it means to compute in integers, as Numba does.

    Examples
    --------
    >>> unsigned, signed = np.dtype("uint64"), np.dtype("int8")
    >>> _mixed((unsigned, signed)), _mixed((unsigned, unsigned))
    (True, False)
    """
    meant = any(dtype.kind in "iu" for dtype in outputs)
    others = any(dtype.kind in "ib" for dtype in inputs)
    return WIDEST in inputs and others and not meant
