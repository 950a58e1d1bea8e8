"""Core dimensions: ``"(n),(n)->()"``, and the shapes that they stand for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, final

from xdev.ufunc import cuda_layout

if TYPE_CHECKING:
    from collections.abc import Sequence


Shape = tuple[int, ...]
NAME = r"\s*(?:[A-Za-z_]\w*|[1-9]\d*)\s*"
OPERAND = rf"\s*\(\s*(?:{NAME}(?:,{NAME})*)?\)\s*"
WHOLE = re.compile(rf"({OPERAND}(?:,{OPERAND})*)->({OPERAND}(?:,{OPERAND})*)")


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """The core dimensions of each operand, by name; a number is a fixed length.

    Parameters
    ----------
    text : str
        The signature.
    inputs, outputs : tuple of tuple of str
        The names.
    """

    text: str
    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, text: object) -> Layout:
        """Read a signature.

        Raises
        ------
        TypeError
            It is none.

        Examples
        --------
        >>> Layout.parse("(m,n),(n)->(m)").inputs
        (('m', 'n'), ('n',))
        """
        found = WHOLE.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise TypeError(
                f"{text!r} is not a layout of core dimensions: write one pair of "
                "brackets an operand, '(m,n),(n)->(m)'"
            )
        inputs, outputs = (
            tuple(
                tuple(name.strip() for name in operand.split(",") if name.strip())
                for operand in re.findall(r"\(([^()]*)\)", part)
            )
            for part in found.groups()
        )
        return cls(found[0].strip(), inputs, outputs)

    @property
    def operands(self) -> tuple[tuple[str, ...], ...]:
        """The names of all operands' core dimensions."""
        return self.inputs + self.outputs

    @property
    def names(self) -> tuple[str, ...]:
        """Each name once, as NumPy numbers them."""
        return tuple(dict.fromkeys(n for names in self.operands for n in names))

    @property
    def places(self) -> tuple[Shape, ...]:
        """For each operand the numbers of its core dimensions."""
        return tuple(tuple(map(self.names.index, own)) for own in self.operands)

    def shapes(
        self, inputs: Sequence[Shape], outputs: Sequence[Shape | None], name: str
    ) -> tuple[Shape, list[Shape]]:
        """Return the loop shape, and the shape of every output.

        Parameters
        ----------
        inputs : sequence of tuple of int
            The inputs' shapes, core dimensions last.
        outputs : sequence of tuple of int and None
            Those of the outputs that are given.
        name : str
            The function's, for errors.

        Raises
        ------
        ValueError
            They do not fit, or the length of an output's core dimension is unknown.
        """
        lengths: dict[str, int] = {n: int(n) for n in self.names if n.isdigit()}
        loops: list[Shape | None] = []
        for k, (shape, own) in enumerate(
            zip((*inputs, *outputs), self.operands, strict=True)
        ):
            if shape is None:
                loops.append(None)
                continue
            if len(shape) < len(own):
                raise ValueError(
                    f"{name}: operand {k} of shape {shape} lacks core dimensions: it "
                    f"has ({','.join(own)}) in {self.text}"
                )
            split = len(shape) - len(own)
            loops.append(shape[:split])
            for dimension, length in zip(own, shape[split:], strict=True):
                if lengths.setdefault(dimension, length) != length:
                    raise ValueError(
                        f"{name}: operand {k} of shape {shape} has {length} along its "
                        f"core dimension {dimension} of {self.text}, where others have "
                        f"{lengths[dimension]}"
                    )
        unknown = [n for own in self.outputs for n in own if n not in lengths]
        if unknown:
            raise ValueError(
                f"{name}: no input has the core dimension {unknown[0]} of {self.text}: "
                "pass out= of the length that it shall have"
            )
        count = len(self.inputs)
        reads = [shape for shape in loops[:count] if shape is not None]
        most = max(map(len, reads), default=0)  # unlike other ufuncs' outputs, these
        writes = [  # may lack leading dimensions of length 1
            (1,) * (most - len(shape)) + shape
            for shape in loops[count:]
            if shape is not None
        ]
        loop = cuda_layout.broadcast(reads, writes, name)
        return loop, [loop + tuple(lengths[n] for n in own) for own in self.outputs]


# ``axes=``, ``axis=`` and ``keepdims=`` of a generalized ufunc, as NumPy has them.


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
            raise TypeError(
                f"{name}: keepdims needs inputs of as many core dimensions each, and "
                f"outputs without any, not {layout.text}"
            )
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
            raise ValueError(
                f"{name}: operand {k} of {ndim} axes has no axes {self.operands[k]}"
            )
        return (*(axis for axis in range(ndim) if axis not in own), *own)


def _listed(axes: Any, counts: Sequence[int], nin: int, name: str) -> list[Any]:
    """Return one tuple an operand."""
    if not isinstance(axes, list):
        raise TypeError(f"{name}: axes is a list with a tuple of axes for each operand")
    given = [axis if isinstance(axis, tuple) else (axis,) for axis in axes]
    if len(given) == nin and not any(counts[nin:]):
        given += [()] * (len(counts) - nin)
    if [len(one) for one in given] != list(counts):
        message = f"{name}: axes has {axes}, but core dimensions are {tuple(counts)}"
        raise TypeError(message)
    return given
