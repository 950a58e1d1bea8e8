"""``axes=``, ``axis=`` and ``keepdims=`` of a generalized ufunc, as NumPy has them."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdev.ufunc.generalized.layouts import Layout

Shape = tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Axes:
    """Where the core dimensions of each operand are; they count from the end.

    Parameters
    ----------
    operands : tuple of tuple of int
        For each operand the axes of its core dimensions.
    kept : bool
        Whether an output without core dimensions keeps the input's, with length 1.
    """

    operands: tuple[Shape, ...]
    kept: bool = False

    @classmethod
    def read(
        cls,
        layout: Layout,
        name: str,
        axes: Any = None,
        axis: Any = None,
        keepdims: bool = False,
    ) -> Axes:
        """Return what a call's keywords say.

        Raises
        ------
        TypeError
            They do not fit the core dimensions, or each other.
        """
        counts = [len(own) for own in layout.operands]
        nin = len(layout.inputs)
        if keepdims and (any(counts[nin:]) or len(set(counts[:nin])) > 1):
            message = (
                f"{name}: keepdims needs inputs of as many core dimensions each, and "
                f"outputs without any, not {layout.text}"
            )
            raise TypeError(message)
        if axis is not None:
            if axes is not None or set(counts) - {0, 1}:
                message = f"{name}: axis needs one core dimension, and no axes beside"
                raise TypeError(message)
            given = [(axis,) * count for count in counts]
        elif axes is None:
            given = [tuple(range(-count, 0)) for count in counts]
        else:
            given = _listed(axes, counts, nin, name)
        if keepdims:
            given[nin:] = given[:1] * (len(counts) - nin)
        return cls(tuple(tuple(map(index, one)) for one in given), bool(keepdims))

    def order(self, k: int, ndim: int, name: str) -> Shape:
        """Return the axes of an operand, those of its core dimensions last.

        Raises
        ------
        ValueError
            It has not so many, or one is named twice.
        """
        own = tuple(axis + ndim * (axis < 0) for axis in self.operands[k])
        if any(not 0 <= axis < ndim for axis in own) or len(set(own)) < len(own):
            message = (
                f"{name}: operand {k} of {ndim} axes has no axes {self.operands[k]}"
            )
            raise ValueError(message)
        return (*(axis for axis in range(ndim) if axis not in own), *own)


def _listed(axes: Any, counts: Sequence[int], nin: int, name: str) -> list[Any]:
    """Return one tuple an operand."""
    if not isinstance(axes, list):
        message = f"{name}: axes is a list with a tuple of axes for each operand"
        raise TypeError(message)
    given = [axis if isinstance(axis, tuple) else (axis,) for axis in axes]
    if len(given) == nin and not any(counts[nin:]):
        given += [()] * (len(counts) - nin)
    if [len(one) for one in given] != list(counts):
        message = f"{name}: axes has {axes}, but core dimensions are {tuple(counts)}"
        raise TypeError(message)
    return given
